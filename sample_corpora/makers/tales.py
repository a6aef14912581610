"""tales.txt: short tales in the manner of folk tales, told from plots with many turns of phrase.

Each tale is a title line, its paragraphs and a moral, with blank lines between. A tale first draws
what it is about (who, where, which animals), keeps that to the end, and draws the rest as it goes.
"""

import re
from random import Random

from .grammar import fill, read_sections

SIZE = 290_000
HIS = {"he": "he", "him": "him", "his": "his", "himself": "himself", "child": "boy", "son": "son"}
HER = {"he": "she", "him": "her", "his": "her", "himself": "herself", "child": "girl"} | {
    "son": "daughter"
}
KEPT = [
    *("village", "small", "big", "sly", "beast", "bird", "ruler", "great man", "trade"),
    *("thing", "food", "food tree", "season", "country thing"),
]
TITLES = re.compile(r"title: (.*)")
SENTENCE_START = re.compile(r'(^"?|[.:!?] "|[.!?] |\." )([a-z])')


def make(random: Random) -> dict[str, str]:
    plots = read_sections("tales_plots.txt")
    common = read_sections("tales_common.txt")
    paragraphs: list[str] = []
    titles: set[str] = set()
    size = 0
    while size < SIZE:
        # Every plot is told once before any is told again.
        for plot in random.sample(sorted(plots), len(plots)):
            tale = tell(plots[plot], common, random)
            if tale[0] in titles:
                continue
            titles.add(tale[0])
            paragraphs += tale
            size += sum(map(len, tale))
    return {"tales.txt": "\n\n".join(paragraphs) + "\n"}


def tell(plot: list[str], common: dict[str, list[str]], random: Random) -> list[str]:
    """The title and the paragraphs of one tale."""
    slots = common | cast(common, random)
    title, *paragraphs = [fill(template, slots, random) for template in plot]
    match = TITLES.fullmatch(title)
    if match is None:
        raise ValueError(f"a plot begins with its title, not with {title!r}")
    return [match.group(1).upper(), *map(capitalise_sentences, paragraphs)]


def cast(common: dict[str, list[str]], random: Random) -> dict[str, list[str]]:
    """Who and what a tale is about."""
    kept = {slot: [fill(f"{{{slot}}}", common, random)] for slot in KEPT}
    pronouns, names = random.choice([(HIS, "boy"), (HER, "girl")])
    others, other_names = random.choice([(HIS, "boy"), (HER, "girl")])
    name = random.choice(common[names])
    other = random.choice([candidate for candidate in common[other_names] if candidate != name])
    return (
        kept
        | {slot: [word] for slot, word in pronouns.items()}
        | {f"{slot}2": [word] for slot, word in others.items()}
        | {"name": [name], "name2": [other], "helper": kept["small"]}
        | {"weather": common[f"weather {kept['season'][0]}"]}
    )


def capitalise_sentences(text: str) -> str:
    """Begin each sentence with a capital, but not what follows a question or a cry in quotes."""
    return SENTENCE_START.sub(lambda match: match.group(1) + match.group(2).upper(), text)
