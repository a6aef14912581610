"""Entity schemes: how spans of tokens are written as one tag a token.

    tokens  Ann   met   Bob   Ray   in  Rio     two entities side by side: Ann | met | Bob, Ray
    IOB1    I-P   O     I-P   B-P   O   I-L     B only where an entity follows one of its own type
    IOB2    B-P   O     B-P   B-P   O   B-L     B opens every entity (also called BIO)
    BIOES   S-P   O     S-P   S-P   O   S-L     E closes a longer one, S is one token alone

Reading spans follows the rule of the CoNLL shared tasks (the ``conlleval`` script), which gives
every sequence a meaning, even one that breaks its scheme: an ``I-`` out of place opens an entity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

Scheme = Literal["IOB1", "IOB2", "BIOES"]
OUTSIDE = "O"
_PREFIXES = frozenset("BIES")


class EntitySpan(NamedTuple):
    """Tokens ``start`` to ``end`` (not included) are one entity."""

    start: int
    end: int
    type: str


def split_tag(tag: str) -> tuple[str, str]:
    """Prefix and type of an entity tag.

    >>> split_tag("B-LOC"), split_tag("O"), split_tag("I")
    (('B', 'LOC'), ('O', ''), ('I', ''))
    """
    prefix, _, kind = tag.partition("-")
    return prefix, kind


def is_entity_tag(tag: str) -> bool:
    """Whether a tag can belong to an entity scheme."""
    return tag == OUTSIDE or (tag[:1] in _PREFIXES and (len(tag) == 1 or tag[1:2] == "-"))


def detect_scheme(tag_rows: Iterable[Sequence[str]]) -> Scheme | None:
    """The scheme of tagged sentences, or None when the tags are no entities.

    >>> detect_scheme([["I-P", "O", "I-P", "B-P"]]), detect_scheme([["B-P", "I-P", "O"]])
    ('IOB1', 'IOB2')
    >>> detect_scheme([["S-P", "O"]]), detect_scheme([["NOUN", "VERB"]])
    ('BIOES', None)
    """
    inside_first = begin_elsewhere = typed = 0
    seen: Counter[str] = Counter()
    for tags in tag_rows:
        before = (OUTSIDE, "")
        for tag in tags:
            if tag not in seen and not is_entity_tag(tag):
                return None
            seen[tag] += 1
            prefix, kind = split_tag(tag)
            typed += bool(kind)
            continues = before[0] != OUTSIDE and before[1] == kind
            inside_first += prefix == "I" and not continues
            begin_elsewhere += prefix == "B" and not continues
            before = (prefix, kind)
    if not typed:
        return None
    if any(tag[0] in "ES" for tag in seen):
        return "BIOES"
    return "IOB1" if inside_first > begin_elsewhere else "IOB2"


def read_spans(tags: Sequence[str]) -> list[EntitySpan]:
    """The entities of a tag sequence of any scheme, by the rule of conlleval.

    >>> read_spans(["I-P", "B-P", "O", "I-L", "I-P"])
    [EntitySpan(start=0, end=1, type='P'), EntitySpan(start=1, end=2, type='P'), \
EntitySpan(start=3, end=4, type='L'), EntitySpan(start=4, end=5, type='P')]
    """
    spans = []
    start = -1
    previous, previous_kind = OUTSIDE, ""
    for index, tag in enumerate(tags):
        prefix, kind = split_tag(tag)
        if start >= 0 and _ends(previous, prefix, previous_kind, kind):
            spans.append(EntitySpan(start, index, previous_kind))
            start = -1
        if prefix != OUTSIDE and _starts(previous, prefix, previous_kind, kind):
            start = index
        previous, previous_kind = prefix, kind
    if start >= 0:
        spans.append(EntitySpan(start, len(tags), previous_kind))
    return spans


def _ends(previous: str, prefix: str, previous_kind: str, kind: str) -> bool:
    return previous in "ES" or prefix in "BSO" or previous_kind != kind


def _starts(previous: str, prefix: str, previous_kind: str, kind: str) -> bool:
    return prefix in "BS" or previous in "ESO" or previous_kind != kind


def write_spans(spans: Iterable[EntitySpan], length: int, scheme: Scheme) -> list[str]:
    """Spans as tags; spans are in order and do not overlap.

    >>> write_spans([EntitySpan(0, 1, "P"), EntitySpan(1, 3, "P")], 4, "IOB1")
    ['I-P', 'B-P', 'I-P', 'O']
    >>> write_spans([EntitySpan(0, 1, "P"), EntitySpan(1, 3, "P")], 4, "BIOES")
    ['S-P', 'B-P', 'E-P', 'O']
    """
    tags = [OUTSIDE] * length
    before = EntitySpan(-1, -1, "")
    for span in spans:
        tail = f"-{span.type}" if span.type else ""
        tags[span.start : span.end] = ["I" + tail] * (span.end - span.start)
        if scheme == "BIOES":
            tags[span.end - 1] = "E" + tail
            tags[span.start] = ("S" if span.end == span.start + 1 else "B") + tail
        elif scheme == "IOB2" or (before.end == span.start and before.type == span.type):
            tags[span.start] = "B" + tail
        before = span
    return tags


def convert(tags: Sequence[str], scheme: Scheme) -> list[str]:
    """A tag sequence of any scheme in another one.

    >>> convert(["I-P", "I-P", "B-P"], "BIOES")
    ['B-P', 'E-P', 'S-P']
    """
    return write_spans(read_spans(tags), len(tags), scheme)


def may_follow(previous: str, tag: str, scheme: Scheme) -> bool:
    """Whether the scheme allows ``tag`` right after ``previous``; ``O`` stands for both ends.

    >>> may_follow("B-P", "I-P", "IOB2"), may_follow("B-P", "I-L", "IOB2")
    (True, False)
    """
    before, before_kind = split_tag(previous)
    prefix, kind = split_tag(tag)
    same = before != OUTSIDE and before_kind == kind
    if scheme == "IOB1":
        return prefix != "B" or same
    if scheme == "IOB2":
        return prefix != "I" or same
    if before in "BI":
        return prefix in "IE" and same
    return prefix not in "IE"


def violations(tags: Sequence[str], scheme: Scheme) -> list[tuple[int, str]]:
    """Where a sequence breaks its scheme: token index and what is wrong there.

    >>> violations(["O", "I-P"], "IOB2")
    [(1, 'I-P after O')]
    """
    found = []
    previous = OUTSIDE
    for index, tag in enumerate(tags):
        if not may_follow(previous, tag, scheme):
            after = previous if index else "the start of the sentence"
            found.append((index, f"{tag} after {after}"))
        previous = tag
    if not may_follow(previous, OUTSIDE, scheme):
        found.append((len(tags) - 1, f"{previous} at the end of the sentence"))
    return found


def legal_transitions(tags: Sequence[str], scheme: Scheme) -> list[list[bool]]:
    """Which tag (column) may follow which (row); the last row and column stand for the ends."""
    names = [*tags, OUTSIDE]
    return [[may_follow(before, after, scheme) for after in names] for before in names]


def tag_parts(tags: Sequence[str]) -> list[list[bool]]:
    """What tags have in common: which part (row) belongs to which tag (column).

    Each tag is a part by itself; then come the types of entities, then the prefixes.

    >>> for row in tag_parts(["O", "B-P", "B-L", "I-P"])[4:]:
    ...     print(row)
    [False, False, True, False]
    [False, True, False, True]
    [False, True, True, False]
    [False, False, False, True]
    """
    halves = [split_tag(tag) if tag != OUTSIDE else ("", None) for tag in tags]
    kinds = sorted({kind for _, kind in halves if kind is not None})
    prefixes = sorted({prefix for prefix, _ in halves if prefix})
    return [
        *([tag == other for other in tags] for tag in tags),
        *([kind == other for _, other in halves] for kind in kinds),
        *([prefix == other for other, _ in halves] for prefix in prefixes),
    ]
