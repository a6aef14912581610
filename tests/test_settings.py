"""Options that are declared once: flags, older names, ranges, what is decided later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
import typer
from typer.testing import CliRunner

from nlpkit.cli.flags import flag_of
from nlpkit.cli.frame import new_app
from nlpkit.errors import NlpkitError
from nlpkit.settings import changed, check, option, options, parse_duration, ranges
from nlpkit.training.settings import TrainerSettings, batch_size, epochs


@dataclass(frozen=True)
class Small(TrainerSettings):
    """Settings of a trainer."""

    lr: float | None = changed(TrainerSettings, "lr", 0.5)
    kind: Literal["cat", "dog"] = option("cat", "What learns.", hidden_flags=("--sort-of",))
    layers: int | None = option(None, "Depth.", low=1, high=9, shown_default="2 or 3")
    both: bool = option(True, "Look both ways.", flags=("--both/--one-way",))
    epochs: int | None = epochs()
    batch_size: int = batch_size(8)

    def resolve(self) -> ResolvedSmall:
        return self.resolve_as(ResolvedSmall, layers=2, epochs=3)


@dataclass(frozen=True, kw_only=True)
class ResolvedSmall(Small):
    """Settings that are decided."""

    layers: int
    epochs: int


@dataclass(frozen=True)
class Other:
    """Settings of which a command takes one."""

    window: int = option(2, "Words to each side.", low=1, high=9)


@dataclass(frozen=True)
class Together:
    """Flags that stand together, annotated as parameters of a command are."""

    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to read.")] = "-"
    loud: Annotated[bool, typer.Option("--loud", help="Say it.")] = False
    given: int = 3  # no flag: Python alone sets it


app = new_app()
together = new_app()
seen: list[Any] = []


@together.command(defaults={"window": 5})
def use(*, bundle: Together, other: Other) -> None:
    """Read."""
    seen[:] = [bundle, other]


@app.command(defaults={"layers": 5})
def train(
    settings: Small,
    window: flag_of(Other, "window") = 4,  # type: ignore[valid-type]
) -> None:
    """Learn."""
    seen[:] = [settings, window]


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def test_flags_become_settings_and_defaults_stay_where_they_live() -> None:
    assert run("--kind", "dog", "--lr", "0.25", "--one-way", "--window", "2").exit_code == 0
    assert seen == [Small(kind="dog", lr=0.25, both=False, layers=5), 2]
    assert run().exit_code == 0
    assert seen == [Small(layers=5), 4]


def test_flags_that_stand_together_are_one_parameter() -> None:
    assert CliRunner().invoke(together, ["some.txt", "--loud"]).exit_code == 0
    assert seen == [Together("some.txt", loud=True), Other(window=5)]
    assert CliRunner().invoke(together, []).exit_code == 0
    assert seen == [Together(), Other(window=5)]
    assert CliRunner().invoke(together, ["--given", "4"]).exit_code == 2


def test_an_older_name_is_taken_and_not_shown() -> None:
    assert run("--sort-of", "dog").exit_code == 0
    assert seen[0].kind == "dog"
    page = run("--help").stdout
    assert "--kind" in page
    assert "--sort-of" not in page


def test_what_an_engine_refuses_to_parse_is_wrong_usage() -> None:
    result = run("--max-time", "soon")
    assert result.exit_code == 2
    assert "'soon' is no time" in result.output
    assert run("--max-time", "1.5m").exit_code == 0
    assert seen[0].max_time == 90


@pytest.mark.parametrize("arguments", [["--layers", "0"], ["--kind", "cow"], ["--lr", "11"]])
def test_values_out_of_range_are_wrong_usage(arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2


def test_what_was_left_open_is_decided_and_what_was_given_stays() -> None:
    resolved = Small(epochs=1).resolve()
    assert (resolved.layers, resolved.epochs, resolved.lr) == (2, 1, 0.5)


def test_the_loop_takes_steps_unless_told() -> None:
    assert Small().loop(10).max_steps == 10
    assert Small(max_iters=5).loop(10).max_steps == 5
    assert Small(max_time=3.0).loop(10).max_steps is None
    assert Small().loop(10, eval_interval=4).eval_interval == 4
    assert Small(eval_interval=2).loop(10, eval_interval=4).eval_interval == 2


def test_a_changed_option_keeps_its_place_range_and_help() -> None:
    assert list(options(Small)).index("lr") == list(options(TrainerSettings)).index("lr")
    assert ranges(Small)["lr"] == (0.0, 10.0)
    assert options(Small)["lr"].help == options(TrainerSettings)["lr"].help


def test_ranges_and_choices_hold_from_python_too() -> None:
    assert check(Small(layers=9)).layers == 9
    with pytest.raises(NlpkitError, match="`layers` is 10"):
        check(Small(layers=10))
    with pytest.raises(NlpkitError, match="`kind` is 'cow'"):
        check(Small(kind="cow"))  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "5x", "-1s", "inf", "nan"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(NlpkitError, match="is no time"):
        parse_duration(text)
