"""What ``nlpkit classify`` writes: predictions, scores, coloured explanations."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nlpkit.cli.output import Section, Writer, facts, percent
from nlpkit.cli.tag_output import (
    calibration_fact,
    confusion_matrix,
    confusions,
    counts_record,
    draw_matrix,
    measures,
)
from nlpkit.text.records import with_record
from nlpkit.text.vocab import on_one_line

if TYPE_CHECKING:
    from nlpkit.tasks.classify.explain import Explanation
    from nlpkit.tasks.classify.fasttext import AnyClassifier
    from nlpkit.tasks.classify.scores import LabelScores

PAIR = ("text", "text2")
EXPLAINED = ("line", "label", "probability", "word", "influence")


def prediction_columns(k: int) -> list[str]:
    """The likeliest label and its probability, then the next ones, and the text.

    >>> prediction_columns(2)
    ['label', 'probability', 'label2', 'probability2', 'text']
    """
    numbers = ["", *map(str, range(2, k + 1))]
    return [*(f"{name}{n}" for n in numbers for name in ("label", "probability")), "text"]


def predictions(
    classifier: AnyClassifier, texts: Sequence[Any], *, k: int, threshold: float
) -> list[list[tuple[str, float]]]:
    """The likeliest labels of each text with their probabilities; none without a word."""
    probabilities = classifier.probabilities(texts)
    names = classifier.labels.tokens
    count = min(k, len(names))
    if count == 1:
        order = probabilities.argmax(axis=1)[:, None]
    else:
        order = np.argsort(-probabilities, axis=1, kind="stable")[:, :count]
    shown = np.take_along_axis(probabilities, order, axis=1)
    shown[[_is_empty(text) for text in texts]] = -1.0  # below any threshold
    return [
        [(names[i], p) for i, p in zip(labels, sure, strict=True) if p >= threshold]
        for labels, sure in zip(order.tolist(), shown.tolist(), strict=True)
    ]


def _is_empty(text: Any) -> bool:
    parts = (text,) if isinstance(text, str) else text
    return not any(part and part.strip() for part in parts)


def prediction_record(
    text: Any, found: Sequence[tuple[str, float]], record: dict[str, Any]
) -> dict[str, Any]:
    """A text with its labels as JSON, and all keys of the record that it came from."""
    said = {"text": text} if isinstance(text, str) else dict(zip(PAIR, text, strict=True))
    labels = [{"label": name, "probability": round(share, 6)} for name, share in found]
    return {**(record or said), "labels": labels}


def prediction_row(
    text: Any, found: Sequence[tuple[str, float]], k: int, format: str
) -> list[str | None]:
    """Labels and probabilities by turns, and the text; TSV has as many cells as there are labels.

    >>> prediction_row("Fine.", [("good", 0.75)], 2, "csv")
    ['good', '0.7500', None, None, 'Fine.']
    >>> prediction_row("Fine.", [("good", 0.75)], 2, "tsv")
    ['good', '0.7500']
    """
    cells = [cell for name, share in found for cell in (on_one_line(name), f"{share:.4f}")]
    if format == "tsv":
        return [*cells]
    said = text if isinstance(text, str) else "\t".join(text)
    return [*cells, *[None] * (2 * (k - len(found))), said]


def scores_record(scores: LabelScores, *, confusion: bool) -> dict[str, Any]:
    """The numbers of ``classify evaluate``, as shares from 0 to 1."""
    record: dict[str, Any] = {
        "texts": scores.texts,
        "accuracy": scores.accuracy,
        "macro_f1": scores.macro_f1,
        "micro_f1": scores.micro.f1,
        "calibration_error": scores.calibration_error,
        "labels": {name: counts_record(counts) for name, counts in scores.labels.items()},
        "calibration": [{"texts": n, "confidence": p, "accuracy": a} for n, p, a in scores.bins],
    }
    if confusion:
        record["confusions"] = [[*pair, n] for pair, n in scores.confusions.most_common()]
    return record


def score_sections(scores: LabelScores, *, confusion: bool) -> list[Section]:
    """Scores as tables: facts, a row for each label, confusions."""
    sections = [
        facts(
            ("texts", scores.texts),
            ("accuracy", percent(scores.accuracy)),
            ("macro F1", percent(scores.macro_f1)),
            ("micro F1", percent(scores.micro.f1)),
            calibration_fact(scores.bins),
        ),
        measures("label", scores.labels),
    ]
    return [
        *sections,
        *([confusions(*confusion_matrix(scores.labels, scores.confusions))] if confusion else []),
    ]


def draw_scores(scores: LabelScores, path: str) -> None:
    """A picture of the confusions, and beside it how sure and how right decisions are."""
    draw_matrix(*confusion_matrix(scores.labels, scores.confusions), path, scores.bins, "texts")


def explain_format() -> str:
    """Colours for a person, columns for a program."""
    return "color" if sys.stdout is not None and sys.stdout.isatty() else "tsv"


def explanation_rows(number: int, found: Explanation, text: str) -> Iterator[list[Any]]:
    """A row for each word of the text in line ``number``, under the columns ``EXPLAINED``."""
    for (start, end), influence in zip(found.spans, found.influence, strict=True):
        word, label = on_one_line(text[start:end]), on_one_line(found.label)
        yield [number, label, found.probability, word, f"{influence:+.4f}"]


def explanation_record(found: Explanation, text: str) -> dict[str, Any]:
    """The same as one object, behind the keys of the record that the text came from."""
    words = [
        {"word": text[start:end], "start": start, "end": end, "influence": round(influence, 4)}
        for (start, end), influence in zip(found.spans, found.influence, strict=True)
    ]
    record = {"text": text, "label": found.label, "probability": round(found.probability, 6)}
    return with_record(text, {**record, "words": words})


def draw_explanation(out: Writer, found: Explanation, text: str) -> None:
    """The label, and the text with the influence of its words in colours."""
    strongest = max((abs(influence) for influence in found.influence), default=1.0) or 1.0
    pieces = []
    done = 0
    for (start, end), influence in zip(found.spans, found.influence, strict=True):
        pieces.append(out.safe(text[done:start]))
        pieces.append(shade(out.safe(text[start:end]), influence / strongest))
        done = end
    pieces.append(out.safe(text[done:]))
    label = out.safe(on_one_line(found.label))
    out.write_styled(f"{label} {100 * found.probability:.0f}%\t{''.join(pieces)}\n")


def shade(word: str, influence: float) -> str:
    """Green for the label, red against it, bold when strong, plain when next to nothing."""
    if abs(influence) < 0.1:
        return word
    color = "32" if influence > 0 else "31"
    weight = "1;" if abs(influence) > 0.5 else ""
    return f"\x1b[{weight}{color}m{word}\x1b[0m"
