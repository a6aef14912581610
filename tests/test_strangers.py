"""Models from strangers: whatever is in their files, they are used or refused in one line."""

from __future__ import annotations

import copy
import json
import random
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from model_files import without_manifest
from small_models import (
    ENCODERS,
    KINDS,
    classifier_run,
    make_classifier,
    make_gpt,
    make_names,
    make_vectors,
    tagger_run,
    use_names,
    use_vectors,
    word_vectors,
)

from nlpkit.errors import NlpkitError
from nlpkit.tasks.classify.predictor import tensor_shapes as classifier_shapes
from nlpkit.tasks.lm.model import GptModel
from nlpkit.tasks.names.model import NamesModel
from nlpkit.tasks.tag.weights import tensor_shapes as tagger_shapes
from nlpkit.text.codec import Bytes

VALUES: list[Any] = [
    *(None, True, -1, 0, 1, 2, 1.5, 1e308, 10**9, 2**62, 10**400, float("nan"), float("inf")),
    *("", "x", "a\nb", "\ud800", [], ["a"], [1], [[[]]], {}, {"a": 1}),
]
MISSING = object()
MUTATIONS = 40  # for each kind of model


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every kind of model; made without a manifest, so that files are looked at themselves."""
    folder = tmp_path_factory.mktemp("models")
    torch.set_num_threads(1)
    for kind, (make, _) in KINDS.items():
        make(folder / kind)
        without_manifest(folder / kind)
    return folder


def edit(file: Path, change: Callable[[Any], Any]) -> None:
    value = json.loads(file.read_text(encoding="utf-8"))
    changed = change(value)
    file.write_text(json.dumps(value if changed is None else changed), encoding="utf-8")


def set_at(keys: str, new: Any) -> Callable[[Any], None]:
    def change(value: Any) -> None:
        *path, last = keys.split(".")
        for key in path:
            value = value[key]
        value[last] = new

    return change


# --- any damage ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_of_every_kind_loads_with_and_without_a_manifest(
    kind: str, tmp_path: Path, models: Path
) -> None:
    make, use = KINDS[kind]
    make(tmp_path / "m")
    use(tmp_path / "m")
    use(models / kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_model_is_used_or_refused_in_one_line(
    kind: str, tmp_path: Path, models: Path
) -> None:
    generator = random.Random(kind)
    use = KINDS[kind][1]
    refused: list[str] = []
    for _ in range(MUTATIONS):
        model = tmp_path / "m"
        shutil.rmtree(model, ignore_errors=True)
        shutil.copytree(models / kind, model)
        done = damage(model, models, generator)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # of numbers out of all proportion
                use(model)
        except NlpkitError as error:
            refused.append(f"{error} <- {done}")
        except BaseException as error:
            raise AssertionError(f"{kind}: {done}") from error
    assert len(refused) > MUTATIONS / 4
    assert [line for line in refused if "\n" in line] == []


def damage(model: Path, models: Path, generator: random.Random) -> str:
    chance = generator.random()
    files = sorted(model.iterdir())
    if chance < 0.6:
        documents = [file for file in files if file.suffix == ".json"]
        file = generator.choice(documents)
        value = json.loads(file.read_text(encoding="utf-8"))
        place = generator.choice(list(places(value)))
        new = generator.choice([*VALUES, MISSING])
        file.write_text(json.dumps(changed(value, place, new)), encoding="utf-8")
        return f"{file.name}: {place} = {new!r}"
    file = generator.choice(files)
    if chance < 0.7:  # from another model
        other = generator.choice([kind for kind in KINDS if kind != model.name])
        taken = generator.choice(sorted((models / other).iterdir()))
        shutil.copy(taken, model / taken.name)
        return f"{taken.name} of {other}"
    how = generator.choice(["flip", "flip", "header", "cut", "extend", "empty", "delete"])
    data = bytearray(file.read_bytes())
    if how == "delete":
        file.unlink()
    else:
        if how in ("flip", "header") and data:
            place = generator.randrange(min(len(data), 150) if how == "header" else len(data))
            data[place] = generator.choice([data[place] ^ 1, *b"09,'{}\n\xff"])
        elif how == "cut":
            del data[generator.randrange(len(data) + 1) :]
        elif how == "extend":
            data += b"\n\xff1\t"
        elif how == "empty":
            data.clear()
        file.write_bytes(data)
    return f"{how} {file.name}"


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict | list):
        keys = list(value) if isinstance(value, dict) else range(min(len(value), 3))
        for key in keys:
            yield from places(value[key], (*path, key))


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return {} if new is MISSING else new
    whole = inner = copy.deepcopy(value)
    for key in path[:-1]:
        inner = inner[key]
    if new is MISSING:
        del inner[path[-1]]
    else:
        inner[path[-1]] = new
    return whole


# --- what each error says -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "file", "keys", "value", "message"),
    [
        ("names gpt", "config.json", "settings.architecture", 7, "architecture is 7, not an obj"),
        ("names gru", "config.json", "settings.architecture.model", "gpt9", 'is "gpt9", not ngram'),
        ("names mlp", "config.json", "settings.architecture.heads", 0, "heads is 0, not a whole n"),
        ("names gpt", "config.json", "settings.architecture.heads", 3, "does not divide"),
        ("names gpt", "config.json", "settings.architecture.block_size", 10**9, "out of proport"),
        ("names lstm", "config.json", "settings.architecture.dim", 10**9, "from 1 to 1048576"),
        (
            "names lstm",
            "config.json",
            "settings.architecture.dim",
            2**20,
            "float32 .2, 1, 1, 16., not",
        ),
        ("names rnn", "config.json", "settings.architecture.layers", 999, "too few tensors for la"),
        ("names ngram", "config.json", "settings.architecture.order", 9, "too few tensors|too ma"),
        ("names gpt", "config.json", "settings.architecture.starts", 4, "starts is 4, not the 1"),
        ("names gpt", "config.json", "settings.lr", "fast", 'settings.lr is "fast", not a number'),
        ("names gpt", "config.json", "command", [1], r"command\[0\] is 1, not text"),
        ("names gpt", "config.json", "seed", 0.5, "seed is 0.5, not a whole number"),
        ("names gpt", "alphabet.json", "labels", [3], r"labels\[0\] is 3, not text"),
        ("names gpt", "alphabet.json", "characters", "abb", "one twice"),
        ("gpt byte", "config.json", "settings.architecture.model", "mlp", 'is "mlp", not gpt'),
        ("gpt byte", "config.json", "settings.architecture.width", 3, "width is not known here"),
        ("tagger lstm", "config.json", "settings.crf", "maybe", "not auto, yes or no"),
        ("tagger cnn", "config.json", "settings.layers", 3, "tensor encoder.convolutions.1"),
        ("tagger gru", "config.json", "settings.encoder", "lstm", "float32 .12, 128., not float32"),
        ("tagger gru", "layout.json", "layout.columns", "two", 'layout.columns is "two", not a wh'),
        ("tagger gru", "layout.json", "layout", [], "layout is .., not an object"),
        ("tagger gru", "layout.json", "scheme", "BILOU", "not IOB1, IOB2 or BIOES or null"),
        ("classifier bow", "config.json", "settings.ngrams", -1, "ngrams is -1, not a whole numb"),
        ("classifier bow", "config.json", "settings.ngrams", 10**9, "from 1 to 5"),
        ("classifier gru", "config.json", "settings.lower", "no", "not true or false"),
        ("classifier gru", "config.json", "settings.dim", 5, "embedding.weight is float32 .*, 4."),
        ("word2vec ns", "config.json", "settings.dim", 9, "dim is 9, not the 8 of vectors.npy"),
        ("word2vec hs", "config.json", "settings.loss", "l2", 'loss is "l2", not ns, hs or soft'),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(
    kind: str, file: str, keys: str, value: Any, message: str, tmp_path: Path, models: Path
) -> None:
    model = shutil.copytree(models / kind, tmp_path / "m")
    edit(model / file, set_at(keys, value))
    with pytest.raises(NlpkitError, match=message) as error:
        KINDS[kind][1](model)
    assert str(model) in str(error.value)


def test_no_byte_of_an_array_header_can_be_changed(tmp_path: Path) -> None:
    make_vectors(tmp_path / "m")
    file = without_manifest(tmp_path / "m") / "vectors.npy"
    good = file.read_bytes()
    for place in range(128):
        file.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        with pytest.raises(NlpkitError, match=r"vectors\.npy is damaged"):
            use_vectors(tmp_path / "m")
    file.write_bytes(good)
    use_vectors(tmp_path / "m")


def test_the_shape_of_an_array_is_checked_against_the_file(tmp_path: Path) -> None:
    make_vectors(tmp_path / "m")
    file = without_manifest(tmp_path / "m") / "vectors.npy"
    data = file.read_bytes()
    for lie in (b"(4, 7)", b"(9, 6)"):
        file.write_bytes(data.replace(b"(4, 6)", lie))
        with pytest.raises(NlpkitError, match="224 bytes do not hold float32 of shape"):
            use_vectors(tmp_path / "m")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_no_numbers_are_refused_by_name(value: float, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    make_names(tmp_path / "names", "gru")
    make_classifier(tmp_path / "classifier", "bow")
    loaders = {"names": ("cells.bias_hh_l0", use_names), "classifier": ("output.bias", None)}
    for kind, (name, use) in loaders.items():
        model = without_manifest(tmp_path / kind)
        tensors = load_file(model / "weights.safetensors")
        tensors[name][1] = value
        save_file(tensors, model / "weights.safetensors")
        with pytest.raises(NlpkitError, match=f"tensor {name} holds NaN or infinity"):
            (use or KINDS["classifier bow"][1])(model)
    make_vectors(tmp_path / "vectors")
    file = without_manifest(tmp_path / "vectors") / "vectors.npy"
    np.load(file, mmap_mode="r+")[2, 3] = value
    with pytest.raises(NlpkitError, match=r"vectors\.npy holds NaN or infinity"):
        use_vectors(tmp_path / "vectors")


# --- shapes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"layers": 2, "causal": True},
        {"chars": "lstm", "fine_tune": True},
        {"chars": "none", "linear_features": "no", "crf": "no", "affixes": "yes", "hidden": 40},
    ],
)
def test_the_shapes_of_a_tagger_are_those_of_its_torch_module(
    encoder: str, settings: dict[str, Any]
) -> None:
    vectors = word_vectors() if settings.get("fine_tune") else None
    run = tagger_run(vectors, encoder=encoder, **settings)
    vector_dim = 0 if vectors is None else vectors.dim
    expected = tagger_shapes(run.settings, run.extractor, len(run.tags), vector_dim)
    found = {name: tuple(tensor.shape) for name, tensor in run.model.weights().items()}
    assert found.keys() == expected.keys()
    for name, shape in expected.items():
        sizes = zip(shape, found[name], strict=True)
        assert all(isinstance(size, str) or size == number for size, number in sizes), name


@pytest.mark.parametrize("model", ENCODERS)
def test_the_shapes_of_a_classifier_are_those_of_its_torch_module(model: str) -> None:
    run = classifier_run(model, word_vectors())
    expected = classifier_shapes(run.settings, run.labels, run.classifier().words, 6)
    assert expected == {name: tuple(t.shape) for name, t in run.model.state_dict().items()}


def test_loading_does_not_load_the_half_of_torch_that_compiles(tmp_path: Path) -> None:
    make_names(tmp_path / "m", "gru")
    code = (
        "import sys; from nlpkit.tasks.names.model import NamesModel\n"
        f"NamesModel.load({str(tmp_path / 'm')!r})\n"
        "print('sympy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


def test_a_long_context_asks_for_no_memory_that_the_weights_do_not_justify(tmp_path: Path) -> None:
    make_gpt(tmp_path / "m", Bytes())
    config = without_manifest(tmp_path / "m") / "config.json"
    edit(config, set_at("settings.architecture.block_size", 10**9))
    with pytest.raises(NlpkitError, match="block_size 1000000000 is out of proportion"):
        GptModel.load(tmp_path / "m")
    edit(config, set_at("settings.architecture.block_size", 4096))
    assert GptModel.load(tmp_path / "m").model.settings.block_size == 4096


def test_bigrams_can_be_loaded(tmp_path: Path) -> None:
    make_names(tmp_path / "m", "bigram")
    assert NamesModel.load(tmp_path / "m").longest == 15
