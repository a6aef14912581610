"""Where the sample corpora are, in a checkout and in an installed package alike."""

from __future__ import annotations

import importlib.resources
from pathlib import Path


def sample_folder() -> Path:
    """The folder with the sample corpora.

    >>> (sample_folder() / "world.txt").exists()
    True
    """
    return Path(str(importlib.resources.files("nlpkit.sample_corpora")))
