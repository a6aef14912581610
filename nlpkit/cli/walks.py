"""``nlpkit walks``."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace

from nlpkit import textio
from nlpkit.cli import options
from nlpkit.cli.flags import argument
from nlpkit.cli.frame import new_app
from nlpkit.cli.output import Notes, open_output
from nlpkit.errors import NlpkitError
from nlpkit.text.records import tables_as_json
from nlpkit.word2vec.walk_settings import WalkSettings

app = new_app()
_LINES_AT_ONCE = 1024
ENDS = ("source", "target")  # of an edge


@app.command()
def walks(
    *,
    settings: WalkSettings,
    edges: list[str] | None = argument(
        None,
        "Edge lists: two nodes and perhaps a weight per line; CSV or JSON lines, too.",
        metavar="EDGES",
    ),
    seed: options.Seed = WalkSettings.seed,
    output: options.Output = "-",
    format: options.TextFormat = None,
    decoding: options.Decoding,
) -> None:
    """Walk at random over a graph, each walk a line of nodes (node2vec).

    Columns stand between tabs, spaces or commas; a third one is the weight of an edge. A header or
    the keys of JSON lines are source, target and perhaps weight; other columns are passed over.
    Edges lead both ways unless --directed. Lines come as a stream, so walks | word2vec train learns
    vectors of nodes; no more than the graph is kept in memory. The same seed gives the same walks.
    JSON lines have the key tokens.

    Examples:
      $ nlpkit walks sample_corpora/metro.tsv --walks 2 --length 10 | head -3
      $ nlpkit walks sample_corpora/metro.tsv --q 0.5 | nlpkit w2v train -o metro.model --dim 20
    """
    from nlpkit.word2vec.walks import random_walks, read_graph

    notes = Notes()

    def lines() -> Iterator[tuple[str, str]]:
        for path in options.resolve_inputs(edges):
            blocks = textio.read_blocks([path], **vars(decoding))
            for block in tables_as_json(blocks, ENDS, decoding.errors):
                for number, line in enumerate(block.lines(decoding.errors), block.first_line):
                    where = f"{block.source}: line {number}"
                    yield where, _columns(line, where)

    settings = replace(settings, seed=seed)
    graph = read_graph(lines(), settings)
    notes.say(
        f"{len(graph.names):,} nodes, {len(graph.neighbours):,} ways to go, "
        f"{len(graph.names) * settings.walks:,} walks"
    )
    with open_output(output) as out:
        if format == "jsonl":
            for walk in random_walks(graph, settings):
                out.write_json({"tokens": list(walk)})
            return
        some: list[str] = []
        for walk in random_walks(graph, settings):
            some.append(" ".join(walk) + "\n")
            if len(some) == _LINES_AT_ONCE:
                out.write("".join(some))
                some.clear()
        out.write("".join(some))


def _columns(line: str, where: str) -> str:
    """An edge with tabs between its columns, whether it is a JSON object, CSV or that already."""
    if line.startswith("{"):
        record = textio.parse_record(line, where)
        if missing := [key for key in ENDS if key not in record]:
            raise NlpkitError(f"{where}: no {missing[0]}", hint="keys: source, target, weight")
        weight = record.get("weight")
        ends = [str(record[key]) for key in ENDS]
        return "\t".join(ends if weight in (None, "") else [*ends, str(weight)])
    if "," in line and "\t" not in line and " " not in line.strip():
        return "\t".join(next(csv.reader([line])))
    return line
