"""What one command writes, every other can read: JSON lines, CSV, TSV, compressed files."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from pathlib import Path

import pytest
import zstandard
from command_runner import Runner
from typer.testing import CliRunner

from nlpkit.cli.main import app

UNPACK = {
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
    ".zst": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}


def call(*arguments: str, input: str | bytes = b"") -> str:
    """A command in this process: what it writes."""
    data = input.encode() if isinstance(input, str) else input
    done = CliRunner().invoke(app, arguments, input=data, prog_name="nlpkit")
    assert done.exit_code == 0, (arguments, done.stderr)
    return done.stdout


# --- detection and errors -----------------------------------------------------------------------


def test_tokens_of_json_lines_become_ids_through_a_real_pipe(run: Runner) -> None:
    run.write("w.vocab", "<pad>\t0\n<unk>\t0\nthe\t2\nking\t1\n")
    run.write("in.jsonl", '{"doc": 5, "text": "the king"}\n')
    done = run.shell("nlpkit tokenize --json in.jsonl | nlpkit encode -V w.vocab --json")
    assert json.loads(done.out) == {
        "doc": 5,
        "text": "the king",
        "tokens": ["the", "king"],
        "ids": [2, 3],
    }
    assert "in.jsonl: JSON lines" in done.err
    assert "standard input: JSON lines" in done.err


def test_what_only_looks_like_json_is_text_and_a_flag_decides() -> None:
    assert call("tokenize", "-t", "whitespace", input="{see above}\n") == "{see above}\n"
    assert call("tokenize", "-t", "whitespace", input='[1, "two"]\n') == '[1, "two"]\n'
    line = '{"text": "a b"}\n'
    assert call("tokenize", "-q", input=line) == "a b\n"
    assert call("tokenize", "--input", "text", "-t", "whitespace", input=line) == line


def test_the_key_that_is_read_is_named_and_a_table_that_is_none(run: Runner) -> None:
    """A semicolon separates nothing; who has such a table is told that it is read as text."""
    run.write("a.jsonl", '{"id": 1, "tokens": 2, "text": "a b"}\n')
    assert "a.jsonl: JSON lines, key text (if not" in run.shell("nlpkit tokenize a.jsonl").err
    run.write("a.csv", "id;text\n1;one, two\n")
    done = run.shell("nlpkit tokenize -t whitespace a.csv")
    assert done.out == "id;text\n1;one, two\n"
    assert "a.csv: plain text, of one column (if not: --input csv)" in done.err


def test_one_array_of_objects_is_read_as_lines_of_them() -> None:
    array = '[\n {"id": 1, "text": "a b"},\n {"id": 2, "text": "c"}\n]\n'
    found = [
        json.loads(line) for line in call("tokenize", "--json", "-q", input=array).splitlines()
    ]
    assert [(one["id"], one["tokens"]) for one in found] == [(1, ["a", "b"]), (2, ["c"])]
    assert call("tokenize", "--input", "text", "-t", "whitespace", input="[{\n") == "[{\n"


def test_a_column_by_name_and_by_number() -> None:
    table = 'id,body\n1,"one, two\nthree"\n2,"say ""hi"""\n'
    answer = call("tokenize", "--column", "body", "-q", input=table)
    assert answer == 'one , two three\nsay " hi "\n'
    assert (
        call("tokenize", "--key", "2", "-q", input="1\tone two\n2\tthree\n") == "one two\nthree\n"
    )


def test_a_row_that_spans_blocks_is_one_record(tmp_path: Path) -> None:
    long = "line one\n" * 60_000
    path = tmp_path / "long.csv"
    path.write_text(f'id,text\n1,"{long}"\n2,short\n')
    first, second = call("tokenize", "--json", "-q", str(path)).splitlines()
    assert len(json.loads(first)["tokens"]) == 120_000
    assert json.loads(second) == {"id": "2", "text": "short", "tokens": ["short"]}


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.jsonl", '{"text": "a"}\n{"body": "b"}\n', "line 2: no key text or sentence or tokens"),
        ("a.jsonl", '{"text": "a"}\n{"text"\n', "line 2: not JSON"),
        ("a.jsonl", '{"text": 7}\n', "line 1: expected a text or a list of tokens, found 7"),
        ("a.jsonl", '{"tokens": ["a", null]}\n', "line 1: expected a text or a list"),
        ("a.csv", "id,body\n1,b\n", "no column text or sentence or tokens in the header"),
        ("a.csv", "id,text\n1,b\n2\n", "line 3: 1 fields, 2 expected"),
        ("a.csv", 'id,text\n1,"b\n', "line 2: unexpected end of data"),
        ("a.tsv", "id\ttext\n1\tb\tc\n", "line 2: 3 fields, 2 expected"),
    ],
)
def test_a_record_that_cannot_be_read_is_named(
    run: Runner, name: str, data: str, says: str
) -> None:
    message = run.fails("tokenize", "-q", run.write(name, data))
    assert says in message


def test_a_key_that_is_missing_names_those_that_are_there(run: Runner) -> None:
    run.write("a.jsonl", '{"body": "b", "id": 1}\n')
    assert "--key with one of its keys: body, id" in run.fails("tokenize", "-q", "a.jsonl")


# --- compressed files ---------------------------------------------------------------------------


@pytest.mark.parametrize("ending", UNPACK)
def test_output_is_compressed_by_its_name_and_read_back_from_a_pipe(
    tmp_path: Path, ending: str
) -> None:
    path = tmp_path / f"tokens{ending}"
    call("tokenize", "-o", str(path), input="It's HERE.\n" * 3)
    data = path.read_bytes()
    assert UNPACK[ending](data) == b"It 's HERE .\n" * 3
    call("tokenize", "-o", str(path), input="It's HERE.\n" * 3)
    assert path.read_bytes() == data  # no time stamp in it
    assert call("detokenize", str(path)) == "It's HERE.\n" * 3
    nameless = tmp_path / "nameless"
    nameless.write_bytes(data)
    assert call("detokenize", str(nameless)) == "It's HERE.\n" * 3


@pytest.mark.parametrize("ending", UNPACK)
def test_compressed_standard_input_is_told_by_its_first_bytes(run: Runner, ending: str) -> None:
    run("tokenize", "-o", f"t{ending}", input="one two\n")
    slowly = f"(head -c 3 t{ending}; sleep 0.1; tail -c +4 t{ending})"
    assert run.shell(f"{slowly} | nlpkit detokenize").out == "one two\n"
    cut = run.shell(f"head -c 12 t{ending} | nlpkit detokenize")
    assert cut.code == 1
    assert cut.err.startswith("error: cannot decompress standard input")


def test_text_that_starts_like_an_archive_is_text(run: Runner) -> None:
    assert run.ok("tokenize", input=b"BZh") == "BZh\n"
    assert (
        run.shell("(printf B; sleep 0.1; printf 'Zh9 is\\n') | nlpkit tokenize").out == "BZh9 is\n"
    )


def test_a_failed_run_leaves_no_compressed_file(run: Runner) -> None:
    run.write("bad.jsonl", '{"text": "a"}\nno\n')
    run.fails("tokenize", "-q", "bad.jsonl", "-o", "out.gz")


def test_a_vocabulary_and_ids_travel_compressed(tmp_path: Path) -> None:
    vocab, ids = str(tmp_path / "v.vocab.gz"), str(tmp_path / "ids.zst")
    call("vocab", "build", "-q", "-o", vocab, input="a b a\n")
    call("encode", "-V", vocab, "-o", ids, input="a b\n")
    assert call("decode", "-V", vocab, ids) == "a b\n"


def test_vectors_and_subwords_travel_compressed(run: Runner) -> None:
    run.write("v.txt", "3 2\na 1 0\nb 0 1\nc 1 1\n")
    for name in ("w.vec.gz", "w.bin.xz", "glove.txt.bz2", "w.zst"):
        run.ok("vectors", "convert", "v.txt", "-o", name)
        data = (run.folder / name).read_bytes()
        assert UNPACK[Path(name).suffix](data)
        assert run.ok("vectors", "get", "c", "-m", name) == "c 1 1\n"
    run.ok("bpe", "train", "-o", "t.json.gz", "--vocab-size", "258", input="a b a b\n")
    assert json.loads(gzip.decompress((run.folder / "t.json.gz").read_bytes()))["model"]
    pieces = run.ok("bpe", "encode", "-m", "t.json.gz", input="a b\n")
    assert run.ok("bpe", "decode", "-m", "t.json.gz", input=pieces) == "a b\n"
    shown = json.loads(run.ok("info", "t.json.gz", "--json"))
    assert (shown["kind"], shown["entries"]) == ("subwords", 258)
    assert "a name that ends in .npz" in run.fails("pad", "-o", "ids.npy.gz", input="1\n")
