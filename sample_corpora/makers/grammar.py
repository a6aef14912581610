"""The small machine behind every generated corpus: fact tables, and templates with slots.

A template is plain text. `{slot}` is replaced by one of the texts that the slot stands for, and
`{red|green|}` by one of the alternatives written out (the last one here is empty). What is put in
may hold slots itself. There are no weights and no conditions: write a line twice to see it twice
as often.

>>> from random import Random
>>> fill("the {animal} is {big}", {"animal": ["owl"], "big": ["wise"]}, Random(1))
'the owl is wise'
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

FACTS = Path(__file__).parent.parent / "facts"
INNERMOST_SLOT = re.compile(r"\{([^{}]*)\}")
ARTICLE_BEFORE_VOWEL = re.compile(r"\b([Aa]) (?=[aeiouAEIOU]|honest|hour|heir)")
# Words that begin with a vowel letter but not with a vowel sound.
NOT_A_VOWEL_SOUND = re.compile(
    r"(?:uni(?!n)|us(?:e|ual)|uk|ug|uru|eu|one\b|once\b)", flags=re.IGNORECASE
)

Slots = Mapping[str, Sequence[str]]


class EmptySlot(LookupError):
    """A template asks for a slot for which there is no text."""


def fill(template: str, slots: Slots, random: Random) -> str:
    """Replace every slot of `template`, innermost first, then put `a` and `an` right."""

    def choose(match: re.Match[str]) -> str:
        inside = match.group(1)
        choices = inside.split("|") if "|" in inside else slots.get(inside, ())
        if not choices:
            raise EmptySlot(inside)
        return random.choice(choices)

    text, count = INNERMOST_SLOT.subn(choose, template)
    while count:
        text, count = INNERMOST_SLOT.subn(choose, text)
    return fix_articles(text)


def fix_articles(text: str) -> str:
    """Write `an` before a vowel sound.

    >>> fix_articles("a owl and a unicorn")
    'an owl and a unicorn'
    """

    def article(match: re.Match[str]) -> str:
        silent = NOT_A_VOWEL_SOUND.match(text, match.end())
        return match.group(0) if silent else f"{match.group(1)}n "

    return ARTICLE_BEFORE_VOWEL.sub(article, text)


def fill_each(templates: Sequence[str], slots: Slots, random: Random) -> Iterator[str]:
    """Fill every template once, leaving out those that need a slot with no text."""
    for template in templates:
        try:
            yield fill(template, slots, random)
        except EmptySlot:
            continue


def read_sections(name: str) -> dict[str, list[str]]:
    """Read a facts file of `[section]` lines, each followed by its templates, one a line."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in facts_lines(name):
        if line.startswith("[") and line.endswith("]"):
            lines = sections.setdefault(line[1:-1], [])
        else:
            lines.append(line)
    return sections


def read_table(name: str) -> Iterator[list[str]]:
    """Read a facts file of ` | ` separated columns; a lone dash is an empty field."""
    for line in facts_lines(name):
        yield ["" if field.strip() == "-" else field.strip() for field in line.split(" | ")]


def facts_lines(name: str) -> list[str]:
    lines = (FACTS / name).read_text(encoding="utf-8").splitlines()
    return [line.rstrip() for line in lines if line.strip() and not line.startswith("#")]


def items(field: str) -> list[str]:
    """The items of a list in one field: `"a, b"` is `["a", "b"]`, and nothing is `[]`."""
    return field.split(", ") if field else []
