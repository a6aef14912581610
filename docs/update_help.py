"""Bring the pages in docs/ up to date: what --help says, and what the commands shown there print.

    python docs/update_help.py            renews help and maps, in seconds
    python docs/update_help.py --console  also runs the commands that pages show; some of them train
    python docs/update_help.py --check    only names what differs, and fails if anything does

Help stands between ``<!-- help: nlpkit tokenize -->`` and ``<!-- end -->``, each on a line. In a
block fenced as ``console`` a line of ``$ `` is a command (lines of ``> `` go on with it), and what
it prints follows. The commands of a page run in order in one folder with the sample corpora.

Between ``<!-- map: files -->`` and ``<!-- end -->`` stands what the package is made of, by the
first sentences of its docstrings.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from typer.testing import CliRunner

DOCS = Path(__file__).parent
WIDTH = "100"
NLPKIT = f"{shlex.quote(sys.executable)} -m nlpkit"
BLOCK = re.compile(r"<!-- help: (nlpkit[\w -]*) -->\n(.*?)<!-- end -->", re.DOTALL)
MAP = re.compile(r"<!-- map: files -->\n(.*?)<!-- end -->", re.DOTALL)
PACKAGE = DOCS.parent / "nlpkit"
CONSOLE = re.compile(r"^```console\n(.*?)^```\n", re.DOTALL | re.MULTILINE)


def commands(page: str) -> list[str]:
    """The commands whose help a page shows.

    >>> commands("<!-- help: nlpkit pad -->\\n<!-- end -->")
    ['nlpkit pad']
    """
    return [match[1] for match in BLOCK.finditer(page)]


def fill(page: str, help_of: Callable[[str], str]) -> str:
    """The page with every block filled anew."""
    return BLOCK.sub(
        lambda match: (
            f"<!-- help: {match[1]} -->\n```text\n{help_of(match[1]).rstrip()}\n```\n<!-- end -->"
        ),
        page,
    )


def fill_maps(page: str) -> str:
    """The page with every map of the package drawn anew."""
    return MAP.sub(
        lambda match: f"<!-- map: files -->\n```text\n{package_map()}```\n<!-- end -->", page
    )


def package_map() -> str:
    """Folders and files, each with its first sentence."""
    rows = [("nlpkit/", first_sentence(PACKAGE / "__init__.py"))]
    for path in sorted(PACKAGE.rglob("*.py")):
        depth = len(path.relative_to(PACKAGE).parts)
        if path.name == "__init__.py" and depth > 1:
            rows.append(("  " * (depth - 1) + path.parent.name + "/", first_sentence(path)))
        elif not path.name.startswith("__"):
            rows.append(("  " * depth + path.name, first_sentence(path)))
    return "".join(f"{name:<25}{text}".rstrip() + "\n" for name, text in rows)


def first_sentence(file: Path) -> str:
    """Of a module's docstring, cut where a line of the map is full."""
    text = " ".join((ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").split())
    sentence = re.split(r"\.(?: |$)", text, maxsplit=1)[0].replace("``", "")
    return sentence if len(sentence) <= 74 else sentence[:71].rsplit(" ", 1)[0] + " ..."


def real_help(command: str) -> str:
    """What a command says of itself on a terminal of fixed width."""
    from nlpkit.cli.main import app

    arguments = [*command.split()[1:], "--help"]
    result = CliRunner(env={"COLUMNS": WIDTH}).invoke(app, arguments, prog_name="nlpkit")
    if result.exit_code:
        raise SystemExit(f"{command} --help: {result.output}")
    return result.stdout


def sessions(block: str) -> list[tuple[str, str]]:
    """The commands of a console block, with what they print.

    >>> sessions("$ echo a\\na\\n$ true\\n")
    [('echo a', 'a\\n'), ('true', '')]
    """
    found: list[tuple[str, str]] = []
    for line in block.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:].rstrip("\n"), ""))
        elif line.startswith("> ") and not found[-1][1]:
            found[-1] = (f"{found[-1][0]}\n{line[2:-1]}", "")
        else:
            found[-1] = (found[-1][0], found[-1][1] + line)
    return found


def show(command: str, printed: str) -> str:
    """The other way round."""
    return "$ " + command.replace("\n", "\n> ") + "\n" + printed


def run(command: str, folder: Path, nlpkit: str = NLPKIT) -> str:
    """What a person sees: stdout and stderr as they come."""
    python = shlex.quote(sys.executable)
    define = f'nlpkit() {{ {nlpkit} "$@"; }}; python() {{ {python} "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-c", define + command],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "COLUMNS": WIDTH},
    )
    return done.stdout.decode()


def rerun(page: str, folder: Path, nlpkit: str = NLPKIT) -> str:
    """The page with every console block run again; ``nlpkit`` is what stands for it in a shell."""
    (folder / "sample_corpora").symlink_to(DOCS.parent / "sample_corpora")

    def again(match: re.Match[str]) -> str:
        shown = [show(command, run(command, folder, nlpkit)) for command, _ in sessions(match[1])]
        return f"```console\n{''.join(shown)}```\n"

    return CONSOLE.sub(again, page)


def main() -> None:
    paths = [*sorted(DOCS.glob("*.md")), DOCS.parent / "README.md"]
    pages = {path: path.read_text(encoding="utf-8") for path in paths}
    wanted = sorted({command for page in pages.values() for command in commands(page)})
    helps = {command: real_help(command) for command in wanted}
    different = False
    for path, page in pages.items():
        new = fill_maps(fill(page, helps.__getitem__))
        if "--console" in sys.argv:
            with tempfile.TemporaryDirectory() as folder:
                new = rerun(new, Path(folder))
        if new != page:
            different = True
            sys.stdout.write(f"{path.name}\n")
            if "--check" not in sys.argv:
                path.write_text(new, encoding="utf-8")
    sys.exit(different and "--check" in sys.argv)


if __name__ == "__main__":
    main()
