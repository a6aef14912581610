"""Words by row: the lazy list agrees with the plain one; slips of the pen are recognised."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlpkit.errors import NlpkitError
from nlpkit.text.vocab import Vocab
from nlpkit.vectors.words import ListedWords, StoredWords, close_spellings

WORDS = st.lists(
    st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), min_size=1),
    unique=True,
    min_size=1,
    max_size=40,
)


def stored(words: list[str]) -> StoredWords:
    return StoredWords("".join(f"{word}\t{i}\n" for i, word in enumerate(words)).encode(), "v.tsv")


@given(WORDS)
def test_stored_words_are_the_listed_words(words: list[str]) -> None:
    lazy, plain = stored(words), ListedWords(words)
    assert list(lazy) == list(plain) == words
    assert [lazy.find(word) for word in words] == list(range(len(words)))
    assert lazy[-1] == words[-1]
    assert lazy[1:3] == words[1:3]


def test_a_word_with_a_tab_is_not_mistaken_for_the_word_before_it() -> None:
    words = stored(["a\tb", "b", "a"])
    assert words.find("a") == 2
    assert words.find("a\tb") == 0


def test_a_search_does_not_reach_over_lines() -> None:
    assert stored(["a", "b"]).find("a\t0\nb") is None


def test_many_searches_switch_to_an_index_with_the_same_answers() -> None:
    words = stored([f"w{i}" for i in range(50)])
    assert [words.find(f"w{i}") for i in range(50)] == list(range(50))
    assert words.find("w50") is None


def test_expected_words_are_found_in_one_pass_with_the_same_answers() -> None:
    lines = "".join(f"word{row}\t1\n" for row in range(60)) + "word7\t1\nlast\t1\n"
    words = StoredWords(lines.encode(), "vocab.tsv")
    asked = [f"word{row}" for row in range(0, 80, 2)] + ["word7", "last"]
    words.expect(asked)
    fresh = StoredWords(lines.encode(), "vocab.tsv")
    assert [words.find(word) for word in asked] == [fresh.find(word) for word in asked]
    assert words.find("word7") == 7
    assert words.find("word70") is None
    assert words.find("word9") == 9, "a word that nobody expected"


def test_counts_are_nothing_when_nobody_counted() -> None:
    assert StoredWords(b"a\t0\nb\t0\n", "v.tsv").counts is None
    assert StoredWords(b"a\t5\nb\t0\n", "v.tsv").counts.tolist() == [5, 0]


@given(st.lists(st.text(st.characters(codec=None)), unique=True, min_size=1, max_size=30))
def test_any_strings_can_be_words(words: list[str]) -> None:
    lazy = StoredWords(Vocab(words, range(len(words))).dumps().encode(), "v.tsv")
    assert [lazy.find(word) for word in words] == list(range(len(words)))
    assert list(lazy) == words
    assert [lazy[row] for row in range(len(words))] == words
    assert stored(["plain"]).find("\ud800") is None


def test_windows_line_ends_and_a_missing_last_one_make_no_difference() -> None:
    words = StoredWords(b"a\t1\r\nb\t2", "v.tsv")
    assert list(words) == ["a", "b"]
    assert words.find("b") == 1


@pytest.mark.parametrize("data", [b"no tab\n", b"\xff\t1\n"])
def test_a_damaged_line_is_named(data: bytes) -> None:
    words = StoredWords(b"fine\t1\n" + data, "v.tsv")
    assert words[0] == "fine"
    with pytest.raises(NlpkitError, match=r"v\.tsv is damaged: line 2"):
        list(words)
    with pytest.raises(NlpkitError, match=r"v\.tsv is damaged: line 2"):
        words[1]


def test_a_damaged_count_is_named() -> None:
    with pytest.raises(NlpkitError, match=r"v\.tsv is damaged: line 2: the count must be a number"):
        _ = StoredWords(b"fine\t1\na\tx\n", "v.tsv").counts


def test_close_spellings_prefer_other_case_then_frequent_words() -> None:
    words = ["the", "Paris", "pairs", "parish", "berlin"]
    assert close_spellings("paris", words) == ["Paris", "pairs", "parish"]
    assert close_spellings("xyzzy", words) == []
    assert close_spellings("", words) == []


def slow_distance(a: str, b: str) -> int:
    """Optimal string alignment, cell by cell."""
    table = [[i + j if i * j == 0 else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            replaced = table[i - 1][j - 1] + (a[i - 1] != b[j - 1])
            table[i][j] = min(table[i - 1][j] + 1, table[i][j - 1] + 1, replaced)
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                table[i][j] = min(table[i][j], table[i - 2][j - 2] + 1)
    return table[-1][-1]


@given(st.text("abc", min_size=1, max_size=6), st.lists(st.text("abc", min_size=1, max_size=6)))
def test_close_spellings_are_those_with_the_fewest_slips(word: str, others: list[str]) -> None:
    ranked = sorted((slow_distance(word, other), place) for place, other in enumerate(others))
    near = [others[place] for slips, place in ranked if slips <= 1 + len(word) // 5]
    assert close_spellings(word, others) == near[:3]
