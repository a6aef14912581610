"""Any three commands in a row: hypothesis picks them from all that read and write texts or rows."""

from __future__ import annotations

import csv
import gzip
import io
import json
import shlex
import string
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import small_models
import zstandard
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from test_records import call
from tiny_berts import save_bert

from nlpkit.text.characters import Characters

WORDS = "the king sat in old house and queen read a book".split()
MASK = "[MASK]"
SPACE = "Ġ"  # in a piece of bpe; entities have places in words
LETTERS = string.ascii_letters + " []<>"
PROMPT, SOURCE = ("prompt", "text", "tokens"), ("source", "text", "tokens")
TEXT, TOKENS, IDS, PIECES = ("text", "tokens"), ("tokens", "text"), ("ids",), ("pieces",)
# what a new text or new tokens leave without a meaning
STALE = {"text": ("tokens", "ids", "pieces"), "tokens": ("ids", "pieces")}
Values = dict[str, list[str]]  # what a chain has come to, by kind: a line for each record


@dataclass(frozen=True)
class Step:
    """A command in a chain."""

    reads: tuple[str, ...]  # the first of these that there is
    makes: tuple[str, ...] = ()  # what takes the place of what was there; else it adds to a record
    lines: bool = True  # whether plain lines can be read, too
    last: bool = False  # adds a query or a word, which the next question would be
    fits: Callable[[str], bool] = lambda text: True  # which lines it can do something with


def short(text: str) -> bool:
    """Whether a name generator may know such a name."""
    return len(text) < 60 and set(text) <= set("".join(WORDS) + " ")


STEPS = {
    "tokenize": Step(TEXT, ("tokens",)),
    "detokenize": Step(TOKENS, ("text",)),
    "sentences": Step(TEXT, ("text",)),
    "bpe encode -m pieces.json": Step(TEXT, ("pieces", "tokens")),
    "bpe decode -m pieces.json": Step(PIECES, ("text",)),
    "encode -V words.vocab": Step(TOKENS, ("ids",)),
    "decode -V words.vocab": Step(IDS, ("tokens",)),
    "pad --maxlen 12 --padding post": Step(IDS, ("ids",)),
    "vectorize -V words.vocab": Step(TOKENS),
    "vectorize --mode hash --buckets 9": Step(TOKENS, ("ids",)),
    "names score names": Step(TEXT, fits=short),
    "lm score lm --lines": Step(TEXT),
    "lm next lm -n 1": Step(TEXT),
    "lm sample lm - -n 3": Step(PROMPT, ("prompt", "text", "tokens")),
    "gpt score gpt --lines": Step(TEXT),
    "gpt sample gpt - -n 3 --logit-bias ' =-1000'": Step(PROMPT, ("prompt", "text", "tokens")),
    "gpt answer gpt -n 3": Step(PROMPT, ("prompt",)),
    "bert fill tiny.bert -n 2": Step(TEXT, fits=lambda text: MASK in text, last=True),
    "bert score tiny.bert": Step(TEXT, fits=lambda text: MASK not in text),
    "bert embed tiny.bert": Step(TEXT),
    "bert search tiny.index - -n 1": Step(TEXT, ("text",), last=True),
    "elmo embed elmo --layer top": Step(TOKENS, ("tokens",)),
    "tag predict tag": Step(TOKENS, ("tokens",), fits=lambda text: SPACE not in text),
    "tag explain tag --word 1": Step(TEXT, last=True),
    "classify predict bow": Step(TEXT),
    "classify explain bow": Step(TEXT, last=True),
    "seq2seq predict s2s": Step(SOURCE, ("source", "text", "tokens")),
    "qa answer qa -": Step(TEXT, lines=False, last=True),
    "vectors nearest -m vectors -n 1": Step(TOKENS, last=True),
    "vectors analogy -m vectors -n 1": Step(TOKENS, last=True),
    "vectors similarity -m vectors": Step(TOKENS, last=True),
    "vectors odd-one-out -m vectors": Step(TOKENS, last=True),
    "vectors get -m vectors": Step(TOKENS, last=True),
    "vectors expand -m vectors": Step(TOKENS),
    "vectors embed -m vectors --method mean": Step(TOKENS),
}
FIRST = {name: step for name, step in STEPS.items() if not step.last}
# what reads texts, too, but answers for all of them at once: it can only come last
ENDS = {
    "vocab build": Step(TOKENS),
    "lm score lm": Step(TEXT),
    "lm score lm --tokens": Step(TEXT),
    "bert search tiny.bert king -": Step(TEXT),
    "bert senses tiny.bert king": Step(TEXT, fits=lambda text: "king" in text.split()),
    "qa answer qa who": Step(TEXT),
    "vectors search - king -m vectors --method mean": Step(TOKENS),
    "word2vec examples": Step(TOKENS),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, made: Path) -> Path:
    """A model of every kind that commands use, all tiny."""
    folder = tmp_path_factory.mktemp("chains")
    (folder / "text.txt").write_text("the old king sat the queen read a book\n" + "the king\n" * 5)
    (folder / "endless.txt").write_text("the old king sat the queen read a book " * 20)
    (folder / "pairs.tsv").write_text("abc\tcba\nacd\tdca\n" * 5)
    (folder / "names.txt").write_text("\n".join([" ".join(WORDS), *WORDS]))
    (folder / "words.vocab").write_bytes((made / "words.vocab").read_bytes())
    (folder / "pieces.json").write_bytes((made / "tokenizer.json").read_bytes())
    save_bert(folder, [" ".join(WORDS)])
    small_models.make_gpt(folder / "gpt", Characters.from_text(LETTERS))
    small_models.make_tagger(folder / "tag")
    small_models.make_classifier(folder / "bow", "bow")
    small_models.make_elmo(folder / "elmo")
    small_models.make_qa(folder / "qa")
    small_models.make_vectors(folder / "vectors")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        call("bert", "index", "tiny.bert", "text.txt", "-q", "-o", "tiny.index")
        ngrams = ["--model", "ngram", "--order", "2", "-q", "-o"]
        call("lm", "train", "endless.txt", "-t", "word", *ngrams, "lm")
        call("names", "train", "names.txt", *ngrams, "names")
        call("seq2seq", "train", "pairs.tsv", "-t", "char", "--max-iters", "1", "--dim", "16",
             "--layers", "1", "--start", "random", "-q", "-o", "s2s")  # fmt: skip
    return folder


def plain(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def write_input(texts: list[str], form: str) -> bytes:
    """Records with an id and a question, which have to come out in the end."""
    records = [
        {"id": str(number), "question": "who", "text": text} for number, text in enumerate(texts)
    ]
    if form == "jsonl":
        return "".join(json.dumps(record) + "\n" for record in records).encode()
    out = io.StringIO()
    writer = csv.writer(out, delimiter="," if form == "csv" else "\t", lineterminator="\n")
    writer.writerows([list(records[0]), *(list(record.values()) for record in records)])
    return out.getvalue().encode()


def as_line(value: Any) -> str:
    return value if isinstance(value, str) else " ".join(map(str, value))


def possible(values: Values, steps: dict[str, Step]) -> list[str]:
    """The commands that can go on from here; no line holds the token of a model that ends one."""
    return [
        name
        for name, step in steps.items()
        if (lines := read(step, values))
        and all("\n" not in line and step.fits(line) for line in lines)
    ]


def read(step: Step, values: Values) -> list[str]:
    """The lines that a command reads of a record; none where there is nothing for it."""
    return next((values[kind] for kind in step.reads if kind in values), [])


def answers(*arguments: str, input: bytes = b"") -> list[dict[str, Any]]:
    return [json.loads(line) for line in call(*arguments, "--json", "-q", input=input).splitlines()]


def check_step(name: str, values: Values, records: list[dict[str, Any]]) -> Values:
    """What was made of records is what is made of lines, and the rest of a record is left alone."""
    step = STEPS[name]
    if not step.lines:
        return values
    now = {kind: lines for kind, lines in values.items() if kind not in step.makes}
    expected = answers(*shlex.split(name), input=plain(read(step, values)))
    for kind in step.makes:
        key = "ids" if kind == "pieces" else kind
        for stale in STALE.get(kind, ()):
            now = {other: lines for other, lines in now.items() if other != stale}
    for kind in step.makes:
        key = "ids" if kind == "pieces" else kind
        now[kind] = [as_line(row[key]) for row in expected]
    for record, row, line in zip(records, expected, read(step, values), strict=True):
        if isinstance(row.get("tokens"), int) and "tokens" in now:
            row["token_count"] = row.pop("tokens")  # a count does not take their place
        if row.get("text") == line and "text" not in step.makes:
            del row["text"]  # nor what was read, that of the text
        assert row.items() <= record.items()
    for kind in ("text", "tokens", "ids"):
        lines = now.get(kind, now.get("pieces") if kind == "ids" else None)
        if lines is not None:
            assert [as_line(record[kind]) for record in records] == lines, (name, kind)
    return now


def go_on(name: str, values: Values, source: bytes, *flags: str) -> tuple[Values, bytes]:
    """One more command over records: what there is then, and the records."""
    written = call(*shlex.split(name), "--json", "-q", *flags, input=source)
    records = [json.loads(line) for line in written.splitlines()]
    ids = [str(number) for number in range(len(values["text"]))]
    assert [record["id"] for record in records] == ids, name
    assert {record["question"] for record in records} == {"who"}, name
    return check_step(name, values, records), written.encode()


def check_end(name: str, values: Values, source: bytes) -> None:
    """What is said of records as a whole is what is said of their lines."""
    arguments = (*shlex.split(name), "-q")
    assert call(*arguments, input=source) == call(*arguments, input=plain(read(ENDS[name], values)))


@settings(
    max_examples=20,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # a chain is short as it is
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    data=st.data(),
    texts=st.lists(
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join),
        min_size=1,
        max_size=3,
    ),
    form=st.sampled_from(["jsonl", "csv", "tsv"]),
    pack=st.sampled_from([bytes, gzip.compress, zstandard.ZstdCompressor().compress]),
)
def test_any_three_commands_say_of_records_what_they_say_of_lines_and_keep_other_keys(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    data: st.DataObject,
    texts: list[str],
    form: str,
    pack: Callable[[bytes], bytes],
) -> None:
    monkeypatch.chdir(folder)
    if data.draw(st.booleans(), "a word masked"):
        texts = [f"{text} {MASK}" for text in texts]
    source, values = write_input(texts, form), {"text": texts}
    flags = ["--input", form]
    for _ in range(2):
        name = data.draw(st.sampled_from(possible(values, FIRST)), "command")
        values, source = go_on(name, values, pack(source), *flags)
        flags = []
    name = data.draw(st.sampled_from(possible(values, {**STEPS, **ENDS})), "command")
    if name in ENDS:
        check_end(name, values, source)
    else:
        go_on(name, values, source)
