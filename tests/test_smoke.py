"""A first try of everything: each module can be imported, each group of commands does its job.

Quick, and without what only developers have installed, so that ``make minimum`` can run it with the
oldest versions of all dependencies. Details are the business of the other tests.
"""

from __future__ import annotations

import importlib
import pkgutil
import random
import re
import sys
from pathlib import Path

import pytest

import nlpkit
from nlpkit.cli.main import app

MODULES = [
    module.name
    for module in pkgutil.walk_packages(nlpkit.__path__, "nlpkit.")
    if not module.name.endswith("__main__")
]
WORDS = "the king and the queen saw a small dog in the old house".split()
SMALL_GPT = "--layers 1 --dim 16 --heads 2 --block-size 16 --max-iters 3 --batch-size 4".split()


@pytest.mark.parametrize("name", MODULES)
def test_every_module_can_be_imported(name: str) -> None:
    assert importlib.import_module(name)


def test_lower_bounds_are_those_of_the_constraints() -> None:
    lines = (Path(__file__).parent.parent / "constraints-minimum.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line)
    project = (Path(__file__).parent.parent / "pyproject.toml").read_text()
    dependencies = project.partition("\ndependencies = [")[2].partition("\n]")[0]
    declared = dict(re.findall(r'"([\w-]+)>=([\d.]+)"', dependencies))
    assert len(declared) > 10
    assert pinned.keys() == declared.keys()
    for name in declared.keys() - {"torch"}:
        assert re.match(rf"{re.escape(declared[name])}(\.0)*$", pinned[name]), name


class Shell:
    """Commands one after the other in one process and folder."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self.capture = capture

    def __call__(self, line: str) -> str:
        self.capture.readouterr()
        with pytest.raises(SystemExit) as end:
            app(line.split(), prog_name="nlpkit")
        out, err = self.capture.readouterr()
        assert end.value.code in (0, None), err
        return out


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["nlpkit"])
    choose = random.Random(1)
    lines = [" ".join(choose.choices(WORDS, k=8)) for _ in range(60)]
    Path("text.txt").write_text("\n".join(lines) + "\n")
    Path("names.txt").write_text("\n".join(f"{a}{b}" for a in WORDS for b in WORDS) + "\n")
    Path("labels.tsv").write_text("good\tthe old king\nbad\ta small dog\n" * 10)
    rows = "the\tDET\nking\tNOUN\n\na\tDET\nsmall\tADJ\ndog\tNOUN\n\n"
    Path("tags.conll").write_text(rows * 10)
    return Shell(capsys)


def test_text_and_numbers(shell: Shell) -> None:
    assert shell("tokenize text.txt").count("\n") == 60
    shell("vocab build text.txt -o words.vocab --min-count 1")
    shell("encode text.txt -V words.vocab -o ids.txt")
    assert shell("decode ids.txt -V words.vocab") == Path("text.txt").read_text()
    for name in ("ids.npy", "ids.npz"):
        shell(f"pad ids.txt -o {name}")
        assert Path(name).stat().st_size > 0
    shell("bpe train text.txt -o tokenizer.json --vocab-size 280")
    assert shell("tokenize text.txt -t tokenizer.json")


def test_word_vectors(shell: Shell) -> None:
    shell("word2vec train text.txt -o w.model --dim 8 --min-count 1 --epochs 1 --threads 1")
    assert shell("vectors nearest -m w.model king -n 3").count("\n") == 3
    shell("vectors convert w.model -o w.txt")
    shell("vectors plot -m w.txt -o plot.png --method pca king queen dog")
    assert Path("plot.png").stat().st_size > 0


def test_names_and_gpt(shell: Shell) -> None:
    shell("names train names.txt -o n.model --layers 1 --dim 16 --epochs 0.1")
    assert shell("names sample n.model -n 3").count("\n") == 3
    shell(" ".join(["gpt train text.txt -o g.model", *SMALL_GPT]))
    assert shell("gpt sample g.model --max-tokens 5")


def test_tagging_and_classifying(shell: Shell) -> None:
    shell("tag train tags.conll -o t.model --epochs 1 --threads 1")
    assert "NOUN" in shell("tag predict t.model tags.conll")
    shell("classify train labels.tsv -o c.model --threads 1")
    assert shell("classify predict c.model text.txt").count("\n") == 60
