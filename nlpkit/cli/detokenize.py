"""``nlpkit detokenize``."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from nlpkit.cli import options
from nlpkit.cli.frame import Command, new_app
from nlpkit.cli.output import open_output
from nlpkit.text.detokenize import detokenize as join_words
from nlpkit.text.pipeline import SHOWN_SPACE

app = new_app()


@app.command(cls=Command)
def detokenize(
    inputs: options.Inputs = None,
    unit: Annotated[
        Literal["word", "char"],
        typer.Option("--unit", help="char: tokens were characters or pieces, with ▁ for a space."),
    ] = "word",
    output: options.Output = "-",
    encoding: options.Encoding = "utf-8",
    errors: options.Errors = "strict",
) -> None:
    """Join word tokens back into readable text.

    Tokens stand between spaces, a text a line, as 'nlpkit tokenize' writes them. Spaces, quotes,
    brackets and contractions are put back the way one would write them.

    Examples:
      $ echo "I ca n't pay ( yet ) , he said ." | nlpkit detokenize
      $ nlpkit tokenize sample_corpora/tales.txt | nlpkit detokenize | head -2
      $ echo "a b" | nlpkit tokenize -t char | nlpkit detokenize --unit char
    """
    blocks = options.read_inputs(inputs, encoding, errors)
    with open_output(output) as out:
        for block in blocks:
            for line in block.lines(errors):
                if unit == "char":
                    out.write("".join(line.split(" ")).replace(SHOWN_SPACE, " ") + "\n")
                else:
                    out.write(join_words(line.split()) + "\n")
            out.flush()
