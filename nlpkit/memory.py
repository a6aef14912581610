"""How much memory there is, and whether something will fit: asked before it is made.

What does not fit is not always refused by the system: it may begin to swap, or end the process
without a word when a container's limit is reached.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from nlpkit.errors import NlpkitError

_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")


def show_bytes(count: float) -> str:
    """A size for people.

    >>> show_bytes(2.5 * 2**30), show_bytes(3 * 2**20)
    ('2.5 GB', '3.0 MB')
    """
    units = ["bytes", "kB", "MB", "GB", "TB", "PB"]
    while count >= 1024 and len(units) > 1:
        count /= 1024
        units.pop(0)
    return f"{count:,.1f} {units[0]}"


def check_memory(needed: float, what: str, *, hint: str = "", free: int | None = None) -> None:
    """Refuse what needs more bytes than are ``free`` (or known to be, if not told).

    >>> check_memory(10 * 2**30, "a model of 5 parameters", free=2**30)
    Traceback (most recent call last):
    nlpkit.errors.NlpkitError: a model of 5 parameters needs 10.0 GB of memory, and 1.0 GB is free
    """
    free = available_memory() if free is None else free
    if free is not None and needed > free:
        raise NlpkitError(
            f"{what} needs {show_bytes(needed)} of memory, and {show_bytes(free)} is free",
            hint=hint,
        )


def available_memory() -> int | None:
    """Bytes this process may still use, by the machine, its containers and its own limit.

    None where the system does not say.
    """
    limits = [_free_on_machine(), *_free_in_cgroups(), _free_address_space()]
    known = [limit for limit in limits if limit is not None]
    return max(0, min(known)) if known else None


def _free_on_machine() -> int | None:
    for line in _lines(_PROC / "meminfo"):
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    with contextlib.suppress(ValueError, OSError, AttributeError):  # no such number here
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _free_in_cgroups() -> list[int]:
    """What is left in this process's control group and those around it, versions 1 and 2."""
    found = []
    for line in _lines(_PROC / "self/cgroup"):
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            root, limit, used = _CGROUPS, "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            root, limit, used = (
                _CGROUPS / "memory",
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
            )
        else:
            continue
        folder = root / path.strip().lstrip("/")
        for group in [folder, *folder.parents]:
            if group != root and root not in group.parents:
                break
            most, now = _number(group / limit), _number(group / used)
            if most is not None and now is not None:
                found.append(most - now + _file_cache(group / "memory.stat"))
    return found


def _file_cache(path: Path) -> int:
    """Bytes of files kept in memory, which make way for anything else."""
    values = dict(line.split() for line in _lines(path) if len(line.split()) == 2)
    return sum(int(values.get(name, 0)) for name in ("inactive_file", "active_file"))


def _free_address_space() -> int | None:
    """What ``ulimit -v`` leaves."""
    try:
        import resource
    except ImportError:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    pages = next(iter(_lines(_PROC / "self/statm")), "0").split()[0]
    return limit - int(pages) * resource.getpagesize()


def _number(path: Path) -> int | None:
    text = next(iter(_lines(path)), "").strip()
    return int(text) if text.isdigit() else None  # "max" is no limit


def _lines(path: Path) -> list[str]:
    """Nothing where the file is missing: another system, or another version of it."""
    try:
        return path.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return []
