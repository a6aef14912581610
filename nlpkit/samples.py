"""Where the sample corpora are, in a checkout and in an installed package alike."""

from __future__ import annotations

import importlib.resources
import re
from pathlib import Path
from typing import NamedTuple

_ROW = re.compile(r"^\| (`[^|]*`) \| ([^|]*?) \|", re.MULTILINE)


def sample_folder() -> Path:
    """The folder with the sample corpora.

    >>> (sample_folder() / "world.txt").exists()
    True
    """
    return Path(str(importlib.resources.files("nlpkit.sample_corpora")))


class Sample(NamedTuple):
    """A sample corpus."""

    name: str
    bytes: int
    what: str


def list_samples() -> list[Sample]:
    """The sample corpora, with what their README says of each.

    >>> [sample.name for sample in list_samples()][:2]
    ['dates-test.tsv', 'dates.tsv']
    """
    folder = sample_folder()
    said = {}
    readme = folder / "README.md"
    if readme.is_file():
        for names, what in _ROW.findall(readme.read_text(encoding="utf-8")):
            for name in re.findall(r"`([^`]*)`", names):
                said[name] = what.replace("`", "")
    endings = (".txt", ".tsv", ".jsonl", ".conllu")
    return [
        Sample(file.name, file.stat().st_size, said.get(file.name, ""))
        for file in sorted(folder.iterdir())
        if file.suffix in endings
    ]
