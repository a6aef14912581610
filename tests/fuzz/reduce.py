"""Makes a failing case smaller: what can be left out without changing the fault is left out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from .case import Case, Step

Fault = Callable[[Case], str]  # what is wrong with a case


def reduce_case(case: Case, fault: Fault, seconds: float = 20.0) -> Case:
    """The smallest case found in this time that shows the same fault."""
    wanted = fault(case)
    end = time.monotonic() + seconds
    if not wanted:
        return case  # it does not happen every time
    smaller = True
    while smaller and time.monotonic() < end:
        smaller = False
        for candidate in _candidates(case):
            if time.monotonic() > end:
                break
            if fault(candidate) == wanted:
                case, smaller = candidate, True
                break
    return case


def _candidates(case: Case) -> Iterator[Case]:
    """Cases that are a little simpler, the boldest cuts first."""
    if case.then:
        yield replace(case, then=())
    if case.signal:
        yield replace(case, signal=0, after=0.0)
    if case.endless:
        yield replace(case, endless=False)
    for index in range(len(case.circumstances)):
        yield replace(case, circumstances=_without(case.circumstances, index))
    for index in range(len(case.arguments)):
        yield replace(case, arguments=_without(case.arguments, index))
    if case.stdin:
        yield replace(case, stdin="")
    for index in reversed(range(len(case.steps))):
        yield replace(case, steps=_without(case.steps, index))
    for index, step in enumerate(case.steps):
        for simpler in _simpler(step):
            steps = (*case.steps[:index], simpler, *case.steps[index + 1 :])
            yield replace(case, steps=steps)


def _simpler(step: Step) -> Iterator[Step]:
    if step.what not in ("write", "append", "patch"):
        return
    if step.times > 1:
        yield replace(step, times=1)
        yield replace(step, times=step.times // 2)
        return
    size = len(step.data)
    if step.what == "write" and size:
        yield replace(step, data=b"", note="")
    pieces = 2
    while pieces <= min(size, 64):
        length = -(-size // pieces)
        for start in range(0, size, length):
            yield replace(step, data=step.data[:start] + step.data[start + length :], note="")
        pieces *= 2


def _without(items: tuple, index: int) -> tuple:  # type: ignore[type-arg]
    return (*items[:index], *items[index + 1 :])
