"""Models that earlier versions wrote answer as they did then (``golden/make.py`` made them).

A folder is never made anew to please a test: either it loads and gives the answers that lie beside
it, or it is named in ``GIVEN_UP`` and refused in one line that says to train again.
"""

from __future__ import annotations

import json
import lzma
import shutil
from pathlib import Path
from typing import Any

import pytest
from golden.make import parse
from warm import Warm

GOLDEN = Path(__file__).parent / "golden"
MODELS = sorted(
    f"{path.parent.name}/{path.stem}"
    for path in GOLDEN.glob("*/*.json")
    if path.with_suffix("").exists()
)
# What was never of use to anybody: 0.1.0 could not load its own bigram models of several layers,
# and wrote down the place of a classifier's tokenizer.json instead of taking it along.
GIVEN_UP = ("0.1.0/names-bigram", "0.1.0/classify-subwords")
CLOSE = 1e-4


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the folders, with all files as they were written."""
    folder = tmp_path_factory.mktemp("copy") / "golden"
    shutil.copytree(GOLDEN, folder)
    for packed in folder.rglob("*.xz"):
        packed.with_suffix("").write_bytes(lzma.decompress(packed.read_bytes()))
        packed.unlink()
    return folder


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_an_earlier_version_answers_the_same(
    name: str, unpacked: Path, warm: Warm
) -> None:
    version, _, model = name.partition("/")
    folder = unpacked / version
    for question in json.loads((folder / f"{model}.json").read_text(encoding="utf-8")):
        done = warm.run(folder, *question["arguments"], input=question["input"])
        if done.code != 0 and name in GIVEN_UP:
            assert done.code == 1
            assert done.err.startswith("error: ")
            assert done.err.count("\n") == 1
            assert "train" in done.err, "it says what to do"
            continue
        assert done.code == 0, done.err
        if question["answer"] is not None:
            assert_same(parse(done.out), question["answer"])


def assert_same(found: Any, expected: Any) -> None:
    """Equal, numbers nearly so; answers may have got more keys since."""
    if isinstance(expected, dict):
        assert found.keys() >= expected.keys()
        for key, value in expected.items():
            assert_same(found[key], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=CLOSE, rel=CLOSE)
    else:
        assert found == expected


def test_every_kind_of_model_has_a_golden_folder() -> None:
    """A kind that has none yet is made by the release that brings it: golden/make.py."""
    kinds = set()
    for name in MODELS:
        config = GOLDEN / name / "config.json"
        if config.exists():
            kinds.add(json.loads(config.read_text(encoding="utf-8"))["kind"])
    assert kinds == {"word2vec", "vectors", "names", "gpt", "tagger", "classifier"}


def test_an_answer_that_is_off_is_noticed() -> None:
    assert_same([{"score": 0.50001, "new": 1}], [{"score": 0.5}])
    for wrong in ([{"score": 0.501}], [{}], [], [{"score": 0.5}] * 2):
        with pytest.raises(AssertionError):
            assert_same(wrong, [{"score": 0.5}])
