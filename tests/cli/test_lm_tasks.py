"""``gpt train --examples``, ``answer``, ``evaluate`` and ``inspect`` as they are used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from model_kinds import write_data
from warm import Warm

TRAIN = ["--dim", "32", "--layers", "2", "--heads", "2", "--block-size", "24", "--batch-size", "8"]


@pytest.fixture(scope="module")
def folder(warm: Warm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("examples")
    lines = [
        json.dumps({"prompt": f"Say {word}\nnow:", "completion": f" {word.upper()}"})
        for word in ("ab", "ba", "aa", "bb") for _ in range(6)
    ]  # fmt: skip
    (where / "examples.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (where / "text.txt").write_text("the cat sat on the mat.\n" * 40, encoding="utf-8")
    warm.ok(
        where, "gpt", "train", "--examples", "examples.jsonl", "-o", "qa.model", *TRAIN,
        "--max-iters", "150", "--lr", "0.01",
    )  # fmt: skip
    small = ["--dim", "16", "--layers", "1", "--block-size", "16", "--batch-size", "4"]
    warm.ok(
        where, "lm", "train", "text.txt", "-o", "lstm.model", "--model", "lstm", *small,
        "--max-iters", "20",
    )  # fmt: skip
    return where


def test_a_model_answers_what_it_has_learned_and_ends(warm: Warm, folder: Path) -> None:
    out = warm.ok(folder, "gpt", "evaluate", "qa.model", "examples.jsonl", "--json")
    scores = json.loads(out)
    assert scores["examples"] == 24
    assert scores["exact_match"] > 0.9
    prompt = json.dumps({"prompt": "Say ab\nnow:"})
    assert warm.ok(folder, "gpt", "answer", "qa.model", input=prompt + "\n") == "AB\n"
    (folder / "template.txt").write_text("Say {word}\nnow:", encoding="utf-8")
    record = json.dumps({"word": "bb"}) + "\n"
    told = warm.ok(
        folder, "gpt", "answer", "qa.model", "--template", "template.txt", "--json", input=record
    )
    assert json.loads(told)["answer"] == "BB"
    table = 'id,prompt\n7,"Say ab\nnow:"\n'
    ask = ("gpt", "answer", "qa.model")
    told = warm.ok(folder, *ask, "--input", "csv", "--json", input=table)
    assert json.loads(told) == {"id": "7", "prompt": "Say ab\nnow:", "answer": "AB"}
    assert len(warm.ok(folder, *ask, input="now\n\nSay\n").splitlines()) == 2
    told = warm.ok(folder, *ask, "--key", "asks", "--json", input='{"asks": "Say ab\\nnow:"}\n')
    assert json.loads(told)["answer"] == "AB"
    written = warm.ok(
        folder, "gpt", "sample", "qa.model", "--prompts", "-", "--temperature", "0", "--json",
        input=prompt + "\n",
    )  # fmt: skip
    assert json.loads(written)["finish"] == "stop"


def test_training_goes_on_from_a_model_with_layers_frozen(warm: Warm, folder: Path) -> None:
    warm.ok(
        folder, "gpt", "train", "--examples", "examples.jsonl", "-o", "more.model", "--init",
        "qa.model", "--freeze", "1", "--max-iters", "2",
    )  # fmt: skip
    done = warm.run(folder, "gpt", "train", "text.txt", "--examples", "x", "-o", "no.model")
    assert done.code == 2


@pytest.mark.parametrize("show", ["gates", "steps"])
def test_a_recurrent_model_is_looked_into(warm: Warm, folder: Path, show: str) -> None:
    out = warm.ok(folder, "lm", "inspect", "lstm.model", "the cat", "--show", show)
    rows = [json.loads(line) for line in out.splitlines()]
    if show == "steps":
        assert "".join(row["token"] for row in rows) == "the cat"
        assert len(rows[0]["expected"]) == 5
    else:
        assert {row["gate"] for row in rows} == {"input", "forget", "output", "cell", "state"}
        cell = warm.ok(
            folder, "lm", "inspect", "lstm.model", "the cat", "--show", "gates", "--cell", "2"
        )
        assert len(cell.splitlines()) == 7


def test_neurons_are_looked_for_in_a_page_of_text(warm: Warm, folder: Path) -> None:
    text = (folder / "text.txt").read_text(encoding="utf-8")
    out = warm.ok(folder, "lm", "inspect", "lstm.model", "-", "--find-neurons", input=text)
    rows = [json.loads(line) for line in out.splitlines()]
    assert {"line", "word"} <= {row["feature"] for row in rows}
    assert abs(rows[0]["correlation"]) > 0.5


@pytest.mark.parametrize("name", ["heads.html", "heads.svg"])
def test_attention_is_drawn_and_heads_are_sorted(warm: Warm, folder: Path, name: str) -> None:
    out = warm.ok(
        folder, "lm", "inspect", "qa.model", "Say ab", "--show", "attention", "--plot", name
    )
    rows = [json.loads(line) for line in out.splitlines()]
    assert len(rows) == 4
    assert all(
        row[row["looks_at"]] == max(row["previous"], row["same"], row["start"]) for row in rows
    )
    assert "<svg" in (folder / name).read_text(encoding="utf-8")


def test_positions_and_metrics_are_drawn(warm: Warm, folder: Path) -> None:
    warm.ok(folder, "lm", "inspect", "qa.model", "--show", "positions", "--plot", "positions.png")
    warm.ok(folder, "info", "lstm.model", "--plot", "curves.svg")
    assert (folder / "positions.png").stat().st_size > 1000
    assert "<svg" in (folder / "curves.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lm", "inspect", "qa.model", "Say ab", "--show", "gates"], "has no gates"),
        (["lm", "inspect", "lstm.model", "the", "--show", "attention"], "no attention"),
        (["lm", "inspect", "lstm.model", "the", "--show", "gates", "--cell", "99"], "has 16"),
        (["lm", "inspect", "lstm.model", "", "--show", "steps"], "nothing to read"),
    ],
)
def test_what_a_model_has_not_is_said_in_one_line(
    warm: Warm, folder: Path, arguments: list[str], message: str
) -> None:
    done = warm.run(folder, *arguments)
    assert done.code == 1, done.err
    assert message in done.err
    assert "Traceback" not in done.err


@pytest.fixture(scope="module")
def labelled(warm: Warm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small models of names, tags and labels."""
    where = tmp_path_factory.mktemp("labelled")
    write_data(where)
    few = ["--hidden", "8", "--epochs", "2"]
    warm.ok(where, "tag", "train", "tagged.txt", "-o", "t.model", "--encoder", "transformer", *few)
    warm.ok(
        where, "classify", "train", "texts.tsv", "-o", "c.model", "--model", "transformer", *few
    )
    warm.ok(
        where, "names", "train", "names.tsv", "-o", "n.model", "--model", "gru", "--epochs", "2"
    )
    return where


@pytest.mark.parametrize(("command", "model"), [("tag", "t.model"), ("classify", "c.model")])
def test_attention_of_encoders_adds_up_to_one(
    warm: Warm, labelled: Path, command: str, model: str
) -> None:
    out = warm.ok(labelled, command, "inspect", model, "the old dog sleeps", "--plot", "a.html")
    rows = [json.loads(line) for line in out.splitlines()]
    assert rows
    for row in rows:
        assert len(row["tokens"]) == len(row["weights"]) == 4
        assert sum(row["weights"][2]) == pytest.approx(1, abs=1e-3)
    assert "<svg" in (labelled / "a.html").read_text(encoding="utf-8")
    refused = warm.run(labelled, command, "inspect", model, "a dog", "--layer", "99")
    assert refused.code == 1
    assert "layers" in refused.err


@pytest.fixture(scope="module")
def recurrent(warm: Warm, labelled: Path) -> Path:
    """A tagger and a classifier that read both ways, beside the other models."""
    few = ["--hidden", "6", "--epochs", "2"]
    warm.ok(labelled, "tag", "train", "tagged.txt", "-o", "lstm.model", "--encoder", "lstm", *few)
    warm.ok(labelled, "classify", "train", "texts.tsv", "-o", "gru.model", "--model", "gru", *few)
    return labelled


@pytest.mark.parametrize(
    ("command", "model", "names"),
    [
        ("tag", "lstm.model", ["input", "forget", "output", "cell", "state"]),
        ("classify", "gru.model", ["reset", "update", "state"]),
    ],
)
def test_gates_of_encoders_over_a_text(
    warm: Warm, recurrent: Path, command: str, model: str, names: list[str]
) -> None:
    ask = (command, "inspect", model)
    rows = [json.loads(line) for line in warm.ok(recurrent, *ask, "the old dog").splitlines()]
    assert [row["gate"] for row in rows if row["layer"] == 1] == names
    out = warm.ok(recurrent, *ask, "the old dog\na cat", "--cell", "12", "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert [row["token"].strip() for row in found] == ["the", "old", "dog", "a", "cat"]
    assert all(list(row)[1:] == names for row in found)
    warm.ok(recurrent, *ask, "the old dog", "--show", "gates", "--plot", "gates.svg")
    assert "<svg" in (recurrent / "gates.svg").read_text(encoding="utf-8")
    text = 'The dog ( an old one ) said 12 " Words here " to us .\n' * 20
    out = warm.ok(recurrent, *ask, "-", "--find-neurons", "--format", "csv", "--header", input=text)
    header, *lines = out.splitlines()
    assert header == "feature,layer,unit,correlation,chosen_by"
    assert {line.split(",")[0] for line in lines} & {"brackets", "quotes", "capital", "digit"}
    assert all(1 <= int(line.split(",")[2]) <= 12 for line in lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tag", "inspect", "t.model", "a dog", "--show", "gates"], "no gates"),
        (["tag", "inspect", "lstm.model", "a dog", "--show", "attention"], "no attention"),
        (["tag", "inspect", "lstm.model", "a dog", "--cell", "13"], "has 12"),
        (["tag", "inspect", "lstm.model", " "], "nothing to read"),
        (["tag", "inspect", "lstm.model", "a dog", "--find-neurons"], "too few"),
        (["classify", "inspect", "c.model", "a dog", "--find-neurons"], "no gates"),
    ],
)
def test_what_an_encoder_has_not_is_one_line(
    warm: Warm, recurrent: Path, arguments: list[str], message: str
) -> None:
    done = warm.run(recurrent, *arguments)
    assert done.code == 1
    assert message in done.err
    assert done.err.count("\n") == 1


def test_what_is_inside_comes_as_rows(warm: Warm, recurrent: Path) -> None:
    read = ("tag", "inspect", "t.model", "a dog", "--layer", "1", "--head", "1")
    table = warm.ok(recurrent, *read, "--format", "table").splitlines()
    assert table[0].split() == ["layer", "head", "token", "looks_at", "weight"]
    assert len(table) == 2 + 4
    steps = warm.ok(recurrent, "names", "inspect", "n.model", "Anna", "-f", "markdown", "-n", "2")
    assert steps.splitlines()[0] == "| token | probability | expected |"
    assert len(steps.splitlines()) == 2 + 5
    gates = ("names", "inspect", "n.model", "Anna", "--show", "gates", "--cell", "1")
    lines = warm.ok(recurrent, *gates, "-f", "tsv").splitlines()
    assert [line.split("\t")[0] for line in lines] == [*"Anna", "↵"]


def test_checks_and_facts_come_as_rows(warm: Warm, labelled: Path) -> None:
    check = ("tag", "check", "tagged.txt", "tagged.txt")
    lines = warm.ok(labelled, *check, "--format", "markdown").splitlines()
    assert lines[:3] == ["tagged.txt", "", "| measure | value | note |"]
    assert "tagged.txt against tagged.txt" in lines
    facts = warm.ok(labelled, *check).splitlines()
    assert facts[1].startswith("sentences\t")
    records = [json.loads(line) for line in warm.ok(labelled, *check, "--json").splitlines()]
    assert [record.get("sentences") for record in records][:2] == [int(facts[1].split("\t")[1])] * 2
    out = warm.ok(labelled, "info", "n.model", "--format", "tsv")
    rows = dict(line.split("\t")[:2] for line in out.splitlines() if line)
    assert (rows["kind"], rows["layer"]) == ("names", "shape")
    beside = warm.ok(labelled, "info", "n.model", "t.model", "--format", "csv").splitlines()
    assert beside[:2] == ["setting,n.model,t.model", "kind,names,tagger"]
    refused = warm.run(labelled, "info", "n.model", "--verify", "--format", "csv")
    assert refused.code == 2


def test_letters_of_a_name_are_looked_at(warm: Warm, labelled: Path) -> None:
    out = warm.ok(labelled, "names", "inspect", "n.model", "Anna", "--label", "f")
    assert [json.loads(line)["token"] for line in out.splitlines()] == [*"Anna", "\n"]
    gates = warm.ok(labelled, "names", "inspect", "n.model", "Anna", "--show", "gates")
    assert "update" in gates


def test_a_word_that_decides_has_the_most_influence_on_its_own_tag(
    warm: Warm, labelled: Path
) -> None:
    warm.ok(
        labelled, "tag", "train", "tagged.txt", "-o", "pos.model", "--hidden", "8", "--epochs",
        "12", "--lr", "0.01",
    )  # fmt: skip
    sentence = "the old dog sleeps .\n"
    out = warm.ok(labelled, "tag", "explain", "pos.model", "--json", input=sentence)
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["word"] for row in rows] == sentence.split()
    own = [row["influence"][row["place"] - 1]["influence"] for row in rows]
    others = [
        abs(part["influence"])
        for row in rows
        for place, part in enumerate(row["influence"], 1)
        if place != row["place"]
    ]
    assert sum(own) / len(own) > sum(others) / len(others)
    one = warm.ok(labelled, "tag", "explain", "pos.model", "--word", "3", input=sentence)
    assert one.startswith("1\t3\tdog\t")
    named = ("tag", "explain", "pos.model", "--word", "3", "--header", "-f", "csv")
    header, *found = warm.ok(labelled, *named, input=sentence).splitlines()
    assert header == "line,place,word,tag,probability,hidden,influence"
    assert [line.split(",")[5] for line in found] == sentence.split()
    refused = warm.run(labelled, "tag", "explain", "pos.model", "--word", "9", input=sentence)
    assert refused.code == 1
