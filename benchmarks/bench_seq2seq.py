"""Sequence to sequence: BLEU after so many CPU seconds of one core, and the speed of decoding.

    python benchmarks/bench_seq2seq.py --train TRAIN.tsv --dev DEV.tsv --seconds 360 --seconds 1200
    python benchmarks/bench_seq2seq.py --model transformer --dim 192 --layers 2 --peers FOLDER
    python benchmarks/bench_seq2seq.py --decode 3,256,8000 --peers ENV/lib/python3.11/site-packages

Training is limited by CPU seconds of this process, one thread; with the package of JoeyNMT in
``--peers`` a Transformer of its own is trained for as long, in the same size. Decoding writes 24
tokens for each sentence with random weights of Marian's form; ctranslate2 and transformers in
``--peers`` take turns with it. Without options the English-Catalan sample is learned for 20
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
from nlpkit.metrics.text import bleu, exact_matches
from nlpkit.tasks.translate.data import Pair, read_pairs
from nlpkit.tasks.translate.settings import PredictSettings, TranslateSettings
from nlpkit.tasks.translate.train import TranslateRun


def measure_training(
    train: list[Pair], dev: list[Pair], settings: TranslateSettings
) -> tuple[Any, ...]:
    """BLEU of greedy search and of five beams after so many CPU seconds, tokens a second, and the
    share of answers (of five beams) that are not exact, in per cent: the word error rate of g2p."""
    run = TranslateRun(train, settings, clock=time.process_time)
    speeds = [progress.speed for progress in run.steps()]
    translator, targets = run.finish(), [pair.target for pair in dev]
    found, texts = [], targets
    for beams in (1, 5):
        answers = translator.predict([pair.source for pair in dev], PredictSettings(beams=beams))
        texts = [one[0].text for one in answers]
        found.append(round(bleu(texts, targets).score, 2))
    wrong = 100 - 100 * sum(exact_matches(texts, targets)) / len(dev)
    shape = run.model.settings
    together = f"{shape.members} models of " if shape.members > 1 else ""
    name = f"{together}{shape.model}, {shape.layers} x {shape.dim}"
    speed = round(sum(speeds) / len(speeds))
    return name, settings.max_time, *found, speed, round(wrong, 2)


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
    parser.add_argument("--dim", type=int)
    parser.add_argument("--layers", type=int)
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--tokenizers", nargs=2, default=["bpe", "bpe"], help="source, target")
    parser.add_argument("--decode", metavar="LAYERS,DIM,VOCAB")
    parser.add_argument("--peers", metavar="FOLDER", help="where peers are installed")
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
    rows = []
    for seconds in arguments.seconds or [20.0]:
        settings = TranslateSettings(
            model=arguments.model,
            dim=arguments.dim,
            layers=arguments.layers,
            dtype=arguments.dtype,
            source_tokenizer=arguments.tokenizers[0],
            target_tokenizer=arguments.tokenizers[1],
            max_time=seconds,
        )
        rows.append(measure_training(train, dev, settings))
        if arguments.peers:
            sys.path.append(arguments.peers)
            from joeynmt_seq2seq import train_joeynmt

            size = arguments.layers or 2, arguments.dim or 192
            rows.append((*train_joeynmt(train, dev, seconds, *size), ""))
    columns = ("model", "CPU seconds", "BLEU greedy", "BLEU beam 5", "tokens/s", "not exact, %")
    print_table("Training", columns, rows)


if __name__ == "__main__":
    main()
