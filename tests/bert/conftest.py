"""What the tests of BERT share: one thread."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _one_thread(one_thread: None) -> None:
    """Models here are so small that a second thread only waits for the first."""
