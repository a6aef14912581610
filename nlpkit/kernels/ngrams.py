"""Kernels of n-gram models: sort and number keys, smooth counts, walk the trie.

The trie lies in two arrays (see ``models/kneser_ney.py``): ``words`` (M,), the last word of each
node, and ``nodes`` (M + 1, 4), a row of PROBABILITY and BACKOFF (float32, natural logarithms),
FIRST (the first child; the next row's is the end) and SUFFIX (the node without its oldest word).
Node 0 is the empty context, node 1 + w the unigram of word w.

Nothing that is read from ``nodes`` is believed: a link that leads out of the trie, or not towards
its root, ends a search and not the program.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nlpkit.kernels.compiling import kernel

PROBABILITY, BACKOFF, FIRST, SUFFIX = 0, 1, 2, 3
_DIGIT = 11  # bits that a pass of the radix sort looks at


@kernel()
def sort_keys(
    keys: NDArray[np.int64],
    places: NDArray[np.int32],
    spare_keys: NDArray[np.int64],
    spare_places: NDArray[np.int32],
    bits: int,
) -> bool:
    """Radix sort of keys below 2**bits, each with its place; true if the result is in the spares.

    The least significant digit first; each pass is stable, so equal keys keep their order.
    """
    size = len(keys)
    swapped = False
    for low in range(0, bits, _DIGIT):
        starts = np.zeros((1 << _DIGIT) + 1, np.int64)
        for i in range(size):
            starts[((keys[i] >> low) & ((1 << _DIGIT) - 1)) + 1] += 1
        for digit in range(1 << _DIGIT):
            starts[digit + 1] += starts[digit]
        for i in range(size):
            digit = (keys[i] >> low) & ((1 << _DIGIT) - 1)
            place = starts[digit]
            starts[digit] = place + 1
            spare_keys[place] = keys[i]
            spare_places[place] = places[i]
        keys, spare_keys = spare_keys, keys
        places, spare_places = spare_places, places
        swapped = not swapped
    return swapped


@kernel()
def number_keys(
    keys: NDArray[np.int64],  # sorted; the distinct ones are moved to the front
    places: NDArray[np.int32],
    counts: NDArray[np.int32],  # of the distinct ones
    ranks: NDArray[np.int32],  # by place: which of the distinct ones
) -> int:
    """Number the distinct keys in their order; how many there are."""
    distinct = -1
    last = np.int64(-1)
    for i in range(len(keys)):
        if keys[i] != last:
            distinct += 1
            last = keys[i]
            keys[distinct] = last
            counts[distinct] = 0
        counts[distinct] += 1
        ranks[places[i]] = distinct
    return distinct + 1


@kernel()
def merge_runs(
    keys: NDArray[np.int64],  # the distinct keys of all runs, each run sorted
    counts: NDArray[np.int32],
    edges: NDArray[np.int64],  # (runs + 1,)
    merged: NDArray[np.int64],  # out, as are the next two
    totals: NDArray[np.int32],
    ranks: NDArray[np.int32],  # by place in `keys`: its number among the merged
) -> int:
    """Merge sorted runs; how many distinct keys there are."""
    runs = len(edges) - 1
    heads = edges[:-1].copy()
    distinct = -1
    last = np.int64(-1)
    while True:
        best = -1
        for run in range(runs):
            if heads[run] < edges[run + 1] and (best < 0 or keys[heads[run]] < keys[heads[best]]):
                best = run
        if best < 0:
            return distinct + 1
        place = heads[best]
        heads[best] += 1
        if keys[place] != last:
            distinct += 1
            last = keys[place]
            merged[distinct] = last
            totals[distinct] = 0
        totals[distinct] += counts[place]
        ranks[place] = distinct


@kernel()
def next_keys(
    ids: NDArray[np.int32],
    start: int,
    stop: int,
    nodes: NDArray[np.int32],  # by position: the n-gram that ends there, or -1
    longer: bool,  # whether those n-grams have more than one word
    mark: int,  # the id that begins and ends sentences; -1 for none
    bits: int,  # of a word
    keys: NDArray[np.int64],
    places: NDArray[np.int32],
) -> int:
    """Keys (context, word) of the n-grams that end at the positions from ``start`` to ``stop``.

    A mark is the last word of one sentence and the first of the next, never in the middle.
    """
    size = 0
    for i in range(max(1, start), stop):
        context = nodes[i - 1]
        if context < 0 or (longer and ids[i - 1] == mark):
            continue
        keys[size] = (np.int64(context) << bits) | ids[i]
        places[size] = i - start
        size += 1
    return size


@kernel()
def count_left_words(
    ids: NDArray[np.int32],
    start: int,
    shorter: NDArray[np.int32],  # by position: the n-gram that ends there
    longer: NDArray[np.int32],  # by position: the one of a word more, or -1
    suffixes: NDArray[np.int32],  # of the longer ones, -1 where not met yet
    counts: NDArray[np.int32],  # of the shorter ones: distinct words before them
) -> None:
    """Kneser-Ney's counts: not how often an n-gram occurs but behind how many words."""
    for i in range(len(longer)):
        node = longer[i]
        if node >= 0 and suffixes[node] < 0:
            suffixes[node] = shorter[start + i]
            counts[shorter[start + i]] += 1


@kernel()
def smooth_level(
    counts: NDArray[np.int32],  # of the children
    first: NDArray[np.int32],  # (contexts + 1,): the children of each context
    suffixes: NDArray[np.int32],  # of the children, in the level above
    shorter: NDArray[np.float32],  # probabilities of that level
    discounts: NDArray[np.float64],  # of counts 1, 2 and more: (4,), the first is not used
    probabilities: NDArray[np.float32],  # out: of the children
    left: NDArray[np.float32],  # out: of the contexts, the share of the shorter context
) -> None:
    """Interpolated modified Kneser-Ney, from counts to probabilities (Chen and Goodman, 1998)."""
    for context in range(len(first) - 1):
        total = np.float64(0)
        held = np.float64(0)
        for child in range(first[context], first[context + 1]):
            total += counts[child]
            held += discounts[min(3, counts[child])]
        if total == 0:
            left[context] = 1
            continue
        share = held / total
        left[context] = share
        for child in range(first[context], first[context + 1]):
            own = (counts[child] - discounts[min(3, counts[child])]) / total
            probabilities[child] = own + share * shorter[suffixes[child]]


@kernel(inline="always")
def find_child(
    words: NDArray[np.int32], nodes: NDArray[np.int32], node: int, word: int
) -> np.int64:
    """The child of a node for a word, by bisection; -1 when there is none."""
    low = np.int64(nodes[node, FIRST])
    high = np.int64(nodes[node + 1, FIRST])
    if low < 0 or high > len(words):
        return np.int64(-1)
    while low < high:
        middle = (low + high) >> 1
        if words[middle] < word:
            low = middle + 1
        else:
            high = middle
    if low < nodes[node + 1, FIRST] and words[low] == word:
        return low
    return np.int64(-1)


@kernel(inline="always")
def shorten(nodes: NDArray[np.int32], node: int) -> np.int64:
    """The longest part of a context that has been seen before any word: it predicts the same."""
    while node > 0 and nodes[node, FIRST] >= nodes[node + 1, FIRST]:
        suffix = nodes[node, SUFFIX]
        node = suffix if 0 <= suffix < node else 0
    return np.int64(node)


@kernel()
def score_words(
    words: NDArray[np.int32],
    nodes: NDArray[np.int32],
    values: NDArray[np.float32],  # the same rows as numbers
    ids: NDArray[np.int32],
    state: int,
    mark: int,  # behind this id the context begins anew; -1 for none
    out: NDArray[np.float32],  # natural logarithm of each word's probability
) -> int:
    """Score words one after the other from a context; the context behind the last one."""
    last = len(words) - 1
    for i in range(len(ids)):
        word = ids[i]
        node = np.int64(state)
        found = np.int64(-1)
        held = np.float32(0)
        while node > 0:
            found = find_child(words, nodes, node, word)
            if found >= 0:
                break
            held += values[node, BACKOFF]
            suffix = nodes[node, SUFFIX]
            node = np.int64(suffix) if 0 <= suffix < node else np.int64(0)
        if found < 0:
            found = np.int64(1 + word)
        found = min(found, last)
        out[i] = held + values[found, PROBABILITY]
        state = shorten(nodes, 1 + mark if word == mark else found)
    return state


@kernel()
def child_chain(
    words: NDArray[np.int32],
    nodes: NDArray[np.int32],
    ids: NDArray[np.int32],
    state: int,
    mark: int,
    out: NDArray[np.int32],  # (T, order): the n-grams of each length that end with each word
) -> int:
    """As ``score_words``, but which n-grams there are: 0 for none, -1 for an unseen context."""
    order = out.shape[1]
    for i in range(len(ids)):
        word = ids[i]
        out[i, :] = -1
        length = 0
        node = np.int64(state)
        while node > 0 and length < order - 1:
            length += 1
            suffix = nodes[node, SUFFIX]
            node = np.int64(suffix) if 0 <= suffix < node else np.int64(0)
        longest = np.int64(1 + word)
        node = np.int64(state)
        for place in range(length, 0, -1):
            found = find_child(words, nodes, node, word)
            out[i, place] = max(found, 0)
            if found > longest:
                longest = found
            suffix = nodes[node, SUFFIX]
            node = np.int64(suffix) if 0 <= suffix < node else np.int64(0)
        out[i, 0] = 1 + word
        state = shorten(nodes, 1 + mark if word == mark else min(longest, len(words) - 1))
    return state


@kernel()
def spread(
    words: NDArray[np.int32],
    nodes: NDArray[np.int32],
    values: NDArray[np.float32],
    state: int,
    vocab_size: int,
    out: NDArray[np.float32],  # (V,)
) -> None:
    """The log-probability of every word behind a context, by the longest that has it."""
    chain = np.empty(64, np.int64)
    held = np.zeros(64, np.float32)
    length = 0
    node = np.int64(state)
    while node > 0 and length < 63:
        chain[length] = node
        held[length + 1] = held[length] + values[node, BACKOFF]
        length += 1
        suffix = nodes[node, SUFFIX]
        node = np.int64(suffix) if 0 <= suffix < node else np.int64(0)
    for word in range(vocab_size):
        out[word] = values[1 + word, PROBABILITY] + held[length]
    for place in range(length - 1, -1, -1):
        first = max(0, nodes[chain[place], FIRST])
        for child in range(first, min(nodes[chain[place] + 1, FIRST], len(words))):
            word = words[child]
            if 0 <= word < vocab_size:
                out[word] = values[child, PROBABILITY] + held[place]
