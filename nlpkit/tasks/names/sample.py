"""New names that meet constraints.

A prefix is a prompt. Letters that a pattern rules out are never drawn. A text that must be inside
or at the end is put where the model finds it likeliest: free names are drawn, the text is put after
each number of their characters, and one of the places is drawn by its probability. Everything else
is drawn and thrown away when it does not fit, so many times and no more.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nlpkit.errors import NlpkitError
from nlpkit.generate.loop import generate
from nlpkit.generate.sampling import SamplingSettings
from nlpkit.tasks.names.data import END, Name
from nlpkit.tasks.names.model import NamesModel
from nlpkit.tasks.names.pattern import NamePattern
from nlpkit.tasks.names.settings import NameConstraints

_BATCH = 100
_MOST = 800  # names drawn together when none of those before was any good
_STEMS = 20  # free names drawn for each name with a text put into it


@dataclass(frozen=True)
class Constraints(NameConstraints):
    """What a name must be like, and how it is drawn."""

    sampling: SamplingSettings = field(default_factory=SamplingSettings)


def constraints_of(**wishes: Any) -> Constraints:
    """Constraints from the names of their fields and of those of ``SamplingSettings``.

    >>> constraints_of(prefix="Ma", temperature=0.5).sampling.temperature
    0.5
    """
    drawing = {field.name for field in fields(SamplingSettings)}
    known = {field.name for field in fields(Constraints)} | drawing
    unknown = [name for name in wishes if name not in known]
    if unknown:
        raise TypeError(f"no constraint {unknown[0]!r}: there are {', '.join(sorted(known))}")
    sampling = {name: value for name, value in wishes.items() if name in drawing}
    others = {name: value for name, value in wishes.items() if name not in drawing}
    return Constraints(**{"sampling": SamplingSettings(**sampling), **others})


def sample_names(
    named: NamesModel, count: int, constraints: Constraints, seed: int
) -> Iterator[Name]:
    """Yield ``count`` names; if they cannot be found in so many tries, say how far it came.

    >>> from nlpkit.tasks.names.settings import NamesSettings
    >>> from nlpkit.tasks.names.train import NamesRun
    >>> names = [Name(text) for text in ["Anna", "Hanna", "Nana", "Ana"] * 10]
    >>> model = NamesRun(names, NamesSettings(model="ngram"), heldout=names[:4]).train()
    >>> [name.text[:2] for name in sample_names(model, 2, Constraints(prefix="Ha"), seed=1)]
    ['Ha', 'Ha']
    """
    draw = _Drawing(named, constraints, seed)
    known = {name.text for name in named.trained_on}
    seen: set[str] = set()
    found = tries = before = 0
    most = _BATCH
    alone = not constraints.suffix and not constraints.contains  # each of them draws many more
    while found < count:
        draw.check_hope()
        if tries >= constraints.tries:
            raise NlpkitError(
                f"only {found} of {count} names met the constraints in {tries:,} tries",
                hint="looser constraints, a higher `temperature` or more `tries`",
            )
        if tries and found == before and alone:
            most = min(2 * most, _MOST)
        fewest = 8 if most == _BATCH else most
        wanted = min(most, max(fewest, 2 * (count - found)), constraints.tries - tries)
        before = found
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
        self.generator = torch.Generator().manual_seed(seed)
        self.random = np.random.default_rng(seed)
        fixed = max(len(constraints.prefix), len(constraints.suffix), len(constraints.contains), 1)
        shortest = max(fixed, constraints.min_length)
        if shortest > self.longest:
            raise NlpkitError(
                f"no name can have {shortest} characters or more and {self.longest} or fewer",
                hint=f"`max_length` of {shortest} or more"
                if shortest <= named.longest
                else f"this model makes names of up to {named.longest} characters",
            )
        for text in (constraints.prefix, constraints.suffix, constraints.contains):
            self.alphabet.encode(text)
        self.pattern: NamePattern | None = None
        if constraints.pattern:
            characters = self.alphabet.characters
            self.pattern = NamePattern(constraints.pattern, characters, self.longest)
        counts = named.label_counts()
        labels = [constraints.label] if constraints.label else list(self.alphabet.labels)
        self.labels = labels or [""]
        self.alphabet.start(self.labels[0])
        weights = np.array([counts.get(label, 1) for label in self.labels], dtype=float)
        self.weights = weights / weights.sum()

    def check_hope(self) -> None:
        """Give up when no name is left that the pattern allows."""
        prefix = self.constraints.prefix
        if self.pattern is not None and self.pattern.is_dead(prefix):
            begin = f"begin with {prefix!r} and " if prefix else ""
            raise NlpkitError(
                f"no name of this model can {begin}match {self.constraints.pattern}",
                hint="a `pattern` for the whole name, of characters that the model knows",
            )

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
            and (self.pattern is None or self.pattern.matches(text))
        )

    def _complete(self, labels: Sequence[str], prefixes: Sequence[str]) -> list[tuple[str, bool]]:
        """Let the model finish names; each with whether it ended before it was too long."""
        prompts = [
            [self.alphabet.start(label), *self.alphabet.encode(prefix)]
            for label, prefix in zip(labels, prefixes, strict=True)
        ]
        texts = list(prefixes)
        ended = [False] * len(texts)
        given_up = [self.pattern is not None and self.pattern.is_dead(text) for text in texts]

        def allowed(logits: Tensor, drawn: int) -> Tensor:
            logits[:, END + 1 : self.alphabet.starts] = -torch.inf
            for row, text in enumerate(texts):
                if len(text) < self.constraints.min_length:
                    logits[row, END] = -torch.inf
                if self.pattern is not None and not ended[row] and not given_up[row]:
                    logits[row, self.alphabet.starts + self.pattern.hopeless(text)] = -torch.inf
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
                if ended[row] or given_up[row]:
                    continue
                if index == END:
                    ended[row] = True
                else:
                    texts[row] += self.alphabet.decode([index])
                    if self.pattern is not None and self.pattern.is_dead(texts[row]):
                        given_up[row] = True
            if all(map(operator.or_, ended, given_up)):
                break
        return list(zip(texts, ended, strict=True))

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
