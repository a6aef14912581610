"""Ctrl-C, SIGTERM and SIGHUP mean the same in every command: stop, tidy up, exit with 130.

Imports nothing that takes time, so that it is in place before the rest is loaded.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType

STOPPED = 130  # exit code
ONE_STOP = 1.0  # seconds in which several signals say one thing: a closing terminal sends two


def stop_signals() -> list[int]:
    """The signals to answer. One that is ignored stays so: nohup ignores SIGHUP, for example."""
    known = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP")]
    return [
        number
        for number in known
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN
    ]


@contextlib.contextmanager
def ask_to_stop() -> Iterator[Callable[[], bool]]:
    """The first signal is noted, to be answered when there is time; a second one interrupts."""
    asked = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    before = {number: signal.signal(number, note) for number in stop_signals()}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_interruptible(run: Callable[[], None]) -> None:
    """Call ``run``; if a signal ends it, exit with 130 and without a traceback.

    What matters is that a signal came, not what escapes: one that arrives while a module of C code
    is loaded comes out as an ImportError.
    """
    received: int | None = None
    last = -math.inf
    finished = False
    process = os.getpid()

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal received, last
        if finished or os.getpid() != process:  # nothing to tidy up, or a worker not ready yet
            os._exit(STOPPED)
        received = number
        before, last = last, time.monotonic()
        if last - before > ONE_STOP:  # else it would disturb what the first one tidies up
            raise KeyboardInterrupt

    def ask_again(unraisable: sys.UnraisableHookArgs) -> None:
        # raised inside a destructor or a lock of the import system, Python would drop it
        if received is None or unraisable.exc_type is not KeyboardInterrupt:
            sys.__unraisablehook__(unraisable)
            return
        import threading

        nonlocal last
        last = -math.inf
        threading.Timer(0.05, os.kill, [os.getpid(), received]).start()

    sys.unraisablehook = ask_again
    try:
        # two blocks: what a signal raises while the inner one ends must not escape the outer one
        try:
            for number in stop_signals():
                signal.signal(number, interrupt)
            run()
        finally:
            finished = True
    except BaseException:
        if received is None:
            raise
        # sys.exit would not do: Python ends itself by SIGINT when one hit a module in the making
        os._exit(STOPPED)
