"""``nlpkit seq2seq evaluate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nlpkit.cli import options
from nlpkit.cli.flags import flag, with_settings
from nlpkit.cli.output import Notes, check_output, open_output, write_rows
from nlpkit.cli.seq2seq_pairs import PairFlags
from nlpkit.cli.seq2seq_use import Quantize, open_translator
from nlpkit.tasks.translate.settings import PredictSettings

if TYPE_CHECKING:
    from nlpkit.metrics.text import TextStatistics
    from nlpkit.tasks.translate.data import Pair
    from nlpkit.tasks.translate.evaluate import LengthScore
    from nlpkit.tasks.translate.model import Translator

_SHOWN = {
    "bleu": "BLEU",
    "chrf": "chrF",
    "exact": "exact match %",
    "edit_distance": "edit distance",
    "token_error_rate": "token error %",
}


@with_settings(PairFlags, options.Rows, options.Use, options.Decoding)
def evaluate(
    *,
    model: options.Model,
    where: PairFlags,
    beams: int = flag(PredictSettings().beams, "Hypotheses that are followed.", min=1, max=200),
    compare: str | None = flag(
        None, "Another model on the same pairs, to see which is better.", metavar="OTHER"
    ),
    answers: str | None = flag(None, "Write the answers, too.", metavar="FILE"),
    plot: str | None = flag(None, "Draw BLEU by length of the source.", metavar="FILE"),
    display: options.Rows,
    quantize: Quantize = "none",
    seed: options.Seed = 1,
    use: options.Use,
    decoding: options.Decoding,
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
    from nlpkit.plots import check_picture
    from nlpkit.tasks.translate.data import without_empty

    shown = display.shown
    if plot is not None:
        check_picture(plot)
    if answers is not None:
        check_output(answers)
    data, empty = without_empty(where.load(decoding))
    if empty:
        Notes().warn(f"{empty:,} pairs with an empty side are not counted")
    curves: dict[str, list[LengthScore]] = {}
    found: list[TextStatistics] = []
    paths = [model] if compare is None else [model, compare]
    translators = [open_translator(path, use, quantize) for path in paths]  # before the work
    for path, translator in zip(paths, translators, strict=True):
        texts, statistics = _answer(translator, data, beams)
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
        write_rows(out, *_scores(found, seed), shown)


def _scores(found: list[TextStatistics], seed: int) -> tuple[tuple[str, ...], list[Any]]:
    """Columns and rows: scores of one model with their intervals, or of two side by side."""
    from nlpkit.metrics.text import compare_texts

    if len(found) > 1:
        compared = compare_texts(found[0], found[1], seed)
        both = [(_SHOWN[one.name], one.score, one.other, one.p_value) for one in compared]
        return ("metric", "score", "other", "p"), both
    draws = found[0].draws(seed)
    scores = [found[0].interval(name, draws) for name in found[0].NAMES]
    rows = [(_SHOWN[s.name], s.score, s.low, s.high, s.signature) for s in scores]
    return ("metric", "score", "low", "high", "signature"), rows


def _answer(
    translator: Translator, data: list[Pair], beams: int
) -> tuple[list[str], TextStatistics]:
    """A model's answers, and what they add to the scores."""
    from nlpkit.metrics.text import TextStatistics
    from nlpkit.tasks.translate.evaluate import token_splitter

    found = translator.predict([pair.source for pair in data], PredictSettings(beams=beams))
    texts = [" ".join(one[0].text.splitlines()) for one in found]
    split = token_splitter(translator.target)
    return texts, TextStatistics(texts, [pair.target for pair in data], split)
