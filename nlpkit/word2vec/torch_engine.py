"""The torch engine: the same steps as the CPU kernels, as a few large products for a GPU.

Sentences are subsampled and cut into windows on the CPU, by the same code and the same random
numbers as in ``cpu``. Then a batch of centre words is trained at once: all its steps start from the
same point and are added up, and the noise words are shared by the batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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

# Centre words to a batch. A frequent word gets many steps from one batch, all from the same point:
# much larger batches overshoot.
CENTRES = 128
NOISE_WORDS = 64  # that a batch shares


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
        )
        generator = torch.Generator().manual_seed(config.seed * 1_000_003 + number)
        total, count = torch.zeros((), device=self.device), 0
        for first in range(0, n, CENTRES):
            last = min(first + CENTRES, n)
            context, inside = _windows(word, low, high, first, last)
            centre = torch.from_numpy(word[first:last].astype(np.int64)).to(self.device)
            loss, examples = self._step(
                centre,
                torch.from_numpy(context).to(self.device),
                torch.from_numpy(inside).to(self.device),
                lr,
                generator,
            )
            total += loss
            count += examples
        return float(total), count

    def _step(
        self, centre: Tensor, context: Tensor, inside: Tensor, lr: float, generator: torch.Generator
    ) -> tuple[Tensor, int]:
        """One batch: centre (C,), context (C, W) and which of it is inside a window (C, W)."""
        if self.config.arch is Arch.SKIPGRAM:
            # each word of a window predicts the centre: a pair is an example
            words = context[inside]  # (E,)
            target = centre[:, None].expand_as(context)[inside]  # (E,)
            hidden = self.input[words]  # (E, D)
            loss, change = self._update_outputs(hidden, target, lr, generator)
            self.input.index_add_(0, words, change)
            return loss, len(words)
        rows = self.input[context] * inside[..., None]  # (C, W, D)
        hidden = rows.sum(1)
        if self.config.cbow_mean:
            hidden = hidden / inside.sum(1, keepdim=True)
        loss, change = self._update_outputs(hidden, centre, lr, generator)
        # each word of the window gets the whole change, undivided: it learns far more that way
        shared = change[:, None, :].expand(-1, context.shape[1], -1)  # (C, W, D)
        self.input.index_add_(0, context[inside], shared[inside])
        return loss, len(centre)

    def _update_outputs(
        self, hidden: Tensor, target: Tensor, lr: float, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Move the output rows; returns the loss and the change of the hidden rows (E, D)."""
        if self.config.loss is Loss.SOFTMAX:
            logits = hidden @ self.output.T  # (E, V)
            loss = functional.cross_entropy(logits, target, reduction="sum")
            steps = -lr * logits.softmax(1)
            steps[torch.arange(len(target)), target] += lr
            change = steps @ self.output
            self.output += steps.T @ hidden
            return loss, change
        if self.config.loss is Loss.HS:
            nodes, signs = self.nodes[target], self.signs[target]  # (E, L)
            rows = self.output[nodes]  # (E, L, D)
            scores = (rows @ hidden[:, :, None]).squeeze(2) * signs  # (E, L)
            steps = lr * signs * torch.sigmoid(-scores)
            loss = (functional.softplus(-scores) * signs.abs()).sum()
            change = (steps[:, None, :] @ rows).squeeze(1)  # (E, D)
            outer = steps[:, :, None] * hidden[:, None, :]  # (E, L, D)
            self.output.index_add_(0, nodes.flatten(), outer.flatten(0, 1))
            return loss, change
        draws = torch.rand(NOISE_WORDS, generator=generator).to(self.device)
        noise = torch.searchsorted(self.noise_sum, draws).clamp_(max=len(self.noise_sum) - 1)
        share = self.config.negative / NOISE_WORDS
        true_rows, noise_rows = self.output[target], self.output[noise]  # (E, D), (K, D)
        true_scores = (hidden * true_rows).sum(1)  # (E,)
        noise_scores = hidden @ noise_rows.T  # (E, K)
        other = share * (noise[None, :] != target[:, None])  # a true word is no noise
        loss = functional.softplus(-true_scores).sum()
        loss += (functional.softplus(noise_scores) * other).sum()
        true_steps = lr * torch.sigmoid(-true_scores)  # (E,)
        noise_steps = -lr * torch.sigmoid(noise_scores) * other  # (E, K)
        change = true_steps[:, None] * true_rows + noise_steps @ noise_rows
        self.output.index_add_(0, target, true_steps[:, None] * hidden)
        self.output.index_add_(0, noise, noise_steps.T @ hidden)
        return loss, change


def _windows(
    word: np.ndarray, low: np.ndarray, high: np.ndarray, first: int, last: int
) -> tuple[np.ndarray, np.ndarray]:
    """The windows of centres ``first:last`` as rows of one length, and which entries are real."""
    centres = np.arange(first, last)
    widest = int((high[first:last] - low[first:last]).max())
    positions = low[first:last, None] + np.arange(widest)[None, :]  # (C, W)
    inside = (positions < high[first:last, None]) & (positions != centres[:, None])
    return word[np.where(inside, positions, first)].astype(np.int64), inside
