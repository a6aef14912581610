"""Taggers beside CRFsuite and spaCy: quality, training time, tagging speed, cold start.

    python benchmarks/bench_tagger.py --train train.conllu --test dev.conllu --vectors w.model
    python benchmarks/bench_tagger.py --train train.conll --test dev.conll --peers crfsuite
    python benchmarks/bench_tagger.py --train all.conll --seeds 3  # a fifth of it is the test

Times are CPU seconds of one thread, so that a busy machine matters less. The peers are imported by
``--peer-python`` if they are installed elsewhere. Without options it runs on the sample corpora,
which are too small and too easy to mean much.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import SAMPLES, nlpkit_command, print_table

from nlpkit.tasks.tag.layouts import LayoutChoice
from nlpkit.tasks.tag.reading import read_tagged
from nlpkit.text.conll import Sentence


def run(command: list[str], stdin: str = "") -> tuple[str, float]:
    """Output and CPU seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout, seconds


def read(path: str, choice: LayoutChoice) -> list[Sentence]:
    """The sentences of a file that have tokens."""
    return [sentence for sentence in read_tagged([path], choice)[0] if sentence.tokens]


def split(sentences: list[Sentence]) -> tuple[list[Sentence], list[Sentence]]:
    """Four fifths and one fifth, chosen by a fixed seed."""
    shuffled = list(sentences)
    random.Random(1).shuffle(shuffled)
    return shuffled[len(shuffled) // 5 :], shuffled[: len(shuffled) // 5]


def write_columns(sentences: list[Sentence], target: Path) -> int:
    """Tokens and tags alone, for everybody the same; returns the number of tokens."""
    with open(target, "w", encoding="utf-8") as out:
        for sentence in sentences:
            for token, tag in zip(sentence.tokens, sentence.tags, strict=True):
                out.write(f"{token}\t{tag}\n")
            out.write("\n")
    return sum(len(sentence.tokens) for sentence in sentences)


def quality(report: dict[str, Any]) -> float:
    """F1 of entities, or accuracy, in percent."""
    return 100 * float(report["entities"]["f1"] if "entities" in report else report["accuracy"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--train", default=str(SAMPLES / "tagged-train.conllu"))
    parser.add_argument("--test", default=None)
    parser.add_argument("--column", default=None)
    parser.add_argument("--vectors", default=None)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--peers", nargs="*", default=["crfsuite", "spacy"])
    parser.add_argument("--peer-python", default=sys.executable)
    options = parser.parse_args()
    choice = LayoutChoice(column=options.column)
    rows: list[list[Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train, test = folder / "train.tsv", folder / "test.tsv"
        learned = read(options.train, choice)
        if options.test is None:
            learned, held = split(learned)
        else:
            held = read(options.test, choice)
        write_columns(learned, train)
        tokens = write_columns(held, test)
        variants: dict[str, list[str]] = {"nlpkit": []}
        if options.vectors:
            variants["nlpkit with vectors"] = ["--vectors", options.vectors]
        for label, flags in variants.items():
            scores, seconds = [], []
            for seed in range(1, options.seeds + 1):
                model = str(folder / f"model{len(flags)}-{seed}")
                common = ["--threads", "1", "-q", "--seed", str(seed), *flags]
                command = nlpkit_command("tag", "train", str(train), "-o", model, *common)
                seconds.append(run(command)[1])
                report = run(nlpkit_command("tag", "evaluate", model, str(test), "--json"))[0]
                scores.append(quality(json.loads(report)))
                note = f"{label}, seed {seed}: {scores[-1]:.2f} in {seconds[-1]:.0f} s"
                print(note, file=sys.stderr, flush=True)
            predict = nlpkit_command("tag", "predict", model, "--input", "columns")
            empty = min(run([*predict, "/dev/null"])[1] for _ in range(3))
            busy = min(run([*predict, str(test)])[1] for _ in range(3))
            mean, train_time = statistics.mean(scores), statistics.mean(seconds)
            rows.append([label, mean, train_time, round(tokens / max(1e-3, busy - empty))])
        for peer in options.peers:
            predicted = folder / peer
            script = str(Path(__file__).with_name("peers_tagging.py"))
            found = json.loads(
                run([options.peer_python, script, peer, str(train), str(test), str(predicted)])[0]
            )
            report = run(nlpkit_command("tag", "evaluate", str(test), str(predicted), "--json"))[0]
            speed = round(tokens / found["tag_seconds"])
            rows.append([peer, quality(json.loads(report)), found["train_seconds"], speed])
        title = f"{Path(options.train).name}, mean of {options.seeds} seeds"
        print_table(title, ["tagger", "score", "train CPU s", "tokens/s"], rows)
        cold = min(run(predict, "The dog barks.\n")[1] for _ in range(3))
        torch = min(run([sys.executable, "-c", "import torch"])[1] for _ in range(3))
        print_table(
            "Cold start",
            ["command", "CPU s", "ratio"],
            [["nlpkit tag predict", cold, cold / torch], ["import torch", torch, 1.0]],
        )


if __name__ == "__main__":
    main()
