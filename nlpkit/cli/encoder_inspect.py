"""``nlpkit tag inspect`` and ``nlpkit classify inspect``: the attention of transformer encoders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from nlpkit import textio
from nlpkit.cli import inspect_output, lm_inspect, options
from nlpkit.cli.output import open_output
from nlpkit.errors import NlpkitError

Text = Annotated[str, typer.Argument(metavar="TEXT", help="What to read.")]


def inspect_tagger(
    model: options.Model,
    text: Text,
    layer: lm_inspect.Layer = None,
    head: lm_inspect.Head = None,
    plot: lm_inspect.Plot = None,
    json: options.Json = False,
) -> None:
    """Show what a transformer tagger looks at: attention by layer and head, heads sorted.

    Heat maps on a terminal, else JSON lines with the keys layer, head, tokens, weights, previous,
    same, start (how much of its attention goes there) and looks_at.

    Examples:
      $ nlpkit tag train sample_corpora/tagged-train.conllu -o t.model --encoder transformer
      $ nlpkit tag inspect t.model "He said Teddy bears are on sale ." --plot attention.html
    """
    from nlpkit.tasks.tag.predictor import Tagger
    from nlpkit.text.tokenizers import get_tokenizer

    lm_inspect.check_plot(plot, "attention")
    tagger = Tagger.load(model)
    tokens = get_tokenizer("word").tokens(text)
    _show(tagger.encoder, lambda: tagger.scores([tokens]), tokens, layer, head, plot, json)


def inspect_classifier(
    model: options.Model,
    text: Text,
    layer: lm_inspect.Layer = None,
    head: lm_inspect.Head = None,
    plot: lm_inspect.Plot = None,
    json: options.Json = False,
) -> None:
    """Show what a transformer classifier looks at: attention by layer and head, heads sorted.

    Heat maps on a terminal, else JSON lines with the keys layer, head, tokens, weights, previous,
    same, start (how much of its attention goes there) and looks_at.

    Examples:
      $ nlpkit classify train sample_corpora/reviews.tsv -o t.model --model transformer
      $ nlpkit classify inspect t.model "The soup was cold ." --plot attention.html
    """
    from nlpkit.tasks.classify.predictor import Classifier

    lm_inspect.check_plot(plot, "attention")
    classifier = Classifier.load(model)
    tokens = list(classifier.bags.tokens(text))
    encoder = getattr(classifier, "_encoder", None)
    _show(encoder, lambda: classifier.probabilities([text]), tokens, layer, head, plot, json)


def _show(
    encoder: Any,
    read: Callable[[], Any],
    tokens: Sequence[str],
    layer: int | None,
    head: int | None,
    plot: str | None,
    json: bool,
) -> None:
    from nlpkit.tasks.lm.inspect import sort_heads

    if encoder is None or getattr(encoder, "kind", "") != "transformer":
        raise NlpkitError("this model has no attention", hint="one with a transformer encoder")
    if not tokens:
        raise NlpkitError("there is nothing to read", hint="a text that is not empty")
    encoder.watched = []
    read()
    records = []
    for number, weights in enumerate(encoder.watched, 1):
        for place, rows in enumerate(weights[0].tolist(), 1):
            if layer in (None, number) and head in (None, place):
                rounded = [[round(value, 5) for value in row] for row in rows]
                records.append(
                    {"layer": number, "head": place, "tokens": list(tokens), "weights": rounded}
                )
    if not records:
        raise NlpkitError(f"the model has {len(encoder.watched)} layers of {len(weights[0])} heads")
    with open_output(textio.STDIN) as out:
        inspect_output.write_attention(out, sort_heads(records), plot, json)
