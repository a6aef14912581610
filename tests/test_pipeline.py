"""From a line to the tokens one wants: normalising, filters, offsets, stop words."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlpkit.errors import NlpkitError
from nlpkit.text.pipeline import (
    ENGLISH_STOPWORDS,
    Tokens,
    TokenSettings,
    load_stopwords,
    read_tokens,
    show,
    strip_accents,
)
from nlpkit.textio import TextBlock


def test_lower_comes_after_cutting_which_minds_the_case() -> None:
    assert Tokens(TokenSettings(lower=True)).tokens("Dr. No IS in the U.S. I.") == [
        *["dr.", "no", "is", "in", "the", "u.s.", "i", "."],
    ]


@pytest.mark.parametrize(
    ("normalize", "text", "tokens"),
    [
        ("nfc", "cafe\u0301", ["caf\u00e9"]),
        ("nfc", "ﬁne ２", ["ﬁne", "２"]),
        ("nfkc", "ﬁne ２ x²", ["fine", "2", "x2"]),
        ("nfkc", "wide\u3000space", ["wide", "space"]),
        (None, "cafe\u0301", ["cafe\u0301"]),
    ],
)
def test_unicode_is_normalised_before_cutting(
    normalize: Literal["nfc", "nfkc"] | None, text: str, tokens: list[str]
) -> None:
    assert Tokens(TokenSettings(normalize=normalize)).tokens(text) == tokens


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        ("crème brûlée", "creme brulee"),
        ("Ελληνικά", "Ελληνικα"),
        ("ёлка й", "елка и"),
        ("İstanbul", "Istanbul"),
        ("नमस्ते", "नमस्ते"),
        ("ガギ", "ガギ"),
        ("한국", "한국"),
        ("résumé", "resume"),
        ("\u0301a", "\u0301a"),
    ],
)
def test_accents_are_dropped_where_they_are_accents(text: str, stripped: str) -> None:
    assert strip_accents(text) == stripped
    tokens = Tokens(TokenSettings(strip_accents=True, tokenizer="whitespace"))
    assert tokens.tokens(text) == stripped.split()


def test_filters() -> None:
    text = "The cats, 2 of them, sat on 'the' mat !"
    assert Tokens(TokenSettings(no_punct=True)).tokens(text) == [
        *["The", "cats", "2", "of", "them", "sat", "on", "the", "mat"],
    ]
    assert Tokens(TokenSettings(min_length=3)).tokens(text) == [
        *["The", "cats", "them", "sat", "the", "mat"],
    ]
    stopped = TokenSettings(stopwords=load_stopwords("en"), no_punct=True)
    assert Tokens(stopped).tokens(text) == ["cats", "2", "sat", "mat"]


def test_stop_words_hit_contractions_as_they_are_cut() -> None:
    settings = TokenSettings(stopwords=ENGLISH_STOPWORDS, no_punct=True)
    assert Tokens(settings).tokens("I don’t think it's what they'd say") == ["think", "say"]


def test_stop_words_from_a_file_in_any_case(tmp_path: Path) -> None:
    path = tmp_path / "stop.txt"
    path.write_text("Der\r\n\n die \nDAS\n", encoding="utf-8")
    assert load_stopwords(str(path)) == {"der", "die", "das"}
    settings = TokenSettings(stopwords=load_stopwords(str(path)))
    assert Tokens(settings).tokens("Das ist die Stadt") == ["ist", "Stadt"]


def test_a_file_without_stop_words_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n \n", encoding="utf-8")
    with pytest.raises(NlpkitError, match="no stop words"):
        load_stopwords(str(tmp_path / "empty.txt"))


@pytest.mark.parametrize(
    ("token", "shown"),
    [("a", "a"), (" ", "▁"), (" a", "▁a"), ("a\tb\n", "a▁b▁"), ("\u3000", "▁"), ("", "")],
)
def test_white_space_inside_a_token_is_made_visible(token: str, shown: str) -> None:
    assert show(token) == shown


names = st.sampled_from(["word", "simple", "whitespace", "char", "gpt2"])
texts = st.one_of(
    st.text(),
    st.text(st.sampled_from("İIıŁéêß Aa.,!ǅΣςﬁ½²\u0301\u0307 東カ👍\u200d\t")),
)
choices = st.builds(
    TokenSettings,
    tokenizer=names,
    lower=st.booleans(),
    normalize=st.sampled_from([None, "nfc", "nfkc"]),
    strip_accents=st.booleans(),
    no_punct=st.booleans(),
    stopwords=st.sampled_from([frozenset(), frozenset({"a", "i"})]),
    min_length=st.integers(0, 2),
)


@given(texts, choices)
@settings(max_examples=400, deadline=None)
def test_offsets_point_into_the_text_they_come_with(text: str, chosen: TokenSettings) -> None:
    tokens = Tokens(chosen)
    normalised, found, spans = tokens.with_offsets(text)
    assert [normalised[start:end] for start, end in spans] == found
    assert found == tokens.tokens(text)
    edges = [edge for span in spans for edge in span]
    assert edges == sorted(edges)


@given(texts, choices)
@settings(max_examples=200, deadline=None)
def test_shown_tokens_hold_no_white_space(text: str, chosen: TokenSettings) -> None:
    shown = Tokens(chosen).shown(text)
    assert " ".join(shown).split() == shown


def test_lower_keeps_offsets_where_a_letter_becomes_two() -> None:
    text, tokens, spans = Tokens(TokenSettings(lower=True)).with_offsets("İİ ran. So!")
    assert text == "i̇i̇ ran. so!"
    assert tokens == ["i̇i̇", "ran", ".", "so", "!"]
    assert spans == [(0, 4), (5, 8), (8, 9), (10, 12), (12, 13)]


def test_without_changes_the_offsets_point_into_the_original() -> None:
    text = "Don't, e\u0301t\u00e9 👍🏽!"
    normalised, tokens, spans = Tokens(TokenSettings()).with_offsets(text)
    assert normalised == text
    assert spans == [(0, 2), (2, 5), (5, 6), (7, 11), (12, 14), (14, 15)]
    assert tokens[-2] == "👍🏽"


def test_read_tokens_gives_a_row_for_each_line() -> None:
    blocks = [TextBlock(b"To be\n\nor not\n", "-", 1), TextBlock(b"to be", "-", 4)]
    assert list(read_tokens(blocks, TokenSettings())) == [
        [["To", "be"], [], ["or", "not"]],
        [["to", "be"]],
    ]
