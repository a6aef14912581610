"""What the tests of commands share: a runner in a folder of its own, and small models."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_runner import TEXT, Runner
from warm import Warm

from nlpkit import modeldir
from nlpkit.text.subwords import Subwords
from nlpkit.text.vocab import Vocab


@pytest.fixture
def run(tmp_path: Path, warm: Warm) -> Runner:
    return Runner(tmp_path, warm)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a text, a vocabulary, a subword model and a model, all small."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    words = TEXT.split()
    counts = {word: words.count(word) for word in words}
    specials = ["<pad>", "<unk>", "<bos>", "<eos>"]
    Vocab.from_counts(counts, specials=specials).save(str(folder / "words.vocab"))
    Subwords.train([TEXT] * 5, vocab_size=300).save(str(folder / "tokenizer.json"))
    config = modeldir.ModelConfig(kind="demo", settings={"dim": 8, "rate": 0.5}, seed=7)
    config.metrics = {"loss": 0.25}
    with modeldir.create(folder / "demo.model", config) as model:
        records = [{"step": step, "loss": 2.0 / step} for step in range(1, 9)]
        modeldir.write_metrics(model, records)
    return folder
