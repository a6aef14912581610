"""JoeyNMT as a contestant of ``bench_seq2seq``: its own training loop, ended by the same clock.

It gets the pairs as ids of our joint subwords, so that both learn the same tokens, and trains a
Transformer as in its small example (pre-norm, Adam at 0.0005) of the size that is asked for.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from nlpkit.metrics.text import bleu
from nlpkit.tasks.translate.codecs import SideCodec, make_codec
from nlpkit.tasks.translate.data import Pair


def train_joeynmt(
    train: Sequence[Pair], dev: Sequence[Pair], seconds: float, layers: int, dim: int
) -> tuple[Any, ...]:
    """BLEU of greedy search after so many CPU seconds, and tokens a second."""
    codec = make_codec([*(p.source for p in train), *(p.target for p in train)], "bpe", 4000)
    folder = Path(tempfile.mkdtemp())
    for name, pairs in (("train", train), ("dev", dev)):
        for side in ("source", "target"):
            lines = [" ".join(map(str, codec.encode(getattr(pair, side)))) for pair in pairs]
            (folder / f"{name}.{side}").write_text("\n".join(lines) + "\n")
    words = ["<unk>", "<pad>", "<s>", "</s>", *map(str, range(len(codec)))]
    (folder / "vocabulary").write_text("\n".join(words) + "\n")
    config, prediction = import_module("joeynmt.config"), import_module("joeynmt.prediction")
    training = import_module("joeynmt.training")
    arguments = config.parse_global_args(_configuration(folder, layers, dim), mode="train")
    model, train_data, dev_data, _ = prediction.prepare(arguments, rank=0, mode="train")
    trainer = training.TrainManager(
        rank=0,
        model=model,
        model_dir=arguments.model_dir,
        device=arguments.device,
        autocast=arguments.autocast,
        train_args=arguments.train,
        dev_args=config.set_validation_args(arguments.test),
    )
    step, started = trainer._train_step, time.process_time()

    def limited(batch: Any) -> Any:
        if time.process_time() - started > seconds:
            raise KeyboardInterrupt  # which its loop ends by
        return step(batch)

    trainer._train_step = limited
    with contextlib.suppress(KeyboardInterrupt):
        trainer.train_and_validate(train_data=train_data, valid_data=dev_data)
    speed = trainer.stats.total_tokens / (time.process_time() - started)
    model.eval()
    answers = prediction.predict(
        model=model,
        data=dev_data,
        device=arguments.device,
        n_gpu=0,
        args=arguments.test,
        autocast=arguments.autocast,
    )[2]
    score = bleu([_text(codec, answer) for answer in answers], [pair.target for pair in dev]).score
    return f"JoeyNMT, {layers} x {dim}", seconds, round(score, 2), "", round(speed)


def _text(codec: SideCodec, answer: str) -> str:
    return codec.fill([int(word) for word in answer.split() if word.isdigit()], []).strip()


def _configuration(folder: Path, layers: int, dim: int) -> dict[str, Any]:
    part = {
        "type": "transformer",
        "num_layers": layers,
        "num_heads": 4,
        "embeddings": {"embedding_dim": dim, "scale": True, "dropout": 0.0},
        "hidden_size": dim,
        "ff_size": 4 * dim,
        "dropout": 0.1,
        "layer_norm": "pre",
    }
    side = {"level": "word", "max_length": 200, "voc_file": str(folder / "vocabulary")}
    return {
        "name": "benchmark",
        "joeynmt_version": "2.3.0",
        "model_dir": str(folder),
        "use_cuda": False,
        "fp16": False,
        "data": {
            "train": str(folder / "train"),
            "dev": str(folder / "dev"),
            "dataset_type": "plain",
            "src": {"lang": "source", **side},
            "trg": {"lang": "target", **side},
        },
        "testing": {"beam_size": 1, "batch_size": 64, "max_output_length": 100},
        "training": {
            "random_seed": 42,
            "optimizer": "adam",
            "normalization": "tokens",
            "adam_betas": [0.9, 0.98],
            "scheduling": "exponential",  # by nothing: a rate that stays
            "decrease_factor": 1.0,
            "learning_rate": 0.0005,
            "learning_rate_min": 1e-8,
            "label_smoothing": 0.1,
            "loss": "crossentropy",
            "batch_size": 2750,
            "batch_type": "token",
            "epochs": 10_000,
            "validation_freq": 1_000_000,
            "logging_freq": 100,
            "early_stopping_metric": "loss",
        },
        "model": {
            "initializer": "xavier_uniform",
            "embed_initializer": "xavier_uniform",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": part,
            "decoder": part,
        },
    }
