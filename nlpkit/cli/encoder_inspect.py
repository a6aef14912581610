"""``nlpkit tag inspect`` and ``nlpkit classify inspect``: attention, gates, units of encoders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import typer

from nlpkit import textio
from nlpkit.cli import inspect_output, lm_analysis, options
from nlpkit.cli.output import open_output
from nlpkit.errors import NlpkitError, UsageError

Text = Annotated[
    str, typer.Argument(metavar="TEXT", help="What to read, a line at a time; - reads stdin.")
]
FindNeurons = Annotated[bool, typer.Option("--find-neurons", help="Short for --show neurons.")]
RECURRENT = ("lstm", "gru")


@dataclass(frozen=True)
class Wanted(lm_analysis.View):
    """What is to be shown."""

    show: Annotated[
        Literal["attention", "gates", "neurons"] | None,
        typer.Option(
            "--show",
            help="What to look at: attention of transformers, gates and neurons of lstm and gru.",
            show_default="attention or gates",
        ),
    ] = None


def inspect_tagger(
    *,
    model: options.Model,
    text: Text,
    find_neurons: FindNeurons = False,
    wanted: Wanted,
) -> None:
    """Look inside a tagger: attention by layer and head, or gates, cells and what they follow.

    gates: how open they are, or one unit over the text (--cell); units of a layer are those that
    read forwards, then those that read backwards. neurons: the units that follow a feature of the
    words best (quotes, brackets, capitals, digits, place in the sentence), with their correlation
    on the second half of the text. attention: heads sorted by what they look at. Drawn on a
    terminal, else JSON lines.

    Examples:
      $ nlpkit tag train sample_corpora/tagged-train.conllu -o t.model --encoder transformer
      $ nlpkit tag inspect t.model "He said Teddy bears are on sale ." --plot attention.html
      $ nlpkit tag train sample_corpora/tagged-train.conllu -o pos.model --epochs 3
      $ nlpkit tag inspect pos.model "He said Teddy bears are on sale ." --cell 3
      $ head -50 sample_corpora/tales.txt | nlpkit tag inspect pos.model - --find-neurons
    """
    from nlpkit.tasks.tag.batches import cut_long
    from nlpkit.tasks.tag.predictor import Tagger
    from nlpkit.tasks.tag.raw import tokenize_text

    wanted = _asked(wanted, find_neurons)
    tagger = Tagger.load(model)
    items = tokenize_text(lm_analysis.read_text(text).splitlines(), tagger.settings.unit)
    rows = [item.tokens[part] for item in items for part in cut_long(len(item.tokens))]
    encoder = getattr(tagger, "encoder", None)
    _show(encoder, lambda tokens: tagger.scores([tokens]), rows, wanted)


def inspect_classifier(
    *,
    model: options.Model,
    text: Text,
    find_neurons: FindNeurons = False,
    wanted: Wanted,
) -> None:
    """Look inside a classifier: attention by layer and head, or gates, cells and what they follow.

    gates: how open they are, or one unit over the text (--cell); units of a layer are those that
    read forwards, then those that read backwards. neurons: the units that follow a feature of the
    words best (quotes, brackets, capitals, digits, place in the sentence), with their correlation
    on the second half of the text. attention: heads sorted by what they look at. Drawn on a
    terminal, else JSON lines.

    Examples:
      $ nlpkit classify train sample_corpora/reviews.tsv -o t.model --model transformer
      $ nlpkit classify inspect t.model "The soup was cold ." --plot attention.html
      $ nlpkit classify train sample_corpora/reviews.tsv -o lstm.model --model lstm --epochs 3
      $ nlpkit classify inspect lstm.model "The soup was cold ." --show gates --cell 1
      $ head -50 sample_corpora/tales.txt | nlpkit classify inspect lstm.model - --find-neurons
    """
    from nlpkit.tasks.classify.predictor import Classifier

    wanted = _asked(wanted, find_neurons)
    classifier = Classifier.load(model)
    bags = getattr(classifier, "bags", None)
    lines = lm_analysis.read_text(text).splitlines()
    rows = [list(bags.tokens(line)) for line in lines] if bags is not None else [lines]
    encoder = getattr(classifier, "_encoder", None)
    _show(encoder, lambda tokens: classifier.scores_of([tokens]), list(filter(None, rows)), wanted)


def _asked(wanted: Wanted, find_neurons: bool) -> Wanted:
    """What was asked for, if it can be drawn."""
    wanted = replace(wanted, show="neurons") if find_neurons else wanted
    lm_analysis.check_plot(wanted.plot, wanted.show or "attention")
    return wanted


def _show(
    encoder: Any,
    read: Callable[[Sequence[str]], Any],
    rows: list[list[str]],
    wanted: Wanted,
) -> None:
    kind = getattr(encoder, "kind", "")
    default = "gates" if kind in RECURRENT else "attention"
    show = wanted.show or default
    if show != "attention" and kind not in RECURRENT:
        raise NlpkitError("this model has no gates", hint="one with an lstm or gru encoder")
    if show == "attention" and kind != "transformer":
        raise NlpkitError("this model has no attention", hint="one with a transformer encoder")
    if not rows:
        raise NlpkitError("there is nothing to read", hint="a text that is not empty")
    if show == "attention" and len(rows) > 1:
        raise UsageError("attention is shown for one line of text")
    if show == "gates" and wanted.plot is not None:
        lm_analysis.check_plot(wanted.plot, show)
    watched = [_watch(encoder, read, row) for row in rows]
    with open_output(textio.STDIN) as out:
        if show == "attention":
            records = _attention(watched[0], rows[0], wanted)
            inspect_output.write_attention(out, records, wanted.plot, wanted.shown)
            return
        gates = _over_rows(watched)
        tokens = [token for row in rows for token in row]
        if show == "neurons":
            from nlpkit.tasks.lm.neurons import word_features

            lm_analysis.show_neurons(out, gates, word_features(tokens), wanted)
        else:
            spaced = [f"{token} " for token in tokens] if wanted.cell else tokens
            lm_analysis.show_gates(out, gates, spaced, wanted)


def _watch(encoder: Any, read: Callable[[Sequence[str]], Any], row: Sequence[str]) -> list[Any]:
    encoder.watched = []
    read(row)
    found: list[Any] = encoder.watched
    return found


def _over_rows(watched: Sequence[list[dict[str, Any]]]) -> dict[str, Any]:
    """Gates of all lines one after another, each (layers, T, units), by name."""
    import numpy as np

    return {
        name: np.stack(
            [
                np.concatenate([layers[layer][name] for layers in watched])
                for layer in range(len(watched[0]))
            ]
        )
        for name in watched[0][0]
    }


def _attention(
    watched: Sequence[Any], tokens: Sequence[str], wanted: Wanted
) -> list[dict[str, Any]]:
    from nlpkit.tasks.lm.inspect import sort_heads

    records = []
    for number, weights in enumerate(watched, 1):
        for place, rows in enumerate(weights[0].tolist(), 1):
            if wanted.layer in (None, number) and wanted.head in (None, place):
                rounded = [[round(value, 5) for value in row] for row in rows]
                records.append(
                    {"layer": number, "head": place, "tokens": list(tokens), "weights": rounded}
                )
    if not records:
        raise NlpkitError(f"the model has {len(watched)} layers of {len(weights[0])} heads")
    return sort_heads(records)
