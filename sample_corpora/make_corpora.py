"""Make the generated files of this folder again, from the facts and with a fixed seed.

    python make_corpora.py            write them next to this script
    python make_corpora.py -o DIR     write them into another folder
    python make_corpora.py --check    write nothing; fail if a file here differs from a fresh one

Only the standard library is used. What is written by hand (the names and the word pairs) is not
touched.
"""

import argparse
import sys
from pathlib import Path
from random import Random

from makers import (
    dates,
    numbers,
    prompts,
    questions,
    reviews,
    tagged,
    tales,
    translations,
    world,
)

SEED = 20250101
HERE = Path(__file__).parent
MAKERS = (world, reviews, tales, tagged, questions, prompts, dates, numbers, translations)


def make_all() -> dict[str, str]:
    """Every generated file by name; each maker has its own generator, so none disturbs another."""
    files: dict[str, str] = {}
    for maker in MAKERS:
        files |= maker.make(Random(f"{SEED} {maker.__name__}"))
    return files


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("-o", "--output", type=Path, default=HERE, help="folder to write into")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    arguments = parser.parse_args()
    files = make_all()
    if arguments.check:
        stale = [name for name, text in files.items() if read_bytes(HERE / name) != text.encode()]
        for name in stale:
            print(f"{name} differs from what the facts give; run make_corpora.py", file=sys.stderr)
        return 1 if stale else 0
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (arguments.output / name).write_bytes(text.encode())
    return 0


def read_bytes(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


if __name__ == "__main__":
    sys.exit(main())
