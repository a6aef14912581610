"""The training examples of a sentence, without any chance: what the model is asked to predict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def skipgram_examples(tokens: Sequence[str], window: int) -> Iterator[tuple[str, str]]:
    """(centre, context) for each word and each other word at most ``window`` away.

    >>> list(skipgram_examples("the quick brown fox".split(), window=1))[:4]
    [('the', 'quick'), ('quick', 'the'), ('quick', 'brown'), ('brown', 'quick')]
    """
    for context, centre in cbow_examples(tokens, window):
        for word in context:
            yield centre, word


def cbow_examples(tokens: Sequence[str], window: int) -> Iterator[tuple[list[str], str]]:
    """(context, centre) for each word that has a neighbour.

    >>> list(cbow_examples("the quick brown fox".split(), window=1))[:2]
    [(['quick'], 'the'), (['the', 'brown'], 'quick')]
    """
    for i, centre in enumerate(tokens):
        context = [*tokens[max(0, i - window) : i], *tokens[i + 1 : i + 1 + window]]
        if context:
            yield context, centre
