"""world-analogies.txt: questions over the relations that world.txt states.

The format is that of questions-words: a `: section` line, then four words a line, of which the
fourth is the answer.
"""

from collections import defaultdict
from collections.abc import Iterator
from random import Random

from .grammar import items, read_sections, read_table

QUESTIONS_PER_PAIR = 6

Pair = tuple[str, str]


def lines(random: Random) -> Iterator[str]:
    """Each pair of a relation beside some others with which it shares no word; the first, all."""
    for section, pairs in relations().items():
        yield f": {section}"
        for first in pairs:
            others = [pair for pair in pairs if not set(pair) & set(first)]
            asked = len(others) if first is pairs[0] else min(QUESTIONS_PER_PAIR, len(others))
            for second in random.sample(others, asked):
                yield " ".join(first + second)


def relations() -> dict[str, list[Pair]]:
    pairs: dict[str, list[Pair]] = defaultdict(list)
    for row in read_table("countries.txt"):
        for column, name in ((1, "capital"), (3, "language"), (4, "currency")):
            pairs[f"country-{name}"] += pair_of(row[0], row[column])
        # Where the language has the same name, the question would be the same as the last.
        if row[2] not in items(row[3]):
            pairs["country-nationality"] += pair_of(row[0], row[2])
    for words in read_sections("world_people.txt"):
        if words != "anyone":
            pairs["man-woman"] += pair_of(*words.split())
    for row in read_table("verbs.txt"):
        for column, name in ((1, "third-person"), (2, "past"), (3, "ing-form")):
            pairs[f"verb-{name}"] += pair_of(row[0], row[column])
    for row in read_table("adjectives.txt"):
        for column, name in ((1, "comparative"), (2, "superlative")):
            pairs[f"adjective-{name}"] += pair_of(row[0], row[column])
    for row in read_table("animals.txt"):
        for column, name in ((1, "plural"), (2, "young"), (3, "sound")):
            pairs[f"animal-{name}"] += pair_of(row[0], row[column])
    for row in read_table("jobs.txt"):
        pairs["job-workplace"] += pair_of(row[0], row[2])
    return pairs


def pair_of(first: str, second: str) -> list[Pair]:
    """The two words as a pair, or nothing if the second field is empty or not a single word."""
    seconds = items(second)
    return [(first, seconds[0])] if len(seconds) == 1 and " " not in second else []
