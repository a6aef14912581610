"""Start-up is a feature, and imports point one way."""

from __future__ import annotations

import ast
import json
import re
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


def test_the_package_itself_imports_nothing_at_all() -> None:
    line = """
import sys
before = set(sys.modules)
import nlpkit
assert {"load", "train_gpt", "__version__"} <= set(dir(nlpkit))
print(*(set(sys.modules) - before))
nlpkit.load, nlpkit.train_word2vec, nlpkit.train_gpt, nlpkit.NlpkitError
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True)
    first, after = done.stdout.splitlines()
    assert [name for name in first.split() if name.startswith("nlpkit")] == ["nlpkit"]
    assert not HEAVY & set(after.split())


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
# From what imports nothing of ours to what may import everything; those of one line are
# independent of each other. pretrained/ gives whole models of a task to the command line.
LAYERS = """
    errors faults samples signals __init__
    settings
    zstd parallel textplot schema memory hoverpage
    compression
    textio
    folders manifest npy
    modeldir
    registry
    verify kernels
    text plots
    curves
    device openmp
    nn
    training metrics
    models
    generate
    vectors
    word2vec
    compare
    tasks
    pretrained
    api_data
    api api_text describe
    cli __main__
"""
VECTORS = {"vectors", "word2vec"}  # the folder of a word2vec model is one of vectors
RANKS = {
    name: rank for rank, line in enumerate(LAYERS.strip().splitlines()) for name in line.split()
}


@pytest.mark.parametrize("name", ENGINES)
def test_engines_know_nothing_of_the_command_line(name: str) -> None:
    for module in imported(PACKAGE / name):
        assert module.split(".")[0] not in ("typer", "rich", "click"), module
        assert not f"{module}.".startswith("nlpkit.cli."), module


def test_every_folder_and_file_of_the_package_has_a_layer() -> None:
    found = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py"}
    found |= {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert found - {"sample_corpora"} == RANKS.keys()


# the package itself names its functions for type checkers, and imports them when asked for
@pytest.mark.parametrize("name", [name for name in ENGINES if name != "__init__.py"])
def test_imports_point_down(name: str) -> None:
    parts = name.removesuffix(".py").split("/")
    for module in imported(PACKAGE / name):
        other = module.split(".")[1:]
        if not module.startswith("nlpkit.") or other[0] not in RANKS or other[0] == "__init__":
            continue
        here = parts[: 2 if parts[0] == "tasks" else 1]  # tasks do not know each other
        inside = other[: len(here)] == here or other == ["tasks"] or {*here, other[0]} == VECTORS
        assert inside or RANKS[other[0]] < RANKS[parts[0]], f"{name} imports {module}"


def test_errors_import_nothing_of_ours() -> None:
    assert not any(name.startswith("nlpkit") for name in imported(PACKAGE / "errors.py"))


# the advice of ``tag check`` is for the command line alone
@pytest.mark.parametrize("name", [name for name in ENGINES if name != "tasks/tag/check.py"])
def test_errors_of_engines_speak_of_parameters_not_of_flags(name: str) -> None:
    for node in ast.walk(ast.parse((PACKAGE / name).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Raise):
            texts = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
            named = re.findall(r"--(?!help\b)[a-z]+", " ".join(map(str, texts)))
            assert not named, f"{name}:{node.lineno}: {named}"


@pytest.mark.parametrize("name", ENGINES)
def test_engines_never_print_or_unpickle(name: str) -> None:
    for node in ast.walk(ast.parse((PACKAGE / name).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print", f"{name}:{node.lineno}"
    assert not {"pickle", "marshal", "shelve", "dill", "joblib"} & set(imported(PACKAGE / name))
