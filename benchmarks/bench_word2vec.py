"""word2vec beside gensim, fastText and word2vec.c: words per second, whole runs, quality, memory.

    python benchmarks/bench_word2vec.py --corpus corpus.txt --similarity wordsim353.tsv \\
        --analogies questions-words.txt --word2vec-c ./word2vec

Everybody gets 100 dimensions, window 5, 5 negatives, min-count 5, sample 1e-3 and two threads.
Speed counts the words of the text, subsampled or not, over the time of training alone; fastText
and word2vec.c do not tell that apart, so theirs is of two epochs less that of one. Quality is the
mean over seeds after five epochs: Spearman on word pairs, and analogies by nlpkit's protocol
(3CosAdd among the 30,000 most frequent words). Without options it runs on the sample corpora.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from common import SAMPLES, nlpkit_command, print_table, run_command
from word_groups import pair_sets

from nlpkit.textio import read_blocks, read_lines
from nlpkit.vectors.analogies import evaluate_analogies, read_questions
from nlpkit.vectors.formats import load
from nlpkit.vectors.similarities import evaluate_similarity, read_pairs
from nlpkit.vectors.store import Vectors
from nlpkit.word2vec.config import Arch, Word2VecConfig
from nlpkit.word2vec.store import IdStore, StoreBuilder
from nlpkit.word2vec.train import Word2VecTrainer

Corpus = tuple[str, IdStore]  # a path, and the same as ids


def read_store(path: str) -> IdStore:
    builder = StoreBuilder()
    for block in read_blocks([path]):
        builder.add_block(block.data)
    return builder.finish(Word2VecConfig())


def train_nlpkit(
    store: IdStore, arch: str, epochs: int, seed: int, threads: int = 2
) -> tuple[float, Vectors]:
    """Seconds of training, and the vectors."""
    config = Word2VecConfig(arch=Arch(arch), epochs=epochs, seed=seed, threads=threads)
    trainer = Word2VecTrainer(store, config)
    trainer.compile()
    started = time.perf_counter()
    for _ in trainer.train():
        pass
    return time.perf_counter() - started, Vectors(store.words, trainer.state().input)


def time_nlpkit(store: IdStore, arch: str, epochs: int) -> float:
    return train_nlpkit(store, arch, epochs, 1)[0]


def time_gensim(path: str, arch: str, epochs: int) -> float:
    return train_gensim(path, arch, epochs, 1)[0]


def train_gensim(path: str, arch: str, epochs: int, seed: int) -> tuple[float, Vectors]:
    from gensim.models import Word2Vec

    rate = 0.025 if arch == "skipgram" else 0.05
    model = Word2Vec(
        vector_size=100,
        window=5,
        negative=5,
        min_count=5,
        sample=1e-3,
        sg=int(arch == "skipgram"),
        workers=2,
        seed=seed,
        alpha=rate,
    )
    model.build_vocab(corpus_file=path)
    started = time.perf_counter()
    model.train(
        corpus_file=path,
        total_words=model.corpus_total_words,
        total_examples=model.corpus_count,
        epochs=epochs,
        start_alpha=rate,
        end_alpha=1e-4,
    )
    return time.perf_counter() - started, Vectors(model.wv.index_to_key, model.wv.vectors)


def train_fasttext(path: str, arch: str, epochs: int) -> float:
    import fasttext

    started = time.perf_counter()
    fasttext.train_unsupervised(
        path,
        model="skipgram" if arch == "skipgram" else "cbow",
        dim=100,
        ws=5,
        neg=5,
        minCount=5,
        t=1e-3,
        epoch=epochs,
        thread=2,
        maxn=0,
        verbose=0,
        lr=0.025 if arch == "skipgram" else 0.05,
    )
    return time.perf_counter() - started


def train_word2vec_c(binary: str, path: str, arch: str, epochs: int) -> float:
    with tempfile.NamedTemporaryFile() as vectors:
        cbow = "0" if arch == "skipgram" else "1"
        settings = "-size 100 -window 5 -negative 5 -hs 0 -min-count 5 -sample 1e-3 -threads 2"
        command = [binary, "-train", path, "-output", vectors.name, *settings.split()]
        started = time.perf_counter()
        subprocess.run(
            [*command, "-cbow", cbow, "-binary", "1", "-iter", str(epochs)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return time.perf_counter() - started


def bench_speed(corpus: Corpus, binary: str | None, rounds: int) -> None:
    """Words per second, everybody once in each round."""
    path, store = corpus
    for arch in ("skipgram", "cbow"):
        runs: dict[str, Callable[[int], float]] = {
            "nlpkit": partial(time_nlpkit, store, arch),
            "gensim": partial(time_gensim, path, arch),
            "fastText": partial(train_fasttext, path, arch),
        }
        if binary is not None:
            runs["word2vec.c"] = partial(train_word2vec_c, binary, path, arch)
        best: dict[str, float] = {}
        for _ in range(rounds):
            for name, run in runs.items():
                # these two are timed as commands, of which only the second epoch is training alone
                whole = name in ("fastText", "word2vec.c")
                seconds = run(2) - run(1) if whole else run(1)
                best[name] = min(best.get(name, seconds), seconds)
        rows: list[list[Any]] = [
            [
                name,
                f"{store.text_words / seconds / 1000:,.0f} k",
                f"{seconds / best['nlpkit']:.1f} x",
            ]
            for name, seconds in best.items()
        ]
        print_table(f"{arch}: training", ["system", "words/s", "nlpkit is faster by"], rows)


def bench_threads(corpus: Corpus, rounds: int) -> None:
    """Two threads against one, taking turns."""
    _, store = corpus
    rows: list[list[Any]] = []
    for arch in ("skipgram", "cbow"):
        pairs = [
            [train_nlpkit(store, arch, 1, 1, threads)[0] for threads in (1, 2)]
            for _ in range(rounds)
        ]
        one, two = (min(column) for column in zip(*pairs, strict=True))
        middle = statistics.median(first / second for first, second in pairs)
        rows.append([arch, one, two, f"{one / two:.2f} x", f"{middle:.2f} x"])
    columns = ["model", "one thread, s", "two threads, s", "best to best", "median of rounds"]
    print_table("Threads", columns, rows)


def bench_command(corpus: Corpus, epochs: int) -> None:
    """From a text file to saved vectors, Python's start included."""
    path, _ = corpus
    script = (
        "import sys; from gensim.models import Word2Vec; "
        "Word2Vec(corpus_file=sys.argv[1], vector_size=100, window=5, negative=5, min_count=5, "
        f"sample=1e-3, sg=1, workers=2, epochs={epochs})"
        ".wv.save_word2vec_format(sys.argv[2], binary=True)"
    )
    with tempfile.TemporaryDirectory() as folder:
        options = ["-o", f"{folder}/m", "--epochs", str(epochs), "--threads", "2", "--force", "-q"]
        ours = run_command(nlpkit_command("word2vec", "train", path, *options))
        peer = run_command([sys.executable, "-c", script, path, f"{folder}/v.bin"])
    rows = [
        ["nlpkit", ours.seconds, ours.megabytes, f"{peer.seconds / ours.seconds:.1f} x"],
        ["gensim", peer.seconds, peer.megabytes, "1.0 x"],
    ]
    columns = ["system", "seconds", "peak MB", "to gensim"]
    print_table(f"skip-gram, whole command, {epochs} epochs", columns, rows)


def bench_deterministic(corpus: Corpus, epochs: int, rounds: int) -> None:
    """Whole commands of two threads, free and repeatable, taking turns."""
    path, _ = corpus
    found: dict[str, list[float]] = {"free": [], "--deterministic": []}
    with tempfile.TemporaryDirectory() as folder:
        options = f"-o {folder}/m --epochs {epochs} --threads 2 --force -q".split()
        for _ in range(rounds):
            for name, seconds in found.items():
                more = [name] if name.startswith("--") else []
                command = nlpkit_command("word2vec", "train", path, *options, *more)
                seconds.append(run_command(command).seconds)
    free = statistics.median(found["free"])
    rows = [
        [name, " ".join(f"{each:.2f}" for each in seconds), free / statistics.median(seconds)]
        for name, seconds in found.items()
    ]
    print_table("Two threads", ["threads", "seconds", "of the free speed"], rows)


def bench_processes(
    corpus: Corpus, similarity: str, analogies: str, epochs: int, seeds: list[int]
) -> None:
    """One process of one thread and two under torchrun, taking turns, a seed in each turn.

    Words a second are those of all processes: a process tells its own, and all end together.
    """
    path, _ = corpus
    pairs = read_pairs(read_lines(similarity), similarity)
    questions = read_questions(read_lines(analogies), analogies)
    torchrun = str(Path(sys.executable).with_name("torchrun"))
    rows: list[list[Any]] = []
    with tempfile.TemporaryDirectory() as name:
        model = Path(name) / "m"
        for seed in seeds:
            words, speeds = 0, []
            for count in (1, 2):
                options = f"-o {model} --epochs {epochs} --seed {seed} --threads 1 --force -q"
                command = nlpkit_command("word2vec", "train", path, *options.split())
                if count > 1:
                    command = [torchrun, "--nproc-per-node", str(count), "--no-python", *command]
                run_command(command)
                last = json.loads((model / "metrics.jsonl").read_text().splitlines()[-1])
                words = words or last["words"]  # of the one process: all
                speeds.append(words / (last["words"] / last["words_per_second"]))
                vectors = load(str(model))
                rows.append(
                    [
                        f"{count}, seed {seed}",
                        f"{speeds[-1] / 1000:,.0f} k",
                        speeds[-1] / speeds[0],
                        f"{evaluate_similarity(vectors, pairs).spearman:.4f}",
                        f"{evaluate_analogies(vectors, questions).total.accuracy:.4f}",
                    ]
                )
    columns = ["processes", "words/s", "ratio", "word pairs, Spearman", "analogies, accuracy"]
    print_table("Processes of one thread", columns, rows)


def bench_quality(
    corpus: Corpus, similarity: str, analogies: str, epochs: int, seeds: list[int]
) -> None:
    """Means over seeds."""
    path, store = corpus
    pairs = read_pairs(read_lines(similarity), similarity)
    questions = read_questions(read_lines(analogies), analogies)
    rows: list[list[Any]] = []
    for arch in ("skipgram", "cbow"):
        trained: dict[str, Callable[[int], tuple[float, Vectors]]] = {
            "nlpkit": partial(train_nlpkit, store, arch, epochs),
            "gensim": partial(train_gensim, path, arch, epochs),
        }
        for name, train in trained.items():
            scores = []
            for seed in seeds:
                _, vectors = train(seed)
                scores.append(
                    (
                        evaluate_similarity(vectors, pairs).spearman,
                        evaluate_analogies(vectors, questions).total.accuracy,
                    )
                )
            means = [f"{statistics.mean(column):.4f}" for column in zip(*scores, strict=True)]
            rows.append([f"{name} {arch}", *means])
    title = f"Quality after {epochs} epochs, mean of seeds {' '.join(map(str, seeds))}"
    print_table(title, ["system", "word pairs, Spearman", "analogies, accuracy"], rows)


def bench_equal_time(
    corpus: Corpus, similarity: str, analogies: str, epochs: int, seeds: list[int]
) -> None:
    """Skip-gram, and CBOW for as many epochs and for as many CPU seconds; one thread."""
    _, store = corpus
    sets = {**pair_sets(), "word pairs": read_pairs(read_lines(similarity), similarity)}
    questions = read_questions(read_lines(analogies), analogies)
    found: dict[str, list[list[float]]] = {}
    for seed in seeds:
        lengths = {"skipgram": epochs, "cbow": epochs}
        seconds: dict[str, float] = {}
        for name in ("skipgram", "cbow", "cbow, equal time"):
            arch = name.split(",")[0]
            if arch != name:
                lengths[name] = max(1, round(epochs * seconds["skipgram"] / seconds["cbow"]))
            started = time.process_time()
            _, vectors = train_nlpkit(store, arch, lengths[name], seed, threads=1)
            seconds[name] = time.process_time() - started
            scores = [evaluate_similarity(vectors, pairs).spearman for pairs in sets.values()]
            right = evaluate_analogies(vectors, questions).total.accuracy
            row = [lengths[name], seconds[name], *scores, right]
            found.setdefault(name, []).append(row)
            print(name, f"seed {seed}:", *(f"{number:.4g}" for number in row), flush=True)
    rows = [
        [name, *(f"{statistics.mean(column):.4g}" for column in zip(*runs, strict=True))]
        for name, runs in found.items()
    ]
    columns = ["model", "epochs", "CPU seconds", *sets, "analogies"]
    print_table(f"Equal time, mean of {len(seeds)} seeds", columns, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", default=str(SAMPLES / "world.txt"), help="plain text")
    parser.add_argument("--similarity", default=str(SAMPLES / "world-pairs.tsv"))
    parser.add_argument("--analogies", default=str(SAMPLES / "world-analogies.txt"))
    parser.add_argument("--word2vec-c", metavar="BINARY")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", help="speed threads command ...")
    options = parser.parse_args()
    corpus = (options.corpus, read_store(options.corpus))
    parts: dict[str, Callable[[], None]] = {
        "speed": lambda: bench_speed(corpus, options.word2vec_c, options.rounds),
        "threads": lambda: bench_threads(corpus, options.rounds),
        "command": lambda: bench_command(corpus, options.epochs),
        "deterministic": lambda: bench_deterministic(corpus, options.epochs, options.rounds),
        "processes": lambda: bench_processes(
            corpus, options.similarity, options.analogies, options.epochs, options.seeds
        ),
        "quality": lambda: bench_quality(
            corpus, options.similarity, options.analogies, options.epochs, options.seeds
        ),
        "equal-time": lambda: bench_equal_time(
            corpus, options.similarity, options.analogies, options.epochs, options.seeds
        ),
    }
    for name in options.only or parts:
        parts[name]()


if __name__ == "__main__":
    main()
