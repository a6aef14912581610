"""Text to ids and back for models of running text: characters, bytes, words or subwords.

A model folder holds what its codec needs: ``characters.json``, ``words.txt``, ``tokenizer.json``,
or nothing for bytes.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from nlpkit import modeldir
from nlpkit.errors import NlpkitError
from nlpkit.text.characters import Characters
from nlpkit.text.subwords import END_OF_TEXT, Subwords, whole_characters
from nlpkit.text.word_codec import FILE as _WORDS
from nlpkit.text.word_codec import KINDS as WORD_KINDS
from nlpkit.text.word_codec import MARK, Words

_CHARACTERS = "characters.json"
_SUBWORDS = "tokenizer.json"
_BROKEN = "\ufffd"  # how the beginning of an unfinished UTF-8 character looks


class Codec(Protocol):
    """What every codec can do."""

    def __len__(self) -> int: ...

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Iterable[int]) -> str: ...


class Bytes:
    """The 256 bytes of UTF-8.

    >>> Bytes().encode("é"), Bytes().decode([195, 169])
    ([195, 169], 'é')
    """

    def __len__(self) -> int:
        return 256

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
        self._ids: list[int] = list(before[-1:]) if isinstance(codec, Words) else []
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


def load_codec(folder: Path, vocab_size: int, kind: str = "word") -> Codec:
    """The codec of a model folder; ``kind`` says how its words, if it has some, are cut."""
    codec: Codec
    if (folder / _WORDS).is_file():
        codec = Words.load(folder / _WORDS, kind)
    elif (folder / _SUBWORDS).is_file():
        codec = Subwords.load(str(folder / _SUBWORDS))
    elif (folder / _CHARACTERS).is_file():
        file = folder / _CHARACTERS
        codec = Characters.from_file(modeldir.read_json(file), str(file))
    else:
        codec = Bytes()
    check_sizes(codec, vocab_size, folder)
    return codec


def check_sizes(codec: Codec, vocab_size: int, source: str | os.PathLike[str]) -> None:
    """Refuse a tokenizer that is not the model's; its embedding may be padded to a round number."""
    padding = max(64, len(codec) // 50) if isinstance(codec, Subwords) else 1
    if not len(codec) <= vocab_size < len(codec) + padding:
        raise NlpkitError(
            f"{source}: the tokenizer has {len(codec)} ids, the model {vocab_size}",
            hint="the tokenizer the model was trained with",
        )
    if count_ids(codec) > vocab_size:
        raise NlpkitError(
            f"{source}: the tokenizer has ids up to {count_ids(codec) - 1}, the model {vocab_size}",
            hint="the tokenizer the model was trained with",
        )


def check_same_codec(codec: Codec, tokenizer: str) -> None:
    """Refuse ``char``, ``byte`` or the path of a ``tokenizer.json`` that is not what a model has.

    >>> check_same_codec(Bytes(), "byte")
    """
    if tokenizer in ("char", "byte"):
        same = isinstance(codec, Characters if tokenizer == "char" else Bytes)
    elif tokenizer in WORD_KINDS:
        same = isinstance(codec, Words) and codec.kind == tokenizer
    else:
        given = Subwords.load(tokenizer)
        same = isinstance(codec, Subwords) and given.backend.to_str() == codec.backend.to_str()
    if not same:
        kinds = {Characters: "characters", Bytes: "bytes", Words: "words"}
        kind = kinds.get(type(codec), "subwords of its own")
        raise NlpkitError(
            f"`tokenizer` {tokenizer} is not that of the `init` model, which knows {kind}",
            hint="leave out `tokenizer`",
        )


def save_codec(codec: Codec, folder: Path) -> None:
    """Write what ``load_codec`` needs."""
    if isinstance(codec, Words):
        codec.save(folder)
    elif isinstance(codec, Subwords):
        codec.save(str(folder / _SUBWORDS))
    elif isinstance(codec, Characters):
        text = json.dumps(codec.characters, ensure_ascii=False)
        modeldir.write_text(folder / _CHARACTERS, text + "\n")


def end_id(codec: Codec) -> int | None:
    """The id of the end-of-text mark, which only subwords can have."""
    index = codec.backend.token_to_id(END_OF_TEXT) if isinstance(codec, Subwords) else None
    return None if index is None else int(index)


def first_id(codec: Codec) -> int | None:
    """The id an empty prompt begins with: end-of-text where there is one, else a line end."""
    if isinstance(codec, Words):
        return MARK
    if isinstance(codec, Subwords):
        return end_id(codec)
    newline = codec.encode("\n") if isinstance(codec, Bytes) or "\n" in codec.ids else [0]  # type: ignore[attr-defined]
    return newline[0]


def count_ids(codec: Codec) -> int:
    """One more than the largest id; a tokenizer may leave some out."""
    return _count_subwords(codec) if isinstance(codec, Subwords) else len(codec)


@functools.lru_cache(maxsize=1)  # a model is checked, then used; a large table takes its time
def _count_subwords(codec: Subwords) -> int:
    return 1 + max(codec.backend.get_vocab().values(), default=-1)
