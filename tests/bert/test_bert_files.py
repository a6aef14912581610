"""Hugging Face's folders in and out: the same states, logits and tokens as transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from small_berts import TEXTS, TOKENS, small_bert, write_vocab

from nlpkit.errors import NlpkitError
from nlpkit.models.bert_model import BertModel
from nlpkit.pretrained.bert import import_bert, open_bert
from nlpkit.pretrained.bert_export import export_bert
from nlpkit.text.wordpiece import WordPiece

SIZES = {"vocab_size": len(TOKENS), "max_position_embeddings": 32}
BERT = {
    **SIZES,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 40,
}
DISTILBERT = {**SIZES, "dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 40}
KINDS = {
    "BertModel": BERT,
    "BertForMaskedLM": BERT,
    "BertForPreTraining": BERT,
    "BertForSequenceClassification": BERT,
    "DistilBertModel": DISTILBERT,
    "DistilBertForMaskedLM": DISTILBERT,
}


def theirs(kind: str, folder: Path, **changes: Any) -> Any:
    """A model of transformers with random weights, saved."""
    transformers = pytest.importorskip("transformers")
    config_kind = "DistilBertConfig" if kind.startswith("Distil") else "BertConfig"
    config = getattr(transformers, config_kind)(**{**KINDS[kind], **changes})
    torch.manual_seed(3)
    model = getattr(transformers, kind)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn(parameter.shape)
    write_vocab(folder)
    model.save_pretrained(folder)
    return model


def outputs(model: Any, idx: torch.Tensor) -> dict[str, torch.Tensor]:
    """What a model of transformers makes of ids."""
    with torch.no_grad():
        out = model(idx, output_hidden_states=True)
    found = {"states": out.hidden_states[-1], "first": out.hidden_states[1]}
    if not type(model).__name__.endswith("Classification"):
        logits = getattr(out, "prediction_logits", None)
        found["logits"] = out.get("logits") if logits is None else logits
        found["pooled"] = out.get("pooler_output")
        found["follows"] = out.get("seq_relationship_logits")
    return {name: value for name, value in found.items() if value is not None}


def ours(bert: BertModel, idx: torch.Tensor) -> dict[str, torch.Tensor]:
    model = bert.model
    layers = model.layers(idx)
    found = {"states": model(idx), "first": layers[1]}
    if model.head is not None:
        found["logits"] = model.predict(found["states"])
    if model.pooler is not None:
        found["pooled"] = model.pooled(found["states"])
    if model.next_sentence is not None:
        found["follows"] = model.follows(found["states"])
    return found


IDX = torch.tensor([[2, 7, 9, 60, 4, 3], [2, 70, 11, 12, 13, 3]])


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_what_transformers_gives_and_goes_back(kind: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    model = theirs(kind, tmp_path / "hf", layer_norm_eps=1e-6)
    bert = import_bert(tmp_path / "hf")
    mine = ours(bert, IDX)
    for name, value in outputs(model, IDX).items():
        torch.testing.assert_close(mine[name], value, atol=2e-5, rtol=1e-4)
    bert.save(tmp_path / "ours")
    again = BertModel.load(tmp_path / "ours")
    assert torch.equal(again.model(IDX), mine["states"])
    export_bert(again, tmp_path / "back")
    back = getattr(transformers, kind).from_pretrained(tmp_path / "back").eval()
    for name, value in outputs(back, IDX).items():
        torch.testing.assert_close(mine[name], value, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("lower", [True, False])
def test_tokens_are_those_of_transformers_from_either_file(lower: bool, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    write_vocab(tmp_path / "txt", lower=lower)
    reference = transformers.BertTokenizer.from_pretrained(tmp_path / "txt")
    reference.save_pretrained(tmp_path / "json")
    assert (tmp_path / "json" / "tokenizer.json").is_file()
    for folder in ("txt", "json"):
        codec = WordPiece.load(tmp_path / folder)
        assert codec.lower == lower
        for text in [*TEXTS, "[CLS] a [MASK]!", "a" * 101, "É\u0301 \u00ad x\ty\n z"]:
            assert codec.tokens(codec.encode(text)) == reference.tokenize(text)
            assert codec.wrap(codec.encode(text)) == reference(text)["input_ids"]


def test_padding_and_segments_are_those_of_transformers(tmp_path: Path) -> None:
    model = theirs("BertModel", tmp_path / "hf")
    bert = import_bert(tmp_path / "hf")
    rows = [[2, 7, 9, 3, 8, 3], [2, 7, 3], [2, 9, 9, 9, 3, 7, 3]]
    segments = [[0, 0, 0, 0, 1, 1], [0, 0, 0], [0, 0, 0, 0, 0, 1, 1]]
    found = {}
    for batch, states, inside in bert.states(rows, segments, batch_tokens=21):
        for number, state, kept in zip(batch, states, inside, strict=True):
            found[number] = state[kept]
    for number, (row, kinds) in enumerate(zip(rows, segments, strict=True)):
        with torch.no_grad():
            want = model(torch.tensor([row]), token_type_ids=torch.tensor([kinds]))[0][0]
        torch.testing.assert_close(found[number], want, atol=2e-5, rtol=1e-4)


def sentence_folder(folder: Path, **pooling: bool) -> None:
    theirs("BertModel", folder)
    kinds = ["Transformer", "Pooling", "Normalize"]
    modules = [
        {"path": f"{i}_{kind}" if i else "", "type": f"sentence_transformers.models.{kind}"}
        for i, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 10}')


def test_a_sentence_encoder_brings_its_pooling(tmp_path: Path) -> None:
    sentence_folder(tmp_path / "st", pooling_mode_cls_token=True, pooling_mode_mean_tokens=False)
    bert = open_bert(tmp_path / "st")
    assert (bert.text_vectors.pooling, bert.text_vectors.normalize, bert.max_length) == (
        "cls",
        True,
        10,
    )
    vectors = bert.vectors(["the cat", "the cat sat on the mat in paris"])
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(2))
    export_bert(bert, tmp_path / "out")
    again = import_bert(tmp_path / "out")
    assert again.text_vectors == bert.text_vectors


def test_a_long_text_is_read_whole_in_parts() -> None:
    bert = small_bert()
    text = "cat " * 60
    ids = bert.codec.encode(text)
    room = bert.max_length - 2
    parts = [bert.codec.wrap(ids[i : i + room]) for i in range(0, len(ids), room)]
    states = torch.cat([bert.model(torch.tensor([row]))[0] for row in parts])
    torch.testing.assert_close(bert.vectors([text, "dog"])[0], states.mean(0), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("modern", [False, True])
def test_vectors_do_not_depend_on_the_company(modern: bool) -> None:
    bert = small_bert(modern=modern)
    alone = torch.cat([bert.vectors([text]) for text in TEXTS])
    torch.testing.assert_close(bert.vectors(TEXTS), alone, atol=1e-5, rtol=1e-4)


def test_a_modern_model_is_saved_and_read_but_not_exported(tmp_path: Path) -> None:
    bert = small_bert(modern=True)
    bert.save(tmp_path / "m")
    assert torch.equal(BertModel.load(tmp_path / "m").vectors(TEXTS), bert.vectors(TEXTS))
    with pytest.raises(NlpkitError, match="not of BERT's kind"):
        export_bert(bert, tmp_path / "hf")


def edit(file: Path, **changes: Any) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model_type": "roberta"}, "is a roberta model"),
        ({"position_embedding_type": "relative_key"}, "relative_key"),
        ({"is_decoder": True}, "is_decoder"),
        ({"hidden_act": "swish"}, "swish"),
        ({"num_hidden_layers": 1}, "does not know the weights encoder.layer.1"),
        ({"num_hidden_layers": 3}, "lack encoder.layer.2"),
        ({"num_hidden_layers": 10**9}, "lack most of 1000000000 layers"),
        ({"vocab_size": 50}, "ids up to"),
        ({"intermediate_size": 41}, "blocks.0.up.weight"),
        ({"num_attention_heads": 5}, "does not divide"),
        ({"rope_theta": 1e4}, "rope_theta"),
        ({"hidden_size": "big"}, "hidden_size cannot be 'big'"),
    ],
)
def test_a_configuration_is_read_strictly(
    changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    theirs("BertModel", tmp_path / "hf")
    edit(tmp_path / "hf" / "config.json", **changes)
    with pytest.raises(NlpkitError, match=said):
        import_bert(tmp_path / "hf")


def test_missing_parts_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "hf"
    theirs("BertModel", folder)
    vocab = (folder / "vocab.txt").read_text()
    (folder / "vocab.txt").unlink()
    with pytest.raises(NlpkitError, match="has no vocabulary"):
        import_bert(folder)
    (folder / "vocab.txt").write_text(vocab.replace("[CLS]", "[XXX]"))
    with pytest.raises(NlpkitError, match=r"has no \[CLS\]"):
        import_bert(folder)
    (folder / "vocab.txt").write_text(vocab)
    (folder / "model.safetensors").unlink()
    with pytest.raises(NlpkitError, match="safetensors"):
        import_bert(folder)
    with pytest.raises(NlpkitError, match="no such model"):
        open_bert(tmp_path / "nothing")
    small_bert().save(tmp_path / "ours")
    with pytest.raises(NlpkitError, match="a model of nlpkit already, of kind bert"):
        import_bert(tmp_path / "ours")


def test_other_modules_of_sentence_encoders_are_refused(tmp_path: Path) -> None:
    sentence_folder(tmp_path / "st", pooling_mode_weightedmean_tokens=True)
    with pytest.raises(NlpkitError, match="weightedmean"):
        import_bert(tmp_path / "st")
    edited = (tmp_path / "st" / "modules.json").read_text().replace("Normalize", "Dense")
    (tmp_path / "st" / "modules.json").write_text(edited)
    (tmp_path / "st" / "1_Pooling" / "config.json").write_text('{"pooling_mode": "mean"}')
    with pytest.raises(NlpkitError, match="Dense"):
        import_bert(tmp_path / "st")
