"""English and Catalan sentences that say the same, from one small grammar of both languages.

What differs between the two is there on purpose: Catalan adjectives stand behind their noun and
agree with it, names have an article, articles lose their vowel (l'àvia) or join the preposition
(al jardí, del poble), and the negation is one word.
"""

from dataclasses import dataclass
from pathlib import Path
from random import Random

TRAIN, TEST = 3000, 300
FACTS = Path(__file__).parent.parent / "facts"
NAMES = ("Anna f", "Maria f", "Marta f", "Elena f", "Joan m", "Pere m", "Jordi m", "Oriol m")
NUMBERS = {"two": ("dos", "dues"), "three": ("tres",) * 2, "four": ("quatre",) * 2}
TIMES = {
    "every day": "cada dia",
    "at night": "a la nit",
    "today": "avui",
    "now": "ara",
    "in the morning": "al matí",
    "on Sundays": "els diumenges",
}
VOWELS = "aàeèéiíoòóuúh"


def read_facts(name: str) -> list[list[str]]:
    lines = (FACTS / name).read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


NOUNS = read_facts("catalan_nouns.txt")
ADJECTIVES = read_facts("catalan_adjectives.txt")
VERBS = read_facts("catalan_verbs.txt")


@dataclass(frozen=True)
class Phrase:
    """The same in both languages."""

    english: str
    catalan: str
    plural: bool = False
    kind: str = ""
    feminine: bool = False


def article(feminine: bool, plural: bool, following: str) -> str:
    """el, la, els, les, or l' before a vowel; with the space behind it, if there is one."""
    if plural:
        return "les " if feminine else "els "
    if following[0].lower() in VOWELS:
        return "l'"
    return "la " if feminine else "el "


def contract(preposition: str, phrase: str) -> str:
    """a + el = al, de + els = dels; nothing happens before la, les, l' and other words."""
    for word, joined in (("els ", "ls "), ("el ", "l ")):
        if phrase.startswith(word) and preposition in ("a", "de"):
            return preposition + joined + phrase[len(word) :]
    if preposition == "de" and phrase[0].lower() in VOWELS:
        return "d'" + phrase
    return f"{preposition} {phrase}"


class Grammar:
    """Draws phrases and sentences."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def adjective(self, kind: str, plural: bool, feminine: bool) -> tuple[str, str]:
        kinds = [row for row in ADJECTIVES if row[0] == "*" or kind in row[0].split(",")]
        row = self.random.choice(kinds)
        return row[1], row[2 + 2 * plural + feminine]

    def noun_phrase(self, kind: str) -> Phrase:
        """the old cat: el gat vell."""
        random = self.random
        row = random.choice([row for row in NOUNS if row[0] == kind])
        feminine, plural = row[3] == "f", random.random() < 0.35
        english, catalan = row[1 + plural], row[4 + plural]
        if random.random() < 0.45:
            before, behind = self.adjective(kind, plural, feminine)
            english, catalan = f"{before} {english}", f"{catalan} {behind}"
        way = random.random()
        if way < 0.5:
            english = f"the {english}"
            catalan = article(feminine, plural, catalan) + catalan
        elif way < 0.65:
            english = f"{'these' if plural else 'this'} {english}"
            endings = ("aquest", "aquesta", "aquests", "aquestes")
            catalan = f"{endings[2 * plural + feminine]} {catalan}"
        elif way < 0.8:
            english = f"my {english}"
            endings = ("el meu", "la meva", "els meus", "les meves")
            catalan = f"{endings[2 * plural + feminine]} {catalan}"
        elif plural:
            number = random.choice(list(NUMBERS))
            english, catalan = f"{number} {english}", f"{NUMBERS[number][feminine]} {catalan}"
        else:
            english = f"{'an' if english[0] in 'aeiou' else 'a'} {english}"
            catalan = f"{'una' if feminine else 'un'} {catalan}"
        return Phrase(english, catalan, plural, kind, feminine)

    def name(self) -> Phrase:
        """Anna: l'Anna."""
        name, gender = self.random.choice(NAMES).split()
        return Phrase(name, article(gender == "f", False, name) + name, False, "person")

    def subject(self) -> Phrase:
        """Who does it."""
        if self.random.random() < 0.2:
            return self.name()
        found = self.noun_phrase(self.random.choice(["person", "person", "animal"]))
        if self.random.random() < 0.12:
            verb = self.predicate(found, short=True)
            english = f"{found.english} that {verb.english}"
            catalan = f"{found.catalan} que {verb.catalan}"
            found = Phrase(english, catalan, found.plural, found.kind)
        return found

    def place(self) -> Phrase:
        """in the garden: al jardí."""
        found = self.noun_phrase("place")
        way = self.random.choice(["in", "in", "near", "behind"])
        if way == "near":
            return Phrase(f"near {found.english}", f"prop {contract('de', found.catalan)}")
        if way == "behind":
            return Phrase(f"behind {found.english}", f"darrere {contract('de', found.catalan)}")
        return Phrase(f"in {found.english}", contract("a", found.catalan))

    def predicate(self, subject: Phrase, short: bool = False) -> Phrase:
        """What is done: eats two apples, does not sleep in the garden."""
        rows = [row for row in VERBS if subject.kind in row[0].split(",")]
        _, what, base, third, singular, plural = self.random.choice(rows)
        catalan = plural if subject.plural else singular
        english = base if subject.plural else third
        if self.random.random() < 0.15 and not short:
            english = f"{'do' if subject.plural else 'does'} not {base}"
            catalan = f"no {catalan}"
        if what != "-":
            given = self.noun_phrase(what)
            english, catalan = f"{english} {given.english}", f"{catalan} {given.catalan}"
        if not short and self.random.random() < 0.4:
            where = self.place()
            english, catalan = f"{english} {where.english}", f"{catalan} {where.catalan}"
        if not short and self.random.random() < 0.25:
            when = self.random.choice(list(TIMES))
            english, catalan = f"{english} {when}", f"{catalan} {TIMES[when]}"
        return Phrase(english, catalan)

    def clause(self) -> Phrase:
        """A whole sentence without its capital and full stop."""
        way = self.random.random()
        if way < 0.1:
            one = self.noun_phrase(self.random.choice(["person", "animal", "thing", "food"]))
            english, catalan = self.adjective(one.kind, one.plural, one.feminine)
            return Phrase(
                f"{one.english} {'are' if one.plural else 'is'} {english}",
                f"{one.catalan} {'són' if one.plural else 'és'} {catalan}",
            )
        if way < 0.16:
            one = self.noun_phrase(self.random.choice(["thing", "animal"]))
            where = self.place()
            verb = "are" if one.plural else "is"
            kind = one.english.split()[0]
            if kind in ("a", "an", *NUMBERS):
                return Phrase(
                    f"there {verb} {one.english} {where.english}",
                    f"hi ha {one.catalan} {where.catalan}",
                )
        subject = self.subject()
        found = self.predicate(subject)
        return Phrase(f"{subject.english} {found.english}", f"{subject.catalan} {found.catalan}")

    def sentence(self) -> tuple[str, str]:
        """A pair of sentences."""
        if self.random.random() < 0.1:
            one = self.noun_phrase(self.random.choice(["thing", "person", "animal"]))
            verbs = ("are", "són") if one.plural else ("is", "és")
            return f"Where {verbs[0]} {one.english}?", f"On {verbs[1]} {one.catalan}?"
        english, catalan = self._joined()
        return _finish(english), _finish(catalan)

    def _joined(self) -> tuple[str, str]:
        parts = [self.clause()]
        while len(parts) < 3 and self.random.random() < 0.25:
            parts.append(self.clause())
        english, catalan = parts[0].english, parts[0].catalan
        for part in parts[1:]:
            words = self.random.choice([(" and ", " i "), (", but ", ", però ")])
            english += words[0] + part.english
            catalan += words[1] + part.catalan
        return english, catalan


def _finish(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def make(random: Random) -> dict[str, str]:
    """en-ca.tsv and en-ca-test.tsv; no sentence is in both."""
    grammar = Grammar(random)
    pairs: dict[str, str] = {}
    while len(pairs) < TRAIN + TEST:
        english, catalan = grammar.sentence()
        pairs.setdefault(english, catalan)
    lines = [f"{english}\t{catalan}\n" for english, catalan in pairs.items()]
    random.shuffle(lines)
    return {"en-ca.tsv": "".join(lines[:TRAIN]), "en-ca-test.tsv": "".join(lines[TRAIN:])}
