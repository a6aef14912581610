"""Vectors of character n-grams beside fastText and gensim: CPU time, quality, rare words.

    python benchmarks/bench_subwords.py --corpus corpus.txt --similarity wordsim353.tsv \\
        --peer-python ~/peers/bin/python

100 dimensions, window 5, 5 negatives, n-grams of 3 to 6, learning rate 0.05, one thread. CPU
seconds are those of whole processes, text file to written vectors. The rare-word set: every
twentieth word of the similarity set is taken out of the text (its lines stay, without it), so that
its vector comes from its n-grams alone. Without options it runs on the sample corpora, and without
--peer-python only nlpkit runs.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import SAMPLES, nlpkit_command, print_table

from nlpkit.errors import NlpkitError
from nlpkit.textio import read_lines
from nlpkit.vectors.formats import load
from nlpkit.vectors.similarities import WordPair, evaluate_similarity, read_pairs

BY_FASTTEXT = """
import sys, fasttext
path, out, epochs, seed = sys.argv[1:]
model = fasttext.train_unsupervised(path, model="skipgram", dim=100, ws=5, neg=5, minCount=5,
    minn=3, maxn=6, t=1e-3, epoch=int(epochs), thread=1, lr=0.05, verbose=0, seed=int(seed))
model.save_model(out)
"""
BY_GENSIM = """
import sys
from gensim.models import FastText
from gensim.models.fasttext import save_facebook_model
path, out, epochs, seed = sys.argv[1:]
model = FastText(corpus_file=path, vector_size=100, window=5, negative=5, min_count=5, min_n=3,
    max_n=6, sample=1e-3, sg=1, workers=1, alpha=0.05, epochs=int(epochs), seed=int(seed))
save_facebook_model(model, out)
"""


def cpu_seconds(command: Sequence[str]) -> float:
    """Of a process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def without_some(corpus: str, pairs: list[WordPair], folder: Path) -> tuple[str, list[WordPair]]:
    """The text without every twentieth word of the pairs, and the pairs that have one."""
    words = sorted({word for pair in pairs for word in (pair.first, pair.second)})
    rare = set(words[::20])
    path = folder / "text.txt"
    with path.open("w", encoding="utf-8") as out:
        for line in read_lines(corpus):
            out.write(" ".join(word for word in line.split() if word not in rare) + "\n")
    return str(path), [pair for pair in pairs if {pair.first, pair.second} & rare]


def spearman(path: str, pairs: list[WordPair]) -> float:
    """With vectors of unknown words made of n-grams."""
    try:
        return evaluate_similarity(load(path), pairs).spearman
    except NlpkitError:  # too few pairs whose words are known
        return float("nan")


def main() -> None:
    """Parse options and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", default=str(SAMPLES / "world.txt"), help="plain text")
    parser.add_argument("--similarity", default=str(SAMPLES / "world-pairs.tsv"))
    parser.add_argument("--peer-python", help="a Python that has fasttext and gensim")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    options = parser.parse_args()
    pairs = read_pairs(read_lines(options.similarity), options.similarity)
    rows: list[list[Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text, rare = without_some(options.corpus, pairs, folder)
        frequent = [pair for pair in pairs if pair not in rare]
        out = str(folder / "vectors.bin")
        ours = str(folder / "vectors.model")
        systems: dict[str, list[str]] = {"nlpkit": []}
        if options.peer_python:
            systems["fastText"] = [options.peer_python, "-c", BY_FASTTEXT]
            systems["gensim"] = [options.peer_python, "-c", BY_GENSIM]
        for system, command in systems.items():
            found = []
            for seed in options.seeds:
                flags = [text, out, str(options.epochs), str(seed)]
                if not command:
                    settings = f"--subwords 3-6 --threads 1 --epochs {options.epochs} --seed {seed}"
                    train = nlpkit_command("word2vec", "train", text, "-o", ours, "--force")
                    seconds = cpu_seconds([*train, *settings.split()])
                else:
                    seconds = cpu_seconds([*command, *flags])
                path = out if command else ours
                found.append((seconds, spearman(path, frequent), spearman(path, rare)))
            means = [statistics.mean(column) for column in zip(*found, strict=True)]
            rows.append([system, f"{means[0]:.1f}", *(f"{mean:.4f}" for mean in means[1:])])
            print(rows[-1], flush=True)
    title = f"Skip-gram with n-grams, {options.epochs} epochs, mean of {len(options.seeds)} seeds"
    columns = [
        "system",
        "CPU seconds",
        "pairs of known words",
        f"{len(rare)} pairs with one unseen",
    ]
    print_table(title, columns, rows)


if __name__ == "__main__":
    main()
