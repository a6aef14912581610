"""Good things to start from: small files of every sort and a tiny trained model of every kind.

They are made by the commands themselves and kept below the system's temporary folder for the next
run, under a name that depends on the sources.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from . import roles
from .case import Case, Step
from .commands import Command, Parameter
from .foreign import VOCAB, write_elmo, write_fasttext, write_gpt2
from .sandbox import Limits, Outcome, Sandbox

CORPORA = Path(__file__).parents[2] / "sample_corpora"
# Options that choose the kind of model: a model is trained for each of their values.
KIND_OPTIONS = ("model", "encoder", "loss", "arch", "tokenizer")
INDEX = "index.json"
SIGNAL_AFTER = 1.0  # seconds of training before a checkpoint is asked for


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint and the command line that it belongs to."""

    name: str
    command: str
    arguments: tuple[tuple[str, ...], ...]
    reads: tuple[str, ...]  # sample files


@dataclass
class Samples:
    """Names of files below ``folder`` by what they are, such as ``text`` or ``model gpt``."""

    folder: Path
    files: dict[str, list[str]] = field(default_factory=dict)
    checkpoints: list[Checkpoint] = field(default_factory=list)
    failures: list[tuple[Case, Outcome]] = field(default_factory=list)

    def of(self, role: str) -> list[str]:
        """Files that fit a role; ``model`` is any model."""
        found = self.files.get(role, [])
        if role == "model":
            found = [
                name for key in self.files if key.startswith("model ") for name in self.of(key)
            ]
        return found or self.files["text"]

    def add(self, role: str, name: str) -> None:
        self.files.setdefault(role, []).append(name)

    def path(self, name: str) -> Path:
        return self.folder / name


def good_arguments(
    command: Command, samples: Samples, **given: str
) -> Iterator[tuple[Parameter, tuple[str, ...], str]]:
    """Each parameter of a quick, good command line with its words and the sample file it names."""
    for parameter in command.parameters:
        if parameter.name not in given and not roles.is_needed(command, parameter):
            continue
        role = roles.files_role(command, parameter)
        sample = ""
        value = given.get(parameter.name) or roles.quick_value(command, parameter)
        if value is None and roles.is_output(parameter):
            value = roles.new_name(parameter)
        if value is None and role:
            value = sample = samples.of(role)[0]
        elif value in samples.of(role or "text"):
            sample = value
        if value is None:
            value = roles.good_words(command, parameter)[0]
        words = (parameter.flag, value) if parameter.flags else (value,)
        yield parameter, roles.times(command, parameter) * words, sample


def good_case(command: Command, samples: Samples, **given: str) -> Case:
    """The good command line as a case, with copies of the files that it reads."""
    chosen = list(good_arguments(command, samples, **given))
    names = dict.fromkeys(sample for _, _, sample in chosen if sample)
    return Case(
        number=0,
        command=command.name,
        arguments=tuple(words for _, words, _ in chosen),
        steps=tuple(copied(samples, name) for name in names),
        outputs=tuple(words[-1] for one, words, _ in chosen if roles.is_output(one)),
    )


def copied(samples: Samples, name: str) -> Step:
    return Step("copy", name, source=str(samples.path(name)))


def prepare(commands: list[Command], sandbox: Sandbox) -> Samples:
    """The samples of these sources: from an earlier run, or made now.

    Of two processes that need them at once one makes them and the other waits. They get their name
    when they are whole, so that nobody finds half of them.
    """
    folder = sandbox.root / f"samples-{_fingerprint()}"
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.exists():
            return _load(folder)
        samples = Samples(Path(tempfile.mkdtemp(dir=sandbox.root, prefix=f"{folder.name}-")))
        samples.folder.chmod(0o755)
        # kernels are compiled here, which takes its time
        patient = replace(sandbox, limits=Limits(cpu=300, wall=300.0, memory=8 << 30))
        _make(commands, samples, patient)
        if not samples.failures:  # else they are for this run only
            _save(samples)
            samples.folder = samples.folder.rename(folder)
        return samples


def _make(commands: list[Command], samples: Samples, sandbox: Sandbox) -> None:
    write_files(samples)
    _run(samples, sandbox, "bpe train", "--vocab-size", str(VOCAB), "-q", "text.txt")
    samples.add("tokenizer", "tokenizer.json")
    write_gpt2(samples)
    by_name = {command.name: command for command in commands}
    if "bert train" in by_name:
        small = ("--max-iters", "1", "--layers", "1", "--dim", "8", "--heads", "2", "-q")
        _run(samples, sandbox, "bert train", "text.txt", *small, "-o", "bert.model")
        samples.add("model bert", "bert.model")
    for command in commands:
        if is_trainer(command):
            _train_kinds(command, samples, sandbox)
            _interrupt(command, samples, sandbox)
    for ending in ("txt", "bin", "txt.gz"):
        name = f"vectors.{ending}"
        if "vectors convert" in by_name and samples.files.get("vectors"):
            _run(samples, sandbox, "vectors convert", samples.of("vectors")[0], "-o", name)
            samples.add("vectors", name)
    write_fasttext(samples)
    _write_others(samples, sandbox, by_name)


def _write_others(samples: Samples, sandbox: Sandbox, by_name: dict[str, Command]) -> None:
    """What is made of models, or in the form of other programs."""
    if "gpt import" in by_name:
        _run(samples, sandbox, "gpt import", "gpt2", "-o", "gpt-imported.model")
        samples.add("model gpt", "gpt-imported.model")
        samples.add("exportable", "gpt-imported.model")
    if "bert export" in by_name:
        for recipe in ("modern", "bert"):
            case = good_case(by_name["bert train"], samples, recipe=recipe, output=f"{recipe}.bert")
            _check(samples, case, sandbox.run_in(samples.folder, replace(case, steps=())))
            samples.add("model bert", f"{recipe}.bert")
        _run(samples, sandbox, "bert export", "bert.bert", "-o", "bert-hf")
        samples.add("hf bert", "bert-hf")
        _run(samples, sandbox, "bert index", "bert.bert", "text.txt", "-o", "lines.index")
        samples.files["search"] = ["bert.bert", "lines.index"]
        samples.add("exportable bert", "bert.bert")
    if "lm export" in by_name:
        _run(samples, sandbox, "lm export", "lm-model-ngram.model", "-o", "words.arpa")
        samples.add("arpa", "words.arpa")
    if "seq2seq export" in by_name:
        train = by_name["seq2seq train"]
        case = good_case(train, samples, model="transformer", output="marian.model")
        case = replace(case, steps=(), arguments=(*case.arguments, ("--marian",)))
        _check(samples, case, sandbox.run_in(samples.folder, case))
        samples.add("model seq2seq", "marian.model")
        samples.add("exportable seq2seq", "marian.model")
        _run(samples, sandbox, "seq2seq export", "marian.model", "-o", "marian-hf")
        samples.add("hf marian", "marian-hf")
    if "elmo import" in by_name:
        samples.path("elmo-hdf5").mkdir()
        write_elmo(samples.path("elmo-hdf5"))
        samples.add("hf elmo", "elmo-hdf5")
    samples.files["classify encoder"] = [
        f"classify-model-{kind}.model" for kind in ("transformer", "lstm", "gru")
    ]


def is_trainer(command: Command) -> bool:
    """Whether it makes a model from data."""
    output = command.find("output")
    return command.name.endswith("train") and output is not None and output.metavar == "MODEL"


def _train_kinds(command: Command, samples: Samples, sandbox: Sandbox) -> None:
    """A model for every value of every option that chooses a kind."""
    group = command.name.split()[0]
    if not any(command.find(name) for name in KIND_OPTIONS[:-1]) and group != "bert":
        case = good_case(command, samples, output=f"{group}.model")
        if _check(samples, case, sandbox.run_in(samples.folder, replace(case, steps=()))):
            samples.add(f"model {group}", f"{group}.model")
    for name in KIND_OPTIONS:
        parameter = command.find(name)
        if parameter is None or (name == "tokenizer" and group != "gpt"):
            continue
        values = list(roles.good_words(command, parameter))
        if name == "tokenizer":
            values += samples.of("tokenizer")
        for value in values:
            model = f"{group}-{name}-{value.replace('.', '-')}.model"
            case = good_case(command, samples, **{name: value, "output": model})
            if _check(samples, case, sandbox.run_in(samples.folder, replace(case, steps=()))):
                samples.add(f"model {group}", model)
                if group == "word2vec":
                    samples.add("vectors", model)


def _interrupt(command: Command, samples: Samples, sandbox: Sandbox) -> None:
    """A checkpoint, by Ctrl-C in the middle of a long training."""
    long = {name: "1000000" for name in ("epochs", "max_iters") if command.find(name)}
    folder = f"{command.name.replace(' ', '-')}"
    case = good_case(command, samples, **long)
    place = samples.path(folder)
    place.mkdir()
    for step in case.steps:
        step.apply(place)
    case = replace(case, signal=signal.SIGINT, after=SIGNAL_AFTER)
    for _ in range(4):  # a busy machine may not have come to its first step
        outcome = sandbox.run_in(place, case)
        if outcome.code == 130 and list(place.glob("*.checkpoint")):
            break
        case = replace(case, after=2 * case.after)
    if not list(place.glob("*.checkpoint")):
        samples.failures.append((case, replace(outcome, err=outcome.err + "\nno checkpoint")))
        return
    reads = tuple(step.path for step in case.steps)
    name = f"{folder}/new.model.checkpoint"
    samples.checkpoints.append(Checkpoint(name, command.name, case.arguments, reads))


def _run(samples: Samples, sandbox: Sandbox, command: str, *words: str) -> None:
    case = Case(0, command, tuple((word,) for word in words))
    _check(samples, case, sandbox.run_in(samples.folder, case))


def _check(samples: Samples, case: Case, outcome: Outcome) -> bool:
    good = outcome.code == outcome.killed == 0
    if not good:
        samples.failures.append((case, outcome))
    return good


# --- files --------------------------------------------------------------------------------------


def _head(name: str, count: int, folder: Path = CORPORA) -> str:
    with open(folder / name, encoding="utf-8") as file:
        return "".join(line for line, _ in zip(file, range(count), strict=False))


def write_files(samples: Samples) -> None:
    """Files of text, ids, labels and tags, cut from the sample corpora."""
    tagged = _head("tagged-test.conllu", 150)
    tagged = tagged[: tagged.rindex("\n\n") + 2]
    fields = [line.split("\t") for line in tagged.split("\n")]
    tokens = [(row[1], row[3]) for row in fields if len(row) == 10 and row[0].isdigit()]
    reviews = [line.split("\t") for line in _head("reviews.tsv", 41).splitlines()[1:]]
    contents = {
        "text": {"text.txt": _head("world.txt", 30)},
        "tokens": {"tokens.txt": "The cat ( it 's old ) , sat .\nDo n't !\n"},
        "ids": {"ids.txt": "4 5 6\n3\n4 5 4 5\n"},
        "names": {
            "names.txt": _head("names-en.txt", 40),
            "labelled-names.tsv": "Ann\ten\nAna\tes\n" * 9,
        },
        "parallel": {"parallel.tsv": _head("en-ca.tsv", 30)},
        "labelled": {
            "reviews.tsv": "".join(f"{label}\t{text}\n" for _, label, text in reviews),
            "reviews.ft": "".join(f"__label__{label} {text}\n" for _, label, text in reviews),
            "reviews.jsonl": "".join(
                json.dumps({"label": label, "text": text}) + "\n" for _, label, text in reviews
            ),
        },
        "tagged": {
            "tagged.conllu": tagged,
            "tagged.tsv": "".join(f"{word}\t{tag}\n" for word, tag in tokens),
            "tagged.slash": " ".join(f"{word}/{tag}" for word, tag in tokens[:40]) + "\n",
            "tagged.pairs": "king\tBIIE\nqueen\tBIIIE\n",
        },
        "questions": {"questions.tsv": "who ?\tann is here\tann\nwhen ?\tann is here\t\n" * 4},
        "vocab": {"words.vocab": "<pad>\t0\n<unk>\t0\n<bos>\t0\n<eos>\t0\nthe\t9\nof\t3\nand\t2\n"},
        "config": {"settings.toml": "seed = 3\n"},
        "analogies": {"analogies.txt": ": all\nthe of and to\nthe and of to\n"},
        "pairs": {"pairs.tsv": "the\tof\t3.5\nand\tto\t8\nthe\tand\t1\n"},
        "lists": {"lists.txt": ": all\nthe of\nand to\nin a\nis was\n"},
        "edges": {"edges.txt": "a b\nb c\nc a\na d\n"},
        "examples": {"examples.jsonl": '{"prompt": "the king", "completion": " of"}\n' * 3},
        "texts": {"two-texts.tsv": "the _\ta _\n"},
    }
    for role, files in contents.items():
        for name, text in files.items():
            samples.path(name).write_text(text, encoding="utf-8")
            samples.add(role, name)


# --- keeping them -------------------------------------------------------------------------------


def storage() -> Path:
    """The folder that everything is kept in."""
    folder = Path(tempfile.gettempdir()) / f"nlpkit-fuzz-{os.getuid()}"
    folder.mkdir(exist_ok=True, mode=0o755)
    return folder


def _fingerprint() -> str:
    import nlpkit

    package = Path(nlpkit.__file__).parent
    digest = hashlib.blake2b(sys.version.encode(), digest_size=6)
    own = [Path(__file__).with_name(f"{name}.py") for name in ("samples", "roles", "foreign")]
    for file in sorted([*package.rglob("*.py"), *own]):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _save(samples: Samples) -> None:
    checkpoints = [vars(checkpoint) for checkpoint in samples.checkpoints]
    index = {"files": samples.files, "checkpoints": checkpoints}
    samples.path(INDEX).write_text(json.dumps(index))


def _load(folder: Path) -> Samples:
    saved = json.loads((folder / INDEX).read_text())
    checkpoints = [
        Checkpoint(
            one["name"], one["command"], tuple(map(tuple, one["arguments"])), tuple(one["reads"])
        )
        for one in saved["checkpoints"]
    ]
    return Samples(folder, saved["files"], checkpoints)
