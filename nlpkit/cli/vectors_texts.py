"""``nlpkit vectors embed`` and ``search``: whole texts by the vectors of their words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nlpkit.cli import options
from nlpkit.cli import vectors_options as shared
from nlpkit.cli.flags import argument, with_settings
from nlpkit.cli.output import Notes, open_output, rows_format, write_rows
from nlpkit.errors import NlpkitError
from nlpkit.text.pipeline import Tokens, TokenSettings
from nlpkit.text.records import TOKEN_KEYS, Reading, with_record
from nlpkit.vectors.settings import QUERY, TextMethod, TextSettings


def _embedder(model: str, settings: TextSettings, notes: Notes) -> Any:
    """What turns texts into vectors, by the method."""
    if settings.method is TextMethod.INFER:
        from nlpkit.word2vec.document_engine import InferredVectors

        return InferredVectors(model, settings)
    from nlpkit.vectors.texts import TextVectors

    return TextVectors(shared.open_vectors(model, notes), settings)


@with_settings(TextSettings, Reading)
def embed(
    *,
    model: shared.ModelOption,
    settings: TextSettings,
    inputs: options.Inputs = None,
    tokenizer: options.TokenizerName = "word",
    pattern: options.Pattern = None,
    lower: options.Lower = False,
    output: options.Output = "-",
    format: options.TextFormat = None,
    reading: Reading,
) -> None:
    """Turn each line of text into one vector, by the vectors of its words.

    A line of numbers for a line of text; jsonl has the keys text and vector. A text without a known
    word is zeros. What texts have in common is estimated from the first 10,000 lines, which are
    therefore read before anything is written; the rest is a stream. --method infer takes a model
    of word2vec train --documents and trains the vector of each text, its words held fixed.

    Examples:
      $ nlpkit vectors embed -m world.model sample_corpora/tales.txt --lower | head -2
      $ echo "the king and the queen" | nlpkit vectors embed -m world.model --method mean --json
    """
    shown = format or "text"
    pipeline = Tokens(TokenSettings(tokenizer=tokenizer, pattern=pattern, lower=lower))
    embedder = _embedder(model, settings, Notes())
    lines_in = options.read_lines(inputs, reading, TOKEN_KEYS)
    waiting: list[str] = []

    def texts() -> Iterator[list[str]]:
        for line in lines_in:
            waiting.append(line)
            yield pipeline.shown(line)

    with open_output(output) as out:
        for rows in embedder.stream(texts()):
            lines, waiting[:] = waiting[: len(rows)], waiting[len(rows) :]
            for line, row in zip(lines, rows.tolist(), strict=True):
                if shown == "jsonl":
                    out.write_json(with_record(line, {"text": line, "vector": row}))
                else:
                    out.write(" ".join(f"{number:.9g}" for number in row) + "\n")
            out.flush()


@with_settings(TextSettings, Reading)
def search(
    *,
    file: str = argument(..., "Lines to search; - is standard input.", metavar="FILE"),
    queries: list[str] = argument(..., "What to look for, in words.", metavar="QUERY..."),
    model: shared.ModelOption,
    settings: TextSettings,
    number: shared.Number = QUERY.n,
    tokenizer: options.TokenizerName = "word",
    pattern: options.Pattern = None,
    lower: options.Lower = False,
    format: options.RowsFormat = None,
    reading: Reading,
) -> None:
    """Rank the lines of a file by how near they are to a query, by the vectors of their words.

    A line is found when its words mean the like, whether or not it has a word of the query. Columns
    (keys of jsonl): query, score (a cosine), line (its number) and text. The file is a stream: only
    the best lines are kept.

    Examples:
      $ nlpkit vectors search sample_corpora/world.txt "a royal family" -m world.model -n 3
      $ nlpkit vectors search sample_corpora/world.txt paris bread -m world.model -n 2 --json
    """
    from nlpkit.vectors.texts import Line
    from nlpkit.vectors.texts import search as find

    shown = rows_format(format)
    pipeline = Tokens(TokenSettings(tokenizer=tokenizer, pattern=pattern, lower=lower))
    embedder = _embedder(model, settings, Notes())
    wanted = [pipeline.shown(query) for query in queries]
    for query, words in zip(queries, wanted, strict=True):
        if not any(embedder.vectors.knows(word) for word in words):
            raise NlpkitError(f"no word of {query!r} is known", hint="other words, or --lower")

    def lines() -> Iterator[Line]:
        for number, text in enumerate(options.read_lines([file], reading, TOKEN_KEYS), 1):
            yield Line(number, text, pipeline.shown(text))

    found = find(embedder, wanted, lines(), number)
    rows = [
        (query, one.score, one.line, one.text)
        for query, ranked in zip(queries, found, strict=True)
        for one in ranked
    ]
    with open_output("-") as out:
        write_rows(out, ["query", "score", "line", "text"], rows, shown)
