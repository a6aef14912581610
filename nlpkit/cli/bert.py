"""``nlpkit bert``: train, import, export, attention; others are in the modules beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nlpkit import modeldir
from nlpkit import settings as limits
from nlpkit.cli import bert_vectors, bert_words, inspect_output, options
from nlpkit.cli.bert_options import Bert
from nlpkit.cli.flags import argument, flag
from nlpkit.cli.frame import new_app
from nlpkit.cli.output import Notes, open_output
from nlpkit.cli.progress_training import check_place, draw_run, prepare_torch
from nlpkit.plots import check_picture
from nlpkit.tasks.bert.settings import BertTraining
from nlpkit.text.records import Reading

if TYPE_CHECKING:
    from nlpkit.training.run import Progress


def train(
    *,
    settings: BertTraining,
    text: options.Inputs = None,
    output: options.NewModel,
    tokenizer: str | None = flag(
        None,
        "A WordPiece tokenizer.json, vocab.txt or model folder.",
        "--tokenizer",
        "-t",
        metavar="PATH",
        show_default="learned from the text",
        rich_help_panel=limits.DATA,
    ),
    vectors: str | None = flag(
        None,
        "Word vectors to start the embeddings from.",
        metavar="PATH",
        show_default="counted in the text; bert: random",
        rich_help_panel=limits.MODEL,
    ),
    reading: Reading,
    flags: options.Training,
) -> None:
    """Train a BERT on text, a line after the other: a masked language model.

    Tokens are hidden anew at each step. Held-out loss and accuracy are of 15 % of the tokens of
    held-out lines, all hidden by [MASK], beside what counting alone reaches there. Under torchrun
    (torchrun --no-python nlpkit bert train ...) the processes share the work.

    Examples:
      $ nlpkit bert train sample_corpora/world.txt -o world.bert --max-time 60s
      $ nlpkit bert train sample_corpora/tales.txt -o tales.bert --size tiny --whole-words
      $ nlpkit sentences sample_corpora/tales.txt -o lines.txt
      $ nlpkit bert train lines.txt -o hf.bert --recipe bert --next-sentence
    """
    from nlpkit.device import memory_advice
    from nlpkit.tasks.bert.data import tokenize_lines
    from nlpkit.tasks.bert.train import BertRun
    from nlpkit.text.records import lines_of
    from nlpkit.training.distributed import Processes
    from nlpkit.vectors.store import Vectors

    processes = Processes.from_environment()
    wanted = settings.resolve()
    notes = check_place(output, flags, processes)
    given = None if vectors is None else Vectors.load(vectors)
    chosen = processes.join(prepare_torch(flags, notes))
    blocks = options.read_records(text, reading)
    texts = [line for block in blocks for line in lines_of(block, reading.errors)]
    lines, codec = tokenize_lines(texts, tokenizer, wanted)
    with memory_advice():
        run = BertRun(lines, codec, wanted, chosen, vectors=given, processes=processes)

    def on_progress(progress: Progress) -> None:
        if progress.heldout is not None:
            notes.say(f"step {progress.step:,}  {run.describe(progress.heldout)}")

    draw_run(run, output, notes, resume=flags.resume, force=flags.force, on_progress=on_progress)


def import_(
    source: str = argument(..., "A folder of Hugging Face's form.", metavar="DIR"),
    output: options.NewModel = ...,  # type: ignore[assignment]
    force: options.Force = False,
) -> None:
    """Take over a BERT, a DistilBERT or a sentence encoder such as MiniLM.

    A folder has config.json, *.safetensors, and tokenizer.json or vocab.txt; the pooling of
    sentence-transformers is read, too. A configuration that asks for other arithmetic than BERT's
    is refused.

    Examples:
      $ nlpkit bert import all-MiniLM-L6-v2/ -o minilm.bert
    """
    from nlpkit.pretrained.bert import import_bert

    modeldir.check_new(output, force=force)
    bert = import_bert(source)
    bert.save(output, force=force)
    notes = Notes()
    missing = " and no head for masked words" if bert.model.head is None else ""
    notes.say(f"{bert.model.count_parameters():,} parameters{missing}; wrote {output}")


def export(
    model: Bert,
    output: str = flag(..., "The folder to write.", "--output", "-o", metavar="DIR"),
) -> None:
    """Write a BERT as a folder that transformers loads.

    Only models of BERT's kind fit that form: those from nlpkit bert import, and those from nlpkit
    bert train --recipe bert. A model without a head for masked words is written as a sentence
    encoder that sentence-transformers loads.

    Examples:
      $ nlpkit bert train sample_corpora/world.txt -o world.bert --recipe bert --max-time 60s
      $ nlpkit bert export world.bert -o world-hf/
    """
    from nlpkit.pretrained.bert import open_bert
    from nlpkit.pretrained.bert_export import export_bert
    from nlpkit.pretrained.hugging_face import check_export

    check_export(output)
    export_bert(open_bert(model), output)
    Notes().say(f"wrote {output}")


def attention(
    *,
    model: Bert,
    text: str = argument(..., "What to read.", metavar="TEXT"),
    wanted: inspect_output.AttentionFlags,
) -> None:
    """Show what each token looks at: attention weights, by layer and head.

    On a terminal a heat map of characters, else JSON lines. Keys: layer, head, tokens, weights (a
    row for each token: what it looks at adds up to 1).

    Examples:
      $ nlpkit bert train sample_corpora/world.txt -o world.bert --max-time 60s
      $ nlpkit bert attention world.bert "Paris is in France." --layer 1 --head 1
      $ nlpkit bert attention world.bert "Paris is in France." --plot bert.png > weights.jsonl
    """
    from nlpkit.pretrained.bert import open_bert
    from nlpkit.tasks.bert.attention import attention_records

    chosen = inspect_output.shown_as(wanted.format)
    check_picture(wanted.plot)
    records = attention_records(open_bert(model), text, wanted.layer, wanted.head)
    with open_output("-") as out:
        inspect_output.write_attention(out, records, wanted.plot, chosen)


app = new_app(
    "BERT: train, fill in words, embed, search, senses, import, export.",
    train,
    bert_words.fill,
    bert_words.compare,
    bert_words.score,
    bert_words.senses,
    bert_vectors.embed,
    bert_vectors.similarity,
    bert_vectors.index,
    bert_vectors.search,
    attention,
    import_,
    export,
)
