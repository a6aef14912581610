"""The word table agrees with ``str.split`` and ``Counter`` on any text."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlpkit.errors import NlpkitError
from nlpkit.kernels.wordcount import LINE_END, WordTable

SPACES = [chr(i) for i in range(0x110000) if chr(i).isspace()]
# Neighbours of the spaces in code point and in bytes, words around the 7-byte border, NUL.
NEAR_MISSES = ["\x00", "\x08", "\x1b", "\x84", "\x86", "\xa1", "ᚁ", "​", "‧", "‰", "⁠"]
PIECES = [
    *SPACES,
    *NEAR_MISSES,
    " ",
    "\n",
    "a",
    "b",
    "é",
    "、",
    "😀",
    "seven77",
    "eight888",
    "x" * 30,
]
texts = st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join))


def expected_ids(text: str) -> tuple[list[int], Counter[str]]:
    ids: dict[str, int] = {}
    counts: Counter[str] = Counter()
    encoded: list[int] = []
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    for line in lines:
        for word in line.split():
            encoded.append(ids.setdefault(word, len(ids)))
            counts[word] += 1
        encoded.append(LINE_END)
    return encoded, counts


@given(texts)
@settings(max_examples=500, deadline=None)  # the first call may compile
def test_encode_splits_as_str_split_does(text: str) -> None:
    table = WordTable()
    expected, counts = expected_ids(text)
    assert table.encode(text.encode()).tolist() == expected
    assert list(zip(table.words(), table.counts.tolist(), strict=True)) == list(counts.items())


@given(st.lists(texts))
@settings(deadline=None)
def test_add_over_blocks_counts_like_counter(blocks: list[str]) -> None:
    table = WordTable()
    counts: Counter[str] = Counter()
    for block in blocks:
        table.add(block.encode())
        counts.update(block.split())
    assert dict(zip(table.words(), table.counts.tolist(), strict=True)) == counts


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("word", ["a", "seven77", "eight888", "é", "a-much-longer-word"])
def test_every_space_ends_every_kind_of_word(space: str, word: str) -> None:
    table = WordTable()
    table.add(f"{space}{word}{space}{word}".encode())
    assert table.words() == [word]
    assert table.counts.tolist() == [2]


def test_table_grows_and_keeps_ids() -> None:
    words = [f"word-{'x' * (i % 40)}{i}" for i in range(20_000)]
    table = WordTable()
    table.add(" ".join(words).encode())
    assert table.words() == words
    assert table.encode(" ".join(words[::-1]).encode())[:3].tolist() == [19_999, 19_998, 19_997]
    assert set(table.counts.tolist()) == {2}


def test_a_word_longer_than_the_pool_fits() -> None:
    long = "é" * 1_000_000
    table = WordTable()
    table.add(f"a {long} b {long}".encode())
    assert table.words() == ["a", long, "b"]
    assert table.counts.tolist() == [1, 2, 1]


def test_bytes_that_are_not_utf8_are_named() -> None:
    table = WordTable()
    table.add(b"fine b\xffd")
    with pytest.raises(NlpkitError, match=r"b\\xffd"):
        table.words()
