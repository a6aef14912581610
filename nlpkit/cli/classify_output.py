"""What ``nlpkit classify`` writes: predictions, scores, coloured explanations."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nlpkit.cli.output import Writer
from nlpkit.cli.reports import Section, facts, percent
from nlpkit.cli.tag_report import confusions, draw_matrix, measures
from nlpkit.tasks.classify.explain import explain
from nlpkit.text.records import with_record
from nlpkit.text.vocab import on_one_line
from nlpkit.textplot import sparkline

if TYPE_CHECKING:
    from nlpkit.tasks.classify.fasttext import AnyClassifier
    from nlpkit.tasks.classify.predictor import Classifier
    from nlpkit.tasks.classify.scores import LabelScores

PAIR = ("text", "text2")
MOST_LABELS = 30  # of a confusion matrix


def write_predictions(
    out: Writer,
    classifier: AnyClassifier,
    texts: Sequence[Any],
    *,
    records: Sequence[dict[str, Any]],
    k: int,
    threshold: float,
    format: str,
) -> None:
    """A line for each text with its likeliest labels; a text without a word has none."""
    probabilities = classifier.probabilities(texts)
    names = classifier.labels.tokens
    count = min(k, len(names))
    if count == 1:
        order = probabilities.argmax(axis=1)[:, None]
    else:
        order = np.argsort(-probabilities, axis=1, kind="stable")[:, :count]
    shown = np.take_along_axis(probabilities, order, axis=1)
    shown[[not text.strip() for text in texts]] = -1.0  # below any threshold
    rows = zip(texts, order.tolist(), shown.tolist(), strict=True)
    if format == "jsonl":
        for (text, labels, sure), record in zip(rows, records, strict=True):
            found = [
                {"label": names[label], "probability": round(share, 6)}
                for label, share in zip(labels, sure, strict=True)
                if share >= threshold
            ]
            said = {"text": text} if isinstance(text, str) else dict(zip(PAIR, text, strict=True))
            out.write_json({**(record or said), "labels": found})
        return
    names = list(map(on_one_line, names))
    lines = []
    for _, labels, sure in rows:
        pairs = zip(labels, sure, strict=True)
        lines.append("\t".join([f"{names[i]}\t{p:.4f}" for i, p in pairs if p >= threshold]))
    out.write("".join(line + "\n" for line in lines))


def scores_record(scores: LabelScores, *, confusion: bool) -> dict[str, Any]:
    """The numbers of ``classify evaluate``, as shares from 0 to 1."""
    record: dict[str, Any] = {
        "texts": scores.texts,
        "accuracy": scores.accuracy,
        "macro_f1": scores.macro_f1,
        "micro_f1": scores.micro.f1,
        "calibration_error": scores.calibration_error,
        "labels": {
            name: {
                "precision": counts.precision,
                "recall": counts.recall,
                "f1": counts.f1,
                "true": counts.true,
                "predicted": counts.predicted,
            }
            for name, counts in scores.labels.items()
        },
        "calibration": [part._asdict() for part in scores.bins],
    }
    if confusion:
        record["confusions"] = [[*pair, n] for pair, n in scores.confusions.most_common()]
    return record


def score_sections(scores: LabelScores, *, confusion: bool) -> list[Section]:
    """Scores as tables: facts, a row for each label, confusions."""
    curve = sparkline([part.accuracy for part in scores.bins])
    sections = [
        facts(
            ("texts", scores.texts),
            ("accuracy", percent(scores.accuracy)),
            ("macro F1", percent(scores.macro_f1)),
            ("micro F1", percent(scores.micro.f1)),
            (
                "calibration error",
                percent(scores.calibration_error),
                f"{curve} accuracy, least sure to surest",
            ),
        ),
        measures("label", scores.labels),
    ]
    return [*sections, *([confusions(*confusion_matrix(scores))] if confusion else [])]


def confusion_matrix(scores: LabelScores) -> tuple[list[str], list[list[int]]]:
    """The most frequent labels and how often each (row) was taken for each (column)."""
    names = sorted(scores.labels, key=lambda name: (-scores.labels[name].true, name))[:MOST_LABELS]
    return names, [[scores.confusions[right, found] for found in names] for right in names]


def draw_scores(scores: LabelScores, path: str) -> None:
    """A picture of the confusions, and beside it how sure and how right decisions are."""
    draw_matrix(*confusion_matrix(scores), path, beside=lambda axes: draw_calibration(axes, scores))


def draw_calibration(axes: Any, scores: LabelScores) -> None:
    """Accuracy by confidence (a reliability diagram); a dot is as large as its share of texts."""
    total = max(1, sum(part.texts for part in scores.bins))
    sure = [part.confidence for part in scores.bins]
    right = [part.accuracy for part in scores.bins]
    axes.plot([0, 1], [0, 1], "--", color="#b5bac4", label="as sure as right")
    axes.plot(sure, right, color="#2a78c2", linewidth=1)
    sizes = [20 + 300 * part.texts / total for part in scores.bins]
    axes.scatter(sure, right, s=sizes, color="#2a78c2", alpha=0.7, label="texts, by confidence")
    axes.set(xlabel="confidence", ylabel="accuracy", xlim=(0, 1.05), ylim=(0, 1.05))
    axes.set_title(f"calibration error {100 * scores.calibration_error:.2f}%")
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left", fontsize=8)


def explain_format() -> str:
    """Colours for a person, columns for a program."""
    return "color" if sys.stdout is not None and sys.stdout.isatty() else "tsv"


def write_explanation(
    out: Writer, classifier: Classifier, text: str, label: str | None, format: str
) -> None:
    """One text with the influence of its words."""
    found = explain(classifier, text, label)
    words: list[dict[str, Any]] = [
        {"word": text[start:end], "start": start, "end": end, "influence": round(influence, 4)}
        for (start, end), influence in zip(found.spans, found.influence, strict=True)
    ]
    if format == "jsonl":
        record = {"text": text, "label": found.label, "probability": round(found.probability, 6)}
        out.write_json(with_record(text, {**record, "words": words}))
        return
    if format == "tsv":
        out.write(f"{on_one_line(found.label)}\t{found.probability:.4f}\n")
        for word in words:
            out.write(f"{on_one_line(word['word'])}\t{word['influence']:+.4f}\n")
        out.write("\n")
        return
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
