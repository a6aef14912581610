"""Bad input: one line on stderr, the right exit code, no traceback, nothing left behind."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from command_runner import TEXT, Runner

from nlpkit.samples import sample_folder
from nlpkit.text.subwords import Subwords

# every command that reads text or ids, with what it needs besides
READERS = {
    "tokenize": ["tokenize"],
    "detokenize": ["detokenize"],
    "sentences": ["sentences"],
    "bpe train": ["bpe", "train", "-q", "--vocab-size", "260"],
    "bpe encode": ["bpe", "encode", "-m", "MADE/tokenizer.json"],
    "bpe decode": ["bpe", "decode", "-m", "MADE/tokenizer.json"],
    "vocab build": ["vocab", "build", "-q"],
    "encode": ["encode", "-q", "-V", "MADE/words.vocab"],
    "decode": ["decode", "-V", "MADE/words.vocab"],
    "pad": ["pad", "--maxlen", "3"],
    "vectorize": ["vectorize", "--mode", "hash", "--buckets", "9"],
}
READ_IDS = ("bpe decode", "decode", "pad")
# these need something to learn or count
NEED_TEXT = {"bpe train": "no text to learn from", "vocab build": "no tokens to count"}
TO_STDOUT = [name for name in READERS if name != "bpe train"]

every_reader = pytest.mark.parametrize("name", READERS)


@pytest.fixture
def arguments(name: str, made: Path) -> list[str]:
    return [argument.replace("MADE", str(made)) for argument in READERS[name]]


def good_input(name: str) -> str:
    return "5 6\n7\n" if name in READ_IDS else TEXT


@every_reader
def test_a_missing_file_and_a_directory(run: Runner, arguments: list[str], name: str) -> None:
    assert "no such file: nowhere.txt (try:" in run.fails(*arguments, "nowhere.txt")
    assert " is a directory (try:" in run.fails(*arguments, ".")


@every_reader
def test_invalid_utf8_is_named_by_file_line_and_byte_with_the_flag_to_try(
    run: Runner, arguments: list[str], name: str
) -> None:
    run.write("bad.txt", b"5 6\n7 8\n7 \xff\n")
    line = run.fails(*arguments, "bad.txt", "-o", "out.txt")
    assert "bad.txt: line 3, byte 3: 0xff is not valid UTF-8" in line
    assert "--errors replace" in line


@every_reader
def test_empty_input(run: Runner, arguments: list[str], name: str) -> None:
    if name in NEED_TEXT:
        assert NEED_TEXT[name] in run.fails(*arguments, "-o", "out.txt")
    else:
        assert run.ok(*arguments) == ""


@every_reader
def test_a_missing_last_line_end_and_windows_line_ends_change_nothing(
    run: Runner, arguments: list[str], name: str
) -> None:
    if name == "bpe train":  # it learns from the line ends as well
        run.ok(*arguments, "-o", "t.json", input="low lower\r\nlow")
        return
    text = good_input(name)
    expected = run.ok(*arguments, input=text)
    assert run.ok(*arguments, input=text.replace("\n", "\r\n").rstrip()) == expected


@every_reader
def test_nul_bytes_are_text(run: Runner, arguments: list[str], name: str) -> None:
    if name in READ_IDS:
        assert "line 2: expected ids" in run.fails(*arguments, input="5\n\0 6\n")
        return
    result = run(*arguments, "-o", "out.txt", input="a\0b c\n\0\n")
    assert (result.code, result.err) == (0, "")


@pytest.mark.parametrize("name", TO_STDOUT)
def test_closed_streams_and_full_disks(run: Runner, arguments: list[str], name: str) -> None:
    run.write("in.txt", good_input(name))
    command = " ".join(["nlpkit", *arguments])
    assert "standard input is closed" in run.shell_fails(f"{command} <&-")
    assert "standard output is closed" in run.shell_fails(f"{command} in.txt >&-")
    if os.path.exists("/dev/full"):
        full = "No space left on device"
        assert f"standard output: {full}" in run.shell_fails(f"{command} in.txt >/dev/full")
        assert f"/dev/full: {full}" in run.fails(*arguments, "in.txt", "-o", "/dev/full")


def test_vectors_align_writes_nothing_when_standard_output_is_closed(run: Runner) -> None:
    run.write("a.vec", "4 2\na 1 0\nb 0 1\nc 1 1\nd 1 -1\n")
    command = "nlpkit vectors align a.vec a.vec -o new.model"
    assert "standard output is closed" in run.shell_fails(f"{command} >&-")
    assert run("vectors", "info", "new.model").code == 1


def test_an_odd_name_of_a_configuration_stays_in_one_line(run: Runner) -> None:
    result = run("tag", "train", "a.conll", "-o", "m", "--config", "a\nb")
    assert result.code == 2
    assert result.err.splitlines()[-1].endswith("cannot read a b: No such file or directory")


def test_bpe_train_with_closed_input_and_a_full_disk(run: Runner) -> None:
    assert "standard input is closed" in run.shell_fails("nlpkit bpe train -o t.json <&-")
    if os.path.exists("/dev/full"):
        line = run.fails("bpe", "train", "-o", "/dev/full", input=TEXT)
        assert "/dev/full: No space left on device" in line


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_subword_model_may_come_through_a_pipe(run: Runner, jobs: str) -> None:
    run.ok("bpe", "train", "-q", "--vocab-size", "260", "-o", "t.json", input=TEXT)
    os.mkfifo(run.folder / "model")
    line = "cat t.json > model & echo a | nlpkit bpe encode -m model --jobs "
    assert run.shell(line + jobs).out == run.ok("bpe", "encode", "-m", "t.json", input="a\n")


def test_arrays_and_pictures_on_a_full_disk(run: Runner) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    (run.folder / "full.npy").symlink_to("/dev/full")
    assert "No space left" in run("pad", "-o", "full.npy", input="1\n").err
    (run.folder / "full.svg").symlink_to("/dev/full")
    run.write("v", "a\t1\n")
    result = run("vocab", "stats", "v", "--plot", "full.svg")
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert "No space left" in result.err


@pytest.mark.parametrize("name", ["tokenize", "pad", "vocab build", "bpe train"])
def test_output_to_a_place_that_does_not_exist(
    run: Runner, arguments: list[str], name: str
) -> None:
    line = run.fails(*arguments, "-o", "missing/out.txt", input=good_input(name))
    assert "no such folder" in line
    assert "mkdir -p" in line
    (run.folder / "folder").mkdir()
    assert "is a directory" in run.fails(*arguments, "-o", "folder", input=good_input(name))


def test_an_old_output_stays_when_a_run_fails(run: Runner) -> None:
    run.write("out.txt", "old")
    run.fails("tokenize", "-o", "out.txt", "--jobs", "2", input=b"fine\n" * 400_000 + b"\xff\n")
    assert (run.folder / "out.txt").read_text() == "old"


def test_a_line_of_50_megabytes(run: Runner, made: Path) -> None:
    word = b"x" * 50_000_000
    run.write("word.txt", word)
    for command in (
        ["tokenize"],
        ["sentences"],
        ["vocab", "build", "-q", "--no-specials"],
    ):
        run.ok(*command, "word.txt", "-o", "out.txt")
        out = (run.folder / "out.txt").read_bytes()
        assert out.startswith(word)
        assert out.count(b"\n") == 1
    assert run.ok("encode", "-q", "-V", str(made / "words.vocab"), "word.txt") == "1\n"
    run.write("words.txt", (b"w" * 49 + b" ") * 1_000_000)
    run.ok("tokenize", "words.txt", "-o", "out.txt")
    assert (run.folder / "out.txt").stat().st_size == 50_000_000


# --- patterns, vocabularies, ids ----------------------------------------------------------------


@pytest.mark.parametrize(
    "command", ["tokenize", "vocab build", "encode -V v", "vectorize --buckets 5"]
)
def test_a_pattern_that_does_not_compile(run: Runner, command: str) -> None:
    run.write("v", "<unk>\t0\n")
    line = run.fails(*command.split(), "-t", "regex", "--pattern", "(", input="a\n")
    assert "the pattern does not compile: missing )" in line


def test_a_pattern_without_the_regex_tokeniser_and_an_unknown_tokeniser(run: Runner) -> None:
    assert "go together" in run.fails("tokenize", "--pattern", "a", input="a\n")
    assert "go together" in run.fails("tokenize", "-t", "regex", input="a\n")
    assert "no such tokeniser: wrod" in run.fails("tokenize", "-t", "wrod", input="a\n")
    run.write("t.json", "{}")
    assert "is not a tokenizer.json" in run.fails("tokenize", "-t", "t.json", input="a\n")


@pytest.mark.parametrize(
    ("command", "text", "message"),
    [
        ("vocab stats v", "a\t1\nb\n", "line 2: expected token<TAB>count"),
        ("vocab merge v v", "a\t1\nb\t1\na\t2\n", "line 3: 'a' was already on line 1"),
        ("encode -V v", "a\t1\nb\n", "line 2: expected token<TAB>count"),
        ("encode -V v", "a\t1\nb\t1\na\t2\n", "line 3: 'a' was already on line 1"),
        ("encode -V v", "b\t-1\n", "line 1: the count must be a number from 0 on, not '-1'"),
        ("decode -V v", "b\t-1\n", "line 1: the count must be a number from 0 on, not '-1'"),
        ("vectorize -V v", "", "an empty vocabulary"),
    ],
)
def test_a_bad_vocabulary_is_named_by_line(
    run: Runner, command: str, text: str, message: str
) -> None:
    run.write("v", text)
    assert f"v: {message}" in run.fails(*command.split(), input="1\n")


def test_ids_out_of_range_and_things_that_are_no_ids(run: Runner, made: Path) -> None:
    run.write("v", "<unk>\t0\na\t1\n")
    decode, subwords = ["decode", "-V", "v"], ["bpe", "decode", "-m", str(made)]
    for command in (decode, subwords):
        for index in ("-1", "99999999999999999999"):
            line = run.fails(*command, "-o", "out.txt", input=f"1\n{index}\n")
            assert f"id {index} is outside the " in line
    for bad in ("1.5\n", '{"tokens": [1]}\n', "[" * 100_000):
        assert "standard input: line 2: expected ids" in run.fails(*decode, input="1\n" + bad)


def test_numbers_that_do_not_fit(run: Runner) -> None:
    assert "does not fit in int32" in run.fails("pad", "-o", "x.npy", input="3000000000\n")
    assert "does not fit in int64" in run.fails("pad", input="9" * 30)
    result = run("pad", "--value", "9" * 30, input="1\n")
    assert result.code == 2
    assert "less than or equal to 9223372036854775807" in result.err


def test_ragged_rows_make_no_matrix(run: Runner) -> None:
    run.write("v", "<unk>\t0\na\t1\n")
    line = run.fails("encode", "-V", "v", "-o", "x.npy", input="a a\na\n")
    assert "rows of 1 to 2 ids make no matrix (try: nlpkit encode ... | nlpkit pad" in line
    line = run.fails(
        "vectorize", "--mode", "hash", "--buckets", "5", "-o", "x.npy", input="a a\na\n"
    )
    assert "lines of different length make no array (try:" in line
    line = run.fails("vectorize", "--mode", "one-hot", "-V", "v", "-o", "x.npy", input="a a\na\n")
    assert "lines of 1 to 2 tokens make no array (try: --maxlen" in line


def test_arrays_too_large_to_be_meant(run: Runner) -> None:
    line = run.fails("vectorize", "--buckets", "9" * 9, "-o", "x.npy", input="a\nb\nc\n")
    assert "too large (try: --sparse)" in line
    assert "would not fit in memory" in run.fails("pad", "--maxlen", "9" * 12, input="1\n")


def test_unknown_tokens_and_special_tokens_that_are_not_there(run: Runner) -> None:
    run.write("v", "a\t1\n")
    assert "v has no <unk> (try: --unk skip" in run.fails("encode", "-V", "v", input="a\n")
    line = run.fails("encode", "-V", "v", "--unk", "error", input="a x\n")
    assert "unknown token: 'x'" in line
    assert "has no <bos>" in run.fails("encode", "-V", "v", "--bos", input="a\n")
    assert "one word without spaces" in run.fails("vocab", "build", "--special", "a b", input="a\n")
    assert "no room for" in run.fails("vocab", "build", "--max-size", "1", input="a\n")
    assert "no room for 256 bytes" in run.fails("bpe", "train", "--vocab-size", "9", input="a\n")


@pytest.mark.parametrize(
    "command",
    [
        ["bpe", "train", "-o", "t.json", "--vocab-size"],
        ["bpe", "train", "-o", "t.json", "--min-frequency"],
        ["vectorize", "--sparse", "--buckets"],
    ],
)
def test_absurd_sizes_are_out_of_range(run: Runner, command: list[str]) -> None:
    for size in (10**9 * 3, 10**20):
        result = run(*command, str(size), input="a b\n")
        assert result.code == 2
        assert "should be less than or equal to" in result.err
        assert "Traceback" not in result.err


def test_special_tokens_and_patterns_are_text(run: Runner) -> None:
    for special in ("''", "$'\\xff'"):
        line = run.shell_fails(f"echo a | nlpkit bpe train -o t.json --special {special}")
        assert "a special token is some text in UTF-8" in line
    line = run.shell_fails("echo a | nlpkit tokenize -t regex --pattern $'\\xff'")
    assert "the pattern is not UTF-8" in line


def test_what_is_longer_than_any_word_is_cut_for_bpe(run: Runner) -> None:
    result = run("bpe", "train", "-o", "t.json", "--vocab-size", "300", input="." * 200_000)
    assert result.code == 0
    assert "warning: cut 781 times within what is longer than 256 characters\n" in result.err
    assert len(run.ok("bpe", "encode", "-m", "t.json", input="." * 200_000).split()) < 2000


def test_a_place_that_cannot_be_written_is_found_before_a_second_file_is(run: Runner) -> None:
    run.write("v.txt", "a 1 0\nb 0 1\n")
    run.write("pairs.tsv", "a\tb\t3\na\ta\t9\nb\tb\t8\n")
    evaluate = ["vectors", "evaluate", "similarity", "pairs.tsv", "-m", "v.txt", "--items", "items"]
    assert "is a directory" in run.fails(*evaluate, "-o", ".")
    assert "the name of the file to write is empty" in run.fails(*evaluate, "-o", "")
    assert not (run.folder / "items").exists()
    run.ok(*evaluate, "-o", "table")
    assert (run.folder / "items").read_text().count("\n") == 3


def test_ids_of_tokens_that_hold_line_ends(run: Runner) -> None:
    run.write("v", "a\\nb\t2\tescaped\na\\nb\t1\n")
    assert run.ok("decode", "-V", "v", input="0 1\n") == "a▁b a\\nb\n"
    assert run.ok("vocab", "merge", "v", "v") == "a\\nb\t4\tescaped\na\\nb\t2\n"


def test_files_that_are_no_models(run: Runner) -> None:
    assert "no such subword model: x.json" in run.fails("bpe", "encode", "-m", "x.json")
    run.write("x.json", "[]")
    assert "is not a tokenizer.json" in run.fails("bpe", "decode", "-m", "x.json")
    Subwords.train(["abab abab"] * 5, vocab_size=260).save(str(run.folder / "x.json"))
    made = json.loads((run.folder / "x.json").read_text(encoding="utf-8"))
    made["model"]["continuing_subword_prefix"] = "xxxx"
    run.write("x.json", json.dumps(made))
    assert "a merge does not have the prefix 'xxxx'" in run.fails("bpe", "encode", "-m", "x.json")
    assert "no such model: m.model" in run.fails("info", "m.model")
    assert "is not a model folder" in run.fails("info", ".")
    (run.folder / "m.model").mkdir()
    for text in ("{", '{"kind": "demo", "format_version": 99}'):
        run.write("m.model/config.json", text)
        run.fails("info", "m.model")
    run.write("m.model/config.json", '{"kind": "demo", "format_version": 1}')
    run.write("m.model/metrics.jsonl", "[1]\n")
    assert "metrics.jsonl is damaged" in run.fails("info", "m.model")


# --- archives, encodings ------------------------------------------------------------------------


def test_a_broken_archive(run: Runner) -> None:
    for ending in (".gz", ".bz2", ".xz", ".zst"):
        run.write(f"text{ending}", "not an archive")
        assert f"cannot decompress text{ending}" in run.fails("tokenize", f"text{ending}")


def test_encodings(run: Runner) -> None:
    run.write("latin.txt", "naïve\n".encode("latin-1"))
    assert run.ok("tokenize", "--encoding", "latin-1", "latin.txt") == "naïve\n"
    assert run.ok("tokenize", "--errors", "replace", "latin.txt") == "na � ve\n"
    assert run.ok("tokenize", "--errors", "ignore", "latin.txt") == "nave\n"
    run.write("wide.txt", "naïve 東京\n".encode("utf-16"))
    assert run.ok("tokenize", "--encoding", "utf-16", "wide.txt") == "naïve 東 京\n"
    assert "unknown encoding: utf-9" in run.fails("tokenize", "--encoding", "utf-9", "wide.txt")
    assert "BOM" in run.fails("tokenize", "--encoding", "utf-16", "latin.txt")


# --- usage --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "tokenize - -",
        "tokenize --offsets --format text",
        "tokenize --json --format lines",
        "pad --maxlen many",
        "pad --maxlen 0",
        "pad --json -o x.npy",
        "vectorize",
        "vectorize --mode hash -V v",
        "vectorize --buckets 5 -V v",
        "vectorize --buckets 5 --maxlen 3",
        "vectorize --buckets 5 --sparse -o x.npy",
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(run: Runner, command: str) -> None:
    run.write("v", "a\t1\n")
    run.fails(*command.split(), input="a\n", code=2)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("tokenise", "Did you mean 'tokenize'"),
        ("tokenize --lowr", "--lower"),
        ("tokenize --jobs -1", "--jobs"),
        ("tokenize --format xml", "--format"),
        ("encode", "--vocab"),
        ("vocab", "Commands:"),
        ("vocab merge", "VOCAB"),
        ("info", "MODEL"),
    ],
)
def test_wrong_usage_exits_with_2_and_says_what_is_right(
    run: Runner, command: str, says: str
) -> None:
    result = run(*command.split(), input="a\n")
    assert result.code == 2
    assert says in result.err
    assert result.out == ""


TRAINERS = {
    "word2vec": "word2vec train SAMPLES/world.txt --epochs 1",
    "names": "names train SAMPLES/names-en.txt --epochs 1",
    "gpt": "gpt train SAMPLES/tales.txt --max-iters 1",
    "tag": "tag train SAMPLES/tagged-test.conllu --epochs 1",
    "classify": "classify train SAMPLES/reviews.tsv --epochs 1",
}


@pytest.mark.parametrize("name", TRAINERS)
def test_a_model_that_does_not_fit_on_the_disk_leaves_nothing_behind(
    run: Runner, name: str
) -> None:
    command = TRAINERS[name].replace("SAMPLES", str(sample_folder()))
    line = run.shell_fails(f"ulimit -f 20; nlpkit {command} -q -o big.model")
    assert "File too large" in line


def test_others_may_read_a_model_as_the_umask_says(run: Runner) -> None:
    command = TRAINERS["names"].replace("SAMPLES", str(sample_folder()))
    assert run.shell(f"umask 027; nlpkit {command} -q -o n.model").code == 0
    modes = {path.name: path.stat().st_mode & 0o777 for path in (run.folder / "n.model").iterdir()}
    assert set(modes.values()) == {0o640}, modes
    assert (run.folder / "n.model").stat().st_mode & 0o777 == 0o750
