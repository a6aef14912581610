"""GloVe beside Stanford's program: CPU time from text to vectors, and quality.

    python benchmarks/bench_glove.py --corpus corpus.txt --similarity wordsim353.tsv \\
        --analogies questions-words.txt --stanford ~/GloVe/build

100 dimensions, window 10, min-count 5, x_max 100, 25 epochs, one thread, memory of 1 GB for counts.
CPU seconds are those of whole processes: vocab_count, cooccur, shuffle and glove are four. Quality
is the mean over seeds: Spearman on word pairs, and analogies by nlpkit's protocol. Without options
it runs on the sample corpora, and without --stanford only nlpkit runs.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

from bench_subwords import cpu_seconds
from common import SAMPLES, nlpkit_command, print_table

from nlpkit.textio import read_lines
from nlpkit.vectors.analogies import evaluate_analogies, read_questions
from nlpkit.vectors.formats import load
from nlpkit.vectors.similarities import evaluate_similarity, read_pairs


def train_nlpkit(corpus: str, out: Path, epochs: int, seed: int) -> tuple[float, str]:
    """CPU seconds and where the vectors are."""
    path = str(out / "ours.bin")
    settings = f"--method glove --threads 1 --epochs {epochs} --seed {seed} --force".split()
    command = nlpkit_command("vectors", "from-counts", corpus, "-o", path)
    return cpu_seconds([*command, *settings]), path


def train_stanford(
    binaries: str, corpus: str, out: Path, epochs: int, seed: int
) -> tuple[float, str]:
    """The same by the four programs, one after the other."""
    where = Path(binaries)
    shell = (
        f"{where / 'vocab_count'} -min-count 5 -verbose 0 < {corpus} > vocab.txt && "
        f"{where / 'cooccur'} -memory 1 -vocab-file vocab.txt -verbose 0 -window-size 10 "
        f"< {corpus} > counts.bin && "
        f"{where / 'shuffle'} -memory 1 -verbose 0 -seed {seed} < counts.bin > shuffled.bin && "
        f"{where / 'glove'} -save-file theirs -threads 1 -input-file shuffled.bin -x-max 100 "
        f"-iter {epochs} -vector-size 100 -vocab-file vocab.txt -verbose 0 -seed {seed}"
    )
    seconds = cpu_seconds(["sh", "-c", f"cd {out} && {shell}"])
    return seconds, str(out / "theirs.txt")


def main() -> None:
    """Parse options and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", default=str(SAMPLES / "world.txt"), help="plain text")
    parser.add_argument("--similarity", default=str(SAMPLES / "world-pairs.tsv"))
    parser.add_argument("--analogies", default=str(SAMPLES / "world-analogies.txt"))
    parser.add_argument("--stanford", metavar="FOLDER", help="with vocab_count, cooccur, ...")
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    options = parser.parse_args()
    corpus = str(Path(options.corpus).resolve())
    pairs = read_pairs(read_lines(options.similarity), options.similarity)
    questions = read_questions(read_lines(options.analogies), options.analogies)
    systems = ["nlpkit", *(["Stanford's"] if options.stanford else [])]
    found: dict[str, list[tuple[float, ...]]] = {system: [] for system in systems}
    with tempfile.TemporaryDirectory() as name:
        for seed in options.seeds:  # in turns, so that a busy hour is busy for both
            for system in systems:
                if system == "nlpkit":
                    seconds, path = train_nlpkit(corpus, Path(name), options.epochs, seed)
                else:
                    seconds, path = train_stanford(
                        options.stanford, corpus, Path(name), options.epochs, seed
                    )
                vectors = load(path)
                right = evaluate_analogies(vectors, questions).total.accuracy
                found[system].append((seconds, evaluate_similarity(vectors, pairs).spearman, right))
                print(system, f"seed {seed}:", *(f"{x:.4f}" for x in found[system][-1]), flush=True)
    rows: list[list[Any]] = []
    for system, runs in found.items():
        means = [statistics.mean(column) for column in zip(*runs, strict=True)]
        rows.append([system, f"{means[0]:.1f}", *(f"{mean:.4f}" for mean in means[1:])])
    title = f"GloVe, {options.epochs} epochs, mean of {len(options.seeds)} seeds"
    print_table(title, ["system", "CPU seconds", "word pairs, Spearman", "analogies"], rows)


if __name__ == "__main__":
    main()
