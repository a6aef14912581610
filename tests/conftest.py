"""What all tests share."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest
from warm import Warm

# Small products are slower with several threads, and much slower where other processes of the
# tests have the cores: a thread waits for the other at each of them. Set before torch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A test run started in the background inherits an ignored Ctrl-C, and so would every command that
# the tests start: they could not be interrupted, which is what some tests are about.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    """Runs commands in forks of a process that has loaded torch."""
    with Warm() as process:
        yield process


@pytest.fixture
def one_thread() -> Iterator[None]:
    """torch with one thread."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
