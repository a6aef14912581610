"""What ``nlpkit tag evaluate`` and ``nlpkit tag check`` show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nlpkit.cli.output import Writer
from nlpkit.cli.reports import Section, facts, percent, write_report
from nlpkit.metrics.calibration import Bin, calibration_error
from nlpkit.text.vocab import on_one_line
from nlpkit.textplot import sparkline

if TYPE_CHECKING:
    from nlpkit.metrics.spans import Counts, TagScores
    from nlpkit.tasks.tag.check import DataReport, OverlapReport
    from nlpkit.tasks.tag.evaluate import Evaluation

MOST_TAGS = 30  # of a confusion matrix
SHOWN_ILLEGAL = 10


def score_sections(result: Evaluation, *, confusion: bool, worst: int) -> list[Section]:
    """Scores as tables: facts, a row for each tag, confusions, the worst sentences."""
    scores = result.scores
    rows: list[tuple[Any, ...]] = [
        ("tokens", scores.tokens),
        ("accuracy", percent(scores.accuracy)),
    ]
    if scores.known:
        share = scores.known / scores.tokens
        known = f"{percent(share, 1)} of tokens"
        rows.append(("known words", percent(scores.known_accuracy), known))
        if scores.known < scores.tokens:
            unknown = f"{percent(1 - share, 1)} of tokens"
            rows.append(("unknown words", percent(scores.unknown_accuracy), unknown))
    whole = scores.right_sentences / max(1, scores.sentences)
    rows.append(("whole sentences", percent(whole), f"of {scores.sentences}"))
    if scores.entities is not None:
        found = f"{scores.entities.right} of {scores.entities.true} found"
        rows.append(("entity F1", percent(scores.entities.f1), found))
        rows.append(("entity precision", percent(scores.entities.precision)))
        rows.append(("entity recall", percent(scores.entities.recall)))
    if result.bins:
        rows.append(calibration_fact(result.bins))
    table = scores.tags if scores.entities is None else scores.types
    sections = [facts(*rows), measures("tag", table)]
    if confusion:
        sections.append(confusions(*confusion_matrix(scores)))
    for sentence, tags, wrong in result.worst(worst):
        triples = zip(sentence.tokens, sentence.tags, tags, strict=True)
        cells = [(token, right, "" if right == tag else tag) for token, right, tag in triples]
        title = f"{sentence.where(0)}: {wrong} mistakes"
        sections.append(Section(("token", "right", "predicted"), cells, title))
    return sections


def calibration_fact(bins: Sequence[Bin]) -> tuple[str, str, str]:
    """How far sure and right are from each other, for a report."""
    curve = sparkline([part.accuracy for part in bins])
    error = percent(calibration_error(bins))
    return "calibration error", error, f"{curve} accuracy, least sure to surest"


def measures(name: str, counts: dict[str, Any]) -> Section:
    """Precision, recall and F1 in percent, the most frequent first."""
    rows = [
        (
            on_one_line(key),
            f"{100 * one.precision:.2f}",
            f"{100 * one.recall:.2f}",
            f"{100 * one.f1:.2f}",
            one.true,
        )
        for key, one in sorted(counts.items(), key=lambda pair: -pair[1].true)
    ]
    return Section((name, "precision", "recall", "F1", "count"), rows)


def confusions(names: list[str], rows: list[list[int]]) -> Section:
    """How often what is right (rows) was taken for what (columns)."""
    names = list(map(on_one_line, names))
    cells = [[name, *row] for name, row in zip(names, rows, strict=True)]
    return Section(("right \\ predicted", *names), cells, is_matrix=True)


def scores_record(result: Evaluation, *, confusion: bool, worst: int) -> dict[str, Any]:
    """The numbers of ``tag evaluate``, as shares from 0 to 1."""
    scores = result.scores
    record: dict[str, Any] = {
        "tokens": scores.tokens,
        "accuracy": scores.accuracy,
        "sentences": scores.sentences,
        "right_sentences": scores.right_sentences,
        "tags": {name: _record(counts) for name, counts in sorted(scores.tags.items())},
    }
    if scores.known:
        record["known_tokens"] = scores.known
        record["known_accuracy"] = scores.known_accuracy
        record["unknown_accuracy"] = scores.unknown_accuracy
    if scores.entities is not None:
        record["entities"] = _record(scores.entities)
        record["types"] = {name: _record(counts) for name, counts in sorted(scores.types.items())}
    if result.bins:
        record["calibration_error"] = calibration_error(result.bins)
        record["calibration"] = [
            {"tokens": n, "confidence": p, "accuracy": a} for n, p, a in result.bins
        ]
    if confusion:
        record["confusions"] = [
            [right, found, count] for (right, found), count in scores.confusions.most_common()
        ]
    if worst:
        record["worst"] = [
            {"where": s.where(0), "tokens": s.tokens, "tags": s.tags, "predicted": tags}
            for s, tags, _ in result.worst(worst)
        ]
    return record


def _record(counts: Counts) -> dict[str, float]:
    return {
        "precision": counts.precision,
        "recall": counts.recall,
        "f1": counts.f1,
        "true": counts.true,
        "predicted": counts.predicted,
    }


def confusion_matrix(scores: TagScores) -> tuple[list[str], list[list[int]]]:
    """The most frequent tags and how often each (row) was taken for each (column)."""
    ranked = sorted(scores.tags, key=lambda tag: (-scores.tags[tag].true, tag))[:MOST_TAGS]
    return ranked, [[scores.confusions[right, found] for found in ranked] for right in ranked]


def draw_scores(result: Evaluation, path: str) -> None:
    """A picture of the confusions, and beside it, of a model, how sure and how right tags are."""
    draw_matrix(*confusion_matrix(result.scores), path, result.bins, "tokens")


def draw_matrix(
    names: list[str], rows: list[list[int]], path: str, bins: Sequence[Bin], unit: str
) -> None:
    """Counts as a picture, scaled to the row: rows are what is right, columns what was predicted.

    Beside it stands the calibration of decisions about a ``unit``, if there are any ``bins``.
    """
    from nlpkit.plots import hover_cells, label, panels, save_figure

    shares = [[count / max(1, sum(row)) for count in row] for row in rows]
    size = max(4.0, 1.5 + 0.4 * len(names))
    drawn, (axes, *others) = panels([size + 1, max(4.0, size)] if bins else [size + 1], size)
    for panel in others:
        draw_calibration(panel, bins, unit)
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    labels = list(map(label, names))
    axes.set_xticks(range(len(names)), labels, rotation=90)
    axes.set_yticks(range(len(names)), labels)
    axes.set_xlabel("predicted")
    axes.set_ylabel("right")
    for i, row in enumerate(rows):
        for j, count in enumerate(row):
            if count and len(names) <= 20:
                color = "white" if shares[i][j] > 0.6 else "black"
                axes.text(j, i, str(count), ha="center", va="center", color=color, fontsize=7)
    hover_cells(axes, [f"right {name}" for name in names], names, rows)
    drawn.colorbar(image, ax=axes, label="share of the row")
    save_figure(drawn, path)


def draw_calibration(axes: Any, bins: Sequence[Bin], unit: str) -> None:
    """Accuracy by confidence (a reliability diagram); a dot is as large as its share."""
    from nlpkit.plots import hover

    total = max(1, sum(part.decisions for part in bins))
    sure, right = [part.confidence for part in bins], [part.accuracy for part in bins]
    axes.plot([0, 1], [0, 1], "--", color="#b5bac4", label="as sure as right")
    axes.plot(sure, right, color="#2a78c2", linewidth=1)
    sizes = [20 + 300 * part.decisions / total for part in bins]
    name = f"{unit}, by confidence"
    dots = axes.scatter(sure, right, s=sizes, color="#2a78c2", alpha=0.7, label=name)
    hover(dots, [f"{n:,} {unit}: {100 * p:.1f}% sure, {100 * a:.1f}% right" for n, p, a in bins])
    axes.set(xlabel="confidence", ylabel="accuracy", xlim=(0, 1.05), ylim=(0, 1.05))
    axes.set_title(f"calibration error {percent(calibration_error(bins))}")
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left", fontsize=8)


def show_check(
    out: Writer, reports: list[DataReport], overlaps: list[OverlapReport], format: str
) -> None:
    """Reports as tables, or as JSON objects."""
    if format == "jsonl":
        for report in [*reports, *overlaps]:
            out.write_json(vars(report))
        return
    sections = [_data_section(report) for report in reports]
    sections += [
        facts(
            ("shared", overlap.shared, "sentences"),
            ("unknown", percent(overlap.unknown_rate, 1), "of tokens"),
            *(("advice", "", line) for line in overlap.advice),
        )._replace(title=f"{overlap.second} against {overlap.first}")
        for overlap in overlaps
    ]
    write_report(out, sections, {}, format)


def _data_section(report: DataReport) -> Section:
    rows: list[tuple[Any, ...]] = [
        ("sentences", report.sentences, f"longest {report.longest} tokens"),
        ("tokens", report.tokens, f"{report.types} distinct"),
        ("repeated", report.duplicates),
    ]
    if report.scheme is not None:
        kinds = _listed(report.entities.most_common())
        rows.append((f"{report.scheme} entities", report.entities.total(), kinds))
    rows.append(("tags", len(report.tags), _listed(report.tags.most_common(MOST_TAGS))))
    rows += [("illegal", "", line) for line in report.illegal[:SHOWN_ILLEGAL]]
    if len(report.illegal) > SHOWN_ILLEGAL:
        rows.append(("illegal", len(report.illegal), "in all"))
    rows += [("advice", "", line) for line in report.advice]
    return facts(*rows)._replace(title=report.name)


def _listed(counts: list[tuple[str, int]]) -> str:
    return "  ".join(f"{on_one_line(name)} {count}" for name, count in counts)
