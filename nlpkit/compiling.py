"""Whether a compiled function still has to be compiled, so that a wait can be announced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FIRST_TIME = "compiling kernels: some seconds, the first time only"


def is_compiled(function: Any) -> bool:
    """Whether a function of numba is in its cache on disk, as far as can be seen.

    If not, the first call has to wait some seconds for the compiler.
    """
    code = function.py_func.__code__
    source = Path(code.co_filename)
    indexes = Path(function.stats.cache_path).glob(
        f"{source.stem}.{code.co_name}-{code.co_firstlineno}.*.nbi"
    )
    return any(index.stat().st_mtime >= source.stat().st_mtime for index in indexes)
