"""The stream: tokenised once, batches by number, text in and out, GPT-2's forms, two processes."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nlpkit.errors import NlpkitError
from nlpkit.lm.attention import attention_records
from nlpkit.lm.characters import Characters
from nlpkit.lm.codec import Bytes, TextStream
from nlpkit.lm.gpt2 import export_gpt2, import_gpt2, import_nanogpt
from nlpkit.lm.gptmodel import GptModel
from nlpkit.lm.gpttrain import new_model, prepare_training, stream_loss
from nlpkit.lm.recipes import GptSettings
from nlpkit.lm.sampling import SamplingSettings
from nlpkit.lm.stream import StreamBatches, split_stream, tokenize_stream, windows
from nlpkit.subwords import Subwords
from nlpkit.textio import Block

TEXT = "The café cost 5 € in 東京. 👍🏽 The king said: to be, or not to be!\n" * 30
GREEDY = SamplingSettings(temperature=0)
TINY = GptSettings(layers=2, heads=2, dim=16, block_size=16, batch_size=4, max_iters=12)


@pytest.fixture(scope="module")
def subwords() -> Subwords:
    return Subwords.train([TEXT], vocab_size=290)


def randomized(gpt: GptModel, std: float = 0.3) -> GptModel:
    generator = torch.Generator().manual_seed(2)
    for parameter in gpt.model.parameters():
        torch.nn.init.normal_(parameter, std=std, generator=generator)
    return gpt


def small_gpt() -> GptModel:
    codec = Characters.from_text([TEXT])
    model = new_model(TINY.resolve(), len(codec)).eval()
    return randomized(GptModel(model, codec))


def written(gpt: GptModel, prompts: list[str], count: int, **options: Any) -> list[str]:
    steps = list(gpt.continue_prompts(prompts, count, GREEDY, 1, **options))
    streamed = ["".join(step[row][1] for step in steps) for row in range(len(prompts))]
    assert streamed == [row.text for row, _ in steps[-1]]
    return streamed


# --- the stream ---------------------------------------------------------------------------------


def test_every_tokenizer_gives_the_text_back(tmp_path: Path, subwords: Subwords) -> None:
    subwords.save(str(tmp_path / "tokenizer.json"))
    half = len(TEXT) // 2
    blocks = [Block(part.encode(), "a", 1) for part in (TEXT[:half], TEXT[half:])]
    for tokenizer in ("char", "byte", str(tmp_path / "tokenizer.json")):
        codec, ids = tokenize_stream(blocks, tokenizer, str(tmp_path))
        assert codec.decode(ids.tolist()) == TEXT
        assert int(ids.max()) < len(codec)
    assert os.listdir(tmp_path) == ["tokenizer.json"]


def test_documents_of_subwords_are_kept_apart(tmp_path: Path, subwords: Subwords) -> None:
    subwords.save(str(tmp_path / "tokenizer.json"))
    blocks = [Block(b"one", "a", 1), Block(b"two", "b", 1)]
    codec, ids = tokenize_stream(blocks, str(tmp_path / "tokenizer.json"), str(tmp_path))
    assert codec.decode(ids.tolist()) == "one<|endoftext|>two"


def test_empty_and_short_texts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NlpkitError, match="no text"):
        tokenize_stream([], "byte", str(tmp_path))
    with pytest.raises(NlpkitError, match="too few for a block size of 64"):
        split_stream(np.arange(100), 64, 0.1)


def test_batches_depend_on_seed_and_number() -> None:
    ids = np.arange(1000)
    batches = StreamBatches(ids, batch_size=3, block_size=8, seed=1)
    idx, targets = batches[5]
    assert idx.shape == (3, 8)
    assert torch.equal(idx + 1, targets)
    assert torch.equal(idx, batches[5][0])
    assert not torch.equal(idx, batches[6][0])


@given(st.integers(2, 80), st.integers(1, 9), st.integers(1, 4))
def test_windows_cover_every_target_once(length: int, block: int, batch: int) -> None:
    ids = np.arange(length)
    found = [t for _, targets in windows(ids, block, batch) for t in targets.flatten().tolist()]
    assert found == list(range(1, length))


@given(st.text(max_size=30))
def test_streamed_text_is_whole_characters(text: str) -> None:
    text = text.encode("utf-8", "ignore").decode()
    stream = TextStream(Bytes())
    pieces = [stream.add(index) for index in Bytes().encode(text)]
    assert "".join(pieces) + stream.finish() == text
    assert all(piece in text for piece in pieces)


def test_streamed_subwords_give_the_text(subwords: Subwords) -> None:
    stream = TextStream(subwords)
    pieces = [stream.add(index) for index in subwords.encode(TEXT)]
    assert "".join(pieces) + stream.finish() == TEXT


# --- training -----------------------------------------------------------------------------------


def test_training_lowers_the_loss_and_frozen_layers_stay() -> None:
    settings = GptSettings(**{**vars(TINY), "max_iters": 60}).resolve()
    codec = Characters.from_text([TEXT])
    ids = np.array(codec.encode(TEXT))
    model = new_model(settings, len(codec))
    before = stream_loss(model, ids)
    list(prepare_training(model, ids, ids, settings).fit())
    assert before == pytest.approx(math.log(len(codec)), abs=1e-3)
    assert stream_loss(model, ids) < 0.6 * before
    frozen = GptSettings(**{**vars(TINY), "freeze": 1}).resolve()
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    list(prepare_training(model, ids, ids, frozen).fit())
    changed = {name for name, value in model.state_dict().items() if (value != kept[name]).any()}
    assert changed
    assert not any(name.startswith(("embedding", "previous", "blocks.0.")) for name in changed)
    with pytest.raises(NlpkitError, match="has 2 layers"):
        prepare_training(model, ids, ids, GptSettings(**{**vars(TINY), "freeze": 9}).resolve())


def test_unknown_size_is_refused() -> None:
    with pytest.raises(NlpkitError, match="no size 'huge'"):
        GptSettings(size="huge").resolve()


_WORKER = """
import sys, numpy as np, torch
torch.set_num_threads(1)
from nlpkit.lm.distributed import Processes
from nlpkit.lm.gpttrain import GptSettings, new_model, prepare_training, stream_loss
processes = Processes.from_environment()
processes.join(torch.device("cpu"))
ids = np.random.default_rng(1).integers(0, 9, 400)
settings = GptSettings(layers=1, heads=2, dim=8, block_size=8, batch_size=4, max_iters=6,
                       grad_accum=int(sys.argv[1])).resolve()
model = new_model(settings, 9)
list(prepare_training(model, ids, ids, settings, processes).fit())
if processes.is_first:
    print("loss", stream_loss(model, ids))
processes.leave()
"""


def test_two_processes_get_the_loss_of_one_that_does_their_work(tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text(_WORKER)
    single = [sys.executable, str(script), "4"]
    double = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
        *("--nproc-per-node=2", str(script), "2"),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    losses = []
    for command in (single, double):
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240)
        assert done.returncode == 0, done.stderr
        losses.append(float(done.stdout.split("loss")[1]))
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)


# --- text in and out ----------------------------------------------------------------------------


def test_prompts_together_are_continued_as_alone() -> None:
    gpt = small_gpt()
    prompts = ["The king", "to", "5 € in 東京"]
    together = written(gpt, prompts, 6)  # fewer than make the block full
    assert together == [written(gpt, [prompt], 6)[0] for prompt in prompts]


def test_stop_text_is_not_part_of_the_text() -> None:
    gpt = small_gpt()
    whole = written(gpt, ["The king"], 20)[0]
    stop = whole[4:6]
    stopped = written(gpt, ["The king"], 20, stop=[stop])[0]
    assert stopped == whole[: whole.index(stop)]


def test_log_probabilities_are_those_of_the_model() -> None:
    gpt = small_gpt()
    steps = list(gpt.continue_prompts(["to be"], 5, GREEDY, 1, log_probabilities=True))
    row = steps[-1][0][0]
    logits, _ = gpt.model(torch.tensor([gpt.codec.encode("to be") + row.ids]))
    normal = logits[0].log_softmax(-1)
    expected = [normal[4 + i, index].item() for i, index in enumerate(row.ids)]
    assert row.log_probabilities == pytest.approx(expected, abs=1e-4)


def test_score_of_a_window_is_the_loss_and_strides_agree_on_what_they_count() -> None:
    gpt = small_gpt()
    text = TEXT[:16]
    ids = torch.tensor([gpt.codec.encode("\n" + text)])
    _, loss = gpt.model(ids[:, :-1], ids[:, 1:])
    found = gpt.score(text)
    assert found.nats == pytest.approx(loss.item() * 16, rel=1e-4)
    assert found.bytes == len(text.encode())
    assert found.perplexity == pytest.approx(math.exp(loss.item()), rel=1e-4)
    for stride in (1, 5, 16):
        assert gpt.score(TEXT[:100], stride).tokens == 100
    assert gpt.score("").tokens == 0


def test_int8_weights_predict_almost_as_well(subwords: Subwords) -> None:
    gpt = randomized(GptModel(new_model(TINY.resolve(), 290), subwords), 0.1)
    exact = gpt.score(TEXT[:300]).perplexity
    gpt.quantize()
    assert gpt.score(TEXT[:300]).perplexity == pytest.approx(exact, rel=0.01)
    assert written(gpt, ["The king"], 5)


def test_attention_records_name_layers_heads_and_tokens() -> None:
    gpt = small_gpt()
    records = attention_records(gpt, "to be")
    assert [(r["layer"], r["head"]) for r in records] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert records[0]["tokens"] == list("to be")
    assert [len(row) for row in records[0]["weights"]] == [1, 2, 3, 4, 5]
    assert all(sum(row) == pytest.approx(1, abs=1e-3) for row in records[0]["weights"])
    with pytest.raises(NlpkitError, match="--layer 3: the model has 2"):
        attention_records(gpt, "to be", layer=3)
    with pytest.raises(NlpkitError, match="from 1 to 16"):
        attention_records(gpt, TEXT)


# --- GPT-2's forms ------------------------------------------------------------------------------


def gpt2_folder(folder: Path, subwords: Subwords) -> dict[str, torch.Tensor]:
    """A small random GPT-2 as its hub folder looks, written by hand."""
    from safetensors.torch import save_file

    folder.mkdir()
    subwords.save(str(folder / "tokenizer.json"))
    config = {"model_type": "gpt2", "n_embd": 12, "n_head": 3, "n_layer": 2, "n_positions": 24}
    (folder / "config.json").write_text(json.dumps({**config, "vocab_size": 290}))
    generator = torch.Generator().manual_seed(4)
    shapes = {"wte.weight": (290, 12), "wpe.weight": (24, 12), "ln_f.weight": (12,)}
    shapes["ln_f.bias"] = (12,)
    for layer in range(2):
        for name, shape in {
            "ln_1.weight": (12,),
            "ln_1.bias": (12,),
            "attn.c_attn.weight": (12, 36),
            "attn.c_attn.bias": (36,),
            "attn.c_proj.weight": (12, 12),
            "attn.c_proj.bias": (12,),
            "ln_2.weight": (12,),
            "ln_2.bias": (12,),
            "mlp.c_fc.weight": (12, 48),
            "mlp.c_fc.bias": (48,),
            "mlp.c_proj.weight": (48, 12),
            "mlp.c_proj.bias": (12,),
        }.items():
            shapes[f"h.{layer}.{name}"] = shape
    tensors = {n: 0.5 * torch.randn(shape, generator=generator) for n, shape in shapes.items()}
    buffers = {"h.0.attn.bias": torch.ones(1, 1, 24, 24), "h.1.attn.masked_bias": torch.ones(1)}
    save_file({**tensors, **buffers}, folder / "model.safetensors")
    return tensors


def reference_logits(t: dict[str, torch.Tensor], ids: list[int]) -> np.ndarray:
    """GPT-2 written out in numpy, from the paper's equations and the file's layout."""
    w = {name: value.double().numpy() for name, value in t.items()}

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(x: np.ndarray, name: str) -> np.ndarray:
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    x = w["wte.weight"][ids] + w["wpe.weight"][: len(ids)]
    hidden = np.triu(np.ones((len(ids), len(ids)), dtype=bool), 1)
    for layer in ("h.0", "h.1"):
        q, k, v = np.split(linear(norm(x, f"{layer}.ln_1"), f"{layer}.attn.c_attn"), 3, axis=1)
        mixed = []
        for head in range(3):
            part = slice(4 * head, 4 * head + 4)
            scores = np.where(hidden, -np.inf, q[:, part] @ k[:, part].T / 2)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            mixed.append(weights / weights.sum(-1, keepdims=True) @ v[:, part])
        x = x + linear(np.concatenate(mixed, axis=1), f"{layer}.attn.c_proj")
        up = linear(norm(x, f"{layer}.ln_2"), f"{layer}.mlp.c_fc")
        up = 0.5 * up * (1 + np.tanh(np.sqrt(2 / np.pi) * (up + 0.044715 * up**3)))
        x = x + linear(up, f"{layer}.mlp.c_proj")
    return norm(x, "ln_f") @ w["wte.weight"].T


def test_imported_gpt2_equals_the_equations(tmp_path: Path, subwords: Subwords) -> None:
    tensors = gpt2_folder(tmp_path / "hub", subwords)
    gpt = import_gpt2(tmp_path / "hub")
    ids = gpt.codec.encode(TEXT)[:20]
    logits = gpt.model(torch.tensor([ids]))[0][0].double().numpy()
    assert np.abs(logits - reference_logits(tensors, ids)).max() < 1e-4


def test_exported_gpt2_comes_back_equal(tmp_path: Path, subwords: Subwords) -> None:
    gpt2_folder(tmp_path / "hub", subwords)
    gpt = import_gpt2(tmp_path / "hub")
    export_gpt2(gpt, tmp_path / "again")
    again = import_gpt2(tmp_path / "again")
    for name, value in gpt.model.state_dict().items():
        assert torch.equal(value, again.model.state_dict()[name])
    with pytest.raises(NlpkitError, match="not an empty folder"):
        export_gpt2(gpt, tmp_path / "again")
    with pytest.raises(NlpkitError, match="not of GPT-2's kind"):
        export_gpt2(small_gpt(), tmp_path / "other")


def test_transformers_agrees_with_what_goes_in_and_out(tmp_path: Path, subwords: Subwords) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        vocab_size=290, n_positions=48, n_embd=24, n_layer=2, n_head=2, initializer_range=0.3
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        theirs = transformers.GPT2LMHeadModel(config).eval()
    theirs.save_pretrained(tmp_path / "hub", safe_serialization=True)
    subwords.save(str(tmp_path / "hub" / "tokenizer.json"))
    gpt = import_gpt2(tmp_path / "hub")
    prompt = "The king said"
    ids = torch.tensor([gpt.codec.encode(prompt)])
    with torch.no_grad():
        expected = theirs(ids).logits
        greedy = theirs.generate(ids, max_new_tokens=20, do_sample=False, pad_token_id=0)
    assert torch.allclose(gpt.model(ids)[0], expected, atol=1e-4)
    steps = list(gpt.continue_prompts([prompt], 20, GREEDY, 1))
    assert steps[-1][0][0].ids == greedy[0, ids.size(1) :].tolist()
    export_gpt2(gpt, tmp_path / "again")
    back = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "again").eval()
    with torch.no_grad():
        assert torch.allclose(back(ids).logits, expected, atol=1e-5)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "again")
    assert tokenizer(prompt)["input_ids"] == ids[0].tolist()


def test_nanogpt_checkpoint_is_read_without_running_it(tmp_path: Path) -> None:
    sizes = {"n_layer": 1, "n_head": 2, "n_embd": 8, "block_size": 12, "vocab_size": 5}
    generator = torch.Generator().manual_seed(1)
    shapes = {
        "wte.weight": (5, 8),
        "wpe.weight": (12, 8),
        "ln_f.weight": (8,),
        "h.0.ln_1.weight": (8,),
        "h.0.ln_2.weight": (8,),
        "h.0.attn.c_attn.weight": (24, 8),
        "h.0.attn.c_proj.weight": (8, 8),
        "h.0.mlp.c_fc.weight": (32, 8),
        "h.0.mlp.c_proj.weight": (8, 32),
    }
    tensors = {
        f"_orig_mod.transformer.{name}": torch.randn(shape, generator=generator)
        for name, shape in shapes.items()
    }
    tensors["_orig_mod.lm_head.weight"] = tensors["_orig_mod.transformer.wte.weight"]
    path = tmp_path / "ckpt.pt"
    torch.save({"model": tensors, "model_args": {**sizes, "bias": False}, "iter_num": 3}, path)
    gpt = import_nanogpt(path, characters="abcde")
    assert gpt.model.settings.tied
    assert gpt.model(torch.tensor([[0, 1]]))[0].shape == (1, 2, 5)
    with pytest.raises(NlpkitError, match="holds no tokenizer"):
        import_nanogpt(path)
    with pytest.raises(NlpkitError, match="text has 3 characters, the model 5"):
        import_nanogpt(path, characters="abc")
    path.write_bytes(b"nonsense")
    with pytest.raises(NlpkitError, match="not a nanoGPT checkpoint"):
        import_nanogpt(path, characters="abcde")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "bert"}, "is a bert model"),
        ({"n_embd": "wide"}, "n_embd cannot be 'wide'"),
        ({"n_layer": 3}, "lack h.2"),
        ({"n_layer": 10**6}, "do not belong together"),
        ({"vocab_size": 100}, "tokenizer has 290 ids, the model 100"),
        ({"vocab_size": 400}, "tokenizer has 290 ids, the model 400"),
        ({"n_positions": 7}, "do not fit"),
        ({"activation_function": "swish"}, "activation swish"),
    ],
)
def test_broken_gpt2_folders_are_one_line(
    tmp_path: Path, subwords: Subwords, change: dict[str, object], message: str
) -> None:
    gpt2_folder(tmp_path / "hub", subwords)
    file = tmp_path / "hub" / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(NlpkitError, match=message):
        import_gpt2(tmp_path / "hub")


def test_missing_and_cut_weights_are_one_line(tmp_path: Path, subwords: Subwords) -> None:
    gpt2_folder(tmp_path / "hub", subwords)
    file = tmp_path / "hub" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(NlpkitError, match="is damaged"):
        import_gpt2(tmp_path / "hub")
    file.unlink()
    with pytest.raises(NlpkitError, match=r"no \.safetensors"):
        import_gpt2(tmp_path / "hub")
