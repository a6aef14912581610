"""``nlpkit vectors evaluate``: scores on analogies and word pairs, of one set or two."""

from __future__ import annotations

import os
from dataclasses import astuple
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nlpkit import settings as limits
from nlpkit import textio
from nlpkit.cli import options
from nlpkit.cli import vectors_options as shared
from nlpkit.cli.flags import argument, flag
from nlpkit.cli.frame import new_app
from nlpkit.cli.output import Notes, check_output, open_output, rows_format, write_rows
from nlpkit.errors import NlpkitError
from nlpkit.text.records import row_lines
from nlpkit.vectors.settings import EVALUATION, AnalogyMethod, EvaluationSettings

if TYPE_CHECKING:
    from nlpkit.vectors.similarities import WordPair

app = new_app("Score vectors on analogies or word pairs.")

Compare = Annotated[
    str | None,
    typer.Option(
        "--compare", metavar="VECTORS", help="Test whether these do better or worse, item by item."
    ),
]
KeepCase = Annotated[
    bool,
    typer.Option(
        "--keep-case", help="King is not king; else case is folded to the most frequent spelling."
    ),
]
Items = Annotated[
    str | None,
    typer.Option(
        "--items",
        metavar="FILE",
        help="Write each item with what was found, as JSON lines; records keep their other keys.",
    ),
]


@app.command()
def analogies(
    *,
    file: str = argument(..., "Questions: four words per line, or JSON lines.", metavar="FILE"),
    model: shared.ModelOption,
    compare: Compare = None,
    restrict: int = flag(
        EVALUATION.restrict, "Only the N most frequent words.", min=1, max=limits.MANY, metavar="N"
    ),
    method: AnalogyMethod = flag(EVALUATION.method, "How the fourth word is scored."),
    keep_case: KeepCase = not EVALUATION.fold_case,
    items: Items = None,
    format: options.RowsFormat = None,
) -> None:
    """Count how many analogies come out right, by section and in total.

    FILE has ': section' lines and four words per line, or JSON lines with the keys a, b, c, d and
    section. Keys of --items: section, a, b, c, d, answer (null where a word is unknown), right.

    Columns (keys of jsonl): section, correct, answered, questions, coverage (answered of all),
    accuracy (correct of answered) and its 95 % interval, low and high; jsonl also has protocol,
    which else is said on stderr.

    With --compare the columns are section, shared (questions that both sets can answer), first and
    second (accuracies), only_first and only_second (right in one set alone), and p of McNemar's
    exact test.

    Examples:
      $ nlpkit vectors evaluate analogies sample_corpora/world-analogies.txt -m world.model
      $ nlpkit vectors evaluate analogies questions-words.txt -m a.model --compare b.model --json
    """
    from nlpkit.vectors.analogies import compare_analogies, evaluate_analogies, read_questions

    shown, notes = rows_format(format), Notes()
    if items is not None:
        check_output(items)
    questions = read_questions(row_lines(file, ("a", "b", "c", "d")), file)
    settings = EvaluationSettings(restrict=restrict, method=method, fold_case=not keep_case)
    report = evaluate_analogies(shared.open_vectors(model, notes), questions, settings)
    notes.say(f"protocol: {report.protocol}")
    if items is not None:
        with open_output(items) as out:
            answers = zip(questions, report.answers, report.outcomes.tolist(), strict=True)
            for one, answer, outcome in answers:
                made = {"section": one.section, **dict(zip("abcd", one.words, strict=True))}
                right = None if answer is None else outcome == 1
                out.write_json({**one.record, **made, "answer": answer, "right": right})
    if compare is not None:
        other = evaluate_analogies(shared.open_vectors(compare, notes), questions, settings)
        columns = ["section", "shared", "first", "second", "only_first", "only_second", "p"]
        rows = [list(astuple(section)) for section in compare_analogies(report, other)]
    else:
        columns = ["section", "correct", "answered", "questions", "coverage", "accuracy"]
        columns += ["low", "high"]
        rows = [
            [*astuple(score), score.answered / score.questions, score.accuracy, *score.interval]
            for score in [*report.sections, report.total]
        ]
    if shown == "jsonl":
        columns, rows = [*columns, "protocol"], [[*row, report.protocol] for row in rows]
    with open_output("-") as out:
        write_rows(out, columns, rows, shown)


@app.command()
def similarity(
    *,
    file: str = argument(
        ...,
        "Two words and a score per line, # is a comment; JSON lines; or a folder of such.",
        metavar="FILE",
    ),
    model: shared.ModelOption,
    compare: Compare = None,
    keep_case: KeepCase = not EVALUATION.fold_case,
    items: Items = None,
    seed: options.Seed = EVALUATION.seed,
    format: options.RowsFormat = None,
) -> None:
    """Correlate cosines with people's judgements of how alike two words are.

    Columns (keys of jsonl): spearman and its 95 % interval, low and high; pearson; known and pairs
    (how many of the file's pairs have both words); jsonl also has protocol, which else is said on
    stderr. For a folder there is a row for each of its files; set, the file's name, comes first; a
    file of which too few words are known is left out with a warning.
    JSON lines have word1, word2 and score. Keys of --items: word1, word2, score, cosine (or null).

    With --compare the columns are shared (pairs that both sets know), first and second (Spearman),
    difference, its 95 % interval low and high, and p, by a paired bootstrap with --seed.

    Examples:
      $ nlpkit vectors evaluate similarity sample_corpora/world-pairs.tsv -m world.model
      $ nlpkit vectors evaluate similarity wordsim353.tsv -m a.model --compare b.model --json
      $ nlpkit vectors evaluate similarity pairs/ -m a.model --compare b.model
    """
    from nlpkit.vectors.similarities import compare_similarity, evaluate_similarity, read_pairs

    shown, notes = rows_format(format), Notes()
    if items is not None:
        check_output(items)
    sets = _sets(file)
    pairs_of = {name: read_pairs(textio.read_lines(path), path) for name, path in sets.items()}
    loaded = shared.open_vectors(model, notes)
    second = None if compare is None else shared.open_vectors(compare, notes)
    columns = ["spearman", "low", "high", "pearson", "known", "pairs"]
    if second is not None:
        columns = ["shared", "first", "second", "difference", "low", "high", "p"]
    rows: list[list[Any]] = []
    found_items: list[dict[str, Any]] = []
    for number, (name, pairs) in enumerate(pairs_of.items(), start=1):
        row: list[Any] = [name] if os.path.isdir(file) else []
        try:
            report = evaluate_similarity(loaded, pairs, fold_case=not keep_case)
            if second is not None:
                other = evaluate_similarity(second, pairs, fold_case=not keep_case)
                found = compare_similarity(pairs, report, other, seed=seed)
        except NlpkitError as error:
            if not rows and number == len(pairs_of):
                raise
            notes.warn(f"{name} is left out: {error.message}")
            continue
        if not rows:
            notes.say(f"protocol: {report.protocol}")
        if second is None:
            row += [report.spearman, *report.interval, report.pearson, report.known, report.pairs]
        else:
            row += [found.shared, found.first_spearman, found.second_spearman, *found.bootstrap]
        rows.append([*row, report.protocol] if shown == "jsonl" else row)
        found_items += [
            {**one.record, **_pair(one), "cosine": round(cosine, 6) if cosine == cosine else None}
            for one, cosine in zip(pairs, report.cosines.tolist(), strict=True)
        ]
    if items is not None:
        with open_output(items) as out:
            for item in found_items:
                out.write_json(item)
    if os.path.isdir(file):
        columns = ["set", *columns]
    if shown == "jsonl":
        columns = [*columns, "protocol"]
    with open_output("-") as out:
        write_rows(out, columns, rows, shown)


def _pair(one: WordPair) -> dict[str, Any]:
    return {"word1": one.first, "word2": one.second, "score": one.score}


def _sets(path: str) -> dict[str, str]:
    """The files to score on, by name: the file itself, or all of a folder."""
    if not os.path.isdir(path):
        return {path: path}
    files = sorted(
        name
        for name in os.listdir(path)
        if not name.startswith(".") and os.path.isfile(os.path.join(path, name))
    )
    if not files:
        raise NlpkitError(f"{path} is a folder without files", hint="files of word pairs")
    return {name: os.path.join(path, name) for name in files}
