"""Paragraph vectors beside gensim's Doc2Vec: CPU seconds, and accuracy of logistic regression.

    python benchmarks/bench_documents.py --train train.tsv --test test.tsv --gensim-python PYTHON

A line is label<TAB>text, words between spaces. Documents of the first file are trained, those of
the second inferred; a logistic regression learns labels from the former and is scored on the
latter. Without files the sample reviews are taken, which takes seconds and says little. gensim is
run by ``--gensim-python``, and left out without it. All run on one thread; seconds are of the CPU.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from common import SAMPLES, print_table

from nlpkit.text.pipeline import TokenSettings
from nlpkit.vectors.settings import TextMethod, TextSettings
from nlpkit.word2vec.config import Word2VecConfig
from nlpkit.word2vec.document_engine import InferredVectors
from nlpkit.word2vec.model import begin_text

KINDS = {
    "PV-DBOW": {"arch": "skipgram"},
    "PV-DBOW with words": {"arch": "skipgram", "document_words": True},
    "PV-DM": {"arch": "cbow"},
}
SETTINGS = {"dim": 100, "min_count": 2, "threads": 1, "documents": True, "lr": 0.05}
GENSIM = """
import sys, time
import numpy as np
from gensim.models.doc2vec import Doc2Vec, TaggedDocument
train, test, out, dm, words, epochs, seed = sys.argv[1:]
read = lambda path: [line.split("\\t", 1)[1].split() for line in open(path)]
documents = [TaggedDocument(words, [i]) for i, words in enumerate(read(train))]
model = Doc2Vec(vector_size=100, window=5, negative=5, min_count=2, sample=1e-3, dm=int(dm),
                dbow_words=int(words), workers=1, epochs=int(epochs), seed=int(seed), alpha=0.05)
model.build_vocab(documents)
begun = time.process_time()
model.train(documents, total_examples=model.corpus_count, epochs=model.epochs)
seconds = time.process_time() - begun
inferred = np.stack([model.infer_vector(text, epochs=int(epochs)) for text in read(test)])
np.savez(out, train=model.dv.vectors, test=inferred, seconds=seconds)
"""
Result = tuple[float, np.ndarray, np.ndarray]  # seconds, vectors to learn from, and to score


def read(path: Path) -> tuple[list[str], list[list[str]]]:
    rows = [line.split("\t", 1) for line in path.read_text(encoding="utf-8").splitlines()]
    return [label for label, _ in rows], [text.split() for _, text in rows]


def by_nlpkit(train: Path, test: Path, kind: str, epochs: int, seed: int) -> Result:
    config = Word2VecConfig(**SETTINGS, **KINDS[kind], epochs=epochs, seed=seed)  # type: ignore[arg-type]
    run = begin_text(read(train)[1], config, TokenSettings(), sentences=True)
    run.words_trainer.compile()
    begun = time.process_time()
    run.fit()
    seconds = time.process_time() - begun
    with tempfile.TemporaryDirectory() as folder:
        model = run.result()
        model.save(f"{folder}/m")
        inferred = InferredVectors(
            f"{folder}/m", TextSettings(method=TextMethod.INFER, epochs=epochs)
        )
        assert model.documents is not None
        return seconds, model.documents.matrix, inferred.embed(read(test)[1])


def by_gensim(python: str, train: Path, test: Path, kind: str, epochs: int, seed: int) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/vectors.npz"
        told = [str(int(kind == "PV-DM")), str(int(kind.endswith("words")))]
        arguments = [str(train), str(test), out, *told, str(epochs), str(seed)]
        subprocess.run([python, "-c", GENSIM, *arguments], check=True, capture_output=True)
        with np.load(out) as found:
            return float(found["seconds"]), found["train"], found["test"]


def accuracy(vectors: np.ndarray, labels: list[str], new: np.ndarray, gold: list[str]) -> float:
    """Of a logistic regression with two labels, by Newton's method on standardised columns."""
    mean, spread = vectors.mean(axis=0), vectors.std(axis=0) + 1e-9
    x, z = (np.c_[(rows - mean) / spread, np.ones(len(rows))] for rows in (vectors, new))
    first = labels[0]
    y = np.array([label == first for label in labels], float)
    weights = np.zeros(x.shape[1])
    for _ in range(20):
        p = 1 / (1 + np.exp(-x @ weights))
        pull = 0.002 * len(x) * weights
        hessian = (x * (p * (1 - p))[:, None]).T @ x + 0.002 * len(x) * np.eye(len(weights))
        weights -= np.linalg.solve(hessian, x.T @ (p - y) + pull)
    right = (z @ weights > 0) == np.array([label == first for label in gold])
    return 100 * float(right.mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--train", type=Path)
    parser.add_argument("--test", type=Path)
    parser.add_argument("--gensim-python")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.train is None:
            lines = (SAMPLES / "reviews.tsv").read_text(encoding="utf-8").splitlines()[1:]
            options.train, options.test = Path(folder) / "train.tsv", Path(folder) / "test.tsv"
            for part, path in (("train", options.train), ("test", options.test)):
                of_part = [line.partition("\t")[2] for line in lines if line.startswith(part)]
                path.write_text("\n".join(of_part) + "\n", encoding="utf-8")
        labels, gold = read(options.train)[0], read(options.test)[0]
        rows = []
        for kind in KINDS:
            for seed in range(1, options.seeds + 1):
                given = (options.train, options.test, kind, options.epochs, seed)
                results = {"nlpkit": by_nlpkit(*given)}
                if options.gensim_python:
                    results["gensim"] = by_gensim(options.gensim_python, *given)
                for name, (seconds, vectors, new) in results.items():
                    rows.append([kind, seed, name, seconds, accuracy(vectors, labels, new, gold)])
    print_table("documents", ["model", "seed", "system", "CPU s", "accuracy"], rows)


if __name__ == "__main__":
    main()
