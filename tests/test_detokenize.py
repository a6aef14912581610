"""Word tokens back into readable text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlpkit.text.detokenize import detokenize
from nlpkit.text.tokenizers import get_tokenizer

# written as usual, so that cutting and joining gives the text itself
ORDINARY = """
I can't pay (yet), he said.
"Why?" she asked; "because," he said.
It's 5:30pm and the boys' toys cost $5.50, or 10% more.
He said 'no' and left.
“Curly quotes” and ‘single ones’ work.
«Guillemets» too.
A well-known e-mail; state-of-the-art!
We're gonna go, we cannot stay.
1990–1995 and/or later.
Wait... what?! No!!!
Wait… what?
東京に行く。
See https://example.com/a, or mail me@example.com.
#tag @me 50% of $3
AT&T's CEO (Mr. Smith) [sic] {x}
"Nested 'quotes' here," she said.
¿Qué? ¡Hola!
'Tis the season; rock on.
I'd've gone. You shouldn't've.
It rained until 5 p.m.
We walked — far — away -- yes.
He’s the dogs’ owner, isn’t he?
Nice :) really :-( yes
C # and #1
привет, мир!
""".strip().splitlines()


@pytest.mark.parametrize("text", ORDINARY)
def test_text_spaced_as_usual_comes_back_as_it_was(text: str) -> None:
    assert detokenize(get_tokenizer("word").tokens(text)) == text


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("", ""),
        ("word", "word"),
        ("`` Hi , '' she said .", '"Hi," she said.'),
        ("so -LRB- yes -RRB- -LSB- no -RSB- .", "so (yes) [no]."),
        ('" a " and " b "', '"a" and "b"'),
        ("the boys ' toys", "the boys' toys"),
        ("5 km", "5km"),
        ("a - b", "a-b"),
        ("- b", "- b"),
        ("can not", "cannot"),
        ("pre- war", "pre-war"),
        ("日 本 2020 年", "日本 2020 年"),
    ],
)
def test_tokens_are_joined_as_written_here(tokens: str, text: str) -> None:
    assert detokenize(tokens.split()) == text


words = st.sampled_from(
    "the a cat Smith's don't can't it's we'll I naïve co-worker well-known U.S. Mr. e.g. 42 3.14 "
    "1,000 10% $5 5:30 cannot gonna привет :) 👍🏽 and/or AT&T boys' '90s".split()
)
wrapped = st.one_of(
    words,
    words.map(lambda word: f"({word})"),
    words.map(lambda word: f"“{word}”"),
    words.map(lambda word: f'"{word}"'),
)
endings = st.sampled_from(["", "", "", ",", ";", "?", "!", "...", " —"])
ordinary = st.lists(st.tuples(wrapped, endings).map("".join), max_size=12).map(" ".join)


@given(ordinary)
@settings(max_examples=300, deadline=None)
def test_tokens_of_ordinary_text_survive(text: str) -> None:
    tokenizer = get_tokenizer("word")
    tokens = tokenizer.tokens(text)
    assert tokenizer.tokens(detokenize(tokens)) == tokens


@given(st.lists(st.text(min_size=1).filter(lambda token: token.split() == [token])))
@settings(max_examples=200, deadline=None)
def test_joining_changes_nothing_but_white_space(tokens: list[str]) -> None:
    changed = {"``", "''", "-LRB-", "-RRB-", "-LSB-", "-RSB-"}
    kept = [token for token in tokens if token not in changed]
    assert "".join(detokenize(kept).split()) == "".join(kept)
