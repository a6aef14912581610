"""``nlpkit seq2seq``: the group; its commands are in the modules named ``seq2seq_...``."""

from __future__ import annotations

from nlpkit.cli import seq2seq_evaluate, seq2seq_files, seq2seq_train, seq2seq_use
from nlpkit.cli.frame import Command, new_app

app = new_app("One sequence into another: translate, pronounce, inflect.")
app.command(cls=Command)(seq2seq_train.train)
app.command(cls=Command)(seq2seq_use.predict)
app.command(cls=Command)(seq2seq_use.score)
app.command(cls=Command)(seq2seq_evaluate.evaluate)
app.command(cls=Command)(seq2seq_use.attention)
app.command(cls=Command)(seq2seq_files.clean)
app.command("import", cls=Command)(seq2seq_files.import_)
app.command(cls=Command)(seq2seq_files.export)
