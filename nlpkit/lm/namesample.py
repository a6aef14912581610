"""New names that meet constraints.

A prefix is a prompt. Letters that a pattern rules out are never drawn. A text that must be inside
or at the end is put where the model finds it likeliest: free names are drawn, the text is put after
each number of their characters, and one of the places is drawn by its probability. Everything else
is drawn and thrown away when it does not fit, so many times and no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import regex
import torch
from torch import Tensor

from nlpkit.errors import NlpkitError
from nlpkit.lm.generate import generate
from nlpkit.lm.namedata import END, Name
from nlpkit.lm.names import NamesModel
from nlpkit.lm.sampling import SamplingSettings

_BATCH = 100
_STEMS = 20  # free names drawn for each name with a text put into it


@dataclass(frozen=True)
class Constraints:
    """What a name must be like."""

    prefix: str = ""
    suffix: str = ""
    contains: str = ""
    pattern: str = ""  # a regular expression for the whole name
    min_length: int = 1
    max_length: int | None = None
    label: str = ""
    unique: bool = False  # each name once
    novel: bool = False  # none of the names the model was trained on
    tries: int = 10_000  # names to draw before giving up
    sampling: SamplingSettings = field(default_factory=SamplingSettings)


def sample_names(
    named: NamesModel, count: int, constraints: Constraints, seed: int
) -> Iterator[Name]:
    """Yield ``count`` names; if they cannot be found in so many tries, say how far it came.

    >>> from nlpkit.lm.names import prepare_training
    >>> from nlpkit.lm.recipes import NamesSettings
    >>> names = [Name(text) for text in ["Anna", "Hanna", "Nana", "Ana"] * 10]
    >>> model, _ = prepare_training(
    ...     names, names[:4], NamesSettings(model="ngram"), torch.device("cpu"))
    >>> [name.text[:2] for name in sample_names(model, 2, Constraints(prefix="Ha"), seed=1)]
    ['Ha', 'Ha']
    """
    draw = _Drawing(named, constraints, seed)
    known = {name.text for name in named.trained_on}
    seen: set[str] = set()
    found = tries = 0
    while found < count:
        if tries >= constraints.tries:
            raise NlpkitError(
                f"only {found} of {count} names met the constraints in {tries:,} tries",
                hint="looser constraints, a higher --temperature or more --tries",
            )
        wanted = min(_BATCH, max(8, 2 * (count - found)), constraints.tries - tries)
        for name in draw.some(wanted):
            tries += 1
            if not draw.fits(name.text):
                continue
            if (constraints.unique and name.text in seen) or (
                constraints.novel and name.text in known
            ):
                continue
            seen.add(name.text)
            found += 1
            yield name
            if found == count:
                return


class _Drawing:
    """Draws batches of names for one set of constraints."""

    def __init__(self, named: NamesModel, constraints: Constraints, seed: int) -> None:
        self.named, self.constraints, self.alphabet = named, constraints, named.alphabet
        self.longest = min(named.longest, constraints.max_length or named.longest)
        self.generator = torch.Generator(named.device).manual_seed(seed)
        self.random = np.random.default_rng(seed)
        fixed = max(len(constraints.prefix), len(constraints.suffix), len(constraints.contains), 1)
        shortest = max(fixed, constraints.min_length)
        if shortest > self.longest:
            raise NlpkitError(
                f"no name can have {shortest} characters or more and {self.longest} or fewer",
                hint=f"--max-length of {shortest} or more"
                if shortest <= named.longest
                else f"this model makes names of up to {named.longest} characters",
            )
        for text in (constraints.prefix, constraints.suffix, constraints.contains):
            self.alphabet.encode(text)
        try:
            self.pattern = regex.compile(constraints.pattern) if constraints.pattern else None
        except regex.error as error:
            raise NlpkitError(f"--pattern {constraints.pattern}: {error}") from None
        if self.pattern and not self.pattern.fullmatch(constraints.prefix, partial=True):
            raise NlpkitError(
                f"no name can begin with {constraints.prefix!r} and match {constraints.pattern}",
                hint="a --pattern for the whole name, its beginning included",
            )
        counts = named.label_counts()
        labels = [constraints.label] if constraints.label else list(self.alphabet.labels)
        self.labels = labels or [""]
        self.alphabet.start(self.labels[0])
        weights = np.array([counts.get(label, 1) for label in self.labels], dtype=float)
        self.weights = weights / weights.sum()

    def some(self, count: int) -> list[Name]:
        """Draw so many names; some may not fit, such as an empty one that found no end."""
        labels = self.random.choice(self.labels, count, p=self.weights).tolist()
        prefixes = [self.constraints.prefix] * count
        if self.constraints.contains and self.constraints.contains not in self.constraints.prefix:
            prefixes = self._insert(labels, prefixes, self.constraints.contains, at_end=False)
        if self.constraints.suffix:
            texts = self._insert(labels, prefixes, self.constraints.suffix, at_end=True)
        else:
            texts = [text if ended else "" for text, ended in self._complete(labels, prefixes)]
        return [Name(text, label) for text, label in zip(texts, labels, strict=True)]

    def fits(self, text: str) -> bool:
        """Whether a name meets all constraints that the way it was drawn does not assure."""
        limits = self.constraints
        return (
            limits.min_length <= len(text) <= self.longest
            and text == text.strip()
            and text.startswith(limits.prefix)
            and text.endswith(limits.suffix)
            and limits.contains in text
            and (self.pattern is None or self.pattern.fullmatch(text) is not None)
        )

    def _complete(self, labels: Sequence[str], prefixes: Sequence[str]) -> list[tuple[str, bool]]:
        """Let the model finish names; each with whether it ended before it was too long."""
        prompts = [
            [self.alphabet.start(label), *self.alphabet.encode(prefix)]
            for label, prefix in zip(labels, prefixes, strict=True)
        ]
        texts = list(prefixes)
        ended = [False] * len(texts)

        def allowed(logits: Tensor, drawn: int) -> Tensor:
            logits[:, END + 1 : self.alphabet.starts] = -torch.inf
            for row, text in enumerate(texts):
                if len(text) < self.constraints.min_length:
                    logits[row, END] = -torch.inf
                if self.pattern is not None and not ended[row]:
                    self._rule_out(logits[row], text)
            return logits

        longest_prefix = max(map(len, prefixes))
        room = self.longest + 1 - min(map(len, prefixes))
        room = min(room, self.named.longest + 1 - longest_prefix)
        steps = generate(
            self.named.model,
            prompts,
            max(1, room),
            self.constraints.sampling,
            self.generator,
            allowed=allowed,
        )
        for ids, _ in steps:
            for row, index in enumerate(ids.tolist()):
                if ended[row]:
                    continue
                if index == END:
                    ended[row] = True
                else:
                    texts[row] += self.alphabet.decode([index])
            if all(ended):
                break
        return list(zip(texts, ended, strict=True))

    def _rule_out(self, logits: Tensor, text: str) -> None:
        """Forbid characters after which the pattern can no longer match."""
        assert self.pattern is not None
        characters = self.alphabet.characters.characters
        hopeless = [
            self.alphabet.starts + index
            for index, character in enumerate(characters)
            if not self.pattern.fullmatch(text + character, partial=True)
        ]
        if len(hopeless) < len(characters) or self.pattern.fullmatch(text):
            logits[hopeless] = -torch.inf

    def _insert(
        self, labels: Sequence[str], prefixes: Sequence[str], text: str, *, at_end: bool
    ) -> list[str]:
        """For each prefix a beginning that holds ``text``, or a whole name that ends in it."""
        stems = self._complete(
            [label for label in labels for _ in range(_STEMS)],
            [prefix for prefix in prefixes for _ in range(_STEMS)],
        )
        chosen = []
        for row, (label, prefix) in enumerate(zip(labels, prefixes, strict=True)):
            places = {
                stem[:cut] + text
                for stem, _ in stems[row * _STEMS : (row + 1) * _STEMS]
                for cut in range(len(prefix), self.longest - len(text) + 1)
                if cut <= len(stem)
            }
            candidates = [Name(place, label) for place in sorted(places)]
            if not candidates:
                chosen.append(prefix)
                continue
            # exp(-nats) is what a beginning weighs; as a whole name it must also end there
            nats = self.named.nats(candidates) if at_end else self.named.open_nats(candidates)
            temperature = max(self.constraints.sampling.temperature, 0.01)
            weights = np.exp(-(np.array(nats) - min(nats)) / temperature)
            place = self.random.choice(len(candidates), p=weights / weights.sum())
            chosen.append(candidates[int(place)].text)
        return chosen
