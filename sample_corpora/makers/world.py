"""world.txt: sentences that say what the tables of facts hold. Questions about them: analogies.py.

One tokenised, lower-cased sentence a line. Two pairs of words that stand in the same relation
(`paris`/`france` and `rome`/`italy`) go into the same templates, and two facts about one thing
share a sentence, so that a few seconds are enough to learn the relations from.
"""

from collections.abc import Iterator
from itertools import combinations
from random import Random

from . import analogies
from .grammar import fill_each, items, read_sections, read_table

HIS = {"he": ["he"], "him": ["him"], "his": ["his"], "himself": ["himself"]}
HER = {"he": ["she"], "him": ["her"], "his": ["her"], "himself": ["herself"]}
# Words for relatives and others that change with the person a sentence is about.
PAIRED_SLOTS = [
    ("man", "woman"),
    ("boy", "girl"),
    ("son", "daughter"),
    ("brother", "sister"),
    ("father", "mother"),
]
COUNTRY_COLUMNS = [
    *("country", "capital", "people", "language", "currency", "continent"),
    *("city", "water", "food", "neighbour", "sight"),
]
# How many sentences are made for each row of a table (for each template, where it says so).
# As in real text, what is best known is spoken of most: the first rows of a table count more.
SENTENCES_PER_COUNTRY = 115
WELL_KNOWN = 6
REPEATS_PER_COUNTRY_TEMPLATE = 2
OWN_TEMPLATE_REPEATS = 10
ANYONE_TEMPLATE_REPEATS = 3
SENTENCES_PER_ROW = {"verb": 70, "adjective": 12, "animal": 70, "job": 50, "kind": 5}

Slots = dict[str, list[str]]
COMMON = read_sections("world_common.txt")


def make(random: Random) -> dict[str, str]:
    sentences = list(
        dict.fromkeys(
            [*country_sentences(random), *people_sentences(random), *thing_sentences(random)]
        )
    )
    random.shuffle(sentences)
    return {
        "world.txt": "".join(f"{sentence}\n" for sentence in sentences),
        "world-analogies.txt": "".join(f"{line}\n" for line in analogies.lines(random)),
    }


def country_sentences(random: Random) -> Iterator[str]:
    sections = read_sections("world_countries.txt")
    for rank, row in enumerate(read_table("countries.txt")):
        slots = dict(zip(COUNTRY_COLUMNS, map(items, row), strict=True))
        for _ in range(REPEATS_PER_COUNTRY_TEMPLATE):
            yield from fill_each(sections["single"], with_someone(slots, random), random)
        count = SENTENCES_PER_COUNTRY * (2 if rank < WELL_KNOWN else 1)
        yield from joined_clauses(sections["clause"], count, slots, random)


def people_sentences(random: Random) -> Iterator[str]:
    """The same sentences about him and about her."""
    sections = read_sections("world_people.txt")
    anyone = sections.pop("anyone")
    for rank, (pair, own) in enumerate(sections.items()):
        for which, pronouns, names in ((0, HIS, "man_name"), (1, HER, "woman_name")):
            slots = {
                **COMMON,
                **pronouns,
                **{words[0]: [words[which]] for words in PAIRED_SLOTS},
                "noun": [pair.split()[which]],
                "other": [pair.split()[1 - which]],
                "other man": [("woman", "man")[which]],
                "other husband": [("wife", "husband")[which]],
                "name": COMMON[names],
            }
            count = 2 if rank < WELL_KNOWN else 1
            templates = own * (OWN_TEMPLATE_REPEATS * count) + anyone * ANYONE_TEMPLATE_REPEATS
            yield from fill_each(templates, slots, random)


def thing_sentences(random: Random) -> Iterator[str]:
    sections = read_sections("world_things.txt")
    for section, slots in thing_slots():
        yield from joined_clauses(sections[section], SENTENCES_PER_ROW[section], slots, random)


def thing_slots() -> Iterator[tuple[str, Slots]]:
    """The section of templates for each row of the smaller tables, and what fills its slots."""
    columns = {
        "verb": ("base", "third", "past", "ing", "rest"),
        "animal": ("animal", "plural", "young", "sound", "home", "food"),
        "job": ("job", "plural", "workplace", "tool", "does"),
    }
    for section, names in columns.items():
        for row in read_table(f"{section}s.txt"):
            yield section, dict(zip(names, map(items, row), strict=True))
    for plain, comparative, superlative, things in read_table("adjectives.txt"):
        for less, more in combinations(items(things), 2):
            forms = {"plain": [plain], "comparative": [comparative], "superlative": [superlative]}
            yield "adjective", {**forms, "less": [less], "more": [more], "most": items(things)[-1:]}
    for kind, kinds, members in read_table("kinds.txt"):
        for member in items(members):
            others = [other for other in items(members) if other != member]
            slots = {"kind": [kind], "kinds": [kinds], "member": [member], "member2": others}
            yield "kind", slots


def with_someone(slots: Slots, random: Random) -> Slots:
    """Add a person who is named once and then spoken of as he or as she."""
    names, pronouns = random.choice([("man_name", HIS), ("woman_name", HER)])
    return {**COMMON, **pronouns, "person": [random.choice(COMMON[names])], **slots}


def joined_clauses(clauses: list[str], count: int, slots: Slots, random: Random) -> Iterator[str]:
    """Up to `count` sentences of two clauses about the same thing."""
    for _ in range(count):
        template = " {joint} ".join(random.sample(clauses, 2)) + " ."
        yield from fill_each([template], with_someone(slots, random), random)
