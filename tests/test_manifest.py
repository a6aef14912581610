"""The manifest: a model that was cut, edited or mixed up is told from a whole one."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from nlpkit import manifest, modeldir
from nlpkit.errors import NlpkitError
from nlpkit.manifest import Damage
from nlpkit.verify import verify


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m"
    with modeldir.create(path, modeldir.ModelConfig(kind="demo")) as folder:
        (folder / "small.txt").write_bytes(b"the\t12\n")
        (folder / "large.bin").write_bytes(b"x" * (manifest.SMALL + 1))
        np.save(folder / "vectors.npy", np.ones((2, 3), np.float32))
    return path


def test_every_file_is_in_it_with_size_and_hash(model: Path) -> None:
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    assert sorted(config["manifest"]) == ["large.bin", "small.txt", "vectors.npy"]
    assert config["manifest"]["small.txt"] == {
        "size": 7,
        "sha256": hashlib.sha256(b"the\t12\n").hexdigest(),
    }
    assert verify(model).damage is None


@pytest.mark.parametrize(
    ("file", "data", "message"),
    [
        ("small.txt", b"the\t1", r"small\.txt is damaged: it has 5 bytes, and once had 7"),
        ("small.txt", b"the\t13\n", r"small\.txt is damaged: its SHA-256 is not"),
        ("small.txt", None, r"m has no small\.txt"),
        ("large.bin", b"x", r"large\.bin is damaged: it has 1 bytes"),
        ("large.bin", None, r"m has no large\.bin"),
    ],
)
def test_a_changed_file_is_named_when_a_model_is_loaded(
    model: Path, file: str, data: bytes | None, message: str
) -> None:
    (model / file).unlink()
    if data is not None:
        (model / file).write_bytes(data)
    with pytest.raises(NlpkitError, match=message) as error:
        modeldir.load_config(model)
    assert "copy the model again" in error.value.hint
    found = verify(model).damage
    assert found is not None
    assert found.file == file
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    del config["manifest"]  # as the hint has it
    (model / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert modeldir.load_config(model).manifest is None


def test_a_large_file_is_hashed_only_when_asked(model: Path) -> None:
    data = bytearray((model / "large.bin").read_bytes())
    data[-1] ^= 1
    (model / "large.bin").write_bytes(data)
    modeldir.load_config(model)
    assert verify(model).damage == Damage("large.bin", "its SHA-256 is not the one in config.json")


def test_config_json_may_be_edited_by_hand(model: Path) -> None:
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    config["seed"] = 5
    (model / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert modeldir.load_config(model).seed == 5
    assert verify(model).damage is None


def test_files_that_were_added_do_no_harm_and_are_reported(model: Path) -> None:
    (model / "README").write_text("from a friend", encoding="utf-8")
    (model / "more").mkdir()
    os.symlink("nowhere", model / ".#lock")
    modeldir.load_config(model)
    assert verify(model).unlisted == ["README"]


@pytest.mark.parametrize("listed", [True, False])
def test_what_is_no_plain_file_is_never_opened(model: Path, listed: bool) -> None:
    name = "small.txt" if listed else "tokenizer.json"
    (model / name).unlink(missing_ok=True)
    os.mkfifo(model / name)
    with pytest.raises(NlpkitError, match="is no plain file"):
        modeldir.load_config(model)


@pytest.mark.parametrize("name", ["../../x", "/dev/zero", "a\0b", "a\nb", ""])
def test_names_in_a_manifest_are_not_paths(model: Path, name: str) -> None:
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    config["manifest"][name] = {"size": 0, "sha256": ""}
    (model / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with mock.patch("builtins.open", side_effect=AssertionError), pytest.raises(NlpkitError) as e:
        manifest.check(model, modeldir.load_config(model, check_files=False).manifest)
    assert "has no" in str(e.value)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize(
    "value",
    [[], 3, {"small.txt": 7}, {"small.txt": {"size": -1, "sha256": ""}}, {"s": {"size": 1}}],
)
def test_a_manifest_that_is_none_is_an_error_of_one_line(model: Path, value: object) -> None:
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    config["manifest"] = value
    (model / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(NlpkitError, match=r"config\.json: manifest"):
        modeldir.load_config(model)


def test_a_file_that_is_linked_from_the_folder_before_is_not_hashed_again(model: Path) -> None:
    def replace_model() -> list[str]:
        hashed: list[str] = []

        def counted(file: Path) -> str:
            hashed.append(file.name)
            return sha256(file)

        sha256 = manifest.sha256
        with (
            mock.patch.object(manifest, "sha256", counted),
            modeldir.create(model, modeldir.ModelConfig(kind="demo"), force=True) as folder,
        ):
            os.link(model / "large.bin", folder / "large.bin")
            (folder / "small.txt").write_bytes(b"new")
        return hashed

    assert "large.bin" not in replace_model()
    assert verify(model).damage is None
    (model / "config.json").write_text(
        '{"kind": "demo", "format_version": 1}', encoding="utf-8"
    )  # of 0.1.0: nothing to rely on
    assert "large.bin" in replace_model()
    assert verify(model).damage is None


def test_numbers_that_are_none_are_found_by_verify(model: Path) -> None:
    np.load(model / "vectors.npy", mmap_mode="r+")[1, 1] = np.nan
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    config["manifest"]["vectors.npy"]["sha256"] = manifest.sha256(model / "vectors.npy")
    (model / "config.json").write_text(json.dumps(config), encoding="utf-8")
    modeldir.load_config(model)
    assert verify(model).damage == Damage("vectors.npy", "it holds NaN or infinity")


def test_without_a_manifest_there_is_nothing_to_verify(tmp_path: Path) -> None:
    text = '{"kind": "demo", "format_version": 1}'
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(NlpkitError, match="has no manifest"):
        verify(tmp_path)
