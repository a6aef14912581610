"""What ``nlpkit tag evaluate`` and ``nlpkit tag check`` show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nlpkit.cli.output import Writer

if TYPE_CHECKING:
    from nlpkit.metrics.spans import Counts, TagScores
    from nlpkit.tasks.tag.check import DataReport, OverlapReport
    from nlpkit.tasks.tag.evaluate import Evaluation

MOST_TAGS = 30  # of a confusion matrix
SHOWN_ILLEGAL = 10


def show_scores(
    out: Writer, result: Evaluation, *, json: bool, confusion: bool, worst: int
) -> None:
    """Scores as lines of text or as one JSON object."""
    scores = result.scores
    record = scores_record(scores)
    if json:
        if confusion:
            record["confusions"] = [
                [right, found, count] for (right, found), count in scores.confusions.most_common()
            ]
        if worst:
            record["worst"] = [
                {"where": s.where(0), "tokens": s.tokens, "tags": s.tags, "predicted": tags}
                for s, tags, _ in result.worst(worst)
            ]
        out.write_json(record)
        return
    out.write(f"tokens\t{scores.tokens}\n")
    out.write(f"accuracy\t{100 * scores.accuracy:.2f}%\n")
    if scores.known:
        share = 100 * scores.known / scores.tokens
        out.write(f"known words\t{100 * scores.known_accuracy:.2f}%\t{share:.1f}% of tokens\n")
        if scores.known < scores.tokens:
            unknown = 100 * scores.unknown_accuracy
            out.write(f"unknown words\t{unknown:.2f}%\t{100 - share:.1f}%\n")
    share = 100 * scores.right_sentences / max(1, scores.sentences)
    out.write(f"whole sentences\t{share:.2f}%\tof {scores.sentences}\n")
    if scores.entities is not None:
        out.write(f"entities\t{_measures(scores.entities)}\n")
    out.write("\ntag\tprecision\trecall\tF1\tcount\n")
    table = scores.tags if scores.entities is None else scores.types
    for name, counts in sorted(table.items(), key=lambda pair: -pair[1].true):
        out.write(
            f"{name}\t{100 * counts.precision:.2f}\t{100 * counts.recall:.2f}\t"
            f"{100 * counts.f1:.2f}\t{counts.true}\n"
        )
    if confusion:
        _show_confusions(out, scores)
    for sentence, tags, wrong in result.worst(worst):
        out.write(f"\n{sentence.where(0)}: {wrong} mistakes\n")
        for token, right, found in zip(sentence.tokens, sentence.tags, tags, strict=True):
            mark = "" if right == found else f"\t<- {found}"
            out.write(f"{token}\t{right}{mark}\n")


def _measures(counts: Counts) -> str:
    return (
        f"F1 {100 * counts.f1:.2f}%\tprecision {100 * counts.precision:.2f}%\t"
        f"recall {100 * counts.recall:.2f}%\t{counts.right} of {counts.true}"
    )


def scores_record(scores: TagScores) -> dict[str, Any]:
    """The numbers of ``tag evaluate``, as shares from 0 to 1."""
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


def _show_confusions(out: Writer, scores: TagScores) -> None:
    names, rows = confusion_matrix(scores)
    out.write("\nright \\ predicted\t" + "\t".join(names) + "\n")
    for name, row in zip(names, rows, strict=True):
        out.write(name + "\t" + "\t".join(str(count) if count else "." for count in row) + "\n")


def draw_confusions(scores: TagScores, path: str) -> None:
    """A picture of the confusions, each row scaled to its tag's number."""
    names, rows = confusion_matrix(scores)
    draw_matrix(names, rows, path)


def draw_matrix(names: list[str], rows: list[list[int]], path: str) -> None:
    """Counts as a picture: rows are what is right, columns what was predicted."""
    from nlpkit.plots import figure, save_figure

    shares = [[count / max(1, sum(row)) for count in row] for row in rows]
    size = max(4.0, 1.5 + 0.4 * len(names))
    drawn, axes = figure(size + 1, size)
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    axes.set_xticks(range(len(names)), names, rotation=90)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("predicted")
    axes.set_ylabel("right")
    for i, row in enumerate(rows):
        for j, count in enumerate(row):
            if count and len(names) <= 20:
                color = "white" if shares[i][j] > 0.6 else "black"
                axes.text(j, i, str(count), ha="center", va="center", color=color, fontsize=7)
    drawn.colorbar(image, label="share of the row")
    save_figure(drawn, path)


def show_check(
    out: Writer, reports: list[DataReport], overlaps: list[OverlapReport], *, json: bool
) -> None:
    """Reports as lines of text or as JSON objects."""
    if json:
        for report in [*reports, *overlaps]:
            out.write_json(vars(report))
        return
    for report in reports:
        out.write(f"{report.name}\n")
        out.write(f"  sentences\t{report.sentences}\tlongest {report.longest} tokens\n")
        out.write(f"  tokens\t{report.tokens}\t{report.types} distinct\n")
        out.write(f"  repeated\t{report.duplicates}\n")
        if report.scheme is not None:
            kinds = "  ".join(f"{kind} {count}" for kind, count in report.entities.most_common())
            out.write(f"  {report.scheme} entities\t{kinds}\n")
        tags = "  ".join(f"{tag} {count}" for tag, count in report.tags.most_common(MOST_TAGS))
        out.write(f"  {len(report.tags)} tags\t{tags}\n")
        for line in report.illegal[:SHOWN_ILLEGAL]:
            out.write(f"  illegal\t{line}\n")
        if len(report.illegal) > SHOWN_ILLEGAL:
            out.write(f"  illegal\tand {len(report.illegal) - SHOWN_ILLEGAL} more\n")
        for line in report.advice:
            out.write(f"  advice\t{line}\n")
    for overlap in overlaps:
        out.write(f"{overlap.second} against {overlap.first}\n")
        out.write(f"  shared\t{overlap.shared} sentences\n")
        out.write(f"  unknown\t{100 * overlap.unknown_rate:.1f}% of tokens\n")
        for line in overlap.advice:
            out.write(f"  advice\t{line}\n")
