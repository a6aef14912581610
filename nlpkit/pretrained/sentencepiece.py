"""SentencePiece models (``.spm``), read as far as it takes to encode as they do.

The file is a protocol buffer. Of it are read the pieces with their scores (field 1) and the table
of the normaliser (field 3); they make a unigram model of the ``tokenizers`` library (Kudo, 2018).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nlpkit import modeldir
from nlpkit.errors import NlpkitError
from nlpkit.text.subwords import Subwords

_NEVER = -1e4  # the score of a piece that the other side has
_UNIGRAM = 1  # of the types that a trainer can have
_SPACE = "▁"


def read_sentencepieces(file: Path, vocab: Mapping[str, Any]) -> Subwords:
    """A unigram model whose pieces have the numbers of ``vocab``."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    try:
        scores, table, kind = _read(modeldir.read_bytes(file))
    except (IndexError, struct.error, UnicodeDecodeError, ValueError) as error:
        raise NlpkitError(f"{file} is not a SentencePiece model: {error}") from None
    if kind != _UNIGRAM:
        raise NlpkitError(f"{file} is no unigram model: not supported")
    numbers = sorted(vocab.values()) if all(type(n) is int for n in vocab.values()) else []
    if not numbers or numbers != list(range(len(numbers))) or "<unk>" not in vocab:
        raise NlpkitError(f"{file.parent}/vocab.json must number its pieces from 0, <unk> included")
    order = sorted(vocab, key=vocab.__getitem__)
    pieces = [(piece, scores.get(piece, _NEVER)) for piece in order]
    backend = Tokenizer(models.Unigram(pieces, vocab["<unk>"], byte_fallback=False))
    steps: list[Any] = [normalizers.Precompiled(table)] if table else [normalizers.NFKC()]
    steps += [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()]
    backend.normalizer = normalizers.Sequence(steps)
    backend.pre_tokenizer = pre_tokenizers.Metaspace(replacement=_SPACE, prepend_scheme="always")
    backend.decoder = decoders.Metaspace(replacement=_SPACE, prepend_scheme="always")
    return Subwords(backend)


def _read(data: bytes) -> tuple[dict[str, float], bytes, int]:
    """Scores by piece, the normaliser's table, and the type of the model."""
    scores: dict[str, float] = {}
    table, kind = b"", _UNIGRAM
    for number, value in _fields(data):
        if number == 1:
            piece = dict(_fields(value))
            scores[piece[1].decode("utf-8")] = (
                struct.unpack("<f", piece[2])[0] if 2 in piece else 0.0
            )
        elif number == 2:
            kind = dict(_fields(value)).get(3, _UNIGRAM)
        elif number == 3:
            table = dict(_fields(value)).get(2, b"")
    if not scores:
        raise ValueError("it has no pieces")
    return scores, table, kind


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Numbers of fields with their values: whole numbers, or bytes."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        wire = tag & 7
        if wire == 0:
            value, place = _varint(data, place)
            yield tag >> 3, value
            continue
        if wire == 2:
            size, place = _varint(data, place)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"a field of wire type {wire}")
        if place + size > len(data):
            raise ValueError("it ends too early")
        yield tag >> 3, data[place : place + size]
        place += size


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
        if shift > 63:
            raise ValueError("a number without an end")
