"""``make chaos`` in little, and that it would see what it is there to see."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from chaos.kills import TRAINERS, Attack, Report, Target, table
from model_kinds import kinds
from warm import Warm

TRAINER = "names lstm"


def die_late(target: Target, changes: int) -> Report:
    """Death before every other of the last changes: the model written, the checkpoint deleted."""
    report = Report()
    for number in range(target.changes - changes + 1, target.changes + 1, 2):
        fault = replace(target.fault, die_before=number, no_exchange=number % 4 < 2)
        target.attack(Attack(fault, replaces=True), report)
    return report


@pytest.fixture(scope="module")
def target(warm: Warm, tmp_path_factory: pytest.TempPathFactory) -> Target:
    return Target(TRAINER, warm, tmp_path_factory.mktemp("chaos"))


def test_every_trainer_is_attacked() -> None:
    assert {kind.command for kind in TRAINERS.values()} == {kind.command for kind in kinds()}


def test_a_model_survives_its_trainer(target: Target) -> None:
    report = die_late(target, 24)
    assert not report.faults
    assert report.counts["old"] + report.counts["new"] == report.counts["deaths"] == 12
    assert report.counts["resumed"] == report.counts["identical"] > 0


def test_a_full_disk_is_one_line_and_nothing_is_lost(target: Target) -> None:
    report = Report()
    for fault in (
        replace(target.fault, fail_before=target.changes // 2),
        replace(target.fault, largest_file=target.largest // 2),
    ):
        target.attack(Attack(fault, replaces=True), report)
    assert not report.faults
    assert report.counts["old"] == report.counts["full disks"] == 2


def test_a_writer_that_is_not_atomic_is_caught(warm: Warm, tmp_path: Path) -> None:
    target = Target(TRAINER, warm, tmp_path, patch="chaos.careless:write_in_place")
    report = die_late(target, 18)
    assert report.counts["neither"] > 0
    assert any("neither the old model nor the new one" in fault for fault in report.faults)


def test_a_checkpoint_that_forgets_something_is_caught(warm: Warm, tmp_path: Path) -> None:
    target = Target(TRAINER, warm, tmp_path, patch="chaos.careless:forget_optimizers")
    report = Report()
    fault = replace(target.fault, die_before=target.changes // 2)
    target.attack(Attack(fault, replaces=False), report)
    assert len(report.faults) == report.counts["faults"] == 1


def test_the_table_has_a_line_for_each_trainer_and_one_for_all() -> None:
    first, second = Report(), Report()
    first.counts.update(deaths=3, old=2, new=1)
    second.counts.update(deaths=1, neither=1)
    lines = table({"one": first, "other": second}).splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["one", "3"], ["other", "1"], ["all", "4"]]
