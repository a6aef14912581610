"""ARPA files: n-gram models as text, which SRILM, KenLM and speech recognisers read and write.

    \\data\\                          how many n-grams of each length
    ngram 1=3
    \\1-grams:                       log10 of the probability, the words, log10 of the back-off
    -0.7<TAB>the<TAB>-0.3           weight; the longest n-grams have none
    \\end\\

Here one mark (word 0) begins and ends sentences: it is ``<s>`` where an n-gram begins with it and
``</s>`` where one ends. Word 1 is ``<unk>``. White space inside a token is written as ``<U+0020>``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from nlpkit.errors import NlpkitError
from nlpkit.kernels.ngrams import BACKOFF, FIRST, PROBABILITY
from nlpkit.models.kneser_ney import HIGHEST_ORDER, Trie, TrieBuilder
from nlpkit.models.kneser_ney_counts import Level, Scratch
from nlpkit.schema import plain

BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"
_MARK, _UNKNOWN = 0, 1
_NEVER = -99.0  # log10 of what cannot happen
_LOG10 = math.log(10)
_SPACE = re.compile(r"\s")
_AGAIN = "the whole file, as a trainer of n-gram models wrote it"


def read_arpa(lines: Iterable[str], source: str = "the file") -> tuple[Trie, list[str]]:
    r"""The model of an ARPA file, and its words by id (the first two are the mark and unknown).

    >>> lines = r"\data\ |ngram 1=3|\1-grams:|-99 <s>|-0.5 </s>|-0.2 a|\end\ ".split("|")
    >>> read_arpa(lines)[1]
    ['</s>', '<unk>', 'a']
    """
    return _Reader(lines, source).read()


class _Reader:
    """One pass over the lines, which remembers where it is for its messages."""

    def __init__(self, lines: Iterable[str], source: str) -> None:
        self._lines, self._source, self._number = iter(lines), source, 0
        self._ids: dict[str, int] = {END: _MARK, UNKNOWN: _UNKNOWN}
        self._levels: list[NDArray[np.int64]] = []  # sorted keys: context << 32 | word

    def _refuse(self, what: str, hint: str = _AGAIN) -> NlpkitError:
        return NlpkitError(f"{self._source}: line {self._number}: {what}", hint=hint)

    def _next(self) -> str:
        """The next line that is not empty."""
        for line in self._lines:
            self._number += 1
            if line.strip():
                return line.rstrip("\r\n")
        raise self._refuse("the file ends in the middle: \\end\\ is missing")

    def read(self) -> tuple[Trie, list[str]]:
        """The whole file."""
        if self._next().strip() != "\\data\\":
            raise self._refuse("an ARPA file begins with \\data\\")
        sizes: list[int] = []
        while (line := self._next()).startswith("ngram "):
            found = re.fullmatch(r"ngram\s+(\d{1,2})\s*=\s*(\d{1,10})", line.strip())
            if not found or int(found[1]) != len(sizes) + 1:
                raise self._refuse(f"expected 'ngram {len(sizes) + 1}=COUNT'")
            sizes.append(int(found[2]))
        if not 1 <= len(sizes) <= HIGHEST_ORDER:
            raise self._refuse(f"n-grams of length 1 to {HIGHEST_ORDER} are read here")
        order = len(sizes)
        builder: TrieBuilder | None = None
        scratch = Scratch()
        for length, size in enumerate(sizes, 1):
            if line.strip() != f"\\{length}-grams:":
                raise self._refuse(f"expected \\{length}-grams:, found {plain(line)}")
            ids, logs, backs = self._section(length, size, last=length == order)
            if length == 1:
                ids, logs, backs = self._unigrams(ids, logs, backs)
                builder = TrieBuilder(scratch, len(self._ids), _MARK, logs=True)
            assert builder is not None
            self._add(builder, ids, logs, backs)
            line = self._next()
        if line.strip() != "\\end\\":
            raise self._refuse(f"expected \\end\\, found {plain(line)}")
        assert builder is not None
        return builder.finish({}), list(self._ids)

    def _section(
        self, length: int, size: int, *, last: bool
    ) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32]]:
        """The n-grams of one length: words (size, length), log-probabilities, back-off weights."""
        ids: list[list[int]] = []
        logs: list[float] = []
        backs: list[float] = []
        for _ in range(size):
            fields = self._next().split()
            if fields[0].startswith("\\") and fields[0] != "\\" and len(fields) == 1:
                raise self._refuse(f"{len(ids)} n-grams of length {length}, not {size}")
            if len(fields) == length + 2 and last:
                raise self._refuse("a back-off weight at the highest order")
            if len(fields) not in (length + 1, length + 2):
                raise self._refuse(f"expected a number and {length} words")
            try:
                value = float(fields[0])
                back = float(fields[length + 1]) if len(fields) > length + 1 else 0.0
            except ValueError:
                raise self._refuse("expected a number, words and perhaps a number") from None
            if not (value <= 0 and math.isfinite(value) and abs(back) < 1000):
                raise self._refuse(f"{fields[0]} is not the logarithm of a probability")
            ids.append(self._words(fields[1 : length + 1], length))
            logs.append(value)
            backs.append(back)
        shaped = np.array(ids, np.int32).reshape(-1, length)
        scale = np.float32(_LOG10)
        return shaped, np.array(logs, np.float32) * scale, np.array(backs, np.float32) * scale

    def _words(self, words: Sequence[str], length: int) -> list[int]:
        if length == 1:
            word = words[0]
            # the beginning of a sentence is numbered -1 until its back-off has been taken
            return [-1 if word == BEGIN else self._ids.setdefault(word, len(self._ids))]
        last = length - 1
        found = []
        for place, word in enumerate(words):
            if (word == BEGIN and place) or (word == END and place != last):
                raise self._refuse(f"{word} stands where a sentence neither begins nor ends")
            index = _MARK if word == BEGIN else self._ids.get(word)
            if index is None:
                raise self._refuse(f"{plain(word)} is not among the 1-grams")
            found.append(index)
        return found

    def _unigrams(
        self, ids: NDArray[np.int32], logs: NDArray[np.float32], backs: NDArray[np.float32]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32]]:
        """Each word once; one that the file lacks (``<unk>``) cannot happen."""
        size = len(self._ids)
        all_logs = np.full(size, _NEVER * _LOG10, np.float32)
        all_backs = np.zeros(size, np.float32)
        flat = ids[:, 0]
        if len(np.unique(flat)) < len(flat):
            raise self._refuse("a word stands twice among the 1-grams")
        known = flat >= 0
        all_logs[flat[known]], all_backs[flat[known]] = logs[known], backs[known]
        if not known.all():
            all_backs[_MARK] = backs[~known][0]
        return np.arange(size, dtype=np.int32)[:, None], all_logs, all_backs

    def _find(self, ids: NDArray[np.int32]) -> NDArray[np.int64]:
        """The places of n-grams (rows of words) in their level; -1 for those that are not there."""
        nodes = ids[:, 0].astype(np.int64)
        for length in range(2, ids.shape[1] + 1):
            keys = self._levels[length - 1]
            wanted = (nodes << 32) | ids[:, length - 1]
            places = np.searchsorted(keys, wanted)
            hit = (places < len(keys)) & (nodes >= 0)
            hit[hit] = keys[places[hit]] == wanted[hit]
            nodes = np.where(hit, places, -1)
        return nodes

    def _add(
        self,
        builder: TrieBuilder,
        ids: NDArray[np.int32],
        logs: NDArray[np.float32],
        backs: NDArray[np.float32],
    ) -> None:
        length = ids.shape[1]
        contexts = self._find(ids[:, :-1]) if length > 1 else np.zeros(len(ids), np.int64)
        if (contexts < 0).any():
            row = int(np.flatnonzero(contexts < 0)[0])
            words = list(self._ids)
            gram = plain(" ".join(words[i] for i in ids[row]))
            raise self._refuse(f"the {length}-gram '{gram}' has a context that is not listed")
        keys = (contexts << 32) | ids[:, -1]
        ordered = np.argsort(keys, kind="stable")
        keys = keys[ordered]
        if (keys[1:] == keys[:-1]).any():
            raise self._refuse(f"a {length}-gram stands twice")
        self._levels.append(keys)
        begins = np.cumsum([0, 1, *(len(level) for level in self._levels[:-1])])
        suffixes = np.full(len(ids), 0 if length == 1 else -1, np.int64)
        for start in range(1, length):  # pruned models lack some: then the next shorter one
            missing = np.flatnonzero(suffixes < 0)
            found = self._find(ids[ordered[missing], start:])
            suffixes[missing] = np.where(found >= 0, found + begins[length - start], -1)
        first = np.searchsorted(
            keys >> 32, np.arange(1 + len(self._levels[-2]) if length > 1 else 2)
        )
        level = Level(
            words=ids[ordered, -1],
            first=first.astype(np.int32),
            counts=np.empty(0, np.int32),
            left=np.empty(0, np.int32),
            suffixes=(suffixes - (begins[length - 1] if length > 1 else 0)).astype(np.int32),
        )
        builder.keep(level, logs[ordered], builder.backs)
        builder.backs = backs[ordered]


def write_arpa(trie: Trie, words: Sequence[str]) -> Iterator[str]:
    """The lines of an ARPA file."""
    if len(words) != trie.vocab_size:
        raise NlpkitError(f"{len(words):,} words for a model of {trie.vocab_size:,}")
    shown = [_SPACE.sub(lambda found: f"<U+{ord(found[0]):04X}>", word) for word in words]
    order, levels = trie.order, trie.levels
    yield "\\data\\\n"
    for length in range(1, order + 1):
        # <s> and </s> are one word here and two there
        size = levels[length] - levels[length - 1] + (length == 1 and trie.mark >= 0)
        yield f"ngram {length}={size}\n"
    for length in range(1, order + 1):
        yield f"\n\\{length}-grams:\n"
        for start in range(levels[length - 1], levels[length], 1 << 16):
            stop = min(start + (1 << 16), levels[length])
            yield _rows(trie, shown, length, np.arange(start, stop))
    yield "\n\\end\\\n"


def _rows(trie: Trie, words: list[str], length: int, rows: NDArray[np.int64]) -> str:
    values = trie.nodes.view(np.float32)
    columns, nodes = [], rows
    for level in range(length, 0, -1):
        columns.append([words[i] for i in trie.words[nodes].tolist()])
        if level > 1:
            begin, end = trie.levels[level - 2], trie.levels[level - 1]
            nodes = begin + np.searchsorted(trie.nodes[begin:end, FIRST], nodes, "right") - 1
    logs = (values[rows, PROBABILITY].astype(np.float64) / _LOG10).tolist()
    backs = (values[rows, BACKOFF].astype(np.float64) / _LOG10).tolist()
    columns.reverse()
    if trie.mark >= 0:
        mark = words[trie.mark]
        columns[0] = [BEGIN if word == mark else word for word in columns[0]]
        columns[-1] = [END if word in (mark, BEGIN) else word for word in columns[-1]]
    last = length == trie.order
    lines = []
    for row, (log, back, *gram) in enumerate(zip(logs, backs, *columns, strict=True)):
        if length == 1 and trie.mark >= 0 and int(rows[row]) == 1 + trie.mark:
            lines.append(f"{_NEVER:g}\t{BEGIN}" + ("" if last else f"\t{back:.7g}"))
            lines.append(f"{log:.7g}\t{END}" + ("" if last else "\t0"))
        else:
            lines.append(f"{log:.7g}\t{' '.join(gram)}" + ("" if last else f"\t{back:.7g}"))
    return "".join(line + "\n" for line in lines)
