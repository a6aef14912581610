"""Codecs: text to ids and back, saved inside every model folder that uses one.

A member of the family is a class of its own: ``Bytes`` here, ``Characters``, ``Words`` of running
text, ``VocabCodec`` (tokens of a vocabulary), ``Subwords`` (BPE of bytes), ``WordPiece`` in their
modules. Each says in which file of a model folder it keeps what it needs; ``save_codec`` writes
that file, and ``load_codec`` tells by it which codec a model has. A model with several codecs gives
each a name: ``source.tokenizer.json``, ``target.characters.json``.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import ClassVar

from nlpkit.errors import NlpkitError

PART = 1_000_000  # characters that a library is given at once
_BROKEN = "\ufffd"  # how the beginning of an unfinished UTF-8 character looks
# what a folder may hold, and the class that reads it; without any of these it is bytes. The words
# of a tagger or classifier (words.tsv) are not told by their file: a codec of bytes may be beside.
_FAMILY = {
    "words.txt": ("nlpkit.text.word_codec", "Words"),
    "tokenizer.json": ("nlpkit.text.subwords", "Subwords"),
    "characters.json": ("nlpkit.text.characters", "Characters"),
    "word.tsv": ("nlpkit.text.vocab_codec", "VocabCodec"),
    "whitespace.tsv": ("nlpkit.text.vocab_codec", "VocabCodec"),
}


def in_parts(text: str, ends: re.Pattern[str]) -> Iterator[str]:
    """A text in parts of at most ``PART`` characters, each up to the end of a match of ``ends``.

    The ``tokenizers`` library takes some hundred bytes for each character that it sees at once,
    and ends the program when it does not get them. What goes on for too long without an end is
    cut anywhere.
    """
    start = 0
    while len(text) - start > PART:
        found = ends.search(text, start + PART // 2, start + PART)
        end = found.end() if found else start + PART
        yield text[start:end]
        start = end
    yield text[start:]


class Codec(ABC):
    """What every codec can do."""

    units: str  # what its ids stand for, in messages
    file: str = ""  # of a model folder; empty when there is nothing to keep
    spaced: ClassVar[bool] = False  # whether how an id is written depends on the one before

    @abstractmethod
    def __len__(self) -> int:
        """How many ids there are."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Ids of a text."""

    @abstractmethod
    def decode(self, ids: Iterable[int]) -> str:
        """Text of ids."""

    @abstractmethod
    def write(self, file: Path) -> None:
        """Write what it needs, in a folder that ``modeldir.create`` gave."""

    @classmethod
    @abstractmethod
    def read(cls, file: Path, tokenizer: str = "word") -> Codec:
        """What ``write`` wrote; ``tokenizer`` says how words, if it has some, are cut."""

    def show(self, index: int) -> str:
        """An id as a person reads it."""
        return self.decode([index]).replace(" ", "▁")

    def split(self, text: str) -> list[tuple[str, int]]:
        """The tokens of a text with their ids; what is not known has id -1."""
        return [(self.show(index), index) for index in self.encode(text)]

    def fill(self, ids: Sequence[int], unknown: Sequence[str]) -> str:
        """Text of ids; each -1 is the next of the ``unknown`` texts."""
        if -1 not in ids:
            return self.decode(ids)
        left = iter(unknown)
        return "".join([next(left) if index < 0 else self.decode([index]) for index in ids])

    @property
    def n_ids(self) -> int:
        """One more than the largest id; a tokenizer may leave some out."""
        return len(self)

    @property
    def padding(self) -> int:
        """How many more rows than ids an embedding may have, to be of a round size."""
        return 0

    @property
    def end_id(self) -> int | None:
        """The id of the end-of-text mark, where there is one."""
        return None

    @property
    def first_id(self) -> int | None:
        """The id an empty prompt begins with: end-of-text where there is one, else a line end."""
        return self.end_id


class Bytes(Codec):
    """The 256 bytes of UTF-8.

    >>> Bytes().encode("é"), Bytes().decode([195, 169])
    ([195, 169], 'é')
    """

    units = "bytes"

    def __len__(self) -> int:
        return 256

    def write(self, file: Path) -> None:
        """Nothing to keep."""

    @classmethod
    def read(cls, file: Path, tokenizer: str = "word") -> Bytes:
        return cls()

    @property
    def first_id(self) -> int:
        return ord("\n")

    def encode(self, text: str) -> list[int]:
        """Ids of a text; half a surrogate pair, which has no bytes, is U+FFFD."""
        try:
            return list(text.encode("utf-8"))
        except UnicodeEncodeError:
            return list(whole_characters(text).encode("utf-8"))

    def decode(self, ids: Iterable[int]) -> str:
        """Text of ids; what is no UTF-8 becomes U+FFFD."""
        return bytes(ids).decode("utf-8", "replace")


class TextStream:
    """Turns ids that come one by one into text, never half a character.

    >>> stream = TextStream(Bytes())
    >>> [stream.add(195), stream.add(169)]
    ['', 'é']
    """

    def __init__(self, codec: Codec, before: Sequence[int] = ()) -> None:
        """``before`` are ids whose text was shown already: words are written apart from it."""
        self._codec = codec
        # from a little before what was not shown yet
        self._ids: list[int] = list(before[-1:]) if codec.spaced else []
        self._shown = codec.decode(self._ids)  # the text of these that was shown

    def add(self, index: int) -> str:
        """The text that is complete with this id."""
        self._ids.append(index)
        text = self._codec.decode(self._ids)
        if text.endswith(_BROKEN) and len(self._ids) < 8:
            return ""
        return self._show(text)

    def finish(self) -> str:
        """What is left, complete or not."""
        return self._show(self._codec.decode(self._ids)) if self._ids else ""

    def _show(self, text: str) -> str:
        new = text[len(self._shown) :]
        # the last id stays, since some tokenisers write the next one differently behind it
        self._ids = self._ids[-1:]
        self._shown = self._codec.decode(self._ids)
        return new


def save_codec(codec: Codec, folder: Path, name: str = "") -> None:
    """Put a codec into a model folder; one of several has a name there."""
    codec.write(folder / ".".join(filter(None, [name, codec.file])))


def find_codec(folder: Path, name: str = "", tokenizer: str = "word") -> Codec | None:
    """The codec of that name, told by the files of a model folder, if one of them is its."""
    for file, (module, member) in _FAMILY.items():
        path = folder / (f"{name}.{file}" if name else file)
        if path.is_file():
            kind: type[Codec] = getattr(import_module(module), member)
            return kind.read(path, tokenizer)
    return None


def load_codec(folder: Path, vocab_size: int, tokenizer: str = "word") -> Codec:
    """The codec of a model folder; ``tokenizer`` says how its words, if it has some, are cut."""
    codec = find_codec(folder, tokenizer=tokenizer) or Bytes()
    check_sizes(codec, vocab_size, folder)
    return codec


def check_sizes(codec: Codec, vocab_size: int, source: str | os.PathLike[str]) -> None:
    """Refuse a tokenizer that is not the model's; its embedding may be padded to a round number."""
    if not len(codec) <= vocab_size <= len(codec) + codec.padding:
        raise NlpkitError(
            f"{source}: the tokenizer has {len(codec)} ids, the model {vocab_size}",
            hint="the tokenizer the model was trained with",
        )
    if codec.n_ids > vocab_size:
        raise NlpkitError(
            f"{source}: the tokenizer has ids up to {codec.n_ids - 1}, the model {vocab_size}",
            hint="the tokenizer the model was trained with",
        )


def check_same_codec(codec: Codec, tokenizer: str) -> None:
    """Refuse ``char``, ``byte`` or the path of a ``tokenizer.json`` that is not what a model has.

    >>> check_same_codec(Bytes(), "byte")
    """
    from nlpkit.text.subwords import Subwords
    from nlpkit.text.word_codec import KINDS, Words

    if tokenizer in ("char", "byte"):
        same = codec.units == ("characters" if tokenizer == "char" else "bytes")
    elif tokenizer in KINDS:
        same = isinstance(codec, Words) and codec.kind == tokenizer
    else:
        given = Subwords.load(tokenizer)
        same = isinstance(codec, Subwords) and given.backend.to_str() == codec.backend.to_str()
    if not same:
        known = "subwords of its own" if isinstance(codec, Subwords) else codec.units
        raise NlpkitError(
            f"`tokenizer` {tokenizer} is not that of the `init` model, which knows {known}",
            hint="leave out `tokenizer`",
        )


def whole_characters(text: str) -> str:
    """The text with U+FFFD for half surrogate pairs, which are no text to the library."""
    return re.sub(r"[\ud800-\udfff]", "\ufffd", text)
