"""``nlpkit bert train``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nlpkit import settings as limits
from nlpkit.cli import options
from nlpkit.cli.flags import flag, with_settings
from nlpkit.cli.progress_training import check_place, draw_run, prepare_torch
from nlpkit.tasks.bert.settings import BertTraining
from nlpkit.text.records import Reading

if TYPE_CHECKING:
    from nlpkit.training.run import Progress


@with_settings(BertTraining, Reading, options.Training)
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
      $ nlpkit bert train sample_corpora/tales.txt -o hf.bert --recipe bert --next-sentence
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
