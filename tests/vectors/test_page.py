"""The interactive page, in a real browser: pan, zoom, search, hover, keys; and no network."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nlpkit.vectors import query
from nlpkit.vectors.page import embed_json, page
from nlpkit.vectors.projection import project
from nlpkit.vectors.store import Vectors

from .browser import CHROMIUM, DRIVER, Browser

ENTER, ESCAPE, RIGHT = "\ue007", "\ue00c", "\ue014"
ODD = ["</script>", "<!--", "<b>bold</b>", "a\u2028b", '"quoted"', "{{data}}", "🙂", "日本"]


def sample() -> tuple[Vectors, list[str]]:
    words = ["king", "queen", "kingdom", *ODD, *[f"word{i}" for i in range(150)]]
    matrix = np.random.default_rng(5).standard_normal((len(words) + 20, 12)).astype(np.float32)
    matrix[1] = matrix[0] + 0.1 * matrix[1]
    return Vectors([*words, *[f"outside{i}" for i in range(20)]], matrix), words


def write_page(path: Path) -> list[list[query.Neighbour]]:
    vectors, words = sample()
    near = query.nearest(vectors, [([word], []) for word in words], 5)
    points = project(vectors.matrix[: len(words)])
    path.write_text(page(words, points, near, "Words & <vectors> {{data}}"), encoding="utf-8")
    return near


def test_the_data_comes_out_of_the_page_as_it_went_in(tmp_path: Path) -> None:
    near = write_page(tmp_path / "p.html")
    text = (tmp_path / "p.html").read_text(encoding="utf-8")
    (block,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    data = json.loads(block)
    _, words = sample()
    assert data["names"][: len(words)] == words
    assert len(data["points"]) == len(data["neighbours"]) == len(words)
    assert data["names"][data["neighbours"][0][0][0]] == near[0][0].word == "queen"
    assert "<title>Words &amp; &lt;vectors&gt; {{data}}</title>" in text


def test_the_page_names_no_other_place(tmp_path: Path) -> None:
    write_page(tmp_path / "p.html")
    text = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert not re.search(r"https?://|//cdn|@import|url\(", text)


def test_nothing_in_the_data_can_end_the_script() -> None:
    for word in ODD:
        assert "<" not in embed_json(word)
        assert json.loads(embed_json(word)) == word


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("chromium and chromedriver are not installed")
    started = Browser(tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Browser:
    write_page(tmp_path / "p.html")
    browser.open((tmp_path / "p.html").as_uri())
    browser.wait_for("return wordPlot.view.scale > 1")
    return browser


def heading(browser: Browser) -> str:
    return browser.run("return document.querySelector('#about h2').textContent")


def neighbours(browser: Browser) -> list[str]:
    script = "return [...document.querySelectorAll('#near li')].map(li => li.textContent)"
    return browser.run(script)


def position(browser: Browser, word: str) -> tuple[float, float]:
    at = browser.run("return wordPlot.position(arguments[0])", word)
    return at["x"], at["y"]


def view(browser: Browser) -> dict[str, float]:
    return browser.run("return {...wordPlot.view}")


def test_hovering_a_word_shows_its_neighbours(opened: Browser) -> None:
    vectors, words = sample()
    assert "161 words" in opened.run("return document.querySelector('#about p').textContent")
    opened.move_to(*position(opened, "king"))
    opened.wait_for("return document.querySelector('#about h2').textContent !== ''")
    near = query.nearest(vectors, [([heading(opened)], [])], 5)[0]
    assert neighbours(opened) == [f"{n.word}{n.score:.3f}" for n in near]
    assert len(words) == 161


def test_search_finds_chooses_and_centres_a_word(opened: Browser) -> None:
    opened.type("#search", "KING")
    found = "return [...document.querySelectorAll('#found button')].map(b => b.textContent)"
    assert opened.run(found) == ["king", "kingdom"]
    opened.type("#search", ENTER)
    assert heading(opened) == "king"
    assert neighbours(opened)[0].startswith("queen")
    box = opened.run(
        "const b = document.querySelector('canvas').getBoundingClientRect();"
        "return {x: b.x + b.width / 2, y: b.y + b.height / 2}"
    )
    assert position(opened, "king") == pytest.approx((box["x"], box["y"]), abs=1)
    opened.run("document.querySelector('#near button').click()")
    assert heading(opened) == "queen"


def test_a_word_that_is_not_there_is_said_to_be_missing(opened: Browser) -> None:
    opened.type("#search", "nowhere")
    assert "not in the plot" in opened.run("return document.getElementById('found').textContent")


def test_odd_words_are_shown_as_they_are(opened: Browser) -> None:
    for word in ["</script>", "<b>bold</b>", "日本"]:
        opened.run("document.getElementById('search').value = ''")
        opened.type("#search", word + ENTER)
        assert heading(opened) == word


def test_the_wheel_zooms_about_the_pointer(opened: Browser) -> None:
    before, at = view(opened), position(opened, "queen")
    opened.wheel(*at, delta=-300)
    opened.wait_for("return wordPlot.view.scale > arguments[0] * 1.5", before["scale"])
    assert position(opened, "queen") == pytest.approx(at, abs=1.5)


def test_dragging_moves_the_plane(opened: Browser) -> None:
    x, y = position(opened, "queen")
    opened.drag(300, 300, 80, -40)
    assert position(opened, "queen") == pytest.approx((x + 80, y - 40), abs=1.5)


def test_everything_works_with_keys_alone(opened: Browser) -> None:
    start = view(opened)
    opened.type("canvas", "+")
    assert view(opened)["scale"] > start["scale"]
    x, _ = position(opened, "queen")
    opened.type("canvas", RIGHT)
    assert position(opened, "queen")[0] < x
    opened.type("canvas", "n")
    assert heading(opened) == "king"
    opened.type("canvas", "n")
    assert heading(opened) == "queen"
    opened.type("canvas", "p")
    assert heading(opened) == "king"
    opened.type("canvas", "/")
    assert opened.run("return document.activeElement.id") == "search"
    opened.type("#search", ESCAPE)
    assert opened.run("return document.activeElement.tagName") == "CANVAS"
    opened.type("canvas", ESCAPE)
    assert heading(opened) == ""
    opened.type("canvas", "0")
    assert view(opened) == pytest.approx(start)


def test_the_plane_is_painted_and_nothing_is_fetched_or_wrong(opened: Browser) -> None:
    painted = opened.run(
        "const c = document.querySelector('canvas');"
        "const pixels = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        "let n = 0; for (let i = 3; i < pixels.length; i += 4) n += pixels[i] > 0; return n"
    )
    assert painted > 5000
    assert opened.run("return performance.getEntriesByType('resource').length") == 0
    assert opened.complaints() == []
    assert opened.screenshot().startswith(b"\x89PNG")


def test_a_layout_in_space_is_turned_and_can_be_switched(browser: Browser, tmp_path: Path) -> None:
    vectors, words = sample()
    near = query.nearest(vectors, [([word], []) for word in words], 5)
    matrix = vectors.matrix[: len(words)]
    layouts = {"3-D": project(matrix, dimensions=3), "2-D": project(matrix)}
    groups = {"king": "royal", "queen": "royal", "word1": "plain"}
    text = page(
        words, layouts["2-D"], near, "Space", layouts=layouts, groups=groups,
        relations=[("king", "queen"), ("king", "nowhere")],
    )  # fmt: skip
    (tmp_path / "p.html").write_text(text, encoding="utf-8")
    browser.open((tmp_path / "p.html").as_uri())
    browser.wait_for("return wordPlot.view.scale > 1")
    legend = "return [...document.querySelectorAll('#legend li')].map(li => li.textContent)"
    assert browser.run(legend) == ["royal", "plain"]
    assert browser.run("return data.relations") == [[0, 1]]
    before = position(browser, "word7")
    browser.run("turn(1, 0.3); redraw()")
    assert position(browser, "word7") != before
    # labels that take long are left out of the movement, and come back when it ends
    browser.run("labelling = 99; turn(0.1); redraw(true)")
    browser.wait_for("return labelling < 99")
    browser.run("document.querySelectorAll('#layouts button')[1].click()")
    flat = position(browser, "word7")
    browser.run("turn(1, 0.3); redraw()")
    assert position(browser, "word7") == flat


def test_an_analogy_that_is_typed_in_is_solved_and_drawn(browser: Browser, tmp_path: Path) -> None:
    words = ["king", "man", "woman", "queen", "bread"]
    rows = [[1, 1, 0], [0, 1, 0], [0, 1, 1], [1, 1, 1], [-1, 0.5, -1]]
    matrix = np.array(rows, np.float32)
    points = project(matrix)
    text = page(words, points, [[] for _ in words], "Analogy", matrix=matrix)
    (tmp_path / "p.html").write_text(text, encoding="utf-8")
    browser.open((tmp_path / "p.html").as_uri())
    browser.wait_for("return wordPlot.view.scale > 1")
    browser.type("#analogy", "king - man + woman" + ENTER)
    assert browser.run("return document.getElementById('answer').textContent") == "= queen"
    assert browser.run("return drawnAnalogy") == [[1, 0], [2, 3]]  # man to king, woman to queen
    assert heading(browser) == "queen"
    browser.run("document.getElementById('analogy').value = ''")
    browser.type("#analogy", "king - ox" + ENTER)
    answer = browser.run("return document.getElementById('answer').textContent")
    assert answer == "not in the plot: ox"
    assert browser.complaints() == []


def test_a_page_without_vectors_does_not_ask_for_analogies(opened: Browser) -> None:
    assert opened.run("return document.getElementById('ask').hidden") is True
