"""Language models: n-grams beside KenLM, an LSTM beside a plain one, softmaxes of many words.

    git clone https://github.com/kpu/kenlm   # build it: cmake, make lmplz query build_binary
    python benchmarks/bench_lm.py --kenlm kenlm/build/bin --words corpus.txt --text shakespeare.txt

Every twentieth line of --words (tokenised, one sentence per line) is held out. Everything runs on
one thread and is timed by the processor. Without --kenlm only our own figures are shown; without
files the sample corpora are used.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import SAMPLES, nlpkit_command, print_table

from nlpkit.models.build import build_model
from nlpkit.tasks.lm.model import TextModel
from nlpkit.tasks.lm.settings import LmSettings
from nlpkit.tasks.lm.stream import tokenize_stream
from nlpkit.tasks.lm.train import heldout_loss, prepare_training
from nlpkit.textio import read_blocks


def measured(command: list[str], stdin: str | None = None) -> tuple[str, float, float]:
    """What a command wrote, its processor seconds, and the most memory of any command so far."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    text = None if stdin is None else Path(stdin).read_bytes()
    done = subprocess.run(command, input=text, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout.decode(), seconds, after.ru_maxrss / 1024


def split_lines(path: Path, folder: Path) -> tuple[Path, Path]:
    """Every twentieth line apart."""
    train, test = folder / "train.txt", folder / "test.txt"
    lines = [line for block in read_blocks([str(path)]) for line in block.lines()]
    train.write_text("".join(f"{x}\n" for i, x in enumerate(lines, 1) if i % 20), "utf-8")
    test.write_text("".join(f"{x}\n" for i, x in enumerate(lines, 1) if not i % 20), "utf-8")
    return train, test


def bench_ngrams(words: Path, kenlm: str | None, folder: Path) -> None:
    """Perplexity, training and scoring for orders 3 and 5."""
    train, test = split_lines(words, folder)
    rows: list[list[Any]] = []
    for order in (3, 5):
        model = str(folder / f"{order}.model")
        _, seconds, memory = measured(
            nlpkit_command("lm", "train", str(train), "-o", model, "--model", "ngram", "-q", "-t",
                           "whitespace", "--order", str(order), "--val-fraction", "0")
        )  # fmt: skip
        out, _, _ = measured(nlpkit_command("lm", "score", model, str(test), "--json", "-q"))
        score = json.loads(out)
        found = TextModel.load(model)
        best = float("inf")
        for _ in range(3):
            started = time.process_time()
            found.score_blocks(read_blocks([str(test)]))
            best = min(best, time.process_time() - started)
        rate = score["tokens"] / best
        rows.append(["nlpkit", order, score["perplexity"], score["perplexity_of_known"],
                     f"{seconds:.1f}", f"{memory:.0f}", f"{rate:,.0f}"])  # fmt: skip
        if kenlm is not None:
            rows.append(kenlm_row(kenlm, order, train, test, folder))
    print_table(
        "n-grams",
        ["", "order", "perplexity", "of known words", "training CPU s", "peak MB so far",
         "tokens scored/s"],
        rows,
    )  # fmt: skip


def kenlm_row(kenlm: str, order: int, train: Path, test: Path, folder: Path) -> list[Any]:
    """The same of KenLM; of its scoring, the processor time of ``query`` as a whole."""
    arpa, binary = folder / "k.arpa", folder / "k.bin"
    lmplz = [f"{kenlm}/lmplz", "-o", str(order), "-S", "40%", "-T", str(folder)]
    out, seconds, memory = measured(lmplz, str(train))
    arpa.write_text(out)
    subprocess.run([f"{kenlm}/build_binary", arpa, binary], capture_output=True, check=True)
    query = [f"{kenlm}/query", "-v", "summary", str(binary)]
    out, taken, _ = measured(query, str(test))
    values = {
        line.split(":")[0]: line.split(":")[1].strip() for line in out.splitlines() if ":" in line
    }
    rate = int(values["Tokens"]) / taken
    scores = [values[f"Perplexity {what} OOVs"] for what in ("including", "excluding")]
    return ["KenLM", order, *scores, f"{seconds:.1f}", f"{memory:.0f}", f"{rate:,.0f}"]


class PlainLSTM(torch.nn.Module):
    """char-rnn as anyone would write it in torch: no tricks."""

    def __init__(self, vocab: int, dim: int) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(vocab, dim)
        self.lstm = torch.nn.LSTM(dim, dim, batch_first=True)
        self.head = torch.nn.Linear(dim, vocab)

    def forward(self, idx: torch.Tensor, state: Any) -> tuple[torch.Tensor, Any]:
        out, state = self.lstm(self.embedding(idx), state)
        return self.head(out), state


def train_plain(train: np.ndarray, validation: np.ndarray, vocab: int, seconds: float) -> float:
    """Its held-out loss after so many processor seconds; of several rates 0.005 was the best."""
    torch.manual_seed(1)
    model = PlainLSTM(vocab, 256)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.005)
    rows, block = 32, 64
    lane = (len(train) - 1) // rows
    begins = np.arange(rows)[:, None] * lane
    started, state, at = time.process_time(), None, 0
    while time.process_time() - started < seconds:
        if at + block > lane:
            at, state = 0, None
        ids = torch.from_numpy(train[begins + np.arange(at, at + block + 1)].astype(np.int64))
        logits, state = model(ids[:, :-1], state)
        state = tuple(part.detach() for part in state)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        at += block
    ids = torch.from_numpy(validation.astype(np.int64))[None]
    total, state = 0.0, None
    with torch.no_grad():
        for start in range(0, ids.size(1) - 1, 512):
            part = ids[:, start : start + 513]
            logits, state = model(part[:, :-1], state)
            total += float(
                torch.nn.functional.cross_entropy(logits[0], part[0, 1:], reduction="sum")
            )
    return total / (ids.size(1) - 1)


def bench_lstm(text: Path, seconds: float, folder: Path) -> None:
    """At equal processor time and size."""
    codec, ids = tokenize_stream(read_blocks([str(text)]), "char", str(folder))
    cut = int(0.9 * len(ids))
    train, validation = ids[:cut], ids[cut:]
    plain = train_plain(train, validation, len(codec), seconds)
    settings = LmSettings(model="lstm", max_time=seconds, dtype="float32").resolve_lm("char")
    model = build_model(settings.architecture(len(codec)))
    trainer = prepare_training(model, train, validation[:0], settings)
    trainer._clock = time.process_time  # a busy machine changes this less
    for _ in trainer.fit():
        pass
    trainer.keep_best()
    ours = heldout_loss(model, validation)
    print_table("LSTM of 256 units, held-out loss in nats per character",
                ["", f"after {seconds:.0f} CPU s"],
                [["plain torch, AdamW", f"{plain:.4f}"], ["nlpkit", f"{ours:.4f}"]])  # fmt: skip


def bench_softmax(words: Path, steps: int, folder: Path) -> None:
    """Steps of an LSTM of words with each softmax, and the held-out loss they come to."""
    rows: list[list[Any]] = []
    codec, ids = tokenize_stream(
        read_blocks([str(words)]), "whitespace", str(folder), vocab_size=20_000
    )
    train, validation = ids[:-20_000], ids[-20_000:]
    for kind in ("full", "adaptive", "sampled"):
        settings = LmSettings(model="lstm", softmax=kind, max_iters=steps, dim=256, dtype="float32")
        wanted = settings.resolve_lm("whitespace")
        model = build_model(wanted.architecture(len(codec)))
        trainer = prepare_training(model, train, validation[:0], wanted)
        started = time.process_time()
        for _ in trainer.fit():
            pass
        taken = time.process_time() - started
        model.eval()
        rows.append(
            [kind, f"{steps * 32 * 64 / taken:,.0f}", f"{heldout_loss(model, validation):.4f}"]
        )
    print_table(f"softmax of {len(codec):,} words, {steps} steps",
                ["", "tokens/CPU s", "held-out loss"], rows)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kenlm", help="folder of lmplz, build_binary and query")
    parser.add_argument("--words", type=Path, default=SAMPLES / "world.txt")
    parser.add_argument("--text", type=Path, default=SAMPLES / "tales.txt")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each LSTM")
    parser.add_argument("--steps", type=int, default=10, help="for each softmax")
    parser.add_argument("--only", choices=["ngrams", "lstm", "softmax"])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if arguments.only in (None, "ngrams"):
            bench_ngrams(arguments.words, arguments.kenlm, folder)
        if arguments.only in (None, "lstm"):
            bench_lstm(arguments.text, arguments.seconds, folder)
        if arguments.only in (None, "softmax"):
            bench_softmax(arguments.words, arguments.steps, folder)


if __name__ == "__main__":
    main()
