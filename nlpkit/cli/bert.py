"""``nlpkit bert``: the group; its commands are in ``bert_train``, ``bert_words``,
``bert_vectors`` and ``bert_files``."""

from __future__ import annotations

from nlpkit.cli import bert_files, bert_train, bert_vectors, bert_words
from nlpkit.cli.frame import Command, new_app

app = new_app("BERT: train, fill in words, embed, search, senses, import, export.")
app.command(cls=Command)(bert_train.train)
app.command(cls=Command)(bert_words.fill)
app.command(cls=Command)(bert_words.compare)
app.command(cls=Command)(bert_words.score)
app.command(cls=Command)(bert_words.senses)
app.command(cls=Command)(bert_vectors.embed)
app.command(cls=Command)(bert_vectors.similarity)
app.command(cls=Command)(bert_vectors.index)
app.command(cls=Command)(bert_vectors.search)
app.command(cls=Command)(bert_files.attention)
app.command("import", cls=Command)(bert_files.import_)
app.command(cls=Command)(bert_files.export)
