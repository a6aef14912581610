"""What the tests of language models share: one thread, and a subword model."""

from __future__ import annotations

import pytest
from small_gpts import TEXT

from nlpkit.text.subwords import Subwords


@pytest.fixture(autouse=True)
def _one_thread(one_thread: None) -> None:
    """Models here are so small that a second thread only waits for the first."""


@pytest.fixture(scope="module")
def subwords() -> Subwords:
    return Subwords.train([TEXT], vocab_size=290)
