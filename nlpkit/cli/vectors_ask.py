"""``nlpkit vectors nearest``, ``analogy``, ``similarity``, ``odd-one-out``, ``get``, ``expand``.

A question comes from the command line, where an unknown word is an error, or from standard input,
where it is a row with a note. All questions of a block of input are answered together.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nlpkit import settings as limits
from nlpkit.cli import options
from nlpkit.cli import vectors_options as shared
from nlpkit.cli.flags import argument, flag
from nlpkit.cli.output import Notes, open_output, rows_format, vector_line, write_rows
from nlpkit.errors import NlpkitError
from nlpkit.text.pipeline import Tokens
from nlpkit.text.records import TOKEN_KEYS, Reading, RecordText, lines_of, with_record
from nlpkit.vectors.settings import QUERY, AnalogyMethod, Metric, TextMethod, TextSettings

if TYPE_CHECKING:
    from nlpkit.vectors.store import Vectors

Question = list[str]
Row = tuple[Any, ...]
MetricOption = Annotated[
    Metric, typer.Option("--metric", help="How near is measured; euclidean gives distances.")
]
MANY = 1 << 30
QUERY_KEYS = ("query", *TOKEN_KEYS, "word")
WORD_KEYS = ("word", *TOKEN_KEYS)


def split_words(line: str) -> Question:
    """The words of a question: between tabs if there are any (words may hold spaces), or spaces.

    >>> split_words("new york\\tparis"), split_words("king queen")
    (['new york', 'paris'], ['king', 'queen'])
    """
    return [word for word in line.split("\t") if word] if "\t" in line else line.split()


def problem(knows: Callable[[str], bool], words: Question, least: int, most: int) -> str:
    """Why a question cannot be answered; empty when it can."""
    if not least <= len(words) <= most:
        wanted = f"{least}" if least == most else f"at least {least}"
        return f"expected {wanted} words, found {len(words)}"
    unknown = [word for word in words if not knows(word)]
    return "unknown: " + ", ".join(unknown) if unknown else ""


def ask(
    model: str,
    words: Sequence[str] | None,
    asking: shared.Asking,
    columns: Sequence[str],
    answer: Callable[[Vectors, list[Question]], list[list[Row]]],
    *,
    least: int = 1,
    most: int = MANY,
    knows: Callable[[Vectors, str], bool] = lambda vectors, word: vectors.knows(word),
    also: Sequence[str] = (),
) -> None:
    """Answer one question of the command line, or all of standard input, as rows.

    ``also`` are words beside the question that must be known.
    """
    format = rows_format(asking.format)
    vectors = shared.open_vectors(model, Notes(), asking.errors)
    for word in (*also, *(words or ())):
        if not knows(vectors, word):
            raise vectors.unknown(word)
    known = partial(knows, vectors)
    if words:
        if wrong := problem(known, list(words), least, most):
            raise NlpkitError(wrong)
        (rows,) = answer(vectors, [list(words)])
        with open_output("-") as out:
            write_rows(out, ["query", *columns], [(" ".join(words), *row) for row in rows], format)
        return
    blocks = options.read_records(None, asking, QUERY_KEYS)
    with open_output("-") as out:
        for block in blocks:
            lines = lines_of(block, asking.errors)
            questions = [split_words(line) for line in lines]
            vectors.words.expect(itertools.chain.from_iterable(questions))
            notes = [problem(known, question, least, most) for question in questions]
            if asking.strict and any(notes):
                first = next(index for index, note in enumerate(notes) if note)
                raise NlpkitError(
                    f"{block.source}: line {block.first_line + first}: {notes[first]}"
                )
            good = [question for question, note in zip(questions, notes, strict=True) if not note]
            answers = iter(answer(vectors, good) if good else [])
            noted = _with_notes(lines, notes, answers, len(columns))
            write_rows(out, ["query", *columns, "note"], noted, format)
            out.flush()


def _with_notes(
    lines: list[str], notes: list[str], answers: Iterator[list[Row]], width: int
) -> Iterator[Row]:
    for line, note in zip(lines, notes, strict=True):
        query = RecordText.of(line.replace("\t", " "), getattr(line, "record", {}))
        if note:
            yield (query, *[None] * width, note)
        else:
            yield from ((query, *row, None) for row in next(answers))


def nearest(
    *,
    model: shared.ModelOption,
    words: shared.Words = None,
    number: shared.Number = shared.NUMBER,
    negative: list[str] | None = flag(
        None, "Take this word away; may be repeated.", metavar="WORD"
    ),
    metric: MetricOption = QUERY.metric,
    restrict: shared.Restrict = None,
    asking: shared.Asking,
) -> None:
    """Find the words nearest to a word, or to the mean of several.

    Columns (keys of jsonl): query, word, score. From standard input there is a fourth, note, which
    says what is wrong with a line, such as an unknown word; --strict makes that an error.

    Examples:
      $ nlpkit vectors nearest king -m world.model
      $ nlpkit vectors nearest king woman --negative man -m world.model -n 3
      $ printf 'king\\nfrance paris\\n' | nlpkit vectors nearest -m world.model -n 3 --json
    """
    minus = list(negative or [])

    def answer(vectors: Vectors, questions: list[Question]) -> list[list[Row]]:
        from nlpkit.vectors import query

        asked = [(question, minus) for question in questions]
        found = query.nearest(vectors, asked, number, metric=metric, restrict=restrict)
        return [[(near.word, near.score) for near in row] for row in found]

    ask(model, words, asking, ["word", "score"], answer, also=minus)


def analogy(
    *,
    model: shared.ModelOption,
    words: shared.Words = None,
    number: shared.Number = shared.NUMBER,
    method: AnalogyMethod = flag(QUERY.method, "How the fourth word is scored."),
    restrict: shared.Restrict = None,
    asking: shared.Asking,
) -> None:
    """Complete an analogy: A B C reads "A is to B as C is to ?".

    "man king woman" asks: man is to king as woman is to ...? That is the order of the
    questions-words file. The three words themselves are never answers.

    Columns (keys of jsonl): query, word, score, and for standard input note.

    Examples:
      $ nlpkit vectors analogy man king woman -m world.model
      $ nlpkit vectors analogy france paris italy -m world.model -n 1 --method 3cosmul
      $ echo "france paris italy" | nlpkit vectors analogy -m world.model --json
    """

    def answer(vectors: Vectors, questions: list[Question]) -> list[list[Row]]:
        from nlpkit.vectors import query

        asked = [(a, b, c) for a, b, c in questions]
        found = query.analogy(vectors, asked, number, method=method, restrict=restrict)
        return [[(near.word, near.score) for near in row] for row in found]

    ask(model, words, asking, ["word", "score"], answer, least=3, most=3)


def similarity(
    *,
    model: shared.ModelOption,
    words: shared.Words = None,
    metric: MetricOption = QUERY.metric,
    asking: shared.Asking,
) -> None:
    """Say how near two words or two texts are.

    A text of several words is the mean of those that are known. On standard input a tab stands
    between two texts. Columns (keys of jsonl): query, score, and for standard input note.

    Examples:
      $ nlpkit vectors similarity king queen -m world.model
      $ nlpkit vectors similarity "the old king" "a young queen" -m world.model
      $ printf 'king queen\\nking bread\\n' | nlpkit vectors similarity -m world.model
    """

    def knows(vectors: Vectors, text: str) -> bool:
        return vectors.knows(text) or any(vectors.knows(word) for word in text.split())

    def answer(vectors: Vectors, questions: list[Question]) -> list[list[Row]]:
        from nlpkit.vectors.texts import similarity as nearness

        return [[(nearness(vectors, a, b, metric),)] for a, b in questions]

    ask(model, words, asking, ["score"], answer, least=2, most=2, knows=knows)


def odd_one_out(
    *,
    model: shared.ModelOption,
    words: shared.Words = None,
    asking: shared.Asking,
) -> None:
    """Name the word that does not belong: the one farthest from the mean of all.

    Columns (keys of jsonl): query, word, score (its cosine to the mean), and for standard input
    note.

    Examples:
      $ nlpkit vectors odd-one-out france italy spain bread -m world.model
      $ echo "king queen prince river" | nlpkit vectors odd-one-out -m world.model
    """

    def answer(vectors: Vectors, questions: list[Question]) -> list[list[Row]]:
        from nlpkit.vectors import query

        return [[query.odd_one_out(vectors, question)[0]] for question in questions]

    ask(model, words, asking, ["word", "score"], answer, least=3)


def get(
    *,
    model: shared.ModelOption,
    words: shared.Words = None,
    strict: shared.Strict = False,
    format: options.TextFormat = None,
    reading: Reading,
) -> None:
    """Print the vectors of words: the word, then its numbers, between spaces.

    jsonl has the keys word and vector. From standard input, one word per line; an unknown one comes
    back alone, without numbers (vector is null), unless --strict.

    Examples:
      $ nlpkit vectors get king queen -m world.model
      $ cut -f1 world.vocab | nlpkit vectors get -m world.model --json
    """
    shown = format or "text"
    vectors = shared.open_vectors(model, Notes(), reading.errors)
    lines = options.read_line_blocks(None, reading, WORD_KEYS)
    blocks = iter([list(words)]) if words else lines
    with open_output("-") as out:
        for block in blocks:
            for word in block:
                if (words or strict) and not vectors.knows(word):
                    raise vectors.unknown(word)
                vector = vectors.get(word).tolist() if vectors.knows(word) else None
                if shown == "jsonl":
                    out.write_json(with_record(word, {"word": word, "vector": vector}))
                else:
                    out.write(vector_line(vector or [], word))
            out.flush()


def expand(
    *,
    model: shared.ModelOption,
    inputs: options.Inputs = None,
    number: int = flag(
        QUERY.expand_n,
        "Words to add for a word, at most.",
        "--count",
        "--number",
        "-n",
        min=1,
        max=limits.MANY,
    ),
    minimum: float = flag(
        QUERY.expand_minimum, "Lowest cosine of a word to add.", min=-1.0, max=1.0
    ),
    restrict: shared.Restrict = None,
    format: options.TextFormat = None,
    reading: Reading,
) -> None:
    """Append to each line the near words of its words, for query expansion.

    Words are what stands between spaces. jsonl has the keys line and added.

    Examples:
      $ echo "king of france" | nlpkit vectors expand -m world.model -n 2
      $ nlpkit vectors expand queries.txt -m world.model --minimum 0.7 --json
    """
    shown = format or "text"
    vectors = shared.open_vectors(model, Notes())
    blocks = options.read_line_blocks(inputs, reading, TOKEN_KEYS)
    from nlpkit.vectors import query

    with open_output("-") as out:
        for lines in blocks:
            words = [line.split() for line in lines]
            found = query.expand(vectors, words, number, minimum=minimum, restrict=restrict)
            for line, added in zip(lines, found, strict=True):
                if shown == "jsonl":
                    out.write_json(with_record(line, {"line": line, "added": added}))
                else:
                    out.write(" ".join([line, *added]) + "\n")
            out.flush()


def _embedder(model: str, settings: TextSettings, notes: Notes) -> Any:
    """What turns texts into vectors, by the method."""
    if settings.method is TextMethod.INFER:
        from nlpkit.word2vec.document_engine import InferredVectors

        return InferredVectors(model, settings)
    from nlpkit.vectors.texts import TextVectors

    return TextVectors(shared.open_vectors(model, notes), settings)


def embed(
    *,
    model: shared.ModelOption,
    settings: TextSettings,
    inputs: options.Inputs = None,
    tokenizing: options.TextTokenizing,
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
    pipeline = Tokens(tokenizing.settings)
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
                    out.write(vector_line(row))
            out.flush()


def search(
    *,
    file: str = argument(..., "Lines to search; - is standard input.", metavar="FILE"),
    queries: list[str] = argument(..., "What to look for, in words.", metavar="QUERY"),
    model: shared.ModelOption,
    settings: TextSettings,
    number: shared.Number = QUERY.n,
    tokenizing: options.TextTokenizing,
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
    lines_in = options.read_lines([file], reading, TOKEN_KEYS)
    begin = list(itertools.islice(lines_in, 1))  # no such file is said before no such word
    pipeline = Tokens(tokenizing.settings)
    embedder = _embedder(model, settings, Notes())
    wanted = [pipeline.shown(query) for query in queries]
    for query, words in zip(queries, wanted, strict=True):
        if not any(embedder.vectors.knows(word) for word in words):
            raise NlpkitError(f"no word of {query!r} is known", hint="other words, or --lower")

    def lines() -> Iterator[Line]:
        for number, text in enumerate(itertools.chain(begin, lines_in), 1):
            yield Line(number, text, pipeline.shown(text))

    found = find(embedder, wanted, lines(), number)
    rows = [
        (query, one.score, one.line, one.text)
        for query, ranked in zip(queries, found, strict=True)
        for one in ranked
    ]
    with open_output("-") as out:
        write_rows(out, ["query", "score", "line", "text"], rows, shown)
