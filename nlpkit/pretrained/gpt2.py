"""GPT-2 in the forms others keep it: Hugging Face's folder, nanoGPT's checkpoint.

Names and shapes are theirs on one side and ours on the other; this is the only module that knows
both. Hugging Face stores the matrices of blocks as (in, out), torch and nanoGPT as (out, in).
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nlpkit import folders, modeldir
from nlpkit.errors import NlpkitError
from nlpkit.models.build import adopt_weights, empty_model
from nlpkit.models.settings import ModelSettings
from nlpkit.pretrained.hugging_face import (
    HARMLESS,
    check_export,
    read_model_config,
    read_size,
    read_switch,
    read_tensors,
    refuse_unknown,
)
from nlpkit.tasks.lm.model import GptModel
from nlpkit.text.characters import Characters
from nlpkit.text.codec import Codec, check_sizes, save_codec
from nlpkit.text.subwords import END_OF_TEXT, Subwords

_ACTIVATIONS = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu": "gelu",
    "gelu_python": "gelu",
}
_SIZES = {  # Hugging Face's two names of each
    "n_embd": "hidden_size",
    "vocab_size": "vocab_size",
    "n_positions": "max_position_embeddings",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
}
_SWITCHES = {  # with GPT-2's values
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "reorder_and_upcast_attn": False,
    "tie_word_embeddings": True,
    "add_cross_attention": False,
    "is_encoder_decoder": False,
}
# what says nothing about the logits of a trained GPT-2, besides what no model's arithmetic heeds
_HARMLESS = HARMLESS | {"attn_pdrop", "embd_pdrop", "n_ctx", "n_special", "resid_pdrop"}
_NANOGPT = {"n_layer", "n_head", "n_embd", "block_size", "bias", "vocab_size", "dropout"}
_EPSILON = 1e-5  # of every LayerNorm here
_OUTSIDE = {"embedding.weight": "wte.weight", "position.weight": "wpe.weight"}
_NORMS = {"norm": "ln_f"}
_BLOCK_NORMS = {"norm_1": "ln_1", "norm_2": "ln_2"}
_BLOCK_LINEARS = {"attention.output": "attn.c_proj", "up": "mlp.c_fc", "down": "mlp.c_proj"}


def import_gpt2(folder: str | os.PathLike[str], tokenizer: str | None = None) -> GptModel:
    """Read a folder with ``config.json``, ``*.safetensors`` and a tokenizer."""
    path = Path(folder)
    config = read_model_config(path, "a GPT-2 folder")
    if config.get("model_type", "gpt2") != "gpt2":
        raise NlpkitError(f"{folder} is a {config.get('model_type')} model, not a gpt2 one")
    if "n_ctx" in config and not {"n_positions", "max_position_embeddings"} & config.keys():
        config["n_positions"] = config["n_ctx"]  # its name in the first versions
    sizes = {
        name: read_size(config, name, other, hint="a GPT-2 model") for name, other in _SIZES.items()
    }
    _check_heads(sizes, folder)
    switches = {name: read_switch(config, name, usual) for name, usual in _SWITCHES.items()}
    epsilon = config.get("layer_norm_epsilon", _EPSILON)
    if not isinstance(epsilon, float) or not 1e-20 <= epsilon <= 1:
        raise NlpkitError(f"{folder}: layer_norm_epsilon cannot be {epsilon!r}")
    activation = config.get("activation_function", "gelu_new")
    if not isinstance(activation, str) or activation not in _ACTIVATIONS:
        raise NlpkitError(f"{folder}: activation_function {activation} is not supported")
    if config.get("n_inner") not in (None, 4 * sizes["n_embd"]):
        raise NlpkitError(f"{folder}: n_inner other than four times n_embd is not supported")
    for name in ("add_cross_attention", "is_encoder_decoder"):
        if switches[name]:
            raise NlpkitError(f"{folder}: {name} is not supported")
    read = {*_SIZES, *_SIZES.values(), *_SWITCHES}
    read |= {"layer_norm_epsilon", "activation_function", "n_inner"}
    summary = {name for name in config if name.startswith("summary_")}
    refuse_unknown(config, read | _HARMLESS | summary, folder)
    settings = ModelSettings.gpt2(
        vocab_size=sizes["vocab_size"],
        block_size=sizes["n_positions"],
        layers=sizes["n_layer"],
        heads=sizes["n_head"],
        dim=sizes["n_embd"],
        activation=_ACTIVATIONS[activation],
        tied=switches["tie_word_embeddings"],
    )
    codec = Subwords.load(tokenizer or str(folder))
    gpt = _assemble(settings, read_tensors(path), codec, folder, transposed=True)
    _fold_scales(gpt, switches)
    if epsilon != _EPSILON:
        _fold_epsilon(gpt, epsilon)
    return gpt


@torch.no_grad()
def _fold_scales(gpt: GptModel, switches: Mapping[str, bool]) -> None:
    """Attention here divides by sqrt(D), always: what a model does differently goes into q."""
    model: Any = gpt.model
    settings = model.settings
    for layer, block in enumerate(model.blocks):
        factor = 1.0 if switches["scale_attn_weights"] else (settings.dim / settings.heads) ** 0.5
        if switches["scale_attn_by_inverse_layer_idx"]:
            factor /= layer + 1
        if factor != 1:
            block.attention.qk.weight[: settings.dim] *= factor
            block.attention.qk.bias[: settings.dim] *= factor


@torch.no_grad()
def _fold_epsilon(gpt: GptModel, epsilon: float) -> None:
    """Multiply the residual stream by c, so that an epsilon of 1e-5 does what ``epsilon`` did.

    (c x - c m) / sqrt(c^2 v + 1e-5) is (x - m) / sqrt(v + epsilon) for c = sqrt(1e-5 / epsilon).
    """
    model: Any = gpt.model
    factor = (_EPSILON / epsilon) ** 0.5
    written = [part for block in model.blocks for part in (block.attention.output, block.down)]
    for part in (model.embedding, model.position, *written):
        for parameter in part.parameters():
            parameter *= factor
    if model.settings.tied:  # the head is the embedding: what it reads becomes smaller instead
        for parameter in model.norm.parameters():
            parameter /= factor


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
            f"{path} holds no tokenizer", hint="`tokenizer` PATH, or `characters` TEXT it learned"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what torch says of damage is said below
            saved = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    # a foreign file fails in many ways: not a zip, not tensors, cut
    except Exception as error:  # noqa: BLE001
        reason = str(error).split("\n")[0]
        raise NlpkitError(f"{path} is not a nanoGPT checkpoint: {reason}") from None
    saved = saved if isinstance(saved, dict) else {}
    sizes, tensors = saved.get("model_args"), saved.get("model")
    if not isinstance(sizes, dict) or not isinstance(tensors, dict):
        raise NlpkitError(f"{path} is not a nanoGPT checkpoint: it has no model_args and model")
    for name in sizes:
        if name not in _NANOGPT:  # of a fork: what it does is not known here
            raise NlpkitError(f"{path}: model_args has {name}, which may change the arithmetic")
    bias = read_switch(sizes, "bias")
    names = ("vocab_size", "block_size", "n_layer", "n_head", "n_embd")
    sizes = {name: read_size(sizes, name, hint="a GPT-2 model") for name in names}
    _check_heads(sizes, path)
    settings = ModelSettings.gpt2(
        vocab_size=sizes["vocab_size"],
        block_size=sizes["block_size"],
        layers=sizes["n_layer"],
        heads=sizes["n_head"],
        dim=sizes["n_embd"],
        bias=bias,
        activation="gelu",
    )
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
    tensors = {str(name).removeprefix("_orig_mod."): value for name, value in tensors.items()}
    head, embedding = tensors.get("lm_head.weight"), tensors.get("transformer.wte.weight")
    if isinstance(head, Tensor) and isinstance(embedding, Tensor):
        settings = replace(settings, tied=torch.equal(head, embedding))
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
    for name, value in tensors.items():
        if not isinstance(value, Tensor) or not (value.is_floating_point() or _is_mask(name)):
            raise NlpkitError(f"{source}: {name} is no tensor of floating-point numbers")
    if settings.layers > len(tensors):
        raise NlpkitError(f"{source}: config and weights do not belong together")
    try:
        for name, rows in (
            ("wte.weight", settings.vocab_size),
            ("wpe.weight", settings.block_size),
        ):
            if tensors[name].shape != (rows, settings.dim):  # before room for such sizes is made
                raise NlpkitError(
                    f"{source}: weights do not fit the configuration: {name} is of size "
                    f"{tuple(tensors[name].shape)}, not {(rows, settings.dim)}"
                )
        ours = _from_theirs(settings, tensors, transposed)
        if not settings.tied:
            ours["head.weight"] = tensors["lm_head.weight"]
    except KeyError as error:
        raise NlpkitError(f"{source}: the weights lack {error.args[0]}") from None
    except (RuntimeError, IndexError) as error:  # a tensor of three dimensions, or of none
        reason = str(error).split("\n")[0]
        raise NlpkitError(f"{source}: weights do not fit the configuration: {reason}") from None
    _check_leftovers(settings, tensors, source)
    model = empty_model(settings)
    ours = {name: value.float().contiguous() for name, value in ours.items()}
    return GptModel(adopt_weights(model, ours, source), codec)


def _is_mask(name: str) -> bool:
    """The causal mask, which older versions of transformers saved as well."""
    return name.endswith((".attn.bias", ".attn.masked_bias"))


def _check_leftovers(
    settings: ModelSettings, tensors: Mapping[str, Tensor], source: str | os.PathLike[str]
) -> None:
    """Refuse tensors of the model that its configuration does not know, such as further layers."""
    kinds = ("weight", "bias") if settings.bias else ("weight",)
    used = {"lm_head.weight", *_OUTSIDE.values()}
    used |= {f"{their}.{kind}" for _, their in _norm_names(settings) for kind in kinds}
    linears = ("attn.c_attn", *_BLOCK_LINEARS.values())
    used |= {
        f"h.{layer}.{their}.{kind}"
        for layer in range(settings.layers)
        for their in linears
        for kind in kinds
    }
    for name in sorted(tensors):
        inside = name.startswith(("wte.", "wpe.", "h.", "ln_f.", "lm_head."))
        if inside and name not in used and not _is_mask(name):
            raise NlpkitError(f"{source}: the configuration does not know the weights {name}")
    head = tensors.get("lm_head.weight")
    if settings.tied and head is not None and not torch.equal(head, tensors["wte.weight"]):
        raise NlpkitError(
            f"{source}: tie_word_embeddings, but lm_head.weight is not wte.weight",
            hint='"tie_word_embeddings": false in config.json, if that is what was trained',
        )


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
                f"this model is not of GPT-2's kind, which is all that form can hold ({name})",
                hint="a model that was imported, or trained with recipe gpt2 "
                "(size gpt2 means the sizes alone)",
            )
    if not isinstance(gpt.codec, Subwords):
        raise NlpkitError(
            "a character or byte model has no tokenizer that transformers loads",
            hint="a model that was trained with the subwords of a tokenizer.json",
        )
    check_export(folder)
    names = {value: key for key, value in reversed(_ACTIVATIONS.items())}
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
        "layer_norm_epsilon": _EPSILON,
        "tie_word_embeddings": settings.tied,
        "bos_token_id": end,
        "eos_token_id": end,
    }
    names_file: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": settings.block_size,
        "clean_up_tokenization_spaces": False,  # ids give the text back as it was
    }
    if end is not None:  # a token that is not there would be added, with an id beyond the model's
        names_file |= {"bos_token": END_OF_TEXT, "eos_token": END_OF_TEXT}
    with folders.atomic_folder(folder) as path:
        modeldir.write_text(path / "config.json", json.dumps(config, indent=2) + "\n")
        save_codec(gpt.codec, path)
        modeldir.write_text(path / "tokenizer_config.json", json.dumps(names_file) + "\n")
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


def _check_heads(sizes: Mapping[str, int], source: str | os.PathLike[str]) -> None:
    if sizes["n_embd"] % sizes["n_head"]:
        raise NlpkitError(
            f"{source}: n_head {sizes['n_head']} does not divide n_embd {sizes['n_embd']}"
        )
