"""The one decorator of all kernels: compiled by numba, and kept on disk from run to run.

It mends three habits of ``njit(cache=True)``:

- numba looks for edits in the file of a function, not in those of the functions it calls. Here a
  kernel is compiled anew when any file with kernels in its folder, or beside this one, has changed;
  it calls no others.
- Where nothing can be written (an installation that is read-only, a user without a home, a full
  disk) numba ends with an error. Here kernels are compiled for this run, and a warning says so.
- ``NUMBA_DISABLE_JIT=1`` leaves kernels as the plain Python they are written in, which is slow and
  checks bounds. Here the operations of ``simd`` work then, too.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import caching

from nlpkit.errors import NlpkitWarning

FIRST_TIME = "compiling kernels: some seconds, the first time only"
_settings: Any = numba.config
_caching: Any = caching
ENABLED = not _settings.DISABLE_JIT
_MARKS = (b"nlpkit.kernels.compiling", b"nlpkit.kernels.simd")  # what a file with kernels imports


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function with these options of ``numba.njit``, such as ``@kernel(fastmath=True)``.

    Compiled code lets go of the interpreter lock.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        if not ENABLED:
            return _plain(function)
        compiled = numba.njit(nogil=True, **options)(function)
        _compile_once_for_all_constants(compiled)
        try:
            compiled._cache = _Cache(function)
        except RuntimeError:  # numba has found no folder that it can write to
            _warn_of_no_cache()
        return compiled

    return decorate


def is_compiled(function: Any) -> bool:
    """Whether a kernel needs no compiler any more, as far as can be seen from its cache on disk.

    If it does, the first call has to wait some seconds.
    """
    if not ENABLED or function.signatures:
        return True
    return isinstance(function._cache, _Cache) and function._cache.is_filled()


def _compile_once_for_all_constants(compiled: Any) -> None:
    """A kernel that another one calls with a constant is the one that takes any number.

    numba would compile both, and all that they call.
    """
    template = compiled.get_call_template

    def get_call_template(arguments: Any, named: Any) -> Any:
        return template(
            [numba.types.unliteral(one) for one in arguments],
            {name: numba.types.unliteral(one) for name, one in named.items()},
        )

    compiled.get_call_template = get_call_template


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        with np.errstate(over="ignore"):  # hashes and random numbers overflow, as compiled code
            return function(*arguments)

    return call


class _CacheFile(caching.IndexDataCacheFile):
    """The index of what was compiled; one that names types of another version of us is empty."""

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except (ImportError, AttributeError, _caching.pickle.UnpicklingError):
            return {}


class _Cache(caching.FunctionCache):
    """numba's own, but for what the module says above."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _CacheFile(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=_sources_stamp(Path(inspect.getfile(function)).parent),
        )

    def is_filled(self) -> bool:
        """Whether anything compiled from the present sources is there."""
        filled = False
        with self._guard_against_spurious_io_errors():
            filled = bool(self._cache_file._load_index())
        return filled

    @contextlib.contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        """Around all reading and writing: what cannot be read or written is compiled instead."""
        try:
            yield
        except (OSError, EOFError):
            _warn_of_no_cache()


def kernel_files(folder: Path) -> list[Path]:
    """The files that the kernels of a folder are made from."""
    files = {*folder.glob("*.py"), *Path(__file__).parent.glob("*.py")}
    return sorted(file for file in files if any(mark in file.read_bytes() for mark in _MARKS))


@functools.cache
def _sources_stamp(folder: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for file in kernel_files(folder):
        digest.update(hashlib.blake2b(file.read_bytes()).digest())
    return digest.hexdigest()


@functools.cache
def _warn_of_no_cache() -> None:
    """Once a process."""
    warnings.warn(
        "no folder to keep compiled kernels in, so each run compiles them again "
        "(try: NUMBA_CACHE_DIR=FOLDER)",
        NlpkitWarning,
        stacklevel=2,
    )
