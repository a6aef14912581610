"""Kernels: compiled anew after an edit, without a place to keep them, and not compiled at all."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from kernel_results import all_results, tiny_gpt
from test_imports import imported

import nlpkit
from nlpkit.kernels.compiling import kernel_files
from nlpkit.kernels.numbers import parse_rows

PACKAGE = Path(nlpkit.__file__).parent
CALLEE = """
from nlpkit.kernels.compiling import kernel

@kernel(inline="always")
def number():
    return 1
"""
CALLER = """
from nlpkit.kernels.callee import number
from nlpkit.kernels.compiling import kernel

@kernel()
def answer(x):
    return x + number()
"""
TWICE = """
from nlpkit.kernels.compiling import kernel

@kernel()
def double(x):
    return 2 * x

@kernel()
def both(x):
    return double(3) + double(x)
"""
ASK = "from nlpkit.kernels import caller, compiling; print(caller.answer(1), "
ASK += "compiling.is_compiled(caller.answer), len(caller.answer.stats.cache_hits))"
LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, -1)); " + ASK


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A small package of two files of kernels, one of which calls the other's."""
    folder = tmp_path / "nlpkit" / "kernels"
    folder.mkdir(parents=True)
    for name in ("__init__.py", "errors.py", "kernels/__init__.py", "kernels/compiling.py"):
        shutil.copy(PACKAGE / name, tmp_path / "nlpkit" / name)
    (folder / "callee.py").write_text(CALLEE)
    (folder / "caller.py").write_text(CALLER)
    return folder


def ask(package: Path, program: str = ASK, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**variables, "PYTHONPATH": str(package.parents[1]), **environment},
        capture_output=True,
        text=True,
        cwd=package.parents[1],
    )
    assert done.returncode == 0, done.stderr
    return done


def test_a_kernel_is_kept_until_the_file_of_one_that_it_calls_changes(package: Path) -> None:
    assert ask(package).stdout == "2 True 0\n"
    assert ask(package).stdout == "2 True 1\n"  # from the disk
    (package / "callee.py").write_text(CALLEE.replace("return 1", "return 9"))
    assert ask(package).stdout == "10 True 0\n"


def test_a_kernel_is_compiled_once_for_constants_and_other_numbers(package: Path) -> None:
    (package / "twice.py").write_text(TWICE)
    program = "from nlpkit.kernels.twice import *; print(both(4), len(double.signatures))"
    assert ask(package, program).stdout == "14 1\n"


def test_without_a_place_to_keep_them_kernels_are_compiled_with_one_warning(package: Path) -> None:
    done = ask(package, NUMBA_CACHE_LOCATOR_CLASSES="IPythonCacheLocator")
    assert done.stdout == "2 True 0\n"
    assert done.stderr.count("NlpkitWarning") == 1
    assert "NUMBA_CACHE_DIR" in done.stderr


def test_a_full_disk_does_not_keep_kernels_from_running(package: Path, tmp_path: Path) -> None:
    done = ask(package, LIMITED, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert done.stdout == "2 True 0\n"
    assert done.stderr.count("NlpkitWarning") == 1


def test_a_cache_of_a_version_with_other_modules_is_written_anew(package: Path) -> None:
    ask(package)
    (index,) = (package / "__pycache__").glob("caller.*.nbi")
    older = index.read_bytes().replace(b"numba.core.types", b"numba.gone.types")
    assert older != index.read_bytes()
    index.write_bytes(older)
    assert ask(package).stdout == "2 True 0\n"  # compiled again
    assert ask(package).stdout == "2 True 1\n"  # and kept


def test_an_empty_file_in_the_cache_does_not_keep_kernels_from_running(package: Path) -> None:
    ask(package)
    for file in package.rglob("*.nb?"):
        file.write_bytes(b"")
    assert ask(package).stdout == "2 True 0\n"


def test_kernels_call_no_kernels_of_other_folders() -> None:
    folders = {path.parent for path in PACKAGE.rglob("*.py")} - {PACKAGE / "cli"}
    files = {folder: set(kernel_files(folder)) for folder in folders}
    everywhere = set().union(*files.values())
    assert {PACKAGE / "word2vec" / "tiles.py", PACKAGE / "kernels" / "simd.py"} < everywhere
    for file in everywhere:
        modules = [name.split(".") for name in imported(file)]
        called = {PACKAGE.joinpath(*name[1:]).with_suffix(".py") for name in modules}
        assert called & everywhere <= files[file.parent], file


# --- a read-only installation, for a user without a home ----------------------------------------


def obedient() -> list[str]:
    """What makes a command obey the permissions of files though root runs it."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("root may write everywhere")
    return [setpriv, "--inh-caps=-dac_override", "--bounding-set=-dac_override"]


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Path]:
    """A copy of the package that nobody may write to."""
    shutil.copytree(PACKAGE, tmp_path / "nlpkit", ignore=shutil.ignore_patterns("__pycache__"))
    folders = [tmp_path, *(path for path in tmp_path.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    yield tmp_path
    for folder in folders:
        folder.chmod(0o755)


def test_a_user_who_can_write_nowhere_gets_an_answer_and_one_note(installation: Path) -> None:
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "XDG_"))}
    done = subprocess.run(
        [*obedient(), sys.executable, "-m", "nlpkit", "vocab", "build", "--no-specials"],
        env={**variables, "HOME": f"{installation}/home", "PYTHONPATH": str(installation)},
        input=b"the king and the queen\n" * 400_000,  # enough to be worth a kernel
        capture_output=True,
        cwd="/",
    )
    assert done.returncode == 0, done.stderr
    assert b"the\t800000\n" in done.stdout
    assert done.stderr.count(b"kernels") == 1
    assert done.stderr.startswith(b"warning: no folder to keep compiled kernels in")


# --- without the compiler -----------------------------------------------------------------------


def results_of_another_process(folder: Path, **environment: str) -> dict[str, np.ndarray]:
    program = Path(__file__).with_name("kernel_results.py")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(program), str(folder / "results.npz")],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    with np.load(folder / "results.npz") as stored:
        return dict(stored)


def test_plain_kernels_give_what_compiled_ones_give(tmp_path: Path) -> None:
    plain = results_of_another_process(tmp_path, NUMBA_DISABLE_JIT="1")
    compiled = all_results()
    assert not plain.pop("compiled")
    assert compiled.pop("compiled")
    assert plain.keys() == compiled.keys()
    for name, expected in compiled.items():
        if expected.dtype.kind == "f":
            # whole numbers that inputs of 8-bit products become may differ by one
            slack = 1e-3 if name.startswith("8-bit") else 1e-5
            assert np.allclose(plain[name], expected, rtol=1e-4, atol=slack), name
        else:
            assert np.array_equal(plain[name], expected), name


# --- what kernels are not given -----------------------------------------------------------------


@pytest.mark.parametrize("text", [b"", b"the 1 2", b"the 1 2\n"])
def test_text_without_a_line_for_each_row_is_an_error(text: bytes) -> None:
    with pytest.raises(ValueError, match="line"):
        parse_rows(np.frombuffer(text, np.uint8), np.zeros((2, 2), np.float32))


def test_ids_and_positions_that_a_gpt_does_not_have_are_errors() -> None:
    model = tiny_gpt(int8=False)
    assert model.step is not None
    cache = model.new_cache(1)
    for number in (-1, 10**6):
        with pytest.raises(IndexError, match="vocabulary"):
            model.step(torch.tensor([number]), cache)
    cache.length = cache.keys.size(3)
    with pytest.raises(IndexError, match="block size"):
        model.step(torch.tensor([0]), cache)


# --- other processors ---------------------------------------------------------------------------

OTHER_PROCESSOR = """
import llvmlite.binding
def features():
    raise RuntimeError('unknown processor')
llvmlite.binding.get_host_cpu_features = features
import numpy as np
from nlpkit.kernels.simd import LANES
from nlpkit.word2vec.tiles import aligned_zeros, scores
left, right, result = (aligned_zeros(8, 16) for _ in range(3))
left[:], right[:] = np.arange(128).reshape(8, 16) % 7, np.arange(128).reshape(8, 16) % 5
scores(left, 0, 8, right, 0, 8, 16, result)
print(LANES, (result[:, :8] == left @ right.T).all())
"""


def test_a_processor_that_llvm_does_not_know_works(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OTHER_PROCESSOR],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_CPU_NAME": "generic"},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "8 True\n", done.stderr
