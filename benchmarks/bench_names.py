"""Names beside makemore: seconds of one core to a held-out loss.

    git clone https://github.com/karpathy/makemore
    python benchmarks/bench_names.py --makemore makemore/makemore.py --names makemore/names.txt

Both get makemore's split (seed 3407, the last 1,000 names are the test) and one thread; the loss is
in nats per character with the end mark. Seconds are of the processor, not of the clock, and without
evaluation, so that a busy machine changes them less. Without options only nlpkit runs, on a sample.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
import types
from pathlib import Path
from typing import Any

import torch
from common import SAMPLES, print_table

from nlpkit.lm.namedata import Name
from nlpkit.lm.names import prepare_training
from nlpkit.lm.recipes import NamesSettings
from nlpkit.training import keep_freed_memory

Curve = list[tuple[float, float]]  # seconds, held-out loss


def load_makemore(path: str) -> Any:
    """Its one file as a module; the writer of tensorboard logs is not needed."""
    sys.modules["torch.utils.tensorboard"] = types.SimpleNamespace(SummaryWriter=None)  # type: ignore[assignment]
    spec = importlib.util.spec_from_file_location("makemore", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_makemore(path: str, names: str, kind: str, seconds: float) -> Curve:
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
        started = time.process_time()
        idx, targets = loader.next()
        _, loss = model(idx, targets)
        model.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        spent += time.process_time() - started
        step += 1
        if step % 250 == 0:
            model.eval()
            with torch.no_grad():
                curve.append((spent, model(x, y)[1].item()))
            model.train()
    return curve


def run_nlpkit(train: list[Name], test: list[Name], **changes: Any) -> Curve:
    """``names train`` with its defaults, or with a limit of time."""
    settings = NamesSettings(seed=3407, **changes)
    _, trainer = prepare_training(train, test, settings, torch.device("cpu"))
    assert trainer is not None
    trainer._clock = time.process_time
    return [
        (progress.seconds, progress.heldout)
        for progress in trainer.fit()
        if progress.heldout is not None
    ]


def makemore_split(path: str) -> tuple[list[Name], list[Name]]:
    """The split that makemore makes of a file."""
    words = [word.strip() for word in Path(path).read_text().strip().splitlines()]
    size = min(1000, int(len(words) * 0.1))
    order = torch.randperm(len(words), generator=torch.Generator().manual_seed(3407)).tolist()
    names = [Name(words[i]) for i in order]
    return names[:-size], names[-size:]


def first_under(curve: Curve, loss: float) -> str:
    """Seconds until the loss was there."""
    return next((f"{seconds:.0f}" for seconds, found in curve if found <= loss), "-")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--makemore", help="makemore.py")
    parser.add_argument("--names", default=str(SAMPLES / "names-en.txt"))
    parser.add_argument("--seconds", type=float, default=240, help="for makemore's transformer")
    parser.add_argument("--long", type=float, default=300, help="for the long run of nlpkit")
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    train, test = makemore_split(options.names)
    curves = {
        "nlpkit names train": run_nlpkit(train, test),
        f"nlpkit names train --max-time {options.long:.0f}": run_nlpkit(
            train, test, max_time=options.long
        ),
    }
    if options.makemore:
        for kind, share in (("transformer", 1.0), ("gru", 0.3), ("mlp", 0.15)):
            curves[f"makemore {kind}"] = run_makemore(
                options.makemore, options.names, kind, share * options.seconds
            )
    rows = [
        (name, *(first_under(curve, loss) for loss in (2.1, 2.0, 1.92, 1.9)), *curve[-1])
        for name, curve in curves.items()
    ]
    columns = ["", "s to 2.10", "s to 2.00", "s to 1.92", "s to 1.90", "seconds", "loss"]
    print_table("Names", columns, rows)


if __name__ == "__main__":
    main()
