"""Pre-trained encoders: fine-tuning, prediction, BERT from scratch, and what transfer is worth.

    python benchmarks/bench_pretrained.py --only classify --data labelled.tsv --encoder HF_FOLDER
    python benchmarks/bench_pretrained.py --only speed --data labelled.tsv --encoder HF_FOLDER
    python benchmarks/bench_pretrained.py --only pairs --pairs pairs.tsv --encoder HF_FOLDER
    python benchmarks/bench_pretrained.py --only bert --text corpus.txt --vocab-size 8192 \\
        --dim 192 --heads 6 --seconds 1800 --save our.bert
    python benchmarks/bench_pretrained.py --only transfer --train t.conllu --test d.conllu \\
        --data labelled.tsv --pretrained our.bert --elmo our.elmo --vectors our.model
    python benchmarks/bench_pretrained.py --only cold --encoder HF_FOLDER

--encoder is a folder of Hugging Face's (BERT, DistilBERT, a sentence encoder). A tenth of --data
and of --pairs (label<TAB>text<TAB>text2), chosen by a fixed seed, is the test set. ``transformers``
is imported by --peer-python. All times are CPU seconds of one thread. Without files it runs on the
sample corpora with a tiny BERT made on the spot, which shows that it works and nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench_tagger import quality, read, run, write_columns
from common import SAMPLES, nlpkit_command, print_table

from nlpkit.tasks.classify.data import read_examples
from nlpkit.tasks.tag.layouts import LayoutChoice


def write_split(data: str, folder: Path) -> tuple[Path, Path]:
    """Nine tenths and one tenth, chosen by a fixed seed, as label<TAB>text(<TAB>text2)."""
    examples = read_examples(data)
    random.Random(7).shuffle(examples)
    cut = len(examples) // 10
    paths = folder / f"{Path(data).stem}-train.tsv", folder / f"{Path(data).stem}-test.tsv"
    for path, part in zip(paths, (examples[cut:], examples[:cut]), strict=True):
        rows = [[one.labels[0], one.text, *([one.second] if one.second else [])] for one in part]
        head = "label\ttext\ttext2\n" if part[0].second else ""
        path.write_text(head + "".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return paths


def classify(train: Path, test: Path, model: Path, *flags: str) -> tuple[float, float]:
    """Accuracy in percent and CPU seconds of one training through the command line."""
    command = nlpkit_command("classify", "train", str(train), "-o", str(model), "--threads", "1")
    _, seconds = run([*command, "-q", "--force", *flags])
    report, _ = run(nlpkit_command("classify", "evaluate", str(model), str(test), "--json"))
    return 100 * json.loads(report)["accuracy"], seconds


def mean_of_seeds(seeds: int, train: Path, test: Path, model: Path, *flags: str) -> list[Any]:
    """Mean accuracy, its range, and mean seconds."""
    return summary(
        [classify(train, test, model, *flags, "--seed", str(s + 1)) for s in range(seeds)]
    )


def summary(found: list[tuple[float, float]]) -> list[Any]:
    """Mean score, the range of scores, and mean seconds."""
    scores = [score for score, _ in found]
    seconds = statistics.mean(second for _, second in found)
    return [statistics.mean(scores), f"{min(scores):.1f}-{max(scores):.1f}", seconds]


def make_encoder(options: argparse.Namespace, folder: Path) -> tuple[str, str | None]:
    """Our folder of the encoder, and the one for the peer."""
    if options.encoder is None:
        return make_bert(folder), None
    ours = str(folder / "encoder.bert")
    run(nlpkit_command("bert", "import", options.encoder, "-o", ours))
    return ours, options.encoder


def make_bert(folder: Path) -> str:
    """A tiny BERT of the sample corpora."""
    size = ["--size", "tiny", "--vocab-size", "1000", "--max-iters", "200"]
    return learn_from_tales(folder / "tiny.bert", "bert", "train", *size)


def learn_from_tales(output: Path, *command: str) -> str:
    """What a command makes of a text of the sample corpora."""
    more = ["-o", str(output), "-q", "--threads", "1"]
    run([*nlpkit_command(*command), str(SAMPLES / "tales.txt"), *more])
    return str(output)


def bench_classify(options: argparse.Namespace, folder: Path) -> None:
    """Quality beside a bag of words and a plain loop of transformers."""
    train, test = write_split(options.data, folder)
    ours, peer = make_encoder(options, folder)
    bow, tuned = folder / "bow.model", folder / "tuned.model"
    flags = ["--pretrained", ours, "--epochs", str(options.epochs)]
    rows = [
        ["bag of words", *mean_of_seeds(options.seeds, train, test, bow)],
        ["nlpkit --pretrained", *mean_of_seeds(options.seeds, train, test, tuned, *flags)],
    ]
    for kind in ("int8", "bfloat16"):
        command = nlpkit_command("classify", "evaluate", str(tuned), str(test), "--json")
        try:
            report, _ = run([*command, "--quantize", kind])
        except RuntimeError as error:  # a processor without bfloat16
            print(error, file=sys.stderr)
            continue
        rows.append([f"the last one in {kind}", 100 * json.loads(report)["accuracy"], "", ""])
    if peer is not None:
        found = run_peer(options, peer, train, test, str(options.epochs))
        rows.append(["transformers", found["accuracy"], "1 seed", found["seconds"]])
    title = f"{Path(options.data).name}, {options.epochs} epochs, {options.seeds} seeds"
    print_table(title, ["classifier", "accuracy", "range", "training CPU s"], rows)


def run_peer(options: argparse.Namespace, peer: str, *arguments: Any) -> dict[str, float]:
    """What ``peers_finetuning.py`` found."""
    script = str(Path(__file__).with_name("peers_finetuning.py"))
    command = [options.peer_python, script, peer, *map(str, arguments)]
    found: dict[str, float] = json.loads(run(command)[0])
    return found


def bench_speed(options: argparse.Namespace, folder: Path) -> None:
    """A step of training and the prediction of a text, by commands that take turns."""
    train, test = write_split(options.data, folder)
    ours, peer = make_encoder(options, folder)
    tuned = str(folder / "tuned.model")
    learn = nlpkit_command("classify", "train", str(train), "-o", tuned, "--pretrained", ours)
    learn += ["-q", "--force", "--threads", "1"]
    predict = nlpkit_command("classify", "predict", tuned, "--threads", "1")
    run([*learn, "--max-iters", "1"])
    texts = [example.text + "\n" for example in read_examples(str(test))][: options.texts]
    some_test, count = folder / "some.tsv", options.steps
    some_test.write_text("".join(f"x\t{text}" for text in texts), encoding="utf-8")
    steps: dict[str, float] = {}
    rates: dict[str, float] = {}
    for _ in range(options.rounds):
        for dtype in ("float32", "bfloat16"):
            flags = ["--dtype", dtype, "--max-iters"]
            one, more = (run([*learn, *flags, str(n)])[1] for n in (1, 1 + count))
            steps[dtype] = min(steps.get(dtype, 1e9), (more - one) / count)
        for flags in ([], ["--quantize", "int8"], ["--quantize", "bfloat16"]):
            seconds = run([*predict, *flags], "".join(texts))[1] - run([*predict, *flags], "a\n")[1]
            name = " ".join(["nlpkit", *flags])
            rates[name] = max(rates.get(name, 0.0), len(texts) / max(1e-3, seconds))
        if peer is not None:
            found = run_peer(options, peer, train, some_test, 1, 1, count)
            steps["transformers"] = min(steps.get("transformers", 1e9), found["step_seconds"])
            rates["transformers"] = max(rates.get("transformers", 0), found["texts_per_second"])
    print_table("Training", ["", "CPU s of a step"], [list(row) for row in steps.items()])
    print_table("Prediction", ["", "texts per CPU s"], [list(row) for row in rates.items()])


def bench_pairs(options: argparse.Namespace, folder: Path) -> None:
    """Two texts: paraphrases, or whether one follows from the other."""
    train, test = write_split(options.pairs, folder)
    ours, _ = make_encoder(options, folder)
    flags = ["--pretrained", ours]
    rows = [
        ["bag of words", *mean_of_seeds(options.seeds, train, test, folder / "bow.model")],
        ["--pretrained", *mean_of_seeds(options.seeds, train, test, folder / "p.model", *flags)],
    ]
    title = f"{Path(options.pairs).name}, {options.seeds} seeds"
    print_table(title, ["classifier", "accuracy", "range", "training CPU s"], rows)


def bench_bert(options: argparse.Namespace, folder: Path) -> None:
    """A BERT from scratch for so many CPU seconds, beside what counting reaches."""
    import torch

    from nlpkit.device import keep_freed_memory
    from nlpkit.tasks.bert.data import encode_lines
    from nlpkit.tasks.bert.settings import BertTraining
    from nlpkit.tasks.bert.train import BertRun
    from nlpkit.text.wordpiece import WordPiece
    from nlpkit.textio import read_lines

    torch.set_num_threads(1)
    keep_freed_memory()  # as the command does
    codec = WordPiece.train(read_lines([options.text]), vocab_size=options.vocab_size)
    lines = encode_lines(read_lines([options.text]), codec)
    given = BertTraining(
        max_time=options.seconds,
        recipe=options.recipe,
        dtype=options.dtype,
        dim=options.dim,
        heads=options.heads,
        val_fraction=0.02,
    )
    bert_run = BertRun(lines, codec, given.resolve())
    bert_run.trainer._clock = time.process_time
    steps = sum(1 for _ in bert_run.steps())
    model = bert_run.finish()
    if options.save:
        model.save(options.save, force=True)
    print(f"{steps} steps in {options.seconds:.0f} CPU s, {bert_run.trainer.counters.dtype}")
    print(bert_run.outcome)


def forget(pretrained: str, output: Path) -> str:
    """A BERT with the shape and the tokens of another, and with random weights."""
    import torch

    from nlpkit.models.bert_model import BertModel

    bert = BertModel.load(pretrained)
    bert.model.initialize(torch.Generator().manual_seed(1))
    bert.save(output)
    return str(output)


class Source(NamedTuple):
    """What a task may start from: a name, and the flags that say so."""

    name: str
    tag: list[str]
    classify: list[str]


def transfer_sources(options: argparse.Namespace, folder: Path) -> Iterator[Source]:
    """Nothing, and the given models; without any, tiny ones of a sample text."""
    given = {name: getattr(options, name) for name in ("vectors", "elmo", "pretrained")}
    if not any(given.values()):
        small = ["--max-iters", "100", "--dim", "32", "--hidden", "128", "--batch-tokens", "512"]
        given = {
            "vectors": learn_from_tales(folder / "tales.model", "word2vec", "train"),
            "elmo": learn_from_tales(folder / "tiny.elmo", "elmo", "train", *small),
            "pretrained": make_bert(folder),
        }
    yield Source("nothing", [], [])
    if given["vectors"]:
        flags = ["--vectors", given["vectors"]]
        yield Source("word vectors", flags, ["--model", "cnn", *flags])
    if given["pretrained"]:
        given["random"] = forget(given["pretrained"], folder / "random.bert")
    names = {"random": "BERT, random weights", "elmo": "ELMo", "pretrained": "BERT"}
    for name, shown in names.items():
        if given.get(name):
            flags = ["--pretrained", given[name]]
            yield Source(shown, flags, flags)


def bench_transfer(options: argparse.Namespace, folder: Path) -> None:
    """The same tasks from nothing and from what was learned before, of few and of all examples."""
    sources = list(transfer_sources(options, folder))
    rows: list[list[Any]] = []

    def add(task: str, source: str, found: list[Any]) -> None:
        rows.append([task, source, *found])
        print(*rows[-1], sep="\t", file=sys.stderr, flush=True)  # a long run is followed

    sentences = read(options.train, LayoutChoice())
    random.Random(1).shuffle(sentences)
    held = read(options.test, LayoutChoice()) if options.test else sentences[-len(sentences) // 5 :]
    learned = sentences if options.test else sentences[: -len(sentences) // 5]
    test, part = folder / "test.tsv", folder / "part.tsv"
    write_columns(held, test)
    for share in (0.05,) if options.few else (0.05, 1.0):
        write_columns(learned[: max(20, round(share * len(learned)))], part)
        for source in sources:
            found = [
                tag(part, test, folder / "t.model", *source.tag, "--seed", str(s + 1))
                for s in range(options.seeds)
            ]
            add(f"tags, {share:.0%} of the sentences", source.name, summary(found))
    train, test = write_split(options.data, folder)
    texts = train.read_text(encoding="utf-8").splitlines(keepends=True)
    for share in (0.1,) if options.few else (0.1, 1.0):
        part.write_text("".join(texts[: round(share * len(texts))]), encoding="utf-8")
        for source in sources:
            found = mean_of_seeds(options.seeds, part, test, folder / "c.model", *source.classify)
            add(f"classes, {share:.0%} of the texts", source.name, found)
    columns = ["task", "from", "score", "range", "training CPU s"]
    print_table(f"Transfer, {options.seeds} seeds", columns, rows)


def tag(train: Path, test: Path, model: Path, *flags: str) -> tuple[float, float]:
    """Accuracy (F1 of entities) in percent and CPU seconds of training a tagger."""
    command = nlpkit_command("tag", "train", str(train), "-o", str(model), "--threads", "1")
    _, seconds = run([*command, "-q", "--force", *flags])
    report, _ = run(nlpkit_command("tag", "evaluate", str(model), str(test), "--json"))
    return quality(json.loads(report)), seconds


def bench_cold(options: argparse.Namespace, folder: Path) -> None:
    """A line's vector from nothing, beside what torch alone takes."""
    ours, _ = make_encoder(options, folder)
    command = nlpkit_command("bert", "embed", ours, "--threads", "1")
    cold = min(run(command, "The dog barks.\n")[1] for _ in range(5))
    torch_alone = min(run([sys.executable, "-c", "import torch"])[1] for _ in range(5))
    rows = [["nlpkit bert embed", cold, cold / torch_alone], ["import torch", torch_alone, 1.0]]
    print_table("Cold start", ["command", "CPU s", "ratio"], rows)


PARTS = {
    "classify": bench_classify,
    "speed": bench_speed,
    "pairs": bench_pairs,
    "bert": bench_bert,
    "transfer": bench_transfer,
    "cold": bench_cold,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=PARTS, nargs="*", default=list(PARTS))
    parser.add_argument("--data", default=str(SAMPLES / "reviews.tsv"))
    parser.add_argument("--pairs", default=str(SAMPLES / "follows.tsv"))
    parser.add_argument("--text", default=str(SAMPLES / "tales.txt"))
    parser.add_argument("--train", default=str(SAMPLES / "tagged-train.conllu"))
    parser.add_argument("--test", default=None)
    parser.add_argument("--encoder", default=None)
    parser.add_argument("--pretrained", default=None, help="the BERT of --only transfer")
    parser.add_argument("--elmo", default=None, help="the ELMo of --only transfer")
    parser.add_argument("--vectors", default=None, help="the word vectors of --only transfer")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--vocab-size", type=int, default=2000)
    parser.add_argument("--recipe", choices=["modern", "bert"], default="modern")
    parser.add_argument("--dtype", choices=["auto", "float32", "bfloat16"], default="auto")
    parser.add_argument("--dim", type=int, default=None, help="width of the BERT of --only bert")
    parser.add_argument("--heads", type=int, default=None, help="its heads")
    parser.add_argument("--save", default=None, help="where to write the BERT of --only bert")
    parser.add_argument("--few", action="store_true", help="--only transfer: not from all examples")
    parser.add_argument("--rounds", type=int, default=1, help="of --only speed")
    parser.add_argument("--steps", type=int, default=10, help="of training, of --only speed")
    parser.add_argument("--texts", type=int, default=400, help="to predict, of --only speed")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--peer-python", default=sys.executable)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # of every command that is run
    for part in options.only:
        with tempfile.TemporaryDirectory() as name:
            PARTS[part](options, Path(name))


if __name__ == "__main__":
    main()
