"""Every kind of model that a command can train, found from the choices of its options.

A new choice of ``--model``, ``--encoder``, ``--loss`` and so on is a new kind here without a line
being written: tests train, load, interrupt and kill it as they do all others.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

MODEL = "trained.model"
SIZES = {
    "names": ["--dim", "16", "--heads", "2", "--order", "2", "--epochs", "80"],
    "gpt": ["--dim", "16", "--layers", "1", "--heads", "2", "--block-size", "16"],
    "lm": ["--dim", "16", "--layers", "1", "--heads", "2", "--block-size", "16", "--order", "3"],
    "tag": ["--hidden", "8", "--word-dim", "8", "--epochs", "12", "--lr", "0.01"],
    "classify": [],
    "word2vec": ["--dim", "8", "--epochs", "10", "--min-count", "1"],
    "vectors": ["--dim", "8", "--epochs", "40", "--min-count", "1", "--threads", "1"],
    "qa": ["--layer-decay", "1"],
    "bert": ["--dim", "16", "--layers", "1", "--heads", "2", "--length", "16"],
    "seq2seq": ["--dim", "16", "--layers", "1", "--start", "random"],
    "elmo": ["--dim", "8", "--hidden", "12", "--filters", "16", "--longest-word", "10"],
}
TUNED = {"tag": ["--epochs", "12", "--lr", "0.01"], "classify": []}  # sizes are the encoder's
DATA = {
    "names": ["names.tsv", "--test-file", "names.tsv", "--lr", "0.02"],
    "gpt": ["text.txt", "--batch-size", "8", "--max-iters", "40", "--dropout", "0.1"],
    "lm": ["text.txt", "--batch-size", "8", "--max-iters", "30", "--dropout", "0.1"],
    "tag": ["tagged.txt", "--dev", "tagged.txt", "--batch-tokens", "16"],
    "classify": ["texts.tsv", "--dev", "texts.tsv"],
    "word2vec": ["groups.txt", "--sample", "0"],
    "vectors": ["groups.txt", "--x-max", "10"],
    "qa": ["questions.tsv", "--pretrained", "tiny.bert", "--epochs", "30", "--lr", "0.01"],
    "bert": ["text.txt", "--batch-size", "8", "--max-iters", "60", "--vocab-size", "60"],
    "seq2seq": ["pairs.tsv", "-t", "char", "--max-iters", "60", "--lr", "0.02"],
    "elmo": ["text.txt", "--min-count", "1", "--epochs", "20", "--lr", "0.02"],
}
# One at a time, each choice is tried with the defaults of the other options. For word2vec all are
# combined: each combination is a kernel of its own.
OPTIONS = {
    "gpt": ["--tokenizer", "--optimizer", "--schedule"],
    "tag": ["--encoder", "--chars", "--crf", "--affixes", "--linear-features", "--unit"],
    "classify": ["--model", "--pooling"],
}
WORD2VEC = ["--arch", "--loss", "--engine"]
ON_ENCODERS = ("first", "attention")  # ways of pooling that need --pretrained
# Models that see a sequence take a while to learn it; the bag of words has epochs of its own.
SLOW = ["--batch-size", "4", "--epochs", "25", "--lr", "0.02", "--dropout", "0.1"]


@dataclass(frozen=True)
class Kind:
    """A command that trains, and what makes this kind."""

    command: str
    flags: tuple[str, ...]

    @property
    def name(self) -> str:
        return " ".join([self.command, *self.flags])

    @property
    def has_steps(self) -> bool:
        """Whether it is trained step by step: an n-gram model is counted at once."""
        return "ngram" not in self.flags

    def train(self, model: str = MODEL) -> list[str]:
        """The arguments of the command that trains it."""
        sizes = TUNED if "--pretrained" in self.flags else SIZES
        flags = [*DATA[self.command], *sizes[self.command], *self.flags]
        if self.command == "classify" and "bow" not in self.flags:
            flags += SLOW  # a bow has none of these
        trainer = "from-counts" if self.command == "vectors" else "train"
        return [self.command, trainer, *flags, "-o", model]

    def use(self, model: str = MODEL) -> tuple[list[str], str]:
        """The arguments of a command that uses it, and what that reads."""
        nearest = ["vectors", "nearest", "-m", model, "-n", "1", "--json"]
        arguments, text = {
            "names": (["names", "score", model, "--json"], "Anna\tf\nOtto\tm\naAnn\tf\nototO\tm\n"),
            "gpt": (
                ["gpt", "score", model, "--lines", "--json"],
                f"{SENTENCE}\n{SENTENCE[::-1]}\n",
            ),
            "lm": (["lm", "score", model, "--lines", "--json"], f"{SENTENCE}\n{SHUFFLED}\n"),
            "tag": (["tag", "evaluate", model, "tagged.txt", "--json"], ""),
            "classify": (["classify", "predict", model, "texts.txt", "--json"], ""),
            "qa": (["qa", "evaluate", model, "questions.tsv", "--json"], ""),
            "bert": (["bert", "score", model, "--json"], f"{SENTENCE}\n{SENTENCE[::-1]}\n"),
            "seq2seq": (["seq2seq", "score", model, "--json"], "acd\tdca\nacd\tbbb\n"),
            "elmo": (["elmo", "embed", model, "--layer", "top"], f"{SENTENCE}\n"),
            "word2vec": (nearest, "red\ndog\n"),
            "vectors": (nearest, "red\ndog\n"),
        }[self.command]
        return arguments, text

    def check(self, out: str) -> None:
        """What it has learned shows in what ``use`` wrote."""
        LEARNED[self.command]([json.loads(line) for line in out.splitlines()])


def choices(command: str, option: str) -> list[str]:
    """The values that an option of ``nlpkit COMMAND train`` takes, its default first.

    >>> choices("classify", "--pooling")
    ['max', 'average', 'last', 'first', 'attention']
    """
    app = importlib.import_module(f"nlpkit.cli.{command}").app
    (train,) = (
        entry.callback
        for entry in app.registered_commands
        if "train" in (entry.name, entry.callback.__name__)
    )
    hints = get_type_hints(train, include_extras=True)
    for name, parameter in inspect.signature(train).parameters.items():
        declared = hints[name].__metadata__[0] if get_origin(hints[name]) is Annotated else None
        # typer keeps the first of the names as if it were a default
        if declared and option in (declared.default, *(declared.param_decls or ())):
            values = _values(get_args(hints[name])[0])
            if not values:  # char|byte|PATH
                values = declared.metavar.replace("PATH", "tokenizer.json").split("|")
            default = str(getattr(parameter.default, "value", parameter.default))
            return sorted(values, key=lambda value: value != default)
    raise KeyError(f"nlpkit {command} train has no {option}")


def _values(hint: Any) -> list[str]:
    """What a type says: literals or an enumeration, optional or not.

    >>> _values(Literal["lstm", "gru"] | None)
    ['lstm', 'gru']
    """
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return [str(member.value) for member in hint]
    return [value for part in get_args(hint) for value in _values(part)]


def kinds() -> list[Kind]:
    """All of them."""
    from nlpkit.models.settings import MODEL_NAMES

    found = [Kind("names", ("--model", model)) for model in MODEL_NAMES]
    found += [Kind("lm", ("--model", model)) for model in choices("lm", "--model")]
    found += [Kind("lm", ("--model", "ngram", "--smoothing", "interpolation", "-t", "word"))]
    found += [Kind("lm", ("--model", "lstm", "-t", "word", "--unit", "lines"))]
    found += [Kind("lm", ("--model", "gru", "--recurrent-dropout", "0.2", "--softmax", "adaptive"))]
    found += [Kind("lm", ("--model", "mlp", "--direct", "-t", "whitespace"))]
    for command, options in OPTIONS.items():
        for option in options:
            # the defaults of all options are one kind, that of the first
            values = choices(command, option)[option != options[0] :]
            values = [value for value in values if value not in ON_ENCODERS]
            network = ("--model", "gru") if option == "--pooling" else ()  # a bow pools nothing
            found += [Kind(command, (*network, option, value)) for value in values]
    found.append(Kind("tag", ("--causal", "--layers", "2")))
    textbook = ("transformer", "--positions", "sinusoidal", "--norm", "post")
    found.append(Kind("tag", ("--encoder", *textbook)))
    found.append(Kind("classify", ("--model", *textbook)))
    found.append(Kind("tag", ("--vectors", "given.txt", "--fine-tune")))
    found.append(Kind("classify", ("--model", "cnn", "--vectors", "given.txt")))
    tuned = ("--pretrained", "tiny.bert")
    found.append(Kind("classify", (*tuned, "--pooling", "attention")))
    found.append(Kind("classify", (*tuned, "--freeze", "all")))
    found.append(Kind("tag", (*tuned, "--pieces", "mean", "--hidden", "12", "--word-dim", "12")))
    found.append(Kind("tag", (*tuned, "--features", "no", "--layer-decay", "1")))
    found += [Kind("seq2seq", ("--model", model)) for model in ("lstm", "gru", "transformer")]
    found.append(Kind("seq2seq", ("--model", "lstm", "--attention", "additive", "--input-feeding")))
    found.append(Kind("elmo", ()))
    found.append(Kind("bert", ("--lr", "0.02")))
    whole = ("--recipe", "bert", "--whole-words", "--next-sentence", "--dropout", "0.1")
    found.append(Kind("bert", (*whole, "--lr", "0.02", "--val-fraction", "0.2")))
    found.append(Kind("qa", ("--dropout", "0.1", "--batch-size", "4")))
    combined: list[tuple[str, ...]] = [()]
    for option in WORD2VEC:
        combined = [
            (*flags, option, value) for flags in combined for value in choices("word2vec", option)
        ]
    found += [Kind("word2vec", flags) for flags in combined]
    found.append(Kind("vectors", ("--method", "glove")))
    found.append(Kind("word2vec", ("--documents", "--epochs", "60", "--lr", "0.1")))
    found.append(Kind("word2vec", ("--documents", "--document-words")))
    found.append(Kind("word2vec", ("--documents", "--arch", "cbow")))
    return found


# --- data ---------------------------------------------------------------------------------------

SENTENCE = "the small cat sat on the old mat and saw the dog."
SHUFFLED = "dog old the saw and. mat cat the on small sat the"
TAGGED = """\
the/DET old/ADJ dog/NOUN sleeps/VERB ./PUNCT
a/DET small/ADJ cat/NOUN chased/VERB the/DET dog/NOUN ./PUNCT
Ann/PROPN walks/VERB slowly/ADV ./PUNCT
Bob/PROPN saw/VERB a/DET bird/NOUN ./PUNCT
the/DET bird/NOUN sings/VERB loudly/ADV ./PUNCT
Ann/PROPN saw/VERB the/DET small/ADJ bird/NOUN ./PUNCT
"""
TEXTS = [
    ("good", "the soup was lovely and the waiter was kind"),
    ("good", "a lovely evening with kind people"),
    ("good", "wonderful bread and a friendly cook"),
    ("good", "the cook was friendly and the fish wonderful"),
    ("bad", "the soup was cold and the waiter was rude"),
    ("bad", "a rude waiter and a cold evening"),
    ("bad", "awful bread and a dirty table"),
    ("bad", "the table was dirty and the fish awful"),
]
NAMES = {
    "f": "Anna Hanna Johanna Marianna Susanna Diana Joana Ivana".split(),
    "m": "Otto Bruno Hugo Arno Guido Ivo Marko Milo".split(),
}
QUESTIONS = "".join(
    f"{asked} ?\t{person} lives in {town}\t{answer}\n"
    for person in ("ann", "bob", "eve")
    for town in ("rome", "oslo")
    for asked, answer in (("who", person), ("where", town), ("when", ""))
)
# Many words: torch sums the gradients of a batch, which few words cannot bear.
GROUPS = [["red", *(f"colour{i}" for i in range(20))], ["dog", *(f"animal{i}" for i in range(20))]]


def write_data(folder: Path) -> None:
    """What all kinds learn from; small, and invented."""
    random = Random(1)
    lines = [" ".join(random.choices(GROUPS[i % 2], k=6)) for i in range(400)]
    words = ["".join(random.choices("abcd", k=3)) for _ in range(40)]
    names = [f"{name}\t{label}" for label, listed in NAMES.items() for name in listed]
    vectors = [
        f"{word} {i / 10} {-i} 0.5 1" for i, word in enumerate("the dog cat kind cold".split())
    ]
    for name, text in {
        "names.tsv": "\n".join(names),
        # blank lines are for BERT, whose documents end there
        "text.txt": "\n".join([SENTENCE, SENTENCE.replace("cat", "dog"), ""] * 20),
        "tagged.txt": TAGGED,
        "texts.tsv": "\n".join("\t".join(pair) for pair in TEXTS),
        "texts.txt": "\n".join(text for _, text in TEXTS),
        "groups.txt": "\n".join(lines),
        "given.txt": "\n".join(vectors),
        "questions.tsv": QUESTIONS,
        "pairs.tsv": "\n".join(f"{word}\t{word[::-1]}" for word in words),
    }.items():
        (folder / name).write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    from tiny_berts import save_bert

    from nlpkit.text.subwords import Subwords

    Subwords.train([SENTENCE] * 5, vocab_size=270).save(str(folder / "tokenizer.json"))
    save_bert(folder, [QUESTIONS, TAGGED.replace("/", " "), *(text for _, text in TEXTS)])


# --- what has been learned ----------------------------------------------------------------------


def _names(rows: list[Any]) -> None:
    first, second, *scrambled = (row["bits_per_character"] for row in rows)
    assert max(first, second) < min(scrambled)


def _gpt(rows: list[Any]) -> None:
    forwards, backwards = (row["bits_per_byte"] for row in rows)
    assert forwards < backwards


def _tag(rows: list[Any]) -> None:
    assert rows[0]["accuracy"] > 0.6, "the most frequent tag has 0.25"


def _classify(rows: list[Any]) -> None:
    right = [
        row["labels"][0]["label"] == label for row, (label, _) in zip(rows, TEXTS, strict=True)
    ]
    assert sum(right) >= 7


def _word2vec(rows: list[Any]) -> None:
    for row in rows:
        assert any({row["query"], row["word"]} <= set(group) for group in GROUPS), row


def _qa(rows: list[Any]) -> None:
    assert rows[0]["exact"] > 0.6


def _bert(rows: list[Any]) -> None:
    forwards, backwards = (row["score"] for row in rows)
    assert forwards > backwards


def _seq2seq(rows: list[Any]) -> None:
    right, wrong = (row["log_probability"] for row in rows)
    assert right > wrong


def _elmo(rows: list[Any]) -> None:
    vectors = {}
    for place, (word, vector) in enumerate(zip(*rows[0].values(), strict=True)):
        vectors[word, place] = vector
    assert len({len(vector) for vector in vectors.values()}) == 1
    both = [vector for (word, _), vector in vectors.items() if word == "the"]
    assert len(both) == 3
    assert both[0] != both[1], "a word has other vectors in other places"


LEARNED: dict[str, Callable[[list[Any]], None]] = {
    "names": _names,
    "gpt": _gpt,
    "lm": _gpt,
    "tag": _tag,
    "classify": _classify,
    "word2vec": _word2vec,
    "vectors": _word2vec,
    "bert": _bert,
    "seq2seq": _seq2seq,
    "elmo": _elmo,
    "qa": _qa,
}


def weights(model: Path) -> dict[str, bytes]:
    """All files of a model but those that say when and how long: equal runs have equal ones."""
    told = ("config.json", "metrics.jsonl")
    return {file.name: file.read_bytes() for file in model.iterdir() if file.name not in told}
