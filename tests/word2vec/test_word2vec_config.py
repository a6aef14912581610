"""Settings are checked where they are set."""

from __future__ import annotations

from typing import Any

import pytest

from nlpkit.errors import NlpkitError
from nlpkit.word2vec.config import Arch, Loss, Word2VecConfig
from nlpkit.word2vec.examples import cbow_examples, skipgram_examples


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dim": 0}, "dim must be 1 or more"),
        ({"dim": 2.5}, "dim must be a whole number"),
        ({"dim": True}, "dim must be a whole number"),
        ({"window": -1}, "window must be 1 or more"),
        ({"sample": float("nan")}, "sample must be a number"),
        ({"lr": "fast"}, "lr must be a number"),
        ({"lr": 0.0}, "lr must be"),
        ({"lr": 0.01, "min_lr": 0.02}, "lr must be 0.02 or more"),
        ({"arch": "glove"}, "arch 'glove' is not known"),
        ({"threads": 0}, "threads must be 1 or more"),
        ({"widow": 5}, "no setting 'widow'"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(NlpkitError, match=message):
        Word2VecConfig.from_settings(settings)


def test_settings_survive_the_way_to_json_and_back() -> None:
    config = Word2VecConfig(arch=Arch.CBOW, loss=Loss.HS, lr=0.1, max_vocab=9)
    assert config.to_settings()["arch"] == "cbow"
    assert Word2VecConfig.from_settings(config.to_settings()) == config


def test_learning_rate_depends_on_the_architecture() -> None:
    assert Word2VecConfig().starting_lr == 0.025
    assert Word2VecConfig(arch=Arch.CBOW).starting_lr == 0.05
    assert Word2VecConfig(arch=Arch.CBOW, subwords="3-6").starting_lr == 0.1
    assert Word2VecConfig(subwords="3-6").starting_lr == 0.05
    assert Word2VecConfig(arch=Arch.CBOW, lr=0.2).starting_lr == 0.2


def test_examples_of_the_lecture() -> None:
    sentence = "The quick brown fox jumps over the lazy dog".split()
    pairs = list(skipgram_examples(sentence, window=2))
    assert pairs[:5] == [
        ("The", "quick"),
        ("The", "brown"),
        ("quick", "The"),
        ("quick", "brown"),
        ("quick", "fox"),
    ]
    assert len(pairs) == 2 + 3 + 5 * 4 + 3 + 2
    assert list(cbow_examples(sentence, window=2))[2] == (["The", "quick", "fox", "jumps"], "brown")
    assert list(skipgram_examples(["alone"], window=2)) == []


def test_threads_that_are_not_named_are_the_cores_that_may_be_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nlpkit.parallel.available_cores", lambda: 3)
    assert Word2VecConfig().workers == 3
    assert Word2VecConfig(threads=2).workers == 2
