"""Byte-level subwords (BPE): train, encode, decode, and the files of the Hugging Face world.

Training and the odd cases go through the ``tokenizers`` library. Encoding takes a short cut that
gives the same ids: GPT-2's split pattern always begins a new piece at a single space between two
non-spaces, so the ids of a word with the space before it do not depend on its neighbours and can
be kept in a table. Text whose tokenizer works differently goes to the library as it is.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from nlpkit import textio
from nlpkit.errors import NlpkitError
from nlpkit.parallel import in_thread
from nlpkit.text import codec
from nlpkit.text.codec import Codec, in_parts, whole_characters
from nlpkit.text.patterns import LONGEST_KEPT, TABLE_LIMIT, Span, gpt2
from nlpkit.text.tokenizer_json import parse_tokenizer

END_OF_TEXT = "<|endoftext|>"
LONGEST_PIECE = 256  # characters that training looks at together: more than any word has
_PIECE_ENDS = re.compile(r"(?<=\S)(?= \S)")  # where a new piece always begins
MARKS = '.,!?;:)"-'  # behind a letter or digit these are always a piece of their own


def byte_alphabet() -> dict[int, str]:
    """GPT-2's printable stand-in for each byte: itself where it prints, U+0100 and on elsewhere.

    >>> byte_alphabet()[ord("a")], byte_alphabet()[ord(" ")]
    ('a', 'Ġ')
    """
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in printable}
    others = (byte for byte in range(256) if byte not in letters)
    letters.update({byte: chr(256 + index) for index, byte in enumerate(others)})
    return letters


def cut_long_pieces(text: str, longest: int = LONGEST_PIECE) -> list[str]:
    """The text in parts, so that no piece of GPT-2's split pattern is longer than ``longest``.

    Training takes time by the square of a piece's length. A base64 block or a line of 200,000 dots
    is no word, so it is cut; text without such pieces is one part.

    >>> cut_long_pieces("so .......... it is", longest=4)
    ['so ...', '....', '... it is']
    """
    # most texts are told by a quick look: a long piece is within a long word or run of white space
    spaces = re.compile(rf"\s{{{longest + 1}}}")
    if max(map(len, text.split()), default=0) < longest and not spaces.search(text):
        return [text]
    parts = []
    done = 0
    for start, end in gpt2().spans(text):
        for cut in range(start + longest, end, longest):
            parts.append(text[done:cut])
            done = cut
    return [*parts, text[done:]]


class Subwords(Codec):
    """A subword model.

    >>> model = Subwords.train(["low lower lowest"] * 20, vocab_size=270)
    >>> model.decode(model.encode("lower"))
    'lower'
    """

    units, file = "subwords", "tokenizer.json"
    BATCH = 4000  # texts whose new words are learned at a time

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self._specials = [token.content for token in backend.get_added_tokens_decoder().values()]
        newline = backend.token_to_id(byte_alphabet()[ord("\n")])
        is_plain = newline is not None and _splits_at_spaces(json.loads(backend.to_str()))
        self._table = _WordTable(self, newline) if is_plain else None

    def __reduce__(self) -> tuple[type[Subwords], tuple[Any]]:
        return Subwords, (self.backend,)  # to another process, without what was encoded before

    # --- making ---------------------------------------------------------------------------------

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        *,
        vocab_size: int = 8000,
        min_frequency: int = 2,
        specials: Sequence[str] = (END_OF_TEXT,),
    ) -> Subwords:
        """Learn merges from texts. ``vocab_size`` counts everything: bytes, merges and specials.

        Texts that may hold endless words are best cut by ``cut_long_pieces`` before.
        """
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

        smallest = 256 + len(set(specials))
        if vocab_size < smallest:
            raise NlpkitError(
                f"a vocabulary of {vocab_size} has no room for 256 bytes and the special tokens",
                hint=f"`vocab_size` {smallest} or more",
            )
        for token in specials:
            if not token or whole_characters(token) != token:
                raise NlpkitError(f"a special token is some text in UTF-8, not {token!r}")
        backend = Tokenizer(models.BPE())
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            min_frequency=min_frequency,
            special_tokens=list(dict.fromkeys(specials)),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        parts = (part for text in texts for part in in_parts(text, _PIECE_ENDS))
        in_thread(lambda: backend.train_from_iterator(parts, trainer))
        return cls(backend)

    @classmethod
    def load(cls, path: str) -> Subwords:
        """Read a ``tokenizer.json``, or a folder with it or ``vocab.json`` + ``merges.txt``."""
        file = Path(path)
        if file.is_dir():
            if not (file / "tokenizer.json").is_file():
                return cls._load_gpt2(file)
            file = file / "tokenizer.json"
        if not file.exists():
            raise NlpkitError(f"no such subword model: {path}", hint="nlpkit bpe train -o FILE")
        try:
            text = b"".join(textio.read_chunks(str(file))).decode("utf-8")
        except UnicodeDecodeError:
            raise NlpkitError(f"{file} is not a tokenizer.json: it is not UTF-8") from None
        return cls(parse_tokenizer(text, str(file)))

    @classmethod
    def _load_gpt2(cls, folder: Path) -> Subwords:
        from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

        files = [folder / "vocab.json", folder / "merges.txt"]
        for file in files:
            if not file.is_file():
                raise NlpkitError(
                    f"{folder} has no {file.name}",
                    hint="a tokenizer.json, or vocab.json + merges.txt",
                )
        try:
            vocab = textio.parse_json(files[0].read_text(encoding="utf-8"))
            lines = list(textio.read_lines(str(files[1])))
            pairs = [line.split(" ", 1) for line in lines if line and line[:8] != "#version"]
            merges = [(left, right) for left, right in pairs]
            backend = Tokenizer(models.BPE(vocab, merges))
        except Exception as error:  # noqa: BLE001
            reason = str(error).partition("\n")[0]
            raise NlpkitError(
                f"{folder}: not GPT-2's vocab.json and merges.txt: {reason}"
            ) from None
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = decoders.ByteLevel()
        if END_OF_TEXT in vocab:
            backend.add_special_tokens([AddedToken(END_OF_TEXT, special=True, normalized=False)])
        return cls(backend)

    def save(self, path: str) -> None:
        """Write a ``tokenizer.json`` that the ``tokenizers`` library loads."""
        textio.write_text(path, self.backend.to_str(pretty=True) + "\n")

    def write(self, file: Path) -> None:
        self.save(str(file))

    @classmethod
    def read(cls, file: Path, tokenizer: str = "word") -> Subwords:
        return cls.load(str(file))

    # --- using ----------------------------------------------------------------------------------

    @functools.cached_property  # a model is checked, then used; a large table takes its time
    def n_ids(self) -> int:
        return 1 + max(self.backend.get_vocab().values(), default=-1)

    @property
    def padding(self) -> int:
        return max(64, len(self) // 50) - 1

    @property
    def end_id(self) -> int | None:
        index = self.backend.token_to_id(END_OF_TEXT)
        return None if index is None else int(index)

    def __len__(self) -> int:
        return int(self.backend.get_vocab_size())

    def encode(self, text: str) -> list[int]:
        """Ids of a text."""
        return self.encode_many([text])[0]

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of many texts, equal to the library's."""
        if self._table is None:
            return self._encode_by_library(texts)
        rows: list[list[int]] = []
        for start in range(0, len(texts), self.BATCH):
            rows += self._encode_by_table(self._table, texts[start : start + self.BATCH])
        return rows

    def _encode_by_table(self, table: _WordTable, texts: Sequence[str]) -> list[list[int]]:
        rows = table.encode(texts)
        if any(special in "\n".join(texts) for special in self._specials):
            for index, text in enumerate(texts):
                if any(special in text for special in self._specials):
                    rows[index] = None
        # what is missing holds special tokens or odd white space
        left = [text for text, row in zip(texts, rows, strict=True) if row is None]
        by_library = iter(self._encode_by_library(left))
        return [next(by_library) if row is None else row for row in rows]

    def _encode_by_library(self, texts: Sequence[str]) -> list[list[int]]:
        if any(len(text) > codec.PART for text in texts):
            return [
                [index for part in self.parts(text) for index in self._encode_by_library([part])[0]]
                for text in texts
            ]
        try:
            encodings = self.backend.encode_batch_fast(list(texts), add_special_tokens=False)
        except TypeError:
            whole = [whole_characters(text) for text in texts]
            encodings = self.backend.encode_batch_fast(whole, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def parts(self, text: str) -> Iterator[str]:
        """A text of many MB in parts that are encoded as they are in it."""
        return in_parts(text, _PIECE_ENDS)

    def decode(self, ids: Iterable[int]) -> str:
        """Text of ids, special tokens included; bytes that are no UTF-8 become U+FFFD."""
        return self.backend.decode(self._check(ids), skip_special_tokens=False)

    def symbols(self, ids: Iterable[int]) -> list[str]:
        """The subwords as they stand in the vocabulary (``Ġ`` is a space)."""
        return [self.backend.id_to_token(index) for index in self._check(ids)]

    def _check(self, ids: Iterable[int]) -> list[int]:
        ids = list(ids)
        for index in ids:
            if not 0 <= index < 1 << 32 or self.backend.id_to_token(index) is None:
                raise NlpkitError(f"id {index} is outside the subword model of {len(self)} ids")
        return ids


class _WordTable:
    """Ids of words seen before: ``first`` at the start of a text, ``other`` behind a space."""

    BATCH = 200  # words encoded as one text, so that the library is not called for each

    def __init__(self, model: Subwords, separator: int) -> None:
        self._encode = model._encode_by_library
        self._tokenize = model.backend.model.tokenize
        self._separator = separator  # the id of a newline, which never merges with its neighbours
        self._first: dict[str, tuple[int, ...]] = {}
        self._other: dict[str, tuple[int, ...]] = {}

    def encode(self, texts: Sequence[str]) -> list[list[int] | None]:
        """Ids of texts, or nothing for one that has a word the table cannot keep."""
        if len(self._first) + len(self._other) > TABLE_LIMIT:
            self._first.clear()
            self._other.clear()
        split = [text.split(" ") for text in texts]
        openings = [words.pop(0) for words in split]
        self._add_to(self._first, set(openings), "")
        self._add_to(self._other, set().union(*split), " ")
        return [self._look_up(first, others) for first, others in zip(openings, split, strict=True)]

    def _look_up(self, opening: str, others: list[str]) -> list[int] | None:
        try:
            row = list(self._first[opening])
            row.extend(itertools.chain.from_iterable(map(self._other.__getitem__, others)))
        except KeyError:
            return None
        return row

    def _add_to(self, table: dict[str, tuple[int, ...]], words: set[str], before: str) -> None:
        space = byte_alphabet()[ord(" ")] if before else ""
        by_library: list[str] = []
        for word in words:
            if word in table or not 0 < len(word) <= LONGEST_KEPT:
                continue
            core = word.rstrip(MARKS)
            if core.isascii() and core.isalpha():
                # one piece, whose letters stand for themselves in the alphabet of bytes
                ids = table.get(core)
                if ids is None:
                    ids = tuple([token.id for token in self._tokenize(space + core)])
                    table[core] = ids
                if core is not word:
                    table[word] = ids + self._ids_of_marks(word[len(core) :])
            elif word.split() == [word]:
                by_library.append(word)
        self._add_by_library(table, by_library, before)

    def _ids_of_marks(self, marks: str) -> tuple[int, ...]:
        if marks not in self._first:
            self._first[marks] = tuple(self._encode([marks])[0])
        return self._first[marks]

    def _add_by_library(
        self, table: dict[str, tuple[int, ...]], words: Sequence[str], before: str
    ) -> None:
        batches = [words[start : start + self.BATCH] for start in range(0, len(words), self.BATCH)]
        between = f"\n{before}"
        texts = [f"{before}{between.join(batch)}\n" for batch in batches]
        for batch, ids in zip(batches, self._encode(texts), strict=True):
            start = 0
            for word in batch:
                end = ids.index(self._separator, start)
                table[word] = tuple(ids[start:end])
                start = end + 1


def _splits_at_spaces(config: dict[str, Any]) -> bool:
    """Whether a tokenizer is plain byte-level BPE, for which the short cut is exact."""
    model, pre = config["model"], config["pre_tokenizer"] or {}
    post = (config["post_processor"] or {}).get("type")
    plain_pre = pre.get("type") == "ByteLevel" and pre.get("use_regex", True)
    return bool(
        model["type"] == "BPE"
        and not model.get("dropout")
        and not model.get("continuing_subword_prefix")
        and not model.get("end_of_word_suffix")
        and config["normalizer"] is None
        and config["truncation"] is None
        and config["padding"] is None
        and plain_pre
        and not pre.get("add_prefix_space")
        and post in (None, "ByteLevel")
        and not any(t.get("lstrip") or t.get("rstrip") for t in config["added_tokens"])
    )


class SubwordTokenizer:
    """A subword model as a tokeniser: tokens are stretches of the text.

    A character cut into several subwords is shown whole, so ``text[start:end] == token`` holds.
    """

    def __init__(self, model: Subwords) -> None:
        self.model = model

    def spans(self, text: str) -> list[Span]:
        spans: list[Span] = []
        done = 0
        for part in self.model.parts(text):
            for start, end in self._offsets(part):
                if start == end:
                    continue
                if spans and done + start < spans[-1][1]:
                    spans[-1] = (spans[-1][0], max(done + end, spans[-1][1]))
                else:
                    spans.append((done + start, done + end))
            done += len(part)
        return spans

    def _offsets(self, text: str) -> list[Span]:
        try:
            return self.model.backend.encode(text, add_special_tokens=False).offsets
        except TypeError:
            whole = whole_characters(text)
            return self.model.backend.encode(whole, add_special_tokens=False).offsets

    def tokens(self, text: str) -> list[str]:
        return [text[start:end] for start, end in self.spans(text)]
