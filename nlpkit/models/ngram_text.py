"""An n-gram model of running text behind the contract of all language models.

The trie (``kneser_ney.py``) does the work; the state that is carried from token to token is the
longest context that was seen in training.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nlpkit.models.base import LanguageModel, cross_entropy
from nlpkit.models.kneser_ney import Trie
from nlpkit.models.settings import ModelSettings

_NO_LIMIT = 2**31 - 1  # of the context: older words do no harm


@dataclass
class TrieCache:
    """The context behind the last token of each row."""

    states: list[int] = field(default_factory=list)

    def clear(self) -> None:
        """Forget everything."""
        self.states = []

    def select(self, rows: Tensor) -> None:
        """Go on with these rows (R,), some of them perhaps several times."""
        self.states = [self.states[row] for row in rows.tolist()]


class NGramText(LanguageModel):
    """A trie as a language model.

    >>> from nlpkit.models.kneser_ney import kneser_ney
    >>> model = NGramText(kneser_ney(np.array([2, 3, 2, 3, 2], np.int32), 2, 4))
    >>> int(model(torch.tensor([[2]]))[0][0, -1].argmax())
    3
    """

    carries_state = True

    def __init__(self, trie: Trie) -> None:
        super().__init__()
        self.trie = trie
        self.settings = ModelSettings(
            model="ngram", vocab_size=trie.vocab_size, block_size=_NO_LIMIT, order=trie.order
        )
        self.register_buffer("here", torch.zeros(0), persistent=False)  # where it is: on the CPU

    def count_parameters(self) -> int:
        """A probability and a back-off weight for each n-gram."""
        return 2 * (len(self.trie.words) - 1)

    def new_cache(self, batch: int, length: int | None = None) -> TrieCache:
        """Room for a context of each row."""
        return TrieCache()

    def forward(
        self,
        idx: Tensor,
        targets: Tensor | None = None,
        *,
        cache: TrieCache | None = None,
        pads: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        rows = []
        skipped = [0] * idx.size(0) if pads is None else pads.tolist()
        states = cache.states if cache is not None and cache.states else None
        after = []
        for row, ids in enumerate(idx.tolist()):
            state = self.trie.start if states is None else states[row]
            logs = []
            for place, index in enumerate(ids):
                if states is None and place < skipped[row]:
                    logs.append(np.zeros(self.trie.vocab_size, np.float32))
                    continue
                state = self.trie.context([index], state)
                if cache is None or place == len(ids) - 1:
                    logs.append(self.trie.distribution(state))
            rows.append(np.stack(logs))
            after.append(state)
        if cache is not None:
            cache.states = after
            rows = [row[-1:] for row in rows]
        logits = torch.from_numpy(np.stack(rows))  # (B, T, V)
        return logits, cross_entropy(logits, targets)

    def token_losses(self, idx: Tensor, targets: Tensor, cache: Any = None) -> Tensor:
        """The negative log-likelihood of each target (B, T), from the context carried on."""
        losses = np.empty(tuple(idx.shape), np.float32)
        states = cache.states if cache is not None and cache.states else None
        after = []
        for row in range(idx.size(0)):
            ids = idx[row].numpy().astype(np.int32)
            last = targets[row, -1:].numpy().astype(np.int32)
            state = self.trie.context(ids[:1].tolist(), states[row] if states else None)
            scores, state = self.trie.score(ids[1:], state)
            losses[row, :-1] = -scores
            losses[row, -1:] = -self.trie.score(last, state)[0]
            after.append(state)
        if cache is not None:
            cache.states = after
        return torch.from_numpy(losses)

    def write(self, folder: Path) -> None:
        """Write the trie into a folder that ``modeldir.create`` gave."""
        self.trie.write(folder)
