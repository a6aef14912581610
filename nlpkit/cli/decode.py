"""``nlpkit decode``."""

from __future__ import annotations

from nlpkit.cli import options
from nlpkit.cli.flags import flag
from nlpkit.cli.frame import new_app
from nlpkit.cli.output import open_output
from nlpkit.cli.rows import read_rows
from nlpkit.text.pipeline import show
from nlpkit.text.records import ID_KEYS, Reading
from nlpkit.text.vocab import Vocab

app = new_app()


@app.command()
def decode(
    reading: Reading,
    vocab: options.VocabFile,
    inputs: options.Inputs = None,
    skip_special: bool = flag(False, "Leave out padding and other special tokens."),
    format: options.TextFormat = None,
    output: options.Output = "-",
) -> None:
    """Turn ids back into tokens.

    Ids stand between spaces or in jsonl, as 'nlpkit encode' and 'nlpkit pad' write them. jsonl has
    the key tokens, and the other keys of a record that came in.

    Examples:
      $ nlpkit vocab build sample_corpora/world.txt -o world.vocab
      $ echo "the king sat" | nlpkit encode -V world.vocab | nlpkit decode -V world.vocab
    """
    loaded = Vocab.load(vocab)
    shown = {token: show(token) for token in loaded}
    special = frozenset(loaded.specials) if skip_special else frozenset()
    chosen = format or "text"
    blocks = options.read_records(inputs, reading, ID_KEYS)
    with open_output(output) as out:
        for rows in read_rows(blocks, reading.errors):
            for row, ids in rows:
                tokens = [token for token in loaded.decode(ids) if token not in special]
                if chosen == "jsonl":
                    kept = {key: value for key, value in row.record.items() if key != "offsets"}
                    out.write_json({**kept, "tokens": tokens})
                else:
                    out.write(" ".join([shown[token] for token in tokens]) + "\n")
            out.flush()
