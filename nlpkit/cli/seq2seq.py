"""``nlpkit seq2seq``: train, clean, import, export; what uses a model is in ``seq2seq_use``."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from nlpkit import modeldir
from nlpkit.cli import options, seq2seq_use
from nlpkit.cli.flags import argument, flag
from nlpkit.cli.frame import new_app
from nlpkit.cli.output import Notes, check_output, open_output
from nlpkit.cli.progress_training import check_place, draw_run, prepare_torch
from nlpkit.cli.seq2seq_use import PairFlags
from nlpkit.errors import UsageError, plural
from nlpkit.settings import DATA
from nlpkit.tasks.translate.clean import CleanSettings
from nlpkit.tasks.translate.settings import TranslateSettings

if TYPE_CHECKING:
    from nlpkit.tasks.translate.train import TranslateRun


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
    has_dev = dev is not None or dev_source is not None or dev_target is not None
    _check(settings, has_dev)
    notes = check_place(output, flags, processes)
    data = where.load(decoding)
    held = []
    if has_dev:
        given = replace(where, pairs=dev, source=dev_source, target=dev_target)
        held = given.load(decoding)
    chosen = processes.join(prepare_torch(flags, notes))
    run = TranslateRun(data, settings, dev=held, device=chosen, processes=processes)
    _describe(run, notes)
    draw_run(run, output, notes, resume=flags.resume, force=flags.force)


def _check(settings: TranslateSettings, has_dev: bool) -> None:
    """Options that would do nothing."""
    if not has_dev and (settings.metric != "loss" or settings.patience is not None):
        name = "patience" if settings.metric == "loss" else "metric"
        raise UsageError(f"--{name} needs --dev, pairs that are held out")
    transformer = {
        "heads": settings.heads,
        "norm": settings.norm,
        "positions": settings.positions,
    }
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
    if settings.attention == "none" and settings.input_feeding:
        raise UsageError("--input-feeding feeds back what was attended to: not with none")


def _describe(run: TranslateRun, notes: Notes) -> None:
    """What is learned from, and by what."""
    shape, left_out = run.model.settings, run.left_out
    notes.say(f"{plural(len(run.sources), 'pair')} to learn from, {len(run.dev):,} held out")
    for count, why in (
        (left_out.empty, "had an empty side"),
        (left_out.long, f"had a side of more than --max-length {run.settings.max_length} tokens"),
    ):
        if count:
            notes.warn(f"left out, {plural(count, 'pair')}: {why}")
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


def clean(
    *,
    settings: CleanSettings,
    pairs: seq2seq_use.Pairs = None,
    source: seq2seq_use.SourceFile = None,
    target: seq2seq_use.TargetFile = None,
    output: options.Output = "-",
    rejected: str | None = flag(
        None, "Write the others: reason, pair number, pair.", metavar="FILE"
    ),
    decoding: options.Decoding,
) -> None:
    """Leave out pairs that do more harm than good; the others go on as source<TAB>target.

    Reasons, in this order: empty (a side without text), identical (not translated), long, ratio
    (one side is much longer than the other), script (not that of the language), duplicate.

    Examples:
      $ nlpkit seq2seq clean sample_corpora/en-ca.tsv -o good.tsv --rejected bad.tsv
      $ printf 'Hello!\\tHola!\\nHello!\\t\\n' | nlpkit seq2seq clean
    """
    from nlpkit.tasks.translate.clean import REASONS, sort_out

    for path in (output, rejected):
        if path is not None:
            check_output(path)
    data = seq2seq_use.PairFlags(pairs, source, target).load(decoding)
    counts: Counter[str] = Counter()
    bad: list[str] = []
    with open_output(output) as out:
        for number, (pair, reason) in enumerate(sort_out(data, settings), 1):
            line = f"{pair.source}\t{pair.target}\n"
            if reason is None:
                out.write(line)
            else:
                counts[reason] += 1
                bad.append(f"{reason}\t{number}\t{line}")
    if rejected is not None:
        with open_output(rejected) as out:
            for line in bad:
                out.write(line)
    why = ", ".join(f"{counts[reason]:,} {reason}" for reason in REASONS if counts[reason])
    left_out = f"{len(bad):,} left out{': ' + why if why else ''}"
    Notes().say(f"{len(data) - len(bad):,} of {len(data):,} pairs kept, {left_out}")


def import_(
    source: str = argument(..., "A Hugging Face folder of a Marian model.", metavar="SOURCE"),
    output: options.NewModel = ...,  # type: ignore[assignment]
    force: options.Force = False,
) -> None:
    """Take over a Marian model of Hugging Face's form.

    The folder has config.json, model.safetensors, and tokenizer.json, or vocab.json with source.spm
    and target.spm. What a configuration asks for and this program cannot do is refused by name.

    Examples:
      $ nlpkit seq2seq import opus-mt-en-de/ -o en-de.model
    """
    from nlpkit.pretrained.marian import import_marian

    modeldir.check_new(output, force=force)
    translator = import_marian(source)
    translator.save(output, force=force)
    Notes().say(f"{translator.model.count_parameters():,} parameters; wrote {output}")


def export(
    model: options.Model,
    output: str = flag(..., "The folder to write.", "--output", "-o", metavar="DIR"),
) -> None:
    """Write a model as a folder that transformers loads as Marian.

    Only a Transformer of Marian's kind fits: from nlpkit seq2seq train --model transformer --marian
    with one vocabulary of subwords for both sides, or from nlpkit seq2seq import.

    Examples:
      $ nlpkit seq2seq train sample_corpora/en-ca.tsv --model transformer --marian -o m --epochs 1
      $ nlpkit seq2seq export m -o m-hf/
    """
    from nlpkit.pretrained.marian import check_export, export_marian
    from nlpkit.tasks.translate.model import Translator

    check_export(output)
    export_marian(Translator.load(model), output)
    Notes().say(f"wrote {output}")


app = new_app(
    "One sequence into another: translate, pronounce, inflect.",
    train,
    seq2seq_use.predict,
    seq2seq_use.score,
    seq2seq_use.evaluate,
    seq2seq_use.attention,
    clean,
    import_,
    export,
)
