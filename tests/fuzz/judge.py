"""Whether a command behaved: the promises that hold for every command line."""

from __future__ import annotations

import json
import os
import re
import signal
from typing import NoReturn

from .case import Case
from .sandbox import Outcome

ALLOWED = (0, 1, 2, 130)
_NO_MODULE = ("ModuleNotFoundError", "ImportError")
_FRAME = re.compile(r'  File "([^"]+)", line (\d+), in (\S+)')
_WARNING = re.compile(r"^\S+\.py:\d+: (\w*Warning: .*)", re.MULTILINE)
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
_ERROR = re.compile(r"^[eE]rror: ", re.MULTILINE)


def judge(case: Case, outcome: Outcome) -> str:
    """What is wrong, "" if nothing; equal faults have equal descriptions."""
    err = _ESCAPE.sub("", outcome.err)
    if outcome.late and not outcome.deaf and not case.endless:
        return "takes too long"
    if "Traceback (most recent call last)" in err:
        fault = _describe_traceback(err)
        if "another user" in case.circumstances and fault.startswith(_NO_MODULE):
            return ""  # Python itself is out of that user's reach
        return "Ctrl-C shows a traceback" if fault.startswith("KeyboardInterrupt") else fault
    if outcome.killed:
        return _describe_death(case, outcome)
    if outcome.deaf:
        return "does not stop on Ctrl-C"
    if outcome.code not in ALLOWED:
        return f"exit code {outcome.code}: {_last_line(err)}"
    if outcome.code == 130 and not (case.signal or outcome.late):
        return "exit code 130 without a signal"
    if found := _WARNING.search(err):
        return f"a warning of Python: {found[1][:100]}"
    return (
        _judge_error_line(case, outcome, err)
        or _judge_files(case, outcome)
        or _judge_data(case, outcome)
    )


def is_refused(outcome: Outcome) -> bool:
    """Whether the command said no, properly."""
    return outcome.code in (1, 2)


def _describe_traceback(err: str) -> str:
    """The exception and where nlpkit was last, which tells one fault from another."""
    text = err[err.rindex("Traceback (most recent call last)") :]
    frames = [frame for frame in _FRAME.findall(text) if "/nlpkit/" in frame[0]]
    where = "?"
    if frames:
        file, line, function = frames[-1]
        where = f"{file[file.rindex('/nlpkit/') + 1 :]}:{line} {function}"
    lines = [line for line in text.splitlines()[1:] if line and not line.startswith(" ")]
    raised = lines[0] if lines else "?"
    return f"{raised.split(':')[0]} at {where}"


def _describe_death(case: Case, outcome: Outcome) -> str:
    name = signal.Signals(outcome.killed).name
    if outcome.deaf:
        return "does not stop on Ctrl-C"
    if outcome.killed == signal.SIGXCPU:
        return "takes too long"
    if case.signal == outcome.killed:
        return f"{name} ends it without a word"
    said = [re.sub(r"\d+", "N", line) for line in outcome.err.splitlines() if line.strip()]
    return f"dies of {name}: {said[0][:100]}" if said else f"dies of {name}"


def _judge_error_line(case: Case, outcome: Outcome, err: str) -> str:
    """A failure is told in one line, the last one on stderr; anything else is not."""
    if "stderr closed" in case.circumstances:
        return ""
    found = len(_ERROR.findall(err))
    if outcome.code in (1, 2):
        if not found:
            is_help = "Usage:" in err or "Usage:" in outcome.out.decode("utf-8", "replace")
            return (
                "" if outcome.code == 2 and is_help else f"exit code {outcome.code}, no error line"
            )
        if found > 1:
            return f"{found} error lines"
        if "\n" in err[_ERROR.search(err).start() :].strip("\n"):  # type: ignore[union-attr]
            return "an error of more than one line"
    if outcome.code == 0 and found:
        return f"an error line, but exit code 0: {_last_line(err)}"
    return ""


def _judge_files(case: Case, outcome: Outcome) -> str:
    """Outputs are there whole, or not at all; nothing else is left or changed."""
    if outcome.temporary:
        return f"leaves {_generic(outcome.temporary[0])} in TMPDIR"
    allowed = [os.path.normpath(name) for name in case.outputs if name]
    if outcome.code in (1, 2):
        allowed = []
    # a checkpoint is kept when a run was interrupted, or its model could not be written
    if outcome.code in (1, 130):
        allowed = [f"{os.path.normpath(name)}.checkpoint" for name in case.outputs if name]
    if outcome.code == 130:  # a signal may also come when all is written
        allowed += [os.path.normpath(name) for name in case.outputs if name]
    if case.command in ("demo", "gpt export", "vectors export-projector"):  # they fill a folder
        allowed = [os.path.normpath(name) for name in case.outputs if name]
    words = case.words()
    if "--metrics" in words[:-1]:  # records are written as they are made, whatever comes after
        allowed.append(os.path.normpath(words[words.index("--metrics") + 1]))
    for name in (*outcome.left, *outcome.changed):
        if not any(_is_part(name, one) for one in allowed):
            how = "leaves" if name in outcome.left else "changes"
            return f"{how} {_generic(name)} (exit code {outcome.code})"
    return ""


def _is_part(name: str, output: str) -> bool:
    """Whether it is the output, in it, or a folder made for it."""
    return output == "." or f"{name}/".startswith(f"{output}/") or output.startswith(f"{name}/")


def _generic(name: str) -> str:
    """A temporary name without its random part."""
    first = name.split("/")[0]
    return re.sub(r"[a-z0-9_]{8}(?=\.|$)", "*", first) if first.startswith((".", "tmp")) else first


def _judge_data(case: Case, outcome: Outcome) -> str:
    """Lines that should be JSON are: neither messages nor NaN are among them."""
    words = case.words()
    wanted = "--json" in words or any(
        group[-1] == "jsonl" and group[0] in ("--format", "-f") for group in case.arguments
    )
    if not wanted or outcome.code or "terminal" in case.circumstances or "--help" in words:
        return ""
    text = outcome.out.decode("utf-8", "replace")
    if not text.endswith("\n") or "-h" in words:
        return ""  # more than is kept, or a help page
    try:
        json.loads(text, parse_constant=_refuse)
    except ValueError:
        for line in text.splitlines():
            try:
                json.loads(line, parse_constant=_refuse)
            except (ValueError, RecursionError):
                return "what should be JSON on stdout is none"
    return ""


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)


def _last_line(err: str) -> str:
    return (err.strip().splitlines() or ["nothing on stderr"])[-1][:100]
