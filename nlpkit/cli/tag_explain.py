"""``nlpkit tag explain``."""

from __future__ import annotations

from typing import Any

from nlpkit import settings as limits
from nlpkit.cli import classify_output, options
from nlpkit.cli.flags import flag, with_settings
from nlpkit.cli.output import Writer, open_output
from nlpkit.text.records import Reading, with_record
from nlpkit.text.vocab import on_one_line


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
    far the log-odds of that tag fall when the word is hidden. Keys of jsonl: word, place (from 1),
    tag, probability, influence (a list of word, influence).

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
    chosen = format or classify_output.explain_format()
    with open_output("-") as out:
        for line in options.read_lines(paths, reading):
            tokens = cut.tokens(line)
            if not tokens:
                continue
            places = None if word is None else [word - 1]
            for found in explain_tags(tagger, tokens, places):
                _write(out, line, tokens, found, chosen)
            out.flush()


def _write(out: Writer, line: str, tokens: list[str], found: Any, format: str) -> None:
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
    elif format == "tsv":
        name = on_one_line(tokens[found.place])
        out.write(f"{name}\t{on_one_line(found.tag)}\t{found.probability:.4f}\n")
        for w, value in pairs:
            out.write(f"{on_one_line(w)}\t{value:+.4f}\n")
        out.write("\n")
    else:
        strongest = max((abs(value) for value in found.influence), default=1.0) or 1.0
        words = [classify_output.shade(out.safe(w), value / strongest) for w, value in pairs]
        name = out.safe(on_one_line(tokens[found.place]))
        share = f"{100 * found.probability:.0f}%"
        out.write_styled(f"{name}/{out.safe(found.tag)} {share}\t{' '.join(words)}\n")
