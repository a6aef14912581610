"""WordPiece: vocabularies that are learned, and what they make of text."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_berts import TOKENS, small_codec

from nlpkit.errors import NlpkitError
from nlpkit.text.wordpiece import SPECIALS, WordPiece

CODEC = small_codec()
PROGRAM = """
from nlpkit.text.wordpiece import WordPiece
texts = ["the cat sat on the mat, the dog ran: déjà vu 東京 " + c for c in "abcdefghij"]
print(WordPiece.train(texts, vocab_size=60).vocabulary())
"""


def test_the_same_text_gives_the_same_vocabulary_in_every_process() -> None:
    found = {
        subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True).stdout
        for _ in range(3)
    }
    assert len(found) == 1
    (tokens,) = found
    assert tokens.startswith("['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', ")
    assert "'##東'" not in tokens


def test_frequent_words_become_one_piece_and_case_is_kept_if_asked_for() -> None:
    texts = ["The Cat sat", "the cat SAT"] * 30
    assert WordPiece.train(texts, vocab_size=60).tokens(
        WordPiece.train(texts, vocab_size=60).encode("THE CAT")
    ) == ["the", "cat"]
    cased = WordPiece.train(texts, vocab_size=60, lower=False)
    assert cased.decode(cased.encode("The Cat")) == "The Cat"
    with pytest.raises(NlpkitError, match="vocab_size"):
        WordPiece.train(texts, vocab_size=5)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=40))
def test_any_text_is_encoded_and_its_pieces_know_where_they_stand(text: str) -> None:
    pieces = CODEC.pieces(text)
    assert pieces.ids == CODEC.encode(text)
    assert all(0 <= a <= b <= len(text) for a, b in pieces.spans)
    assert all(0 <= index < len(TOKENS) for index in pieces.ids)


@given(st.lists(st.sampled_from(["playing", "cats", "the", "dog", "."]), max_size=8))
def test_known_words_come_back(words: list[str]) -> None:
    ids, lengths = CODEC.encode_words(words)
    assert sum(lengths) == len(ids)
    assert CODEC.decode(ids) == " ".join(words)


def test_specials_have_their_ids() -> None:
    assert CODEC.special_ids == [SPECIALS.index(token) for token in SPECIALS]
    assert CODEC.wrap([9], [8]) == [2, 9, 3, 8, 3]
    with pytest.raises(NlpkitError, match=r"no \[MASK\]"):
        _ = WordPiece.from_vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"]).mask_id


@given(st.lists(st.sampled_from([*TOKENS[5:], "[MASK]", "你好", "zzz", "\n", "é"]), max_size=12))
@settings(max_examples=30)
def test_a_long_text_is_read_in_parts_that_make_no_difference(words: list[str]) -> None:
    codec, text = small_codec(), " ".join(words)
    whole = codec.pieces(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nlpkit.text.codec.PART", 24)
        assert codec.pieces(text) == whole
        assert codec.encode(text) == whole.ids
