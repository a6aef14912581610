"""What every kernel makes of small inputs; run as a program it writes that to a file.

A process with ``NUMBA_DISABLE_JIT=1`` must come to the same results.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nlpkit.errors import NlpkitWarning
from nlpkit.generate.beam import BeamSettings, beam_search
from nlpkit.kernels import compiling
from nlpkit.kernels.matvec import (
    GELU,
    GELU_TANH,
    NONE,
    RELU,
    RELU2,
    SILU,
    Stack,
    multiply,
    settle,
)
from nlpkit.kernels.novelty import rolling_hashes
from nlpkit.kernels.numbers import parse_rows
from nlpkit.kernels.wordcount import WordTable
from nlpkit.models.gpt import GPT
from nlpkit.models.gpt_cpu import compile_step
from nlpkit.models.interpolation import interpolated
from nlpkit.models.kneser_ney import kneser_ney
from nlpkit.models.kneser_ney_counts import Scratch
from nlpkit.models.seq2seq_cpu import CompiledDecoder
from nlpkit.tasks.lm.novelty import novelty
from nlpkit.vectors.cooccurrence import PairCounter
from nlpkit.vectors.glove import GloveTrainer, Shards
from nlpkit.vectors.settings import CountMethod, CountSettings
from nlpkit.word2vec.config import Arch, Loss, Word2VecConfig
from nlpkit.word2vec.exchange import add_changes, apply_changes, pack_changes
from nlpkit.word2vec.store import build_store
from nlpkit.word2vec.train import Word2VecTrainer
from nlpkit.word2vec.walk_settings import WalkSettings
from nlpkit.word2vec.walks import random_walks, read_graph

Results = dict[str, np.ndarray]
ROWS = b"the 1 -2.5e-3\nnew york 3 4\nof +.5 12345678901234567890\nnan 1 x\nla 0.25 1e22\r\n"


def counted_words() -> Results:
    table = WordTable()
    odd = "naïve\u00a0café\u2003東京\u3000extraordinarily extraordinary\r\n\n a\x1fb\tÂ\u0085"
    many = " ".join(f"word{i % 2500}" for i in range(3000))
    ids = table.encode(f"{odd}\n{many}".encode())
    return {"ids": ids, "counts": table.counts}


def text_rows() -> Results:
    matrix = np.zeros((5, 2), np.float32)
    edges = parse_rows(np.frombuffer(ROWS, np.uint8), matrix)
    return {"edges": edges, "matrix": matrix}


def word_vectors(arch: Arch, loss: Loss, **more: Any) -> Results:
    config = Word2VecConfig(
        arch=arch, loss=loss, dim=20, window=3, min_count=1, epochs=1, sample=0.1,
        phrases=1, phrase_threshold=1, **{"threads": 1, **more},
    )  # fmt: skip
    random = np.random.default_rng(1)
    lines = [" ".join(f"w{n}" for n in random.integers(0, 9, 6)) for _ in range(25)]
    store = build_store(["\n".join(lines).encode()], config)
    trainer = Word2VecTrainer(store, config)
    for _ in trainer.train():
        pass
    state = trainer.state()
    loss_sum = np.array(state.loss_sum, np.float32)
    return {"ids": store.ids, "in": state.input, "out": state.output, "loss": loss_sum}


def exchange() -> Results:
    random = np.random.default_rng(3)
    before, now = random.normal(size=(2, 4, 16)).astype(np.float32)
    changes, total = np.zeros((2, 4, 10), np.uint16), np.zeros((4, 10), np.uint16)
    pack_changes(now, before, changes[0])
    pack_changes(before * 2, now, changes[1])
    add_changes(changes, np.array([1, 0.7, 0.5, 1], np.float32), total)
    apply_changes(total, before, now)
    return {"changes": changes, "total": total, "now": now}


def walks() -> Results:
    settings = WalkSettings(walks=2, length=6, p=0.5, q=2.0)
    edges = [("edges", line) for line in ("a b 2", "b c 1", "c a 0.5", "c d 1", "d e 3")]
    graph = read_graph(edges, settings)
    lines = list(random_walks(graph, settings))
    return {"walks": np.array([" ".join(line) for line in lines])}


def glove() -> Results:
    settings = CountSettings(
        method=CountMethod.GLOVE, dim=6, window=3, min_count=1, epochs=2, threads=1
    )
    ids = np.random.default_rng(5).integers(0, 7, 80).astype(np.int32)
    ids[9::10] = ~ids[9::10]
    counter = PairCounter(7, settings)
    counter.add(ids)
    pairs = [np.concatenate(columns) for columns in zip(*counter.pairs(), strict=True)]
    trainer = GloveTrainer(Shards(counter, settings), 7, settings)
    losses = [record.loss for record in trainer.train()]
    return {
        "first": pairs[0],
        "second": pairs[1],
        "counts": pairs[2],
        "vectors": trainer.vectors(),
        "losses": np.array(losses),
    }


def products(kind: Any, rows: int) -> Results:
    random = np.random.default_rng(2)
    weight = random.integers(-127, 128, (1, 11, 70)).astype(kind)
    scale, bias = (random.normal(size=(1, 11)).astype(np.float32) for _ in range(2))
    x = random.normal(size=(rows, 70)).astype(np.float32)
    results = {}
    for activation in (NONE, RELU2, GELU, GELU_TANH, RELU, SILU):
        out = np.zeros((rows, 11), np.float32)
        multiply(Stack(weight, scale / 50, bias), 0, x, out, activation, 1)
        results[str(activation)] = out
    return results


def settled() -> Results:
    random = np.random.default_rng(3)
    weight = random.normal(size=(1, 64, 8)).astype(np.float32)
    head = Stack(weight, np.ones((1, 64), np.float32), np.zeros((1, 64), np.float32))
    x = random.normal(size=8).astype(np.float32)
    logits = weight[0] @ x + random.uniform(-0.01, 0.01, 64).astype(np.float32)
    settle(head, np.full(64, 0.1, np.float32), x, logits, 4, 2)
    return {"likeliest": np.sort(logits)[-4:]}


def ngrams() -> Results:
    random = np.random.default_rng(4)
    ids = np.concatenate([[0], random.integers(0, 9, 3000), [0]]).astype(np.int32)
    warnings.simplefilter("ignore", NlpkitWarning)  # so few words have few counts of one to four
    trie = kneser_ney(ids, 3, 9, 0, Scratch(None, 1 << 15))  # several runs
    mixed = interpolated(ids[:2500], ids[2500:], 3, 9, 0)
    hashes = rolling_hashes(ids.astype(np.uint8), 5)
    letters = ids.astype(np.uint8).tobytes()
    shares, passages = novelty(letters[:2500], letters[2000:], [3, 8], 4)
    return {
        "words": trie.words,
        "links": trie.nodes[:, 2:],
        "scores": trie.score(ids, trie.start)[0],
        "next": trie.distribution(trie.context([3, 4])),
        "mixed": mixed.score(ids, mixed.start)[0],
        "hashes": hashes.view(np.int64),
        "novelty": np.array(list(shares.values())),
        "passages": np.array([[one.length, one.at, one.source] for one in passages]),
    }


def tiny_gpt(*, int8: bool) -> GPT:
    sys.path.insert(0, str(Path(__file__).with_name("lm")))
    from small_gpts import small_gpt

    model = small_gpt().model
    assert isinstance(model, GPT)
    compile_step(model, int8=int8)
    return model


def gpt(rows: int, *, int8: bool) -> Results:
    model = tiny_gpt(int8=int8)
    cache = model.new_cache(rows)
    logits = []
    with torch.inference_mode():
        model(torch.arange(5 * rows).view(rows, 5), cache=cache)
        for number in range(3):
            ids = torch.arange(rows) + number
            logits.append(model(ids[:, None], cache=cache)[0].numpy())
    return {"logits": np.stack(logits)}


def beams(*, int8: bool) -> Results:
    """The encoder, the decoder and the search of a Transformer."""
    sys.path.insert(0, str(Path(__file__).with_name("translate")))
    from small_translators import read, small_model

    model = small_model("transformer", dim=32, layers=1)
    if int8:
        model.quantize()
    with torch.inference_mode():
        model.compiled = CompiledDecoder(model)  # type: ignore[arg-type]
        found = beam_search(model, read(model, [5, 6, 2], [7, 2]), BeamSettings(beams=2), [4, 4])
    ids = np.array([one.ids + [0] * (3 - len(one.ids)) for row in found for one in row])
    return {"ids": ids, "scores": np.array([one.log_probability for row in found for one in row])}


def all_results() -> Results:
    """By the names of what made them."""
    parts = {"words": counted_words(), "rows": text_rows(), "settled": settled()}
    parts["ngrams"] = ngrams()
    for arch in Arch:
        for loss in Loss:
            parts[f"{arch.value} {loss.value}"] = word_vectors(arch, loss)
        grams = {"subwords": "2-3", "buckets": 50}
        parts[f"{arch.value} subwords"] = word_vectors(arch, Loss.NS, **grams)
        parts[f"{arch.value} documents"] = word_vectors(arch, Loss.NS, documents=True)
    both = {"documents": True, "document_words": True}
    parts["documents and words"] = word_vectors(Arch.SKIPGRAM, Loss.NS, **both)
    merged = {"deterministic": True, "threads": 2}
    parts["merged copies"] = word_vectors(Arch.SKIPGRAM, Loss.NS, **merged)
    parts |= {"walks": walks(), "glove": glove(), "exchange": exchange()}
    parts |= {"beams": beams(int8=False), "8-bit beams": beams(int8=True)}
    for rows in (1, 3):
        parts[f"product {rows}"] = products(np.float32, rows)
        parts[f"8-bit product {rows}"] = products(np.int8, rows)
        parts[f"gpt {rows}"] = gpt(rows, int8=False)
        parts[f"8-bit gpt {rows}"] = gpt(rows, int8=True)
    flat = {f"{part}: {name}": value for part in parts for name, value in parts[part].items()}
    return {"compiled": np.array(compiling.ENABLED), **flat}


if __name__ == "__main__":
    np.savez(sys.argv[1], **all_results())
