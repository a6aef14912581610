"""``nlpkit bert embed``, ``similarity``, ``index`` and ``search``: texts as vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from nlpkit import compression, modeldir, textio
from nlpkit import settings as limits
from nlpkit.cli import options
from nlpkit.cli.bert_options import Bert, Layer, check_layer, open_model, read_texts, say_long
from nlpkit.cli.flags import argument, flag
from nlpkit.cli.output import Notes, open_output, vector_line, vector_lines, write_rows
from nlpkit.errors import NlpkitError, UsageError, plural
from nlpkit.text.records import Reading, pair_of, with_record

if TYPE_CHECKING:
    from nlpkit.models.bert_model import BertModel
    from nlpkit.tasks.bert.index import SearchIndex

_FOUND = ("score", "file", "line", "text")
LINES = ("jsonl", "json", "ndjson", "txt", "tsv")  # endings of files that are no folder


def embed(
    *,
    model: Bert,
    inputs: options.Inputs = None,
    output: str = flag(
        "-",
        ".jsonl, .txt, .npy, .npz, or else a folder for nlpkit vectors; - is standard output.",
        "--output",
        "-o",
        metavar="FILE",
    ),
    tokens: bool = flag(False, "A vector for each token, not for each line."),
    pooling: Literal["mean", "cls", "max"] | None = flag(
        None,
        "What a line's vector is: the mean or maximum of its states, or that of [CLS].",
        show_default="the folder's, else mean",
    ),
    layer: Layer = None,
    normalize: bool = flag(False, "Vectors of length 1, whatever the folder says."),
    format: options.VectorFormat = None,
    reading: Reading,
    force: options.Force = False,
    use: options.Use,
) -> None:
    """Give the vectors of lines, or of their tokens.

    JSON lines have the keys text and vector, or tokens and vectors. An .npy file has a row for
    each line (or token, one after the other), an .npz file vectors and, for tokens, lengths: the
    tokens of each line. A folder holds lines, or the mean vector of each distinct token, as words
    for nlpkit vectors. A line that is too long is read in parts, whose vectors are averaged.

    Examples:
      $ nlpkit bert train sample_corpora/world.txt -o world.bert --max-time 60s
      $ echo "Paris is in France." | nlpkit bert embed world.bert
      $ nlpkit bert embed world.bert sample_corpora/world.txt -o world.npy
      $ nlpkit bert embed world.bert sample_corpora/world.txt --tokens -o tokens.vectors
      $ nlpkit vectors nearest -m tokens.vectors paris
    """
    packed = compression.ending(output)
    kind = output.removesuffix(packed).lower().rpartition(".")[2]
    as_lines = output == "-" or kind in LINES or bool(packed)
    to_folder = not as_lines and kind not in ("npy", "npz")
    if format is not None and not as_lines:
        raise UsageError("only lines take a --format, not an array file or a folder")
    shown = format or ("text" if kind in ("txt", "tsv") else "jsonl")
    if to_folder:
        modeldir.check_new(output, force=force)
    elif output != "-":
        textio.check_writable(output)
    options.resolve_inputs(inputs)
    notes = Notes()
    bert = open_model(model, use)
    check_layer(bert, layer)
    long = 0
    texts: list[str] = []
    parts: list[Any] = []
    with open_output(output if as_lines else "-") as out:
        for batch in read_texts(inputs, reading):
            long += bert.count_long(batch)
            if tokens:
                found: list[Any] = _token_vectors(bert, batch, layer)
            else:
                found = list(bert.vectors(batch, pooling, normalize=normalize or None, layer=layer))
            if as_lines:
                _write_lines(out, bert, batch, found, tokens, shown)
            else:
                texts += _token_names(bert, batch) if tokens else batch
                parts += found
    say_long(notes, long, bert)
    if not as_lines:
        _save(output, kind, texts, parts, tokens, force)
        notes.say(f"wrote {output}")


def _token_vectors(bert: BertModel, batch: list[str], layer: int | None) -> list[Any]:
    """The states of each line's tokens, without [CLS] and [SEP], parts joined."""
    import torch

    owners, rows = bert.parts(batch)
    states: list[Any] = [None] * len(rows)
    for numbers, found, _ in bert.states(rows, layer=layer):
        for number, state in zip(numbers, found, strict=True):
            states[number] = state[1 : len(rows[number]) - 1].float().cpu()
    by_line: list[list[Any]] = [[] for _ in batch]
    for owner, state in zip(owners, states, strict=True):
        by_line[owner].append(state)
    return [torch.cat(line) for line in by_line]


def _token_names(bert: BertModel, batch: list[str]) -> list[str]:
    return [token for ids in bert.codec.encode_many(batch) for token in bert.codec.tokens(ids)]


def _write_lines(
    out: Any, bert: BertModel, batch: list[str], found: list[Any], tokens: bool, format: str
) -> None:
    for line, vectors in zip(batch, found, strict=True):
        numbers = vectors.double().numpy().round(7).tolist()
        names = bert.codec.tokens(bert.codec.encode(line)) if tokens else []
        if format == "text":
            out.write(vector_lines(names, numbers) if tokens else vector_line(numbers))
        elif tokens:
            out.write_json(with_record(line, {"tokens": names, "vectors": numbers}))
        else:
            out.write_json(with_record(line, {"text": line, "vector": numbers}))
    out.flush()


def _save(
    output: str, kind: str, texts: list[str], parts: list[Any], tokens: bool, force: bool
) -> None:
    import numpy as np

    if not parts:
        raise NlpkitError("no lines to embed", hint="a file that is not empty")
    matrix = np.concatenate([np.atleast_2d(part.numpy()) for part in parts])
    if kind == "npy":
        textio.write_array(output, array=matrix)
        return
    if kind == "npz":
        lengths = {"lengths": np.array([len(part) for part in parts])} if tokens else {}
        textio.write_array(output, vectors=matrix, **lengths)
        return
    from nlpkit.vectors.store import Vectors

    names = [" ".join(text.split()) for text in texts]
    if tokens:  # all occurrences of a token are one word
        distinct, place = np.unique(np.array(names), return_inverse=True)
        sums = np.zeros((len(distinct), matrix.shape[1]), np.float64)
        np.add.at(sums, place, matrix)
        counts = np.bincount(place)
        order = np.lexsort((distinct, -counts))
        matrix = (sums / counts[:, None]).astype(np.float32)[order]
        vectors = Vectors.from_rows(
            distinct[order].tolist(), matrix, name=output, counts=counts[order].astype(np.int64)
        )
    else:
        kept = [row for row, name in enumerate(names) if name]
        vectors = Vectors.from_rows([names[row] for row in kept], matrix[kept], name=output)
    vectors.save(output, "folder", force=force)


def similarity(
    *,
    model: Bert,
    first: str | None = argument(
        None, "A text; without one, pairs are read from lines.", metavar="TEXT"
    ),
    second: str | None = argument(None, "Another text.", metavar="OTHER"),
    reading: Reading,
    display: options.Rows,
    use: options.Use,
) -> None:
    """Give the cosine of two texts, or of the pairs on standard input.

    A pair is a line with a tab between its texts, or a record with the keys first and second, which
    keeps its other keys with --json. Rows, or keys of --json: cosine, first, second.

    Examples:
      $ nlpkit bert train sample_corpora/world.txt -o world.bert --max-time 60s
      $ nlpkit bert similarity world.bert "Paris is in France." "Rome is in Italy."
      $ printf 'a king\\ta queen\\n' | nlpkit bert similarity world.bert --json
    """
    shown = display.shown
    if (first is None) != (second is None):
        raise UsageError("give two texts, or none to read pairs from standard input")
    if first is None:
        options.resolve_inputs(None)
    notes = Notes()
    bert = open_model(model, use)
    if first is None or second is None:
        batches = read_texts(None, reading, ("first",))
    else:
        batches = iter([["\t".join(" ".join(text.split("\t")) for text in (first, second))]])
    long, done = 0, 0
    with open_output("-") as out:
        for batch in batches:
            pairs = [pair_of(line, f"line {done + i}") for i, line in enumerate(batch, 1)]
            done += len(batch)
            texts = [text for pair in pairs for text in pair]
            long += bert.count_long(texts)
            vectors = bert.vectors(texts, normalize=True)
            cosines = (vectors[0::2] * vectors[1::2]).sum(dim=-1).tolist()
            rows = [(round(c, 6), a, b) for c, (a, b) in zip(cosines, pairs, strict=True)]
            write_rows(out, ("cosine", "first", "second"), rows, shown)
            out.flush()
    say_long(notes, long, bert)


def index(
    *,
    model: Bert,
    inputs: options.Inputs = None,
    output: str = flag(..., "The folder to write.", "--output", "-o", metavar="INDEX"),
    reading: Reading,
    force: options.Force = False,
    use: options.Use,
) -> None:
    """Make an index of lines, to search them by meaning.

    It holds the lines, their vectors and the model, so that nlpkit bert search needs nothing else.

    Examples:
      $ nlpkit bert train sample_corpora/world.txt -o world.bert --max-time 60s
      $ nlpkit bert index world.bert sample_corpora/world.txt -o world.index
      $ nlpkit bert search world.index "cities in Italy"
    """
    modeldir.check_new(output, force=force)
    options.resolve_inputs(inputs)
    notes = Notes()
    bert = open_model(model, use)
    made = _index(bert, inputs, reading, notes)
    made.save(output, force=force)
    notes.say(f"{plural(len(made), 'line')}, {plural(len(made.vectors), 'vector')}; wrote {output}")


def _index(
    bert: BertModel, inputs: list[str] | None, reading: Reading, notes: Notes
) -> SearchIndex:
    from nlpkit.tasks.bert.index import build_index
    from nlpkit.text.records import lines_of, read_records

    def files() -> Any:
        for path in options.resolve_inputs(inputs):
            blocks = read_records([path], reading, say=notes.say)
            yield path, (line for block in blocks for line in lines_of(block, reading.errors))

    with notes.progress("reading") as bar:
        made = build_index(bert, files(), lambda done: bar.update(done, f"{done:,} lines"))
    say_long(notes, made.long_lines, bert)
    return made


def search(
    *,
    source: str = argument(..., "From nlpkit bert index; with INPUT, a model.", metavar="INDEX"),
    query: str = argument(..., "What to look for; - reads one from each line.", metavar="QUERY"),
    inputs: list[str] | None = argument(
        None, "Files to search without an index.", metavar="INPUT", show_default=False
    ),
    number: int = flag(
        10, "Lines to show.", "--count", "--number", "-n", metavar="N", min=1, max=limits.MANY
    ),
    reading: Reading,
    display: options.Rows,
    use: options.Use,
) -> None:
    """Rank lines by how close they are to a query in meaning.

    All cosines are computed: the answer is exact. Rows, or keys of --json: score (cosine), file,
    line (its number), text; with queries from standard input also query. --input and --key say how
    INPUT is to be read; without it, how the queries are.

    Examples:
      $ nlpkit bert train sample_corpora/world.txt -o world.bert --max-time 60s
      $ nlpkit bert search world.bert "cities in Italy" sample_corpora/world.txt -n 3
      $ nlpkit bert index world.bert sample_corpora/world.txt -o world.index
      $ nlpkit bert search world.index "cities in Italy" --json
    """
    from nlpkit.tasks.bert.index import SearchIndex

    shown = display.shown
    notes = Notes()
    if not query.strip():
        raise NlpkitError("an empty query", hint="some words")
    if inputs:
        if query == "-" and "-" in inputs:
            raise UsageError("standard input (-) can be read only once")
        found = _index(open_model(source, use), inputs, reading, notes)
    else:
        found = SearchIndex.load(source)
    many = query == "-"
    batches = read_texts(["-"], Reading() if inputs else reading) if many else iter([[query]])
    columns = (*(("query",) if many else ()), *_FOUND)
    with open_output("-") as out:
        for batch in batches:
            for asked in batch:
                rows = [
                    (*((asked,) if many else ()), one.score, one.file, one.number, one.line)
                    for one in found.search(asked, number)
                ]
                write_rows(out, columns, rows, shown)
                out.flush()
