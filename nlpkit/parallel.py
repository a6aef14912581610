"""Map a function over items in several processes: order kept, memory bounded, Ctrl-C clean."""

from __future__ import annotations

import collections
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from nlpkit.errors import NlpkitError

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

Item = TypeVar("Item")
Result = TypeVar("Result")

_work: Callable[[Any], Any] | None = None


def _start_worker(make: Callable[[], Callable[[Any], Any]]) -> None:
    """Runs once in each worker: signals are the parent's business, the function is built here."""
    global _work
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # a terminal sends them to all processes
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    _work = make()


def _leave_with_parent() -> None:
    """Without its parent a worker would wait for work for ever."""
    from multiprocessing import connection

    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)


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
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    pool = ProcessPoolExecutor(jobs, context, initializer=_start_worker, initargs=(make,))
    pending: collections.deque[Future[Result]] = collections.deque()
    started = False
    try:
        for item in items:
            pending.append(_submit(pool, item, is_first=not started))
            started = True
            while len(pending) >= 3 * jobs or (pending and pending[0].done()):
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    except BrokenProcessPool:
        raise NlpkitError(
            "a worker process died", hint="fewer `jobs`, if the machine ran out of memory"
        ) from None
    finally:
        # what is under way is waited for: a worker ended by force would leave half a result in
        # the pipe, and the executor would wait for the other half for ever
        pool.shutdown(wait=True, cancel_futures=True)


def _submit(pool: Executor, item: Any, is_first: bool) -> Future[Any]:
    """Give out work; the first piece starts the workers."""
    try:
        return pool.submit(_call_worker, item)
    except BaseException as error:
        if is_first:  # the executor does not know of the workers there are yet
            for worker in multiprocessing.active_children():
                worker.kill()
            if isinstance(error, OSError):
                raise NlpkitError(
                    f"cannot start so many processes: {error.strerror}", hint="fewer `jobs`"
                ) from None
        raise


def in_thread(work: Callable[[], Result]) -> Result:
    """Do ``work`` in a thread of its own, so that a signal can interrupt the wait for it.

    Python answers signals between its own instructions, so a library that computes for minutes in
    one call would not let it.

    >>> in_thread(lambda: 6 * 7)
    42
    """
    from concurrent.futures import Future

    result: Future[Result] = Future()

    def finish() -> None:
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            result.set_exception(error)

    threading.Thread(target=finish, daemon=True).start()
    return result.result()


def available_cores() -> int:
    """Cores this process may use: taskset or a container may allow fewer than there are."""
    count = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    quota = cgroup_quota()
    return count if quota is None else max(1, min(count, int(quota)))


def worker_count(asked: int | None, parameter: str = "threads") -> int:
    """Threads or processes to start: as many as asked for, else one for each available core.

    More than a machine can have any use for are refused: starting them takes long or fails.

    >>> worker_count(3)
    3
    """
    if not asked:
        return available_cores()
    most = max(64, 8 * (os.cpu_count() or 1))
    if asked > most:
        raise NlpkitError(
            f"`{parameter}` {asked}: this machine has {os.cpu_count()} cores",
            hint=f"{most} at most, or 0 for one per core",
        )
    return asked


def cgroup_quota(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> float | None:
    """Cores' worth of time that control groups grant this process (``docker run --cpus 1.5``).

    A limit may be set on any group that holds this process, so the whole path is looked at. In a
    container the path may name folders that only the host sees; the limit then stands at the root.
    """
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return None
    quotas = []
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0":  # version 2
            base = groups
        elif "cpu" in controllers.split(","):
            base = groups / "cpu"
        else:
            continue
        folder = base / path.strip("/")
        for place in {folder, *folder.parents, base}:
            if place == base or base in place.parents:
                quotas.append(_quota(place))
    return min((quota for quota in quotas if quota is not None), default=None)


def _quota(folder: Path) -> float | None:
    """Of one control group, in the format of version 2 or 1."""
    try:
        file = folder / "cpu.max"
        if file.is_file():
            quota, period = file.read_text().split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text().strip()
        share = float(quota) / float(period)
    except (OSError, ValueError, ZeroDivisionError):  # "max" is no number: there is no limit
        return None
    return share if share > 0 else None
