"""What the ``nlpkit bert`` commands share: their flags, and how they open a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nlpkit import settings as limits
from nlpkit.cli import options
from nlpkit.cli.output import Notes
from nlpkit.text.records import TEXT_KEYS, Reading

if TYPE_CHECKING:
    from nlpkit.models.bert_model import BertModel

Bert = Annotated[
    str, typer.Argument(metavar="MODEL", help="A model folder, nlpkit's or Hugging Face's.")
]
Layer = Annotated[
    int | None,
    typer.Option(
        "--layer",
        metavar="N",
        min=0,
        max=limits.DEEPEST,
        help="States of this layer; 0 is the embeddings.",
        show_default="the last",
    ),
]
_LINES_AT_ONCE = 1024


def open_model(model: str, use: options.Use) -> BertModel:
    """The model on its device."""
    from nlpkit.pretrained.bert import open_bert

    bert = open_bert(model)
    options.place(bert.model, use, 64.0 * bert.model.count_parameters())
    return bert


def check_layer(bert: BertModel, layer: int | None) -> None:
    """Refuse a layer that the model has not."""
    from nlpkit.errors import NlpkitError

    if layer is not None and layer > bert.model.settings.layers:
        raise NlpkitError(f"--layer {layer}: the model has {bert.model.settings.layers}")


def read_texts(
    inputs: list[str] | None, reading: Reading, keys: tuple[str, ...] = TEXT_KEYS
) -> Iterator[list[str]]:
    """Lines of all inputs, some at a time."""
    from nlpkit.text.records import lines_of

    waiting: list[str] = []
    for block in options.read_records(inputs, reading, keys):
        waiting += lines_of(block, reading.errors)
        while len(waiting) >= _LINES_AT_ONCE:
            yield waiting[:_LINES_AT_ONCE]
            del waiting[:_LINES_AT_ONCE]
    if waiting:
        yield waiting


def say_long(notes: Notes, count: int, bert: Any) -> None:
    """Long texts are read in parts, and that is said."""
    if count:
        lines = "1 line was" if count == 1 else f"{count:,} lines were"
        notes.say(f"{lines} longer than {bert.max_length} tokens and read in parts")
