"""A tiny BERT, with random weights, whose words are those of a text."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch

from nlpkit.models.bert import Bert
from nlpkit.models.bert_model import BertModel
from nlpkit.models.bert_settings import BertSettings
from nlpkit.text.wordpiece import SPECIALS, WordPiece


def tiny_bert(texts: Iterable[str], *, block_size: int = 48, dim: int = 32) -> BertModel:
    words = sorted({word for text in texts for word in text.lower().split()})
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    pieces = dict.fromkeys([*SPECIALS, *words, *letters, *(f"##{one}" for one in letters)])
    codec = WordPiece.from_vocab(list(pieces))
    settings = BertSettings(
        vocab_size=len(pieces),
        block_size=block_size,
        layers=2,
        heads=2,
        dim=dim,
        hidden=2 * dim,
        dropout=0.0,
    )
    model = Bert(settings)
    model.initialize(torch.Generator().manual_seed(1))
    for table in (model.embedding, model.position):
        assert table is not None
        table.initialize(torch.Generator().manual_seed(2), 0.3)
    return BertModel(model.eval(), codec)


def save_bert(folder: Path, texts: Iterable[str], **sizes: int) -> str:
    path = folder / "tiny.bert"
    tiny_bert(texts, **sizes).save(path)
    return str(path)
