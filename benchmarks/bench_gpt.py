"""GPT beside nanoGPT: training, sampling, the first token.

    git clone https://github.com/karpathy/nanoGPT
    python benchmarks/bench_gpt.py --nanogpt nanoGPT --text tinyshakespeare.txt

Everything runs on one thread; training and sampling are timed by the processor, so that a busy
machine changes them less. The loss is that of the whole last tenth of the text in windows of 64
characters. Without nanoGPT only the first token is timed. A model of GPT-2's size is in
bench_gpt2.py.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import SAMPLES, nlpkit_command, print_table, take_turns

from nlpkit import modeldir
from nlpkit.device import keep_freed_memory
from nlpkit.generate.loop import generate
from nlpkit.generate.sampling import SamplingSettings
from nlpkit.pretrained.gpt2 import import_nanogpt
from nlpkit.tasks.lm.model import GptModel
from nlpkit.tasks.lm.stream import windows
from nlpkit.text.characters import Characters
from nlpkit.training.batches import RandomWindows


def load_nanogpt(folder: str) -> Any:
    """Its model.py as a module."""
    spec = importlib.util.spec_from_file_location("nanogpt_model", Path(folder) / "model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["nanogpt_model"] = module
    spec.loader.exec_module(module)
    return module


def new_nanogpt(nanogpt: Any, **sizes: int) -> Any:
    config = nanogpt.GPTConfig(dropout=0.0, bias=False, **sizes)
    with contextlib.redirect_stdout(io.StringIO()):
        return nanogpt.GPT(config)


def train_nanogpt(nanogpt: Any, train: np.ndarray, validation: np.ndarray, steps: int) -> list[Any]:
    """Its CPU configuration for a text of characters: block 64, batch 12, 2,000 steps."""
    torch.manual_seed(1337)
    sizes = {"block_size": 64, "vocab_size": int(max(train.max(), validation.max())) + 1}
    model = new_nanogpt(nanogpt, n_layer=4, n_head=4, n_embd=128, **sizes)
    with contextlib.redirect_stdout(io.StringIO()):
        optimizer = model.configure_optimizers(0.1, 1e-3, (0.9, 0.99), "cpu")
    batches = RandomWindows(train, batch_size=12, block_size=64, seed=1)
    started = time.perf_counter()
    for step in range(steps):
        falling = 0.5 + 0.5 * np.cos(np.pi * max(0, step - 100) / max(1, steps - 100))
        rate = 1e-3 * step / 100 if step < 100 else 1e-4 + falling * 9e-4
        for group in optimizer.param_groups:
            group["lr"] = rate
        _, loss = model(*(part.contiguous() for part in batches[step]))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    seconds = time.perf_counter() - started
    return ["nanoGPT", model.get_num_params(), seconds, _whole_loss(model.eval(), validation)]


@torch.no_grad()
def _whole_loss(model: Any, ids: np.ndarray) -> float:
    total = count = 0.0
    for idx, targets in windows(ids, 64, 32):
        _, loss = model(idx.contiguous(), targets.contiguous())
        total += loss.item() * targets.numel()
        count += targets.numel()
    return total / count


def train_nlpkit(path: str, seconds: float) -> list[Any]:
    """The whole command, from its start to the written model."""
    with tempfile.TemporaryDirectory() as folder:
        limits = ("--max-time", f"{seconds:.0f}", "--threads", "1", "--quiet")
        command = nlpkit_command("gpt", "train", path, "-o", f"{folder}/m", *limits)
        started = time.perf_counter()
        subprocess.run(command, check=True)
        spent = time.perf_counter() - started
        parameters = GptModel.load(f"{folder}/m").model.count_parameters()
        loss = modeldir.load_config(f"{folder}/m", kind="gpt").metrics["heldout_loss"]
    return [f"nlpkit gpt train --max-time {seconds:.0f}", parameters, spent, loss]


def bench_training(nanogpt: Any, path: str, steps: int) -> None:
    text = Path(path).read_text(encoding="utf-8")
    ids = np.array(Characters.from_text([text]).encode(text))
    cut = len(ids) - round(0.1 * len(ids))
    rows = [train_nanogpt(nanogpt, ids[:cut], ids[cut:], steps)]
    rows += [train_nlpkit(path, rows[0][2] / parts) for parts in (6, 3, 1)]
    columns = ["", "parameters", "seconds", "loss", "share of the time"]
    print_table("GPT: training", columns, [[*row, row[2] / rows[0][2]] for row in rows])


def bench_sampling(nanogpt: Any, tokens: int) -> None:
    """Tokens per second of nanoGPT's generate and ours, on the same weights."""
    rows = []
    for layers, dim, block, batch in ((4, 128, 64, 1), (4, 128, 64, 10), (6, 384, 256, 1)):
        sizes = {"n_layer": layers, "n_head": dim // 64 * 2 if dim == 128 else 6, "n_embd": dim}
        theirs = new_nanogpt(nanogpt, block_size=block, vocab_size=65, **sizes).eval()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "ckpt.pt"
            saved = {**sizes, "block_size": block, "vocab_size": 65, "bias": False}
            torch.save({"model": theirs.state_dict(), "model_args": saved}, path)
            ours = import_nanogpt(path, characters="".join(map(chr, range(65))))
            ours.speed_up(tokens)
            run_ours, run_theirs = _samplers(ours, theirs, batch, tokens)
            seconds = _processor_turns({"ours": run_ours, "theirs": run_theirs})
        speeds = {name: tokens * batch / spent for name, spent in seconds.items()}
        rows.append(
            (
                f"{layers} x {dim}, block {block}, batch {batch}",
                f"{speeds['ours']:.0f}",
                f"{speeds['theirs']:.0f}",
                speeds["ours"] / speeds["theirs"],
            )
        )
    print_table("GPT: sampling, tokens/s", ["model", "nlpkit", "nanoGPT", "ratio"], rows)


def _samplers(
    ours: GptModel, theirs: Any, batch: int, tokens: int
) -> tuple[Callable[[], None], Callable[[], None]]:
    sampling = SamplingSettings(temperature=0.8, top_k=40)

    def run_ours() -> None:
        for _ in generate(ours.model, [[0]] * batch, tokens, sampling, torch.Generator()):
            pass

    def run_theirs() -> None:
        start = torch.zeros(batch, 1, dtype=torch.long)
        theirs.generate(start, tokens, temperature=0.8, top_k=40)

    return run_ours, run_theirs


def _processor_turns(contestants: dict[str, Callable[[], None]]) -> dict[str, float]:
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(3):
        for name, run in contestants.items():
            started = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - started)
    return best


def bench_start(path: str, rounds: int) -> None:
    """From a cold process to the first token, beside importing torch."""
    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/m"
        small = ("--max-iters", "2", "--threads", "1", "--quiet")
        subprocess.run(nlpkit_command("gpt", "train", path, "-o", model, *small), check=True)
        sample = nlpkit_command("gpt", "sample", model, "-n", "1", "--threads", "1")
        seconds = take_turns(
            {
                "import torch": lambda: subprocess.run([sys.executable, "-c", "import torch"]),
                "nlpkit gpt sample -n 1": lambda: subprocess.run(sample, capture_output=True),
            },
            rounds,
        )
    base = seconds["import torch"]
    rows = [(name, spent, spent / base) for name, spent in seconds.items()]
    print_table("GPT: first token", ["", "seconds", "ratio"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nanogpt", help="folder with nanoGPT's model.py")
    parser.add_argument("--text", default=str(SAMPLES / "tales.txt"))
    parser.add_argument("--steps", type=int, default=2000, help="of nanoGPT")
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["training", "sampling", "start"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    nanogpt = load_nanogpt(options.nanogpt) if options.nanogpt else None
    if nanogpt and options.only in (None, "training"):
        bench_training(nanogpt, options.text, options.steps)
    if nanogpt and options.only in (None, "sampling"):
        bench_sampling(nanogpt, options.tokens)
    if options.only in (None, "start"):
        bench_start(options.text, options.rounds)


if __name__ == "__main__":
    main()
