"""word2vec's noise words: shared by a block of centre words, as nlpkit has them, or of each pair.

    python benchmarks/bench_noise.py --corpus corpus.txt --similarity wordsim353.tsv \\
        --analogies questions-words.txt --gensim-python ~/gensim/bin/python

Sharing noise is what makes the kernels fast. Does it blunt vectors, of verbs and adjectives above
all? Skip-gram with 100 dimensions, window 5, 5 negatives, five epochs on one thread, trained with
blocks of 32 (the default), 8 and 1 centre words, and by a plain loop that draws noise for each pair
of words, as word2vec.c and gensim do. Means over seeds: Spearman with the pairs of
``word_groups.py`` and with --similarity, accuracy of --analogies; CPU seconds of one run. Without
options it runs on the sample corpora.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
from bench_word2vec import read_store
from common import SAMPLES, print_table
from word_groups import pair_sets

from nlpkit.errors import NlpkitError
from nlpkit.textio import read_lines
from nlpkit.vectors.analogies import evaluate_analogies, read_questions
from nlpkit.vectors.formats import load
from nlpkit.vectors.similarities import evaluate_similarity, read_pairs
from nlpkit.vectors.store import Vectors
from nlpkit.word2vec import cpu
from nlpkit.word2vec.config import Word2VecConfig
from nlpkit.word2vec.sampling import advance, noise_word, read_windows, seeded
from nlpkit.word2vec.store import IdStore
from nlpkit.word2vec.train import Word2VecTrainer

TRAIN_BY_GENSIM = """
import sys
from gensim.models import Word2Vec
path, out, epochs, seed = sys.argv[1:]
model = Word2Vec(corpus_file=path, vector_size=100, window=5, negative=5, min_count=5, sample=1e-3,
                 sg=1, workers=1, seed=int(seed), alpha=0.025, epochs=int(epochs))
model.wv.save_word2vec_format(out, binary=True)
"""


@numba.njit(fastmath=True)
def train_pairs(
    state: np.uint64,
    n: int,
    word: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    inputs: np.ndarray,
    outputs: np.ndarray,
    limits: np.ndarray,
    guide: np.ndarray,
    negative: int,
    lr: np.float32,
) -> tuple[float, int]:
    """word2vec as published: a pair of words, then noise words of its own."""
    error = np.zeros(inputs.shape[1], np.float32)
    loss, count = 0.0, 0
    for centre in range(n):
        for place in range(low[centre], high[centre]):
            if place == centre:
                continue
            x = inputs[word[place]]
            error[:] = 0
            for k in range(negative + 1):
                target, label = word[centre], np.float32(1)
                if k:
                    state = advance(state)
                    target = noise_word(state >> np.uint64(32), limits, guide)
                    label = np.float32(0)
                    if target == word[centre]:
                        continue
                y = outputs[target]
                score = np.float32(0)
                for i in range(len(error)):
                    score += x[i] * y[i]
                step = lr * (label - np.float32(1) / (np.float32(1) + np.exp(-score)))
                if not k:
                    loss += np.log1p(np.exp(-score))
                    count += 1
                for i in range(len(error)):
                    error[i] += step * y[i]
                    y[i] += step * x[i]
            for i in range(len(error)):
                x[i] += error[i]
    return loss, count


class PairEngine(cpu.CpuEngine):
    """The CPU engine with noise words of each pair; skip-gram on one thread."""

    def train_piece(
        self, number: int, start: int, stop: int, lr: float, worker: cpu.Worker
    ) -> tuple[float, int]:
        config, space = self.config, worker.space
        state, n = read_windows(
            np.uint64(seeded(config.seed, number)),
            self.ids,
            start,
            stop,
            self.keep,
            config.window,
            config.shrink_windows,
            space.word,
            space.low,
            space.high,
            space.document,
        )
        found: tuple[float, int] = train_pairs(
            np.uint64(state),
            n,
            space.word,
            space.low,
            space.high,
            self.input,
            self.output,
            self.noise.limits,
            self.noise.guide,
            config.negative,
            np.float32(lr),
        )
        return found


def train(store: IdStore, epochs: int, seed: int, block: int) -> tuple[float, Vectors]:
    """CPU seconds, and vectors; a block of 0 stands for noise of each pair."""
    before = cpu.BLOCK
    cpu.BLOCK = block or before
    try:
        trainer = Word2VecTrainer(store, Word2VecConfig(epochs=epochs, seed=seed, threads=1))
        if not block:
            trainer._engine.__class__ = PairEngine
        trainer.compile()
        started = time.process_time()
        for _ in trainer.train():
            pass
        return time.process_time() - started, Vectors(store.words, trainer.state().input)
    finally:
        cpu.BLOCK = before


def train_gensim(python: str, path: str, epochs: int, seed: int) -> tuple[float, Vectors]:
    """The same by gensim; seconds are those of the whole process."""
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "vectors.bin")
        started = time.perf_counter()
        command = [python, "-c", TRAIN_BY_GENSIM, path, out, str(epochs), str(seed)]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        return time.perf_counter() - started, load(out)


def main() -> None:
    """Parse options and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", default=str(SAMPLES / "world.txt"), help="plain text")
    parser.add_argument("--similarity", default=str(SAMPLES / "world-pairs.tsv"))
    parser.add_argument("--analogies", default=str(SAMPLES / "world-analogies.txt"))
    parser.add_argument("--gensim-python", help="a Python that has gensim")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    options = parser.parse_args()
    store = read_store(options.corpus)
    sets = {**pair_sets(), "word pairs": read_pairs(read_lines(options.similarity), "pairs")}
    questions = read_questions(read_lines(options.analogies), options.analogies)
    ways: dict[str, Callable[[int], tuple[float, Vectors]]] = {
        "blocks of 32": partial(train, store, options.epochs, block=32),
        "blocks of 8": partial(train, store, options.epochs, block=8),
        "blocks of 1": partial(train, store, options.epochs, block=1),
        "each pair": partial(train, store, options.epochs, block=0),
    }
    if options.gensim_python:
        ways["gensim"] = partial(
            train_gensim, options.gensim_python, options.corpus, options.epochs
        )
    rows: list[list[Any]] = []
    for name, way in ways.items():
        scores = []
        for seed in options.seeds:
            seconds, vectors = way(seed=seed)  # type: ignore[call-arg]
            found = [_spearman(vectors, pairs) for pairs in sets.values()]
            right = evaluate_analogies(vectors, questions).total.accuracy
            scores.append([*found, right, seconds])
        means = [statistics.mean(column) for column in zip(*scores, strict=True)]
        rows.append([name, *(f"{mean:.4f}" for mean in means[:-1]), f"{means[-1]:.0f}"])
        print(rows[-1], flush=True)
    title = f"Noise of skip-gram, {options.epochs} epochs, mean of {len(options.seeds)} seeds"
    print_table(title, ["noise of", *sets, "analogies", "seconds"], rows)


def _spearman(vectors: Vectors, pairs: Any) -> float:
    try:
        return evaluate_similarity(vectors, pairs).spearman
    except NlpkitError:  # the sample corpora know too few of the words
        return float("nan")


if __name__ == "__main__":
    main()
