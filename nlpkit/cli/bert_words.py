"""``nlpkit bert fill``, ``compare``, ``score`` and ``senses``: words and their likelihoods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from nlpkit import settings as limits
from nlpkit.cli import options
from nlpkit.cli.bert_options import Bert, Layer, check_layer, open_model, read_texts
from nlpkit.cli.flags import argument, flag
from nlpkit.cli.output import Notes, open_output, write_rows
from nlpkit.errors import NlpkitError, UsageError
from nlpkit.plots import check_picture
from nlpkit.text.records import Reading, with_record

if TYPE_CHECKING:
    from nlpkit.tasks.bert.fill import Filling

_COLUMNS = ("probability", "tokens", "text")


def fill(
    *,
    model: Bert,
    text: str | None = argument(
        None, "A text with [MASK]; - reads one from each line.", metavar="TEXT"
    ),
    number: int = flag(
        5, "Answers.", "--count", "--number", "-n", metavar="N", min=1, max=limits.MANY
    ),
    order: Literal["best", "left", "beam"] = flag(
        "best",
        "How several masks are filled: the surest first, from left to right, or so with "
        "a beam of fillings.",
    ),
    beam: int | None = flag(
        None, "Width of --order beam.", metavar="N", min=1, max=1000, show_default="5"
    ),
    targets: str | None = flag(None, "Only these words, for one mask.", metavar="A,B,..."),
    reading: Reading,
    display: options.Rows,
    use: options.Use,
) -> None:
    """Fill in masked words: the likeliest ones with their probabilities.

    Several masks are filled one after the other, so that they fit together; the probability is
    that of all, and with --order best or left there is one answer. Keys of --json, an object for
    each text: text, order (if there are several masks), fillings (tokens, probability, text).

    Examples:
      $ nlpkit bert train sample_corpora/world.txt -o world.bert --max-time 60s
      $ nlpkit bert fill world.bert "Paris is the [MASK] of France."
      $ nlpkit bert fill world.bert "Paris is the [MASK] of [MASK]." --order beam --json
      $ nlpkit bert fill world.bert "Paris is in [MASK]." --targets france,italy,spain
      $ echo "The capital of Italy is [MASK]." | nlpkit bert fill world.bert - --json
    """
    from nlpkit.tasks.bert.fill import fill as fill_text
    from nlpkit.tasks.bert.fill import score_targets

    shown = display.shown
    if beam is not None and order != "beam":
        raise UsageError("--beam is the width of --order beam")
    words = None if targets is None else [word.strip() for word in targets.split(",")]
    notes = Notes()
    texts = read_texts(["-"], reading) if text in (None, "-") else iter([[text]])
    if text is None:
        options.resolve_inputs(None)
    bert = open_model(model, use)
    said = False

    def filled(line: str) -> list[Filling]:
        if words is not None:
            return score_targets(bert, line, words)
        return fill_text(bert, line, number, order, beam or 5)

    place = 0
    with open_output("-") as out:
        for batch in texts:
            for line in batch:
                assert line is not None
                place += 1
                try:
                    fillings = filled(line)
                except NlpkitError as error:
                    if text not in (None, "-"):
                        raise
                    raise NlpkitError(f"line {place}: {error.message}", hint=error.hint) from None
                several = len(fillings[0].tokens) > 1
                if several and not said and shown != "jsonl":
                    notes.say(f"several masks: filled by --order {order}")
                    said = True
                _write_fillings(out, line, fillings, order if several else None, shown)
            out.flush()


def _write_fillings(
    out: Any, line: str, fillings: list[Filling], order: str | None, shown: str
) -> None:
    if shown == "jsonl":
        record: dict[str, Any] = {"text": line}
        record |= {} if order is None else {"order": order}
        record["fillings"] = [
            {"tokens": one.tokens, "probability": one.probability, "text": one.text}
            for one in fillings
        ]
        out.write_json(with_record(line, record))
        return
    rows = ((one.probability, " ".join(one.tokens), one.text) for one in fillings)
    write_rows(out, _COLUMNS, rows, shown)


def compare(
    *,
    model: Bert,
    first: str = argument(..., "A text with one [MASK].", metavar="TEXT"),
    second: str = argument(..., "Another text with one.", metavar="OTHER"),
    count: int = flag(
        30,
        "Tokens that are likeliest in either text; 0 is all.",
        "--count",
        "-n",
        "-k",
        metavar="N",
        min=0,
        max=10_000_000,
    ),
    plot: str | None = flag(
        None, "Draw both likelihoods: .png, .svg, .pdf or .html.", metavar="FILE"
    ),
    view: bool = flag(False, "Draw them here, with characters."),
    display: options.Rows,
    use: options.Use,
) -> None:
    """Show what the model holds likelier in one text than in another.

    Columns and keys, as of nlpkit lm compare: token, first, second (probabilities at the mask of
    each text), difference (of their natural logarithms). In the plot a token stands at its
    likelihood in the first text (across) and in the second (up).

    Examples:
      $ nlpkit bert train sample_corpora/world.txt -o world.bert --max-time 60s
      $ nlpkit bert compare world.bert "Paris is in [MASK]." "Rome is in [MASK]."
      $ nlpkit bert compare world.bert "Paris is in [MASK]." "Rome is in [MASK]." --plot both.html
    """
    from nlpkit.cli.lm_analysis import check_view, write_compared
    from nlpkit.compare import compare as rank
    from nlpkit.compare import draw_scatter, scatter_text
    from nlpkit.tasks.bert.fill import blank_logs

    check_picture(plot)
    shown = display.shown
    check_view(view, shown)
    bert = open_model(model, use)
    tokens, logs = blank_logs(bert, first)
    _, others = blank_logs(bert, second)
    rows = rank(tokens, logs, others, count or None)
    with open_output("-") as out:
        write_compared(out, rows, shown)
        if view:
            out.write(scatter_text(rows, (first, second)) + "\n")
    if plot is not None:
        draw_scatter(rows, (first, second), plot)


def score(
    *,
    model: Bert,
    inputs: options.Inputs = None,
    tokens: bool = flag(False, "Also each token's (JSON)."),
    reading: Reading,
    display: options.Rows,
    use: options.Use,
) -> None:
    """Score lines by pseudo-log-likelihood: each token masked in turn.

    Columns, or keys of --json: score (nats, summed over the tokens; the nearer to 0, the
    likelier), tokens (how many), perplexity (of a token), text; with --tokens also pieces and
    logprobs. A line is read as often as it has tokens, so that its time grows with their
    square: cut long ones into sentences first. What is longer than the model reads is scored
    in parts.

    Examples:
      $ nlpkit bert train sample_corpora/world.txt -o world.bert --max-time 60s
      $ printf 'Paris is in France.\\nFrance is in Paris.\\n' | nlpkit bert score world.bert
    """
    from nlpkit.tasks.bert.score import score_text

    shown = "jsonl" if tokens else display.shown
    options.resolve_inputs(inputs)
    columns = ("score", "tokens", "perplexity", "text")
    bert = open_model(model, use)
    with open_output("-") as out:
        for batch in read_texts(inputs, reading):
            rows = []
            for line in batch:
                scored = score_text(bert, line)
                row = (round(scored.total, 5), len(scored.tokens), scored.perplexity, line)
                if shown != "jsonl":
                    rows.append(row)
                    continue
                record = dict(zip(columns, row, strict=True))
                if tokens:
                    record["pieces"] = scored.tokens
                    record["logprobs"] = [round(value, 5) for value in scored.log_probabilities]
                out.write_json(with_record(line, record))
            if shown != "jsonl":
                write_rows(out, columns, rows, shown)
            out.flush()


def senses(
    *,
    model: Bert,
    word: str = argument(..., "The word, in any letter case.", metavar="WORD"),
    inputs: options.Inputs = None,
    count: int | None = flag(
        None,
        "So many groups.",
        "--senses",
        metavar="N",
        min=1,
        max=1000,
        show_default="as many as the vectors show, up to 6",
    ),
    examples: int = flag(3, "Lines of each.", metavar="N", min=1, max=limits.MANY),
    limit: int = flag(2000, "Occurrences to read.", metavar="N", min=1, max=limits.MANY),
    layer: Layer = None,
    reading: Reading,
    display: options.Rows,
    use: options.Use,
) -> None:
    """Group the occurrences of a word by their vectors in context: its senses.

    Rows, or keys of --json: sense (from 1, the most frequent first), share of the occurrences,
    line (the most typical ones).

    Examples:
      $ nlpkit bert train sample_corpora/world.txt -o world.bert --max-time 60s
      $ nlpkit bert senses world.bert capital sample_corpora/world.txt --senses 2
    """
    from nlpkit.tasks.bert.senses import find_occurrences, group_senses, occurrence_vectors

    shown = display.shown
    options.resolve_inputs(inputs)
    notes = Notes()
    bert = open_model(model, use)
    check_layer(bert, layer)
    lines = (line for batch in read_texts(inputs, reading) for line in batch)
    found = find_occurrences(lines, word, limit)
    if not found:
        raise NlpkitError(f"{word!r} does not occur in the text", hint="another word or more text")
    groups = group_senses(found, occurrence_vectors(bert, found, layer), count)
    notes.say(
        f"{len(found):,} occurrences, {len(groups)} {'sense' if len(groups) == 1 else 'senses'}"
    )
    with open_output("-") as out:
        rows = [
            (number, round(len(sense.occurrences) / len(found), 4), one.line)
            for number, sense in enumerate(groups, 1)
            for one in sense.occurrences[:examples]
        ]
        write_rows(out, ("sense", "share", "line"), rows, shown)
