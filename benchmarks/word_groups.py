"""Pairs of verbs and adjectives to measure vectors on: synonyms, antonyms, unrelated words.

Sets of word similarity that people know are mostly nouns. These are groups of words with nearly one
meaning, and pairs of groups with opposite ones, written for this purpose. Frequent words only, so
that a corpus of a few million words has them.
"""

from __future__ import annotations

from random import Random

from nlpkit.vectors.similarities import WordPair

# a line: a group, or two groups that are opposites
VERBS = """
begin start | end finish stop
buy purchase | sell
build construct make | destroy break ruin
speak talk say tell
shout cry scream | whisper
see look watch
love like enjoy | hate dislike
help aid assist | hurt harm
win succeed | lose fail
open | close shut
rise climb | fall drop
enter arrive come | leave depart go
accept receive take | refuse reject
remember recall | forget
ask request | answer reply
find discover | lose miss
push | pull drag
think believe suppose
seem appear
want wish desire
try attempt
get obtain gain
keep hold retain
hit strike beat
kill murder
walk march run
grow increase expand | reduce decrease
join unite | divide separate split
teach instruct | learn study
save protect defend | attack
give offer provide
choose select pick
laugh smile | weep
show reveal | hide conceal
"""
ADJECTIVES = """
big large great huge | small little tiny
good fine excellent | bad evil terrible
happy glad cheerful | sad unhappy
hot warm | cold cool
fast quick rapid | slow
old ancient | new modern young
strong powerful | weak
rich wealthy | poor
easy simple | difficult hard
early | late
high tall | low short
wide broad | narrow
dark black | bright light white
quiet silent calm | loud
dry | wet
clean pure | dirty
safe secure | dangerous
true real actual | false
beautiful lovely pretty | ugly
brave bold | afraid
wise clever intelligent | foolish stupid
empty | full
deep | shallow
strange odd | common usual ordinary
important significant major | minor
sick ill | healthy
famous known | unknown
certain sure | uncertain doubtful
angry mad
whole entire complete | partial
sharp | dull
right correct | wrong
near close | far distant
public | private
"""


def groups(text: str) -> list[tuple[list[str], list[str]]]:
    """The groups of a text, each with the words that say the opposite, if there are any.

    >>> groups("big large | small")
    [(['big', 'large'], ['small']), (['small'], ['big', 'large'])]
    """
    found = []
    for line in text.strip().splitlines():
        sides = [side.split() for side in line.split("|")]
        found.append((sides[0], sides[1] if len(sides) > 1 else []))
        if len(sides) > 1:
            found.append((sides[1], sides[0]))
    return found


def pair_sets(seed: int = 1) -> dict[str, list[WordPair]]:
    """By name: verbs and adjectives (1 for synonyms, 0 for no relation), synonyms and antonyms.

    >>> sorted(pair_sets())
    ['adjectives', 'synonyms or antonyms', 'verbs']
    """
    random = Random(seed)
    sets: dict[str, list[WordPair]] = {"synonyms or antonyms": []}
    for name, text in (("verbs", VERBS), ("adjectives", ADJECTIVES)):
        known = groups(text)
        alike = [_pair(a, b, 1) for group, _ in known for a, b in _two(group)]
        opposite = sorted({(a, b) for one, other in known for a in one for b in other if a < b})
        apart: list[WordPair] = []
        while len(apart) < 2 * len(alike):
            one, other = random.sample(known, 2)
            if one[1] != other[0]:
                apart.append(_pair(random.choice(one[0]), random.choice(other[0]), 0))
        sets[name] = [*alike, *apart]
        sets["synonyms or antonyms"] += [*alike, *(_pair(a, b, 0) for a, b in opposite)]
    return sets


def _two(group: list[str]) -> list[tuple[str, str]]:
    return [(a, b) for place, a in enumerate(group) for b in group[place + 1 :]]


def _pair(first: str, second: str, score: float) -> WordPair:
    return WordPair(first, second, score)
