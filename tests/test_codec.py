"""The family of codecs: each comes back from its file, told by it, alone and beside another."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlpkit.errors import NlpkitError
from nlpkit.tasks.names.data import Alphabet
from nlpkit.text.characters import Characters
from nlpkit.text.codec import Bytes, Codec, find_codec, load_codec, save_codec
from nlpkit.text.subwords import Subwords
from nlpkit.text.vocab import Vocab
from nlpkit.text.vocab_codec import VECTOR_WORDS, WORDS, VocabCodec
from nlpkit.text.word_codec import Words

TEXT = "the low tower is lower"
VOCAB = Vocab.from_counts(dict.fromkeys(TEXT.split(), 1), specials=())
FAMILY: list[Codec] = [
    Characters.from_text([TEXT]),
    Words(["\n", "<unk>", *TEXT.split()]),
    Subwords.train([TEXT] * 5, vocab_size=262),
    VocabCodec(VOCAB, "whitespace", unknown="", file="whitespace.tsv"),
    VocabCodec(VOCAB, "word", unknown="", file="word.tsv"),
]


@pytest.mark.parametrize("codec", FAMILY, ids=lambda codec: codec.file)
def test_a_codec_is_told_by_its_file_and_comes_back(codec: Codec, tmp_path: Path) -> None:
    save_codec(codec, tmp_path, "target")
    save_codec(Characters.from_text(["xyz"]), tmp_path, "source")
    found = find_codec(tmp_path, "target")
    assert type(found) is type(codec)
    assert found is not None
    assert found.encode(TEXT) == codec.encode(TEXT)
    assert found.decode(found.encode(TEXT)) == TEXT
    assert found.split(TEXT) == codec.split(TEXT)
    assert len(found.split(TEXT)) == len(found.encode(TEXT))
    assert find_codec(tmp_path, "third") is None


def test_a_folder_without_a_file_has_bytes(tmp_path: Path) -> None:
    assert isinstance(load_codec(tmp_path, 256), Bytes)
    # the words of a tagger on a model of bytes are not the model's codec
    save_codec(VocabCodec(Vocab.from_counts({"a": 1})), tmp_path)
    assert isinstance(load_codec(tmp_path, 256), Bytes)


@pytest.mark.parametrize("codec", FAMILY, ids=lambda codec: codec.file)
def test_what_is_unknown_is_filled_in(codec: Codec) -> None:
    [(_, known), *_] = codec.split("the")
    text = codec.fill([known, -1], ["Ω"])
    assert text.startswith(codec.decode([known]))
    assert text.endswith("Ω")


@given(st.lists(st.text(min_size=1), min_size=1, unique=True))
def test_any_words_and_their_vectors_come_back(words: list[str]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        vocab = Vocab.from_counts(dict.fromkeys(words, 1))
        save_codec(VocabCodec(vocab, vector_words=words), folder)
        found = VocabCodec.read(folder / WORDS)
        assert found.vocab.tokens == vocab.tokens
        assert found.vector_words == words
        assert found.encode_tokens(words) == vocab.encode(words)
        assert found.vector_rows(words) == list(range(1, len(words) + 1))
        assert (folder / VECTOR_WORDS).is_file()


def test_words_without_a_mark_of_the_unknown_are_refused(tmp_path: Path) -> None:
    Vocab(["a", "b"], [1, 1]).save(str(tmp_path / WORDS))
    with pytest.raises(NlpkitError, match="it must have <unk>"):
        VocabCodec.read(tmp_path / WORDS)


def test_the_form_of_a_word_is_looked_up() -> None:
    codec = VocabCodec(Vocab.from_counts({"the": 2}), vector_words=["the", "The"], form=str.lower)
    assert codec.encode_tokens(["THE", "cat"]) == [2, 1]
    assert codec.vector_rows(["THE", "The", "cat"]) == [1, 2, 0]
    assert "tHe" in codec
    assert "cat" not in codec


def test_an_alphabet_keeps_its_labels(tmp_path: Path) -> None:
    save_codec(Alphabet("abc", ["de", "fr"]), tmp_path)
    found = Alphabet.read(tmp_path / Alphabet.file)
    assert (found.characters, found.labels, found.encode("cab")) == (
        ["a", "b", "c"],
        ("de", "fr"),
        [4, 2, 3],
    )
