"""Names beside makemore: seconds of one core to a held-out loss.

    git clone https://github.com/karpathy/makemore
    python benchmarks/bench_names.py --makemore makemore/makemore.py --names makemore/names.txt

Both get makemore's split (seed 3407, the last 1,000 names are the test) and one thread; the loss is
in nats per character with the end mark. Seconds of makemore are those of its training steps alone,
those of nlpkit are of the whole command from its start to the written model. Without options only
nlpkit runs, on a sample.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path
from typing import Any

import torch
from common import SAMPLES, nlpkit_command, print_table

from nlpkit.modeldir import load_config, read_metrics

MARKS = (2.1, 2.0, 1.92, 1.9)
Curve = list[tuple[float, float]]  # seconds, held-out loss
Row = tuple[Any, ...]


def load_makemore(path: str) -> Any:
    """Its one file as a module; the writer of tensorboard logs is not needed."""
    sys.modules["torch.utils.tensorboard"] = types.SimpleNamespace(SummaryWriter=None)  # type: ignore[assignment]
    spec = importlib.util.spec_from_file_location("makemore", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_makemore(path: str, names: str, kind: str, seconds: float) -> Row:
    """Its training loop, with the loss on its test set every 250 steps."""
    makemore = load_makemore(path)
    torch.manual_seed(3407)
    train, test = makemore.create_datasets(names)
    config = makemore.ModelConfig(
        vocab_size=train.get_vocab_size(), block_size=train.get_output_length()
    )
    model = (
        makemore.Transformer(config)
        if kind == "transformer"
        else makemore.MLP(config)
        if kind == "mlp"
        else makemore.RNN(config, cell_type=kind)
    )
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=5e-4, weight_decay=0.01, betas=(0.9, 0.99), eps=1e-8
    )
    loader = makemore.InfiniteDataLoader(train, batch_size=32, num_workers=0)
    x, y = (torch.stack(part) for part in zip(*(test[i] for i in range(len(test))), strict=True))
    spent, step, curve = 0.0, 0, []
    while spent < seconds:
        started = time.perf_counter()
        idx, targets = loader.next()
        _, loss = model(idx, targets)
        model.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        spent += time.perf_counter() - started
        step += 1
        if step % 250 == 0:
            model.eval()
            with torch.no_grad():
                curve.append((spent, model(x, y)[1].item()))
            model.train()
    return (f"makemore {kind}", *passed(curve), *curve[-1])


def run_nlpkit(folder: str, *options: str) -> Row:
    """``names train`` as a command: seconds until its curve was at 2.00, and its end."""
    files = (f"{folder}/train.txt", "--test-file", f"{folder}/test.txt", "-o", f"{folder}/model")
    command = nlpkit_command("names", "train", *files, "--threads", "1", "--quiet", "--force")
    started = time.perf_counter()
    subprocess.run([*command, *options], check=True)
    spent = time.perf_counter() - started
    records = [record for record in read_metrics(f"{folder}/model") if "heldout_loss" in record]
    curve = [(record["seconds"], record["heldout_loss"]) for record in records]
    loss = load_config(f"{folder}/model", kind="names").metrics["heldout_loss"]
    return (" ".join(["nlpkit names train", *options]), *passed(curve), spent, loss)


def write_split(path: str, folder: str) -> None:
    """The split that makemore makes of a file, as two files."""
    words = [word.strip() for word in Path(path).read_text().strip().splitlines()]
    size = min(1000, int(len(words) * 0.1))
    order = torch.randperm(len(words), generator=torch.Generator().manual_seed(3407)).tolist()
    for name, part in (("train", order[:-size]), ("test", order[-size:])):
        (Path(folder) / f"{name}.txt").write_text("".join(words[i] + "\n" for i in part))


def passed(curve: Curve) -> list[str]:
    """Seconds until the loss was at each mark."""
    return [
        next((f"{seconds:.0f}" for seconds, found in curve if found <= mark), "-") for mark in MARKS
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--makemore", help="makemore.py")
    parser.add_argument("--names", default=str(SAMPLES / "names-en.txt"))
    parser.add_argument("--seconds", type=float, default=240, help="for makemore's transformer")
    parser.add_argument(
        "--times", nargs="*", default=["25s", "60s", "5m"], help="values of --max-time for nlpkit"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        write_split(options.names, folder)
        rows.append(run_nlpkit(folder))
        rows += [run_nlpkit(folder, "--max-time", limit) for limit in options.times]
    if options.makemore:
        for kind, share in (("transformer", 1.0), ("gru", 0.3), ("mlp", 0.15)):
            seconds = share * options.seconds
            rows.append(run_makemore(options.makemore, options.names, kind, seconds))
    rows = [(*row[:-1], f"{row[-1]:.3f}") for row in rows]
    columns = ["", *(f"s to {mark:.2f}" for mark in MARKS), "seconds", "loss"]
    print_table("Names", columns, rows)


if __name__ == "__main__":
    main()
