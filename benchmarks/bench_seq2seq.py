"""Sequence to sequence: BLEU after so many CPU seconds of one core, and the speed of decoding.

    python benchmarks/bench_seq2seq.py --train TRAIN.tsv --dev DEV.tsv --seconds 360 --seconds 1200
    python benchmarks/bench_seq2seq.py --decode 3,256,8000

Training is limited by CPU seconds of this process, one thread. Decoding writes 24 tokens for each
sentence with random weights of Marian's form. Without options the English-Catalan sample is learned
for 20 seconds.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import torch
from common import SAMPLES, print_table

from nlpkit.device import keep_freed_memory
from nlpkit.metrics.text import bleu
from nlpkit.models.seq2seq import EncoderDecoder, build_seq2seq
from nlpkit.models.seq2seq_settings import END, Seq2SeqArchitecture
from nlpkit.tasks.translate.data import Pair, read_pairs
from nlpkit.tasks.translate.settings import PredictSettings, TranslateSettings
from nlpkit.tasks.translate.train import TranslateRun

TOKENS = 24


def measure_training(
    train: list[Pair], dev: list[Pair], seconds: float, model: Any
) -> tuple[Any, ...]:
    """BLEU of greedy search and of five beams after so many CPU seconds, and tokens a second."""
    settings = TranslateSettings(model=model, max_time=seconds)
    run = TranslateRun(train, settings, clock=time.process_time)
    speeds = [progress.speed for progress in run.steps()]
    translator = run.finish()
    found = []
    for beams in (1, 5):
        answers = translator.predict([pair.source for pair in dev], PredictSettings(beams=beams))
        texts = [one[0].text for one in answers]
        found.append(round(bleu(texts, [pair.target for pair in dev]).score, 2))
    return model, seconds, *found, round(sum(speeds) / len(speeds))


@torch.inference_mode()
def decode(model: EncoderDecoder, rows: int) -> float:
    """Tokens a CPU second, greedy, each sentence 24 tokens long."""
    source = torch.full((rows, TOKENS), 5)
    started = time.process_time()
    memory = model.encode(source, torch.ones_like(source, dtype=torch.bool))
    state, head = model.start(memory, 1, TOKENS + 1), model.make_head()
    ids = torch.full((rows, 1), model.settings.start)
    for _ in range(TOKENS):
        hidden, _ = model.step(ids, state, memory)
        logits = model.logits(hidden, head)
        logits[..., END] = -torch.inf
        ids = logits.argmax(dim=-1)
    return rows * TOKENS / (time.process_time() - started)


def measure_decoding(layers: int, dim: int, vocab: int) -> list[tuple[Any, ...]]:
    """float32 and int8 at batches of 1 and 32."""
    shape = Seq2SeqArchitecture(
        model="transformer",
        source_vocab=vocab,
        target_vocab=vocab,
        joint=True,
        dim=dim,
        layers=layers,
        heads=8,
        norm="post",
        norm_gains=True,
        bias=True,
        qk_norm=False,
        positions="sinusoidal",
        activation="silu",
    )
    model = build_seq2seq(shape).eval()
    rows = []
    for name in ("float32", "int8"):
        if name == "int8":
            model.quantize()
        for batch in (1, 32):
            decode(model, batch)
            rows.append((name, batch, round(max(decode(model, batch) for _ in range(3)))))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--train", default=str(SAMPLES / "en-ca.tsv"))
    parser.add_argument("--dev", default=str(SAMPLES / "en-ca-test.tsv"))
    parser.add_argument("--seconds", type=float, action="append")
    parser.add_argument("--model", default="auto")
    parser.add_argument("--decode", metavar="LAYERS,DIM,VOCAB")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    if arguments.decode:
        layers, dim, vocab = map(int, arguments.decode.split(","))
        rows = measure_decoding(layers, dim, vocab)
        print_table("Decoding, greedy", ("weights", "batch", "tokens/s"), rows)
        return
    train, dev = read_pairs(arguments.train), read_pairs(arguments.dev)
    trained = [
        measure_training(train, dev, seconds, arguments.model)
        for seconds in arguments.seconds or [20.0]
    ]
    columns = ("model", "CPU seconds", "BLEU greedy", "BLEU beam 5", "tokens/s")
    print_table("Training", columns, trained)


if __name__ == "__main__":
    main()
