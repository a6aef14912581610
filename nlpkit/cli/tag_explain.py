"""``nlpkit tag explain``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from nlpkit import settings as limits
from nlpkit.cli import classify_output, options
from nlpkit.cli.flags import flag, with_settings
from nlpkit.cli.output import Writer, open_output, write_rows
from nlpkit.text.records import Reading, with_record
from nlpkit.text.vocab import on_one_line

if TYPE_CHECKING:
    from nlpkit.tasks.tag.explain import TagExplanation

EXPLAINED = ("line", "place", "word", "tag", "probability", "hidden", "influence")


@with_settings(Reading)
def explain(
    model: options.Model,
    inputs: options.Inputs = None,
    word: int | None = flag(
        None, "Explain this word, from 1.", min=1, max=limits.MANY, show_default="all"
    ),
    tokenizer: options.TokenizerName = "word",
    format: options.ExplainFormat = None,
    threads: options.EncoderThreads = 0,
    *,
    reading: Reading,
) -> None:
    """Show which words decided a tag: how much less sure the model is when each is hidden.

    Lines of text are read, one sentence each. The influence of a word on the tag of another is how
    far the log-odds of that tag fall when the word is hidden. Columns: line, place (from 1), word,
    tag, probability, hidden, influence. Keys of jsonl: word, place, tag, probability, influence (a
    list of word, influence).

    Examples:
      $ echo "He said Teddy bears are on sale." | nlpkit tag explain pos.model --word 3
      $ echo "He said Teddy bears are on sale." | nlpkit tag explain pos.model --json
    """
    from nlpkit.tasks.tag.explain import explain_tags
    from nlpkit.tasks.tag.predictor import Tagger
    from nlpkit.text.tokenizers import get_tokenizer

    paths = options.resolve_inputs(inputs)
    tagger = Tagger.load(model)
    options.use_encoder_threads(tagger, threads)
    cut = get_tokenizer(tokenizer)
    shown = format or classify_output.explain_format()

    def explained(out: Writer) -> Iterator[tuple[int, str, list[str], TagExplanation]]:
        for number, line in enumerate(options.read_lines(paths, reading), 1):
            if tokens := cut.tokens(line):
                places = None if word is None else [word - 1]
                for found in explain_tags(tagger, tokens, places):
                    yield number, line, tokens, found
                out.flush()

    with open_output("-") as out:
        if shown not in ("color", "jsonl"):
            write_rows(
                out, EXPLAINED, (row for one in explained(out) for row in _rows(*one)), shown
            )
            return
        for _, line, tokens, found in explained(out):
            _write(out, line, tokens, found, shown)


def _rows(number: int, _: str, tokens: list[str], found: TagExplanation) -> Iterator[list[Any]]:
    """A row for each word of the sentence that was hidden."""
    name, tag = on_one_line(tokens[found.place]), on_one_line(found.tag)
    for hidden, value in zip(map(on_one_line, tokens), found.influence, strict=True):
        yield [number, found.place + 1, name, tag, found.probability, hidden, f"{value:+.4f}"]


def _write(out: Writer, line: str, tokens: list[str], found: TagExplanation, format: str) -> None:
    pairs = list(zip(tokens, found.influence, strict=True))
    if format == "jsonl":
        record = {
            "word": tokens[found.place],
            "place": found.place + 1,
            "tag": found.tag,
            "probability": round(found.probability, 6),
            "influence": [{"word": w, "influence": round(value, 4)} for w, value in pairs],
        }
        out.write_json(with_record(line, record))
        return
    strongest = max((abs(value) for value in found.influence), default=1.0) or 1.0
    words = [classify_output.shade(out.safe(w), value / strongest) for w, value in pairs]
    name = out.safe(on_one_line(tokens[found.place]))
    share = f"{100 * found.probability:.0f}%"
    out.write_styled(f"{name}/{out.safe(found.tag)} {share}\t{' '.join(words)}\n")
