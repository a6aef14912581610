"""Looking at tagged data before training on it: sizes, tags, mistakes, overlap, advice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from nlpkit.tasks.tag.features import normal_form
from nlpkit.text.conll import Sentence
from nlpkit.text.schemes import Scheme, detect_scheme, read_spans, violations

FEW = 10  # a tag seen fewer times is hardly learned
LONG = 500  # tokens


@dataclass
class DataReport:
    """What there is to say of one file."""

    name: str
    sentences: int
    tokens: int
    types: int
    longest: int
    empty: int
    scheme: Scheme | None
    tags: Counter[str]
    entities: Counter[str]
    illegal: list[str]  # "file: line 7: I-PER after O"
    duplicates: int  # sentences that repeat an earlier one
    contradictions: int  # of those, the ones with other tags
    advice: list[str] = field(default_factory=list)


@dataclass
class OverlapReport:
    """What two splits of the data have in common."""

    first: str
    second: str
    shared: int  # sentences of the second that the first has too
    unknown_rate: float  # share of the second's tokens whose word the first never has
    new_tags: list[str]  # tags of the second that the first never has
    advice: list[str] = field(default_factory=list)


def check_data(name: str, sentences: Sequence[Sentence]) -> DataReport:
    """Look at one file."""
    filled = [sentence for sentence in sentences if sentence.tokens]
    tags = Counter(tag for sentence in filled for tag in sentence.tags)
    scheme = detect_scheme(sentence.tags for sentence in filled)
    seen: dict[tuple[str, ...], list[str]] = {}
    duplicates = contradictions = 0
    for sentence in filled:
        key = tuple(sentence.tokens)
        if key in seen:
            duplicates += 1
            contradictions += seen[key] != sentence.tags
        seen.setdefault(key, sentence.tags)
    report = DataReport(
        name=name,
        sentences=len(filled),
        tokens=sum(tags.values()),
        types=len({token for sentence in filled for token in sentence.tokens}),
        longest=max((len(sentence.tokens) for sentence in filled), default=0),
        empty=len(sentences) - len(filled),
        scheme=scheme,
        tags=tags,
        entities=Counter(
            span.type for s in filled for span in (read_spans(s.tags) if scheme else [])
        ),
        illegal=find_illegal(filled, scheme),
        duplicates=duplicates,
        contradictions=contradictions,
    )
    report.advice = _advise(report)
    return report


def find_illegal(sentences: Sequence[Sentence], scheme: Scheme | None) -> list[str]:
    """Every place where a sequence breaks the entity scheme, with file and line."""
    if scheme is None:
        return []
    return [
        f"{sentence.where(token)}: {what}"
        for sentence in sentences
        for token, what in violations(sentence.tags, scheme)
    ]


def _advise(report: DataReport) -> list[str]:
    advice = []
    rare = sorted(tag for tag, count in report.tags.items() if count < FEW)
    if len(report.tags) == 1:
        advice.append("there is one tag only: nothing can be learned from it")
    if rare:
        advice.append(f"seen fewer than {FEW} times, hardly learned: {' '.join(rare)}")
    if report.illegal:
        advice.append(
            f"{len(report.illegal)} illegal sequences: mend them, or they are read as conlleval "
            "reads them (an I- out of place opens an entity)"
        )
    if report.contradictions:
        advice.append(f"{report.contradictions} repeated sentences have different tags")
    if report.longest > LONG:
        advice.append(f"a sentence of {report.longest} tokens: is a blank line missing?")
    if report.tokens < 5000:
        advice.append("small: --vectors trained on plain text will help most")
    return advice


def check_overlap(
    first_name: str, first: Sequence[Sentence], second_name: str, second: Sequence[Sentence]
) -> OverlapReport:
    """Compare a split (dev, test) with the one before it (train)."""
    sentences = {tuple(sentence.tokens) for sentence in first if sentence.tokens}
    words = {normal_form(token) for sentence in first for token in sentence.tokens}
    tokens = [token for sentence in second for token in sentence.tokens]
    unknown = sum(normal_form(token) not in words for token in tokens)
    tags = {tag for sentence in first for tag in sentence.tags}
    report = OverlapReport(
        first=first_name,
        second=second_name,
        shared=sum(tuple(sentence.tokens) in sentences for sentence in second if sentence.tokens),
        unknown_rate=unknown / len(tokens) if tokens else 0.0,
        new_tags=sorted({tag for sentence in second for tag in sentence.tags} - tags),
    )
    if second and report.shared > 0.02 * len(second):
        report.advice.append(
            f"{report.shared} sentences of {second_name} are in {first_name}: scores will flatter"
        )
    if report.new_tags:
        report.advice.append(f"never learned from {first_name}: {' '.join(report.new_tags)}")
    if report.unknown_rate > 0.1:
        report.advice.append("many unknown words: --vectors will help")
    return report
