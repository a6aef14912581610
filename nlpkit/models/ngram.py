"""An n-gram model: counts, no gradient. The baseline the others must beat.

Interpolated Kneser-Ney smoothing: the share of a context's count that is discounted goes to the
distribution of the next shorter context, which counts in how many contexts a character was seen,
not how often. A context and its next character are one integer key; keys are kept sorted.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from nlpkit.errors import NlpkitError
from nlpkit.models.base import ContextCache, LanguageModel, cross_entropy
from nlpkit.models.feedforward import context_windows
from nlpkit.models.settings import ModelSettings
from nlpkit.schema import AGAIN

_MOST = 0.9  # a discount of 1, which few data suggest, would throw all single counts away


class NGram(LanguageModel):
    """Tables of counts for contexts of ``order`` characters down to none.

    >>> model = NGram(ModelSettings(model="ngram", vocab_size=4, order=2))
    >>> model.count([(torch.tensor([[1, 2, 1]]), torch.tensor([[2, 1, 3]]))])
    >>> logits, _ = model(torch.tensor([[1]]))
    >>> int(logits[0, -1].argmax())
    2
    """

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.settings = settings
        self.base = settings.vocab_size + 1  # one more: what stands before the beginning
        if self.base ** (settings.order + 1) >= 2**63:
            raise NlpkitError(
                f"{settings.vocab_size} characters are too many for `order` {settings.order}",
                hint=f"`order` {settings.order - 1}",
            )
        for length in range(settings.order + 1):
            self.register_buffer(f"keys_{length}", torch.zeros(0, dtype=torch.int64))
            self.register_buffer(f"counts_{length}", torch.zeros(0, dtype=torch.int64))

    @torch.no_grad()
    def count(self, batches: Iterable[tuple[Tensor, Tensor]]) -> None:
        """Count all pairs of context and next character in batches of (ids, targets)."""
        keys = []
        for idx, targets in batches:
            windows = self._windows(idx, None)
            keys.append((self._key(windows) * self.base + targets)[targets >= 0])
        longest, counts = torch.cat(keys).unique(return_counts=True)
        for length in range(self.settings.order, -1, -1):
            setattr(self, f"keys_{length}", longest)
            setattr(self, f"counts_{length}", counts)
            # without its oldest character; each longer context it was seen in counts once
            longest, counts = (longest % self.base**length).unique(return_counts=True)

    def check(self, path: str) -> None:
        """Refuse tables from a file that are no counts."""
        for length in range(self.settings.order + 1):
            keys, counts = getattr(self, f"keys_{length}"), getattr(self, f"counts_{length}")
            rising = bool((keys[1:] > keys[:-1]).all())
            inside = int(keys[0]) >= 0 and int(keys[-1]) < self.base ** (length + 1)
            if not (rising and inside and int(counts.min()) > 0):
                raise NlpkitError(
                    f"{path}: contexts of length {length} are not counted in order", hint=AGAIN
                )

    def _windows(self, idx: Tensor, pads: Tensor | None) -> Tensor:
        settings = self.settings
        return context_windows(
            idx, settings.order, settings.vocab_size, settings.starts, pads
        )  # (B, T, n)

    def _key(self, windows: Tensor) -> Tensor:
        """The ids of a context as digits of one number."""
        places = self.base ** torch.arange(windows.size(-1) - 1, -1, -1, device=windows.device)
        return (windows * places).sum(-1)

    def forward(
        self,
        idx: Tensor,
        targets: Tensor | None = None,
        *,
        cache: ContextCache | None = None,
        pads: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        if cache is not None:
            idx, pads = cache.extend(idx, pads)
            idx = idx[:, -self.settings.order :] if pads is None else idx
        context = self._key(self._windows(idx, pads))  # (B, T)
        if cache is not None:
            context = context[:, -1:]
        vocab = self.settings.vocab_size
        distribution = torch.full((*context.shape, vocab), 1 / vocab, device=idx.device)
        for length in range(self.settings.order + 1):
            distribution = self._interpolate(length, context % self.base**length, distribution)
        logits = distribution.log()  # (B, T, V)
        return logits, cross_entropy(logits, targets)

    def _interpolate(self, length: int, context: Tensor, shorter: Tensor) -> Tensor:
        """Discounted counts of contexts of a length, the rest from the shorter context."""
        keys: Tensor = getattr(self, f"keys_{length}")
        counts: Tensor = getattr(self, f"counts_{length}")
        singles, doubles = int((counts == 1).sum()), int((counts == 2).sum())
        discount = min(_MOST, singles / (singles + 2 * doubles)) if singles else 0.5
        first = context[..., None] * self.base
        wanted = first + torch.arange(self.settings.vocab_size, device=context.device)
        place = torch.searchsorted(keys, wanted).clamp_max(len(keys) - 1)
        found = torch.where(keys[place] == wanted, counts[place], 0)  # (B, T, V)
        total = found.sum(-1, keepdim=True)
        kinds = (found > 0).sum(-1, keepdim=True)
        smoothed = ((found - discount).clamp_min(0) + discount * kinds * shorter) / total
        return torch.where(total > 0, smoothed, shorter)
