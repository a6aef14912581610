"""A model of GPT-2's size beside transformers and ctranslate2: tokens a second, perplexity.

    python benchmarks/bench_gpt2.py

124 M random weights made by transformers, a prompt of 16 tokens, top-k 40, all cores, by the clock.
The contestants take turns, each in a process of its own: the sleeping threads of one library slow
another down in the same process. Without transformers there is nothing to measure.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import torch
from common import SAMPLES, print_table

from nlpkit.generate.loop import generate
from nlpkit.generate.sampling import SamplingSettings
from nlpkit.pretrained.gpt2 import import_gpt2
from nlpkit.tasks.lm.model import GptModel

PROMPT = list(range(100, 116))
TOP_K = 40


def make_folder(folder: str) -> None:
    """A random GPT-2 as transformers writes it, with a vocabulary of its size and form."""
    import transformers
    from tokenizers.pre_tokenizers import ByteLevel

    torch.manual_seed(1)
    transformers.GPT2LMHeadModel(transformers.GPT2Config()).save_pretrained(folder)
    names = [*sorted(ByteLevel.alphabet()), *(f"<{i}>" for i in range(256, 50256)), "<|endoftext|>"]
    table = json.dumps({name: i for i, name in enumerate(names)})
    (Path(folder) / "vocab.json").write_text(table, encoding="utf-8")
    (Path(folder) / "merges.txt").write_text("#version: 0.2\n")
    config = {"tokenizer_class": "GPT2Tokenizer", "unk_token": "<|endoftext|>"}
    (Path(folder) / "tokenizer_config.json").write_text(json.dumps(config))
    if importlib.util.find_spec("ctranslate2"):
        import ctranslate2  # type: ignore[import-not-found]

        ctranslate2.converters.TransformersConverter(folder).convert(f"{folder}/ctranslate2")


def transformers_run(folder: str, kind: str, tokens: int) -> Callable[[], Any]:
    import transformers

    model = transformers.GPT2LMHeadModel.from_pretrained(folder).eval()
    assert kind == "float32"
    return lambda: model.generate(
        torch.tensor([PROMPT]),
        max_new_tokens=tokens,
        min_new_tokens=tokens,
        do_sample=True,
        top_k=TOP_K,
        pad_token_id=0,
    )


def ctranslate2_run(folder: str, kind: str, tokens: int) -> Callable[[], Any]:
    import ctranslate2

    path = f"{folder}/ctranslate2"
    vocabulary = json.loads((Path(path) / "vocabulary.json").read_text(encoding="utf-8"))
    threads = torch.get_num_threads()
    return partial(
        ctranslate2.Generator(path, compute_type=kind, intra_threads=threads).generate_batch,
        [[vocabulary[i] for i in PROMPT]],
        max_length=tokens,
        min_length=tokens,
        sampling_topk=TOP_K,
        include_prompt_in_result=False,
    )


def load_ours(folder: str, kind: str) -> GptModel:
    gpt = import_gpt2(folder)
    if kind == "int8":
        gpt.quantize()
    else:
        gpt.speed_up(1 << 20)
    return gpt


def nlpkit_run(folder: str, kind: str, tokens: int) -> Callable[[], Any]:
    model, sampling = load_ours(folder, kind).model, SamplingSettings(top_k=TOP_K)

    def run() -> None:
        draw = torch.Generator()
        for _ in generate(model, [PROMPT], tokens, sampling, draw, every_logit=False):
            pass

    return run


MAKERS = {"transformers": transformers_run, "ctranslate2": ctranslate2_run, "nlpkit": nlpkit_run}
_contestant: list[Callable[[], Any]] = []  # of the process that this is


def _prepare(tool: str, folder: str, kind: str, tokens: int) -> None:
    _contestant.append(MAKERS[tool](folder, kind, tokens))
    _contestant[0]()


def _seconds() -> float:
    started = time.perf_counter()
    _contestant[0]()
    return time.perf_counter() - started


def bench_speed(folder: str, tokens: int, rounds: int) -> None:
    contestants = [("transformers", "float32"), ("nlpkit", "float32"), ("nlpkit", "int8")]
    if (Path(folder) / "ctranslate2").is_dir():
        contestants[1:1] = [("ctranslate2", "float32"), ("ctranslate2", "int8")]
    best: dict[str, float] = {}
    with contextlib.ExitStack() as stack:
        processes = {}
        for tool, kind in contestants:
            context = multiprocessing.get_context("spawn")
            process = stack.enter_context(ProcessPoolExecutor(1, context))
            process.submit(_prepare, tool, folder, kind, tokens).result()
            processes[f"{tool} {kind}"] = process
        for _ in range(rounds):
            for name, process in processes.items():
                seconds = process.submit(_seconds).result()
                best[name] = min(best.get(name, seconds), seconds)
    base = best["transformers float32"]
    rows = [(name, tokens / spent, base / spent) for name, spent in best.items()]
    print_table("GPT-2, 124 M parameters", ["", "tokens/s", "to transformers"], rows)


def bench_perplexity(folder: str) -> None:
    text = Path(SAMPLES / "tales.txt").read_text(encoding="utf-8")[:2000]
    rows = [(kind, load_ours(folder, kind).score(text).perplexity) for kind in ("float32", "int8")]
    print_table("GPT-2, perplexity", ["nlpkit", "perplexity"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if not importlib.util.find_spec("transformers"):
        print("transformers is not installed: there is nothing to measure against")
        return
    with tempfile.TemporaryDirectory() as folder:
        make_folder(folder)
        bench_speed(folder, options.tokens, options.rounds)
        bench_perplexity(folder)


if __name__ == "__main__":
    main()
