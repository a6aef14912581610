"""``nlpkit gpt``: the group; its commands are in ``gpt_train``, ``gpt_use`` and ``gpt_files``."""

from __future__ import annotations

from nlpkit.cli import gpt_examples, gpt_files, gpt_train, gpt_use
from nlpkit.cli.frame import Command, new_app

app = new_app("GPT models: train, sample, score, answer, import, export, attention.")
app.command(cls=Command)(gpt_train.train)
app.command(cls=Command)(gpt_use.sample)
app.command(cls=Command)(gpt_use.score)
app.command(cls=Command)(gpt_examples.answer)
app.command(cls=Command)(gpt_examples.evaluate)
app.command("import", cls=Command)(gpt_files.import_)
app.command(cls=Command)(gpt_files.export)
app.command(cls=Command)(gpt_files.attention)
