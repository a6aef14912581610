"""Vocab: the table between tokens and ids.

On disk it is ``token<TAB>count``, a token a line, the line number (from 0) being the id: specials
first, then the rest by falling count, ties by token, so that the same text gives the same file.
Counts of specials are 0. Tokens hold no tab, newline or carriage return, so nothing needs escaping.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from nlpkit import textio
from nlpkit.errors import NlpkitError

PAD = "<pad>"
UNK = "<unk>"
SPECIALS = (PAD, UNK)
LONGEST_COUNT = 18  # digits: every count fits in 64 bits


class Vocab:
    """Tokens in id order with their counts.

    >>> vocab = Vocab.from_counts({"b": 2, "a": 2, "c": 1}, min_count=2)
    >>> vocab.tokens
    ['<pad>', '<unk>', 'a', 'b']
    >>> vocab.encode(["b", "c"])
    [3, 1]
    >>> vocab.decode([3, 1])
    ['b', '<unk>']
    """

    def __init__(self, tokens: Sequence[str], counts: Sequence[int]) -> None:
        if len(tokens) != len(counts):
            raise ValueError("tokens and counts differ in length")
        self.tokens = list(tokens)
        self.counts = list(counts)
        self.ids = {token: index for index, token in enumerate(self.tokens)}
        if len(self.ids) != len(self.tokens):
            twice = next(token for token, n in Counter(self.tokens).items() if n > 1)
            raise NlpkitError(f"duplicate token in vocabulary: {twice!r}")

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[str, int],
        *,
        specials: Sequence[str] = SPECIALS,
        min_count: int = 1,
        max_size: int | None = None,
    ) -> Vocab:
        """Specials first, then what occurs ``min_count`` times or more, most frequent first.

        ``max_size`` limits the whole vocabulary, specials included: it is the number of lines
        in the file and the number of rows of an embedding made for it.
        """
        if max_size is not None and max_size < len(specials):
            raise NlpkitError(
                f"a vocabulary of {max_size} has no room for {len(specials)} special tokens",
                hint=f"a size over {len(specials)}",
            )
        special = dict.fromkeys(specials)
        kept = sorted(
            token for token, n in counts.items() if n >= min_count and token not in special
        )
        kept.sort(key=counts.__getitem__, reverse=True)  # stable: ties stay in the order of tokens
        if max_size is not None:
            del kept[max_size - len(special) :]
        return cls([*special, *kept], [0] * len(special) + [counts[token] for token in kept])

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self.ids

    def __iter__(self) -> Iterator[str]:
        return iter(self.tokens)

    @property
    def specials(self) -> list[str]:
        """The tokens at the top that were declared, not counted."""
        first_counted = next((i for i, n in enumerate(self.counts) if n), len(self.counts))
        return self.tokens[:first_counted]

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Ids of tokens; an unknown token gets the id of ``<unk>``, an error without one."""
        ids, unknown = self.ids, self.ids.get(UNK)
        if unknown is not None:
            return [ids.get(token, unknown) for token in tokens]
        try:
            return [ids[token] for token in tokens]
        except KeyError as error:
            raise NlpkitError(
                f"unknown token {error.args[0]!r} and no {UNK} in the vocabulary"
            ) from None

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Tokens of ids; an id outside the vocabulary is an error."""
        tokens, size = self.tokens, len(self.tokens)
        found = []
        for index in ids:
            if not 0 <= index < size:
                raise NlpkitError(f"id {index} is outside the vocabulary of {size} tokens")
            found.append(tokens[index])
        return found

    def merge(self, *others: Vocab) -> Vocab:
        """Add counts up, as if all texts had been counted together.

        Shards must have been counted without ``min_count``: what one shard dropped is gone.
        """
        total: Counter[str] = Counter()
        specials: dict[str, None] = {}
        for vocab in (self, *others):
            specials.update(dict.fromkeys(vocab.specials))
        for vocab in (self, *others):
            total.update(dict(zip(vocab.tokens, vocab.counts, strict=True)))
        return Vocab.from_counts(total, specials=list(specials))

    # --- files ----------------------------------------------------------------------------------

    def dumps(self) -> str:
        """The file as text, a line a token."""
        return "".join(f"{token}\t{n}\n" for token, n in zip(self.tokens, self.counts, strict=True))

    def save(self, path: str) -> None:
        """Write ``token<TAB>count`` atomically."""
        textio.write_text(path, self.dumps())

    @classmethod
    def load(cls, path: str) -> Vocab:
        """Read what ``save`` wrote, saying which line is wrong when one is."""
        tokens: list[str] = []
        counts: list[int] = []
        seen: dict[str, int] = {}
        for number, line in enumerate(textio.read_lines(path), 1):
            where = f"{textio.source_name(path)}: line {number}"
            token, tab, count = line.rpartition("\t")
            if not tab or not token:
                raise NlpkitError(f"{where}: expected token<TAB>count, found {line[:40]!r}")
            if not (count.isascii() and count.isdigit() and len(count) <= LONGEST_COUNT):
                raise NlpkitError(
                    f"{where}: the count must be a number from 0 on, not {count[:40]!r}"
                )
            if token in seen:
                raise NlpkitError(
                    f"{where}: {token!r} was already on line {seen[token]}",
                    hint="nlpkit vocab merge to add up counts from several files",
                )
            seen[token] = number
            tokens.append(token)
            counts.append(int(count))
        if not tokens:
            raise NlpkitError(f"{textio.source_name(path)}: an empty vocabulary")
        return cls(tokens, counts)
