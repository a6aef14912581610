"""Byte-level subwords: the ids of the tokenizers library, whatever the text."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

from nlpkit.errors import NlpkitError
from nlpkit.text.codec import in_parts
from nlpkit.text.patterns import gpt2
from nlpkit.text.subwords import (
    END_OF_TEXT,
    Subwords,
    SubwordTokenizer,
    byte_alphabet,
    cut_long_pieces,
)
from nlpkit.text.tokenizers import get_tokenizer

CORPUS = [
    "Once upon a time there was a low house, lower than the lowest tree.",
    "\tThe tree -- don't you know? -- said: \"I'm older than 1,000 years!\"\n",
    "naïve café 東京 👍🏽 it's its we'll  two  spaces...",
] * 10
SPECIALS = [END_OF_TEXT, "<|user|>"]
SIZE = 300

WORDS = "low lower the 's don't 'll ... -- <| 1,000 !\" year. year) tree,) ½ ². 東京 é 👍🏽"
SPACES = [" ", "  ", "\t", "\n", "\r\n", "\n\n", " \n", "\n ", "\xa0", "\u3000", "\x85", "\u2028"]
PIECES = [*WORDS.split(), *SPACES, *SPECIALS, "e\u0301", "\x00", "x" * 120]
texts = st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join))


@pytest.fixture(scope="module")
def model() -> Subwords:
    return Subwords.train(CORPUS, vocab_size=SIZE, specials=SPECIALS)


def library_ids(backend: Any, texts: list[str]) -> list[list[int]]:
    return [row.ids for row in backend.encode_batch(texts, add_special_tokens=False)]


def test_training_counts_bytes_merges_and_specials(model: Subwords) -> None:
    assert len(model) == SIZE
    assert model.symbols([0, 1]) == SPECIALS
    assert sorted(model.symbols(range(2, 258))) == sorted(byte_alphabet().values())


def test_training_twice_gives_the_same_model(model: Subwords) -> None:
    again = Subwords.train(CORPUS, vocab_size=SIZE, specials=SPECIALS)
    assert again.backend.to_str() == model.backend.to_str()


def test_a_long_text_is_trained_on_in_parts_that_make_no_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = " ".join(f"low{number} lower lowest" for number in range(200))
    whole = Subwords.train([text], vocab_size=300).backend.to_str()
    monkeypatch.setattr("nlpkit.text.codec.PART", 100)
    given: list[str] = []

    def watched(*arguments: Any) -> list[str]:
        given.extend(in_parts(*arguments))
        return given

    monkeypatch.setattr("nlpkit.text.subwords.in_parts", watched)
    assert Subwords.train([text], vocab_size=300).backend.to_str() == whole
    assert len(given) > 40


def test_a_vocabulary_without_room_for_the_bytes_is_an_error() -> None:
    with pytest.raises(NlpkitError, match="no room for 256 bytes") as error:
        Subwords.train(CORPUS, vocab_size=256)
    assert "257" in error.value.hint


def test_the_alphabet_is_a_letter_for_each_byte() -> None:
    alphabet = byte_alphabet()
    assert len(alphabet) == len(set(alphabet.values())) == 256
    assert sorted(alphabet.values()) == sorted(pre_tokenizers.ByteLevel.alphabet())
    assert alphabet[ord("\n")] == "Ċ"


@given(st.lists(texts, max_size=4))
@settings(max_examples=300, deadline=None)
def test_ids_are_those_of_the_library(model: Subwords, many: list[str]) -> None:
    assert model.encode_many(many) == library_ids(model.backend, many)


@given(texts)
@settings(max_examples=200, deadline=None)
def test_a_new_model_gives_the_same_ids_as_one_that_has_seen_much(
    model: Subwords, text: str
) -> None:
    new = Subwords(model.backend)
    assert new.encode(text) == model.encode(text) == model.encode_many([text, text])[1]


@given(texts)
@settings(max_examples=300, deadline=None)
def test_encoding_and_decoding_gives_every_text_back(model: Subwords, text: str) -> None:
    assert model.decode(model.encode(text)) == text


def test_the_words_of_many_texts_in_several_batches(
    model: Subwords, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Subwords, "BATCH", 3)
    many = [f"the {word} tree," for word in "a b c low lower lowest d e f g".split()]
    assert Subwords(model.backend).encode_many(many) == library_ids(model.backend, many)


def test_the_table_of_seen_words_stays_bounded(
    model: Subwords, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nlpkit.text.subwords.TABLE_LIMIT", 20)
    fresh = Subwords(model.backend)
    many = [f"word{number} low{number}, tree{number}" for number in range(100)]
    for text in many:
        assert fresh.encode(text) == library_ids(model.backend, [text])[0]
    table = fresh._table
    assert table is not None
    assert len(table._first) + len(table._other) < 40


@pytest.mark.parametrize("index", [-1, SIZE, 10**9, 2**40])
def test_ids_outside_the_model_are_an_error(model: Subwords, index: int) -> None:
    for decode in (model.decode, model.symbols):
        with pytest.raises(NlpkitError, match=f"id {index} is outside the subword model"):
            decode([5, index])


# --- endless words ------------------------------------------------------------------------------


@given(st.lists(st.sampled_from(["the", "cat", "é", "  ", "\n", ".", "字", "x" * 30]), max_size=16))
@settings(max_examples=30)
def test_a_long_text_is_read_in_parts_that_make_no_difference(
    model: Subwords, words: list[str]
) -> None:
    text = " ".join(words)
    whole = Subwords(model.backend).encode(text)
    spans = SubwordTokenizer(model).spans(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nlpkit.text.codec.PART", 200)
        assert max(map(len, model.parts(text))) <= 200
        assert model._encode_by_library([text]) == [whole]
        assert SubwordTokenizer(model).spans(text) == spans


@given(
    st.lists(st.sampled_from(["a", "é", "東京", " ", "\n", ".", "7", "'s", "x" * 9])).map("".join)
)
@settings(max_examples=300, deadline=None)
def test_long_pieces_are_cut_and_nothing_else(text: str) -> None:
    split = gpt2()
    parts = cut_long_pieces(text, longest=6)
    pieces = [piece for part in parts for piece in split.tokens(part)]
    assert "".join(parts) == text
    assert max(map(len, pieces), default=0) <= 6
    if max(map(len, split.tokens(text)), default=0) <= 6:
        assert parts == [text]


@pytest.mark.parametrize("letter", [".", "a", " ", "7"])
def test_an_endless_word_takes_no_endless_time(letter: str) -> None:
    text = f"low {letter * 200_000} lower"
    model = Subwords.train(cut_long_pieces(text), vocab_size=300)
    ids = model.encode(text)
    assert model.decode(ids) == text
    assert len(ids) < 2000
    assert len(SubwordTokenizer(model).tokens(text)) < 2000


@given(st.text(st.characters(codec=None), max_size=20))
@settings(max_examples=100, deadline=None)
def test_half_a_surrogate_pair_is_one_unknown_character(model: Subwords, text: str) -> None:
    whole = re.sub("[\ud800-\udfff]", "\ufffd", text)
    assert model.encode(text) == model.encode(whole)
    assert SubwordTokenizer(model).spans(text) == SubwordTokenizer(model).spans(whole)


# --- files --------------------------------------------------------------------------------------


def test_the_file_loads_in_the_library_with_the_same_ids(model: Subwords, tmp_path: Path) -> None:
    path = str(tmp_path / "tokenizer.json")
    model.save(path)
    theirs = Tokenizer.from_file(path)
    text = f"Once upon a time{END_OF_TEXT}\n the  lowest 東京!"
    assert theirs.encode(text).ids == model.encode(text)
    assert Subwords.load(path).encode(text) == model.encode(text)
    assert Subwords.load(str(tmp_path)).encode(text) == model.encode(text)


@pytest.mark.parametrize("form", ["strings", "pairs"])
def test_both_forms_of_merges_are_read(model: Subwords, tmp_path: Path, form: str) -> None:
    config = json.loads(model.backend.to_str())
    pairs = [
        merge.split(" ") if isinstance(merge, str) else merge for merge in config["model"]["merges"]
    ]
    config["model"]["merges"] = [" ".join(pair) for pair in pairs] if form == "strings" else pairs
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    text = "lower than the lowest tree"
    assert Subwords.load(str(path)).encode(text) == model.encode(text)


@pytest.mark.parametrize("version", ["#version: 0.2\n", ""])
def test_gpt2_files_are_read(model: Subwords, tmp_path: Path, version: str) -> None:
    config = json.loads(model.backend.to_str())["model"]
    merges = [m if isinstance(m, str) else " ".join(m) for m in config["merges"]]
    (tmp_path / "vocab.json").write_text(json.dumps(config["vocab"]), encoding="utf-8")
    (tmp_path / "merges.txt").write_text(version + "\n".join(merges) + "\n", encoding="utf-8")
    loaded = Subwords.load(str(tmp_path))
    text = f"Once upon a time{END_OF_TEXT} don't  pay 東京"
    assert loaded.encode(text) == model.encode(text)
    assert loaded.decode(loaded.encode(text)) == text
    assert loaded.encode(END_OF_TEXT) == [0]


def test_merges_whose_pieces_begin_with_a_hash_are_kept(tmp_path: Path) -> None:
    letters = {letter: number for number, letter in enumerate(byte_alphabet().values())}
    vocab = {**letters, "##": 256}
    (tmp_path / "vocab.json").write_text(json.dumps(vocab), encoding="utf-8")
    (tmp_path / "merges.txt").write_text("#version: 0.2\n# #\n", encoding="utf-8")
    assert Subwords.load(str(tmp_path)).encode("##") == [256]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, r"has no vocab\.json"),
        ({"vocab.json": "{}"}, r"has no merges\.txt"),
        ({"vocab.json": "{", "merges.txt": ""}, "not GPT-2"),
        ({"vocab.json": "[1]", "merges.txt": ""}, "not GPT-2"),
        ({"vocab.json": '{"a": 0}', "merges.txt": "a\n"}, "not GPT-2"),
        ({"vocab.json": '{"a": 0}', "merges.txt": "a b\n"}, "not GPT-2"),
        ({"tokenizer.json": "{}"}, r"is not a tokenizer\.json"),
        ({"tokenizer.json": ""}, r"is not a tokenizer\.json"),
        ({"tokenizer.json": "not json"}, r"is not a tokenizer\.json"),
    ],
)
def test_files_that_are_no_model_are_an_error_of_one_line(
    tmp_path: Path, files: dict[str, str], message: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(NlpkitError, match=message) as error:
        Subwords.load(str(tmp_path))
    assert "\n" not in str(error.value)


def test_a_missing_model_says_how_to_make_one() -> None:
    with pytest.raises(NlpkitError, match="no such subword model") as error:
        Subwords.load("nowhere.json")
    assert "bpe train" in error.value.hint


def test_bytes_that_are_not_utf8_are_no_model(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(b"\xff\xfe")
    with pytest.raises(NlpkitError, match="is not a tokenizer"):
        Subwords.load(str(tmp_path))


# --- tokenizers of other kinds ------------------------------------------------------------------


def word_level() -> Any:
    backend = Tokenizer(models.WordLevel({"low": 0, "[UNK]": 1}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    return backend


def byte_level(**changes: Any) -> Any:
    backend = Tokenizer.from_str(Subwords.train(CORPUS, vocab_size=300).backend.to_str())
    for name, value in changes.items():
        setattr(backend, name, value)
    return backend


def with_stripping_token() -> Any:
    backend = byte_level()
    backend.add_special_tokens([AddedToken("<mask>", lstrip=True, rstrip=True)])
    return backend


def with_truncation() -> Any:
    backend = byte_level()
    backend.enable_truncation(3)
    return backend


@pytest.mark.parametrize(
    "make",
    [
        word_level,
        with_stripping_token,
        with_truncation,
        lambda: byte_level(normalizer=normalizers.Lowercase()),
        lambda: byte_level(pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=True)),
        lambda: byte_level(pre_tokenizer=pre_tokenizers.ByteLevel(use_regex=False)),
        lambda: byte_level(pre_tokenizer=pre_tokenizers.Metaspace(), decoder=decoders.Metaspace()),
    ],
    ids=["words", "mask", "cut", "lower", "prefix", "no split", "metaspace"],
)
def test_other_tokenizers_are_left_to_the_library(make: Any) -> None:
    backend = make()
    subwords = Subwords(backend)
    assert subwords._table is None
    many = ["low lower LOW", "Once  upon <mask> a\ntime ", "", " low", "東京 low."]
    assert subwords.encode_many(many) == library_ids(backend, many)


def test_plain_byte_level_takes_the_quick_way(model: Subwords) -> None:
    assert model._table is not None


# --- as a tokeniser -----------------------------------------------------------------------------


@given(texts)
@settings(max_examples=200, deadline=None)
def test_as_a_tokeniser_spans_spell_the_tokens(model: Subwords, text: str) -> None:
    tokenizer = SubwordTokenizer(model)
    spans = tokenizer.spans(text)
    assert [text[start:end] for start, end in spans] == tokenizer.tokens(text)
    assert "".join(tokenizer.tokens(text)) == text
    edges = [edge for span in spans for edge in span]
    assert edges == sorted(edges)


def test_a_tokeniser_by_the_path_of_its_file(model: Subwords, tmp_path: Path) -> None:
    path = str(tmp_path / "tokenizer.json")
    model.save(path)
    assert "".join(get_tokenizer(path).tokens("the lowest 東京")) == "the lowest 東京"


def test_an_id_beyond_all_memory_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    Subwords.train(["a b c"] * 5, vocab_size=260).save(str(file))
    text = file.read_text(encoding="utf-8")
    changed = re.sub(r'"a": \d+', '"a": 2147483648', text)
    assert changed != text
    file.write_text(changed, encoding="utf-8")
    with pytest.raises(NlpkitError, match="an id of 100000000 or more"):
        Subwords.load(str(file))
