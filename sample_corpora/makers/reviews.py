"""reviews.tsv: short restaurant reviews, half of them good, a fifth of them kept for testing.

Many say the good with bad words or the bad with good ones ("not bad at all", "lovely view, but
..."), so that counting words is a fair start and not the whole answer.
"""

import re
from random import Random

from .grammar import fill, read_sections

REVIEWS_PER_LABEL = 550
TEST_REVIEWS_PER_LABEL = 110
LABELS = ("positive", "negative")
# The ten reviews of the introductory example; they are always for training.
FIRST_TEN = [
    ("negative", "Never coming back!"),
    ("negative", "horrible service"),
    ("negative", "rude waitress"),
    ("negative", "cold food"),
    ("negative", "horrible food!"),
    ("positive", "awesome"),
    ("positive", "awesome services!"),
    ("positive", "rocks"),
    ("negative", "poor work"),
    ("positive", "couldn't have done better"),
]


def make(random: Random) -> dict[str, str]:
    slots = read_sections("reviews.txt")
    train = list(FIRST_TEN)
    test = []
    seen = {bare(text) for _, text in FIRST_TEN}
    for label in LABELS:
        given = sum(label == given_label for given_label, _ in FIRST_TEN)
        made: list[tuple[str, str]] = []
        while len(made) < REVIEWS_PER_LABEL - given:
            text = in_some_style(fill(random.choice(slots[label]), slots, random), random)
            if bare(text) not in seen:
                seen.add(bare(text))
                made.append((label, text))
        test += made[:TEST_REVIEWS_PER_LABEL]
        train += made[TEST_REVIEWS_PER_LABEL:]
    random.shuffle(train)
    random.shuffle(test)
    rows = [("train", *review) for review in train] + [("test", *review) for review in test]
    return {"reviews.tsv": "split\tlabel\ttext\n" + "".join("\t".join(row) + "\n" for row in rows)}


def bare(text: str) -> str:
    """The words alone: reviews that differ only in case or punctuation count as the same."""
    return " ".join(re.findall(r"[a-z']+", text.lower()))


def in_some_style(text: str, random: Random) -> str:
    """People write as they like: with care, with an exclamation mark, or without capitals."""
    style = random.choice(["plain", "plain", "plain", "excited", "careless"])
    if style == "careless":
        return text.lower().rstrip(".!")
    sentences = [sentence[:1].upper() + sentence[1:] for sentence in re.split(r"(?<=\.) ", text)]
    text = " ".join(sentences)
    return text.rstrip(".") + "!" if style == "excited" and text.endswith(".") else text
