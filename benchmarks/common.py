"""What the benchmark scripts share: fair timing, CoNLL-U text with its gold spans, a table.

The machine may be noisy, so only ratios of runs that took turns mean something: ``take_turns``
runs every contestant in each round and keeps each one's best round.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

SAMPLES = Path(__file__).resolve().parent.parent / "sample_corpora"
Spans = list[tuple[int, int]]


def take_turns(contestants: Mapping[str, Callable[[], Any]], rounds: int = 3) -> dict[str, float]:
    """Best seconds of each contestant; all run once in every round."""
    return take_turns_new({name: partial(_same, run) for name, run in contestants.items()}, rounds)


def _same(run: Callable[[], Any]) -> Callable[[], Any]:
    return run


def take_turns_new(
    makers: Mapping[str, Callable[[], Callable[[], Any]]], rounds: int = 3
) -> dict[str, float]:
    """The same for contestants that are made anew for each round, which is not timed."""
    best = dict.fromkeys(makers, float("inf"))
    for _ in range(rounds):
        for name, make in makers.items():
            run = make()
            started = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - started)
    return best


class Finished(NamedTuple):
    """Seconds and peak memory of a command (of its first process)."""

    seconds: float
    megabytes: float


def run_command(arguments: Sequence[str], text: bytes = b"") -> Finished:
    """Run a command with its output thrown away."""
    started = time.perf_counter()
    process = subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    assert process.stdin is not None
    process.stdin.write(text)
    process.stdin.close()
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, _peak_megabytes(process.pid))
        time.sleep(0.005)
    seconds = time.perf_counter() - started
    if process.returncode:
        raise RuntimeError(f"{' '.join(arguments)} exited with {process.returncode}")
    return Finished(seconds, peak)


def _peak_megabytes(pid: int) -> float:
    """The most memory a process has held since it began its program; 0 where /proc is missing.

    What ``wait4`` tells would count the memory of this process, which the child was forked from.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    peaks = [int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")]
    return peaks[0] if peaks else 0.0


def nlpkit_command(*arguments: str) -> list[str]:
    """The installed ``nlpkit`` that belongs to this interpreter."""
    return [str(Path(sys.executable).with_name("nlpkit")), *arguments]


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A Markdown table."""
    shown = [
        [f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(columns, *shown, strict=True)]
    print(f"\n### {title}\n")
    for line in (columns, ["-" * width for width in widths], *shown):
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("| " + " | ".join(padded) + " |")
    sys.stdout.flush()


class Sentence(NamedTuple):
    """A sentence of a treebank."""

    text: str
    words: Spans
    opens_paragraph: bool


def read_conllu(path: str) -> Iterator[Sentence]:
    """Sentences with the spans of their words.

    A contraction written as a range (``1-2 don't``) counts as its parts where they spell it.
    """
    rows: list[list[str]] = []
    text, opens = "", False
    for line in Path(path).read_text(encoding="utf-8").split("\n"):
        if line.startswith("# text = "):
            text = line[len("# text = ") :]
        elif line.startswith(("# newpar", "# newdoc")):
            opens = True
        elif line and line[0] != "#":
            rows.append(line.split("\t"))
        elif not line and rows:
            yield Sentence(text, _word_spans(text, rows), opens)
            rows, opens = [], False


def _word_spans(text: str, rows: list[list[str]]) -> Spans:
    words: list[str] = []
    skip_to = 0
    forms = {row[0]: row[1] for row in rows}
    for number, form in ((row[0], row[1]) for row in rows):
        if "-" in number:
            first, last = map(int, number.split("-"))
            parts = [forms[str(index)] for index in range(first, last + 1)]
            words += parts if "".join(parts) == form else [form]
            skip_to = last
        elif "." not in number and int(number) > skip_to:
            words.append(form)
    spans = []
    end = 0
    for word in words:
        start = text.index(word, end)
        end = start + len(word)
        spans.append((start, end))
    return spans


def paragraphs(sentences: Sequence[Sentence]) -> list[tuple[str, Spans]]:
    """Sentences of a paragraph joined by a space, with where each one stands."""
    found: list[list[str]] = []
    for sentence in sentences:
        if sentence.opens_paragraph or not found:
            found.append([])
        found[-1].append(sentence.text)
    joined = []
    for texts in found:
        spans, start = [], 0
        for text in texts:
            spans.append((start, start + len(text)))
            start += len(text) + 1
        joined.append((" ".join(texts), spans))
    return joined


def span_f1(gold: Sequence[Spans], found: Sequence[Spans]) -> float:
    """F1 of exact spans in percent."""
    right = sum(len(set(a) & set(b)) for a, b in zip(gold, found, strict=True))
    return 200 * right / (sum(map(len, gold)) + sum(map(len, found)))


def find_spans(text: str, pieces: Sequence[str]) -> Spans:
    """Where pieces that come in the order of the text stand; what cannot be found is left out."""
    spans, end = [], 0
    for piece in (piece.strip() for piece in pieces):
        start = text.find(piece, end) if piece else -1
        if start >= 0:
            end = start + len(piece)
            spans.append((start, end))
    return spans
