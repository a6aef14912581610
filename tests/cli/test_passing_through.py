"""Records keep their other keys in commands that answer by record; reports come in every format."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from command_runner import Runner
from test_records import call

from nlpkit.vectors import spacy

TEXT = "the king sat\nthe queen sat\nthe old king read\n" * 4
RECORD = {"id": 7, "text": "the king sat", "tags": ["a"]}
VECTORS = "4 2\nking 1 0\nqueen 0.9 0.1\nman 0.7 0.7\nwoman 0.6 0.8\n"


def pack_map(pairs: Iterable[tuple[int, int]]) -> bytes:
    """A map of numbers as MessagePack, all with eight bytes, as spaCy writes key2row."""
    listed = list(pairs)
    head = b"\xdf" + len(listed).to_bytes(4, "big")
    return head + b"".join(
        b"\xcf" + key.to_bytes(8, "big") + b"\xcf" + row.to_bytes(8, "big") for key, row in listed
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An n-gram model, a classifier, names and vectors, all tiny."""
    folder = tmp_path_factory.mktemp("passing")
    (folder / "text.txt").write_text(TEXT)
    (folder / "vectors.txt").write_text(VECTORS)
    (folder / "labelled.tsv").write_text("r\tthe king sat\nn\tthe dog ran\n" * 8)
    (folder / "names.txt").write_text("Anna\nHanna\nAnne\nJohanna\n" * 3)
    lm = ["--model", "ngram", "--order", "2", "-t", "word", "-q"]
    call("lm", "train", str(folder / "text.txt"), "-o", str(folder / "lm"), *lm)
    call("names", "train", str(folder / "names.txt"), "-o", str(folder / "names"), "-q",
         "--model", "ngram")  # fmt: skip
    call("classify", "train", str(folder / "labelled.tsv"), "-o", str(folder / "labels"), "-q",
         "--epochs", "1")  # fmt: skip
    return folder


@pytest.mark.parametrize(
    ("command", "made"),
    [
        (["lm", "score", "lm", "--lines", "--json", "-q"], "perplexity"),
        (["lm", "next", "lm", "--json", "-n", "2"], "next"),
        (["lm", "sample", "lm", "-", "--json", "-n", "3", "-q"], "finish"),
        (["classify", "predict", "labels", "--json", "-q"], "labels"),
        (["classify", "explain", "labels", "--json"], "words"),
        (["vectors", "embed", "-m", "vectors.txt", "--json", "-q"], "vector"),
        (["vectors", "expand", "-m", "vectors.txt", "--json", "-q"], "added"),
        (["vectors", "nearest", "-m", "vectors.txt", "--json", "-q"], "note"),
        (["vectors", "get", "-m", "vectors.txt", "--json", "-q"], "vector"),
        (["vectors", "search", "-", "king", "-m", "vectors.txt", "--json", "-q"], "score"),
    ],
)
def test_other_keys_of_a_record_come_out_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], made: str
) -> None:
    monkeypatch.chdir(folder)
    for line in call(*command, input=json.dumps(RECORD) + "\n").splitlines():
        found = json.loads(line)
        assert (found["id"], found["tags"]) == (7, ["a"])
        assert made in found


def test_prompts_and_questions_come_from_a_column_of_a_table(folder: Path, run: Runner) -> None:
    run.write("t.csv", 'id,body\n7,"the king"\n')
    for command in (f"lm sample {folder}/lm - -n 2", f"lm next {folder}/lm -n 1",
                    f"vectors expand -m {folder}/vectors.txt"):  # fmt: skip
        done = run.shell(f"cat t.csv | nlpkit {command} --key body --json -q")
        record = json.loads(done.out.splitlines()[0])
        assert (record["id"], record["body"]) == ("7", "the king")


def test_explanations_leave_gold_labels_and_empty_lines_out(folder: Path) -> None:
    lines = "__label__r the king sat\n\n"
    found = call("classify", "explain", str(folder / "labels"), "--json", input=lines).splitlines()
    assert [json.loads(line)["text"] for line in found] == ["the king sat"]


def test_names_and_a_real_pipe_of_records(folder: Path, run: Runner) -> None:
    run.write("names.jsonl", '{"id": 1, "name": "Anna"}\n{"id": 2, "name": "Hanne"}\n')
    names = run.shell(f"cat names.jsonl | nlpkit names score {folder}/names --json -q")
    assert [json.loads(line)["id"] for line in names.out.splitlines()] == [1, 2]
    line = f"nlpkit lm score {folder}/lm --lines --json -q | nlpkit tokenize -q --json"
    record = json.loads(run.shell(line, input=json.dumps(RECORD) + "\n").out)
    assert record["id"] == 7
    assert record["tokens"] == ["the", "king", "sat"]
    assert record["perplexity"] > 1


def test_pairs_to_compare_are_lines_or_records(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.jsonl").write_text('{"id": "x", "first": "the _", "second": "old _"}\n')
    (tmp_path / "pairs.tsv").write_text("the _\told _\n")
    ask = ("lm", "compare", str(folder / "lm"), "-n", "2", "--json", "--pairs")
    records = [json.loads(line) for line in call(*ask, str(tmp_path / "pairs.jsonl")).splitlines()]
    plain = [json.loads(line) for line in call(*ask, str(tmp_path / "pairs.tsv")).splitlines()]
    assert records == [{"id": "x", **row} for row in plain]


def test_items_of_an_evaluation_are_records_in_and_out(folder: Path, run: Runner) -> None:
    model = str(folder / "vectors.txt")
    run.write("q.jsonl", '{"a": "man", "b": "king", "c": "woman", "d": "queen", "id": 5}\n')
    ask = ("vectors", "evaluate", "analogies", "q.jsonl", "-m", model, "-q")
    total = [json.loads(line) for line in run.ok(*ask, "--json").splitlines()][-1]
    assert (total["correct"], total["questions"]) == (1, 1)
    run.ok(*ask, "--items", "items.jsonl.gz")
    (item,) = map(json.loads, run.shell("zcat items.jsonl.gz").out.splitlines())
    assert (item["id"], item["answer"], item["right"]) == (5, "queen", True)
    pairs = [("king", "queen", 9), ("king", "woman", 2), ("man", "woman", 8), ("man", "ox", 1)]
    lines = [json.dumps({"word1": a, "word2": b, "score": c, "id": a + b}) for a, b, c in pairs]
    run.write("p.jsonl", "".join(line + "\n" for line in lines))
    ask = ("vectors", "evaluate", "similarity", "p.jsonl", "-m", model, "-q", "--items", "-")
    *items, _ = run.ok(*ask).splitlines()
    found = [json.loads(line) for line in items]
    assert [one["id"] for one in found] == ["kingqueen", "kingwoman", "manwoman", "manox"]
    assert found[0]["cosine"] == pytest.approx(0.9939, abs=1e-4)
    assert found[-1]["cosine"] is None
    bad = run.write("bad.jsonl", '{"a": "x"}\n')
    assert "keys: a, b, c, d" in run.fails(
        *("vectors evaluate analogies".split()), bad, "-m", model
    )


def test_a_report_in_every_format(folder: Path, tmp_path: Path) -> None:
    model, test = str(folder / "labels"), str(folder / "labelled.tsv")
    ask = ("classify", "evaluate", model, test, "--confusion", "-q", "--format")
    record = json.loads(call(*ask, "jsonl"))
    sections = call(*ask, "tsv").split("\n\n")
    assert [section.split("\n")[0].split("\t")[0] for section in sections] == [
        "texts",
        "label",
        "right \\ predicted",
    ]
    facts = dict(line.split("\t")[:2] for line in sections[0].splitlines())
    assert facts["accuracy"] == f"{100 * record['accuracy']:.2f}%"
    assert "least sure to surest" in sections[0]  # what the bars are
    cells = list(csv.reader(io.StringIO(call(*ask, "csv", "--header"))))
    assert cells[0] == ["measure", "value", "note"]
    assert ["label", "precision", "recall", "F1", "count"] in cells
    assert "| label | precision | recall | F1 | count |\n| --- |" in call(*ask, "markdown")
    drawn = call(*ask, "table").splitlines()
    assert drawn[2].split() == ["texts", "16"]
    assert max(map(len, drawn)) <= 80


def test_statistics_of_a_vocabulary_and_of_vectors_in_every_format(
    folder: Path, tmp_path: Path
) -> None:
    vocab = str(tmp_path / "v.vocab")
    call("vocab", "build", "-q", "-o", vocab, str(folder / "text.txt"))
    for ask, key in ((("vocab", "stats", vocab), "types"),
                     (("vectors", "info", str(folder / "vectors.txt")), "words"),
                     (("lm", "score", str(folder / "lm"), str(folder / "text.txt"), "-q"),
                      "perplexity")):  # fmt: skip
        record = json.loads(call(*ask, "--json"))
        assert f"{key}\t{record[key]}\n" in call(*ask, "--format", "tsv")
        assert f"| {key} | {record[key]} |" in call(*ask, "--format", "markdown")
        assert any(
            line.split()[:2] == [key, str(record[key])]
            for line in call(*ask, "--format", "table").splitlines()
        )


# --- files of rows ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "edges",
    [
        "a\tb\t2\nb\tc\t1\n",
        "a,b,2\nb,c,1\n",
        "id,source,target,weight\n1,a,b,2\n2,b,c,1\n",
        "source\ttarget\tweight\na\tb\t2\nb\tc\t1\n",
        '{"source": "a", "target": "b", "weight": 2}\n'
        '{"source": "b", "target": "c", "weight": 1}\n',
    ],
)
def test_edges_of_every_form_give_the_same_walks(run: Runner, edges: str) -> None:
    walk = "nlpkit walks -q --walks 2 --length 4"
    plain = run.shell(f"printf 'a b 2\\nb c 1\\n' | {walk}").out
    assert len(plain.splitlines()) == 6
    assert run.shell(f"cat | {walk}", input=edges).out == plain
    assert run.shell(f"{walk} --json | nlpkit detokenize -q", input=edges).out == plain
    assert "no target" in run.shell(f"{walk}", input='{"source": "a"}\n').err


def test_rows_are_read_from_csv_wherever_they_are_read_from_json(run: Runner) -> None:
    run.write("q.csv", 'a,b,c,d,id\nman,king,woman,queen,"5,1"\n')
    model = run.write("v.txt", VECTORS)
    ask = ("vectors", "evaluate", "analogies", "q.csv", "-m", model, "-q", "--items", "-")
    assert json.loads(run.ok(*ask).splitlines()[0])["id"] == "5,1"
    run.write("pairs.csv", 'source,target\n"ab, c",x y\n' * 1 + '"cd",z\n' * 30)
    train = "-q --max-iters 2 --dim 8 --layers 1 --threads 1".split()
    run.ok("seq2seq", "train", "pairs.csv", "-o", "m", *train)
    scored = run.ok("seq2seq", "score", "m", "pairs.csv", "--json").splitlines()
    assert [json.loads(line)["source"] for line in scored[:2]] == ["ab, c", "cd"]
    run.write("prompts.csv", 'prompt,completion\n"Say a, b",ab\n' + "Say c,c\n" * 20)
    tiny = "-q --max-iters 2 --dim 8 --layers 1 --heads 1 --block-size 16 --threads 1".split()
    run.ok("gpt", "train", "--examples", "prompts.csv", "-o", "g", *tiny)
    report = json.loads(run.ok("gpt", "evaluate", "g", "prompts.csv", "-n", "2", "--json"))
    assert report["examples"] == 21


# --- spaCy's folders of vectors -----------------------------------------------------------------


def save_spacy(folder: Path, words: list[str], mode: str = "default") -> Path:
    """What ``nlp.vocab.to_disk`` writes; two words share a row, as in pruned vectors."""
    folder.mkdir(parents=True)
    rows = np.arange(2 * len(words), dtype=np.float32).reshape(-1, 2) + 1
    with open(folder / "vectors", "wb") as out:
        np.save(out, rows)
    places = {spacy.hash64(word): place for place, word in enumerate(words)}
    places[spacy.hash64("again")] = 0
    (folder / "key2row").write_bytes(pack_map(places.items()))
    (folder / "strings.json").write_text(json.dumps(["unused", *reversed(words), "again"]))
    (folder / "vectors.cfg").write_text(json.dumps({"mode": mode}))
    return folder


def test_vectors_of_a_spacy_pipeline_are_read(run: Runner) -> None:
    words = ["king", "naïve", "eightlong", "seven-c"]
    save_spacy(run.folder / "en" / "vocab", words)
    expected = "5 2\nking 1 2\nagain 1 2\nnaïve 3 4\neightlong 5 6\nseven-c 7 8\n"
    for place in ("en", "en/vocab"):
        run.ok("vectors", "convert", place, "-o", "v.txt", "--force", "-q")
        found = (run.folder / "v.txt").read_text(encoding="utf-8").splitlines()
        assert sorted(found) == sorted(expected.splitlines())
    assert json.loads(run.ok("vectors", "info", "en", "--json"))["kind"] == "spacy"


def test_a_spacy_folder_that_cannot_be_read_is_said_in_a_line(run: Runner) -> None:
    vocab = save_spacy(run.folder / "en" / "vocab", ["king"], mode="floret")
    ask = ("vectors", "get", "king", "-m", "en")
    assert "floret" in run.fails(*ask)
    (vocab / "vectors.cfg").unlink()
    (vocab / "key2row").write_bytes(pack_map([(1, 2)])[:-3])
    assert "key2row is damaged" in run.fails(*ask)
    (vocab / "key2row").write_bytes(pack_map([(spacy.hash64("king"), 99)]))
    assert "names rows that" in run.fails(*ask)
