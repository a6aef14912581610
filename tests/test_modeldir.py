"""The model folder: written whole or not at all, and read with suspicion."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch

import nlpkit
from nlpkit import modeldir
from nlpkit.errors import NlpkitError
from nlpkit.modeldir import ModelConfig


def make(path: Path, *, force: bool = False, text: str = "the\t12\n", **settings: Any) -> Path:
    config = ModelConfig(kind="demo", settings=settings, seed=7)
    with modeldir.create(path, config, force=force) as folder:
        (folder / "vocab.tsv").write_text(text, encoding="utf-8")
    return path


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def fail_halfway(path: Path, *, force: bool = False) -> None:
    with modeldir.create(path, ModelConfig(kind="demo"), force=force) as folder:
        (folder / "vocab.tsv").write_text("half", encoding="utf-8")
        raise KeyboardInterrupt


def test_a_model_holds_what_was_put_in_and_how_it_was_made(tmp_path: Path) -> None:
    model = make(tmp_path / "m.model", dim=100, name="naïve")
    config = modeldir.load_config(model, kind="demo")
    assert config.settings == {"dim": 100, "name": "naïve"}
    assert config.seed == 7
    assert config.nlpkit_version == nlpkit.__version__
    assert config.format_version == modeldir.FORMAT_VERSION
    assert config.command[0] == "nlpkit"
    assert modeldir.describe_files(model) == [
        ("config.json", (model / "config.json").stat().st_size),
        ("vocab.tsv", 7),
    ]
    assert names(tmp_path) == ["m.model"]


def test_a_failure_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        fail_halfway(tmp_path / "m.model")
    assert names(tmp_path) == []


def test_a_failure_leaves_the_old_model_as_it_was(tmp_path: Path) -> None:
    model = make(tmp_path / "m.model")
    with pytest.raises(KeyboardInterrupt):
        fail_halfway(model, force=True)
    assert (model / "vocab.tsv").read_text(encoding="utf-8") == "the\t12\n"
    assert names(tmp_path) == ["m.model"]


def test_an_error_of_the_disk_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    with (
        mock.patch("os.fsync", side_effect=OSError(28, "No space left on device")),
        pytest.raises(NlpkitError, match=r"cannot write .*m\.model: No space left"),
    ):
        make(tmp_path / "m.model")
    assert names(tmp_path) == []


def test_settings_that_json_does_not_know_leave_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        make(tmp_path / "m.model", rate=float("nan"))
    assert names(tmp_path) == []


def test_an_existing_model_is_replaced_only_with_force(tmp_path: Path) -> None:
    model = make(tmp_path / "m.model", text="old")
    (model / "extra.txt").write_text("of the old model", encoding="utf-8")
    with pytest.raises(NlpkitError, match="exists already") as error:
        make(model)
    assert "`force`" in error.value.hint
    make(model, force=True, text="new")
    assert (model / "vocab.tsv").read_text(encoding="utf-8") == "new"
    assert names(model) == ["config.json", "vocab.tsv"]
    assert names(tmp_path) == ["m.model"]


@pytest.mark.parametrize("force", [False, True])
def test_what_is_not_a_model_is_never_replaced(tmp_path: Path, force: bool) -> None:
    folder, file = tmp_path / "photos", tmp_path / "letter"
    folder.mkdir()
    (folder / "cat.jpg").write_bytes(b"meow")
    file.write_text("dear", encoding="utf-8")
    for path in (folder, file):
        with pytest.raises(NlpkitError, match="is not a model"):
            make(path, force=force)
    assert names(folder) == ["cat.jpg"]
    assert file.read_text(encoding="utf-8") == "dear"


def test_a_place_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(NlpkitError, match="no such folder") as error:
        modeldir.check_new(tmp_path / "missing" / "m.model", force=False)
    assert "mkdir -p" in error.value.hint
    with (
        mock.patch("pathlib.Path.mkdir", side_effect=PermissionError(13, "Permission denied")),
        pytest.raises(NlpkitError, match="Permission denied"),
    ):
        modeldir.check_new(tmp_path / "m.model", force=False)


def test_a_model_of_another_kind_is_refused_by_name(tmp_path: Path) -> None:
    model = make(tmp_path / "m.model")
    with pytest.raises(NlpkitError, match="is a demo model, not a tagger model"):
        modeldir.load_config(model, kind="tagger")


def test_no_model_and_no_folder(tmp_path: Path) -> None:
    with pytest.raises(NlpkitError, match="no such model"):
        modeldir.load_config(tmp_path / "nowhere")
    with pytest.raises(NlpkitError, match=r"has no config\.json"):
        modeldir.load_config(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is damaged"),
        ('{"kind": "demo"', "is damaged"),
        ("[" * 100_000, "is damaged"),
        ("[]", "does not describe"),
        ("3", "does not describe"),
        ("{}", "does not describe"),
        ('{"kind": 3, "format_version": 1}', "does not describe"),
        ('{"kind": "demo"}', "format version None"),
        ('{"kind": "demo", "format_version": "1"}', "format version 1"),
        ('{"kind": "demo", "format_version": 1, "settings": [1]}', "settings"),
        ('{"kind": "demo", "format_version": 1, "metrics": 3}', "metrics"),
        ('{"kind": "demo", "format_version": 1, "command": "rm"}', "command"),
    ],
)
def test_a_damaged_config_is_an_error_of_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(NlpkitError, match=message) as error:
        modeldir.load_config(tmp_path)
    assert "\n" not in str(error.value)


def test_a_config_that_is_not_utf8_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(b'{"kind": "\xff"}')
    with pytest.raises(NlpkitError, match="is damaged"):
        modeldir.load_config(tmp_path)


def test_a_model_of_a_newer_format_asks_for_a_newer_nlpkit(tmp_path: Path) -> None:
    model = make(tmp_path / "m.model")
    raw = json.loads((model / "config.json").read_text(encoding="utf-8"))
    raw["format_version"] = modeldir.FORMAT_VERSION + 1
    (model / "config.json").write_text(json.dumps(raw), encoding="utf-8")
    with pytest.raises(NlpkitError, match="reads up to") as error:
        modeldir.load_config(model)
    assert error.value.hint == "a newer nlpkit"


def test_keys_that_a_later_version_may_add_are_passed_over(tmp_path: Path) -> None:
    raw = {"kind": "demo", "format_version": 1, "licence": "CC0"}
    (tmp_path / "config.json").write_text(json.dumps(raw), encoding="utf-8")
    assert modeldir.load_config(tmp_path).kind == "demo"


def test_the_training_curve_comes_back(tmp_path: Path) -> None:
    records = [{"step": 1, "loss": 2.5}, {"step": 2, "loss": 2.25}]
    modeldir.write_metrics(tmp_path, records)
    assert modeldir.read_metrics(tmp_path) == records
    assert modeldir.read_metrics(tmp_path / "nowhere") == []


@pytest.mark.parametrize("text", ['{"step": 1', "[1, 2]\n", "3\n", "[" * 100_000])
def test_a_damaged_curve_is_an_error_of_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "metrics.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(NlpkitError, match=r"metrics\.jsonl is damaged"):
        modeldir.read_metrics(tmp_path)


def test_weights_come_back(tmp_path: Path) -> None:
    weights = {"a": torch.arange(6.0).reshape(2, 3).T, "b": torch.ones(2, dtype=torch.int64)}
    modeldir.write_weights(tmp_path, weights)
    found = modeldir.read_weights(tmp_path)
    assert sorted(found) == ["a", "b"]
    assert torch.equal(found["a"], weights["a"])
    assert found["b"].dtype == torch.int64


@pytest.mark.parametrize("damage", ["empty", "cut", "size", "pickle", "text"])
def test_damaged_weights_are_an_error_of_one_line(tmp_path: Path, damage: str) -> None:
    modeldir.write_weights(tmp_path, {"a": torch.zeros(100)})
    file = tmp_path / modeldir.WEIGHTS
    whole = file.read_bytes()
    file.write_bytes(
        {
            "empty": b"",
            "cut": whole[:-40],
            "size": b"\xff" * 8 + whole[8:],
            "pickle": b"\x80\x04K\x01.",
            "text": b"not weights at all, not weights at all",
        }[damage]
    )
    with pytest.raises(NlpkitError, match=r"weights\.safetensors is damaged") as error:
        modeldir.read_weights(tmp_path)
    assert "\n" not in str(error.value)


def test_missing_weights_are_named(tmp_path: Path) -> None:
    with pytest.raises(NlpkitError, match=r"has no weights\.safetensors"):
        modeldir.read_weights(tmp_path)


def test_the_hash_of_data_does_not_depend_on_how_it_was_cut() -> None:
    assert modeldir.data_hash([b"to be"]) == modeldir.data_hash([b"to", b"", b" be"])
    assert modeldir.data_hash([b"to be"]) != modeldir.data_hash([b"to bee"])


def test_a_checkpoint_lies_beside_its_model() -> None:
    assert modeldir.checkpoint_path("out/m.model") == Path("out/m.model.checkpoint")
