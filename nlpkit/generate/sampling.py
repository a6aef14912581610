"""The sampler: from logits to the next id. Every model and every command draws with it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nlpkit.errors import NlpkitError

_MASK = (1 << 32) - 1


@dataclass(frozen=True)
class SamplingSettings:
    """How to draw. The defaults draw from the model's distribution as it is."""

    temperature: float = 1.0  # below 1 plays safe, above 1 dares; 0 always takes the likeliest
    top_k: int = 0  # only the k likeliest; 0 is all
    top_p: float = 1.0  # only the likeliest that together have this probability
    min_p: float = 0.0  # only those at least this share as likely as the likeliest
    repetition_penalty: float = 1.0  # above 1 makes ids that were there already less likely

    def __post_init__(self) -> None:
        for name, low, high, what in (
            ("temperature", 0.0, 100.0, "0 (always the likeliest) or more"),
            ("top_p", 1e-9, 1.0, "more than 0, at most 1"),
            ("min_p", 0.0, 1.0, "from 0 to 1"),
            ("repetition_penalty", 1e-3, 100.0, "about 1, such as 1.2"),
            ("top_k", 0, 2**31, "0 (no limit) or more"),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                hint = f"a value that is {what}"
                raise NlpkitError(f"`{name}` cannot be {value:g}", hint=hint)

    @property
    def likeliest(self) -> int:
        """Of how many of the likeliest ids the logits are needed; 0 is all.

        >>> SamplingSettings(top_k=40).likeliest, SamplingSettings(temperature=0).likeliest
        (40, 1)
        """
        if self.repetition_penalty != 1:
            return 0
        return self.top_k if self.temperature else 1

    def check_vocab(self, size: int) -> None:
        """Refuse a ``top_k`` beyond the vocabulary: it would silently do nothing."""
        if self.top_k > size:
            raise NlpkitError(
                f"`top_k` {self.top_k} is more than the {size} ids of the model",
                hint=f"`top_k` {size} or less",
            )


def draw_keys(generator: torch.Generator, rows: int) -> Tensor:
    """A random number for each row (B, 1), from which the chances of all its ids follow.

    The generator is one of the CPU: a seed then means the same draws on every device.
    """
    return torch.randint(1 << 32, (rows, 1), generator=generator)


def sample_next(
    logits: Tensor,  # (B, V)
    settings: SamplingSettings,
    keys: Tensor,  # (B, 1)
    seen: Tensor | None = None,  # (B, T): ids so far, for the repetition penalty
) -> Tensor:
    """Draw one id for each row (B,).

    >>> logits = torch.tensor([[0.0, 5.0, 1.0]])
    >>> sample_next(logits, SamplingSettings(temperature=0), draw_keys(torch.Generator(), 1))
    tensor([1])
    """
    if settings.repetition_penalty != 1 and seen is not None:
        logits = _penalize(logits, seen, settings.repetition_penalty)
    if settings.temperature == 0:
        return logits.argmax(dim=-1)
    ids = None
    if settings.top_k and settings.top_k < logits.size(-1):
        logits, ids = logits.topk(settings.top_k)  # (B, k), likeliest first
    if settings.top_p < 1 or settings.min_p > 0:
        if ids is None:
            logits, ids = logits.sort(descending=True)
        logits = _cut_tail(logits, settings)
    # the largest of logits / temperature plus Gumbel noise is a draw from their softmax
    every = torch.arange(logits.size(-1), device=logits.device) if ids is None else ids
    noise = _noise(_chances(_hashes(keys.to(logits.device), every)))
    drawn = torch.sub(logits, noise, alpha=settings.temperature).argmax(dim=-1)  # (B,)
    return drawn if ids is None else ids.gather(1, drawn[:, None])[:, 0]


def _hashes(keys: Tensor, ids: Tensor) -> Tensor:
    """32 random bits for each id (B, k), the same for the same key and id.

    So that logits which are a little off, or in another order, nearly always give the same draw.
    The constants are those that the hash-prospector project found.
    """
    mixed = (ids * 0x9E3779B1 + keys).bitwise_and_(_MASK)
    for shift, factor in ((16, 0x21F0AAAD), (15, 0x735A2D97)):
        mixed = mixed.bitwise_xor_(mixed >> shift).mul_(factor).bitwise_and_(_MASK)
    return mixed.bitwise_xor_(mixed >> 15)


def _chances(hashes: Tensor) -> Tensor:
    """A uniform number for each hash, greater than 0 and less than 1.

    A float32 holds 24 of the 32 bits, so the largest hashes are rounded up to 2**32: the factor is
    a little less than 2**-32, which keeps them below 1. Near 0, where the noise is largest, the
    numbers stay 2**-32 apart: ids of a large vocabulary hardly ever tie.

    >>> _chances(torch.tensor([_MASK, 0])) * 2**33
    tensor([1.0000e+00, 8.5899e+09])
    """
    largest = 1 - 2.0**-24  # below 1
    return (_MASK - hashes).float().add_(0.5).mul_(largest * 2.0**-32)


def _noise(chances: Tensor) -> Tensor:
    """Gumbel noise with its sign turned, log(-log(1 - p)), in place."""
    return chances.neg_().log1p_().neg_().log_()


def _penalize(logits: Tensor, seen: Tensor, penalty: float) -> Tensor:
    """Divide the positive and multiply the negative logits of ids that were there (Keskar 2019)."""
    found = logits.gather(1, seen)
    found = torch.where(found > 0, found / penalty, found * penalty)
    return logits.scatter(1, seen, found)


def _cut_tail(logits: Tensor, settings: SamplingSettings) -> Tensor:
    """Rule out the tail of sorted logits by top-p and min-p; the likeliest always stays."""
    probabilities = (logits / settings.temperature).softmax(dim=-1)
    before = probabilities.cumsum(dim=-1) - probabilities  # of all that are likelier
    cut = (before >= settings.top_p) | (probabilities < settings.min_p * probabilities[:, :1])
    cut[:, 0] = False
    return logits.masked_fill(cut, float("-inf"))
