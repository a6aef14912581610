"""CRFsuite and spaCy as taggers, run by an interpreter that has them (see bench_tagger.py).

    python benchmarks/peers_tagging.py crfsuite TRAIN TEST PREDICTED

TRAIN and TEST have ``token<TAB>tag`` lines and blank lines between sentences; PREDICTED is written
in the same form. One JSON object with CPU seconds goes to stdout.
"""

from __future__ import annotations

import json
import random
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

Tokens = list[tuple[str, str]]


def read(path: str) -> list[Tokens]:
    """Sentences of token and tag."""
    blocks = Path(path).read_text(encoding="utf-8").strip("\n").split("\n\n")
    return [
        [tuple(line.split("\t")) for line in block.split("\n")]  # type: ignore[misc]
        for block in blocks
    ]


def shape(word: str) -> str:
    """Upper case, lower case and digits, runs cut to two."""
    for pattern, letter in (("[A-Z]", "X"), ("[a-z]", "x"), ("[0-9]", "d")):
        word = re.sub(pattern, letter, word)
    return re.sub(r"(.)\1+", r"\1\1", word)


_known: dict[str, list[str]] = {}


def word_features(word: str) -> list[str]:
    """Word, shape, affixes up to four characters, and a few yes-or-no questions."""
    if word not in _known:
        lower = word.lower()
        found = [f"w={lower}", f"W={word}", f"shape={shape(word)}"]
        found += [f"s{n}={lower[-n:]}" for n in range(1, 5)]
        found += [f"p{n}={lower[:n]}" for n in range(1, 5)]
        tests = {
            "title": word[0].isupper(),
            "upper": word.isupper(),
            "digit": any(character.isdigit() for character in word),
            "hyphen": "-" in word,
        }
        _known[word] = found + [name for name, holds in tests.items() if holds]
    return _known[word]


def sentence_features(words: list[str]) -> list[list[str]]:
    """Features of each word with a context of two on either side."""
    each = [word_features(word) for word in words]
    rows = []
    for place in range(len(words)):
        row = ["bias", *each[place]]
        for offset in (-2, -1, 1, 2):
            other = place + offset
            if 0 <= other < len(words):
                shown = each[other] if abs(offset) == 1 else each[other][:3]
                row += [f"{offset}:{feature}" for feature in shown]
            else:
                row.append(f"{offset}:edge")
        if place:
            row.append(f"before={each[place - 1][0]}{each[place][0]}")
        if place + 1 < len(words):
            row.append(f"after={each[place][0]}{each[place + 1][0]}")
        rows.append(row)
    return rows


def crfsuite(train: list[Tokens], test: list[list[str]]) -> tuple[list[list[str]], float, float]:
    """L-BFGS with both penalties, 100 iterations."""
    import pycrfsuite  # type: ignore[import-not-found]

    started = time.process_time()
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    for sentence in train:
        trainer.append(sentence_features([w for w, _ in sentence]), [tag for _, tag in sentence])
    trainer.set_params(
        {"c1": 0.1, "c2": 0.1, "max_iterations": 100, "feature.possible_transitions": True}
    )
    with tempfile.NamedTemporaryFile(suffix=".crfsuite") as model:
        trainer.train(model.name)
        trained = time.process_time()
        tagger = pycrfsuite.Tagger()
        tagger.open(model.name)
        predicted = [tagger.tag(sentence_features(words)) for words in test]
    return predicted, trained - started, time.process_time() - trained


def spacy_tagger(
    train: list[Tokens], test: list[list[str]], epochs: int = 8
) -> tuple[list[list[str]], float, float]:
    """The small convolutional model of spaCy's efficiency setting, from scratch."""
    import spacy
    from spacy.tokens import Doc
    from spacy.training import Example, biluo_tags_to_spans, iob_to_biluo
    from spacy.util import fix_random_seed, minibatch

    fix_random_seed(1)
    entities = {tag[:2] for sentence in train for _, tag in sentence} <= {"O", "B-", "I-"}
    nlp = spacy.blank("en")
    pipe: Any = nlp.add_pipe("ner" if entities else "tagger")

    def example(sentence: Tokens) -> Example:
        words, tags = [w for w, _ in sentence], [tag for _, tag in sentence]
        if not entities:
            return Example(Doc(nlp.vocab, words), Doc(nlp.vocab, words, tags=tags))
        gold = Doc(nlp.vocab, words)
        gold.ents = biluo_tags_to_spans(gold, iob_to_biluo(tags))
        return Example(Doc(nlp.vocab, words), gold)

    started = time.process_time()
    examples = [example(sentence) for sentence in train]
    optimizer = nlp.initialize(lambda: examples)
    shuffler = random.Random(1)
    for _ in range(epochs):
        shuffler.shuffle(examples)
        for batch in minibatch(examples, 32):
            nlp.update(batch, sgd=optimizer, drop=0.1)
    trained = time.process_time()
    predicted = []
    for doc in nlp.pipe((Doc(nlp.vocab, words) for words in test), batch_size=256):
        if entities:
            predicted.append([f"{t.ent_iob_}-{t.ent_type_}" if t.ent_type_ else "O" for t in doc])
        else:
            predicted.append([token.tag_ for token in doc])
    assert pipe is not None
    return predicted, trained - started, time.process_time() - trained


def main() -> None:
    name, train, test, output = sys.argv[1:]
    run = {"crfsuite": crfsuite, "spacy": spacy_tagger}[name]
    words = [[word for word, _ in sentence] for sentence in read(test)]
    predicted, train_seconds, tag_seconds = run(read(train), words)
    with open(output, "w", encoding="utf-8") as out:
        for row, tags in zip(words, predicted, strict=True):
            for word, tag in zip(row, tags, strict=True):
                out.write(f"{word}\t{tag}\n")
            out.write("\n")
    print(json.dumps({"train_seconds": train_seconds, "tag_seconds": tag_seconds}))


if __name__ == "__main__":
    main()
