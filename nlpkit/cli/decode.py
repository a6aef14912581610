"""``nlpkit decode``."""

from __future__ import annotations

from typing import Annotated

import typer

from nlpkit.cli import options
from nlpkit.cli.frame import Command, new_app
from nlpkit.cli.output import open_output
from nlpkit.cli.rows import read_rows
from nlpkit.text.pipeline import show
from nlpkit.text.vocab import Vocab

app = new_app()


@app.command(cls=Command)
def decode(
    vocab: options.VocabFile,
    inputs: options.Inputs = None,
    skip_special: Annotated[
        bool, typer.Option("--skip-special", help="Leave out padding and other special tokens.")
    ] = False,
    output: options.Output = "-",
    encoding: options.Encoding = "utf-8",
    errors: options.Errors = "strict",
) -> None:
    """Turn ids back into tokens.

    Ids stand between spaces or in jsonl, as 'nlpkit encode' and 'nlpkit pad' write them.

    Examples:
      $ nlpkit vocab build sample_corpora/world.txt -o world.vocab
      $ echo "the king sat" | nlpkit encode -V world.vocab | nlpkit decode -V world.vocab
    """
    loaded = Vocab.load(vocab)
    shown = {token: show(token) for token in loaded}
    special = frozenset(loaded.specials) if skip_special else frozenset()
    blocks = options.read_inputs(inputs, encoding, errors)
    with open_output(output) as out:
        for rows in read_rows(blocks, errors):
            for row in rows:
                tokens = [token for token in loaded.decode(row) if token not in special]
                out.write(" ".join([shown[token] for token in tokens]) + "\n")
            out.flush()
