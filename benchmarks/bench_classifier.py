"""The bag-of-n-grams classifier beside fastText and TF-IDF with logistic regression.

    python benchmarks/bench_classifier.py --data labelled.tsv
    python benchmarks/bench_classifier.py --data labelled.tsv --splits 31 32 33 --only tf-idf
    python benchmarks/bench_classifier.py --data labelled.tsv --sentences 30 --splits 31
    python benchmarks/bench_classifier.py --folder genres/ --words 600 --splits 31

A part of the data, chosen by the number of the split, is the test set (--test). fastText and
scikit-learn each get the best of a few settings *on the test set*, which flatters them; nlpkit runs
with its defaults, and so does scikit-learn in a line of its own; another is words and pairs of them
with C = 10. Times are CPU seconds of one thread. Without options it runs on the sample reviews.

With --folder, a folder per label and a file per document, documents are cut into pieces of --words
words (0: left whole), and no document is both learned from and tested on. --sentences makes
documents of so many texts of --data, two thirds of one label and the rest of another.
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
only = sys.argv[2]
result, found = {}, []
settings = [(5, 0.5, 100), (10, 0.1, 20), (5, 0.3, 20), (20, 0.1, 50), (5, 0.1, 10)]
if only != "tf-idf":
    import fasttext
    with open(f"{folder}/ft", "w", encoding="utf-8") as out:
        out.writelines(f"__label__{label} {text}\\n" for label, text in train)
    for epoch, lr, dim in settings:
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
    result["fastText"] = max(found)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
found = []
words, pairs = dict(sublinear_tf=True), dict(sublinear_tf=True, ngram_range=(1, 2))
tried = [({}, 1), (pairs, 10)]
if only != "tf-idf":
    tried += [(words, 1), (words, 10), (words, 100), (pairs, 1), (pairs, 100)]
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
result["TF-IDF + LR, words and pairs, C = 10"] = found[1]
if only != "tf-idf":
    result["TF-IDF + LR, best on the test set"] = max(found)
print(json.dumps(result))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", default=str(SAMPLES / "reviews.tsv"))
    parser.add_argument("--folder", help="long documents: a folder per label, a file each")
    parser.add_argument("--words", type=int, default=600, help="to a piece of a document; 0: all")
    parser.add_argument("--sentences", type=int, help="documents of so many texts of --data")
    parser.add_argument(
        "--test", type=float, help="share to test on; a tenth, of documents a fifth"
    )
    parser.add_argument("--splits", type=int, nargs="+", default=[7])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", choices=["tf-idf"], help="two settings of it, and no times")
    parser.add_argument("--peer-python", default=sys.executable)
    options = parser.parse_args()
    name = Path(options.folder or options.data).name
    for split in options.splits:
        examples = read_examples(options.folder or options.data)
        random.Random(split).shuffle(examples)
        cut = int(len(examples) * (options.test or (0.2 if options.folder else 0.1)))
        train, test = examples[cut:], examples[:cut]
        if options.folder is not None and options.words:
            train, test = (cut_documents(part, options.words) for part in (train, test))
        if options.sentences:
            train, test = mixed(examples, options.sentences, split)
        compare(f"{name}, split {split}", train, test, options)


def cut_documents(documents: list[Example], words: int) -> list[Example]:
    """Pieces of documents; the last piece is at least half as long."""
    pieces = []
    for document in documents:
        tokens = document.text.split()
        rows = [tokens[start : start + words] for start in range(0, len(tokens), words)]
        whole = [row for row in rows if 2 * len(row) >= words]
        pieces += [Example(" ".join(row), document.labels) for row in whole]
    return pieces


def mixed(texts: list[Example], size: int, seed: int) -> tuple[list[Example], list[Example]]:
    """1,200 and 600 documents of texts, of which a quarter is kept for the second part."""
    draw = random.Random(seed)
    labels = sorted({text.labels for text in texts})
    parts = []
    cut = len(texts) * 3 // 4
    for chosen, count in ((texts[:cut], 1200), (texts[cut:], 600)):
        by_label = {label: [one.text for one in chosen if one.labels == label] for label in labels}
        documents = []
        for number in range(count):
            label, other = labels[number % len(labels)], labels[(number + 1) % len(labels)]
            most = size * 2 // 3
            lines = draw.sample(by_label[label], most) + draw.sample(by_label[other], size - most)
            draw.shuffle(lines)
            documents.append(Example(" ".join(lines), label))
        parts.append(documents)
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
        speed = None if options.only else predict_speed(folder / "m1", test)
        mean = sum(scores) / len(scores)
        rows.append(["nlpkit bow", mean, sum(seconds) / len(seconds), speed])
        found = subprocess.run(
            [options.peer_python, "-c", PEERS, name, options.only or ""],
            capture_output=True,
            text=True,
            check=True,
        )
        for peer, (score, spent, speed) in json.loads(found.stdout).items():
            rows.append([peer, score, spent, round(speed)])
    columns = ["classifier", "accuracy", "train CPU s (torch's import left out)", "texts/s"]
    print_table(f"{title}, {options.seeds} seeds", columns, rows)


def predict_speed(model: Path, test: list[Example]) -> int:
    """Texts per second of the whole command, model load left out."""
    times = 100 if len(test[0].text) < 1000 else 1
    lines = [example.text + "\n" for example in test] * times
    predict = nlpkit_command("classify", "predict", str(model))
    _, empty = run(predict, "")
    _, busy = run(predict, "".join(lines))
    return round(len(lines) / max(busy - empty, 1e-9))


if __name__ == "__main__":
    main()
