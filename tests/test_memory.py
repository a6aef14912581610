"""What is known of free memory, and models that are counted before they are made."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from nlpkit import memory
from nlpkit.errors import NlpkitError
from nlpkit.models.build import build_model
from nlpkit.models.settings import ModelSettings
from nlpkit.nn.encoder import make_encoder
from nlpkit.nn.encoder_config import EncoderConfig, EncoderKind

GB = 2**30


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A made-up machine with 8 GB free; its control groups are for the test to write."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text(f"MemTotal: 99 kB\nMemAvailable: {8 * 2**20} kB\n")
    monkeypatch.setattr(memory, "_PROC", tmp_path / "proc")
    monkeypatch.setattr(memory, "_CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "_free_address_space", lambda: None)
    return tmp_path


def write_group(folder: Path, **values: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in values.items():
        (folder / name.replace("__", ".")).write_text(f"{value}\n")


def test_without_limits_it_is_what_the_machine_has(machine: Path) -> None:
    assert memory.available_memory() == 8 * GB


def test_a_container_around_this_process_counts(machine: Path) -> None:
    (machine / "proc/self/cgroup").write_text("0::/outer/inner\n")
    write_group(machine / "cgroup/outer/inner", memory__max="max", memory__current=GB)
    write_group(machine / "cgroup/outer", memory__max=3 * GB, memory__current=2 * GB)
    assert memory.available_memory() == GB


def test_files_kept_in_memory_make_way(machine: Path) -> None:
    (machine / "proc/self/cgroup").write_text("0::/\n")
    stat = f"anon 5\ninactive_file {GB}\nactive_file 0"
    write_group(machine / "cgroup", memory__max=4 * GB, memory__current=3 * GB, memory__stat=stat)
    assert memory.available_memory() == 2 * GB


def test_the_first_version_of_control_groups(machine: Path) -> None:
    (machine / "proc/self/cgroup").write_text("7:cpu,memory:/docker/abc\n3:cpuset:/\n")
    group = machine / "cgroup/memory"
    write_group(group, memory__limit_in_bytes=2 * GB, memory__usage_in_bytes=GB)
    assert memory.available_memory() == GB


def test_a_limit_that_is_exceeded_leaves_nothing(machine: Path) -> None:
    (machine / "proc/self/cgroup").write_text("0::/\n")
    write_group(machine / "cgroup", memory__max=GB, memory__current=2 * GB)
    assert memory.available_memory() == 0
    with pytest.raises(NlpkitError, match=r"a cat needs 1.0 bytes .* 0.0 bytes is free .*a mouse"):
        memory.check_memory(1, "a cat", hint="a mouse")


def test_the_limit_of_the_process_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (2**40, 2**40))
    free = memory._free_address_space()
    assert free is not None
    assert 0 < free < 2**40
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (resource.RLIM_INFINITY, 0))
    assert memory._free_address_space() is None


def test_where_nothing_is_known_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    memory.check_memory(1e30, "a whale")


@pytest.mark.parametrize(
    "settings",
    [
        *(
            ModelSettings(model=model, dim=24, layers=3, heads=3, vocab_size=11, order=4)
            for model in ("ngram", "bigram", "mlp", "rnn", "gru", "lstm", "gpt")
        ),
        ModelSettings(previous=3, tied=True),
        ModelSettings.gpt2(dim=24, heads=3, layers=2, vocab_size=7, block_size=9),
    ],
)
def test_a_language_model_is_counted_without_being_made(settings: ModelSettings) -> None:
    assert settings.count_parameters() == build_model(settings).count_parameters()


@pytest.mark.parametrize("kind", ["lstm", "gru", "cnn", "transformer"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("layers", [1, 3])
def test_an_encoder_is_counted_without_being_made(
    kind: EncoderKind, causal: bool, layers: int
) -> None:
    settings = EncoderConfig(kind, 7, 20, layers, causal)
    count = sum(parameter.numel() for parameter in make_encoder(settings).parameters())
    assert settings.count_parameters() == count


def test_the_textbooks_transformer_is_counted_without_being_made() -> None:
    settings = EncoderConfig("transformer", 7, 20, 2, positions="sinusoidal", norm="post")
    count = sum(parameter.numel() for parameter in make_encoder(settings).parameters())
    assert settings.count_parameters() == count
