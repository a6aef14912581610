"""Sequence to sequence: BLEU after so many CPU seconds of one core, and the speed of decoding.

    python benchmarks/bench_seq2seq.py --train TRAIN.tsv --dev DEV.tsv --seconds 360 --seconds 1200
    python benchmarks/bench_seq2seq.py --decode 3,256,8000 --peers ENV/lib/python3.11/site-packages

Training is limited by CPU seconds of this process, one thread. Decoding writes 24 tokens for each
sentence with random weights of Marian's form; with the packages of ctranslate2 and transformers in
``--peers`` they take turns with it. Without options the English-Catalan sample is learned for 20
seconds.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import torch
from common import SAMPLES, print_table
from peers_seq2seq import TOKENS, Decode, ctranslate2, hugging_face, marian, ours

from nlpkit.device import keep_freed_memory
from nlpkit.metrics.text import bleu
from nlpkit.tasks.translate.data import Pair, read_pairs
from nlpkit.tasks.translate.settings import PredictSettings, TranslateSettings
from nlpkit.tasks.translate.train import TranslateRun


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


def measure_decoding(
    layers: int, dim: int, vocab: int, cases: list[str], peers: str | None
) -> list[tuple[Any, ...]]:
    """Tokens a CPU second of each contestant, the best of three rounds in which all take turns."""
    contestants: dict[str, Decode] = {
        "nlpkit float32": ours(layers, dim, vocab),
        "nlpkit int8": ours(layers, dim, vocab, int8=True),
    }
    if peers is not None:
        sys.path.append(peers)
        model = marian(layers, dim, vocab)
        contestants["ctranslate2 float32"] = ctranslate2(model, "float32")
        contestants["ctranslate2 int8"] = ctranslate2(model, "int8")
        contestants["transformers"] = hugging_face(model)
    found = []
    for case in cases:
        rows, beams = map(int, case.split("x"))
        best = dict.fromkeys(contestants, 0.0)
        for round_number in range(4):  # the first one warms up
            for name, decode in contestants.items():
                times = max(1, 8 // rows)
                started = time.process_time()
                for _ in range(times):
                    decode(rows, beams)
                speed = times * rows * TOKENS / (time.process_time() - started)
                best[name] = max(best[name], speed if round_number else 0.0)
        found.append((rows, beams, *(round(speed) for speed in best.values())))
    return [("batch", "beams", *contestants), *found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--train", default=str(SAMPLES / "en-ca.tsv"))
    parser.add_argument("--dev", default=str(SAMPLES / "en-ca-test.tsv"))
    parser.add_argument("--seconds", type=float, action="append")
    parser.add_argument("--model", default="auto")
    parser.add_argument("--decode", metavar="LAYERS,DIM,VOCAB")
    parser.add_argument("--peers", metavar="FOLDER", help="where ctranslate2 is installed")
    parser.add_argument("--cases", nargs="*", default=["1x1", "1x5", "32x1", "32x5"])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    if arguments.decode:
        layers, dim, vocab = map(int, arguments.decode.split(","))
        columns, *rows = measure_decoding(layers, dim, vocab, arguments.cases, arguments.peers)
        print_table("Decoding, tokens a second", columns, rows)
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
