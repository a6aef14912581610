"""``nlpkit lm inspect`` and what ``nlpkit names inspect`` shares with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from nlpkit import settings as limits
from nlpkit import textio
from nlpkit.cli import inspect_output, options
from nlpkit.cli.flags import argument, flag, flag_field, with_settings
from nlpkit.cli.output import Writer, open_output
from nlpkit.errors import NlpkitError, UsageError

if TYPE_CHECKING:
    from nlpkit.models.base import LanguageModel

Show = Literal["steps", "gates", "attention", "positions", "neurons"]


@dataclass(frozen=True)
class View:
    """Which part is to be shown, and how."""

    layer: int | None = flag_field(None, "Only this layer, from 1.", low=1, high=limits.DEEPEST)
    head: int | None = flag_field(
        None, "Only this attention head, from 1.", low=1, high=limits.DEEPEST
    )
    cell: int | None = flag_field(
        None, "Follow this unit, from 1, over the text.", low=1, high=limits.WIDEST
    )
    count: int = flag_field(
        5, "Expected tokens, or units, to show.", "--count", "-n", "-k", low=1, high=1000
    )
    plot: str | None = flag_field(None, "Draw it: .png, .svg, .pdf or .html.", metavar="FILE")
    format: inspect_output.Format = None

    @property
    def shown(self) -> str:
        """How to show it."""
        return inspect_output.shown_as(self.format)


@dataclass(frozen=True)
class Wanted(View):
    """What is to be shown, for ``with_settings``."""

    show: Show = flag_field(
        "steps", "What to look at; gates and neurons of recurrent models, the rest of GPTs."
    )


@with_settings(Wanted)
def inspect(
    *,
    model: options.Model,
    text: str | None = argument(None, "What to read; - reads standard input.", metavar="TEXT"),
    find_neurons: bool = flag(False, "Short for --show neurons."),
    wanted: Wanted,
) -> None:
    """Look inside a model: what it expects, its gates, its attention, its positions, its neurons.

    steps: each token coloured by how likely it was, the likeliest ones under it. gates: how open
    they are, or one unit over the text (--cell). neurons: the units that follow a simple feature of
    the text best, with their correlation on held-out text. attention: by layer and head, heads
    sorted by what they look at. positions: the positional encoding and the products of all pairs.
    Drawn on a terminal, else JSON lines; --format table and the like
    give rows, those of attention being layer, head, token, looks_at and weight.

    Examples:
      $ nlpkit lm train sample_corpora/tales.txt -o lstm.model --model lstm --max-time 30s
      $ nlpkit lm inspect lstm.model "Once upon a time"
      $ nlpkit lm inspect lstm.model "Once upon a time" --show gates
      $ head -c 3000 sample_corpora/tales.txt | nlpkit lm inspect lstm.model - --find-neurons
    """
    from nlpkit.tasks.lm.ask import shown_tokens
    from nlpkit.tasks.lm.model import TextModel

    wanted = replace(wanted, show="neurons") if find_neurons else wanted
    check_plot(wanted.plot, wanted.show)
    if text is None and wanted.show != "positions":
        raise UsageError("give a TEXT to read")
    found = TextModel.load(model)
    ids = found.codec.encode(read_text(text or ""))
    first = found.encode_prompt("")[:1]
    run_inspect(
        found.model,
        ids,
        first,
        lambda indices: shown_tokens(found, indices),
        lambda index: found.codec.decode([index]),
        wanted,
    )


def read_text(text: str) -> str:
    """A text, or with - that of standard input."""
    if text != textio.STDIN:
        return text
    inputs = options.resolve_inputs([textio.STDIN])
    return "".join(block.text() for block in textio.read_blocks(inputs))


def check_plot(plot: str | None, show: str) -> None:
    """Refuse a picture that will not be drawn."""
    from nlpkit.plots import check_picture

    if plot is None:
        return
    if show in ("steps", "neurons"):
        raise UsageError(f"--plot draws gates, attention and positions, not {show}")
    check_picture(plot)


def run_inspect(
    model: LanguageModel,
    ids: Sequence[int],
    first: Sequence[int],
    tokens_of: Callable[[Sequence[int]], list[str]],
    name_of: Callable[[int], str],
    wanted: Wanted,
) -> None:
    """Look, and show it."""
    from nlpkit.tasks.lm import inspect as engine
    from nlpkit.tasks.lm.neurons import token_features

    if wanted.show != "positions" and not ids:
        raise NlpkitError("there is nothing to read", hint="a text that is not empty")
    with open_output("-") as out:
        if wanted.show == "steps":
            records = engine.step_records(model, [*first, *ids], name_of, wanted.count)
            inspect_output.write_steps(out, records, wanted.shown)
        elif wanted.show == "attention":
            records = _attention(model, ids, tokens_of(ids), wanted)
            inspect_output.write_attention(out, records, wanted.plot, wanted.shown)
        elif wanted.show == "positions":
            kind, table = engine.position_table(model)
            inspect_output.write_positions(out, kind, table, wanted.plot, wanted.shown)
        else:
            tokens = tokens_of(ids)
            gates = engine.gate_arrays(model, ids)
            if wanted.show == "neurons":
                show_neurons(out, gates, token_features(tokens), wanted)
            else:
                show_gates(out, gates, tokens, wanted)


def show_neurons(
    out: Writer, gates: dict[str, Any], features: dict[str, Any], wanted: View
) -> None:
    """The units that follow features of the text."""
    from nlpkit.tasks.lm.neurons import find_neurons

    inside = gates.get("cell", gates["state"])
    rows = find_neurons(inside, features, max(wanted.count, 10))
    inspect_output.write_records(out, rows, wanted.shown)


def _attention(
    model: LanguageModel, ids: Sequence[int], tokens: list[str], wanted: Wanted
) -> list[dict[str, Any]]:
    from nlpkit.tasks.lm.attention import records_of_ids
    from nlpkit.tasks.lm.inspect import sort_heads

    return sort_heads(records_of_ids(model, ids, tokens, wanted.layer, wanted.head))


def show_gates(out: Writer, gates: dict[str, Any], tokens: list[str], wanted: View) -> None:
    """How open gates are, or one unit over the text."""
    from nlpkit.tasks.lm.inspect import gate_summary

    layers, _, units = next(iter(gates.values())).shape
    for name, asked, there in (("layer", wanted.layer, layers), ("cell", wanted.cell, units)):
        if asked is not None and asked > there:
            raise NlpkitError(f"`{name}` {asked}: the model has {there}")
    layer = (wanted.layer or layers) - 1
    if wanted.plot is not None:
        inspect_output.draw_gates(gates, layer, tokens, wanted.plot)
    if wanted.cell is None:
        inspect_output.write_records(out, gate_summary(gates), wanted.shown)
    else:
        chosen = {name: values[layer, :, wanted.cell - 1] for name, values in gates.items()}
        inspect_output.write_cell(out, tokens, chosen, wanted.shown)
