"""``nlpkit vectors``: the table of its commands, which are in the modules beside this one."""

from __future__ import annotations

from nlpkit.cli import vectors_ask, vectors_evaluate, vectors_files, vectors_plot, vectors_spaces
from nlpkit.cli.frame import new_app

app = new_app(
    "Word vectors: ask, evaluate, convert, plot.",
    vectors_ask.nearest,
    vectors_ask.analogy,
    vectors_ask.similarity,
    vectors_ask.odd_one_out,
    vectors_ask.get,
    vectors_ask.expand,
    vectors_ask.embed,
    vectors_ask.search,
    vectors_plot.plot,
    vectors_files.info,
    vectors_files.convert,
    vectors_files.normalize,
    vectors_files.merge,
    vectors_files.pca,
    vectors_files.export_projector,
    vectors_files.from_counts,
    vectors_spaces.align,
    vectors_spaces.shift,
    vectors_spaces.bias,
)
app.add_typer(vectors_evaluate.app, name="evaluate")
