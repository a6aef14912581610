"""Small tagged sentences and short training runs on them."""

from __future__ import annotations

import torch

from nlpkit.tasks.tag.settings import TaggerSettings
from nlpkit.tasks.tag.train import TaggerRun, TrainingData
from nlpkit.text.conll import Layout, Sentence
from nlpkit.vectors.store import Vectors

LAYOUT = Layout("columns", 0, 1, 2)


def sentence(*pairs: str) -> Sentence:
    words = [pair.rpartition("/") for pair in pairs]
    lines = [f"{word}\t{tag}\n" for word, _, tag in words] + ["\n"]
    return Sentence(
        lines,
        list(range(len(words))),
        [word for word, _, _ in words],
        [tag for _, _, tag in words],
        "test",
        1,
    )


ENTITIES = [
    sentence("Ann/B-PER", "met/O", "Bob/B-PER", "Ray/I-PER", "in/O", "Rio/B-LOC"),
    sentence("Bob/B-PER", "Ray/I-PER", "left/O", "New/B-LOC", "York/I-LOC", "./O"),
    sentence("Rio/B-LOC", "waits/O", "./O"),
    sentence("Yes/O"),
]


def run_of(
    sentences: list[Sentence], seed: int = 1, vectors: Vectors | None = None, **settings: object
) -> TaggerRun:
    torch.set_num_threads(1)
    small = {"seed": seed, "hidden": 8, "word_dim": 8, "epochs": 1, "batch_tokens": 16, **settings}
    data = TrainingData.of(sentences, LAYOUT)
    return TaggerRun(data, TaggerSettings(**small), vectors=vectors)  # type: ignore[arg-type]
