"""What every tokeniser promises, and the simple ones."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlpkit.errors import NlpkitError
from nlpkit.text.tokenizers import NAMES, Tokenizer, base, get_tokenizer

PATTERNS = {"regex": r"\w+|[^\w\s]"}
texts = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from(
            ["Don't", " ", "  ", "\t", "a.m.", "etc.", "p.m.", "東京", "👍🏽", "é", "e\u0301",
             "\r\n", "\u3000", "1,000", "http://a.b", "x" * 120, "cannot", "\u200d", "\x1c", "\x00"]
        )
    ).map("".join),
)  # fmt: skip


def tokenizer(name: str) -> Tokenizer:
    return get_tokenizer(name, pattern=PATTERNS.get(name))


@given(texts, st.sampled_from(NAMES))
@settings(max_examples=400, deadline=None)
def test_spans_spell_the_tokens_in_order_and_never_overlap(text: str, name: str) -> None:
    tokens, spans = tokenizer(name).tokens(text), tokenizer(name).spans(text)
    assert [text[start:end] for start, end in spans] == tokens
    edges = [edge for span in spans for edge in span]
    assert edges == sorted(edges)
    assert all(start < end for start, end in spans)


@given(texts, st.sampled_from(["word", "char", "gpt2", "whitespace"]))
@settings(max_examples=300, deadline=None)
def test_nothing_but_white_space_is_lost(text: str, name: str) -> None:
    kept = "".join(tokenizer(name).tokens(text))
    assert "".join(kept.split()) == "".join(text.split())
    if name in ("char", "gpt2"):
        assert kept == text


@given(texts)
@settings(max_examples=100, deadline=None)
def test_a_tokeniser_that_has_seen_much_gives_the_same_as_a_new_one(text: str) -> None:
    seen = tokenizer("word")
    seen.tokens(text)
    assert seen.tokens(text) == tokenizer("word").tokens(text)


@pytest.mark.parametrize(
    ("name", "text", "tokens"),
    [
        ("simple", "Don't panic: it's 42!", ["Don", "t", "panic", "it", "s", "42"]),
        ("simple", "naïve नमस्ते 東京", ["naïve", "नमस्ते", "東京"]),
        ("simple", "snake_case e-mail", ["snake", "case", "e", "mail"]),
        ("whitespace", " a,  b\tc\u3000d ", ["a,", "b", "c", "d"]),
        ("char", "ae\u0301👩🏽‍💻🇫🇷x", ["a", "e\u0301", "👩🏽‍💻", "🇫🇷", "x"]),
        ("char", "a b", ["a", " ", "b"]),
        ("gpt2", "Hello world's  end", ["Hello", " world", "'s", " ", " end"]),
        ("gpt2", "we'll pay $5\n", ["we", "'ll", " pay", " $", "5", "\n"]),
        ("regex", "a,b", ["a", ",", "b"]),
    ],
)
def test_each_simple_tokeniser_cuts_as_written_here(
    name: str, text: str, tokens: list[str]
) -> None:
    assert tokenizer(name).tokens(text) == tokens


def test_matches_of_nothing_are_no_tokens() -> None:
    assert get_tokenizer("regex", pattern="a*").tokens("baac") == ["aa"]
    assert get_tokenizer("regex", pattern="a*").spans("baac") == [(1, 3)]


@pytest.mark.parametrize("pattern", ["[", "(", "*", "(?P<x>a)(?P<x", "\\"])
def test_a_pattern_that_does_not_compile_says_why_and_where(pattern: str) -> None:
    with pytest.raises(NlpkitError, match=r"does not compile: .* at character") as error:
        get_tokenizer("regex", pattern=pattern)
    assert error.value.hint


def test_a_pattern_and_the_regex_tokeniser_go_together() -> None:
    with pytest.raises(NlpkitError, match="go together"):
        get_tokenizer("regex")
    with pytest.raises(NlpkitError, match="go together"):
        get_tokenizer("word", pattern="a")


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(NlpkitError, match="no such tokeniser: wrod") as error:
        get_tokenizer("wrod")
    assert all(name in error.value.hint for name in NAMES)


def test_the_table_of_seen_pieces_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "TABLE_LIMIT", 10)
    table = base.PieceTable(lambda piece: (piece,))
    for number in range(25):
        assert table[f"piece{number}"] == (f"piece{number}",)
        assert len(table) <= 10
    long = "x" * (base.LONGEST_KEPT + 1)
    assert table[long] == (long,)
    assert long not in table
