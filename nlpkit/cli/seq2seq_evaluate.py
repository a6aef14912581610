"""``nlpkit seq2seq evaluate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nlpkit.cli import options, seq2seq_pairs
from nlpkit.cli.output import Notes, check_output, open_output, rows_format, write_rows
from nlpkit.cli.seq2seq_use import Quantize, open_translator
from nlpkit.tasks.translate.settings import PredictSettings

if TYPE_CHECKING:
    from nlpkit.metrics.text import TextStatistics
    from nlpkit.tasks.translate.data import Pair
    from nlpkit.tasks.translate.evaluate import LengthScore

_SHOWN = {
    "bleu": "BLEU",
    "chrf": "chrF",
    "exact": "exact match %",
    "edit_distance": "edit distance",
    "token_error_rate": "token error %",
}


def evaluate(
    model: options.Model,
    pairs: seq2seq_pairs.Pairs = None,
    source: seq2seq_pairs.SourceFile = None,
    target: seq2seq_pairs.TargetFile = None,
    source_columns: seq2seq_pairs.SourceColumns = None,
    target_column: seq2seq_pairs.TargetColumn = None,
    beams: Annotated[
        int, typer.Option("--beams", min=1, max=1000, help="Hypotheses that are followed.")
    ] = PredictSettings().beams,
    compare: Annotated[
        str | None,
        typer.Option(
            "--compare",
            metavar="OTHER",
            help="Another model on the same pairs, to see which is better.",
        ),
    ] = None,
    answers: Annotated[
        str | None, typer.Option("--answers", metavar="FILE", help="Write the answers, too.")
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option("--plot", metavar="FILE", help="Draw BLEU by length of the source."),
    ] = None,
    format: options.RowsFormat = None,
    json: options.Json = False,
    quantize: Quantize = "none",
    seed: options.Seed = 1,
    device: options.UseDevice = "auto",
    threads: options.Threads = 0,
    encoding: options.Encoding = "utf-8",
    errors: options.Errors = "strict",
    quiet: options.Quiet = False,
) -> None:
    """Score a model's answers to known pairs: BLEU, chrF, exact matches, errors of tokens.

    BLEU and chrF are sacrebleu's, with its signature. Tokens of error rates are words, or those of
    a model of characters or symbols. low and high are the 95 % interval by bootstrap. With
    --compare: both scores, and p, how likely so large a difference is between equals (paired
    bootstrap). Columns and keys: metric, score, low, high, signature; or metric, score, other, p.

    Examples:
      $ nlpkit seq2seq train sample_corpora/en-ca.tsv -o en-ca.model --max-time 30s
      $ nlpkit seq2seq evaluate en-ca.model sample_corpora/en-ca-test.tsv
      $ nlpkit seq2seq train sample_corpora/en-ca.tsv --attention none -o none.model --epochs 1
      $ nlpkit seq2seq evaluate en-ca.model sample_corpora/en-ca-test.tsv --compare none.model
    """
    from nlpkit.metrics.text import compare_texts
    from nlpkit.plots import check_picture
    from nlpkit.tasks.translate.data import without_empty

    notes = Notes(quiet)
    shown = rows_format(format, json)
    if plot is not None:
        check_picture(plot)
    if answers is not None:
        check_output(answers)
    columns = seq2seq_pairs.pick_columns(source_columns, target_column)
    data, empty = without_empty(
        seq2seq_pairs.load_pairs(pairs, source, target, columns, encoding, errors)
    )
    if empty:
        notes.warn(f"{empty:,} pairs with an empty side are not counted")
    curves: dict[str, list[LengthScore]] = {}
    found: list[TextStatistics] = []
    for path in (model, *([] if compare is None else [compare])):
        texts, statistics = _answer(path, data, beams, device, threads, quantize, notes)
        found.append(statistics)
        if plot is not None:
            from nlpkit.tasks.translate.evaluate import scores_by_length

            curves[path] = scores_by_length(data, texts)
        if answers is not None and path == model:
            with open_output(answers) as out:
                out.write("".join(f"{text}\n" for text in texts))
    if plot is not None:
        from nlpkit.tasks.translate.evaluate import draw_lengths

        draw_lengths(curves, plot)
    with open_output("-") as out:
        if compare is None:
            draws = found[0].draws(seed)
            scores = [found[0].interval(name, draws) for name in found[0].NAMES]
            rows = [(_SHOWN[s.name], s.score, s.low, s.high, s.signature) for s in scores]
            write_rows(out, ("metric", "score", "low", "high", "signature"), rows, shown)
        else:
            both = [
                (_SHOWN[one.name], one.score, one.other, one.p_value)
                for one in compare_texts(found[0], found[1], seed)
            ]
            write_rows(out, ("metric", "score", "other", "p"), both, shown)


def _answer(
    path: str,
    data: list[Pair],
    beams: int,
    device: str,
    threads: int,
    quantize: str,
    notes: Notes,
) -> tuple[list[str], TextStatistics]:
    """A model's answers, and what they add to the scores."""
    from nlpkit.metrics.text import TextStatistics
    from nlpkit.tasks.translate.evaluate import token_splitter

    translator = open_translator(path, device, threads, quantize, notes)
    found = translator.predict([pair.source for pair in data], PredictSettings(beams=beams))
    texts = [" ".join(one[0].text.splitlines()) for one in found]
    split = token_splitter(translator.target)
    return texts, TextStatistics(texts, [pair.target for pair in data], split)
