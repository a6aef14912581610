"""``nlpkit lm``: the group; its commands are in the ``lm_`` modules beside this one."""

from __future__ import annotations

from nlpkit.cli import gpt_use, lm_train
from nlpkit.cli.frame import Command, new_app

app = new_app("Language models of text, from n-grams to GPT: train, sample, score, ask, compare.")
app.command(cls=Command)(lm_train.train)
