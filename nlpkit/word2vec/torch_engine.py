"""The torch engine: the same steps as the CPU kernels, as a few large products for a GPU.

Sentences are subsampled and cut into windows on the CPU, by the same code and the same random
numbers as in ``cpu``. Then tens of thousands of pairs of words are one step, so that a GPU is busy.
Groups of them share noise words, as blocks do on the CPU.

All changes of a step start from the same point. Added up, those of a frequent word would go far
beyond its goal. A pair closes a part a = lr p (1 - p) |y|^2 of the distance of x to where it should
be, by the second derivative of its loss; n pairs one after the other leave (1 - a_1) ... (1 - a_n)
of it, about exp(-A) with A the sum of all a. So the sum of a row's changes counts (1 - exp(-A)) /
A: 1 for rare words, less the more a row would be moved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from nlpkit.word2vec.config import Arch, Loss, Word2VecConfig
from nlpkit.word2vec.huffman import build_tree
from nlpkit.word2vec.sampling import keep_limits, noise_probabilities, read_windows, seeded
from nlpkit.word2vec.store import LONGEST_SENTENCE, IdStore

if TYPE_CHECKING:
    from nlpkit.word2vec.tiles import Floats

# What is predicted in one step, all from the same point: pairs for skip-gram, of which a centre has
# about six, centres for CBOW.
EXAMPLES = {Arch.SKIPGRAM: 24_576, Arch.CBOW: 4_096}
GROUP = {Arch.SKIPGRAM: 512, Arch.CBOW: 64}  # examples that share noise words
NOISE_WORDS = 64  # that a group shares
MOST_SCORES = 1 << 24  # of one step of the full softmax


class Changes(NamedTuple):
    """What a step adds to some rows of a matrix, and which part of its way each change is."""

    rows: Tensor  # (N,)
    change: Tensor  # (N, D)
    parts: Tensor  # (N,)


class TorchEngine:
    """Both matrices on a device, and a function that trains on one chunk of the corpus."""

    def __init__(
        self, store: IdStore, config: Word2VecConfig, words_per_piece: int, device: str
    ) -> None:
        self.config = config
        self.ids = store.ids
        self.longest_piece = words_per_piece + LONGEST_SENTENCE
        self.device = torch.device(device)
        shape = (len(store.words), config.dim)
        self.input = torch.zeros(shape, device=self.device)
        self.output = torch.zeros(shape, device=self.device)
        self.keep = keep_limits(store.counts, config.sample)
        noise = noise_probabilities(store.counts, config.ns_exponent)
        self.noise_sum = torch.from_numpy(np.cumsum(noise)).float().to(self.device)
        if config.loss is Loss.HS:
            self._lay_out_tree(store)

    def _lay_out_tree(self, store: IdStore) -> None:
        """Paths as rows of one length: nodes, which way to go (+1, -1), and 0 behind the end."""
        tree = build_tree(store.counts)
        nodes = np.zeros((len(store.words), tree.longest), dtype=np.int64)
        signs = np.zeros(nodes.shape, dtype=np.float32)
        for word, (start, end) in enumerate(zip(tree.starts, tree.starts[1:], strict=False)):
            nodes[word, : end - start] = tree.nodes[start:end]
            signs[word, : end - start] = 1 - 2 * tree.codes[start:end].astype(np.float32)
        self.nodes = torch.from_numpy(nodes).to(self.device)
        self.signs = torch.from_numpy(signs).to(self.device)

    def matrices(self) -> tuple[Floats, Floats]:
        """The vectors of the words, and those of what is predicted: (vocabulary, dim) each."""
        return self.input.cpu().numpy(), self.output.cpu().numpy()

    def set_rows(self, rows: slice, inputs: Floats) -> None:
        """Start from these vectors."""
        self.input[rows] = torch.from_numpy(np.array(inputs)).to(self.device)

    def set_outputs(self, rows: slice, outputs: Floats) -> None:
        """Start from these predictions."""
        self.output[rows] = torch.from_numpy(np.array(outputs)).to(self.device)

    def make_worker(self) -> list[np.ndarray]:
        """Memory for the words of a chunk and their windows."""
        return [np.zeros(self.longest_piece, dtype=np.int32) for _ in range(3)]

    def compile(self) -> None:
        """Nothing to compile: torch brings its kernels."""

    def train_piece(
        self, number: int, start: int, stop: int, lr: float, space: list[np.ndarray]
    ) -> tuple[float, int]:
        """Train on ``ids[start:stop]``; returns the sum of the losses and their number."""
        config = self.config
        word, low, high = space
        _, n = read_windows(
            np.uint64(seeded(config.seed, number)),  # called from Python it is a plain int
            self.ids,
            start,
            stop,
            self.keep,
            config.window,
            config.shrink_windows,
            word,
            low,
            high,
            word[:0],
        )
        if not n:
            return 0.0, 0
        generator = torch.Generator().manual_seed(config.seed * 1_000_003 + number)
        here, left, right = (torch.from_numpy(each[:n]).to(self.device).long() for each in space)
        context, inside = _windows(here, left, right, 2 * config.window + 1)
        total = torch.zeros((), device=self.device)
        if config.arch is Arch.SKIPGRAM:
            # each word of a window predicts the centre: a pair is an example
            targets = here[:, None].expand_as(context)[inside]  # (E,)
            context = context[inside][:, None]  # (E, 1)
            inside = torch.ones_like(context, dtype=torch.bool)
        else:
            targets = here
        at_once = self._examples_at_once()
        for first in range(0, len(targets), at_once):
            some = slice(first, first + at_once)
            total += self._step(targets[some], context[some], inside[some], lr, generator)
        return float(total), len(targets)

    def _examples_at_once(self) -> int:
        most = EXAMPLES[self.config.arch]
        if self.config.loss is Loss.HS:  # which has a row for each node of each example's path
            most = min(most, EXAMPLES[Arch.CBOW])
        elif self.config.loss is Loss.SOFTMAX:
            most = min(most, max(1, MOST_SCORES // len(self.output)))
        return most

    def _step(
        self, target: Tensor, context: Tensor, inside: Tensor, lr: float, generator: torch.Generator
    ) -> Tensor:
        """Examples: targets (E,), their inputs (E, W) and which of these there are (E, W)."""
        hidden = (self.input[context] * inside[..., None]).sum(1)  # (E, D)
        if self.config.cbow_mean:
            hidden = hidden / inside.sum(1, keepdim=True)
        loss, change, parts, outputs = self._gradients(hidden, target, lr, generator)
        # each word of a window gets the whole change, undivided: it learns far more that way
        example = torch.arange(len(target), device=self.device)[:, None].expand_as(inside)[inside]
        _add(self.input, [Changes(context[inside], change[example], parts[example])])
        _add(self.output, outputs)
        return loss

    def _gradients(
        self, hidden: Tensor, target: Tensor, lr: float, generator: torch.Generator
    ) -> tuple[Tensor, Tensor, Tensor, list[Changes]]:
        """The loss; changes of the hidden rows (E, D) with their parts (E,); those of outputs."""
        if self.config.loss is Loss.SOFTMAX:
            logits = hidden @ self.output.T  # (E, V)
            loss = functional.cross_entropy(logits, target, reduction="sum")
            p = logits.softmax(1)
            curves = lr * p * (1 - p)
            p[torch.arange(len(target)), target] -= 1
            rows = torch.arange(len(self.output), device=self.device)
            outputs = Changes(rows, -lr * (p.T @ hidden), curves.T @ _squares(hidden))
            return loss, -lr * (p @ self.output), curves @ _squares(self.output), [outputs]
        if self.config.loss is Loss.HS:
            nodes, signs = self.nodes[target], self.signs[target]  # (E, L)
            paths = self.output[nodes]  # (E, L, D)
            scores = (paths @ hidden[:, :, None]).squeeze(2) * signs  # (E, L)
            p = torch.sigmoid(-scores)
            loss = (functional.softplus(-scores) * signs.abs()).sum()
            steps, curves = lr * signs * p, lr * signs.abs() * p * (1 - p)
            change = (steps[:, None, :] @ paths).squeeze(1)  # (E, D)
            outer = steps[:, :, None] * hidden[:, None, :]  # (E, L, D)
            parts = (curves * _squares(hidden)[:, None]).flatten()
            outputs = Changes(nodes.flatten(), outer.flatten(0, 1), parts)
            return loss, change, (curves * _squares(paths)).sum(1), [outputs]
        return self._against_noise(hidden, target, lr, generator)

    def _against_noise(
        self, hidden: Tensor, target: Tensor, lr: float, generator: torch.Generator
    ) -> tuple[Tensor, Tensor, Tensor, list[Changes]]:
        """The same for negative sampling, with noise words for each group of examples."""
        count, dim = hidden.shape
        size = min(GROUP[self.config.arch], count)
        groups = -(-count // size)
        draws = torch.rand(groups, NOISE_WORDS, generator=generator).to(self.device)
        noise = torch.searchsorted(self.noise_sum, draws).clamp_(max=len(self.noise_sum) - 1)
        share = self.config.negative / NOISE_WORDS
        rest = groups * size - count  # the last group is filled up with examples of no weight
        by_group = functional.pad(hidden, (0, 0, 0, rest)).view(groups, size, dim)
        of_group = functional.pad(target, (0, rest), value=-1).view(groups, size, 1)
        # a true word is no noise
        weights = share * ((noise[:, None, :] != of_group) & (of_group >= 0))  # (G, P, K)
        true_rows, noise_rows = self.output[target], self.output[noise]  # (E, D), (G, K, D)
        true_scores = (hidden * true_rows).sum(1)  # (E,)
        noise_scores = by_group @ noise_rows.transpose(1, 2)  # (G, P, K)
        loss = functional.softplus(-true_scores).sum()
        loss += (functional.softplus(noise_scores) * weights).sum()

        p, q = torch.sigmoid(-true_scores), torch.sigmoid(noise_scores)
        steps, curves = lr * p, lr * p * (1 - p)  # (E,)
        noise_steps, noise_curves = -lr * weights * q, lr * weights * q * (1 - q)  # (G, P, K)
        change = steps[:, None] * true_rows + (noise_steps @ noise_rows).view(-1, dim)[:count]
        parts = curves * _squares(true_rows)
        parts += (noise_curves @ _squares(noise_rows)[..., None]).flatten()[:count]
        of_noise = noise_steps.transpose(1, 2) @ by_group  # (G, K, D)
        noise_parts = noise_curves.transpose(1, 2) @ _squares(by_group)[..., None]  # (G, K, 1)
        outputs = [
            Changes(target, steps[:, None] * hidden, curves * _squares(hidden)),
            Changes(noise.flatten(), of_noise.flatten(0, 1), noise_parts.flatten()),
        ]
        return loss, change, parts, outputs


def _squares(rows: Tensor) -> Tensor:
    return rows.square().sum(-1)


def _add(matrix: Tensor, changes: list[Changes]) -> None:
    """Add changes to rows, together no further than where they lead."""
    parts = torch.zeros(len(matrix), device=matrix.device)
    for each in changes:
        parts.index_add_(0, each.rows, each.parts)
    parts.clamp_(min=1e-6)
    weights = -torch.expm1(-parts) / parts  # (rows,)
    for each in changes:
        matrix.index_add_(0, each.rows, each.change * weights[each.rows, None])


def _windows(word: Tensor, low: Tensor, high: Tensor, widest: int) -> tuple[Tensor, Tensor]:
    """The windows of all words as rows of one length (n, W), and which entries are real."""
    centres = torch.arange(len(word), device=word.device)[:, None]
    positions = low[:, None] + torch.arange(widest, device=word.device)
    inside = (positions < high[:, None]) & (positions != centres)
    return word[torch.where(inside, positions, 0)], inside
