"""Tokens with their probabilities: coloured text for a person, JSON lines for a program."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from nlpkit.cli.output import Writer

if TYPE_CHECKING:
    from nlpkit.tasks.lm.model import TextModel

# backgrounds of 256 colours, from what was expected to what nobody could have guessed
_SHADES = (194, 193, 192, 229, 223, 216, 209, 203, 197)
_BITS = 1.5  # of surprise from one shade to the next


def write_tokens(
    out: Writer, model: TextModel, texts: Iterable[str], stride: int | None, json: bool
) -> None:
    """Every token of a text with its log-probability, as they are scored."""
    from nlpkit.tasks.lm.ask import shown_tokens

    colours = not json and sys.stdout is not None and sys.stdout.isatty()
    parts = (model.codec.encode(text) for text in texts)
    for ids, losses in model.losses(parts, stride):
        for token, loss in zip(shown_tokens(model, ids.tolist()), losses.tolist(), strict=True):
            if colours:
                out.write_styled(shade(out.safe(token), loss))
            else:
                out.write_json({"token": token, "logprob": round(-loss, 5)})
    if colours:
        out.write_styled("\n")


def shade(text: str, nats: float) -> str:
    """Text on a background that says how surprising it was."""
    colour = _SHADES[min(len(_SHADES) - 1, int(nats / math.log(2) / _BITS))]
    lines = text.split("\n")
    painted = [f"\x1b[30;48;5;{colour}m{line}\x1b[0m" if line else "" for line in lines]
    return "\n".join(painted)
