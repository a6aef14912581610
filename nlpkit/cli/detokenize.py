"""``nlpkit detokenize``."""

from __future__ import annotations

from typing import Literal

from nlpkit.cli import options
from nlpkit.cli.flags import flag
from nlpkit.cli.frame import new_app
from nlpkit.cli.output import open_output
from nlpkit.text.detokenize import detokenize as join_words
from nlpkit.text.pipeline import SHOWN_SPACE
from nlpkit.text.records import TOKEN_KEYS, Reading, rows_of, text_of

app = new_app()


@app.command()
def detokenize(
    reading: Reading,
    inputs: options.Inputs = None,
    unit: Literal["word", "char"] = flag(
        "word", "char: tokens were characters or pieces, with ▁ for a space."
    ),
    format: options.TextFormat = None,
    output: options.Output = "-",
) -> None:
    """Join word tokens back into readable text.

    Tokens stand between spaces, one text per line, as 'nlpkit tokenize' writes them. Spaces,
    quotes, brackets and contractions are put back the way one would write them. jsonl has the key
    text, and the other keys of a record that came in.

    Examples:
      $ echo "I ca n't pay ( yet ) , he said ." | nlpkit detokenize
      $ nlpkit tokenize sample_corpora/tales.txt | nlpkit detokenize | head -2
      $ echo "a b" | nlpkit tokenize -t char | nlpkit detokenize --unit char
    """
    chosen = format or "text"
    blocks = options.read_records(inputs, reading, TOKEN_KEYS)
    with open_output(output) as out:
        for block in blocks:
            for row in rows_of(block, reading.errors):
                line = text_of(row, block.source)
                if unit == "char":
                    text = "".join(line.split(" ")).replace(SHOWN_SPACE, " ")
                else:
                    text = join_words(line.split())
                if chosen == "jsonl":
                    out.write_json({**row.record, "text": text})
                else:
                    out.write(text + "\n")
            out.flush()
