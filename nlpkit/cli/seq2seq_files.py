"""``nlpkit seq2seq clean``, ``import`` and ``export``."""

from __future__ import annotations

from collections import Counter

from nlpkit import modeldir
from nlpkit.cli import options, seq2seq_pairs
from nlpkit.cli.flags import argument, flag, with_settings
from nlpkit.cli.output import Notes, check_output, open_output
from nlpkit.tasks.translate.clean import CleanSettings


@with_settings(CleanSettings)
def clean(
    settings: CleanSettings,
    pairs: seq2seq_pairs.Pairs = None,
    source: seq2seq_pairs.SourceFile = None,
    target: seq2seq_pairs.TargetFile = None,
    output: options.Output = "-",
    rejected: str | None = flag(
        None, "Write the others: reason, pair number, pair.", metavar="FILE"
    ),
    encoding: options.Encoding = "utf-8",
    errors: options.Errors = "strict",
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
    data = seq2seq_pairs.PairFlags(pairs, source, target).load(options.Decoding(encoding, errors))
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
