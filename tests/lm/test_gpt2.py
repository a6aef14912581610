"""GPT-2's forms: folders of Hugging Face and checkpoints of nanoGPT, read and written."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from small_gpts import GREEDY, TEXT, small_gpt

from nlpkit import faults
from nlpkit.errors import NlpkitError
from nlpkit.pretrained.gpt2 import check_export, export_gpt2, import_gpt2, import_nanogpt
from nlpkit.text.subwords import Subwords


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


def test_an_export_that_dies_at_any_moment_is_whole_or_absent(
    tmp_path: Path, subwords: Subwords
) -> None:
    gpt2_folder(tmp_path / "hub", subwords)
    gpt = import_gpt2(tmp_path / "hub")
    for operation in range(1, 100):
        child = os.fork()
        if child == 0:
            faults._steps_left = operation
            export_gpt2(gpt, tmp_path / "again")
            os._exit(0)
        died = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
        if (tmp_path / "again").exists():
            assert len(list((tmp_path / "again").iterdir())) == 4
            break
        assert died
    assert operation > 5


def test_an_export_is_refused_before_the_model_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    with pytest.raises(NlpkitError, match="not an empty folder"):
        check_export(tmp_path / "file")
    with pytest.raises(NlpkitError, match="no such folder"):
        check_export(tmp_path / "missing" / "again")


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


CHANGES: dict[str, dict[str, object]] = {
    "unscaled": {"scale_attn_weights": False},
    "by layer": {"scale_attn_by_inverse_layer_idx": True, "reorder_and_upcast_attn": True},
    "large epsilon": {"layer_norm_epsilon": 0.1},
    "small epsilon": {"layer_norm_epsilon": 1e-12},
    "untied": {"tie_word_embeddings": False, "layer_norm_epsilon": 0.02},
    "gelu": {"activation_function": "gelu", "n_inner": 96},
    "fast": {"activation_function": "gelu_fast"},
    "all": {
        "scale_attn_weights": False,
        "scale_attn_by_inverse_layer_idx": True,
        "layer_norm_epsilon": 0.05,
    },
}


@pytest.mark.parametrize("change", CHANGES)
def test_settings_that_change_the_arithmetic_are_honoured(
    tmp_path: Path, subwords: Subwords, change: str
) -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 290, "n_positions": 32, "n_embd": 24, "n_layer": 3, "n_head": 2}
    config = transformers.GPT2Config(**sizes, initializer_range=0.2, **CHANGES[change])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        theirs = transformers.GPT2LMHeadModel(config).eval()
    theirs.save_pretrained(tmp_path / "hub")
    subwords.save(str(tmp_path / "hub" / "tokenizer.json"))
    ids = torch.arange(40, 70)[None]
    with torch.no_grad():
        expected = theirs(ids).logits
        usual = transformers.GPT2Config(**sizes, tie_word_embeddings=config.tie_word_embeddings)
        usual_one = transformers.GPT2LMHeadModel(usual).eval()
        usual_one.load_state_dict(theirs.state_dict())
        if change not in ("small epsilon", "fast"):  # as good as GPT-2's own
            assert (usual_one(ids).logits - expected).abs().max() > 1e-4
    gpt = import_gpt2(tmp_path / "hub")
    assert torch.allclose(gpt.model(ids)[0], expected, atol=3e-5)
    export_gpt2(gpt, tmp_path / "again")
    back = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "again").eval()
    with torch.no_grad():
        assert torch.allclose(back(ids).logits, expected, atol=3e-5)


def test_a_head_of_its_own_in_a_tied_model_is_refused(tmp_path: Path, subwords: Subwords) -> None:
    from safetensors.torch import save_file

    tensors = gpt2_folder(tmp_path / "hub", subwords)
    file = tmp_path / "hub" / "model.safetensors"
    save_file({**tensors, "lm_head.weight": torch.ones(290, 12)}, file)
    with pytest.raises(NlpkitError, match=r"tie_word_embeddings, but lm_head\.weight"):
        import_gpt2(tmp_path / "hub")
    save_file({**tensors, "h.0.mlp.c_fc.weight": torch.ones(12, 48, dtype=torch.int8)}, file)
    with pytest.raises(NlpkitError, match=r"c_fc\.weight is no tensor of floating-point numbers"):
        import_gpt2(tmp_path / "hub")
    save_file({**tensors, "h.0.mlp.c_fc.weight": torch.ones(2, 12, 48)}, file)
    with pytest.raises(NlpkitError, match="weights do not fit the configuration"):
        import_gpt2(tmp_path / "hub")


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
    arguments = {**sizes, "bias": False}
    for saved, message in (
        ({"model": tensors, "model_args": sizes}, "bias cannot be None"),
        ({"model": tensors, "model_args": {**sizes, "bias": 1}}, "bias cannot be 1"),
        ({"model": tensors, "model_args": {**sizes, "bias": True}}, r"lack ln_f\.bias"),
        ({"model": tensors, "model_args": {**arguments, "n_head": 3}}, "n_head 3 does not"),
        ({"model": tensors, "model_args": {**arguments, "n_head": "2"}}, "n_head cannot be '2'"),
        ({"model": tensors, "model_args": {**arguments, "n_experts": 2}}, "has n_experts"),
        ({"model": tensors, "model_args": {**arguments, "block_size": 10**9}}, "wpe.weight is of"),
        ({"model": {**tensors, "lm_head.bias": torch.ones(5)}, "model_args": arguments}, "lm_head"),
        ({"model": {"transformer.wte.weight": 3}, "model_args": arguments}, "wte.weight is no"),
        ({"model": {1: torch.ones(2)}, "model_args": arguments}, "lack wte.weight"),
        ({"model": {}, "model_args": [1, 2]}, "no model_args and model"),
        ([1, 2], "no model_args and model"),
    ):
        torch.save(saved, path)
        with pytest.raises(NlpkitError, match=message):
            import_nanogpt(path, characters="abcde")
    whole = path.read_bytes()
    for damaged in (b"nonsense", b"", whole[: len(whole) // 2], whole[:-30]):
        path.write_bytes(damaged)
        with pytest.raises(NlpkitError, match="not a nanoGPT checkpoint") as caught:
            import_nanogpt(path, characters="abcde")
        assert "\n" not in str(caught.value)


def test_warnings_of_torch_about_a_damaged_checkpoint_are_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    def load(*_: object, **__: object) -> None:
        warnings.warn("odd bytes", UserWarning, stacklevel=2)
        raise RuntimeError("damaged")

    monkeypatch.setattr(torch, "load", load)
    path = tmp_path / "ckpt.pt"
    path.touch()
    with pytest.raises(NlpkitError, match="not a nanoGPT checkpoint: damaged"):
        import_nanogpt(path, characters="abcde")
    assert not recwarn.list


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "bert"}, "is a bert model"),
        ({"n_embd": "wide"}, "n_embd cannot be 'wide'"),
        ({"n_head": None}, "n_head cannot be None"),
        ({"n_layer": 3}, "lack h.2"),
        ({"n_layer": 10**6}, "do not belong together"),
        ({"vocab_size": 100}, "tokenizer has 290 ids, the model 100"),
        ({"vocab_size": 400}, "tokenizer has 290 ids, the model 400"),
        ({"n_positions": 7}, "do not fit"),
        ({"activation_function": "swish"}, "activation_function swish"),
        ({"activation_function": ["gelu"]}, "activation_function"),
        ({"scale_attn_weights": "no"}, "scale_attn_weights cannot be 'no'"),
        ({"layer_norm_epsilon": 0}, "layer_norm_epsilon cannot be 0"),
        ({"layer_norm_epsilon": float("nan")}, "layer_norm_epsilon cannot be nan"),
        ({"n_inner": 24}, "n_inner other than four times n_embd"),
        ({"add_cross_attention": True}, "add_cross_attention is not supported"),
        ({"pruned_heads": {"0": [1]}}, "config.json has pruned_heads"),
        ({"rope_theta": 10000.0}, "config.json has rope_theta"),
        ({"quantization_config": {"bits": 4}}, "config.json has quantization_config"),
        ({"tie_word_embeddings": False}, "lack lm_head.weight"),
        ({"n_layer": 1}, "does not know the weights h.1"),
        ({"n_head": 5}, "n_head 5 does not divide n_embd 12"),
        ({"n_head": True}, "n_head cannot be True"),
        ({"hidden_size": 16}, "n_embd is 12, but hidden_size is 16"),
        ({"n_positions": 2**30}, "wpe.weight is of size"),
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


def test_a_folder_of_another_kind_and_none_at_all(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(NlpkitError, match="there is no n_embd"):
        import_gpt2(tmp_path)
    with pytest.raises(NlpkitError, match="no such file or folder"):
        import_nanogpt(tmp_path / "missing")
