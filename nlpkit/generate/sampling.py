"""The sampler: from logits to the next id. Every model and every command draws with it.

``adjust_logits`` is penalties and biases; ``sample_next`` has temperature, top-k, top-p and the
draw, by the largest of logits and Gumbel noise. The loop around it is ``generate/loop.py``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nlpkit.generate.settings import SamplingSettings

__all__ = ["SamplingSettings", "draw_keys", "sample_next"]

_MASK = (1 << 32) - 1


def draw_keys(generator: torch.Generator, rows: int) -> Tensor:
    """A random number for each row (B, 1), from which the chances of all its ids follow.

    The generator is one of the CPU: a seed then means the same draws on every device.
    """
    return torch.randint(1 << 32, (rows, 1), generator=generator)


def sample_next(
    logits: Tensor,  # (B, V)
    settings: SamplingSettings,
    keys: Tensor,  # (B, 1)
    seen: Tensor | None = None,  # (B, T): ids so far, for penalties
) -> Tensor:
    """Draw one id for each row (B,).

    >>> logits = torch.tensor([[0.0, 5.0, 1.0]])
    >>> sample_next(logits, SamplingSettings(temperature=0), draw_keys(torch.Generator(), 1))
    tensor([1])
    """
    logits = adjust_logits(logits, settings, seen)
    if settings.temperature == 0:
        return logits.argmax(dim=-1)
    ids = None
    if settings.top_k and settings.top_k < logits.size(-1):
        logits, ids = logits.topk(settings.top_k)  # (B, k), likeliest first
    if settings.top_p < 1 or settings.min_p > 0:
        if ids is None:
            logits, ids = logits.sort(descending=True)
        logits = _cut_tail(logits, settings)
    if settings.typical_p < 1:
        logits = _keep_typical(logits, settings)
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


def adjust_logits(logits: Tensor, settings: SamplingSettings, seen: Tensor | None) -> Tensor:
    """Logits (B, V) with the bias of tokens and all penalties for what was written before.

    >>> settings = SamplingSettings(presence_penalty=1.0, logit_bias=((2, 3.0),))
    >>> adjust_logits(torch.zeros(1, 3), settings, torch.tensor([[0, 0]]))
    tensor([[-1.,  0.,  3.]])
    """
    if settings.logit_bias:
        ids = torch.tensor([index for index, _ in settings.logit_bias], device=logits.device)
        bias = torch.tensor([value for _, value in settings.logit_bias], device=logits.device)
        logits = logits.index_add(1, ids, bias.to(logits.dtype).expand(len(logits), -1))
    if seen is None or not settings.looks_back:
        return logits
    if settings.repetition_penalty != 1:
        logits = _penalize(logits, seen, settings.repetition_penalty)
    if settings.frequency_penalty or settings.presence_penalty:
        ones = torch.ones_like(seen, dtype=logits.dtype)
        counts = torch.zeros_like(logits).scatter_add_(1, seen, ones)  # (B, V)
        logits = logits - settings.frequency_penalty * counts
        logits = logits - settings.presence_penalty * (counts > 0)
    if settings.no_repeat_ngram:
        logits = _forbid_repeats(logits, seen, settings.no_repeat_ngram)
    return logits


def _forbid_repeats(logits: Tensor, seen: Tensor, length: int) -> Tensor:
    """Rule out what would complete an n-gram that was written already (Paulus et al., 2018)."""
    if seen.size(1) < length:
        return logits
    grams = seen.unfold(1, length, 1)  # (B, n-grams, length)
    again = (grams[:, :, :-1] == seen[:, None, seen.size(1) - length + 1 :]).all(dim=2)
    forbidden = torch.zeros_like(logits, dtype=torch.bool)
    rows, places = again.nonzero(as_tuple=True)
    forbidden[rows, grams[rows, places, -1]] = True
    forbidden &= ~forbidden.all(dim=1, keepdim=True)  # something must be left
    return logits.masked_fill(forbidden, float("-inf"))


def _keep_typical(logits: Tensor, settings: SamplingSettings) -> Tensor:
    """Rule out what surprises much more or much less than on average (Meister et al., 2023)."""
    logs = (logits / settings.temperature).log_softmax(dim=-1)
    probabilities = logs.exp()
    expected = -(probabilities * logs.clamp_min(-1e9)).sum(dim=-1, keepdim=True)  # the entropy
    oddness = (-logs - expected).abs()
    order = oddness.argsort(dim=-1)
    sorted_shares = probabilities.gather(1, order)
    before = sorted_shares.cumsum(dim=-1) - sorted_shares
    cut = torch.zeros_like(logits, dtype=torch.bool).scatter_(
        1, order, before >= settings.typical_p
    )
    cut.scatter_(1, order[:, :1], False)
    return logits.masked_fill(cut, float("-inf"))


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
