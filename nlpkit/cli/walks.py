"""``nlpkit walks``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nlpkit.cli import options
from nlpkit.cli.flags import argument, with_settings
from nlpkit.cli.frame import Command, new_app
from nlpkit.cli.output import Notes, open_output
from nlpkit.text.records import TOKEN_KEYS, Reading
from nlpkit.word2vec.walk_settings import WalkSettings

app = new_app()
_LINES_AT_ONCE = 1024


@app.command(cls=Command)
@with_settings(WalkSettings)
def walks(
    settings: WalkSettings,
    edges: list[str] | None = argument(
        None, "Edge lists: two nodes and perhaps a weight per line.", metavar="EDGES"
    ),
    seed: options.Seed = WalkSettings.seed,
    output: options.Output = "-",
    encoding: options.Encoding = "utf-8",
    errors: options.Errors = "strict",
) -> None:
    """Walk at random over a graph, each walk a line of nodes (node2vec).

    Columns stand between tabs or spaces; a third one is the weight of an edge. Edges lead both ways
    unless --directed. Lines come as a stream, so walks | word2vec train learns vectors of nodes; no
    more than the graph is kept in memory. The same seed gives the same walks.

    Examples:
      $ nlpkit walks sample_corpora/metro.tsv --walks 2 --length 10 | head -3
      $ nlpkit walks sample_corpora/metro.tsv --q 0.5 | nlpkit w2v train -o metro.model --dim 20
    """
    from nlpkit.word2vec.walks import random_walks, read_graph

    notes = Notes()
    reading = Reading(encoding=encoding, errors=errors)
    blocks = options.read_plain(edges, reading, TOKEN_KEYS, tables=False)

    def lines() -> Iterator[tuple[str, str]]:
        for block in blocks:
            for number, line in enumerate(block.lines(errors), block.first_line):
                yield f"{block.source}: line {number}", line

    settings = replace(settings, seed=seed)
    graph = read_graph(lines(), settings)
    notes.say(
        f"{len(graph.names):,} nodes, {len(graph.neighbours):,} ways to go, "
        f"{len(graph.names) * settings.walks:,} walks"
    )
    with open_output(output) as out:
        some: list[str] = []
        for walk in random_walks(graph, settings):
            some.append(" ".join(walk) + "\n")
            if len(some) == _LINES_AT_ONCE:
                out.write("".join(some))
                some.clear()
        out.write("".join(some))
