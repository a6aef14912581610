"""Start-up is a feature, and imports point one way."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import nlpkit

PACKAGE = Path(nlpkit.__file__).parent
HEAVY = {"torch", "numba", "numpy", "matplotlib", "rich", "scipy", "sklearn", "tokenizers"}

RUN = """
import json, sys
from nlpkit.cli.main import app
try:
    app({arguments!r}, prog_name="nlpkit")
except SystemExit as end:
    code = end.code
sys.stderr.write(json.dumps([code, sorted(name for name in sys.modules if "." not in name)]))
"""


def modules_after(arguments: list[str], text: str = "") -> set[str]:
    """What has been imported when a command is done."""
    done = subprocess.run(
        [sys.executable, "-c", RUN.format(arguments=arguments)],
        input=text.encode(),
        capture_output=True,
    )
    code, modules = json.loads(done.stderr)
    assert code == 0
    return set(modules)


def test_the_table_of_commands_imports_nothing_heavy() -> None:
    line = "import sys, nlpkit.cli.main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True)
    assert not HEAVY & set(done.stdout.split())
    assert "regex" not in done.stdout.split()


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["tokenize", "--help"], ["vectorize", "--help"], ["pad", "-h"]],
)
def test_a_help_page_imports_nothing_heavy(arguments: list[str]) -> None:
    assert not HEAVY & modules_after(arguments)


@pytest.mark.parametrize(
    "arguments", [["tokenize"], ["detokenize"], ["sentences"], ["vocab", "build", "-q"]]
)
def test_commands_on_text_import_nothing_heavy(arguments: list[str]) -> None:
    assert not HEAVY & modules_after(arguments, "It's Mr. Smith's house. Yes!\n")


def test_arrays_need_numpy_and_nothing_more() -> None:
    assert HEAVY & modules_after(["pad"], "1 2\n3\n") == {"numpy"}


def test_training_does_not_load_the_compiler_of_torch() -> None:
    program = """
import sys, torch
from nlpkit.nn.optimizers import Muon, adamw
from nlpkit.nn.sparse import SparseAdagrad
layer, table = torch.nn.Linear(2, 2), torch.nn.Embedding(3, 2, sparse=True)
optimizers = [adamw([layer.bias], lr=0.1), Muon([(layer.weight, 1)], lr=0.1),
              SparseAdagrad(table.parameters(), lr=0.1)]
layer(table(torch.tensor([1]))).sum().backward()
for optimizer in optimizers:
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.zero_grad()
print("torch._dynamo" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


# --- which way things point ---------------------------------------------------------------------


def imported(file: Path) -> Iterator[str]:
    """Every module that a file imports, at its top or inside a function."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports by dots"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


ENGINES = sorted(
    str(file.relative_to(PACKAGE))
    for file in PACKAGE.rglob("*.py")
    if file.relative_to(PACKAGE).parts[0] not in ("cli", "__main__.py")
)
FOUNDATION = (
    "errors textio zstd parallel textplot vocab sequences wordcount counting subwords".split()
)


@pytest.mark.parametrize("name", ENGINES)
def test_engines_know_nothing_of_the_command_line(name: str) -> None:
    for module in imported(PACKAGE / name):
        assert module.split(".")[0] not in ("typer", "rich", "click"), module
        assert not f"{module}.".startswith("nlpkit.cli."), module


def test_the_foundation_knows_nothing_of_what_stands_on_it() -> None:
    upper = tuple(
        f"nlpkit.{folder.name}"
        for folder in PACKAGE.iterdir()
        if (folder / "__init__.py").exists() and folder.name not in ("tokenizers", "cli")
    )
    for name in FOUNDATION:
        for module in imported(PACKAGE / f"{name}.py"):
            assert not module.startswith(upper), f"{name} imports {module}"


def test_errors_import_nothing_of_ours() -> None:
    assert not any(name.startswith("nlpkit") for name in imported(PACKAGE / "errors.py"))


@pytest.mark.parametrize("name", ENGINES)
def test_engines_never_print_or_unpickle(name: str) -> None:
    for node in ast.walk(ast.parse((PACKAGE / name).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print", f"{name}:{node.lineno}"
    assert not {"pickle", "marshal", "shelve", "dill", "joblib"} & set(imported(PACKAGE / name))
