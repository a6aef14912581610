"""bpe, vocab, encode, decode, pad, vectorize and info, run as commands."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from command_runner import TEXT, Runner
from tokenizers import Tokenizer

from nlpkit.text.arrays import hashing

REVIEWS = """\
Never coming back!
horrible service
rude waitress
cold food
horrible food!
awesome
awesome services!
rocks
poor work
couldn't have done better
"""


# --- bpe ----------------------------------------------------------------------------------------


def test_bpe_train_writes_what_the_library_loads_with_the_same_ids(run: Runner) -> None:
    run.write("text.txt", TEXT * 5)
    result = run(
        *["bpe", "train", "text.txt", "-o", "t.json", "--vocab-size", "290"],
        *["--special", "<|user|>"],
    )
    assert result.code == 0
    assert result.out == ""
    assert "290 subwords" in result.err
    theirs = Tokenizer.from_file(str(run.folder / "t.json"))
    assert theirs.get_vocab_size() == 290
    assert theirs.token_to_id("<|endoftext|>") == 0
    assert theirs.token_to_id("<|user|>") == 1
    text = "the king<|user|>  東京\n\n\tsat\n"
    out = run.ok("bpe", "encode", "-m", "t.json", input=text)
    assert [list(map(int, line.split())) for line in out.splitlines()] == [
        theirs.encode(line).ids for line in text.splitlines()
    ]
    assert run.ok("bpe", "decode", "-m", "t.json", input=out) == text


def test_bpe_in_jsonl_and_in_several_jobs(run: Runner, made: Path) -> None:
    model = str(made / "tokenizer.json")
    run.write("big.txt", TEXT.encode() * 8_000)
    one = run.ok("bpe", "encode", "-m", model, "big.txt")
    assert run.ok("bpe", "encode", "-m", model, "big.txt", "-j", "2") == one
    out = run.ok("bpe", "encode", "-m", str(made), "--json", input="the king\n")
    record = json.loads(out)
    assert "".join(record["tokens"]) == "theĠking"
    assert run.ok("bpe", "decode", "-m", model, input=out) == "the king\n"


def test_bpe_says_when_there_are_fewer_pairs_than_asked_for(run: Runner) -> None:
    result = run("bpe", "train", "-o", "t.json", "--vocab-size", "5000", input="low lower\n" * 5)
    assert result.code == 0
    assert "warning: the text has pairs for" in result.err
    assert run("bpe", "train", "-q", "-o", "t.json", input="low lower\n" * 5).err == ""


# --- vocab, encode, decode ----------------------------------------------------------------------


def test_vocab_build_counts_specials_first_then_by_count_then_by_token(run: Runner) -> None:
    result = run("vocab", "build", "--special", "<bos>", input="b a b\na c\n")
    assert result.out == "<pad>\t0\n<unk>\t0\n<bos>\t0\na\t2\nb\t2\nc\t1\n"
    assert result.err == "6 entries of 3 types cover 100.0% of 5 tokens\n"


def test_vocab_build_limits(run: Runner) -> None:
    text = "a a a b b c\n"
    assert run.ok("vocab", "build", "--max-size", "3", input=text) == "<pad>\t0\n<unk>\t0\na\t3\n"
    assert run.ok("vocab", "build", "--no-specials", "--min-count", "2", input=text) == (
        "a\t3\nb\t2\n"
    )


def test_vocab_build_from_raw_text_in_any_number_of_jobs(run: Runner) -> None:
    run.write("big.txt", TEXT.encode() * 8_000)
    options = ["-t", "word", "--lower", "big.txt", "-q"]
    one = run.ok("vocab", "build", *options)
    assert run.ok("vocab", "build", *options, "-j", "2") == one
    assert "the\t40000\n" in one
    assert "n't\t8000\n" in one


def test_vocab_merge_is_counting_together(run: Runner) -> None:
    run.write("a.txt", "to be or\n")
    run.write("b.txt", "not to be\n")
    for name in ("a", "b"):
        run.ok("vocab", "build", f"{name}.txt", "-o", f"{name}.vocab")
    assert run.ok("vocab", "merge", "a.vocab", "b.vocab") == run.ok(
        "vocab", "build", "a.txt", "b.txt"
    )


def test_vocab_stats(run: Runner) -> None:
    run.ok("vocab", "build", "-o", "v", input="a " * 90 + "b " * 8 + "c d\n")
    run.write("heldout.txt", "A b x y\n")
    out = run.ok(
        *["vocab", "stats", "v", "--json", "--plot", "zipf.svg"],
        *["--heldout", "heldout.txt", "--lower"],
    )
    assert json.loads(out) == {
        **{"entries": 6, "specials": ["<pad>", "<unk>"], "types": 4, "tokens": 100, "hapaxes": 2},
        **{"coverage": {"4": 1.0}, "heldout_tokens": 4, "heldout_unknown": 2},
        "heldout_unknown_rate": 0.5,
    }
    assert run.files()["zipf.svg"].startswith(b"<?xml")
    shown = run.ok("vocab", "stats", "v")
    assert "types\t4\n" in shown
    assert "hapaxes\t2\t50.0% of types\n" in shown


def test_encode_and_decode(run: Runner) -> None:
    run.ok("vocab", "build", "--special", "<bos>", "--special", "<eos>", "-o", "v", input="a b a\n")
    result = run("encode", "-V", "v", input="b x a\n\nb\n")
    assert result.out == "5 1 4\n\n5\n"
    assert result.err == "25.00% unknown: 1 of 4 tokens\n"
    assert run("encode", "-V", "v", "--quiet", input="x\n").err == ""
    assert run.ok("encode", "-V", "v", "--unk", "skip", input="b x a\n") == "5 4\n"
    out = run.ok("encode", "-V", "v", "--bos", "--eos", "--json", input="a b\n")
    assert json.loads(out) == {"ids": [2, 4, 5, 3]}
    assert run.ok("decode", "-V", "v", input=out) == "<bos> a b <eos>\n"
    assert run.ok("decode", "-V", "v", "--skip-special", input="2 4 0 0\n[5]\n\n") == "a\nb\n\n"
    run.ok("encode", "-V", "v", "-o", "ids.npy", input="a b\nb a\n")
    assert np.load(run.folder / "ids.npy").tolist() == [[4, 5], [5, 4]]


# --- pad, vectorize -----------------------------------------------------------------------------


def test_pad_to_text_jsonl_and_arrays(run: Runner) -> None:
    rows = "1\n2 3\n\n4 5 6\n"
    assert run.ok("pad", "--maxlen", "2", input=rows) == "0 1\n2 3\n0 0\n5 6\n"
    assert run.ok(
        *["pad", "--maxlen", "2", "--padding", "post", "--truncating", "post", "--value", "9"],
        input=rows,
    ) == ("1 9\n2 3\n9 9\n4 5\n")
    records = [json.loads(line) for line in run.ok("pad", "--json", input=rows).splitlines()]
    assert records[1] == {"ids": [0, 2, 3], "length": 2}
    run.ok("pad", "--maxlen", "2", "--padding", "post", "-o", "ids.npz", input=rows)
    with np.load(run.folder / "ids.npz") as arrays:
        assert arrays["ids"].tolist() == [[1, 0], [2, 3], [0, 0], [5, 6]]
        assert arrays["lengths"].tolist() == [1, 2, 0, 2]
        assert arrays["mask"].tolist() == [[True, False], [True, True], [False] * 2, [True] * 2]


def test_the_lecture_pipeline_makes_ten_padded_rows_of_bucket_numbers(run: Runner) -> None:
    line = (
        """nlpkit tokenize -t regex --pattern "[\\w']+" --lower """
        "| nlpkit vectorize --mode hash --buckets 50 "
        "| nlpkit pad --maxlen 4 --padding post -o x.npy"
    )
    result = run.shell(line, input=REVIEWS)
    assert (result.code, result.out, result.err) == (0, "", "")
    matrix = np.load(run.folder / "x.npy", allow_pickle=False)
    assert matrix.shape == (10, 4)
    assert np.issubdtype(matrix.dtype, np.integer)
    words = [line.strip("!").lower().split() for line in REVIEWS.splitlines()]
    for row, review in zip(matrix.tolist(), words, strict=True):
        assert row == hashing(review, 50) + [0] * (4 - len(review))
    assert matrix.max() <= 50
    assert matrix[3, 1] == matrix[4, 1] != 0  # food is food


def test_vectorize_bags_of_words(run: Runner) -> None:
    run.write("v", "<unk>\t0\na\t2\nb\t1\n")
    text = "a b a\n\nx\n"
    expected = {
        "count": "0 2 1\n0 0 0\n1 0 0\n",
        "binary": "0 1 1\n0 0 0\n1 0 0\n",
        "freq": "0 0.666667 0.333333\n0 0 0\n1 0 0\n",
    }
    for mode, rows in expected.items():
        assert run.ok("vectorize", "--mode", mode, "-V", "v", input=text) == rows
    assert run.ok("vectorize", "-V", "v", "--sparse", input=text) == "1:2 2:1\n\n0:1\n"
    wide = run.fails("vectorize", "--mode", "binary", "--buckets", "1000000000", input=text)
    assert "lines of 1,000,000,000 numbers each (try: --sparse" in wide
    run.ok("vectorize", "--mode", "tfidf", "-V", "v", "--sparse", "-o", "x.npz", input=text)
    matrix = scipy.sparse.load_npz(run.folder / "x.npz")
    assert matrix.shape == (3, 3)
    assert matrix[0, 1] == pytest.approx((1 + np.log(2)) * np.log(1 + 3 / 2))
    run.ok("vectorize", "--buckets", "8", "-o", "y.npy", input=text)
    dense = np.load(run.folder / "y.npy")
    assert dense.shape == (3, 8)
    assert dense.sum() == 4


def test_vectorize_keeps_records(run: Runner) -> None:
    run.write("v", "<unk>\t0\na\t2\nb\t1\n")
    record = '{"id": 7, "tokens": ["a", "b", "a"], "ids": [9]}\n'
    for flags, made in (
        (["-V", "v"], {"vector": [0, 2, 1]}),
        (["-V", "v", "--sparse"], {"vector": {"1": 2, "2": 1}}),
        (["-V", "v", "--mode", "one-hot"], {"vectors": [[0, 1, 0], [0, 0, 1], [0, 1, 0]]}),
        (["-V", "v", "--mode", "one-hot", "--sparse", "--maxlen", "1"], {"vectors": [{"1": 1}]}),
        (["--mode", "hash", "--buckets", "1"], {"ids": [1, 1, 1]}),
    ):
        found = json.loads(run.ok("vectorize", *flags, "--json", input=record))
        assert found == {"id": 7, "tokens": ["a", "b", "a"], "ids": [9], **made}
    refused = run.fails("vectorize", "-V", "v", "--json", "-o", "x.npy", input=record, code=2)
    assert "an array file takes no --format" in refused


def test_vectorize_one_hot(run: Runner) -> None:
    run.write("v", "<pad>\t0\n<unk>\t0\na\t2\nb\t1\n")
    options = ["vectorize", "--mode", "one-hot", "-V", "v"]
    assert run.ok(*options, input="b a\nx\n") == "0 0 0 1\n0 0 1 0\n\n0 1 0 0\n\n"
    assert run.ok(*options, "--sparse", input="b a\n") == "3:1\n2:1\n\n"
    run.ok(*options, "--maxlen", "2", "-o", "x.npy", input="b a b\nx\n")
    array = np.load(run.folder / "x.npy")
    assert array.shape == (2, 2, 4)
    assert array.argmax(axis=-1).tolist() == [[3, 2], [1, 0]]
    run.ok(*options, "--sparse", "-o", "x.npz", input="b a b\nx\n")
    assert scipy.sparse.load_npz(run.folder / "x.npz").toarray().argmax(axis=1).tolist() == [
        *[3, 2, 3, 1],
    ]


# --- info ---------------------------------------------------------------------------------------


def test_info_shows_what_a_model_is(run: Runner, made: Path) -> None:
    out = run.ok("info", str(made / "demo.model"))
    assert out.startswith("demo model, ")
    assert "  dim   8\n  rate  0.5\n" in out
    assert "final metrics\n  loss  0.25\n" in out
    assert "config.json" in out
    assert "loss over training (%)" in out
    record = json.loads(run.ok("info", str(made / "demo.model"), "--json"))
    assert record["kind"] == "demo"
    assert record["seed"] == 7
    assert record["bytes"] == sum(record["files"].values())
    assert len(record["curve"]) == 8
