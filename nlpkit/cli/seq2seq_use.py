"""``nlpkit seq2seq predict``, ``score``, ``attention`` and ``evaluate``; where pairs are."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nlpkit.cli import options
from nlpkit.cli.flags import argument, flag, flag_field
from nlpkit.cli.options import Decoding, resolve_inputs
from nlpkit.cli.output import Notes, Writer, check_output, open_output, write_rows
from nlpkit.errors import UsageError, plural
from nlpkit.plots import check_picture
from nlpkit.settings import DATA
from nlpkit.tasks.translate.settings import PredictSettings
from nlpkit.text.records import TEXT_KEYS, Reading, with_record

if TYPE_CHECKING:
    from nlpkit.metrics.text import TextStatistics
    from nlpkit.tasks.translate.data import Columns, Pair
    from nlpkit.tasks.translate.evaluate import LengthScore
    from nlpkit.tasks.translate.model import Answer, Translator

Pairs = Annotated[
    str | None,
    typer.Argument(
        metavar="PAIRS",
        help="source<TAB>target a line; JSON lines, CSV or TSV with source and target; - is "
        "standard input.",
    ),
]
SourceFile = Annotated[
    str | None,
    typer.Option(
        "--source",
        metavar="FILE",
        help="Sources, one per line, with --target.",
        rich_help_panel=DATA,
    ),
]
TargetFile = Annotated[
    str | None,
    typer.Option(
        "--target", metavar="FILE", help="Their targets, one per line.", rich_help_panel=DATA
    ),
]


@dataclass(frozen=True)
class PairFlags:
    """Where pairs are."""

    pairs: Pairs = None
    source: SourceFile = None
    target: TargetFile = None
    source_columns: str | None = flag_field(
        None,
        "Columns of the source, from 1: text, then features such as V;PST.",
        metavar="N,N",
        shown_default="1",
        group=DATA,
    )
    target_column: int | None = flag_field(
        None, "Column of the target.", low=1, high=10_000, shown_default="2", group=DATA
    )

    def columns(self) -> Columns | None:
        """What the two flags say, if anything."""
        from nlpkit.tasks.translate.data import Columns

        if self.source_columns is None and self.target_column is None:
            return None
        return Columns.parse(self.source_columns or "1", self.target_column or 2)

    def load(self, decoding: Decoding) -> list[Pair]:
        """The pairs of one file or of two."""
        from nlpkit.tasks.translate.data import read_pairs, read_parallel

        columns, how = self.columns(), vars(decoding)
        if (self.source is None) != (self.target is None):
            raise UsageError("--source and --target go together")
        if self.source is not None and self.target is not None:
            if self.pairs is not None:
                raise UsageError("give PAIRS, or --source and --target, not both")
            return read_parallel(self.source, self.target, **how)
        [path] = resolve_inputs(self.pairs)
        return read_pairs(path, columns, **how)


_AT_ONCE = 1024  # lines that are sorted by length together
_TOKENS = 10_000  # that a command is expected to write, to choose a device by
_STRANGE = 0.5  # share of unknown tokens from which on something is wrong

Quantize = Annotated[
    Literal["none", "int8"], typer.Option("--quantize", help="Weights of 8 bits: faster.")
]


def open_translator(model: str, use: options.Use, quantize: str = "none") -> Translator:
    """A model on its device."""
    from nlpkit.tasks.translate.model import Translator

    translator = Translator.load(model)
    if quantize == "int8" and use.device == "auto":
        use = replace(use, device="cpu")
    options.place(translator.model, use, translator.work(_TOKENS))
    if quantize == "int8":
        translator.quantize()
    return translator


def predict(
    *,
    model: options.Model,
    settings: PredictSettings,
    inputs: options.Inputs = None,
    terms: str | None = flag(None, "source term<TAB>target term: it must be used.", metavar="FILE"),
    output: options.Output = "-",
    format: Literal["text", "table", "tsv", "csv", "jsonl", "markdown"] | None = flag(
        None,
        "text: answers; else rows of line, score, answer.",
        "--format",
        "-f",
        show_default="text, or tsv with --nbest",
    ),
    quantize: Quantize = "none",
    stats: bool = flag(False, "Say how fast it was, on stderr."),
    use: options.Use,
    reading: Reading,
) -> None:
    """Turn each line into what the model makes of it.

    Features of a source stand behind a tab (gehen<TAB>V;PST). With --nbest there are several lines
    for each line read, best first: line number, score, answer. The score is the log-probability
    divided by the length penalty ((5 + tokens) / 6) ** N of --length-penalty. Keys of --json:
    source, text, score, log_probability, tokens; with --nbest a list of these in nbest.

    Examples:
      $ nlpkit seq2seq train sample_corpora/en-ca.tsv -o en-ca.model --max-time 30s
      $ echo "The old cat sleeps in the garden." | nlpkit seq2seq predict en-ca.model
      $ echo "The old cat sleeps." | nlpkit seq2seq predict en-ca.model --nbest 3 --beams 5
      $ echo "The old cat sleeps." | nlpkit seq2seq predict en-ca.model --sampling --seed 7
    """
    from nlpkit.device import memory_advice
    from nlpkit.settings import check
    from nlpkit.tasks.translate.terms import read_terms

    check(settings)
    notes = Notes()
    if settings.nbest > settings.beams and not settings.sampling:
        raise UsageError(f"--nbest {settings.nbest} needs --beams {settings.nbest} or more")
    if settings.sampling and terms is not None:
        raise UsageError("--terms are found by searching: not with --sampling")
    shown = format or ("text" if settings.nbest == 1 else "tsv")
    if shown == "text" and settings.nbest > 1:
        raise UsageError("--format text has one answer a line: not with --nbest")
    glossary = [] if terms is None else read_terms(terms)
    paths = options.resolve_inputs(inputs)
    translator = open_translator(model, use, quantize)
    counts = _Counts()
    started = time.perf_counter()

    def answered(out: Writer) -> Iterator[tuple[int, str, Sequence[Answer]]]:
        keys = ("source", *TEXT_KEYS)
        for block in options.read_line_blocks(paths, reading, keys, tables=False):
            for lines in _groups(block):
                answers = translator.predict(lines, settings, terms=glossary, first=counts.lines)
                numbers = range(counts.lines + 1, counts.lines + len(lines) + 1)
                yield from zip(numbers, lines, answers, strict=True)
                counts.add(translator, lines, answers)
                out.flush()

    with open_output(output) as out, memory_advice("a smaller --batch-size or fewer --beams"):
        _write_answers(out, translator, answered(out), shown, settings.nbest)
    _say_counts(counts, translator, notes)
    if stats:
        seconds = max(time.perf_counter() - started, 1e-9)
        Notes().say(
            f"{plural(counts.lines, 'line')}, {plural(counts.tokens, 'token')} in {seconds:.2f} s, "
            f"{counts.tokens / seconds:,.1f} tokens/s"
        )


def _write_answers(
    out: Writer,
    translator: Translator,
    answered: Iterator[tuple[int, str, Sequence[Answer]]],
    shown: str,
    nbest: int,
) -> None:
    if shown == "jsonl":
        for _, line, found in answered:
            records = [_record(translator, answer) for answer in found]
            more = {"nbest": records} if nbest > 1 else {}
            out.write_json(with_record(line, {"source": line, **records[0], **more}))
        return
    every = ((number, answer) for number, _, found in answered for answer in found)
    # a line for a line, whatever is in it
    rows = ((n, one.score, " ".join(one.text.splitlines())) for n, one in every)
    if shown == "text":
        for _, _, text in rows:
            out.write(f"{text}\n")
    else:
        write_rows(out, ("line", "score", "answer"), rows, shown)


def _groups(lines: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(lines), _AT_ONCE):
        yield lines[start : start + _AT_ONCE]


class _Counts:
    """What happened, to be told in the end."""

    def __init__(self) -> None:
        self.lines = self.tokens = self.cut = self.loops = self.incomplete = 0
        self.read = self.unknown = self.tabs = 0

    def add(
        self, translator: Translator, lines: Sequence[str], answers: Sequence[Sequence[Answer]]
    ) -> None:
        self.lines += len(lines)
        for one in answers:
            self.tokens += len(one[0].ids) + 1
            self.cut += one[0].cut
            self.loops += one[0].cut > 0
            self.incomplete += not one[0].complete
        if not translator.source.features:
            self.tabs += sum("\t" in line for line in lines)
        texts = map(translator.readable, lines)
        ids = [index for text in texts for index in translator.source.encode(text)]
        self.read += len(ids)
        self.unknown += translator.source.count_unknown(ids)


def _say_counts(counts: _Counts, translator: Translator, notes: Notes) -> None:
    if translator.too_long:
        notes.warn(
            f"{plural(translator.too_long, 'line')} longer than the model's "
            f"{translator.longest} tokens, cut (try: nlpkit sentences first)"
        )
    if counts.tabs:
        notes.warn(
            f"{plural(counts.tabs, 'line')} with a tab: what is behind it are features, and the "
            "model knows none (try: sources only)"
        )
    share = counts.unknown / max(1, counts.read)
    if share > _STRANGE:
        notes.warn(f"{share:.0%} of the input is unknown to the model: is it another language?")
    if counts.loops:
        notes.warn(
            f"{plural(counts.loops, 'answer')} went round in circles: "
            f"{plural(counts.cut, 'repetition')} cut (--keep-loops leaves them)"
        )
    if counts.incomplete:
        notes.warn(f"{counts.incomplete:,} answers lack a term of --terms")


def _record(translator: Translator, answer: Answer) -> dict[str, Any]:
    return {
        "text": answer.text,
        "score": round(answer.score, 5),
        "log_probability": round(answer.log_probability, 5),
        "tokens": [translator.target.show(index) for index in answer.ids],
    }


def score(
    *,
    model: options.Model,
    where: PairFlags,
    display: options.Rows,
    use: options.Use,
    decoding: options.Decoding,
) -> None:
    """Say how likely given targets are: their log-probability, natural logarithm.

    Columns and keys: log_probability, tokens (the end counts), perplexity of a token, source,
    target.

    Examples:
      $ nlpkit seq2seq train sample_corpora/en-ca.tsv -o en-ca.model --max-time 30s
      $ printf 'The cat sleeps.\\tEl gat dorm.\\n' | nlpkit seq2seq score en-ca.model
    """
    import math

    data, shown = where.load(decoding), display.shown
    translator = open_translator(model, use)
    columns = ("log_probability", "tokens", "perplexity", "source", "target")
    with open_output("-") as out:
        # a table is drawn once, other rows are there to be read as they come
        at_once = max(1, len(data)) if shown == "table" else _AT_ONCE
        for start in range(0, len(data), at_once):
            some = data[start : start + at_once]
            rows = []
            for pair, found in zip(some, translator.score(some), strict=True):
                each = -found.log_probability / max(1, found.tokens)
                perplexity = round(math.exp(min(700.0, each)), 4)
                logs = round(found.log_probability, 5)
                rows.append((logs, found.tokens, perplexity, pair.source, pair.target))
            write_rows(out, columns, rows, shown)


def attention(
    model: options.Model,
    source: str = argument(..., "What to read.", metavar="TEXT"),
    target: str | None = argument(
        None, "What stands for it.", metavar="ANSWER", show_default="the model's answer"
    ),
    format: Literal["map", "pharaoh", "table", "tsv", "csv", "jsonl", "markdown"] | None = flag(
        None,
        "map: a heat map; pharaoh: 0-0 1-2, source-target; else a row per weight.",
        "--format",
        "-f",
        show_default="map",
    ),
    plot: str | None = flag(None, "Draw it to .png, .svg or .html.", metavar="FILE"),
) -> None:
    """Show what each target token looks at: the soft alignment.

    Of a Transformer, the mean of the heads of the last layer. In Pharaoh's format each target token
    is aligned with the source token that it looks at most. Keys of --json: source, target (tokens),
    weights (a row for each target token, which adds up to 1). Columns: target, source, weight.

    Examples:
      $ nlpkit seq2seq train sample_corpora/en-ca.tsv -o en-ca.model --max-time 30s
      $ nlpkit seq2seq attention en-ca.model "The old cat sleeps."
      $ nlpkit seq2seq attention en-ca.model "The old cat sleeps." "El gat vell dorm." -f pharaoh
      $ nlpkit seq2seq attention en-ca.model "The old cat sleeps." --plot alignment.svg
    """
    from nlpkit.cli.inspect_output import legend
    from nlpkit.tasks.translate.alignment import draw_alignment, heat_map, pharaoh
    from nlpkit.tasks.translate.model import Translator

    shown = format or "map"
    check_picture(plot)
    options.use_threads(1)
    translator = Translator.load(model)
    if target is None:
        target = translator.translate([source])[0]
    read, written, weights = translator.align(source, target)
    rows = weights.tolist()
    if plot is not None:
        draw_alignment(read, written, rows, plot)
    with open_output("-") as out:
        if shown == "jsonl":
            rounded = [[round(value, 5) for value in row] for row in rows]
            out.write_json({"source": read, "target": written, "weights": rounded})
        elif shown == "pharaoh":
            out.write(pharaoh(rows) + "\n")
        elif shown != "map":
            cells = (
                (token, seen, weight)
                for token, row in zip(written, rows, strict=True)
                for seen, weight in zip(read, row, strict=True)
            )
            write_rows(out, ("target", "source", "weight"), cells, shown)
        else:
            out.write(f"a row is a target token, its columns are what it looks at:\n{legend()}\n")
            out.write_styled(out.safe(heat_map(read, written, rows)) + "\n")


_SHOWN = {
    "bleu": "BLEU",
    "chrf": "chrF",
    "exact": "exact match %",
    "edit_distance": "edit distance",
    "token_error_rate": "token error %",
}


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
    from nlpkit.tasks.translate.data import without_empty

    shown = display.shown
    check_picture(plot)
    if answers is not None:
        check_output(answers)
    data, empty = without_empty(where.load(decoding))
    if empty:
        Notes().warn(f"not counted: {plural(empty, 'pair')} with an empty side")
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
