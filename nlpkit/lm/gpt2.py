"""GPT-2 in the forms others keep it: Hugging Face's folder, nanoGPT's checkpoint.

Names and shapes are theirs on one side and ours on the other; this is the only module that knows
both. Hugging Face stores the matrices of blocks as (in, out), torch and nanoGPT as (out, in).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nlpkit import modeldir
from nlpkit.errors import NlpkitError
from nlpkit.lm.characters import Characters
from nlpkit.lm.codec import Codec, check_sizes, save_codec
from nlpkit.lm.gptmodel import GptModel
from nlpkit.lm.models import adopt_weights, empty_model
from nlpkit.lm.settings import ModelSettings
from nlpkit.subwords import END_OF_TEXT, Subwords

_ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu"}
_OUTSIDE = {"embedding.weight": "wte.weight", "position.weight": "wpe.weight"}
_NORMS = {"norm": "ln_f"}
_BLOCK_NORMS = {"norm_1": "ln_1", "norm_2": "ln_2"}
_BLOCK_LINEARS = {"attention.output": "attn.c_proj", "up": "mlp.c_fc", "down": "mlp.c_proj"}


def import_gpt2(folder: str | os.PathLike[str], tokenizer: str | None = None) -> GptModel:
    """Read a folder with ``config.json``, ``*.safetensors`` and a tokenizer."""
    path = Path(folder)
    config = _read_json(path / "config.json")
    if config.get("model_type", "gpt2") != "gpt2":
        raise NlpkitError(f"{folder} is a {config.get('model_type')} model, not a gpt2 one")
    activation = config.get("activation_function", "gelu_new")
    if activation not in _ACTIVATIONS:
        raise NlpkitError(f"{folder}: activation {activation} is not supported")
    for name in ("scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn"):
        if config.get(name):
            raise NlpkitError(f"{folder}: {name} is not supported")
    dim = _size(config, "n_embd")
    if config.get("n_inner") not in (None, 4 * dim):
        raise NlpkitError(f"{folder}: n_inner other than four times n_embd is not supported")
    settings = ModelSettings.gpt2(
        vocab_size=_size(config, "vocab_size"),
        block_size=_size(config, "n_positions" if "n_positions" in config else "n_ctx"),
        layers=_size(config, "n_layer"),
        heads=_size(config, "n_head"),
        dim=dim,
        activation=_ACTIVATIONS[activation],
    )
    codec = Subwords.load(tokenizer or str(folder))
    return _assemble(settings, _read_tensors(path), codec, folder, transposed=True)


def import_nanogpt(
    path: str | os.PathLike[str], tokenizer: str | None = None, characters: str | None = None
) -> GptModel:
    """Read a ``ckpt.pt``: tensors and plain values only, nothing in it is run.

    It holds no tokenizer: give one, or the text whose characters the model was trained on.
    """
    if not Path(path).is_file():
        raise NlpkitError(f"no such file or folder: {path}", hint="a GPT-2 folder or a ckpt.pt")
    if (tokenizer is None) == (characters is None):
        raise NlpkitError(
            f"{path} holds no tokenizer", hint="--tokenizer PATH, or --characters TEXT it learned"
        )
    try:
        saved = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        sizes, tensors = saved["model_args"], saved["model"]
        settings = ModelSettings.gpt2(
            vocab_size=_size(sizes, "vocab_size"),
            block_size=_size(sizes, "block_size"),
            layers=_size(sizes, "n_layer"),
            heads=_size(sizes, "n_head"),
            dim=_size(sizes, "n_embd"),
            bias=bool(sizes["bias"]),
            activation="gelu",
        )
    except NlpkitError:
        raise
    # a foreign file fails in many ways: not a zip, not tensors, not the expected keys
    except Exception as error:  # noqa: BLE001
        reason = str(error).split("\n")[0]
        raise NlpkitError(f"{path} is not a nanoGPT checkpoint: {reason}") from None
    codec: Codec
    if tokenizer is not None:
        codec = Subwords.load(tokenizer)
    else:
        codec = Characters.from_text([characters or ""])
        if len(codec) != settings.vocab_size:
            raise NlpkitError(
                f"the text has {len(codec)} characters, the model {settings.vocab_size}",
                hint="the text it was trained on",
            )
    tensors = {name.removeprefix("_orig_mod."): value for name, value in tensors.items()}
    return _assemble(settings, tensors, codec, path, transposed=False)


def _assemble(
    settings: ModelSettings,
    tensors: Mapping[str, Tensor],
    codec: Codec,
    source: str | os.PathLike[str],
    *,
    transposed: bool,
) -> GptModel:
    check_sizes(codec, settings.vocab_size, source)
    tensors = {name.removeprefix("transformer."): value for name, value in tensors.items()}
    if settings.layers > len(tensors):
        raise NlpkitError(f"{source}: config and weights do not belong together")
    try:
        ours = _from_theirs(settings, tensors, transposed)
    except KeyError as error:
        raise NlpkitError(f"{source}: the weights lack {error.args[0]}") from None
    head = tensors.get("lm_head.weight")
    if head is not None and not torch.equal(head, ours["embedding.weight"]):
        settings = ModelSettings.from_dict({**settings.to_dict(), "tied": False})
        ours["head.weight"] = head
    model = empty_model(settings)
    ours = {name: value.float().contiguous() for name, value in ours.items()}
    return GptModel(adopt_weights(model, ours, source), codec)


def _from_theirs(
    settings: ModelSettings, theirs: Mapping[str, Tensor], transposed: bool
) -> dict[str, Tensor]:
    turn = (lambda tensor: tensor.t()) if transposed else (lambda tensor: tensor)
    kinds = ("weight", "bias") if settings.bias else ("weight",)
    ours = {name: theirs[their] for name, their in _OUTSIDE.items()}
    for name, their in _norm_names(settings):
        for kind in kinds:
            ours[f"{name}.{kind}"] = theirs[f"{their}.{kind}"]
    for layer in range(settings.layers):
        for kind in kinds:
            for name, their in _BLOCK_LINEARS.items():
                tensor = theirs[f"h.{layer}.{their}.{kind}"]
                ours[f"blocks.{layer}.{name}.{kind}"] = turn(tensor) if kind == "weight" else tensor
            fused = theirs[f"h.{layer}.attn.c_attn.{kind}"]
            fused = turn(fused) if kind == "weight" else fused  # (3C, C): q, k, v
            attention = f"blocks.{layer}.attention"
            ours[f"{attention}.qk.{kind}"] = fused[: 2 * settings.dim]
            ours[f"{attention}.v.{kind}"] = fused[2 * settings.dim :]
    return ours


def _norm_names(settings: ModelSettings) -> list[tuple[str, str]]:
    inside = [
        (f"blocks.{layer}.{name}", f"h.{layer}.{their}")
        for layer in range(settings.layers)
        for name, their in _BLOCK_NORMS.items()
    ]
    return [*_NORMS.items(), *inside]


def export_gpt2(gpt: GptModel, folder: str | os.PathLike[str]) -> None:
    """Write a folder that ``transformers`` loads as GPT-2."""
    settings = gpt.model.settings
    reference = ModelSettings.gpt2()
    for name in ("positions", "norm_gains", "bias", "qk_norm", "embedding_norm", "previous"):
        if getattr(settings, name) != getattr(reference, name):
            raise NlpkitError(
                "this model is not of GPT-2's kind, which is all that form can hold",
                hint="a model that came in by nlpkit gpt import",
            )
    if not isinstance(gpt.codec, Subwords):
        raise NlpkitError("a character or byte model has no tokenizer that transformers loads")
    path = Path(folder)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise NlpkitError(f"{folder} exists and is not an empty folder", hint="another name")
    if not path.exists():
        modeldir.check_new(path, force=False)
    path.mkdir(exist_ok=True)
    names = {value: key for key, value in _ACTIVATIONS.items() if key != "gelu_pytorch_tanh"}
    end = gpt.codec.backend.token_to_id(END_OF_TEXT)
    config = {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "activation_function": names[settings.activation],
        "vocab_size": settings.vocab_size,
        "n_positions": settings.block_size,
        "n_ctx": settings.block_size,
        "n_embd": settings.dim,
        "n_layer": settings.layers,
        "n_head": settings.heads,
        "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": settings.tied,
        "bos_token_id": end,
        "eos_token_id": end,
    }
    (path / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    save_codec(gpt.codec, path)
    names_file = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END_OF_TEXT}
    (path / "tokenizer_config.json").write_text(json.dumps(names_file) + "\n", encoding="utf-8")
    modeldir.save_tensors(_to_theirs(gpt), path / "model.safetensors", {"format": "pt"})


def _to_theirs(gpt: GptModel) -> dict[str, Tensor]:
    settings, ours = gpt.model.settings, gpt.model.state_dict()
    theirs = {their: ours[name] for name, their in _OUTSIDE.items()}
    for name, their in _norm_names(settings):
        for kind in ("weight", "bias"):
            theirs[f"{their}.{kind}"] = ours[f"{name}.{kind}"]
    for layer in range(settings.layers):
        attention = f"blocks.{layer}.attention"
        for kind in ("weight", "bias"):
            for name, their in _BLOCK_LINEARS.items():
                tensor = ours[f"blocks.{layer}.{name}.{kind}"]
                theirs[f"h.{layer}.{their}.{kind}"] = tensor.t() if kind == "weight" else tensor
            fused = torch.cat([ours[f"{attention}.qk.{kind}"], ours[f"{attention}.v.{kind}"]])
            theirs[f"h.{layer}.attn.c_attn.{kind}"] = fused.t() if kind == "weight" else fused
    theirs = {f"transformer.{name}": tensor.contiguous() for name, tensor in theirs.items()}
    if not settings.tied:
        theirs["lm_head.weight"] = ours["head.weight"]
    return theirs


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise NlpkitError(f"{path.parent} has no {path.name}", hint="a GPT-2 folder")
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise NlpkitError(f"{path} is damaged: {error}") from None
    if not isinstance(values, dict):
        raise NlpkitError(f"{path} does not describe a model")
    return values


def _size(config: Mapping[str, Any], name: str) -> int:
    if name not in config:
        raise NlpkitError(f"there is no {name} in the model's configuration", hint="a GPT-2 model")
    value = config[name]
    if not isinstance(value, int) or not 0 < value < 2**31:
        raise NlpkitError(f"{name} cannot be {value!r}")
    return value


def _read_tensors(folder: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise NlpkitError(
            f"{folder} has no .safetensors file",
            hint="save the model with safe_serialization=True; a pickle is not read",
        )
    tensors: dict[str, Tensor] = {}
    for file in files:
        try:
            tensors.update(load_file(file))
        except (SafetensorError, ValueError, KeyError) as error:
            raise NlpkitError(f"{file} is damaged: {error}", hint="copy it again") from None
    return tensors
