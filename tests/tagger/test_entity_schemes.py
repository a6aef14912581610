"""Entity schemes: detected, checked, converted, and read as conlleval reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlpkit.metrics.spans import score_tags
from nlpkit.text.schemes import (
    EntitySpan,
    Scheme,
    convert,
    detect_scheme,
    legal_transitions,
    read_spans,
    tag_parts,
    violations,
    write_spans,
)

SCHEMES: tuple[Scheme, ...] = ("IOB1", "IOB2", "BIOES")


@st.composite
def entity_sentences(draw: st.DrawFn) -> tuple[list[EntitySpan], int]:
    spans, place = [], 0
    for kind in draw(st.lists(st.sampled_from("XY"), max_size=6)):
        start = place + draw(st.integers(0, 2))
        place = start + draw(st.integers(1, 3))
        spans.append(EntitySpan(start, place, kind))
    return spans, place + draw(st.integers(0, 2))


@given(entity_sentences(), st.sampled_from(SCHEMES), st.sampled_from(SCHEMES))
def test_conversion_keeps_the_entities(
    sentence: tuple[list[EntitySpan], int], one: Scheme, other: Scheme
) -> None:
    spans, length = sentence
    tags = write_spans(spans, length, one)
    assert read_spans(tags) == spans
    assert convert(tags, other) == write_spans(spans, length, other)
    assert violations(tags, one) == []


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("O I-P I-P O", [(1, 3, "P")]),
        ("I-P I-L", [(0, 1, "P"), (1, 2, "L")]),
        ("B-P I-L I-L", [(0, 1, "P"), (1, 3, "L")]),
        ("B-P B-P", [(0, 1, "P"), (1, 2, "P")]),
        ("I-P B-P I-P", [(0, 1, "P"), (1, 3, "P")]),
        ("E-P E-P", [(0, 1, "P"), (1, 2, "P")]),
        ("B-P E-P I-P", [(0, 2, "P"), (2, 3, "P")]),
        ("S-P I-P", [(0, 1, "P"), (1, 2, "P")]),
        ("B-P S-P E-P", [(0, 1, "P"), (1, 2, "P"), (2, 3, "P")]),
        ("B I O I", [(0, 2, ""), (3, 4, "")]),
        ("B-A-B I-A-B", [(0, 2, "A-B")]),
        ("O O", []),
        ("", []),
    ],
)
def test_spans_as_conlleval_reads_them(tags: str, spans: list[tuple[int, int, str]]) -> None:
    assert [tuple(span) for span in read_spans(tags.split())] == spans


def test_entity_scores_count_whole_entities() -> None:
    gold = ["B-P I-P O B-L O B-L".split(), "O B-O I-O I-O O".split()]
    predicted = ["B-P I-P O B-O O I-L".split(), "O B-O I-O O B-P".split()]
    scores = score_tags(gold, predicted)
    assert scores.entities is not None
    # right: P 0-2, and L 5-6, which an I- out of place opens as well
    assert (scores.entities.right, scores.entities.predicted, scores.entities.true) == (2, 5, 4)
    assert scores.types["L"].recall == 0.5
    assert scores.types["O"].precision == 0.0
    assert scores.accuracy == 7 / 11


def test_known_and_unknown_words_are_counted_apart() -> None:
    scores = score_tags([["N", "V", "N"]], [["N", "N", "V"]], [[0, 1]])
    assert (scores.known_accuracy, scores.unknown_accuracy) == (0.5, 0.0)
    assert scores.entities is None
    assert scores.confusions["V", "N"] == 1


@pytest.mark.parametrize(
    ("rows", "scheme"),
    [
        (["O I-P I-P O", "I-P B-P"], "IOB1"),
        (["O I-P I-P O"], "IOB1"),
        (["B-P I-P O", "B-L"], "IOB2"),
        (["B-P I-P O", "I-L", "B-L B-P"], "IOB2"),
        (["S-P O B-P E-P"], "BIOES"),
        (["O O"], None),
        (["NOUN VERB"], None),
        (["B I O"], None),
        ([], None),
    ],
)
def test_the_scheme_is_found_out(rows: list[str], scheme: Scheme | None) -> None:
    assert detect_scheme(row.split() for row in rows) == scheme


def test_violations_name_the_token() -> None:
    assert violations("I-P O B-P I-L".split(), "IOB2") == [
        (0, "I-P after the start of the sentence"),
        (3, "I-L after B-P"),
    ]
    assert violations("B-P O".split(), "BIOES") == [(1, "O after B-P")]
    assert violations("B-P I-P".split(), "BIOES") == [(1, "I-P at the end of the sentence")]


def test_legal_transitions_agree_with_violations() -> None:
    tags = ["O", "B-X", "I-X", "E-X", "S-X", "B-Y", "I-Y", "E-Y", "S-Y"]
    legal = legal_transitions(tags, "BIOES")
    for i, before in enumerate(tags):
        for j, after in enumerate(tags):
            whole = [before, after]
            broken = not (legal[-1][i] and legal[i][j] and legal[j][-1])
            assert bool(violations(whole, "BIOES")) == broken


def test_a_tag_is_itself_its_type_and_its_prefix() -> None:
    tags = ["O", "B-X", "I-X", "B-Y", "S"]
    columns = list(zip(*tag_parts(tags), strict=True))
    # rows: five tags; no type, X, Y; B, I, S
    owned = [[row for row, held in enumerate(column) if held] for column in columns]
    assert owned == [[0], [1, 6, 8], [2, 6, 9], [3, 7, 8], [4, 5, 10]]
