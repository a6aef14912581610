"""Vectors of character n-grams beside fastText and gensim: CPU time, quality, rare words.

    python benchmarks/bench_subwords.py --corpus corpus.txt --similarity wordsim353.tsv \\
        --analogies questions-words.txt --peer-python ~/peers/bin/python --arch skipgram cbow

100 dimensions, window 5, 5 negatives, n-grams of 3 to 6, learning rate 0.05, one thread. CPU
seconds are those of whole processes, text file to written vectors. The rare-word set: every
fifth word of the similarity set is taken out of the text (its lines stay, without it), so that
its vector comes from its n-grams alone. fastText's Python package has no seed, so it runs once.
Without options it runs on the sample corpora, and without --peer-python only nlpkit runs.
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
from nlpkit.vectors.analogies import evaluate_analogies, read_questions
from nlpkit.vectors.formats import load
from nlpkit.vectors.similarities import WordPair, evaluate_similarity, read_pairs
from nlpkit.vectors.store import Vectors

BY_FASTTEXT = """
import sys, fasttext
arch, path, out, epochs, seed = sys.argv[1:]
model = fasttext.train_unsupervised(path, model=arch, dim=100, ws=5, neg=5, minCount=5,
    minn=3, maxn=6, t=1e-3, epoch=int(epochs), thread=1, lr=0.05, verbose=0)
model.save_model(out)
"""
BY_GENSIM = """
import sys
from gensim.models import FastText
from gensim.models.fasttext import save_facebook_model
arch, path, out, epochs, seed = sys.argv[1:]
model = FastText(corpus_file=path, vector_size=100, window=5, negative=5, min_count=5, min_n=3,
    max_n=6, sample=1e-3, sg=int(arch == "skipgram"), workers=1, alpha=0.05, epochs=int(epochs),
    seed=int(seed))
save_facebook_model(model, out)
"""
RARE = 5  # every so manieth word of the pairs is one that the text does not have


def cpu_seconds(command: Sequence[str]) -> float:
    """Of a process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def without_some(corpus: str, pairs: list[WordPair], folder: Path) -> tuple[str, list[WordPair]]:
    """The text without some words of the pairs, and the pairs that have one of them."""
    words = sorted({word.lower() for pair in pairs for word in (pair.first, pair.second)})
    rare = set(words[::RARE])
    path = folder / "text.txt"
    with path.open("w", encoding="utf-8") as out:
        for line in read_lines(corpus):
            out.write(" ".join(word for word in line.split() if word not in rare) + "\n")
    return str(path), [pair for pair in pairs if {pair.first.lower(), pair.second.lower()} & rare]


def spearman(vectors: Vectors, pairs: list[WordPair]) -> float:
    """With vectors of unknown words made of n-grams."""
    try:
        return evaluate_similarity(vectors, pairs).spearman
    except NlpkitError:  # too few pairs whose words are known
        return float("nan")


def main() -> None:
    """Parse options and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", default=str(SAMPLES / "world.txt"), help="plain text")
    parser.add_argument("--similarity", default=str(SAMPLES / "world-pairs.tsv"))
    parser.add_argument("--analogies", default=str(SAMPLES / "world-analogies.txt"))
    parser.add_argument("--peer-python", help="a Python that has fasttext and gensim")
    parser.add_argument("--arch", nargs="*", default=["skipgram"], choices=["skipgram", "cbow"])
    parser.add_argument("--systems", nargs="*", default=["nlpkit", "fastText", "gensim"])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    options = parser.parse_args()
    pairs = read_pairs(read_lines(options.similarity), options.similarity)
    questions = read_questions(read_lines(options.analogies), options.analogies)
    scripts = {"fastText": BY_FASTTEXT, "gensim": BY_GENSIM}
    rows: list[list[Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text, rare = without_some(options.corpus, pairs, folder)
        frequent = [pair for pair in pairs if pair not in rare]
        peer, ours = str(folder / "vectors.bin"), str(folder / "vectors.model")
        for arch in options.arch:
            for system in options.systems if options.peer_python else ["nlpkit"]:
                found = []
                for seed in options.seeds[:1] if system == "fastText" else options.seeds:
                    how = [arch, text, peer, str(options.epochs), str(seed)]
                    command = [options.peer_python, "-c", scripts.get(system, ""), *how]
                    if system == "nlpkit":
                        settings = (
                            f"--subwords 3-6 --threads 1 --epochs {options.epochs} --seed {seed} "
                            f"--arch {arch} --force -o {ours}"
                        )
                        command = nlpkit_command("word2vec", "train", text, *settings.split())
                    seconds = cpu_seconds(command)
                    vectors = load(ours if system == "nlpkit" else peer)
                    right = evaluate_analogies(vectors, questions).total.accuracy
                    of_pairs = [spearman(vectors, each) for each in (frequent, rare)]
                    found.append((seconds, *of_pairs, right))
                    print(arch, system, seed, found[-1], flush=True)
                means = [statistics.mean(column) for column in zip(*found, strict=True)]
                rows.append(
                    [f"{system} {arch}", f"{means[0]:.1f}", *(f"{m:.4f}" for m in means[1:])]
                )
    title = f"With n-grams, {options.epochs} epochs, mean of {len(options.seeds)} seeds"
    unseen = f"{len(rare)} pairs with an unseen word"
    columns = ["system", "CPU seconds", "pairs of known words", unseen, "analogies"]
    print_table(title, columns, rows)


if __name__ == "__main__":
    main()
