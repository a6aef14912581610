"""Sentence splitting: what ends a sentence and what does not, written out by hand.

Sentences are separated by `` | `` in the table.
"""

from __future__ import annotations

import faulthandler

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlpkit.text.sentences import sentence_spans, split_sentences

CASES = {
    "plain": [
        "He left. | She stayed! | Why? | Nobody knows.",
        "No mark at the end",
        "He left. | then she said so.",
    ],
    "abbreviations": [
        "Dr. Smith left. | He ran.",
        "Mr. and Mrs. Jones came. | They sat.",
        "Try fruit, e.g. Pears or plums. | Good.",
        "Acme Inc. Said so.",
        "Acme Inc. | The shares rose.",
        "Eggs, milk, etc. | Bread too.",
        "See Fig. 3 and No. 5 there. | Yes.",
        "The U.S. Army won. | Good.",
        "I live in the U.S. | It is big.",
        "At 5 p.m. Monday we go. | At 5 p.m. | He left.",
        "She has a Ph.D. | She teaches.",
    ],
    "initials": [
        "J. R. R. Tolkien wrote it. | It sold.",
        "George W. Bush spoke.",
        "So did I. | Then he left.",
    ],
    "decimals": [
        "Pi is 3.14. | So what?",
        "He paid $3.50. | Nobody knew.",
        "Version 2.0 is out. | Get it.",
    ],
    "quotes": [
        'He said "Go." | She went.',
        '"Why?" he asked. | "No!" I said.',
        "“Stop!” he cried. | “Now.” | Then silence.",
        '"It works." | "Really?"',
    ],
    "brackets": [
        "(He left.) | She stayed.",
        "He left (at last). | She stayed.",
        "It rained [again]. | We stayed.",
    ],
    "ellipses": [
        "Wait... what? | Well... no.",
        "He waited... | Nobody came.",
        "Wait… what?",
        "Well . . . no.",
    ],
    "runs of marks": ["What?! | No!!! | Yes.", "Hello :) | How are you?"],
    "lists": [
        "1. First item. | 2. Second item. | 3. Third.",
        "It was 12. | Then it rained.",
    ],
    "addresses": [
        "See http://a.b/c.html. | Then go.",
        "Mail me@example.com. | Thanks.",
        "Visit example.com. | Thanks.",
        "Look at www.example.com | Then go.",
    ],
    "Chinese and Japanese": [
        "我来了。你好！走吗？",
        "「はい。」と言った。",
    ],
    "lines drawn with signs": ["One | ===== | Two"],
}
# no white space stands between these
SPLIT_CJK = {
    "我来了。你好！走吗？": ["我来了。", "你好！", "走吗？"],
    "「はい。」と言った。": ["「はい。", "」と言った。"],
}


@pytest.mark.parametrize(
    "marked", [pytest.param(text, id=f"{kind}: {text}") for kind in CASES for text in CASES[kind]]
)
def test_sentences_end_where_written_here(marked: str) -> None:
    expected = SPLIT_CJK.get(marked, marked.split(" | "))
    assert split_sentences(marked.replace(" | ", " ")) == expected


def test_white_space_is_trimmed_and_empty_text_has_no_sentence() -> None:
    assert split_sentences("  He left. \n\n She stayed.\t") == ["He left.", "She stayed."]
    assert split_sentences("") == split_sentences(" \n\t ") == []
    assert split_sentences("  . A") == [".", "A"]


MARKS = ". ! ? … 。 ！ \" ' ( ) “ ” * - ----- :)"
WORDS = "a A 1 the The I U.S. Mr. etc said www.x http://a.b"
texts = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from([*MARKS.split(), *WORDS.split(), " ", "  ", "\n"]),
        max_size=20,
    ).map("".join),
)


@given(texts)
@settings(max_examples=400, deadline=None)
def test_spans_are_trimmed_ordered_and_lose_nothing_but_white_space(text: str) -> None:
    spans = sentence_spans(text)
    edges = [edge for span in spans for edge in span]
    assert edges == sorted(edges)
    sentences = [text[start:end] for start, end in spans]
    assert sentences == split_sentences(text)
    assert all(sentence and sentence == sentence.strip() for sentence in sentences)
    assert "".join("".join(sentences).split()) == "".join(text.split())


@pytest.mark.parametrize(
    "unit",
    [".", "!?", ". ", "1. ", "。", "。a", '。"', '."', "a. A", "U.S. ", "-", "www.", ":) A", " "],
)
def test_an_endless_line_takes_linear_time(unit: str) -> None:
    # quadratic time would be minutes here: the watchdog ends the run instead
    faulthandler.dump_traceback_later(20, exit=True)
    try:
        assert len(sentence_spans("Begin " + unit * (100_000 // len(unit)) + " end")) >= 1
    finally:
        faulthandler.cancel_dump_traceback_later()
