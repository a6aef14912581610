"""Marian's Transformers as Hugging Face keeps them (the OPUS-MT models): in and out.

Ids here begin with four specials of our own, behind which all of theirs stand in their order; the
head scores exactly those that theirs does. Their tokenizer is a ``tokenizer.json``, or two models
of SentencePiece (``source.spm``, ``target.spm``) whose pieces ``vocab.json`` numbers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nlpkit import folders, modeldir
from nlpkit.errors import NlpkitError
from nlpkit.models.seq2seq import EncoderDecoder, empty_seq2seq
from nlpkit.models.seq2seq_settings import END, PAD, SPECIALS, START, UNKNOWN, Seq2SeqArchitecture
from nlpkit.pretrained.hugging_face import (
    HARMLESS,
    check_export,
    read_config,
    read_model_config,
    read_size,
    read_switch,
    read_tensors,
    refuse_unknown,
)
from nlpkit.pretrained.sentencepiece import read_sentencepieces
from nlpkit.tasks.translate.codecs import FIRST, SideCodec
from nlpkit.tasks.translate.model import Translator
from nlpkit.text.subwords import Subwords

__all__ = ["check_export", "export_marian", "import_marian"]

_ACTIVATIONS = {"swish": "silu", "silu": "silu", "relu": "relu", "gelu": "gelu"}
_SIZES = (
    "d_model vocab_size encoder_layers decoder_layers encoder_attention_heads "
    "decoder_attention_heads encoder_ffn_dim decoder_ffn_dim max_position_embeddings"
).split()
_HARMLESS = HARMLESS | set(
    "activation_dropout attention_dropout dropout encoder_layerdrop decoder_layerdrop init_std "
    "classif_dropout classifier_dropout num_hidden_layers is_encoder_decoder max_new_tokens".split()
)
_FORBIDDEN = {  # with what they must be
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "add_bias_logits": False,
    "static_position_embeddings": True,
    "extra_pos_embeddings": 0,
    "share_encoder_decoder_embeddings": True,
    "tie_word_embeddings": True,
}
_NEVER = -1e9  # the bias of an id that is not written
_NORMS = {"norm_1": "self_attn_layer_norm", "norm_2": "final_layer_norm"}
_LINEARS = {"up": "fc1", "down": "fc2"}


# --- in -----------------------------------------------------------------------------------------


def import_marian(folder: str | os.PathLike[str]) -> Translator:
    """Read a folder with ``config.json``, ``*.safetensors`` and a tokenizer."""
    path = Path(folder)
    config = read_model_config(path, "a Hugging Face folder of a Marian model")
    if config.get("model_type") != "marian":
        raise NlpkitError(f"{folder} is a {config.get('model_type')} model, not a marian one")
    sizes = {name: read_size(config, name, hint="a Marian model") for name in _SIZES}
    _check_config(config, sizes, folder)
    tensors = read_tensors(path)
    marks = {name: config.get(f"{name}_token_id") for name in ("pad", "eos", "decoder_start")}
    for name, index in marks.items():
        if not isinstance(index, int) or not 0 <= index < sizes["vocab_size"]:
            raise NlpkitError(f"{folder}: {name}_token_id cannot be {index!r}")
    source, target = _read_codecs(path, sizes["vocab_size"])
    unknown = _unknown_id(source)
    theirs = {PAD: marks["pad"], END: marks["eos"], UNKNOWN: unknown}
    ours = _rows(sizes["vocab_size"], theirs)  # for each of their ids, ours
    shape = Seq2SeqArchitecture(
        model="transformer",
        source_vocab=FIRST + sizes["vocab_size"],
        target_vocab=FIRST + sizes["vocab_size"],
        joint=True,
        outputs=sizes["vocab_size"],
        dim=sizes["d_model"],
        layers=sizes["encoder_layers"],
        decoder_layers=sizes["decoder_layers"],
        max_length=sizes["max_position_embeddings"],
        heads=sizes["encoder_attention_heads"],
        hidden=sizes["encoder_ffn_dim"],
        norm="post",
        positions="sinusoidal",
        activation=_ACTIVATIONS[config["activation_function"]],  # type: ignore[arg-type]
        bias=True,
        norm_gains=True,
        qk_norm=False,
        scale_embedding=read_switch(config, "scale_embedding", False),
        output_bias=True,
        halves=True,
        start=PAD if marks["decoder_start"] == marks["pad"] else START,
    )
    state = _from_theirs(tensors, shape, ours, int(marks["decoder_start"] or 0), folder)
    return Translator(_adopt(shape, state, folder), source, target)


def _check_config(config: Mapping[str, Any], sizes: Mapping[str, int], folder: Any) -> None:
    for name, wanted in _FORBIDDEN.items():
        if config.get(name, wanted) != wanted:
            raise NlpkitError(f"{folder}: {name} {config[name]} is not supported")
    for name in ("attention_heads", "ffn_dim"):
        if sizes[f"encoder_{name}"] != sizes[f"decoder_{name}"]:
            raise NlpkitError(f"{folder}: encoder and decoder differ in {name}: not supported")
    if config.get("decoder_vocab_size") not in (None, sizes["vocab_size"]):
        raise NlpkitError(f"{folder}: two vocabularies are not supported")
    activation = config.get("activation_function", "gelu")
    if activation not in _ACTIVATIONS:
        raise NlpkitError(f"{folder}: activation_function {activation} is not supported")
    known = {*_SIZES, *_FORBIDDEN, "activation_function", "scale_embedding", "decoder_vocab_size"}
    refuse_unknown(config, known | _HARMLESS, folder)


def _rows(size: int, theirs: Mapping[int, int | None]) -> Tensor:
    """Our id of each of theirs: a special of ours if it is one, else four more than theirs."""
    ours = torch.arange(size) + FIRST
    for special, index in theirs.items():
        if index is not None:
            ours[index] = special
    return ours


def _unknown_id(codec: SideCodec) -> int | None:
    assert isinstance(codec.tokens, Subwords)
    found = codec.tokens.backend.token_to_id("<unk>")
    return None if found is None else int(found)


def _read_codecs(path: Path, size: int) -> tuple[SideCodec, SideCodec]:
    if (path / "tokenizer.json").is_file():
        codec = SideCodec(Subwords.load(str(path / "tokenizer.json")), n_tokens=size)
        return codec, codec
    for name in ("vocab.json", "source.spm", "target.spm"):
        if not (path / name).is_file():
            raise NlpkitError(
                f"{path} has no {name}", hint="a tokenizer.json, or vocab.json and two .spm files"
            )
    vocab = read_config(path / "vocab.json", "the numbers of all pieces")
    source, target = (
        SideCodec(read_sentencepieces(path / name, vocab), n_tokens=size)
        for name in ("source.spm", "target.spm")
    )
    return source, target


def _names(shape: Seq2SeqArchitecture) -> dict[str, str]:
    """Our modules and theirs, of what is one for one."""
    found: dict[str, str] = {}
    for side, layers in (("encoder", shape.layers), ("decoder", shape.depth)):
        for layer in range(layers):
            here, there = f"{side}.{layer}", f"model.{side}.layers.{layer}"
            pairs = {**_NORMS, **_LINEARS}
            pairs |= {"attention.v": "self_attn.v_proj", "attention.output": "self_attn.out_proj"}
            if side == "decoder":
                pairs |= {
                    "norm_cross": "encoder_attn_layer_norm",
                    "cross.v": "encoder_attn.v_proj",
                    "cross.output": "encoder_attn.out_proj",
                }
            found |= {f"{here}.{one}": f"{there}.{other}" for one, other in pairs.items()}
    return found


def _fused(shape: Seq2SeqArchitecture) -> dict[str, str]:
    """Queries above keys, in ours; apart, in theirs."""
    found = {}
    for side, layers in (("encoder", shape.layers), ("decoder", shape.depth)):
        for layer in range(layers):
            here, there = f"{side}.{layer}", f"model.{side}.layers.{layer}"
            found[f"{here}.attention.qk"] = f"{there}.self_attn"
            if side == "decoder":
                found[f"{here}.cross.qk"] = f"{there}.encoder_attn"
    return found


def _from_theirs(
    tensors: Mapping[str, Tensor],
    shape: Seq2SeqArchitecture,
    ours: Tensor,
    start: int,
    folder: Any,
) -> dict[str, Tensor]:
    try:
        table = tensors.get("model.shared.weight")
        if table is None:
            table = tensors["model.encoder.embed_tokens.weight"]
        state = {
            f"{here}.{kind}": tensors[f"{there}.{kind}"]
            for here, there in _names(shape).items()
            for kind in ("weight", "bias")
        }
        for here, there in _fused(shape).items():
            for kind in ("weight", "bias"):
                both = [tensors[f"{there}.{part}_proj.{kind}"] for part in "qk"]
                state[f"{here}.{kind}"] = torch.cat(both)
        bias = tensors.get("final_logits_bias", torch.zeros(1, len(table)))
        rows = torch.zeros(shape.target_vocab, table.size(1))
        rows[ours] = table.float()
        if shape.start == START:
            rows[START] = table[start].float()
    except (KeyError, RuntimeError, IndexError) as error:
        reason = str(error).split("\n")[0]
        raise NlpkitError(f"{folder}: the weights do not fit config.json: {reason}") from None
    state |= {"target_table.weight": rows, "source_table.weight": rows}
    state |= {"written_ids": ours, "head_bias": bias.flatten().float()}
    return {name: part if name == "written_ids" else part.float() for name, part in state.items()}


def _adopt(shape: Seq2SeqArchitecture, state: dict[str, Tensor], folder: Any) -> EncoderDecoder:
    with torch.device("meta"):
        expected = empty_seq2seq(shape).state_dict()
    for name, part in expected.items():
        if name not in state or state[name].shape != part.shape:
            raise NlpkitError(f"{folder}: the weights do not fit config.json: {name}")
    model = empty_seq2seq(shape)
    model.load_state_dict(state, assign=True)
    model.source_table.weight = model.target_table.weight
    return model.requires_grad_(False).eval()


# --- out ----------------------------------------------------------------------------------------


def export_marian(translator: Translator, folder: str | os.PathLike[str]) -> None:
    """Write a folder that ``transformers`` loads as Marian."""
    shape = translator.model.settings
    wanted: dict[str, Any] = {
        "model": "transformer",
        "members": 1,
        "joint": True,
        "tied": True,
        "norm": "post",
        "positions": "sinusoidal",
        "halves": True,
        "bias": True,
        "norm_gains": True,
        "qk_norm": False,
    }
    for name, value in wanted.items():
        if getattr(shape, name) != value:
            raise NlpkitError(
                f"this model is not of Marian's kind, which is all that form can hold "
                f"({name} {getattr(shape, name)})",
                hint="a model that was imported, or trained as a transformer with marian",
            )
    tokens = translator.source.tokens
    if not isinstance(tokens, Subwords) or translator.source.features:
        raise NlpkitError("a model without subwords, or with features, has no tokenizer there")
    if translator.target is not translator.source:
        raise NlpkitError("a model with two SentencePiece models is kept by its first folder")
    check_export(folder)
    config = {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "activation_function": {"silu": "swish"}.get(shape.activation, shape.activation),
        "vocab_size": shape.target_vocab,
        "decoder_vocab_size": shape.target_vocab,
        "d_model": shape.dim,
        "max_position_embeddings": shape.max_length,
        "scale_embedding": shape.scale_embedding,
        "share_encoder_decoder_embeddings": True,
        "tie_word_embeddings": True,
        "static_position_embeddings": True,
        "pad_token_id": PAD,
        "eos_token_id": END,
        "forced_eos_token_id": END,
        "decoder_start_token_id": shape.start,
        "bos_token_id": START,
        "dropout": shape.dropout,
    }
    for side, layers in (("encoder", shape.layers), ("decoder", shape.depth)):
        config |= {f"{side}_layers": layers, f"{side}_attention_heads": shape.heads}
        config[f"{side}_ffn_dim"] = shape.wide
    names = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": shape.max_length,
        "clean_up_tokenization_spaces": False,
        "pad_token": SPECIALS[PAD],
        "bos_token": SPECIALS[START],
        "eos_token": SPECIALS[END],
        "unk_token": SPECIALS[UNKNOWN],
    }
    with folders.atomic_folder(folder) as path:
        modeldir.write_text(path / "config.json", json.dumps(config, indent=2) + "\n")
        modeldir.write_text(path / "tokenizer.json", _tokenizer(tokens) + "\n")
        modeldir.write_text(path / "tokenizer_config.json", json.dumps(names) + "\n")
        tensors = _to_theirs(translator.model)
        modeldir.save_tensors(tensors, path / "model.safetensors", {"format": "pt"})


def _tokenizer(subwords: Subwords) -> str:
    """The tokenizer with four more ids in front, and the end behind every text."""
    config = json.loads(subwords.backend.to_str())
    model = config["model"]
    if not isinstance(model.get("vocab"), dict):
        raise NlpkitError(f"a tokenizer of type {model.get('type')} cannot be renumbered")
    shifted = {token: index + FIRST for token, index in model["vocab"].items()}
    for place, name in enumerate(SPECIALS):
        shifted.pop(name, None)
        shifted[name] = place
    model["vocab"] = shifted
    config["added_tokens"] = [
        {
            "id": place,
            "content": name,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for place, name in enumerate(SPECIALS)
    ]
    end = SPECIALS[END]
    config["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [
            {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": end, "type_id": 0}},
        ],
        "pair": [
            {"Sequence": {"id": "A", "type_id": 0}},
            {"Sequence": {"id": "B", "type_id": 0}},
            {"SpecialToken": {"id": end, "type_id": 0}},
        ],
        "special_tokens": {end: {"id": end, "ids": [END], "tokens": [end]}},
    }
    return json.dumps(config, ensure_ascii=False, indent=2)


def _to_theirs(model: EncoderDecoder) -> dict[str, Tensor]:
    shape, state = model.settings, model.state_dict()
    tensors = {
        f"{there}.{kind}": state[f"{here}.{kind}"]
        for here, there in _names(shape).items()
        for kind in ("weight", "bias")
    }
    for here, there in _fused(shape).items():
        for kind in ("weight", "bias"):
            for part, value in zip("qk", state[f"{here}.{kind}"].chunk(2), strict=True):
                tensors[f"{there}.{part}_proj.{kind}"] = value.clone()
    bias = torch.full((1, shape.target_vocab), _NEVER)
    written = state.get("written_ids", torch.arange(shape.target_vocab))
    bias[0, written] = state["head_bias"]
    tensors |= {"model.shared.weight": state["target_table.weight"], "final_logits_bias": bias}
    return tensors
