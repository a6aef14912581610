"""Asking a language model: what comes next, and what could fill the blank at the end of a text."""

from __future__ import annotations

import functools
import heapq
import math
from collections.abc import Sequence

import numpy as np
import torch

from nlpkit.compare import split_blank
from nlpkit.errors import NlpkitError
from nlpkit.generate.contexts import Contexts
from nlpkit.tasks.lm.model import TextModel
from nlpkit.text.characters import Characters
from nlpkit.text.codec import Bytes, TextStream
from nlpkit.text.word_codec import Words

_LONGEST_WORD = 24  # tokens
_BEAMS = 32  # ways to write a word that are followed at once, if no more words are wanted
_MOST_BEAMS = 256


def next_logs(model: TextModel, text: str) -> np.ndarray:
    """The log-probability of every token behind a text (V,)."""
    return _logs(model, Contexts(model.model, [model.encode_prompt(text)], 1))[0].cpu().numpy()


def next_tokens(model: TextModel, text: str, count: int) -> list[tuple[str, float]]:
    """The likeliest next tokens with their probabilities."""
    logs = next_logs(model, text)
    best = np.argsort(-logs, kind="stable")[:count]
    return [(model.codec.decode([int(i)]), float(np.exp(logs[i]))) for i in best]


def next_words(model: TextModel, text: str, count: int) -> list[tuple[str, float]]:
    """The likeliest next whole words: the best ways to write on to the next space or line end.

    A beam search, so a word that many unlikely beginnings lead to may be missed.
    """
    if isinstance(model.codec, Words):
        return next_tokens(model, text, count)
    prompt = model.encode_prompt(text)
    most = max(_BEAMS, min(count, _most_beams(model, len(prompt))))
    contexts = Contexts(model.model, [prompt], _LONGEST_WORD)
    piece_of = functools.cache(lambda token: model.codec.decode([token]))
    words: dict[tuple[int, ...], float] = {}
    alive: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]  # the rows: how likely, what is new
    for _ in range(_LONGEST_WORD):
        logs = _logs(model, contexts)
        best = logs.topk(min(_BEAMS, logs.size(1)))  # (B, 32)
        grown: list[tuple[float, tuple[int, ...], int]] = []
        rows = zip(alive, best.values.tolist(), best.indices.tolist(), strict=True)
        for row, ((before, ids), scores, tokens) in enumerate(rows):
            begun = not all(piece_of(token).isspace() for token in ids)
            for score, token in zip(scores, tokens, strict=True):
                piece = piece_of(token)
                if begun and piece[:1].isspace():
                    words[ids] = words.get(ids, 0.0) + math.exp(before + score)
                elif not (piece.isspace() and "\n" in piece):
                    grown.append((before + score, (*ids, token), row))
        grown = heapq.nlargest(most, grown)
        alive = [entry[:2] for entry in grown]
        enough = heapq.nlargest(count, words.values())
        if not alive or (len(enough) == count and math.exp(alive[0][0]) < enough[-1]):
            break
        contexts.select(torch.tensor([row for _, _, row in grown], device=model.device))
        contexts.extend(torch.tensor([ids[-1:] for _, ids, _ in grown], device=model.device))
    totals: dict[str, float] = {}
    for ids, share in words.items():  # some are the same word in other tokens
        word = model.codec.decode(ids).strip()
        totals[word] = totals.get(word, 0.0) + share
    return sorted(totals.items(), key=lambda pair: -pair[1])[:count]


def _most_beams(model: TextModel, length: int) -> int:
    """Rows that are read together: the keys and values of a GPT should fit in some 500 MB."""
    settings = model.model.settings
    if settings.model != "gpt":
        return _MOST_BEAMS
    kept = min(settings.block_size, length + _LONGEST_WORD) * settings.layers * settings.dim
    return min(_MOST_BEAMS, (1 << 26) // kept)


@torch.inference_mode()
def _logs(model: TextModel, contexts: Contexts) -> torch.Tensor:
    """The log-probability of every token behind each context (B, V)."""
    return contexts.read()[:, : model.codec.n_ids].float().log_softmax(dim=-1)


def blank_logs(
    model: TextModel, text: str, targets: Sequence[str] | None = None
) -> tuple[list[str], np.ndarray]:
    """Candidates for the blank at the end of a text, and the log-probability of each.

    Without ``targets`` all tokens of the model are candidates; targets may be of several tokens.
    """
    before, _ = split_blank(text, at_end=True)
    spaced = before[-1:] == " "
    if targets is None:
        prompt = before if _is_fine(model) else before.rstrip(" ")
        logs = next_logs(model, prompt)
        return [model.codec.decode([i]) for i in range(len(logs))], logs
    prompt, rows = before, []
    for target in targets:
        if not target.strip():
            raise NlpkitError("a target is empty", hint="words between commas")
        if _is_fine(model) or isinstance(model.codec, Words):
            rows.append(model.codec.encode(target))
        else:  # the space belongs to the subword behind it
            rows.append(model.codec.encode((" " if spaced else "") + target))
            prompt = before.rstrip(" ")
        if not rows[-1]:
            raise NlpkitError(f"the target {target!r} has no tokens", hint="words between commas")
    ids = model.encode_prompt(prompt)
    parts = (rows[start : start + _BEAMS] for start in range(0, len(rows), _BEAMS))
    return list(targets), np.array(
        [total for part in parts for total in _sums_of_logs(model, ids, part)]
    )


def _is_fine(model: TextModel) -> bool:
    """Whether a space is a token of its own: characters and bytes."""
    return isinstance(model.codec, (Bytes, Characters))


def _sums_of_logs(
    model: TextModel, prompt: Sequence[int], rows: Sequence[Sequence[int]]
) -> list[float]:
    """The log-probability of each row of tokens behind a prompt, which is read once."""
    longest = max(map(len, rows))
    padded = torch.tensor([[*row, *[row[-1]] * (longest - len(row))] for row in rows])
    counted = torch.tensor([[place < len(row) for place in range(longest)] for row in rows])
    totals = torch.zeros(len(rows))
    contexts = Contexts(model.model, [prompt], longest)
    for ids, mask in zip(padded.T, counted.T, strict=True):
        logs = _logs(model, contexts).cpu().expand(len(rows), -1)  # (B, V)
        totals += logs.gather(1, ids[:, None])[:, 0] * mask
        if len(contexts.idx) < len(rows):
            contexts.select(torch.zeros_like(ids, device=model.device))
        contexts.extend(ids[:, None].to(model.device))
    return totals.tolist()


def shown_tokens(model: TextModel, ids: Sequence[int]) -> list[str]:
    """The text of each token; half a character is shown with the token that completes it."""
    stream = TextStream(model.codec)
    texts = [stream.add(int(index)) for index in ids]
    rest = stream.finish()
    return [*texts[:-1], texts[-1] + rest] if texts else []
