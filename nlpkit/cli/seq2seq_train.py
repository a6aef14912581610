"""``nlpkit seq2seq train``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nlpkit.cli import options
from nlpkit.cli.flags import flag, with_settings
from nlpkit.cli.frame import UsageError
from nlpkit.cli.output import Notes
from nlpkit.cli.progress_training import check_place, draw_run, prepare_torch
from nlpkit.cli.seq2seq_pairs import PairFlags
from nlpkit.settings import DATA
from nlpkit.tasks.translate.settings import TranslateSettings

if TYPE_CHECKING:
    from nlpkit.tasks.translate.train import TranslateRun


@with_settings(TranslateSettings, PairFlags, options.Training, options.Decoding)
def train(
    *,
    settings: TranslateSettings,
    output: options.NewModel,
    where: PairFlags,
    dev: str | None = flag(
        None,
        "Held-out pairs: the best model on them is kept.",
        metavar="FILE",
        rich_help_panel=DATA,
    ),
    dev_source: str | None = flag(None, "Held-out sources.", metavar="FILE", rich_help_panel=DATA),
    dev_target: str | None = flag(None, "Held-out targets.", metavar="FILE", rich_help_panel=DATA),
    flags: options.Training,
    decoding: options.Decoding,
) -> None:
    """Learn to turn sources into targets.

    Without --max-time and --max-iters the data is gone over --epochs 20 times. Under torchrun
    (torchrun --no-python nlpkit seq2seq train ...) the processes share the work.

    Examples:
      $ nlpkit seq2seq train sample_corpora/dates.tsv -t char -o dates.model --max-time 20s
      $ nlpkit seq2seq train sample_corpora/en-ca.tsv -o en-ca.model --max-time 30s
      $ nlpkit seq2seq train sample_corpora/en-ca.tsv --attention none -o none.model --epochs 1
      $ nlpkit seq2seq train sample_corpora/en-ca.tsv --model transformer -o t.model --epochs 1
    """
    from nlpkit.tasks.translate.train import TranslateRun
    from nlpkit.training.distributed import Processes

    processes = Processes.from_environment()
    _check(settings)
    notes = check_place(output, flags, processes)
    data = where.load(decoding)
    held = []
    if dev is not None or dev_source is not None or dev_target is not None:
        given = replace(where, pairs=dev, source=dev_source, target=dev_target)
        held = given.load(decoding)
    chosen = processes.join(prepare_torch(flags, notes))
    run = TranslateRun(data, settings, dev=held, device=chosen, processes=processes)
    _describe(run, notes)
    draw_run(run, output, notes, resume=flags.resume, force=flags.force)


def _check(settings: TranslateSettings) -> None:
    """Options that would do nothing."""
    transformer = {"norm": settings.norm, "positions": settings.positions}
    recurrent = {
        "attention": settings.attention,
        "input-feeding": settings.input_feeding or None,
    }
    if settings.model == "transformer":
        for name, value in recurrent.items():
            if value is not None:
                raise UsageError(f"--{name} is for --model lstm and gru")
    else:
        given = [name for name, value in transformer.items() if value is not None]
        given += ["marian"] if settings.marian else []
        if given:
            raise UsageError(f"--{given[0]} needs --model transformer")


def _describe(run: TranslateRun, notes: Notes) -> None:
    """What is learned from, and by what."""
    shape, left_out = run.model.settings, run.left_out
    notes.say(f"{len(run.sources):,} pairs to learn from, {len(run.dev):,} held out")
    for count, why in (
        (left_out.empty, "had an empty side"),
        (left_out.long, f"had a side of more than --max-length {run.settings.max_length} tokens"),
    ):
        if count:
            notes.warn(f"{count:,} pairs were left out: they {why}")
    what = f"{shape.layers} layer{'s' * (shape.layers > 1)}, width {shape.dim}"
    if shape.model != "transformer":
        what += f", attention {shape.attention}"
    picked = "auto picked " if run.settings.model == "auto" else ""
    if picked and run.picked.epochs is not None:
        what += f", to read the data about {run.picked.epochs:.1f} times"
    sizes = f"{len(run.source):,}" if shape.joint else f"{len(run.source):,} + {len(run.target):,}"
    together = f"{shape.members} models of " if shape.members > 1 else ""
    notes.say(
        f"{picked}{together}{shape.model}, {what}; vocabulary {sizes}, of which "
        f"{shape.written:,} are written; {run.model.count_parameters():,} parameters"
    )
