"""Makes golden folders: small models of every kind, with the answers that they gave.

    python tests/golden/make.py

writes ``tests/golden/VERSION/`` for the version of nlpkit that it runs with, once for each release
that changes a format and never again: a model that was written then must answer the same for ever
(``tests/test_golden.py``). Run it in a checkout of the release, before anything else is changed.

Beside each model ``NAME`` lies ``NAME.json``: a list of questions, each with the arguments of the
command, its standard input, and the lines that it wrote, as values where they are JSON. A question
that the version itself could not answer has no answer (null).

Files that are large are compressed, as FILE.xz. All models learn from sample_corpora/ or from the
lines below, with sizes as small as they can be.
"""

from __future__ import annotations

import json
import lzma
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LARGE = 30_000  # bytes of a file that is kept compressed, as FILE.xz
HERE = Path(__file__).parent
SAMPLES = HERE.parent.parent / "sample_corpora"
sys.path.insert(0, str(HERE.parent))

from warm import Warm  # noqa: E402 - lies beside this folder

TAGGED = """\
the/DET old/ADJ dog/NOUN sleeps/VERB here/ADV ./PUNCT
a/DET small/ADJ cat/NOUN chased/VERB the/DET dog/NOUN ./PUNCT
Ann/PROPN walks/VERB slowly/ADV ./PUNCT
Bob/PROPN saw/VERB a/DET bird/NOUN ./PUNCT
the/DET bird/NOUN sings/VERB loudly/ADV ./PUNCT
Ann/PROPN saw/VERB the/DET small/ADJ bird/NOUN ./PUNCT
"""
ENTITIES = """\
Ann\tB-PER
Lee\tI-PER
lives\tO
in\tO
Oslo\tB-LOC
.\tO

Bob\tB-PER
left\tO
New\tB-LOC
York\tI-LOC
.\tO

Rome\tB-LOC
saw\tO
Ann\tB-PER
.\tO

"""
STRANDS = "AGCCTAGG\tNNCCCNNN\nCCTTAGAG\tCCCCNNNN\nAGAGCTCC\tNNNNCCCC\nTTCCAGGA\tCCCCNNNN\n"
REVIEWS = """\
good\tthe soup was lovely and the waiter was kind
good\ta lovely evening with kind people
good\twonderful bread and a friendly cook
good\tthe cook was friendly and the fish wonderful
bad\tthe soup was cold and the waiter was rude
bad\ta rude waiter and a cold evening
bad\tawful bread and a dirty table
bad\tthe table was dirty and the fish awful
"""
TOPICS = """\
food,price\tthe bread is cheap
food\tthe soup is warm
price\tcheap rooms
staff\ta kind waiter
food,staff\tthe kind cook makes soup
price,staff\tthe waiter gives change
"""
NAMES = """\
Anna\tf
Hanna\tf
Johanna\tf
Marianna\tf
Susanna\tf
Diana\tf
Joana\tf
Ivana\tf
Otto\tm
Bruno\tm
Hugo\tm
Arno\tm
Guido\tm
Ivo\tm
Marko\tm
Milo\tm
"""

SENTENCES = "the small dog sleeps .\nBob chased Ann slowly .\nthe zebra walks\n"
PLACES = "Ann left Oslo .\nLee saw New York .\n"
OPINIONS = "the waiter was kind\ncold soup and a dirty table\nunheard of\n"


@dataclass(frozen=True)
class Question:
    """Arguments of a command, and what it reads."""

    arguments: list[str]
    input: str = ""


@dataclass(frozen=True)
class Model:
    """A model to make: the arguments of its command (its name is put behind -o), and questions."""

    name: str
    arguments: list[str]
    questions: list[Question] = field(default_factory=list)


def ask(*arguments: str, input: str = "") -> Question:
    return Question(list(arguments), input)


def models() -> list[Model]:
    """Every kind, those that others need first."""
    return [*_files(), *_vectors(), *_names(), *_gpts(), *_taggers(), *_classifiers()]


def _files() -> list[Model]:
    text = "Once upon a time, a naïve café 東京 👍🏽.\n"
    return [
        Model(
            "tokenizer.json",
            ["bpe", "train", "tales.txt", "--vocab-size", "300", "--special", "<|user|>"],
            [
                ask("bpe", "encode", "-m", "tokenizer.json", "--json", input=text),
                ask("bpe", "decode", "-m", "tokenizer.json", input="12 45 299 290 270\n"),
            ],
        ),
        Model(
            "words.vocab",
            ["vocab", "build", "world.txt", "--special", "<bos>", "--max-size", "80"],
            [
                ask("encode", "-V", "words.vocab", "--bos", "--json", input="the king sat\n"),
                ask("decode", "-V", "words.vocab", input="2 3 10 79 1\n"),
            ],
        ),
    ]


def _vectors() -> list[Model]:
    made = []
    small = ["--dim", "8", "--min-count", "1", "--max-vocab", "60", "--threads", "1"]
    for name, how in {
        "word2vec-ns": ["--loss", "ns"],
        "word2vec-hs": ["--arch", "cbow", "--loss", "hs"],
        "word2vec-softmax": ["--loss", "softmax"],
    }.items():
        train = ["word2vec", "train", "world.txt", *small, "--epochs", "2", *how]
        made.append(Model(name, train, _near(name)))
    convert = ["vectors", "convert", "word2vec-ns"]
    made.append(Model("vectors", convert, _near("vectors")))
    return made


def _near(model: str) -> list[Question]:
    return [
        ask("vectors", "nearest", "the", "is", "-m", model, "-n", "3", "--json"),
        ask("vectors", "analogy", "the", "of", "in", "-m", model, "-n", "3", "--json"),
    ]


def _names() -> list[Model]:
    made = []
    small = ["--threads", "1", "--dim", "8", "--layers", "1", "--heads", "2", "--order", "2"]
    small += ["--epochs", "200", "--lr", "0.02"]
    for kind in ("ngram", "mlp", "rnn", "lstm", "gru", "gpt"):
        made.append(_name_model(kind, "plain.txt", ["--model", kind, *small]))
    made.append(_name_model("labels", "names.txt", ["--model", "gpt", *small]))
    # with the layers that it was given by default, 0.1.0 could not load its own bigram model
    made.append(_name_model("bigram", "plain.txt", ["--model", "bigram", "--epochs", "60"]))
    return made


def _name_model(kind: str, file: str, how: list[str]) -> Model:
    name = f"names-{kind}"
    labelled = "Ann\tf\nOtto\tm\n"
    score = labelled if kind == "labels" else "Anna\nOtto\nMarkan\n"
    label = ["--label", "m"] if kind == "labels" else []
    greedy = ["-n", "1", "-T", "0", "--tries", "8", "--scores", "--json"]
    return Model(
        name,
        ["names", "train", file, "--test-file", file, *how],
        [
            ask("names", "sample", name, *label, "--prefix", "Ha", *greedy),
            ask("names", "sample", name, *label, *greedy),
            ask("names", "score", name, "--json", input=score),
        ],
    )


def _gpts() -> list[Model]:
    made = []
    sizes = ["--layers", "1", "--heads", "2", "--dim", "8", "--block-size", "16"]
    steps = ["--batch-size", "16", "--max-iters", "400", "--lr", "0.02", "--threads", "1"]
    for name, codec in {"char": "char", "byte": "byte", "subwords": "tokenizer.json"}.items():
        train = ["gpt", "train", "tales.txt", "-t", codec, *sizes, *steps]
        made.append(Model(f"gpt-{name}", train, _write(f"gpt-{name}")))
    made.append(Model("gpt-imported", ["gpt", "import", "gpt2"], _write("gpt-imported")))
    return made


def _write(model: str) -> list[Question]:
    greedy = ["-n", "24", "-T", "0", "--json"]
    return [
        ask("gpt", "sample", model, "The ", *greedy),
        ask("gpt", "sample", model, "-", *greedy, input="One day\nA kitten and\n"),
        ask("gpt", "score", model, "--lines", "--json", input="A kitten and an ox.\nThe wind\n"),
    ]


def _taggers() -> list[Model]:
    made = []
    plain = ["--affixes", "no"]
    small = ["--hidden", "8", "--word-dim", "8", "--epochs", "20", "--lr", "0.02", "--threads", "1"]
    no_crf = ["--crf", "no"]
    for name, data, how, text in (
        ("lstm", "tagged.txt", ["--encoder", "lstm", "--crf", "yes"], SENTENCES),
        (
            "gru",
            "tagged.txt",
            ["--encoder", "gru", "--causal", "--layers", "2", "--chars", "lstm", *no_crf, *plain],
            SENTENCES,
        ),
        (
            "transformer",
            "tagged.txt",
            ["--encoder", "transformer", "--vectors", "vectors", "--fine-tune", *plain],
            SENTENCES,
        ),
        (
            "cnn",
            "entities.tsv",
            ["--encoder", "cnn", "--chars", "none", "--linear-features", "no", *no_crf],
            PLACES,
        ),
        ("entities", "entities.tsv", ["--vectors", "vectors"], PLACES),
        ("characters", "strands.tsv", ["--unit", "char"], "AGCC\nTTAG\n"),
    ):
        train = ["tag", "train", data, *small, *how]
        predict = ask("tag", "predict", f"tag-{name}", "--json", input=text)
        made.append(Model(f"tag-{name}", train, [predict]))
    return made


def _classifiers() -> list[Model]:
    made = []
    small = ["--hidden", "8", "--dim", "8", "--threads", "1"]
    more = ["--epochs", "30", "--lr", "0.02", "--dropout", "0.1"]
    for name, data, how in (
        ("bow", "reviews.tsv", ["--model", "bow"]),
        ("cnn", "reviews.tsv", ["--model", "cnn", *more]),
        ("lstm", "reviews.tsv", ["--model", "lstm", "--pooling", "last", *more]),
        ("gru", "reviews.tsv", ["--model", "gru", "--pooling", "average", *more]),
        ("transformer", "reviews.tsv", ["--model", "transformer", *more]),
        ("vectors", "reviews.tsv", ["--model", "cnn", "--vectors", "vectors", *more]),
        ("several", "topics.tsv", ["--model", "bow", "--multi-label"]),
        ("spelling", "reviews.tsv", ["--model", "bow", "-t", "char", "--ngrams", "4"]),
        # 0.1.0 wrote down where the file was, which is nowhere now
        ("subwords", "reviews.tsv", ["--model", "bow", "-t", "tokenizer.json"]),
    ):
        model = f"classify-{name}"
        predict = ask("classify", "predict", model, "-k", "3", "--json", input=OPINIONS)
        made.append(Model(model, ["classify", "train", data, *small, *how], [predict]))
    return made


def write_data(folder: Path) -> None:
    """What the models learn from."""
    tales = (SAMPLES / "tales.txt").read_text(encoding="utf-8")
    world = (SAMPLES / "world.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    names = "".join(line.partition("\t")[0] + "\n" for line in NAMES.splitlines())
    for name, text in {
        "tales.txt": tales[:6000],
        "world.txt": "".join(world[:300]),
        "names.txt": NAMES,
        "plain.txt": names,
        "tagged.txt": TAGGED,
        "entities.tsv": ENTITIES * 3,
        "strands.tsv": STRANDS * 4,
        "reviews.tsv": REVIEWS,
        "topics.tsv": TOPICS,
    }.items():
        (folder / name).write_text(text, encoding="utf-8")


def write_gpt2(folder: Path, tokenizer: Path) -> None:
    """A random GPT-2 as its library writes it."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(3)
    config = GPT2Config(vocab_size=300, n_positions=24, n_embd=12, n_layer=1, n_head=3)
    config.initializer_range = 0.5
    config.bos_token_id = config.eos_token_id = 0
    GPT2LMHeadModel(config).save_pretrained(folder)
    (folder / "tokenizer.json").write_bytes(tokenizer.read_bytes())


def make(target: Path) -> None:
    """Train in a folder of its own, so that no path of this machine is in a model that matters."""
    target.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="nlpkit-golden-") as name, Warm() as warm:
        folder = Path(name)
        write_data(folder)
        for model in models():
            if model.name == "gpt-imported":
                write_gpt2(folder / "gpt2", folder / "tokenizer.json")
            warm.ok(folder, *model.arguments, "-o", model.name)
            if model.name.startswith("tag-"):
                thin(folder / model.name)
            records = [_answer(warm, folder, question) for question in model.questions]
            text = "[\n" + ",\n".join(json.dumps(r, ensure_ascii=False) for r in records) + "\n]\n"
            (target / f"{model.name}.json").write_text(text, encoding="utf-8")
            source = folder / model.name
            if source.is_file():
                (target / model.name).write_bytes(source.read_bytes())
                continue
            (target / model.name).mkdir()
            for file in source.iterdir():
                data, name = file.read_bytes(), file.name
                if len(data) > LARGE:
                    data, name = lzma.compress(data, preset=9), f"{name}.xz"
                (target / model.name / name).write_bytes(data)


def thin(model: Path) -> None:
    """Set those rows of a tagger's hashed affixes to 0 that no word here has.

    They are random numbers, as they were drawn: 5 MB in each model, and no answer depends on them.
    """
    from safetensors.numpy import load_file, save_file

    from nlpkit.tasks.tag.predictor import Tagger

    words = [word.rpartition("/")[0] for word in TAGGED.split()]
    words += [*ENTITIES.split(), *SENTENCES.split(), *PLACES.split(), *"AGCT"]
    used = Tagger.load(model).extractor.features(words).affixes
    weights = load_file(model / "weights.safetensors")
    table = weights["words.affixes.weight"]
    kept = table[used].copy()
    table[:] = 0
    table[used] = kept
    save_file(weights, model / "weights.safetensors")


def _answer(warm: Warm, folder: Path, question: Question) -> dict[str, Any]:
    done = warm.run(folder, *question.arguments, input=question.input)
    if done.code != 0:
        sys.stderr.write(f"{' '.join(question.arguments)}: {done.err}")
    answer = parse(done.out) if done.code == 0 else None
    return {"arguments": question.arguments, "input": question.input, "answer": answer}


def parse(out: str) -> list[Any]:
    """The lines of an answer: what is an object or a list of JSON as that, the rest as text.

    >>> parse('{"word": "king"}\\nplain\\n')
    [{'word': 'king'}, 'plain']
    """
    return [json.loads(line) if line[:1] in ("{", "[") else line for line in out.splitlines()]


def main() -> None:
    import nlpkit

    target = HERE / nlpkit.__version__
    if target.exists():
        sys.exit(f"{target} exists: what a version wrote stays as it is")
    make(target)
    size = sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
    sys.stdout.write(f"{target}: {size:,} bytes\n")


if __name__ == "__main__":
    main()
