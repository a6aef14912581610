"""Text to ids and back for one side of a pair: subwords, characters or words, and features.

A source may have several columns, between tabs: the first is text, the others are features (as in
``gehen<TAB>V;PST;3;SG``), each of which is one symbol. Ids: four specials, tokens, features.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from nlpkit import modeldir, schema
from nlpkit.errors import NlpkitError
from nlpkit.models.seq2seq_settings import SPECIALS, UNKNOWN
from nlpkit.text.characters import Characters
from nlpkit.text.detokenize import detokenize
from nlpkit.text.subwords import Subwords
from nlpkit.text.tokenizers import get_tokenizer
from nlpkit.text.vocab import Vocab

FIRST = len(SPECIALS)  # the id of a codec's first token
NAMES = ("bpe", "char", "word", "whitespace")
_FEATURES = re.compile(r"[;|,\s]+")
_UNKNOWN_TEXT = "⁇"


class Tokens(Protocol):
    """From text to tokens and back; ids start at 0, and -1 is no token."""

    def __len__(self) -> int: ...

    def split(self, text: str) -> list[tuple[str, int]]:
        """Tokens as they stand in the text, with their ids."""

    def join(self, ids: Sequence[int], unknown: Sequence[str]) -> str:
        """Text of ids; each -1 is the next of the ``unknown`` texts."""

    def show(self, index: int) -> str:
        """A token as a person reads it."""

    def write(self, folder: Path, name: str) -> None:
        """Into a folder of a model."""


class SubwordTokens:
    """Byte-level BPE, in which nothing is unknown."""

    def __init__(self, subwords: Subwords, size: int | None = None) -> None:
        self.subwords = subwords
        self.size = size or len(subwords)  # an embedding may have been padded to a round number

    def __len__(self) -> int:
        return self.size

    def split(self, text: str) -> list[tuple[str, int]]:
        ids = self.subwords.encode(text)
        return list(zip(map(self.show, ids), ids, strict=True))

    def join(self, ids: Sequence[int], unknown: Sequence[str]) -> str:
        left = iter(unknown)
        if -1 not in ids:
            return self.subwords.decode(ids)
        return "".join(next(left) if i < 0 else self.subwords.decode([i]) for i in ids)

    def show(self, index: int) -> str:
        return self.subwords.decode([index]).replace(" ", "▁")

    def write(self, folder: Path, name: str) -> None:
        text = self.subwords.backend.to_str(pretty=True)
        modeldir.write_text(folder / f"{name}.tokenizer.json", text + "\n")


class CharacterTokens:
    """Characters that training has seen."""

    def __init__(self, characters: Characters) -> None:
        self.characters = characters

    def __len__(self) -> int:
        return len(self.characters)

    def split(self, text: str) -> list[tuple[str, int]]:
        ids = self.characters.ids
        return [(character, ids.get(character, -1)) for character in text]

    def join(self, ids: Sequence[int], unknown: Sequence[str]) -> str:
        left = iter(unknown)
        return "".join(next(left) if i < 0 else self.characters.characters[i] for i in ids)

    def show(self, index: int) -> str:
        return self.characters.characters[index].replace(" ", "▁")

    def write(self, folder: Path, name: str) -> None:
        text = json.dumps(self.characters.characters, ensure_ascii=False)
        modeldir.write_text(folder / f"{name}.characters.json", text + "\n")


class WordTokens:
    """Words of a vocabulary: as the word tokeniser cuts them, or what stands between spaces."""

    def __init__(self, vocab: Vocab, tokenizer: str) -> None:
        self.vocab, self.name = vocab, tokenizer
        self.tokenizer = get_tokenizer(tokenizer)

    def __len__(self) -> int:
        return len(self.vocab)

    def split(self, text: str) -> list[tuple[str, int]]:
        return [(word, self.vocab.ids.get(word, -1)) for word in self.tokenizer.tokens(text)]

    def join(self, ids: Sequence[int], unknown: Sequence[str]) -> str:
        left = iter(unknown)
        words = [next(left) if i < 0 else self.vocab.tokens[i] for i in ids]
        return detokenize(words) if self.name == "word" else " ".join(words)

    def show(self, index: int) -> str:
        return self.vocab.tokens[index]

    def write(self, folder: Path, name: str) -> None:
        modeldir.write_text(folder / f"{name}.{self.name}.tsv", self.vocab.dumps())


class Codec:
    """One side: tokens and features as the ids of a model.

    >>> codec = make_codec(["low\\tA;B"], "char")
    >>> codec.encode("wolf\\tB")
    [6, 5, 4, 3, 8]
    >>> codec.decode([6, 5, 4])
    'wol'
    """

    def __init__(self, tokens: Tokens, features: Iterable[str] = ()) -> None:
        self.tokens, self.features = tokens, list(features)
        first = FIRST + len(tokens)
        self._feature_ids = {name: first + place for place, name in enumerate(self.features)}

    def __len__(self) -> int:
        return FIRST + len(self.tokens) + len(self.features)

    def pieces(self, text: str) -> list[tuple[str, int]]:
        """What the model reads of a text: tokens and features with their ids."""
        text, _, rest = text.partition("\t")
        found = [
            (token, UNKNOWN if index < 0 else FIRST + index)
            for token, index in self.tokens.split(text)
        ]
        for column in rest.split("\t") if rest else ():
            names = split_features(column)
            found += [(name, self._feature_ids.get(name, UNKNOWN)) for name in names]
        return found

    def encode(self, text: str) -> list[int]:
        """Ids; what is not known is the mark of the unknown."""
        return [index for _, index in self.pieces(text)]

    def decode(self, ids: Iterable[int], unknown: Sequence[str] = ()) -> str:
        """The text of ids, without specials; ``unknown`` are texts for the unknown, in order."""
        known = FIRST + len(self.tokens)
        kept = [
            -1 if index == UNKNOWN else index - FIRST
            for index in ids
            if index == UNKNOWN or FIRST <= index < known
        ]
        missing = max(0, kept.count(-1) - len(unknown))
        return self.tokens.join(kept, [*unknown, *[_UNKNOWN_TEXT] * missing])

    def show(self, index: int) -> str:
        """An id as a person reads it."""
        if index < FIRST:
            return SPECIALS[index]
        place = index - FIRST
        if place >= len(self.tokens):
            return self.features[place - len(self.tokens)]
        return self.tokens.show(place)

    def write(self, folder: Path, name: str) -> None:
        """Into a folder that ``modeldir.create`` gave."""
        self.tokens.write(folder, name)
        if self.features:
            text = json.dumps(self.features, ensure_ascii=False)
            modeldir.write_text(folder / f"{name}.features.json", text + "\n")


def split_features(column: str) -> list[str]:
    """The features of a column: what stands between ``;``, ``|``, commas or spaces.

    >>> split_features("V;PST;3;SG")
    ['V', 'PST', '3', 'SG']
    """
    return [name for name in _FEATURES.split(column) if name]


def make_codec(texts: Sequence[str], tokenizer: str, vocab_size: int = 4000) -> Codec:
    """Learn a codec from texts; ``tokenizer`` is one of ``NAMES`` or the path of a subword model.

    ``vocab_size`` is how many subwords or words there are at most.
    """
    firsts = [text.partition("\t")[0] for text in texts]
    columns = {c for text in texts for c in text.split("\t")[1:]}
    features = sorted({name for column in columns for name in split_features(column)})
    tokens: Tokens
    if tokenizer == "bpe":
        size = max(256, vocab_size)
        tokens = SubwordTokens(Subwords.train(firsts, vocab_size=size, specials=()))
    elif tokenizer == "char":
        tokens = CharacterTokens(Characters.from_text(firsts))
    elif tokenizer in ("word", "whitespace"):
        tokenize = get_tokenizer(tokenizer).tokens
        counts = Counter(word for text in firsts for word in tokenize(text))
        vocab = Vocab.from_counts(counts, specials=(), max_size=vocab_size)
        tokens = WordTokens(vocab, tokenizer)
    else:
        tokens = SubwordTokens(Subwords.load(tokenizer))
    return Codec(tokens, features)


def read_codec(folder: Path, name: str, size: int | None = None) -> Codec:
    """What ``Codec.write`` wrote; a table of ``size`` rows may have more than its subwords."""
    listed = folder / f"{name}.features.json"
    features = schema.read(
        list[str], modeldir.read_json(listed) if listed.is_file() else [], str(listed)
    )
    tokens: Tokens | None = None
    file = folder / f"{name}.tokenizer.json"
    if file.is_file():
        rows = None if size is None else size - FIRST - len(features)
        tokens = SubwordTokens(Subwords.load(str(file)), rows)
    file = folder / f"{name}.characters.json"
    if tokens is None and file.is_file():
        tokens = CharacterTokens(Characters.from_file(modeldir.read_json(file), str(file)))
    for kind in ("word", "whitespace"):
        file = folder / f"{name}.{kind}.tsv"
        if tokens is None and file.is_file():
            tokens = WordTokens(Vocab.load(str(file)), kind)
    if tokens is None:
        raise NlpkitError(f"{folder} has no tokeniser of its {name} side", hint=schema.AGAIN)
    return Codec(tokens, features)
