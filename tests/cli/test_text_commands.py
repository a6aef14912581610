"""tokenize, detokenize and sentences, run as commands."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from command_runner import TEXT, Runner

from nlpkit.text.tokenizers import get_tokenizer


def test_tokenize_writes_a_line_of_tokens_for_a_line_of_text(run: Runner) -> None:
    out = run.ok("tokenize", input="Don't panic.\n\nIt's 5pm\n")
    assert out == "Do n't panic .\n\nIt 's 5 pm\n"


@pytest.mark.parametrize(
    ("options", "text", "expected"),
    [
        (["-t", "simple"], "Don't, it", "Don t it"),
        (["-t", "whitespace"], " a,  b ", "a, b"),
        (["-t", "char"], "a be\u0301", "a ▁ b e\u0301"),
        (["-t", "gpt2"], "Hi you  all", "Hi ▁you ▁ ▁all"),
        (["-t", "regex", "--pattern", r"[\w']+"], "Don't, it", "Don't it"),
        (["--hyphens", "keep"], "well-known", "well-known"),
        (["--lower"], "Hi THERE", "hi there"),
        (["--normalize", "nfkc"], "ﬁne", "fine"),
        (["--strip-accents"], "naïve", "naive"),
        (["--no-punct", "--min-length", "2"], "a cat, 42!", "cat 42"),
        (["--stopwords", "en"], "The cat and a dog", "cat dog"),
    ],
)
def test_tokenize_options(run: Runner, options: list[str], text: str, expected: str) -> None:
    assert run.ok("tokenize", *options, input=text) == expected + "\n"


def test_tokenize_formats(run: Runner) -> None:
    text = "Don't\n\n東京 👍🏽\n"
    assert run.ok("tokenize", "--format", "lines", input=text) == "Do\nn't\n東\n京\n👍🏽\n"
    records = [json.loads(line) for line in run.ok("tokenize", "--json", input=text).splitlines()]
    assert records == [{"tokens": ["Do", "n't"]}, {"tokens": []}, {"tokens": ["東", "京", "👍🏽"]}]
    assert run.ok("tokenize", "--offsets", input=text) == (
        "Do\t0\t2\t1\nn't\t2\t5\t1\n東\t0\t1\t3\n京\t1\t2\t3\n👍🏽\t3\t5\t3\n"
    )


def test_offsets_in_jsonl_point_into_the_text_beside_them(run: Runner) -> None:
    out = run.ok("tokenize", "--json", "--offsets", "--lower", input="İt's  naïve, Mr. X!\n" + TEXT)
    for line in out.splitlines():
        record = json.loads(line)
        assert [record["text"][a:b] for a, b in record["offsets"]] == record["tokens"]


def test_tokenize_reads_files_and_standard_input_in_order(run: Runner) -> None:
    run.write("a.txt", "one\n")
    run.write("b.txt.gz", gzip.compress(b"three\n"))
    out = run.ok("tokenize", "a.txt", "-", "b.txt.gz", "-o", "out.txt", input="two")
    assert out == ""
    assert run.files()["out.txt"] == b"one\ntwo\nthree\n"


def test_tokenize_with_a_subword_model(run: Runner, made: Path) -> None:
    out = run.ok("tokenize", "-t", str(made / "tokenizer.json"), input="the king 東京\n")
    assert out.replace(" ", "").replace("▁", " ") == "the king 東京\n"


def test_several_jobs_write_the_same_as_one(run: Runner, made: Path) -> None:
    # more than a block, so that there is work for both
    run.write("big.txt", TEXT.encode() * 8_000)
    one = run.ok("tokenize", "big.txt", "--json", "--offsets")
    assert run.ok("tokenize", "big.txt", "--json", "--offsets", "--jobs", "2") == one
    words = [get_tokenizer("word").tokens(line) for line in TEXT.splitlines()]
    assert [json.loads(line)["tokens"] for line in one.splitlines()[-4:]] == words


def test_tokenize_and_detokenize_give_the_text_back(run: Runner) -> None:
    text = "\"Don't pay,\" he said (twice).\nIt's 10% off: naïve 東京!\n"
    assert run.shell("nlpkit tokenize | nlpkit detokenize", input=text).out == text


def test_detokenize_characters(run: Runner) -> None:
    text = "a b  c\n\n東京\n"
    assert run.shell("nlpkit tokenize -t char | nlpkit detokenize --unit char", text).out == text


def test_sentences_one_a_line_with_empty_lines_kept(run: Runner) -> None:
    out = run.ok("sentences", input='Dr. Smith left. "Why?" I asked.\n\nNobody knew...\n')
    assert out == 'Dr. Smith left.\n"Why?" I asked.\n\nNobody knew...\n'


def test_sentences_over_wrapped_lines(run: Runner) -> None:
    text = "He left\nthe house. She\nstayed.\n\nThe\nend.\n"
    assert run.ok("sentences", "--wrapped", input=text) == (
        "He left the house.\nShe stayed.\n\nThe end.\n"
    )
    assert run.ok("sentences", input=text).startswith("He left\nthe house.\nShe\n")


def test_sentences_with_offsets(run: Runner) -> None:
    text = " One. Two!\n\nThree 東京.\n"
    assert run.ok("sentences", "--offsets", input=text) == (
        "One.\t1\t5\t1\nTwo!\t6\t10\t1\nThree 東京.\t0\t9\t2\n"
    )
    records = [json.loads(line) for line in run.ok("sentences", "--json", input=text).splitlines()]
    assert records[1] == {"text": "Two!", "paragraph": 1}
    out = run.ok("sentences", "--json", "--offsets", input=text)
    assert json.loads(out.splitlines()[2]) == {
        **{"text": "Three 東京.", "paragraph": 2, "start": 0, "end": 9},
    }


def test_sentences_feed_tokenize(run: Runner) -> None:
    out = run.shell("nlpkit sentences | nlpkit tokenize --no-punct", "He left. She's here.\n").out
    assert out == "He left\nShe 's here\n"
