"""A conversation on a terminal: the context is kept, what is written appears as it is drawn.

Ctrl-C stops the sentence and not the program; Ctrl-D, or Ctrl-C at the prompt, ends it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from nlpkit.cli.output import Writer, open_output
from nlpkit.errors import NlpkitError
from nlpkit.signals import ask_to_stop

if TYPE_CHECKING:
    from nlpkit.generate.settings import SamplingSettings
    from nlpkit.tasks.lm.model import TextModel
    from nlpkit.tasks.lm.settings import WritingSettings

_TEXT = "{text}"
_ASK = "> "


def converse(
    model: TextModel,
    sampling: SamplingSettings,
    writing: WritingSettings,
    stop: Sequence[str],
    turn: str,
    seed: int,
) -> None:
    """Read a line, write an answer, and so on; all that was said before is the context."""
    turn = turn.replace("\\n", "\n")
    if _TEXT not in turn:
        raise NlpkitError(f"`turn` {turn!r} has no {_TEXT}", hint=f"'User: {_TEXT}\\nBot:'")
    context = ""
    with open_output("-") as out:
        for number, line in enumerate(_lines(out)):
            context += turn.replace(_TEXT, line)
            context += _answer(out, model, context, sampling, writing, stop, seed + number)
            context += "\n"


def _lines(out: Writer) -> Iterator[str]:
    """What is typed, or piped in, line by line."""
    on_terminal = sys.stdin is not None and sys.stdin.isatty()
    while True:
        if on_terminal:
            out.write(_ASK)
            out.flush()
        line = sys.stdin.readline() if sys.stdin is not None else ""
        if not line:
            return
        yield line.rstrip("\r\n")


def _answer(
    out: Writer,
    model: TextModel,
    context: str,
    sampling: SamplingSettings,
    writing: WritingSettings,
    stop: Sequence[str],
    seed: int,
) -> str:
    written = ""
    with ask_to_stop() as stopped:
        steps = model.continue_prompts([context], writing.max_tokens, sampling, seed, stop=stop)
        for step in steps:
            written += step[0][1]
            out.write(step[0][1])
            out.flush()
            if stopped():
                break
    out.write("\n")
    out.flush()
    return written
