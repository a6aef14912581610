"""Map a function over items in several processes: order kept, memory bounded, Ctrl-C clean."""

from __future__ import annotations

import collections
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from nlpkit.errors import NlpkitError

Item = TypeVar("Item")
Result = TypeVar("Result")

_work: Callable[[Any], Any] | None = None


def _start_worker(make: Callable[[], Callable[[Any], Any]]) -> None:
    """Runs once in each worker: Ctrl-C is the parent's business, the function is built here."""
    global _work
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _work = make()


def _call_worker(item: Any) -> Any:
    assert _work is not None
    return _work(item)


def ordered_map(
    make: Callable[[], Callable[[Item], Result]], items: Iterable[Item], jobs: int
) -> Iterator[Result]:
    """Yield ``make()(item)`` for each item, in order.

    ``make`` builds the function once in every process, so that caches and compiled patterns are
    not sent over. At most three items a worker are under way, so memory does not grow with the
    input however fast it is read.

    >>> list(ordered_map(lambda: str.upper, ["a", "b"], jobs=1))
    ['A', 'B']
    """
    if jobs <= 1:
        function = make()
        for item in items:
            yield function(item)
        return
    # forking is quick and sends nothing over; elsewhere a new interpreter is started
    method = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(method)
    from concurrent.futures import Future, ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    pool = ProcessPoolExecutor(jobs, context, initializer=_start_worker, initargs=(make,))
    pending: collections.deque[Future[Result]] = collections.deque()
    try:
        for item in items:
            pending.append(pool.submit(_call_worker, item))
            while len(pending) >= 3 * jobs or (pending and pending[0].done()):
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    except BrokenProcessPool:
        raise NlpkitError(
            "a worker process died", hint="fewer --jobs, if the machine ran out of memory"
        ) from None
    finally:
        # what is under way is waited for: a worker ended by force would leave half a result in
        # the pipe, and the executor would wait for the other half for ever
        pool.shutdown(wait=True, cancel_futures=True)


def available_cores() -> int:
    """Cores this process may use (a container or taskset may allow fewer than there are)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
