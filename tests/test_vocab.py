"""Vocab: order, sizes, ids and the file, as promised."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlpkit.errors import NlpkitError
from nlpkit.vocab import Vocab

# any text between spaces can be a token
words = st.text(min_size=1, max_size=6).map("".join).filter(lambda text: text.split() == [text])
counts_of_words = st.dictionaries(words, st.integers(1, 20), max_size=12)


def test_specials_come_first_then_the_most_frequent_then_by_token() -> None:
    vocab = Vocab.from_counts({"b": 2, "a": 2, "c": 9, "Z": 2, "é": 2, "d": 1})
    assert vocab.tokens == ["<pad>", "<unk>", "c", "Z", "a", "b", "é", "d"]
    assert vocab.counts == [0, 0, 9, 2, 2, 2, 2, 1]
    assert vocab.ids["<pad>"] == 0
    assert vocab.ids["<unk>"] == 1


def test_the_order_of_counting_does_not_matter() -> None:
    text = "to be or not to be that is the question".split()
    assert (
        Vocab.from_counts(Counter(text)).dumps() == Vocab.from_counts(Counter(text[::-1])).dumps()
    )


def test_more_specials_follow_in_the_order_given_each_once() -> None:
    vocab = Vocab.from_counts({"a": 1}, specials=["<pad>", "<unk>", "<eos>", "<bos>", "<eos>"])
    assert vocab.tokens == ["<pad>", "<unk>", "<eos>", "<bos>", "a"]
    assert vocab.specials == ["<pad>", "<unk>", "<eos>", "<bos>"]


def test_a_special_that_also_occurs_in_the_text_stands_once() -> None:
    vocab = Vocab.from_counts({"<unk>": 5, "a": 1})
    assert vocab.tokens == ["<pad>", "<unk>", "a"]
    assert vocab.counts == [0, 0, 1]


@given(counts_of_words, st.integers(2, 10))
@settings(max_examples=50, deadline=None)
def test_max_size_limits_the_number_of_entries_specials_included(
    counts: dict[str, int], limit: int
) -> None:
    whole = Vocab.from_counts(counts)
    vocab = Vocab.from_counts(counts, max_size=limit)
    assert len(vocab) == min(limit, len(whole))
    assert vocab.tokens == whole.tokens[:limit]
    assert vocab.dumps().count("\n") == len(vocab)


def test_max_size_without_room_for_the_specials_is_an_error() -> None:
    assert Vocab.from_counts({"a": 1}, max_size=2).tokens == ["<pad>", "<unk>"]
    with pytest.raises(NlpkitError, match="no room for 2 special tokens"):
        Vocab.from_counts({"a": 1}, max_size=1)


def test_min_count_keeps_what_occurs_that_often() -> None:
    assert Vocab.from_counts({"a": 3, "b": 2, "c": 1}, specials=(), min_count=2).tokens == [
        "a",
        "b",
    ]


def test_encode_and_decode() -> None:
    vocab = Vocab.from_counts({"a": 2, "b": 1})
    assert vocab.encode(["b", "never", "a"]) == [3, 1, 2]
    assert vocab.decode([3, 1, 2, 0]) == ["b", "<unk>", "a", "<pad>"]
    assert vocab.encode([]) == vocab.decode([]) == []
    assert "a" in vocab
    assert list(vocab)[-1] == "b"


def test_unknown_tokens_are_an_error_in_a_vocabulary_without_unk() -> None:
    with pytest.raises(NlpkitError, match="unknown token 'b'"):
        Vocab.from_counts({"a": 1}, specials=()).encode(["a", "b"])


@pytest.mark.parametrize("index", [-1, 3, 10**30])
def test_an_id_outside_the_vocabulary_is_an_error(index: int) -> None:
    with pytest.raises(NlpkitError, match=f"id {index} is outside the vocabulary of 3 tokens"):
        Vocab.from_counts({"a": 1}).decode([0, index])


@given(counts_of_words)
@settings(max_examples=50, deadline=None)
def test_what_is_encoded_decodes_to_itself(counts: dict[str, int]) -> None:
    vocab = Vocab.from_counts(counts)
    tokens = list(counts)
    assert vocab.decode(vocab.encode(tokens)) == tokens


@given(st.lists(st.lists(words, max_size=10), min_size=1, max_size=4))
@settings(max_examples=50, deadline=None)
def test_merging_shards_is_counting_them_together(shards: list[list[str]]) -> None:
    vocabs = [Vocab.from_counts(Counter(shard)) for shard in shards]
    together = Vocab.from_counts(Counter(token for shard in shards for token in shard))
    assert vocabs[0].merge(*vocabs[1:]).dumps() == together.dumps()


def test_merging_keeps_every_special_first() -> None:
    left = Vocab.from_counts({"a": 1, "x": 1}, specials=["<pad>", "<bos>"])
    right = Vocab.from_counts({"<bos>": 3, "b": 2, "x": 2}, specials=["<pad>", "<unk>"])
    merged = left.merge(right)
    assert merged.tokens == ["<pad>", "<bos>", "<unk>", "x", "b", "a"]
    assert merged.counts == [0, 0, 0, 3, 2, 1]


@given(counts_of_words)
@settings(max_examples=50, deadline=None)
def test_the_file_gives_the_same_vocabulary_back(
    tmp_path_factory: pytest.TempPathFactory, counts: dict[str, int]
) -> None:
    path = str(tmp_path_factory.getbasetemp() / "any.vocab")
    vocab = Vocab.from_counts(counts)
    vocab.save(path)
    loaded = Vocab.load(path)
    assert loaded.tokens == vocab.tokens
    assert loaded.counts == vocab.counts
    assert loaded.specials == vocab.specials


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\t1\nb\n", "line 2: expected token<TAB>count, found 'b'"),
        ("a\t1\n\nb\t1\n", "line 2: expected token<TAB>count"),
        ("a 1\n", "line 1: expected token<TAB>count"),
        ("\t1\n", "line 1: expected token<TAB>count"),
        ("a\t2\nb\t1\na\t1\n", "line 3: 'a' was already on line 1"),
        ("a\t-1\n", "line 1: the count must be a number from 0 on, not '-1'"),
        ("a\t1.5\n", "line 1: the count must be a number"),
        ("a\t\n", "line 1: the count must be a number"),
        ("a\t٣\n", "line 1: the count must be a number"),
        ("a\t1\nb\t" + "9" * 5000 + "\n", "line 2: the count must be a number"),
        ("", "an empty vocabulary"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.vocab"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(NlpkitError) as error:
        Vocab.load(str(path))
    assert error.value.message.startswith(f"{path}: {message}")
    assert len(str(error.value)) < 300


def test_windows_line_ends_and_compressed_files_are_read(tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "a.vocab.gz"
    path.write_bytes(gzip.compress(b"a\t2\r\nb\t1\r\n"))
    assert Vocab.load(str(path)).counts == [2, 1]


def test_the_same_token_twice_is_refused_in_python_too() -> None:
    with pytest.raises(NlpkitError, match="duplicate token in vocabulary: 'a'"):
        Vocab(["a", "b", "a"], [1, 1, 1])
