"""A plain loop of ``transformers`` that fine-tunes an encoder to classify texts, and predicts.

    python peers_finetuning.py FOLDER train.tsv test.tsv [epochs] [seed] [steps]

AdamW 1e-4 without a schedule, batches of 16 texts of like length, mean pooling, float32. Prints one
JSON object: accuracy, CPU seconds of training and of a step, texts predicted in a CPU second by the
best of three batch sizes (texts sorted by length). With ``steps`` it stops after so many.
"""

from __future__ import annotations

import json
import random
import sys
import time
from typing import Any

import torch
from transformers import AutoModel, AutoTokenizer


def read(path: str) -> list[list[str]]:
    """Rows of label, text and perhaps a second text."""
    with open(path, encoding="utf-8") as lines:
        return [line.rstrip("\n").split("\t") for line in lines]


def main() -> None:
    folder, train_path, test_path, *more = sys.argv[1:]
    epochs, seed, most = (int(value) for value in (*more, *("1", "1", "1000000000")[len(more) :]))
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    train, test = read(train_path), read(test_path)
    labels = sorted({row[0] for row in train})
    tokenizer = AutoTokenizer.from_pretrained(folder)
    encoder = AutoModel.from_pretrained(folder)
    head = torch.nn.Linear(encoder.config.hidden_size, len(labels))
    parameters = [*encoder.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4)

    def logits(rows: list[list[str]]) -> torch.Tensor:
        texts: list[Any] = [row[1] if len(row) == 2 else (row[1], row[2]) for row in rows]
        batch = tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
        states = encoder(**batch).last_hidden_state  # (B, T, C)
        inside = batch["attention_mask"][..., None]
        return head((states * inside).sum(1) / inside.sum(1))

    def by_length(rows: list[list[str]], size: int) -> list[list[list[str]]]:
        ordered = sorted(rows, key=lambda row: len(" ".join(row[1:])))
        return [ordered[start : start + size] for start in range(0, len(rows), size)]

    started, steps = time.process_time(), 0
    for _ in range(epochs):
        batches = by_length(train, 16)
        random.Random(seed).shuffle(batches)
        for rows in batches[: most - steps]:
            steps += 1
            wanted = torch.tensor([labels.index(row[0]) for row in rows])
            loss = torch.nn.functional.cross_entropy(logits(rows), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    seconds = time.process_time() - started
    encoder.eval()
    best, right = 0.0, 0
    with torch.no_grad():
        for size in (8, 16, 32):
            started, right = time.process_time(), 0
            for rows in by_length(test, size):
                found = logits(rows).argmax(-1).tolist()
                right += sum(labels[i] == row[0] for i, row in zip(found, rows, strict=True))
            best = max(best, len(test) / (time.process_time() - started))
    result = {
        "accuracy": 100 * right / len(test),
        "seconds": seconds,
        "step_seconds": seconds / max(1, steps),
        "texts_per_second": best,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
