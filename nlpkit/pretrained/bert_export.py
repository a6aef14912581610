"""A BERT as a folder that transformers and sentence-transformers load."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from torch import Tensor

from nlpkit import folders, modeldir
from nlpkit.errors import NlpkitError
from nlpkit.models.bert_model import BertModel
from nlpkit.models.bert_settings import BertSettings
from nlpkit.pretrained.bert import ACTIVATIONS, FORMS, weight_names
from nlpkit.pretrained.hugging_face import check_export
from nlpkit.text.wordpiece import CLS, MASK, PAD, SEP, TOKENIZER, TOKENIZER_CONFIG, UNK, VOCAB

_NAMES = {
    "bert": ("BertModel", "BertForMaskedLM", "BertForPreTraining"),
    "distilbert": ("DistilBertModel", "DistilBertForMaskedLM", ""),
}


def export_bert(bert: BertModel, folder: str | os.PathLike[str]) -> None:
    """Write the model; one with neither segments nor pooler takes the form of a DistilBERT."""
    settings = bert.model.settings
    if settings.recipe != "bert" or settings.activation not in ACTIVATIONS.values():
        raise NlpkitError(
            "this model is not of BERT's kind, which is all that form can hold",
            hint="a model that was imported, or trained with recipe bert",
        )
    kind = "bert" if settings.segments else "distilbert"
    check_export(folder)
    with folders.atomic_folder(folder) as path:
        _write_json(path / "config.json", _config(settings, kind, bert.codec.pad_id))
        bert.codec.save(path / TOKENIZER)
        tokens = bert.codec.vocabulary()
        modeldir.write_text(path / VOCAB, "".join(f"{token}\n" for token in tokens))
        _write_json(path / TOKENIZER_CONFIG, _tokenizer_config(bert))
        tensors = _to_theirs(bert, kind)
        modeldir.save_tensors(tensors, path / "model.safetensors", {"format": "pt"})
        if settings.head == "none":
            _write_sentence_files(bert, path)


def _write_json(file: Path, values: Any) -> None:
    modeldir.write_text(file, json.dumps(values, indent=2) + "\n")


def _config(settings: BertSettings, kind: str, pad_id: int) -> dict[str, Any]:
    form = FORMS[kind]
    names = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    plain, masked, pretraining = _NAMES[kind]
    name = plain if settings.head == "none" else masked
    return {
        "architectures": [pretraining if settings.next_sentence and pretraining else name],
        "model_type": kind,
        **{theirs: getattr(settings, ours) for ours, theirs in form.sizes.items()},
        form.activation: names[settings.activation],
        form.dropout: settings.dropout,
        "layer_norm_eps": settings.norm_eps,
        "tie_word_embeddings": settings.tied,
        "pad_token_id": pad_id,
    }


def _tokenizer_config(bert: BertModel) -> dict[str, Any]:
    return {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": bert.codec.lower,
        "model_max_length": bert.model.settings.block_size,
        "cls_token": CLS,
        "sep_token": SEP,
        "pad_token": PAD,
        "unk_token": UNK,
        "mask_token": MASK,
    }


def _to_theirs(bert: BertModel, kind: str) -> dict[str, Tensor]:
    settings, form = bert.model.settings, FORMS[kind]
    ours = bert.model.state_dict()
    theirs: dict[str, Tensor] = {}
    for our, their in weight_names(settings, form).items():
        for part in ("weight", "bias"):
            if f"{our}.{part}" in ours:
                theirs[f"{their}.{part}"] = ours[f"{our}.{part}"]
    for layer in range(settings.layers):
        attention = f"blocks.{layer}.attention"
        for part in ("weight", "bias"):
            q, k = ours[f"{attention}.qk.{part}"].chunk(2)
            for name, tensor in zip(form.qkv, (q, k, ours[f"{attention}.v.{part}"]), strict=True):
                theirs[f"{form.block}{layer}.{name}.{part}"] = tensor
    if settings.head != "none":
        # below a head the encoder has a name of its own
        inside = ("embeddings.", form.block, "pooler.")
        theirs = {f"{kind}.{n}" if n.startswith(inside) else n: t for n, t in theirs.items()}
        theirs[form.biases[0]] = ours["head.bias"]
        if not settings.tied:
            theirs[form.decoder] = ours["head.weight"]
    return {name: tensor.contiguous() for name, tensor in theirs.items()}


def _write_sentence_files(bert: BertModel, path: Path) -> None:
    """What sentence-transformers reads besides."""
    vectors = bert.text_vectors
    parts = [("", "Transformer"), ("1_Pooling", "Pooling")]
    parts += [("2_Normalize", "Normalize")] if vectors.normalize else []
    modules = [
        {
            "idx": number,
            "name": str(number),
            "path": place,
            "type": f"sentence_transformers.models.{kind}",
        }
        for number, (place, kind) in enumerate(parts)
    ]
    _write_json(path / "modules.json", modules)
    limits = {"max_seq_length": bert.max_length, "do_lower_case": False}
    _write_json(path / "sentence_bert_config.json", limits)
    modes = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max"}
    pooling = {f"pooling_mode_{name}": vectors.pooling == ours for name, ours in modes.items()}
    (path / "1_Pooling").mkdir()
    width = bert.model.settings.dim
    _write_json(path / "1_Pooling" / "config.json", {"word_embedding_dimension": width, **pooling})
