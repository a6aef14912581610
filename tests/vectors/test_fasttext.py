"""fastText's .bin: a file built by hand from the format, and the real library where it is there."""

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlpkit.errors import NlpkitError
from nlpkit.vectors.formats import load
from nlpkit.vectors.ngrams import NgramVectors, bucket_rows, hash_ngram, ngrams

WORDS = [("the", 9), ("café", 4), ("</s>", 3)]
DIM, BUCKETS, SHORTEST, LONGEST = 4, 50, 2, 3


def matrix(buckets: int = BUCKETS) -> np.ndarray:
    return np.random.default_rng(0).random((len(WORDS) + buckets, DIM), np.float32)


def model(
    *,
    version: int = 12,
    buckets: int = BUCKETS,
    longest: int = LONGEST,
    quantised: bool = False,
    rows: int | None = None,
    size: int | None = None,
) -> bytes:
    inputs = matrix(buckets)
    arguments = [DIM, 5, 5, 1, 5, 1, 1, 2, buckets, SHORTEST, longest, 100]
    data = struct.pack("<ii12id", 793712314, version, *arguments, 1e-4)
    entries = [(word, count, 0) for word, count in WORDS] + [("__label__x", 1, 1)]
    size = len(entries) if size is None else size
    data += struct.pack("<iiiqq", size, len(WORDS), 1, 16, -1)
    for word, count, kind in entries:
        data += word.encode() + b"\0" + struct.pack("<qb", count, kind)
    data += struct.pack("<?qq", quantised, len(inputs) if rows is None else rows, DIM)
    return data + inputs.tobytes() + struct.pack("<?qq", False, 0, 0)


def load_bytes(tmp_path: Path, data: bytes):
    path = tmp_path / "m.bin"
    path.write_bytes(data)
    return load(str(path))


def test_a_word_is_the_mean_of_its_row_and_its_ngrams(tmp_path: Path) -> None:
    vectors = load_bytes(tmp_path, model())
    inputs = matrix()
    assert list(vectors.words) == ["the", "café", "</s>"]
    assert vectors.words.counts.tolist() == [9, 4, 3]
    grams = ["<c", "<ca", "ca", "caf", "af", "afé", "fé", "fé>", "é>"]
    rows = [1] + [len(WORDS) + hash_ngram(gram.encode()) % BUCKETS for gram in grams]
    np.testing.assert_allclose(vectors.get("café"), inputs[rows].mean(axis=0), rtol=1e-6)
    np.testing.assert_array_equal(vectors.get("</s>"), inputs[2])


def test_an_unknown_word_gets_the_mean_of_its_ngrams(tmp_path: Path) -> None:
    vectors = load_bytes(tmp_path, model())
    rows = [len(WORDS) + hash_ngram(g.encode()) % BUCKETS for g in ["<x", "<xy", "xy", "xy>", "y>"]]
    np.testing.assert_allclose(vectors.get("xy"), matrix()[rows].mean(axis=0), rtol=1e-6)
    assert "xy" not in vectors


def test_without_ngrams_a_word_is_its_row_and_others_are_unknown(tmp_path: Path) -> None:
    vectors = load_bytes(tmp_path, model(buckets=0, longest=0))
    np.testing.assert_array_equal(vectors.matrix, matrix(0))
    with pytest.raises(NlpkitError, match="unknown word"):
        vectors.get("xy")


# hashes known from fastText itself, bytes over 127 being negative there
def test_hashes_are_those_of_fasttext() -> None:
    assert [hash_ngram(g.encode()) % 1000 for g in ["<a", "as>", "<é", "é"]] == [750, 177, 627, 777]


def test_ngrams_are_over_characters_and_skip_lone_brackets() -> None:
    assert ngrams("é", 1, 4) == ["<é", "<é>", "é", "é>"]
    assert ngrams("", 1, 4) == ["<>"]


@given(
    st.lists(st.text("ab<é日🙂", max_size=6), min_size=1, max_size=8),
    st.integers(1, 9),
    st.integers(0, 3),
)
def test_the_ngrams_of_many_words_are_those_of_each(
    words: list[str], shortest: int, more: int
) -> None:
    subwords = NgramVectors(np.zeros((97, 1), np.float32), 97, shortest, shortest + more)
    rows, edges = bucket_rows(words, 97, shortest, shortest + more)
    for index, word in enumerate(words):
        assert sorted(rows[edges[index] : edges[index + 1]]) == sorted(subwords.rows(word))


def test_an_absurd_longest_ngram_costs_nothing(tmp_path: Path) -> None:
    vectors = load_bytes(tmp_path, model(longest=2**30))
    assert len(vectors.subwords.rows("abc")) == 10


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (model(version=99), "version 99"),
        (model(quantised=True), "contradict|cut short"),
        (model(rows=10**12), "contradict"),
        (model(size=2**31 - 1), "contradict"),
        (model()[:-400], "cut short|contradict"),
        (model()[:120], "cut short|contradict"),
        (model()[:20], "cut short"),
    ],
)
def test_a_bad_model_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(NlpkitError, match=message):
        load_bytes(tmp_path, data)


def test_fasttext_itself_gives_the_same_vectors(tmp_path: Path) -> None:
    fasttext = pytest.importorskip("fasttext", reason="fasttext is not installed")
    text = tmp_path / "text"
    text.write_text("the quick brown fox café naïve 日本語 a b\n" * 100, encoding="utf-8")
    trained = fasttext.train_unsupervised(
        str(text), dim=8, bucket=500, minn=1, maxn=4, minCount=1, epoch=1, thread=1
    )
    trained.save_model(str(tmp_path / "m.bin"))
    vectors = load(str(tmp_path / "m.bin"))
    for word in [*trained.words, "unseen", "日本"]:
        np.testing.assert_allclose(vectors.get(word), trained.get_word_vector(word), atol=1e-7)
