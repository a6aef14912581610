"""word2vec written out in numpy, one formula after the other, to check the kernels against."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]


def softplus(x: float) -> float:
    """-log sigmoid(-x)"""
    return float(np.logaddexp(0.0, x))


class Task:
    """A few words with windows, and the loss of all their predictions at once."""

    def __init__(self, words: list[int], windows: list[tuple[int, int]]) -> None:
        self.words = words
        self.windows = windows

    def contexts(self, p: int) -> list[int]:
        low, high = self.windows[p]
        return [self.words[q] for q in range(low, high) if q != p]


def predictions(
    task: Task, centres: range, inputs: Doubles, arch: str, mean: bool
) -> list[tuple[Doubles, int]]:
    """(input vector, word to predict), as the architecture makes them."""
    found = []
    for p in centres:
        context = task.contexts(p)
        if arch == "skipgram":
            found += [(inputs[word], task.words[p]) for word in context]
        else:
            hidden = inputs[context].mean(axis=0) if mean else inputs[context].sum(axis=0)
            found.append((hidden, task.words[p]))
    return found


def negative_sampling_loss(
    x: Doubles, centre: int, outputs: Doubles, noise: list[int], share: float
) -> float:
    loss = softplus(-x @ outputs[centre])
    return loss + share * sum(softplus(x @ outputs[n]) for n in noise if n != centre)


def hierarchical_loss(x: Doubles, outputs: Doubles, path: list[int], code: list[int]) -> float:
    return sum(
        softplus(-x @ outputs[node] if bit == 0 else x @ outputs[node])
        for node, bit in zip(path, code, strict=True)
    )


def softmax_loss(x: Doubles, centre: int, outputs: Doubles) -> float:
    scores = outputs @ x
    return float(np.log(np.exp(scores - scores.max()).sum()) + scores.max() - scores[centre])


def finite_differences(
    loss: Callable[[Doubles, Doubles], float], inputs: Doubles, outputs: Doubles, step: float = 1e-5
) -> tuple[Doubles, Doubles]:
    """The gradient of ``loss(inputs, outputs)`` by moving one number at a time."""
    gradients = []
    for matrix in (inputs, outputs):
        gradient = np.zeros_like(matrix)
        for place in np.ndindex(matrix.shape):
            kept = matrix[place]
            matrix[place] = kept + step
            above = loss(inputs, outputs)
            matrix[place] = kept - step
            below = loss(inputs, outputs)
            matrix[place] = kept
            gradient[place] = (above - below) / (2 * step)
        gradients.append(gradient)
    return gradients[0], gradients[1]
