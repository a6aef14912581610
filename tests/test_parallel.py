"""Mapping over several processes: order, bounds, errors."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nlpkit import parallel
from nlpkit.errors import NlpkitError
from nlpkit.parallel import available_cores, in_thread, ordered_map, worker_count


def make_slow_first() -> Callable[[int], int]:
    def double(number: int) -> int:
        time.sleep(0.02 if number % 5 == 0 else 0)
        return 2 * number

    return double


def make_process_id() -> Callable[[int], tuple[int, int]]:
    made = os.getpid()
    return lambda _: (made, os.getpid())


def make_failing() -> Callable[[int], int]:
    def fail(number: int) -> int:
        if number == 3:
            raise NlpkitError("line 3 is wrong", hint="another line")
        if number == 7:
            raise ZeroDivisionError("a bug")
        return number

    return fail


def make_dying() -> Callable[[int], None]:
    return lambda _: os._exit(3)


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_order_is_kept(jobs: int) -> None:
    assert list(ordered_map(make_slow_first, range(40), jobs)) == [2 * n for n in range(40)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_no_items_give_nothing(jobs: int) -> None:
    assert list(ordered_map(make_slow_first, [], jobs)) == []


def test_work_is_done_in_other_processes_and_the_function_is_built_there() -> None:
    found = list(ordered_map(make_process_id, range(20), 2))
    assert all(made == used != os.getpid() for made, used in found)
    assert 1 <= len({used for _, used in found}) <= 2


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_reading_ahead_is_bounded(jobs: int) -> None:
    read = 0

    def endless() -> Iterator[int]:
        nonlocal read
        while True:
            read += 1
            yield read

    results = ordered_map(make_slow_first, endless(), jobs)
    for done in range(1, 31):
        assert next(results) == 2 * done
        assert read - done <= 3 * jobs
    results.close()  # type: ignore[attr-defined]
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_comes_through_after_what_was_before_it(jobs: int) -> None:
    results = ordered_map(make_failing, [1, 2, 3, 4], jobs)
    assert next(results) == 1
    assert next(results) == 2
    with pytest.raises(NlpkitError) as error:
        next(results)
    assert error.value.message == "line 3 is wrong"
    assert error.value.hint == "another line"
    assert str(error.value) == "line 3 is wrong (try: another line)"


def test_a_bug_in_a_worker_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError, match="a bug"):
        list(ordered_map(make_failing, [7], 2))


def test_an_error_while_reading_ends_the_workers() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise NlpkitError("the disk is gone")

    with pytest.raises(NlpkitError, match="the disk is gone"):
        list(ordered_map(make_slow_first, broken(), 2))
    assert multiprocessing.active_children() == []


def test_a_worker_that_dies_is_one_line_with_a_hint() -> None:
    with pytest.raises(NlpkitError, match="a worker process died") as error:
        list(ordered_map(make_dying, range(3), 2))
    assert error.value.hint


def test_there_is_a_core() -> None:
    assert 1 <= available_cores() <= (os.cpu_count() or 1)


def test_a_signal_interrupts_the_wait_for_a_long_call_of_a_library() -> None:
    """One call that takes a second or more and in which Python answers no signal."""
    done = threading.Event()

    def work() -> None:
        hashlib.pbkdf2_hmac("sha256", b"word", b"salt", 3_000_000)
        done.set()

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            in_thread(work)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not done.is_set()


def test_errors_come_back_from_a_thread() -> None:
    with pytest.raises(ZeroDivisionError):
        in_thread(lambda: 1 / 0)


def control_groups(folder: Path, lines: str, limits: dict[str, str]) -> float | None:
    (folder / "proc/self").mkdir(parents=True)
    (folder / "proc/self/cgroup").write_text(lines)
    for name, text in limits.items():
        (folder / "sys" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "sys" / name).write_text(text)
    return parallel.cgroup_quota(folder / "proc", folder / "sys")


def test_the_smallest_limit_of_all_groups_counts(tmp_path: Path) -> None:
    limits = {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "150000 100000\n"}
    assert control_groups(tmp_path, "0::/a/b\n", limits) == 1.5


def test_a_container_that_sees_the_limit_at_the_root(tmp_path: Path) -> None:
    limits = {"cpu.max": "200000 100000\n"}
    assert control_groups(tmp_path, "0::/docker/1234\n", limits) == 2.0


def test_the_first_version_of_control_groups(tmp_path: Path) -> None:
    limits = {"cpu/x/cpu.cfs_quota_us": "50000\n", "cpu/x/cpu.cfs_period_us": "100000\n"}
    lines = "5:memory:/x\n4:cpu,cpuacct:/x\n"
    assert control_groups(tmp_path, lines, limits) == 0.5


@pytest.mark.parametrize("text", ["max 100000\n", "-1 100000", "", "x", "1 0"])
def test_no_limit_or_an_odd_one_is_none(tmp_path: Path, text: str) -> None:
    assert control_groups(tmp_path, "0::/\n", {"cpu.max": text}) is None


def test_half_a_core_is_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "cgroup_quota", lambda: 0.5)
    assert parallel.available_cores() == 1


def test_more_workers_than_a_machine_can_use_are_refused_by_the_name_of_the_parameter() -> None:
    most = max(64, 8 * (os.cpu_count() or 1))
    assert worker_count(most) == most
    assert worker_count(0) == worker_count(None) == available_cores()
    with pytest.raises(NlpkitError, match=r"`jobs` \d+: this machine has \d+ cores"):
        worker_count(most + 1, "jobs")
