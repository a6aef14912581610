"""The bag-of-n-grams classifier beside fastText and TF-IDF with logistic regression.

    python benchmarks/bench_classifier.py --data labelled.tsv
    python benchmarks/bench_classifier.py --folder genres/ --words 600

A tenth of the data, chosen by a fixed seed, is the test set. fastText and scikit-learn each get the
best of a few settings *on the test set*, which flatters them; nlpkit runs with its defaults, and so
does scikit-learn in a line of its own. Times are CPU seconds of one thread. Without options it runs
on the sample reviews.

With --folder, a folder per label and a file per document, documents are cut into pieces of --words
words, and a fifth of the documents, never of the pieces, is the test set; --splits of them.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench_tagger import run
from common import SAMPLES, nlpkit_command, print_table

from nlpkit.tasks.classify.data import Example, read_examples

PEERS = """
import json, sys, time
folder = sys.argv[1]
def read(name):
    with open(f"{folder}/{name}.tsv", encoding="utf-8") as lines:
        return [line.rstrip("\\n").split("\\t", 1) for line in lines]
train, test = read("train"), read("test")
import fasttext
with open(f"{folder}/ft", "w", encoding="utf-8") as out:
    out.writelines(f"__label__{label} {text}\\n" for label, text in train)
found = []
for epoch, lr, dim in [(5, 0.5, 100), (10, 0.1, 20), (5, 0.3, 20), (20, 0.1, 50), (5, 0.1, 10)]:
    started = time.process_time()
    model = fasttext.train_supervised(
        f"{folder}/ft", wordNgrams=2, thread=1, verbose=0, epoch=epoch, lr=lr, dim=dim)
    seconds = time.process_time() - started
    lines = [text + "\\n" for _, text in test] * 100
    started = time.process_time()
    labels = model.f.multilinePredict(lines, 1, 0.0, "strict")[0][: len(test)]
    speed = len(lines) / (time.process_time() - started)
    right = sum(a[0] == f"__label__{b}" for a, (b, _) in zip(labels, test))
    found.append((100 * right / len(test), seconds, speed))
result = {"fastText": max(found)}
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
found = []
words, pairs = dict(sublinear_tf=True), dict(sublinear_tf=True, ngram_range=(1, 2))
tried = [({}, 1), *((how, strength) for how in (words, pairs) for strength in (1, 10, 100))]
for settings, strength in tried:
    started = time.process_time()
    vectorizer = TfidfVectorizer(**settings)
    model = LogisticRegression(C=strength, max_iter=1000)
    model.fit(vectorizer.fit_transform([t for _, t in train]), [l for l, _ in train])
    seconds = time.process_time() - started
    started = time.process_time()
    score = model.score(vectorizer.transform([t for _, t in test]), [l for l, _ in test])
    found.append((100 * score, seconds, len(test) / (time.process_time() - started)))
result["TF-IDF + LR, defaults"] = found[0]
result["TF-IDF + LR, best on the test set"] = max(found)
print(json.dumps(result))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", default=str(SAMPLES / "reviews.tsv"))
    parser.add_argument("--folder", help="long documents: a folder per label, a file each")
    parser.add_argument("--words", type=int, default=600, help="to a piece of a document")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--peer-python", default=sys.executable)
    options = parser.parse_args()
    if options.folder is None:
        examples = read_examples(options.data)
        random.Random(7).shuffle(examples)
        cut = len(examples) // 10
        compare(Path(options.data).name, examples[cut:], examples[:cut], options)
        return
    for split in range(1, options.splits + 1):
        train, test = cut_documents(read_examples(options.folder), options.words, split)
        compare(f"{Path(options.folder).name}, split {split}", train, test, options)


def cut_documents(
    documents: list[Example], words: int, seed: int
) -> tuple[list[Example], list[Example]]:
    """Pieces of documents to train and to test on; the last piece is at least half as long."""
    random.Random(seed).shuffle(documents)
    cut = len(documents) // 5
    parts: list[list[Example]] = []
    for chosen in (documents[cut:], documents[:cut]):
        pieces = []
        for document in chosen:
            tokens = document.text.split()
            rows = [tokens[start : start + words] for start in range(0, len(tokens), words)]
            whole = [row for row in rows if 2 * len(row) >= words]
            pieces += [Example(" ".join(row), document.labels) for row in whole]
        parts.append(pieces)
    return parts[0], parts[1]


def compare(
    title: str, train: list[Example], test: list[Example], options: argparse.Namespace
) -> None:
    """A table of nlpkit and its peers on one split."""
    rows: list[list[Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part, chosen in (("test", test), ("train", train)):
            lines = [f"{example.labels[0]}\t{example.text}\n" for example in chosen]
            (folder / f"{part}.tsv").write_text("".join(lines), encoding="utf-8")
        scores, seconds = [], []
        _, start = run([sys.executable, "-c", "import torch"])
        for seed in range(1, options.seeds + 1):
            flags = ["-o", str(folder / f"m{seed}"), "-q", "--threads", "1", "--seed", str(seed)]
            _, spent = run(nlpkit_command("classify", "train", str(folder / "train.tsv"), *flags))
            command = nlpkit_command("classify", "evaluate", str(folder / f"m{seed}"))
            report, _ = run([*command, str(folder / "test.tsv"), "--json"])
            scores.append(100 * json.loads(report)["accuracy"])
            seconds.append(spent - start)
        times = 100 if options.folder is None else 1
        lines = [example.text + "\n" for example in test] * times
        predict = nlpkit_command("classify", "predict", str(folder / "m1"))
        _, empty = run(predict, "")
        _, busy = run(predict, "".join(lines))
        mean = sum(scores) / len(scores)
        speed = round(len(lines) / max(busy - empty, 1e-9))
        rows.append(["nlpkit bow", mean, sum(seconds) / len(seconds), speed])
        found = subprocess.run(
            [options.peer_python, "-c", PEERS, name], capture_output=True, text=True, check=True
        )
        for peer, (score, spent, speed) in json.loads(found.stdout).items():
            rows.append([peer, score, spent, round(speed)])
    columns = ["classifier", "accuracy", "train CPU s (torch's import left out)", "texts/s"]
    print_table(f"{title}, {options.seeds} seeds", columns, rows)


if __name__ == "__main__":
    main()
