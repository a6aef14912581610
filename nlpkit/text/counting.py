"""Count tokens of text: white-space tokens in a compiled table, others in several processes."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial

from nlpkit.parallel import ordered_map
from nlpkit.text.pipeline import Tokens, TokenSettings
from nlpkit.textio import TextBlock

# Loading the compiled table takes half a second: below this many bytes it does not pay.
COMPILED_FROM = 8 << 20


def count_tokens(
    blocks: Iterable[TextBlock], settings: TokenSettings, *, errors: str = "strict", jobs: int = 1
) -> Counter[str]:
    """How often each token occurs. Memory grows with the number of distinct tokens only.

    >>> blocks = [TextBlock(b"to be or\\nnot to be\\n", "example", 1)]
    >>> sorted(count_tokens(blocks, TokenSettings(tokenizer="whitespace")).items())
    [('be', 2), ('not', 1), ('or', 1), ('to', 2)]
    """
    if settings.is_plain_split:
        return _count_plain(blocks, errors)
    total: Counter[str] = Counter()
    for counts in ordered_map(partial(_make_counter, settings, errors), blocks, jobs):
        total.update(counts)
    return total


def _make_counter(settings: TokenSettings, errors: str) -> Callable[[TextBlock], Counter[str]]:
    tokens = Tokens(settings)

    def count(block: TextBlock) -> Counter[str]:
        counts: Counter[str] = Counter()
        for line in block.lines(errors):
            counts.update(tokens.shown(line))
        return counts

    return count


def _count_plain(blocks: Iterable[TextBlock], errors: str) -> Counter[str]:
    blocks = iter(blocks)
    waiting: list[TextBlock] = []
    for block in blocks:
        waiting.append(block)
        if sum(len(block.data) for block in waiting) >= COMPILED_FROM:
            break
    else:
        counts: Counter[str] = Counter()
        for block in waiting:
            counts.update(block.text(errors).split())
        return counts
    from nlpkit.kernels.wordcount import WordTable

    table = WordTable()
    for block in itertools.chain(waiting, blocks):
        text = block.text(errors)  # also says where bytes are not UTF-8
        table.add(block.data if errors == "strict" else text.encode("utf-8"))
    return Counter(dict(zip(table.words(), table.counts.tolist(), strict=True)))
