"""Mapping over several processes: order, bounds, errors."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator

import pytest

from nlpkit.errors import NlpkitError
from nlpkit.parallel import available_cores, ordered_map


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
