"""The corpus as numbers: text is read and tokenised once, into 4 bytes a word.

While reading, each word gets the next free *provisional* id, and ``LINE_END`` stands after each
line. When all is read the counts are known: ``finish`` decides which words stay, numbers them by
frequency, and rewrites the ids in place. In the finished store the last word of a sentence is kept
as ``~id`` (a negative number), so that sentences need no memory of their own.

Ids live in memory up to a limit and in a temporary, memory-mapped file beyond it; the file has no
name, so nothing is left behind however the program ends. It is mapped for reading only: on a full
disk a write through a mapping would end the program by a signal, where a plain one is an error.
"""

from __future__ import annotations

import hashlib
import io
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import IO

import numpy as np
from numpy.typing import NDArray

from nlpkit import textio
from nlpkit.errors import NlpkitError
from nlpkit.kernels.compiling import kernel
from nlpkit.kernels.wordcount import LINE_END, WordTable
from nlpkit.text.pipeline import Tokens, TokenSettings
from nlpkit.text.records import RecordBlock, plain_blocks
from nlpkit.text.vocab import Vocab
from nlpkit.textio import TextBlock
from nlpkit.word2vec.config import Word2VecConfig
from nlpkit.word2vec.documents import Documents, Names, named_lines, sentences_of_lines
from nlpkit.word2vec.phrases import join_phrases

_MOST_WORDS = 1 << 62  # that counts may add up to, as 64-bit numbers
LONGEST_SENTENCE = 10_000  # longer ones are cut, as word2vec.c and its successors do
MEMORY_LIMIT = 1 << 30  # bytes of ids kept in memory before they go to a file
IDS_AT_ONCE = 1 << 22  # of a file, changed in memory and written back


@dataclass(frozen=True)
class IdStore:
    """A corpus of ids with its vocabulary, most frequent word first.

    >>> builder = StoreBuilder()
    >>> builder.add_block(b"the cat saw the dog\\nthe end\\n")
    >>> store = builder.finish(Word2VecConfig(min_count=1))
    >>> store.words
    ['the', 'cat', 'dog', 'end', 'saw']
    >>> store.ids.tolist()
    [0, 1, 4, 0, -3, 0, -4]
    """

    ids: NDArray[np.int32]  # (words,), the last of a sentence as ~id
    words: list[str]
    counts: NDArray[np.int64]  # (vocabulary,)
    text_words: int  # in the text, before rare words were dropped
    documents: Documents | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def check(self) -> None:
        """Kernels check no bounds: refuse what they must not see, wherever it comes from."""
        if self.ids.dtype != np.int32 or self.ids.ndim != 1 or not self.ids.flags.c_contiguous:
            raise NlpkitError(f"ids are {self.ids.dtype} of shape {self.ids.shape}, not int32")
        if self.counts.shape != (len(self.words),) or (self.counts < 0).any():
            raise NlpkitError("a count of 0 or more is needed for each word")
        if self.counts.sum(dtype=np.float64) > _MOST_WORDS:
            raise NlpkitError(f"counts add up to more than {_MOST_WORDS:,}")
        if not len(self.ids) or self.ids[-1] >= 0:
            raise NlpkitError("the last word must end a sentence")
        if self.documents is not None:
            self.documents.check(self.ids)
        wrong = _first_wrong(self.ids, len(self.words), LONGEST_SENTENCE)
        if wrong >= 0:
            raise NlpkitError(
                f"id {self.ids[wrong]} at {wrong:,} is beyond a vocabulary of {len(self.words):,} "
                f"words, or beyond the {LONGEST_SENTENCE:,} of a sentence"
            )

    def cuts(self, words: int) -> NDArray[np.int64]:
        """Positions that cut the corpus into chunks of about ``words`` whole sentences' words."""
        cuts = [0]
        while cuts[-1] < len(self.ids):
            cuts.append(_sentence_end(self.ids, min(cuts[-1] + words, len(self.ids)) - 1) + 1)
        return np.array(cuts, dtype=np.int64)


class StoreBuilder:
    """Collects a text; give it bytes (white-space tokens) or lists of tokens, not both."""

    def __init__(self, memory_limit: int = MEMORY_LIMIT) -> None:
        self._memory_limit = memory_limit
        self._file: IO[bytes] = io.BytesIO()
        self._size = 0  # bytes
        self._table = WordTable()
        self._ids_of_tokens: dict[str, int] = {}
        self._token_counts: list[int] = []

    def add_block(self, block: bytes) -> None:
        """Whole lines of UTF-8, one sentence per line, words between white space."""
        self._append(self._table.encode(block))

    def add_sentence(self, tokens: Sequence[str]) -> None:
        """A sentence as any tokeniser gives it; words may hold spaces."""
        known, counts = self._ids_of_tokens, self._token_counts
        ids = np.empty(len(tokens) + 1, dtype=np.int32)
        for i, token in enumerate(tokens):
            word = known.setdefault(token, len(known))
            if word == len(counts):
                counts.append(0)
            counts[word] += 1
            ids[i] = word
        ids[-1] = LINE_END
        self._append(ids)

    def counted(self) -> tuple[list[str], NDArray[np.int64]]:
        """The words so far, and how often each was seen."""
        words = [*self._table.words(), *self._ids_of_tokens]
        return words, np.array([*self._table.counts, *self._token_counts], dtype=np.int64)

    def finish(
        self,
        config: Word2VecConfig,
        vocabulary: tuple[Sequence[str], Sequence[int]] | None = None,
        names: list[str] | None = None,
    ) -> IdStore:
        """Choose the words, or take a given vocabulary's, and renumber the ids.

        A given vocabulary keeps its order and its counts: they say how frequent a word is.
        ``names`` are those of the lines, where these are documents.
        """
        ids = self._mapped()
        words, counts = self.counted()
        text_words = int(counts.sum())
        for _ in range(config.phrases):
            length, words, counts = join_phrases(
                ids,
                words,
                counts,
                threshold=config.phrase_threshold,
                min_count=config.min_count,
                rewrite=self._rewrite,
            )
            ids = ids[:length]
        if vocabulary is None:
            order = by_frequency(words, counts, config.min_count, config.max_vocab)
            kept_words, kept_counts = [words[i] for i in order], counts[order]
        else:
            kept_words = list(vocabulary[0])
            kept_counts = np.array(vocabulary[1], dtype=np.int64)
            place = {word: i for i, word in enumerate(words)}
            order = np.array([place.get(word, -1) for word in kept_words], dtype=np.int64)
        final = np.full(len(words), -1, dtype=np.int32)
        seen = np.flatnonzero(order >= 0)
        final[order[seen]] = seen
        documents = None
        if names is not None:
            documents = Documents(names, sentences_of_lines(ids, final, LONGEST_SENTENCE))
        ids = ids[: self._rewrite(ids, lambda part: _renumber(part, final, LONGEST_SENTENCE))]
        if not len(ids):
            least = "" if vocabulary else f" occurs {config.min_count} times or more"
            raise NlpkitError(
                f"nothing to train on: none of the {text_words} words{least or ' is known'}",
                hint="more text, or a lower `min_count`",
            )
        ids.flags.writeable = False  # one type, and one compiled kernel, for all stores
        return IdStore(ids, kept_words, kept_counts, text_words, documents)

    def _append(self, ids: NDArray[np.int32]) -> None:
        data = ids.view(np.uint8).data
        in_memory = isinstance(self._file, io.BytesIO)
        with textio.temporary_files():
            if in_memory and self._size + len(data) > self._memory_limit:
                spilled = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the store
                spilled.write(self._file.getbuffer())  # type: ignore[attr-defined]
                self._file = spilled
            self._file.write(data)
        self._size += len(data)

    def _mapped(self) -> NDArray[np.int32]:
        if isinstance(self._file, io.BytesIO):
            return np.frombuffer(self._file.getbuffer(), dtype=np.int32)
        with textio.temporary_files():
            self._file.flush()
        return np.memmap(self._file, dtype=np.int32, mode="r")

    def _rewrite(self, ids: NDArray[np.int32], change: Callable[[NDArray[np.int32]], int]) -> int:
        """Let a function change whole lines in place and say how many ids are left of them."""
        if isinstance(self._file, io.BytesIO):
            return change(ids)
        start = written = 0
        while start < len(ids):
            stop = _line_end(ids, min(start + IDS_AT_ONCE, len(ids)) - 1) + 1
            part = np.array(ids[start:stop])
            left = part[: change(part)]
            with textio.temporary_files():  # a disk that copies what is overwritten needs room
                self._file.seek(written * ids.itemsize)
                self._file.write(left.data)
                self._file.flush()
            start, written = stop, written + len(left)
        return written


def build_store(
    blocks: Iterable[bytes], config: Word2VecConfig, *, memory_limit: int = MEMORY_LIMIT
) -> IdStore:
    """Read a whole text of white-space separated words.

    >>> build_store([b"a b a\\n", b"b a c\\n"], Word2VecConfig(min_count=2)).words
    ['a', 'b']
    """
    builder = StoreBuilder(memory_limit)
    names = Names()
    for block in blocks:
        builder.add_block(block)
        for _ in range(block.count(b"\n") + (not block.endswith(b"\n")) if config.documents else 0):
            names.add(str(len(names) + 1), "-", len(names) + 1)
    return builder.finish(config, names=names.listed() if config.documents else None)


def read_corpus(
    blocks: Iterable[TextBlock],
    config: Word2VecConfig,
    tokens: TokenSettings,
    *,
    vocab: str | None = None,
    errors: str = "strict",
    on_read: Callable[[int], None] = lambda size: None,
) -> tuple[IdStore, str]:
    """A text as ids, and its hash; ``vocab`` is a file of the words to keep.

    ``on_read`` is called with the number of bytes read so far.
    """
    given = read_vocab(vocab)
    builder = StoreBuilder()
    names = Names() if config.documents else None
    data_hash = fill_store(builder, blocks, config, tokens, errors, names, on_read)
    return builder.finish(config, given, None if names is None else names.listed()), data_hash


def fill_store(
    builder: StoreBuilder,
    blocks: Iterable[TextBlock],
    config: Word2VecConfig,
    tokens: TokenSettings,
    errors: str = "strict",
    names: Names | None = None,
    on_read: Callable[[int], None] = lambda size: None,
) -> str:
    """Read a text into a builder; returns its hash. ``names`` hears the ids of documents."""
    digest = hashlib.blake2b(digest_size=16)
    pipeline = Tokens(tokens)
    size = 0
    for source in blocks:
        block = _plain(source, names, config.id_key, errors)
        text = block.text(errors)  # says where bytes are not UTF-8
        if not tokens.is_plain_split:
            for line in block.lines(errors):
                builder.add_sentence(pipeline.shown(line))
        else:
            builder.add_block(block.data if errors == "strict" else text.encode("utf-8"))
        digest.update(source.data)
        size += len(source.data)
        on_read(size)
    return digest.hexdigest()


def _plain(block: TextBlock, names: Names | None, key: str | None, errors: str) -> TextBlock:
    """A block of plain lines; of documents, all ids are heard by ``names``."""
    if names is None:
        return next(plain_blocks([block], errors)) if isinstance(block, RecordBlock) else block
    lines = "".join(f"{line}\n" for line in named_lines(block, names, key, errors))
    return TextBlock(lines.encode("utf-8", "replace"), block.source, block.first_line)


def read_sentences(
    sentences: Iterable[Sequence[str]], config: Word2VecConfig, *, vocab: str | None = None
) -> tuple[IdStore, str]:
    """The same for sentences that are lists of tokens already.

    >>> read_sentences([["New York", "is", "big"]], Word2VecConfig(min_count=1))[0].words
    ['New York', 'big', 'is']
    """
    given = read_vocab(vocab)
    digest = hashlib.blake2b(digest_size=16)
    builder = StoreBuilder()
    names: list[str] | None = [] if config.documents else None
    for tokens in sentences:
        builder.add_sentence(tokens)
        digest.update(f"{' '.join(tokens)}\n".encode())
        if names is not None:
            names.append(str(len(names) + 1))
    return builder.finish(config, given, names), digest.hexdigest()


def read_vocab(path: str | None) -> tuple[list[str], list[int]] | None:
    """The words of a vocabulary file and their counts."""
    if path is None:
        return None
    vocab = Vocab.load(path)
    special = len(vocab.specials)
    return vocab.tokens[special:], vocab.counts[special:]


def by_frequency(
    words: list[str], counts: NDArray[np.int64], min_count: int, max_vocab: int | None
) -> NDArray[np.int64]:
    """Ids of the words to keep, by falling count, ties by word, so that they never depend on order
    of reading."""
    kept = sorted(np.flatnonzero(counts >= min_count).tolist(), key=words.__getitem__)
    order = np.array(kept, dtype=np.int64)
    return order[np.argsort(-counts[order], kind="stable")][:max_vocab]


@kernel()
def _renumber(ids: NDArray[np.int32], final: NDArray[np.int32], longest: int) -> int:
    """Provisional ids to final ones, in place; dropped words and line ends close up."""
    end = 0
    start = 0  # of the sentence
    for i in range(len(ids)):
        word = ids[i]
        if word != LINE_END:
            if final[word] < 0:
                continue
            ids[end] = final[word]
            end += 1
        if end > start and (word == LINE_END or end - start == longest):
            ids[end - 1] = ~ids[end - 1]
            start = end
    return end


@kernel()
def _sentence_end(ids: NDArray[np.int32], i: int) -> int:
    """The position of the last word of the sentence that word ``i`` is in."""
    while ids[i] >= 0:
        i += 1
    return i


@kernel()
def _line_end(ids: NDArray[np.int32], i: int) -> int:
    """The position of the end of the line that provisional id ``i`` is in."""
    while ids[i] != LINE_END:
        i += 1
    return i


@kernel()
def _first_wrong(ids: NDArray[np.int32], vocabulary: int, longest: int) -> int:
    """The position of the first id that is none, or that makes a sentence too long; -1 if none."""
    length = 0
    for i in range(len(ids)):
        length += 1
        if ids[i] >= vocabulary or ids[i] < -vocabulary or length > longest:
            return i
        if ids[i] < 0:
            length = 0
    return -1
