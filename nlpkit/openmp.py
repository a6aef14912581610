"""OpenMP threads on a machine that is busy with other work.

torch's threads meet at the end of every operation and wait there by spinning, which is the fastest
way while each has a core to itself. When other programs want the cores too, the one that spins
uses up the time slice that the one it waits for would need: two threads were seen at a tenth of
the speed of one. GNU's OpenMP library gives up spinning almost at once when a process has more
threads than there are cores, so that is what ``CoreSharing`` arranges for as long as the scheduler
says that this process has to queue for a core: it parks idle threads. The number of threads that
compute stays the same, and with it every bit of the result.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import torch

from nlpkit.parallel import available_cores

_SCHEDSTAT = Path("/proc/thread-self/schedstat")  # of Linux: ns running, ns queueing, time slices
BUSY = 0.10  # share of the time spent queueing from which on the machine counts as busy
IDLE = 0.03  # and below which it no longer does
T = TypeVar("T")
_PARALLEL_SIZE = 1 << 17  # elements from which on torch uses all its threads


def queueing() -> tuple[int, int] | None:
    """Nanoseconds that this thread has run, and has waited for a core; None where nobody counts."""
    try:
        running, waiting, *_ = _SCHEDSTAT.read_text().split()
        return int(running), int(waiting)
    except (OSError, ValueError):
        return None


class CoreSharing:
    """Watches over the cores during a run; call ``check()`` after each step.

    >>> with CoreSharing() as cores:
    ...     cores.check()
    """

    SECONDS = 0.25  # between two looks at the scheduler
    PATIENCE = 8  # looks at an idle machine before threads spin again

    def __init__(self) -> None:
        self._seen = (0, 0)  # what loading took says how busy the machine is at the start
        self._next_look = 0.0
        self._idle_looks = 0
        self._leave = threading.Event()
        self._parked: list[threading.Thread] = []

    def __enter__(self) -> CoreSharing:
        return self

    def __exit__(self, *error: object) -> None:
        self.unpark()

    @property
    def sharing(self) -> bool:
        """Whether waiting threads leave their core to others."""
        return bool(self._parked)

    def check(self) -> None:
        """Look at the scheduler, now and then, and change how threads wait."""
        now = time.monotonic()
        if now < self._next_look or torch.get_num_threads() < 2:
            return
        counted = queueing()
        if counted is None:
            return
        running, waiting = (new - old for new, old in zip(counted, self._seen, strict=True))
        self._seen, self._next_look = counted, now + self.SECONDS
        share = waiting / max(1, running + waiting)
        self._idle_looks = self._idle_looks + 1 if share < IDLE else 0
        if share > BUSY and not self.sharing:
            self.park()
        elif self.sharing and self._idle_looks >= self.PATIENCE:
            self.unpark()

    def park(self) -> None:
        """Have more OpenMP threads than cores: each parked thread keeps an idle team of its own."""
        others = torch.get_num_threads() - 1  # that a team adds
        self._leave.clear()
        for _ in range(-(-available_cores() // others)):
            ready = threading.Event()
            thread = threading.Thread(target=self._keep_team, args=(ready,), daemon=True)
            thread.start()
            ready.wait()
            self._parked.append(thread)

    def _keep_team(self, ready: threading.Event) -> None:
        torch.zeros(_PARALLEL_SIZE).add_(1)
        ready.set()
        self._leave.wait()

    def unpark(self) -> None:
        """Threads have the cores to themselves again."""
        self._leave.set()
        for thread in self._parked:
            thread.join()
        self._parked.clear()


def sharing_cores(batches: Iterable[T]) -> Iterator[T]:
    """The batches, with a look at the cores before each.

    >>> list(sharing_cores([1, 2]))
    [1, 2]
    """
    with CoreSharing() as cores:
        for batch in batches:
            cores.check()
            yield batch
