"""``nlpkit lm``: the group; its commands are in the ``lm_`` modules beside this one."""

from __future__ import annotations

from nlpkit.cli import lm_ask, lm_compare, lm_files, lm_inspect, lm_novelty, lm_train
from nlpkit.cli.frame import Command, new_app

app = new_app("Language models of text, n-grams to GPT: train, sample, score, ask, compare.")
app.command(cls=Command)(lm_train.train)
app.command(cls=Command)(lm_ask.sample)
app.command(cls=Command)(lm_ask.score)
app.command("next", cls=Command)(lm_ask.next_)
app.command(cls=Command)(lm_compare.compare)
app.command(cls=Command)(lm_novelty.novelty)
app.command(cls=Command)(lm_inspect.inspect)
app.command("import", cls=Command)(lm_files.import_)
app.command(cls=Command)(lm_files.export)
