"""A Huffman tree over the vocabulary: the shortest codes, on average, for words by their counts.

Hierarchical softmax replaces one choice among V words by the yes/no decisions on the way from the
root to the word. Frequent words are near the root, so the average path is as short as can be.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nlpkit.kernels.compiling import kernel


class HuffmanTree(NamedTuple):
    """The paths of all words, one after the other: word w's is ``starts[w]:starts[w + 1]``."""

    starts: NDArray[np.int64]  # (vocabulary + 1,)
    nodes: NDArray[np.int32]  # inner nodes from the root down; there are vocabulary - 1 of them
    codes: NDArray[np.uint8]  # 0 or 1: which way to go at each

    @property
    def longest(self) -> int:
        """Decisions on the longest path."""
        return int(np.diff(self.starts).max())


def build_tree(counts: NDArray[np.int64]) -> HuffmanTree:
    """The tree for words with these counts.

    >>> tree = build_tree(np.array([5, 2, 1]))
    >>> [tree.codes[a:b].tolist() for a, b in zip(tree.starts, tree.starts[1:])]
    [[1], [0, 1], [0, 0]]
    """
    order = np.argsort(-counts, kind="stable")
    parent, is_right = _join_smallest(counts[order].astype(np.int64))
    lengths = _path_lengths(parent, len(counts))
    place = np.empty(len(counts), dtype=np.int64)  # of a word in the order of counts
    place[order] = np.arange(len(counts))
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(lengths[place], out=starts[1:])
    nodes, codes = _walk_up(parent, is_right, place, starts)
    return HuffmanTree(starts, nodes, codes)


@kernel()
def _join_smallest(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Join the two rarest trees until one is left, for counts that fall.

    Leaves are 0..V-1 and joined trees V..2V-2. Joined trees come out by rising count, so the
    rarest is always the last leaf or the first joined tree not yet used: no heap is needed.
    """
    leaves = len(counts)
    weight = np.zeros(2 * leaves - 1, dtype=np.int64)
    weight[:leaves] = counts
    parent = np.zeros(2 * leaves - 1, dtype=np.int64)
    is_right = np.zeros(2 * leaves - 1, dtype=np.uint8)
    leaf, joined = leaves - 1, leaves
    for tree in range(leaves, 2 * leaves - 1):
        for side in range(2):
            if leaf >= 0 and (joined == tree or weight[leaf] <= weight[joined]):
                smallest = leaf
                leaf -= 1
            else:
                smallest = joined
                joined += 1
            weight[tree] += weight[smallest]
            parent[smallest] = tree
            is_right[smallest] = side
    return parent, is_right


@kernel()
def _path_lengths(parent: NDArray[np.int64], leaves: int) -> NDArray[np.int64]:
    depth = np.zeros(len(parent), dtype=np.int64)
    for tree in range(len(parent) - 2, -1, -1):  # parents have higher numbers
        depth[tree] = depth[parent[tree]] + 1
    return depth[:leaves]


@kernel()
def _walk_up(
    parent: NDArray[np.int64],
    is_right: NDArray[np.uint8],
    place: NDArray[np.int64],
    starts: NDArray[np.int64],
) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    leaves = len(place)
    nodes = np.empty(starts[-1], dtype=np.int32)
    codes = np.empty(starts[-1], dtype=np.uint8)
    for word in range(leaves):
        tree = place[word]
        for i in range(starts[word + 1] - 1, starts[word] - 1, -1):
            codes[i] = is_right[tree]
            tree = parent[tree]
            nodes[i] = tree - leaves
    return nodes, codes
