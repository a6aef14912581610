"""The pages in docs/ agree with the commands: help, examples, Python and links."""

from __future__ import annotations

import doctest
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from test_help import ALL
from warm import Warm

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(path.name for path in DOCS.glob("*.md"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)")

every_page = pytest.mark.parametrize("page", PAGES)


def text(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def fenced(page: str, kind: str) -> list[str]:
    return [match[2] for match in FENCE.finditer(text(page)) if match[1] == kind]


@pytest.fixture(scope="module")
def updater() -> ModuleType:
    spec = importlib.util.spec_from_file_location("update_help", DOCS / "update_help.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@every_page
def test_help_in_the_docs_is_what_the_command_says(page: str, updater: ModuleType) -> None:
    assert updater.fill(text(page), updater.real_help) == text(page), (
        "run: python docs/update_help.py"
    )


def test_the_map_of_the_code_is_what_the_package_is_made_of(updater: ModuleType) -> None:
    written = text("design.md")
    assert "tasks/" in written
    assert updater.fill_maps(written) == written, "run: python docs/update_help.py"


def test_help_in_a_process_of_its_own_is_the_same(updater: ModuleType) -> None:
    for command in ("nlpkit", "nlpkit vocab build"):
        words = [sys.executable, "-m", *command.split(), "--help"]
        done = subprocess.run(words, capture_output=True, env={**os.environ, "COLUMNS": "100"})
        assert done.stdout.decode() == updater.real_help(command)


@pytest.mark.parametrize("name", ALL)
def test_every_command_has_a_page_that_shows_its_help(name: str, updater: ModuleType) -> None:
    shown = [command for page in PAGES for command in updater.commands(text(page))]
    assert shown.count(f"nlpkit {name}") == 1


@every_page
def test_links_lead_somewhere(page: str) -> None:
    for match in LINK.finditer(FENCE.sub("", text(page))):
        target, anchor = match[1], match[2]
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path = DOCS / target if target else DOCS / page
        assert path.exists(), f"{page}: {target}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = [
                re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in headings
            ]
            assert anchor[1:] in anchors, f"{page}: {target}{anchor}"


def test_every_page_can_be_reached_from_the_first() -> None:
    seen, open_pages = set(), ["index.md"]
    while open_pages:
        page = open_pages.pop()
        seen.add(page)
        linked = {match[1] for match in LINK.finditer(text(page))}
        open_pages += sorted((linked & set(PAGES)) - seen - set(open_pages))
    assert seen == set(PAGES)


def test_the_guide_to_the_code_names_what_is_there() -> None:
    table = text("design.md").partition("## Where to look first")[2].partition("\n## ")[0]
    rows = [row.rpartition(" | ")[2] for row in table.splitlines() if "`nlpkit/" in row]
    assert len(rows) > 8
    for row in rows:
        for part in re.split(r"(?=`nlpkit/)", row)[1:]:
            file, *names = re.findall(r"`([^`]+)`", part)
            source = (DOCS.parent / file).read_text(encoding="utf-8")
            for name in names:
                assert re.search(rf"(def|class) {name}\b", source), f"{file}: {name}"


# --- examples -----------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [page for page in PAGES if fenced(page, "python")])
def test_python_in_the_docs_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = fenced(page, "python")
    for block in blocks:
        if ">>>" not in block:
            compile(block, page, "exec")
    source = "\n".join(block for block in blocks if ">>>" in block)
    examples = doctest.DocTestParser().get_doctest(source, {}, page, page, 0)
    failed: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.FAIL_FAST).run(examples, out=failed.append)
    assert not failed, "".join(failed)


@pytest.mark.parametrize("page", [page for page in PAGES if fenced(page, "console")])
def test_commands_in_the_docs_print_what_is_shown(
    page: str, tmp_path: Path, updater: ModuleType, warm: Warm
) -> None:
    again = "run: python docs/update_help.py --console"
    assert updater.rerun(text(page), tmp_path, warm.command) == text(page), again


def test_the_first_page_shows_what_its_commands_print(
    tmp_path: Path, updater: ModuleType, warm: Warm
) -> None:
    page = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    number = re.compile(r"\b0\.\d+")  # threads add up in any order, so the last digits may differ
    printed = updater.rerun(page, tmp_path, warm.command)
    assert number.sub("0.N", printed) == number.sub("0.N", page)


def test_links_of_the_first_page_lead_somewhere() -> None:
    page = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    targets = [match[1] for match in LINK.finditer(FENCE.sub("", page))]
    assert len(targets) > 20
    assert all((DOCS.parent / target).exists() for target in targets)
