"""prompts.jsonl and prompts-test.jsonl: a few facts, a question about one of them, its answer.

Each line has `prompt` (context, question) and `completion`. No question about a country in the one
file is asked in the same words in the other.
"""

import json
from random import Random

from .grammar import items, read_table

ASKED = {
    "capital": [
        "What is the capital of {c}?", "Which city is the capital of {c}?",
        "Name the capital of {c}.", "What is {c}'s capital?",
    ],
    "language": [
        "What do people speak in {c}?", "Which language is spoken in {c}?",
        "Name a language of {c}.", "What language does {c} have?",
    ],
    "currency": [
        "What do people pay with in {c}?", "Which currency does {c} have?",
        "Name the currency of {c}.", "What is the money of {c} called?",
    ],
}  # fmt: skip
STATED = {
    "capital": "The capital is {}.",
    "language": "People speak {}.",
    "currency": "They pay with the {}.",
}
TEST_SHARE = 6  # one of so many questions is for the test
COPIES = 3  # of a question, each with the facts in another order


def make(random: Random) -> dict[str, str]:
    """Both files."""
    files: dict[str, list[str]] = {"prompts.jsonl": [], "prompts-test.jsonl": []}
    for row in read_table("countries.txt"):
        country = row[0].title()
        facts = {
            "capital": row[1].title(),
            "language": items(row[3])[0].title(),
            "currency": row[4],
        }
        questions = [
            (kind, words.format(c=country)) for kind, asked in ASKED.items() for words in asked
        ]
        random.shuffle(questions)
        tests = len(questions) // TEST_SHARE
        for number, (kind, question) in enumerate(questions):
            name = "prompts-test.jsonl" if number < tests else "prompts.jsonl"
            for _ in range(1 if number < tests else COPIES):
                stated = [STATED[fact].format(value) for fact, value in facts.items()]
                random.shuffle(stated)
                prompt = f"{country}: {' '.join(stated)}\nQuestion: {question}\nAnswer:"
                record = {"prompt": prompt, "completion": f" {facts[kind]}"}
                files[name].append(json.dumps(record, ensure_ascii=False))
    for lines in files.values():
        random.shuffle(lines)
    return {name: "".join(line + "\n" for line in lines) for name, lines in files.items()}
