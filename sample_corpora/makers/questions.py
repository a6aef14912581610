"""questions.tsv: questions on the facts about countries. follows.tsv: does one sentence follow from
another?

A question comes with a text of a few sentences, on two or three countries; its answer stands in the
text, or the text says nothing of it. Words are those of world.txt. A column says which rows are to
learn from and which to test with: no country is asked about the same thing in both.
"""

from collections.abc import Sequence
from random import Random

from .grammar import items, read_table
from .world import COUNTRY_COLUMNS

FACTS = {  # column -> sentences that say it, questions, sentences that follow from it
    "capital": (
        ["the capital of {country} is {x} .", "{x} is the capital of {country} ."],
        ["what is the capital of {country} ?", "which city is the capital of {country} ?"],
    ),
    "language": (
        ["people in {country} speak {x} .", "the newspapers of {country} are printed in {x} ."],
        ["which language do people in {country} speak ?", "what is spoken in {country} ?"],
    ),
    "currency": (
        ["shops in {country} take the {x} .", "in {country} people pay with the {x} ."],
        ["what do people pay with in {country} ?", "what is the money of {country} ?"],
    ),
    "food": (
        ["in {country} people eat {x} .", "{x} is a dish from {country} ."],
        ["what do people eat in {country} ?", "which dish is from {country} ?"],
    ),
}
QUESTIONS = 1800
PAIRS = 2400
TEST_SHARE = 0.15
WITHOUT_ANSWER = 0.15

Country = dict[str, str]


def make(random: Random) -> dict[str, str]:
    countries = [
        dict(zip(COUNTRY_COLUMNS, ((items(cell) or [""])[0] for cell in row), strict=True))
        for row in read_table("countries.txt")
    ]
    countries = [country for country in countries if all(country[fact] for fact in FACTS)]
    asked = [(country, fact) for country in countries for fact in FACTS]
    random.shuffle(asked)
    tested = {(c["country"], f) for c, f in asked[: int(TEST_SHARE * len(asked))]}
    return {
        "questions.tsv": table(
            "split question text answer", questions(countries, asked, tested, random)
        ),
        "follows.tsv": table("split label text text2", pairs(countries, asked, tested, random)),
    }


def table(header: str, rows: Sequence[Sequence[str]]) -> str:
    return "".join("\t".join(row) + "\n" for row in [header.split(), *rows])


def split_of(country: Country, fact: str, tested: set[tuple[str, str]]) -> str:
    return "test" if (country["country"], fact) in tested else "train"


def say(country: Country, fact: str, random: Random) -> str:
    template = random.choice(FACTS[fact][0])
    return template.format(country=country["country"], x=country[fact])


def questions(
    countries: list[Country],
    asked: list[tuple[Country, str]],
    tested: set[tuple[str, str]],
    random: Random,
) -> list[list[str]]:
    rows = []
    for number in range(QUESTIONS):
        country, fact = asked[number % len(asked)]
        question = random.choice(FACTS[fact][1]).format(country=country["country"])
        one, another = random.sample([one for one in countries if one is not country], 2)
        answer = country[fact] if random.random() >= WITHOUT_ANSWER else ""
        told = fact if answer else random.choice([name for name in FACTS if name != fact])
        said = [
            say(one, fact, random),
            say(another, random.choice(list(FACTS)), random),
            say(country, told, random),
        ]
        random.shuffle(said)
        text = " ".join(said)
        if not answer and f" {country[fact]} " in f" {text} ":
            continue  # said of another country, which would be an answer all the same
        rows.append([split_of(country, fact, tested), question, text, answer])
    return rows


def pairs(
    countries: list[Country],
    asked: list[tuple[Country, str]],
    tested: set[tuple[str, str]],
    random: Random,
) -> list[list[str]]:
    rows = []
    for number in range(PAIRS):
        country, fact = asked[number % len(asked)]
        other = random.choice([one for one in countries if one is not country])
        extra = random.choice([name for name in FACTS if name != fact])
        said = [say(country, fact, random), say(other, extra, random)]
        random.shuffle(said)
        premise = " ".join(said)
        claimed = country
        if random.random() < 0.5:
            claimed = random.choice([one for one in countries if one[fact] != country[fact]])
        hypothesis = random.choice(FACTS[fact][0]).format(
            country=country["country"], x=claimed[fact]
        )
        label = "yes" if claimed is country else "no"
        rows.append([split_of(country, fact, tested), label, premise, hypothesis])
    return rows
