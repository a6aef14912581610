"""tagged-train.conllu and tagged-test.conllu: English sentences with parts of speech and entities.

Many words can only be told by what comes after them: `He said Apple` goes on with `hired ten
engineers` or with `pies are on sale`. Such words are in both files with both readings, in
different sentences; every third name is in the test file alone.
"""

from collections.abc import Iterator
from random import Random

from .conllu import Token, sentence_lines, text_of, with_capitals
from .grammar import facts_lines, fill, items, read_sections, read_table

ROUNDS = {"train": 6, "test": 1}
AMBIGUOUS_SENTENCES_PER_READING = {"train": 4, "test": 1}
# The pair that shows best what the words to the right can tell; kept out of the train file.
TEST_ONLY = [
    "he said Teddy/PROPN/NNP/Teddy/B-PER Roosevelt/PROPN/NNP/Roosevelt/I-PER "
    "was a great/ADJ/JJ president/NOUN/NN .",
    "he said Teddy/NOUN/NN/teddy bears/NOUN/NNS/bear are on sale .",
]
VERB_FORMS = {"base": "VB", "third": "VBZ", "past": "VBD", "part": "VBN", "ing": "VBG"}

Slots = dict[str, list[str]]
Lexicon = dict[str, tuple[str, str, str]]


def make(random: Random) -> dict[str, str]:
    lexicon = {word: (upos, xpos, lemma) for word, upos, xpos, lemma in word_rows()}
    seen = {text_of(parse(line, lexicon)) for line in TEST_ONLY}
    files = {}
    for split in ("train", "test"):
        slots = all_slots(with_held_out_names=split == "test")
        fresh = []
        for line in annotated_sentences(split, slots, random):
            sentence = parse(line, lexicon)
            if text_of(sentence) not in seen:
                seen.add(text_of(sentence))
                fresh.append(sentence)
        if split == "test":
            fresh += [parse(line, lexicon) for line in TEST_ONLY]
        random.shuffle(fresh)
        blocks = [
            line
            for number, sentence in enumerate(fresh, start=1)
            for line in sentence_lines(f"{split}-{number:04}", sentence)
        ]
        files[f"tagged-{split}.conllu"] = "".join(f"{line}\n" for line in blocks)
    return files


def word_rows() -> Iterator[list[str]]:
    return (line.split() for line in facts_lines("tagged_words.txt"))


def annotated_sentences(split: str, slots: Slots, random: Random) -> Iterator[str]:
    """Sentences as lines of `form/UPOS/XPOS/lemma/entity` tokens, common words bare."""
    for _ in range(ROUNDS[split]):
        for template in slots["sentence"]:
            yield fill(template, slots, random)
    for row in read_table("tagged_ambiguous.txt"):
        for _ in range(AMBIGUOUS_SENTENCES_PER_READING[split]):
            yield from both_readings(row, slots, random)


def both_readings(row: list[str], slots: Slots, random: Random) -> Iterator[str]:
    """A sentence in which the word is a name, and one in which the next word shows that it is not.

    `He said Apple/ORG hired ten pilots .` and `We heard Apple/NOUN pies are on sale .`
    """
    word, kind, upos, xpos, lemma, entity, goods, others = row
    name = {"X": [tag(word, "PROPN", "NNP", word, f"B-{kind}")]}
    clause = {"PER": "person clause", "ORG": "org clause"}[kind]
    yield fill(f"{{frame}} {{{clause}}} .", slots | name, random)
    nouns = [(pair, "goods clause") for pair in items(goods)]
    nouns += [(pair, "noun clause") for pair in items(others)]
    pair, clause = random.choice(nouns)
    other = {"X": [tag(word, upos, xpos, lemma, entity if entity == "O" else f"B-{entity}")]}
    follow = {"follow": [tag(pair.split()[1], "NOUN", "NNS", pair.split()[0])]}
    yield fill(f"{{frame}} {{{clause}}} .", slots | other | follow, random)


def tag(form: str, upos: str, xpos: str, lemma: str, entity: str = "O") -> str:
    return "/".join([form, upos, xpos, lemma, entity])


def parse(line: str, lexicon: Lexicon) -> list[Token]:
    """Tokens of a filled-in template, with capitals where a sentence has them."""
    tokens: list[Token] = []
    quotes = 0
    for item in line.split():
        joined = item.startswith("+")
        form, *tags = item.removeprefix("+").split("/")
        if form == '"':
            quotes += 1
            tags = ["PUNCT", "``" if quotes % 2 else "''", form]
        elif not tags:
            tags = list(lexicon[form])
        upos, xpos, lemma, entity = (*tags, *[form, "O"][len(tags) - 2 :])
        tokens.append(Token(form, upos, xpos, lemma, entity, joined))
    return with_capitals(tokens)


def all_slots(with_held_out_names: bool) -> Slots:
    """The templates, and every word list as tagged tokens."""
    slots = read_sections("tagged_templates.txt")
    for name, (text,) in read_sections("tagged_names.txt").items():
        names = items(text)
        kept = [word for place, word in enumerate(names, start=1) if place % 3]
        slots |= name_slots(name, names if with_held_out_names else kept)
    for kind, pairs in read_table("tagged_nouns.txt"):
        words = [pair.split() for pair in items(pairs)]
        slots[kind] = [tag(singular, "NOUN", "NN", singular) for singular, _ in words]
        slots[f"{kind}s"] = [tag(plural, "NOUN", "NNS", singular) for singular, plural in words]
    for kind, verbs in read_table("tagged_verbs.txt"):
        rows = [verb.split() for verb in items(verbs)]
        for column, (form, xpos) in enumerate(VERB_FORMS.items()):
            slots[f"{kind} {form}"] = [tag(row[column], "VERB", xpos, row[0]) for row in rows]
    for kind, modifiers in read_table("tagged_modifiers.txt"):
        slots |= modifier_slots(kind, [modifier.split() for modifier in items(modifiers)])
    return slots


def name_slots(kind: str, names: list[str]) -> Slots:
    if kind in ("month", "weekday"):
        return {kind: [tag(name, "PROPN", "NNP", name) for name in names]}
    entity = {"first": "PER", "last": "PER", "loc": "LOC"}.get(kind, "ORG")
    if kind == "last":
        return {
            "last": [tag(name, "PROPN", "NNP", name, "I-PER") for name in names],
            "surname": [tag(name, "PROPN", "NNP", name, "B-PER") for name in names],
        }
    return {kind: [name_tokens(name, entity) for name in names]}


def name_tokens(name: str, entity: str) -> str:
    """A name of one or more words: the first begins the entity, the others are inside it."""
    tokens = []
    for place, word in enumerate(name.split()):
        upos, xpos = ("ADP", "IN") if word == "of" else ("PROPN", "NNP")
        tokens.append(tag(word, upos, xpos, word, f"{'I' if place else 'B'}-{entity}"))
    return " ".join(tokens)


def modifier_slots(kind: str, words: list[list[str]]) -> Slots:
    if kind == "adverb":
        return {kind: [tag(word, "ADV", "RB", word) for (word,) in words]}
    plain = [tag(forms[0], "ADJ", "JJ", forms[0]) for forms in words]
    if kind == "nation" or kind.startswith("long adj"):
        return {kind: plain}
    compared = [forms for forms in words if len(forms) == 3]
    return {
        f"adj {kind}": plain,
        f"older {kind}": [tag(forms[1], "ADJ", "JJR", forms[0]) for forms in compared],
        f"oldest {kind}": [tag(forms[2], "ADJ", "JJS", forms[0]) for forms in compared],
    }
