"""Every line of docs/recipes.md runs, and no recipe is longer than ten lines."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from warm import Warm

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^## (.*?)\n.*?^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
# what has to stand at the beginnings of lines, and how often: the ten reviews are learned
SEEN = {"Ten reviews, from text to an embedding layer": {"positive": 5, "negative": 5}}


def test_there_are_recipes() -> None:
    assert len(RECIPES) == PAGE.count("\n## ") >= 10


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_runs_line_by_line(name: str, tmp_path: Path, warm: Warm) -> None:
    lines = RECIPES[name]
    assert len(lines.splitlines()) <= 10
    (tmp_path / "sample_corpora").symlink_to(ROOT / "sample_corpora")
    python = shlex.quote(sys.executable)
    define = f'set -eo pipefail; python() {{ {python} "$@"; }}\n'
    define += f'nlpkit() {{ {warm.command} "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-c", define + lines],
        cwd=tmp_path,
        capture_output=True,
        env={**os.environ, "COLUMNS": "80", "OMP_NUM_THREADS": "1"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout
    assert b"Traceback" not in done.stderr
    for word, count in SEEN.get(name, {}).items():
        assert len(re.findall(f"(?m)^{word}\\t", done.stdout.decode())) == count
