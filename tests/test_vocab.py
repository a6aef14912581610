"""Vocab: order, sizes, ids and the file, as promised."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlpkit.errors import NlpkitError
from nlpkit.text.vocab import Vocab, dump_words, parse_words

# any text between spaces can be a token
words = st.text(min_size=1, max_size=6).map("".join).filter(lambda text: text.split() == [text])
# and any string at all, half a surrogate pair and nothing included
strings = st.text(st.characters(codec=None) | st.sampled_from("\t\n\r\\\ud83d\ude00\ufeffnu"))
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


@given(st.lists(strings, min_size=1, max_size=8, unique=True))
@settings(max_examples=200, deadline=None)
def test_any_distinct_strings_come_back_from_the_file(
    tmp_path_factory: pytest.TempPathFactory, tokens: list[str]
) -> None:
    path = str(tmp_path_factory.getbasetemp() / "strings.vocab")
    vocab = Vocab(tokens, range(len(tokens)))
    vocab.save(path)
    assert vocab.dumps().count("\n") == len(tokens)
    assert all(line.count("\t") < 3 for line in vocab.dumps().split("\n"))
    assert Vocab.load(path).tokens == tokens
    assert Vocab.load(path).counts == vocab.counts


@given(st.lists(strings, max_size=8))
@settings(max_examples=100, deadline=None)
def test_any_words_come_back_from_lines(words: list[str]) -> None:
    lines = dump_words(words).encode("utf-8").decode("utf-8").split("\n")
    assert lines.pop() == ""
    assert parse_words(lines) == words


def test_files_of_earlier_versions_mean_what_they_meant(tmp_path: Path) -> None:
    path = tmp_path / "old.vocab"
    path.write_bytes(b"a\\nb\t3\n\\\t2\ntwo\twords\t2\nescaped\t1\n\t\t1\n\\u0041\t1\n")
    tokens = ["a\\nb", "\\", "two\twords", "escaped", "\t", "\\u0041"]
    assert Vocab.load(str(path)).tokens == tokens


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\\x\t1\tescaped\n", "line 1: unknown escape \\x"),
        ("a\\\t1\tescaped\n", "line 1: unknown escape"),
        ("a\\ud8\t1\tescaped\n", "line 1: unknown escape"),
        ("a\tescaped\n", "line 1: expected token<TAB>count"),
        ("a\tx\tescaped\n", "line 1: the count must be a number"),
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
