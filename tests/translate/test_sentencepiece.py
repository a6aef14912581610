"""Models of SentencePiece, written byte by byte, and Marian folders that have them."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from nlpkit.errors import NlpkitError
from nlpkit.pretrained.sentencepiece import read_sentencepieces

# as a unigram model has them: the likeliest way to cut is that with the highest sum
SCORES = {
    "<unk>": 0.0,
    "▁": -3.0,
    "▁low": -2.0,
    "er": -2.5,
    "▁lower": -4.0,  # better than ▁low er, which sums to -4.5
    "▁new": -2.2,
    "est": -2.4,
    "e": -6.0,
    "s": -6.0,
    "t": -6.0,
}


def varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found += bytes([number & 127 | 128])
        number >>= 7
    return found + bytes([number])


def field(number: int, value: bytes | int) -> bytes:
    """A field of a protocol buffer: a whole number, or bytes with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def piece(text: str, score: float, kind: int) -> bytes:
    number = varint(2 << 3 | 5) + struct.pack("<f", score)
    return field(1, field(1, text.encode()) + number + field(3, kind))


def spm(scores: dict[str, float], model_type: int = 1) -> bytes:
    pieces = b"".join(piece(t, s, 2 if t == "<unk>" else 1) for t, s in scores.items())
    return pieces + field(2, field(3, model_type)) + field(3, field(1, b"identity"))


def test_pieces_are_cut_as_scores_say(tmp_path: Path) -> None:
    file = tmp_path / "source.spm"
    file.write_bytes(spm(SCORES))
    # another order than the file's, and a piece that only the other side has
    vocab = {name: n for n, name in enumerate(["</s>", "<unk>", "▁lowest", *sorted(SCORES)[1:]])}
    subwords = read_sentencepieces(file, vocab)
    names = {number: name for name, number in vocab.items()}
    cut = [names[index] for index in subwords.encode("lower  newest low")]
    assert cut == ["▁lower", "▁new", "est", "▁low"]
    assert subwords.decode(subwords.encode("lower newest low")) == "lower newest low"
    assert [names[index] for index in subwords.encode("lowest")] == ["▁low", "est"]
    assert [names[index] for index in subwords.encode("low☃")][-1] == "<unk>"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no pieces"),
        (spm(SCORES)[:-3], "ends too early"),
        (b"\xff" * 12, "without an end"),
        (spm(SCORES, model_type=2), "no unigram model"),
        (b"\x0b\x01", "wire type 3"),
    ],
)
def test_what_is_no_such_model_is_said_in_one_line(
    data: bytes, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "source.spm"
    file.write_bytes(data)
    with pytest.raises(NlpkitError, match=message):
        read_sentencepieces(file, {"<unk>": 0})


def test_a_vocabulary_with_gaps_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "source.spm"
    file.write_bytes(spm(SCORES))
    for vocab in ({"<unk>": 0, "a": 2}, {"a": 0}, {"<unk>": "0"}):
        with pytest.raises(NlpkitError, match="number its pieces"):
            read_sentencepieces(file, vocab)


def test_it_cuts_as_sentencepiece_does(tmp_path: Path) -> None:
    peer = pytest.importorskip("sentencepiece")
    file = tmp_path / "source.spm"
    file.write_bytes(spm(SCORES))
    theirs = peer.SentencePieceProcessor(model_file=str(file))
    vocab = {theirs.id_to_piece(n): n for n in range(theirs.get_piece_size())}
    ours = read_sentencepieces(file, vocab)
    for text in ("lower newest", "low low", "new  lowest", "newer"):
        assert ours.encode(text) == theirs.encode(text)


def test_a_marian_folder_with_sentencepieces_comes_in(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    import torch

    from nlpkit.pretrained.marian import import_marian

    names = ["</s>", "<unk>", *[name for name in SCORES if name != "<unk>"], "<pad>"]
    config = transformers.MarianConfig(
        vocab_size=len(names),
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        max_position_embeddings=32,
        pad_token_id=len(names) - 1,
        decoder_start_token_id=len(names) - 1,
        eos_token_id=0,
        forced_eos_token_id=0,
    )
    torch.manual_seed(1)
    transformers.MarianMTModel(config).save_pretrained(tmp_path)
    for name in ("source.spm", "target.spm"):
        (tmp_path / name).write_bytes(spm(SCORES))
    (tmp_path / "vocab.json").write_text(json.dumps({name: n for n, name in enumerate(names)}))
    translator = import_marian(tmp_path)
    [row] = translator.encode_sources(["lower newest"])
    assert [translator.source.show(index) for index in row[:-1]] == ["lower", "new", "est"]
    [answer] = translator.translate(["lower newest"], beams=1)
    assert isinstance(answer, str)
