"""Plots made of characters, and pictures."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlpkit.errors import NlpkitError
from nlpkit.plots import check_picture, figure, label, save_figure
from nlpkit.textplot import plot, sparkline

numbers = st.floats(width=32, allow_nan=True, allow_infinity=True)


def test_a_sparkline_goes_from_its_lowest_to_its_highest_value() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert sparkline([5, 5]) == "▁▁"
    assert sparkline([]) == sparkline([math.nan, math.inf]) == ""
    assert sparkline([1, math.nan, 2]) == "▁█"
    assert len(sparkline(range(1000), width=40)) == 40


def test_a_line_runs_from_the_lower_left_to_the_upper_right() -> None:
    drawn = plot(range(100), range(100), width=20, height=5, label="up")
    lines = drawn.split("\n")
    assert lines[0] == "up"
    assert lines[1].startswith("99 ┤")
    assert lines[5].startswith(" 0 ┤")
    dots = [line.split("┤")[1] for line in lines[1:6]]
    firsts = [len(line) - len(line.lstrip()) for line in dots]
    assert firsts == sorted(firsts, reverse=True)
    assert lines[7].split() == ["0", "99"]


def test_nothing_to_plot_says_so() -> None:
    assert plot([], []) == plot([1], [math.nan]) == "(nothing to plot)"


def test_one_point_and_a_flat_line_are_drawn() -> None:
    assert plot([1], [2], width=1, height=1).split("\n")[0] == "2 ┤⠄"
    assert plot([1, 2, 3], [4, 4, 4]).count("\n") == 13


@given(st.lists(st.tuples(numbers, numbers), max_size=20), st.integers(1, 30), st.integers(1, 10))
@settings(max_examples=200, deadline=None)
def test_any_numbers_fit_the_frame(
    points: list[tuple[float, float]], width: int, height: int
) -> None:
    xs, ys = [x for x, _ in points], [y for _, y in points]
    drawn = plot(xs, ys, width=width, height=height)
    if drawn != "(nothing to plot)":
        lines = drawn.split("\n")
        assert len(lines) == height + 2
        assert all(len(line.split("┤")[1]) <= width for line in lines[:height])
    assert len(sparkline(ys, width=width)) <= width


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf", ".SVG"])
def test_pictures_are_written_in_the_format_of_their_name(tmp_path: Path, ending: str) -> None:
    drawn, axes = figure(2, 2)
    axes.plot([1, 2], [3, 4])
    path = tmp_path / f"curve{ending}"
    save_figure(drawn, str(path))
    start = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[ending.lower()]
    assert path.read_bytes().startswith(start)


def test_the_same_data_gives_the_same_svg(tmp_path: Path) -> None:
    written = []
    for name in ("a.svg", "b.svg"):
        drawn, axes = figure(2, 2)
        axes.plot([1, 2], [3, 4])
        save_figure(drawn, str(tmp_path / name))
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1]


@pytest.mark.filterwarnings("error")
def test_words_of_any_sort_are_drawn_without_a_warning(tmp_path: Path) -> None:
    words = ["\x1b[31m", "a\nb", "$x", "$y$", "字", "\ue000"]
    for name in ("words.png", "words.svg"):
        drawn, axes = figure(2, 2)
        axes.set_xticks(range(len(words)), list(map(label, words)))
        save_figure(drawn, str(tmp_path / name))
    with pytest.warns(UserWarning, match="Glyph"):  # what it would say otherwise
        drawn.savefig(tmp_path / "other.png")


def test_a_name_without_a_picture_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NlpkitError, match="cannot draw to") as error:
        check_picture(str(tmp_path / "curve.txt"))
    assert ".png" in error.value.hint
