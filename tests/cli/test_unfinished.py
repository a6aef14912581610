"""A checkpoint, and the path of a model that is not finished, are used as a model is."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from model_kinds import MODEL, Kind, kinds, write_data
from warm import Fault, Warm

import nlpkit
from nlpkit import modeldir
from nlpkit.errors import NlpkitError, NlpkitNote

STEPPED = [kind for kind in kinds() if kind.has_steps]
COMMANDS = dict.fromkeys(kind.command for kind in STEPPED)
FIRST = [next(kind for kind in STEPPED if kind.command == name) for name in COMMANDS]
CHECKPOINT = f"{MODEL}.checkpoint"


def interrupt(warm: Warm, folder: Path, *train: str, after: int = 3) -> None:
    """Leave a run where it is after so many steps."""
    stopped = warm.run(folder, *train, fault=Fault(signal=signal.SIGINT, after_steps=after))
    assert stopped.code == 130, stopped.err


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.command) for kind in FIRST])
def test_an_unfinished_model_is_used_and_says_how_far_it_is(
    kind: Kind, warm: Warm, tmp_path: Path
) -> None:
    write_data(tmp_path)
    interrupt(warm, tmp_path, *kind.train())
    arguments, text = kind.use(CHECKPOINT)
    found = warm.run(tmp_path, *arguments, input=text)
    if kind.command == "vectors":  # GloVe keeps both matrices and no words
        assert found.code == 1
        assert "with no vectors in it to use" in found.err
        return
    assert found.code == 0, found.err
    where = "in epoch 2 of 10" if kind.command == "word2vec" else "step 3 of "
    assert f"{CHECKPOINT} is an unfinished training: {where}" in found.err
    others = ("device ", "nats per character")  # what else a command may say
    said = [line for line in found.err.splitlines() if not any(one in line for one in others)]
    assert len(said) == 1
    arguments, text = kind.use(MODEL)
    again = warm.run(tmp_path, *arguments, "--quiet", input=text)
    assert (again.code, again.err) == (0, "")
    assert again.out.replace(CHECKPOINT, MODEL) == found.out.replace(CHECKPOINT, MODEL)


def test_the_weights_are_the_best_so_far_or_the_last(warm: Warm, tmp_path: Path) -> None:
    write_data(tmp_path)
    gpt = next(kind for kind in FIRST if kind.command == "gpt")
    interrupt(warm, tmp_path, *gpt.train(), after=39)
    with pytest.warns(NlpkitNote, match="step 39 of 40, best weights of step 38"):
        early = nlpkit.load(tmp_path / CHECKPOINT)
    state = modeldir.read_weights(tmp_path / CHECKPOINT)
    assert all(
        (value == state[f"best.{name}"]).all() for name, value in early.model.state_dict().items()
    )
    names = next(kind for kind in FIRST if kind.command == "names")
    interrupt(warm, tmp_path, *names.train("names.model"))
    with pytest.warns(NlpkitNote, match="step 3 of "):
        named = nlpkit.load(tmp_path / "names.model")
    state = modeldir.read_weights(tmp_path / "names.model.checkpoint")
    assert not any(name.startswith("best.") for name in state)
    assert all(
        (value == state[f"model.{name}"]).all() for name, value in named.model.state_dict().items()
    )


def test_a_run_that_goes_on_after_a_checkpoint_is_not_changed_by_it(
    warm: Warm, tmp_path: Path
) -> None:
    write_data(tmp_path)
    gpt = next(kind for kind in FIRST if kind.command == "gpt")
    saved = warm.run(tmp_path, *gpt.train("saved.model"), fault=Fault(save_always=True))
    assert saved.code == 0, saved.err
    warm.ok(tmp_path, *gpt.train("plain.model"))
    weights = [tmp_path / name / modeldir.WEIGHTS for name in ("saved.model", "plain.model")]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_info_shows_the_state_and_counts_the_model_in_it(warm: Warm, tmp_path: Path) -> None:
    write_data(tmp_path)
    gpt = next(kind for kind in FIRST if kind.command == "gpt")
    interrupt(warm, tmp_path, *gpt.train())
    record = json.loads(warm.ok(tmp_path, "info", MODEL, "--json"))
    assert record["kind"] == "checkpoint"
    assert record["metrics"] == {"progress": "step 3 of 40, best weights of step 2"}
    assert f"model/{modeldir.WEIGHTS}" in record["files"]
    assert all(layer["name"].startswith("model.") for layer in record["layers"])
    inner = json.loads(warm.ok(tmp_path, "info", f"{CHECKPOINT}/model", "--json"))
    assert inner["kind"] == "gpt"


def test_a_damaged_model_in_a_checkpoint_is_one_line(warm: Warm, tmp_path: Path) -> None:
    write_data(tmp_path)
    gpt = next(kind for kind in FIRST if kind.command == "gpt")
    interrupt(warm, tmp_path, *gpt.train())
    (tmp_path / CHECKPOINT / "model" / modeldir.WEIGHTS).write_bytes(b"cut")
    done = warm.run(tmp_path, "gpt", "sample", CHECKPOINT)
    assert done.code == 1
    assert "weights.safetensors is damaged" in done.err
    assert "Traceback" not in done.err
    warm.ok(tmp_path, *gpt.train(), "--resume")  # which needs the state alone


def test_a_checkpoint_without_a_model_says_what_to_do(tmp_path: Path) -> None:
    config = modeldir.ModelConfig(kind=modeldir.CHECKPOINT)
    with modeldir.create(tmp_path / "old.checkpoint", config):
        pass
    from nlpkit.tasks.lm.model import GptModel

    with pytest.raises(NlpkitError, match="no model in it to use"):
        modeldir.load_config(tmp_path / "old.checkpoint", kind=GptModel.kind)
