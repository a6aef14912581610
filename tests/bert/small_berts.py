"""Tiny BERTs with random weights, and their tokenizers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from nlpkit.models.bert import Bert
from nlpkit.models.bert_model import BertModel
from nlpkit.models.bert_settings import MODERN, BertSettings
from nlpkit.text.wordpiece import SPECIALS, WordPiece

LETTERS = "abcdefghijklmnopqrstuvwxyz"
TOKENS = [
    *SPECIALS,
    *LETTERS,
    *(f"##{letter}" for letter in LETTERS),
    *"ABÉ.,!?'é",
    *"the cat dog sat on mat play ##ing ##s Paris paris is in France france".split(),
]
TEXTS = ["The cat sat on the mat.", "dogs", "Playing in Paris, France: naïve éclair! 東京", ""]


def write_vocab(folder: Path, *, lower: bool = True) -> None:
    """vocab.txt and its options."""
    folder.mkdir(exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(TOKENS) + "\n", encoding="utf-8")
    config = '{"do_lower_case": %s, "tokenizer_class": "BertTokenizer"}'
    (folder / "tokenizer_config.json").write_text(config % str(lower).lower())


def small_codec() -> WordPiece:
    return WordPiece.from_vocab(TOKENS)


def small_bert(seed: int = 1, *, modern: bool = False, **changes: Any) -> BertModel:
    """A model with weights large enough to make a difference."""
    sizes = {"dim": 16, "heads": 2, "hidden": 32, "layers": 2, "block_size": 24}
    kind = MODERN if modern else {}
    settings = BertSettings(**{**kind, **sizes, "vocab_size": len(TOKENS), **changes})
    model = Bert(settings)
    generator = torch.Generator().manual_seed(seed)
    model.initialize(generator)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    return BertModel(model.requires_grad_(False).eval(), small_codec())
