"""Pictures: labels keep apart, files are what their names say, the terminal view is readable."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlpkit.errors import NlpkitError
from nlpkit.vectors.labels import place_labels
from nlpkit.vectors.marks import read_groups, read_relations
from nlpkit.vectors.plot import draw, terminal_view
from nlpkit.vectors.projection import project, variance_shares
from nlpkit.vectors.projector import write_projector
from nlpkit.vectors.settings import Projection
from nlpkit.vectors.store import Vectors
from nlpkit.vectors.words import ListedWords


@settings(deadline=None)
@given(st.integers(1, 60), st.integers(0, 100))
def test_no_label_covers_another_or_a_point_or_leaves_the_picture(n: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    points = generator.uniform(10, 190, (n, 2))
    sizes = generator.uniform([10, 8], [50, 12], (n, 2))
    placed = place_labels(points, sizes, (0, 0, 200, 200), 2)
    boxes = [
        (place[0] - w / 2, place[1] - h / 2, place[0] + w / 2, place[1] + h / 2)
        for place, (w, h) in zip(placed, sizes, strict=True)
        if place is not None
    ]
    assert boxes, "the first label always finds room"
    for i, (left, bottom, right, top) in enumerate(boxes):
        assert left >= 0
        assert bottom >= 0
        assert right <= 200
        assert top <= 200
        assert not any(left < x < right and bottom < y < top for x, y in points)
        for other in boxes[:i]:
            apart = right <= other[0] or other[2] <= left or top <= other[1] or other[3] <= bottom
            assert apart


def test_a_label_stands_beside_arrows_and_the_legend_while_there_is_room() -> None:
    point, size = np.array([[50.0, 50.0]]), np.array([[20.0, 10.0]])
    flat = np.array([[[50.0, 50.0], [90.0, 50.0]]])  # away to the right, where the label would be
    bounds = (0, 0, 100, 100)
    assert place_labels(point, size, bounds, 2, lines=flat) == [(38.0, 50.0)]
    legend = (0, 40, 45, 60)
    assert place_labels(point, size, bounds, 2, lines=flat, taken=[legend]) == [(62.0, 57.0)]
    narrow = (45, 45, 75, 55)
    assert place_labels(point, size, narrow, 2, lines=flat) == [(62.0, 50.0)]


@pytest.mark.parametrize("method", list(Projection))
@pytest.mark.parametrize("n", [1, 2, 3, 12])
def test_points_fill_the_plane_and_are_seeded(method: Projection, n: int) -> None:
    if method is Projection.UMAP:
        pytest.importorskip("umap")
    matrix = np.random.default_rng(0).standard_normal((n, 5)).astype(np.float32)
    points = project(matrix, method, seed=3)
    assert points.shape == (n, 2)
    assert np.abs(points).max() == pytest.approx(0 if n == 1 else 1)
    np.testing.assert_array_equal(points, project(matrix, method, seed=3))


def test_pca_keeps_parallel_pairs_parallel() -> None:
    circle = np.array([[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]], np.float32)
    a, b, c, d = project(circle)
    np.testing.assert_allclose(b - a, c - d, atol=1e-6)


def test_one_dimension_is_drawn_on_a_line() -> None:
    assert project(np.array([[1], [-1]], np.float32))[:, 1].tolist() == [0, 0]


@pytest.mark.parametrize(("name", "start"), [("p.png", b"\x89PNG"), ("p.svg", b"<?xml")])
@pytest.mark.filterwarnings("error")
def test_a_picture_is_what_its_name_says(tmp_path: Path, name: str, start: bytes) -> None:
    words = ["king", "$a$", "日本", "🙂", "<b>"]
    points = project(np.random.default_rng(0).random((5, 4), np.float32))
    assert draw(words, points, str(tmp_path / name)) == 0
    assert (tmp_path / name).read_bytes().startswith(start)


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NlpkitError, match="cannot draw"):
        draw(["a"], np.zeros((1, 2)), str(tmp_path / "p.txt"))


def test_the_terminal_view_shows_words_where_they_are() -> None:
    points = np.array([[-1, 1], [1, 1], [0, 0], [0.01, 0], [-1, -1], [1, -1.0]])
    words = ["left", "right", "first", "hidden", "low", "x" * 50]
    lines = terminal_view(words, points, width=40, height=5).split("\n")
    assert len(lines) == 5
    assert lines[0].startswith("•left")
    assert lines[0].endswith("right•")
    assert "•first" in lines[2] or "first•" in lines[2]
    assert "hidden" in lines[1]  # where there was room, a line higher
    assert lines[4].startswith("•low")
    assert lines[4].endswith("·")


def test_projector_files_have_a_header_only_with_two_columns(tmp_path: Path) -> None:
    matrix = np.array([[0.5, -1], [2, 3], [4, 5]], np.float32)
    words = ["a", "tab\there", "new\nline"]
    write_projector(Vectors(words, matrix), str(tmp_path / "plain"))
    assert (tmp_path / "plain" / "vectors.tsv").read_text() == "0.5\t-1\n2\t3\n4\t5\n"
    assert (tmp_path / "plain" / "metadata.tsv").read_text() == "a\ntab\\there\nnew\\nline\n"
    counted = Vectors(ListedWords(words, np.array([9, 5, 1])), matrix)
    write_projector(counted, str(tmp_path / "counted"), rows=2)
    assert (
        tmp_path / "counted" / "metadata.tsv"
    ).read_text() == "word\tcount\na\t9\ntab\\there\t5\n"
    assert (tmp_path / "counted" / "vectors.tsv").read_text().count("\n") == 2


def test_groups_arrows_title_and_axes_are_in_the_picture(tmp_path: Path) -> None:
    words = ["king", "queen", "bread", "cheese"]
    points = project(np.random.default_rng(0).random((4, 5), np.float32))
    path = tmp_path / "p.svg"
    draw(
        words,
        points,
        str(path),
        title="Pairs",
        axis_names=["axis 1 (40% of variance)", "axis 2"],
        groups={"king": "royal", "bread": "food"},
        relations=[("king", "queen"), ("king", "unknown")],
    )
    plain = tmp_path / "q.svg"
    draw(words, points, str(plain))
    picture = path.read_text()
    assert all(f"<!-- {text} -->" in picture for text in ("Pairs", "royal", "food", "axis 2"))
    assert "#d1495b" in picture
    assert "#d1495b" not in plain.read_text()


def test_shares_of_variance_are_those_of_the_projection() -> None:
    matrix = np.random.default_rng(1).standard_normal((50, 6)).astype(np.float32)
    units = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    variances = np.linalg.eigvalsh(np.cov(units.T))[::-1]
    np.testing.assert_allclose(variance_shares(matrix), (variances / variances.sum())[:2], 1e-4)


@pytest.mark.parametrize("lines", [["a b"], [], ["# x"]])
def test_files_without_groups_or_pairs_are_refused(lines: list[str]) -> None:
    with pytest.raises(NlpkitError, match="no group"):
        read_groups(lines if lines != ["# x"] else [], "f")
    with pytest.raises(NlpkitError, match=r"pairs|words"):
        read_relations(["a b c"] if lines == ["a b"] else lines, "f")
