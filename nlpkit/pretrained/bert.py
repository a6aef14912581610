"""BERT, DistilBERT and sentence encoders such as MiniLM, as Hugging Face's folders hold them.

Names are theirs on one side and ours on the other; this module and ``bert_export`` alone know both.
``config.json`` is read strictly. A folder of sentence-transformers also says how the states of a
text become one vector (``modules.json`` and ``1_Pooling/config.json``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nlpkit import modeldir, textio
from nlpkit.errors import NlpkitError
from nlpkit.models.bert_model import BertModel, TextVectors, adopt_tensors, check_vocabulary
from nlpkit.models.bert_settings import BertSettings
from nlpkit.pretrained.hugging_face import (
    HARMLESS,
    read_config,
    read_model_config,
    read_size,
    read_switch,
    read_tensors,
    refuse_unknown,
)
from nlpkit.text.wordpiece import WordPiece

HINT = "a folder of a BERT, a DistilBERT or a sentence encoder of that kind"
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
}


class Form(NamedTuple):
    """How one of the two forms calls its settings and its weights."""

    sizes: dict[str, str]  # ours -> theirs
    activation: str
    dropout: str
    harmless: frozenset[str]
    outside: dict[str, str]  # modules outside of the blocks
    block: str  # before the number of a block
    inside: dict[str, str]  # modules of a block, but for q, k and v
    qkv: tuple[str, str, str]
    head: dict[str, str]
    decoder: str  # the head's matrix
    biases: tuple[str, ...]  # of the head: the same numbers, by one name or two


_SIZES = {"vocab_size": "vocab_size", "block_size": "max_position_embeddings"}
FORMS = {
    "bert": Form(
        sizes={
            **_SIZES,
            "layers": "num_hidden_layers",
            "heads": "num_attention_heads",
            "dim": "hidden_size",
            "hidden": "intermediate_size",
            "segments": "type_vocab_size",
        },
        activation="hidden_act",
        dropout="hidden_dropout_prob",
        harmless=frozenset({"attention_probs_dropout_prob", "classifier_dropout"}),
        outside={
            "embedding": "embeddings.word_embeddings",
            "position": "embeddings.position_embeddings",
            "segment": "embeddings.token_type_embeddings",
            "embedding_norm": "embeddings.LayerNorm",
            "pooler": "pooler.dense",
            "next_sentence": "cls.seq_relationship",
        },
        block="encoder.layer.",
        inside={
            "attention.output": "attention.output.dense",
            "norm_1": "attention.output.LayerNorm",
            "up": "intermediate.dense",
            "down": "output.dense",
            "norm_2": "output.LayerNorm",
        },
        qkv=("attention.self.query", "attention.self.key", "attention.self.value"),
        head={
            "head.transform": "cls.predictions.transform.dense",
            "head.norm": "cls.predictions.transform.LayerNorm",
        },
        decoder="cls.predictions.decoder.weight",
        biases=("cls.predictions.bias", "cls.predictions.decoder.bias"),
    ),
    "distilbert": Form(
        sizes={
            **_SIZES,
            "layers": "n_layers",
            "heads": "n_heads",
            "dim": "dim",
            "hidden": "hidden_dim",
        },
        activation="activation",
        dropout="dropout",
        harmless=frozenset(
            {"attention_dropout", "qa_dropout", "seq_classif_dropout", "sinusoidal_pos_embds"}
        ),
        outside={
            "embedding": "embeddings.word_embeddings",
            "position": "embeddings.position_embeddings",
            "embedding_norm": "embeddings.LayerNorm",
        },
        block="transformer.layer.",
        inside={
            "attention.output": "attention.out_lin",
            "norm_1": "sa_layer_norm",
            "up": "ffn.lin1",
            "down": "ffn.lin2",
            "norm_2": "output_layer_norm",
        },
        qkv=("attention.q_lin", "attention.k_lin", "attention.v_lin"),
        head={"head.transform": "vocab_transform", "head.norm": "vocab_layer_norm"},
        decoder="vocab_projector.weight",
        biases=("vocab_projector.bias",),
    ),
}
_OTHER_HEADS = ("classifier.", "pre_classifier.", "qa_outputs.", "score.")  # of a task: left out


def open_bert(path: str | os.PathLike[str], device: torch.device | str = "cpu") -> BertModel:
    """A model folder of nlpkit or of Hugging Face, told by its ``config.json``."""
    file = Path(path) / modeldir.CONFIG
    if file.is_file() and "kind" not in read_config(file, HINT):
        bert = import_bert(path)
        bert.model.to(device)
        return bert
    return BertModel.load(path, device)


def import_bert(folder: str | os.PathLike[str]) -> BertModel:
    """Read a folder with ``config.json``, ``*.safetensors`` and a vocabulary."""
    path = Path(folder)
    config = read_model_config(path, HINT)
    kind = config.get("model_type", "bert")
    if kind not in FORMS:
        raise NlpkitError(f"{folder} is a {kind} model", hint=HINT)
    form = FORMS[kind]
    tensors = {
        _modern_name(name.removeprefix(f"{kind}.")): tensor
        for name, tensor in read_tensors(path).items()
    }
    settings = _read_settings(config, form, tensors, folder)
    text_vectors = _read_text_vectors(path, settings)
    codec = WordPiece.load(path)
    check_vocabulary(codec, settings, folder)
    if settings.layers > len(tensors):  # or naming them all takes for ever
        raise NlpkitError(f"{folder}: the weights lack most of {settings.layers} layers")
    try:
        ours = _from_theirs(settings, form, tensors, folder)
    except KeyError as error:
        raise NlpkitError(f"{folder}: the weights lack {error.args[0]}") from None
    model = adopt_tensors(settings, ours, f"{folder}: *.safetensors")
    return BertModel(model, codec, text_vectors=text_vectors)


def _modern_name(name: str) -> str:
    """LayerNorm's parameters had other names in the first files."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace(
        "LayerNorm.beta", "LayerNorm.bias"
    )


def _read_settings(
    config: Mapping[str, Any],
    form: Form,
    tensors: Mapping[str, Tensor],
    folder: str | os.PathLike[str],
) -> BertSettings:
    config = {"type_vocab_size": 2, **config} if "segments" in form.sizes else config
    sizes = {ours: read_size(config, theirs, hint=HINT) for ours, theirs in form.sizes.items()}
    activation = config.get(form.activation, "gelu")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise NlpkitError(f"{folder}: {form.activation} {activation!r} is not supported")
    if config.get("position_embedding_type", "absolute") != "absolute":
        kind = config["position_embedding_type"]
        raise NlpkitError(f"{folder}: position_embedding_type {kind!r} is not supported")
    for name in ("is_decoder", "add_cross_attention", "is_encoder_decoder"):
        if read_switch(config, name, False):
            raise NlpkitError(f"{folder}: {name} is not supported: it is no encoder")
    known = {*form.sizes.values(), form.activation, form.dropout, *form.harmless}
    known |= {"position_embedding_type", "layer_norm_eps", "tie_word_embeddings"}
    refuse_unknown(config, known | HARMLESS, folder)
    numbers = {
        "norm_eps": config.get("layer_norm_eps", 1e-12),
        "dropout": config.get(form.dropout, 0.1),
    }
    for name, value in numbers.items():
        if not isinstance(value, (int, float)) or not 0 <= value < 1:
            raise NlpkitError(f"{folder}: {name} cannot be {value!r}")
    values: dict[str, Any] = {"segments": 0, **sizes, **numbers}
    return BertSettings(
        **values,
        activation=ACTIVATIONS[activation],  # type: ignore[arg-type]
        pooler="pooler.dense.weight" in tensors,
        next_sentence="cls.seq_relationship.weight" in tensors and "pooler.dense.weight" in tensors,
        head="transform" if form.biases[0] in tensors or form.decoder in tensors else "none",
        tied=_is_tied(config, form, tensors, folder),
    )


def _is_tied(
    config: Mapping[str, Any],
    form: Form,
    tensors: Mapping[str, Tensor],
    folder: str | os.PathLike[str],
) -> bool:
    tied = read_switch(config, "tie_word_embeddings", True)
    decoder = tensors.get(form.decoder)
    embedding = tensors.get("embeddings.word_embeddings.weight")
    both = decoder is not None and embedding is not None
    if tied and both and not torch.equal(decoder, embedding):  # type: ignore[arg-type]
        raise NlpkitError(
            f"{folder}: tie_word_embeddings, but {form.decoder} is not the embedding",
            hint='"tie_word_embeddings": false in config.json, if that is what was trained',
        )
    return tied


def weight_names(settings: BertSettings, form: Form) -> dict[str, str]:
    """Our names of whole modules and theirs; q, k, v and the head's matrix and bias are extra."""
    there = {
        "segment": settings.segments > 0,
        "pooler": settings.pooler,
        "next_sentence": settings.next_sentence,
    }
    names = {ours: theirs for ours, theirs in form.outside.items() if there.get(ours, True)}
    for layer in range(settings.layers):
        for ours, theirs in form.inside.items():
            names[f"blocks.{layer}.{ours}"] = f"{form.block}{layer}.{theirs}"
    return names | (form.head if settings.head == "transform" else {})


def _from_theirs(
    settings: BertSettings,
    form: Form,
    theirs: Mapping[str, Tensor],
    folder: str | os.PathLike[str],
) -> dict[str, Tensor]:
    ours: dict[str, Tensor] = {}
    used: set[str] = set()

    def take(name: str) -> Tensor:
        used.add(name)
        return theirs[name].float()

    tables = ("embedding", "position", "segment")
    for our, their in weight_names(settings, form).items():
        for part in ("weight",) if our in tables else ("weight", "bias"):
            ours[f"{our}.{part}"] = take(f"{their}.{part}")
    for layer in range(settings.layers):
        for part in ("weight", "bias"):
            q, k, v = (take(f"{form.block}{layer}.{name}.{part}") for name in form.qkv)
            if q.shape != k.shape:
                raise NlpkitError(f"{folder}: queries and keys of layer {layer} differ in size")
            ours[f"blocks.{layer}.attention.qk.{part}"] = torch.cat([q, k])
            ours[f"blocks.{layer}.attention.v.{part}"] = v
    if settings.head == "transform":
        biases = [name for name in form.biases if name in theirs]
        ours["head.bias"] = [take(name) for name in biases or form.biases[:1]][0]
        if settings.tied:
            used.add(form.decoder)
        else:
            ours["head.weight"] = take(form.decoder)
    for name in sorted(theirs.keys() - used):
        passed_over = name.endswith("position_ids") or name.startswith(_OTHER_HEADS)
        passed_over |= name.startswith("cls.seq_relationship")  # without the pooler it reads
        if not passed_over:
            raise NlpkitError(f"{folder}: the configuration does not know the weights {name}")
    return {name: tensor.contiguous() for name, tensor in ours.items()}


def _read_text_vectors(path: Path, settings: BertSettings) -> TextVectors | None:
    """What the files of sentence-transformers say, if the folder has them."""
    file = path / "modules.json"
    if not file.is_file():
        return None
    modules = _read_json(file)
    pooling, normalize = "mean", False
    for module in modules if isinstance(modules, list) else []:
        kind = str(module.get("type")).rpartition(".")[2] if isinstance(module, dict) else ""
        if kind == "Pooling":
            pooling = _read_pooling(path / Path(str(module.get("path"))).name / "config.json")
        elif kind == "Normalize":
            normalize = True
        elif kind != "Transformer":
            raise NlpkitError(f"{file}: a module {kind or module!r} is not supported", hint=HINT)
    longest = None
    limits = path / "sentence_bert_config.json"
    if limits.is_file():
        values = read_config(limits, HINT)
        if values.get("do_lower_case"):
            raise NlpkitError(
                f"{limits}: do_lower_case is not supported here", hint="a tokenizer's"
            )
        if values.get("max_seq_length") is not None:
            longest = min(settings.block_size, read_size(values, "max_seq_length"))
    return TextVectors(pooling, normalize, longest)  # type: ignore[arg-type]


def _read_pooling(file: Path) -> str:
    config = read_config(file, "the folder as sentence-transformers wrote it")
    modes = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max"}
    named = [config["pooling_mode"]] if isinstance(config.get("pooling_mode"), str) else []
    named += [
        modes.get(name.removeprefix("pooling_mode_"), name)
        for name, value in config.items()
        if name.startswith("pooling_mode_") and value is True
    ]
    if len(set(named)) != 1 or named[0] not in modes.values():
        raise NlpkitError(f"{file}: pooling {' and '.join(named) or 'by nothing'} is not supported")
    return named[0]


def _read_json(file: Path) -> Any:
    try:
        return textio.parse_json(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise NlpkitError(f"cannot read {file}: {error.strerror}") from None
    except ValueError as error:
        raise NlpkitError(f"{file} is damaged: {error}") from None
