"""Counting tokens: both ways of counting agree with Counter, whatever the text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nlpkit.errors import NlpkitError
from nlpkit.text import counting
from nlpkit.text.counting import count_tokens
from nlpkit.text.pipeline import TokenSettings
from nlpkit.text.tokenizers import get_tokenizer
from nlpkit.textio import TextBlock

PLAIN = TokenSettings(tokenizer="whitespace")
lines = st.lists(
    st.text(st.sampled_from("abé東😀 \t\r\x85\u3000\x1c\x00")),
    max_size=6,
)


def blocks_of(texts: list[str]) -> list[TextBlock]:
    return [
        TextBlock((text + "\n").encode(), "test", number) for number, text in enumerate(texts, 1)
    ]


@given(lines)
@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_the_compiled_table_counts_as_counter_does(
    monkeypatch: pytest.MonkeyPatch, texts: list[str]
) -> None:
    expected = Counter(token for text in texts for token in text.split())
    assert count_tokens(blocks_of(texts), PLAIN) == expected
    for limit in (0, 5):
        monkeypatch.setattr(counting, "COMPILED_FROM", limit)
        assert count_tokens(blocks_of(texts), PLAIN) == expected


@pytest.mark.parametrize("limit", [0, 1 << 20])
def test_bad_bytes_are_named_or_replaced_both_ways(
    monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(counting, "COMPILED_FROM", limit)
    blocks = [TextBlock(b"a b\n", "text", 1), TextBlock(b"a \xff\n", "text", 2)]
    with pytest.raises(NlpkitError, match="text: line 2, byte 3: 0xff"):
        count_tokens(blocks, PLAIN)
    assert count_tokens(blocks, PLAIN, errors="replace") == {"a": 2, "b": 1, "\ufffd": 1}
    assert count_tokens(blocks, PLAIN, errors="ignore") == {"a": 2, "b": 1}


@pytest.mark.parametrize("jobs", [1, 2])
def test_other_tokenisers_count_the_same_in_any_number_of_processes(jobs: int) -> None:
    texts = ["Don't panic, it's fine.", "It's Mr. Smith's.", ""] * 20
    found = count_tokens(blocks_of(texts), TokenSettings(lower=True), jobs=jobs)
    expected: Counter[str] = Counter()
    for text in texts:
        expected.update(token.lower() for token in get_tokenizer("word").tokens(text))
    assert found == expected


def test_white_space_inside_a_token_is_counted_as_it_is_shown() -> None:
    found = count_tokens(blocks_of(["a b a"]), TokenSettings(tokenizer="char"))
    assert found == {"a": 2, "b": 1, "▁": 2}


def test_blocks_are_read_once_and_not_kept() -> None:
    alive = 0

    def stream() -> Iterator[TextBlock]:
        nonlocal alive
        for number in range(50):
            alive += 1
            yield TextBlock(b"a b\n", "test", number)

    assert count_tokens(stream(), TokenSettings()) == {"a": 50, "b": 50}
    assert alive == 50
