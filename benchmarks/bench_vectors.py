"""Vectors: reading a text file beside gensim, and how soon a cold command answers.

    python benchmarks/bench_vectors.py --rows 400000 --dim 300

The vectors are random numbers of which nothing depends but time. Without options the set is small
and the run short. gensim is imported here, or run by ``--gensim-python`` if it is installed
elsewhere; on a large set ``--gensim-rows`` lets it read only the first rows of the file, and the
ratio is that of rows per second.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import nlpkit_command, print_table, run_command, take_turns

from nlpkit.vectors.formats import load, save
from nlpkit.vectors.settings import VectorFormat
from nlpkit.vectors.store import Vectors

READ_BY_GENSIM = """
import sys, time
from gensim.models import KeyedVectors
started = time.perf_counter()
KeyedVectors.load_word2vec_format(sys.argv[1], limit=int(sys.argv[2]))
print(time.perf_counter() - started)
"""


def make_vectors(rows: int, dim: int) -> Vectors:
    """Random words and numbers."""
    generator = np.random.default_rng(1)
    matrix = generator.standard_normal((rows, dim), dtype=np.float32)
    words = [f"w{number:x}" for number in generator.permutation(rows * 7)[:rows].tolist()]
    return Vectors(words, matrix)


def write_six_decimals(vectors: Vectors, path: Path) -> None:
    """word2vec text as the original tool writes it."""
    row_format = "%s" + " %.6f" * vectors.dim + "\n"
    with path.open("w", encoding="utf-8") as out:
        out.write(f"{len(vectors)} {vectors.dim}\n")
        for word, row in zip(vectors.words, vectors.matrix, strict=True):
            out.write(row_format % (word, *row.tolist()))


def gensim_seconds(python: str, path: Path, rows: int) -> float:
    """Seconds that gensim takes for the first rows, its import not counted."""
    command = [python, "-c", READ_BY_GENSIM, str(path), str(rows)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def bench_reading(path: Path, rows: int, python: str, gensim_rows: int, rounds: int) -> None:
    """Rows a second from text, by turns."""
    load(str(path))  # compiles, once
    ours = theirs = float("inf")
    for _ in range(rounds):
        theirs = min(theirs, gensim_seconds(python, path, gensim_rows))
        ours = min(ours, take_turns({"nlpkit": lambda: load(str(path))}, rounds=1)["nlpkit"])
    ratio = (rows / ours) / (gensim_rows / theirs)
    print_table(
        "reading word2vec text",
        ["", "rows", "seconds", "rows/s"],
        [
            ["nlpkit", rows, f"{ours:.2f}", f"{rows / ours:,.0f}"],
            ["gensim", gensim_rows, f"{theirs:.2f}", f"{gensim_rows / theirs:,.0f}"],
            ["ratio", "", "", f"{ratio:.1f}"],
        ],
    )


def bench_commands(vectors: Vectors, folder: Path, rounds: int) -> None:
    """Cold processes on a model folder: one question, then a thousand."""
    model = str(folder / "bench.model")
    save(vectors, model, VectorFormat.FOLDER)
    generator = np.random.default_rng(2)
    words = [vectors.words[row] for row in generator.integers(0, len(vectors), 1000).tolist()]
    lines = "".join(f"{word}\n" for word in words).encode()
    nearest = [*nlpkit_command("vectors", "nearest"), "-m", model]
    best = take_turns(
        {
            "one question": lambda: run_command([*nearest, words[0]]),
            "1,000 questions on stdin": lambda: run_command(nearest, lines),
        },
        rounds,
    )
    title = f"vectors nearest on {len(vectors):,} x {vectors.dim}, cold process"
    print_table(title, ["", "seconds"], [[name, f"{s:.2f}"] for name, s in best.items()])


def main() -> None:
    """Parse options and run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--gensim-rows", type=int, help="default: all rows, 50,000 at most")
    parser.add_argument("--gensim-python", default=sys.executable, help="a Python that has gensim")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    gensim_rows = options.gensim_rows or min(options.rows, 50_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        vectors = make_vectors(options.rows, options.dim)
        started = time.perf_counter()
        write_six_decimals(vectors, folder / "bench.txt")
        print(f"wrote the text file in {time.perf_counter() - started:.0f} s", file=sys.stderr)
        bench_reading(
            folder / "bench.txt",
            options.rows,
            options.gensim_python,
            gensim_rows,
            options.rounds,
        )
        bench_commands(vectors, folder, options.rounds)


if __name__ == "__main__":
    main()
