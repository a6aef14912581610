"""What ``nlpkit tag`` shows: columns, word/TAG lines, JSON, colours; scores and checks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from nlpkit.cli.output import Section, Writer, facts, percent, write_report
from nlpkit.errors import UsageError
from nlpkit.metrics.calibration import Bin, calibration_error
from nlpkit.tasks.tag.raw import InputKind, Item, analyse, items
from nlpkit.tasks.tag.records import SPAN_KEYS, TAG_KEYS
from nlpkit.text import conll
from nlpkit.text.conll import Layout
from nlpkit.text.vocab import on_one_line
from nlpkit.textio import TextBlock
from nlpkit.textplot import sparkline

if TYPE_CHECKING:
    from collections import Counter

    from nlpkit.metrics.spans import Counts
    from nlpkit.tasks.tag.check import DataReport, OverlapReport
    from nlpkit.tasks.tag.evaluate import Evaluation
    from nlpkit.tasks.tag.predictor import Tagger

_COLORS = ("36", "33", "35", "32", "34", "31")


def predict_stream(
    tagger: Tagger,
    blocks: Iterable[TextBlock],
    out: Writer,
    *,
    input: InputKind,
    format: str,
    errors: str,
    token_column: int | None,
    to_file: bool,
) -> None:
    """Tag block after block; the order of the input is the order of the output."""
    layout, batches = items(tagger, blocks, kind=input, errors=errors, token_column=token_column)
    chosen: str | None = None
    for batch in batches:
        chosen = chosen or _pick(format, layout, tagger, to_file)
        if chosen == "color":
            for record in analyse(tagger, batch):
                line = _colored(record["text"], record.get("entities", []), out.safe)
                out.write_styled(line + "\n")
        elif chosen == "jsonl":
            for record in analyse(tagger, batch):
                out.write_json(record)
        elif chosen in ("spans", "ner_tags"):
            records = (item.record or {} for item in batch if item.sentence is None or item.tokens)
            for given, record in zip(records, analyse(tagger, batch), strict=True):
                out.write_json((_spans if chosen == "spans" else _ner_tags)(given, record))
        else:
            _write_tagged(tagger, batch, out, layout if chosen == "columns" else None)
        out.flush()


def _spans(given: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """A text with its entities as [start, end, type], as annotation tools read them."""
    key = next((key for key in SPAN_KEYS if key in given), "entities")
    found = [[one["start"], one["end"], one["type"]] for one in record.get("entities", [])]
    return {**given, "text": record["text"], key: found}


def _ner_tags(given: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """Tokens with their tags, as data sets of Hugging Face have them."""
    key = next((key for key in TAG_KEYS if key in given), "ner_tags")
    return {**given, "tokens": record["tokens"], key: record["tags"]}


def _pick(format: str, layout: Layout | None, tagger: Tagger, to_file: bool) -> str:
    if format == "columns" and layout is None:
        raise UsageError("--format columns needs input in columns")
    if format == "spans" and tagger.scheme is None:
        raise UsageError("--format spans needs a model of entities: these tags are of single words")
    if format != "auto":
        return format
    if layout is not None:
        return "columns"
    on_terminal = not to_file and sys.stdout is not None and sys.stdout.isatty()
    colors = on_terminal and tagger.scheme is not None and not os.environ.get("NO_COLOR")
    return "color" if colors else "slash"


def _write_tagged(
    tagger: Tagger, batch: Sequence[Item], out: Writer, layout: Layout | None
) -> None:
    rows = tagger.tag_sentences([item.tokens for item in batch])
    pieces = []
    for item, tags in zip(batch, rows, strict=True):
        if layout is not None and item.sentence is not None:
            pieces.append(conll.with_tags(item.sentence, tags, layout))
        elif item.sentence is None or item.tokens:
            line = conll.pairs_text if tagger.settings.unit == "char" else conll.slash_text
            pieces.append(line(item.tokens, tags) + "\n")
    out.write("".join(pieces))


def _colored(text: str, entities: list[dict[str, Any]], safe: Callable[[str], str]) -> str:
    """The text with its entities in colour, each followed by its type."""
    pieces = []
    done = 0
    for entity in entities:
        color = _COLORS[sum(entity["type"].encode()) % len(_COLORS)]
        words, kind = safe(entity["text"]), safe(entity["type"])
        pieces.append(safe(text[done : entity["start"]]))
        pieces.append(f"\x1b[1;{color}m{words}\x1b[0m\x1b[2m[{kind}]\x1b[0m")
        done = entity["end"]
    return "".join([*pieces, safe(text[done:])])


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
        sections.append(confusions(*confusion_matrix(scores.tags, scores.confusions)))
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
        "tags": {name: counts_record(counts) for name, counts in sorted(scores.tags.items())},
    }
    if scores.known:
        record["known_tokens"] = scores.known
        record["known_accuracy"] = scores.known_accuracy
        record["unknown_accuracy"] = scores.unknown_accuracy
    if scores.entities is not None:
        record["entities"] = counts_record(scores.entities)
        record["types"] = {
            name: counts_record(counts) for name, counts in sorted(scores.types.items())
        }
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


def counts_record(counts: Counts) -> dict[str, float]:
    """The measures of a tag or label, for JSON."""
    return {
        "precision": counts.precision,
        "recall": counts.recall,
        "f1": counts.f1,
        "true": counts.true,
        "predicted": counts.predicted,
    }


def confusion_matrix(
    counts: dict[str, Counts], confusions: Counter[tuple[str, str]]
) -> tuple[list[str], list[list[int]]]:
    """The most frequent tags or labels, and how often each (row) was taken for each (column)."""
    ranked = sorted(counts, key=lambda name: (-counts[name].true, name))[:MOST_TAGS]
    return ranked, [[confusions[right, found] for found in ranked] for right in ranked]


def draw_scores(result: Evaluation, path: str) -> None:
    """A picture of the confusions, and beside it, of a model, how sure and how right tags are."""
    scores = result.scores
    draw_matrix(*confusion_matrix(scores.tags, scores.confusions), path, result.bins, "tokens")


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
