"""Asking a language model: what comes next, and what could fill the blank at the end of a text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from nlpkit.compare import split_blank
from nlpkit.errors import NlpkitError
from nlpkit.tasks.lm.model import TextModel
from nlpkit.text.characters import Characters
from nlpkit.text.codec import Bytes, TextStream
from nlpkit.text.word_codec import Words

_LONGEST_WORD = 24  # tokens
_BEAMS = 32  # ways to write a word that are followed at once


def next_logs(model: TextModel, text: str) -> np.ndarray:
    """The log-probability of every token behind a text (V,)."""
    return _logs_behind(model, model.encode_prompt(text))


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
    ids = model.encode_prompt(text)
    words: dict[str, float] = {}
    alive: list[tuple[tuple[int, ...], float, str]] = [((), 0.0, "")]
    for _ in range(_LONGEST_WORD):
        grown: list[tuple[tuple[int, ...], float, str]] = []
        for row, log, word in alive:
            logs = _logs_behind(model, [*ids, *row])
            for index in np.argsort(-logs)[:_BEAMS].tolist():
                piece = model.codec.decode([index])
                score = log + float(logs[index])
                begun = bool(word.strip())
                if begun and piece[:1].isspace():
                    words[word.strip()] = words.get(word.strip(), 0.0) + float(np.exp(score))
                elif not (piece.isspace() and "\n" in piece):
                    grown.append(((*row, index), score, word + piece))
        alive = sorted(grown, key=lambda entry: -entry[1])[: max(_BEAMS, count)]
        enough = sorted(words.values(), reverse=True)[:count]
        if not alive or (len(enough) == count and np.exp(alive[0][1]) < enough[-1]):
            break
    return sorted(words.items(), key=lambda pair: -pair[1])[:count]


@torch.inference_mode()
def _logs_behind(model: TextModel, ids: Sequence[int]) -> np.ndarray:
    block = None if model.model.carries_state else model.model.settings.block_size
    idx = torch.tensor([ids if block is None else ids[-block:]], device=model.device)
    logits, _ = model.model(idx, cache=model.model.new_cache(1))
    return logits[0, -1, : model.codec.n_ids].float().log_softmax(dim=-1).cpu().numpy()


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
    found = []
    for target in targets:
        if not target.strip():
            raise NlpkitError("a target is empty", hint="words between commas")
        if _is_fine(model) or isinstance(model.codec, Words):
            ids = model.codec.encode(target)
            prompt = before
        else:  # the space belongs to the subword behind it
            ids = model.codec.encode((" " if spaced else "") + target)
            prompt = before.rstrip(" ")
        found.append(_sum_of_logs(model, prompt, ids))
    return list(targets), np.array(found)


def _is_fine(model: TextModel) -> bool:
    """Whether a space is a token of its own: characters and bytes."""
    return isinstance(model.codec, (Bytes, Characters))


def _sum_of_logs(model: TextModel, prompt: str, ids: Sequence[int]) -> float:
    """The log-probability of some tokens behind a text."""
    context = model.encode_prompt(prompt)
    total = 0.0
    for place, index in enumerate(ids):
        total += float(_logs_behind(model, [*context, *ids[:place]])[index])
    return total


def shown_tokens(model: TextModel, ids: Sequence[int]) -> list[str]:
    """The text of each token; half a character is shown with the token that completes it."""
    stream = TextStream(model.codec)
    texts = [stream.add(int(index)) for index in ids]
    rest = stream.finish()
    return [*texts[:-1], texts[-1] + rest] if texts else []
