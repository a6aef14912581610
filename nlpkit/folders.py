"""A folder that is written whole or not at all, and replaced without a moment in which it is gone.

All files go to a temporary neighbour, ``.NAME.xxxxxxxx.tmp``, that gets its name when it is
complete. To replace a folder the two are exchanged in one operation where the system can do that
(``renameat2`` of Linux). Elsewhere the old one steps aside to ``.NAME.hash.old`` first: should the
process die right then, ``recover``, which everything that looks for a folder calls, moves it back.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from nlpkit import textio
from nlpkit.errors import NlpkitError
from nlpkit.faults import step

TEMPORARY = ".tmp"
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def resolve(path: str | os.PathLike[str]) -> Path:
    """The folder itself, where a symbolic link may lead to it."""
    return Path(os.path.realpath(path))


def is_temporary(path: str | os.PathLike[str]) -> bool:
    """Whether a folder is what a killed process left of one in the making.

    >>> is_temporary("models/.news.model.k3_x9a2b.tmp"), is_temporary("news.model")
    (True, False)
    """
    name = os.path.basename(os.path.abspath(path))
    return name.startswith(".") and name.endswith(TEMPORARY)


def recover(path: str | os.PathLike[str]) -> None:
    """Move back a folder that a process was about to replace when it died."""
    target = resolve(path)
    if os.path.lexists(target) or not os.path.isdir(aside := _aside(target)):
        return
    try:
        os.rename(aside, target)
    except OSError as error:
        if not os.path.exists(target):  # else another process was faster
            raise NlpkitError(
                f"{target} was left at {aside} and cannot be moved back: {error.strerror}"
            ) from None


def check_place(path: str | os.PathLike[str]) -> None:
    """Try now whether a folder can be written there, not after hours of work."""
    if not os.fspath(path):  # which would be the current folder
        raise NlpkitError("a folder needs a name, not an empty one", hint="the path of a new one")
    target = resolve(path)
    if not os.path.isdir(target.parent):
        raise NlpkitError(f"no such folder: {target.parent}", hint=f"mkdir -p {target.parent}")
    if os.path.islink(target):
        raise NlpkitError(f"cannot write {path}: a symbolic link that leads nowhere")
    if os.path.ismount(target):
        raise NlpkitError(
            f"cannot write {path}: a mounted folder cannot be replaced", hint="a folder in it"
        )
    try:
        with contextlib.suppress(FileNotFoundError):
            os.lstat(target)  # a name that is too long is detected here
        with _temporary(target):
            pass
    except OSError as error:
        raise NlpkitError(f"cannot write {path}: {error.strerror}") from None


@contextlib.contextmanager
def atomic_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary folder to fill that takes the path's place when the block ends without an error.

    >>> with atomic_folder("gpt2") as folder:  # doctest: +SKIP
    ...     (folder / "config.json").write_text("{}")
    """
    target = resolve(path)
    try:
        with _temporary(target) as temporary:
            yield temporary
            for file in (inner for inner in temporary.rglob("*") if inner.is_file()):
                step("fsync")
                with open(file, "rb") as handle:
                    os.fsync(handle.fileno())
            temporary.chmod(0o777 & ~textio.umask())
            if target.exists():
                _replace(target, temporary)
            else:
                step("rename")
                os.rename(temporary, target)
            textio.sync_folder(target.parent)
    except OSError as error:
        raise NlpkitError(f"cannot write {path}: {error.strerror or error}") from None


def remove(path: str | os.PathLike[str]) -> None:
    """Delete a folder in one moment: it loses its name first and its files afterwards."""
    target = resolve(path)
    if not target.is_dir():
        return
    with contextlib.suppress(OSError), _temporary(target) as temporary:
        step("rename")
        os.rename(target, temporary)  # an empty folder gives way


@contextlib.contextmanager
def _temporary(target: Path) -> Iterator[Path]:
    """A new folder beside another; what has its name when the block ends is deleted.

    The name is known before the folder is made, so a signal at any moment leaves nothing behind.
    """
    step("mkdir")
    name = f".{textio.short_name(target.name)}.{secrets.token_hex(4)}{TEMPORARY}"
    folder = target.with_name(name)
    try:
        folder.mkdir(mode=0o700)
        yield folder
    finally:  # a failed attempt, or what was replaced
        _delete(folder)


def _aside(target: Path) -> Path:
    """Where the old folder waits while the new one takes its place: told by the name alone."""
    digest = hashlib.blake2b(os.fsencode(target.name), digest_size=4).hexdigest()
    return target.with_name(f".{textio.short_name(target.name)}.{digest}.old")


def _replace(target: Path, temporary: Path) -> None:
    """Put one folder in the place of another; the old one ends up in the way of ``_delete``."""
    aside = _aside(target)
    _delete(aside)  # of a process that died when its work was done
    step("rename")
    if _exchange(temporary, target):
        return
    while True:
        os.rename(target, aside)
        try:
            step("rename")
            os.rename(temporary, target)
            break
        except OSError:
            if aside.exists():
                os.rename(aside, target)
                raise
            # another process found the place empty and moved the old one back: once more
    _delete(aside)


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change places in one operation, if this system can do that."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:
        return False
    places = (_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other))
    return bool(rename(*places, ctypes.c_uint(_RENAME_EXCHANGE)) == 0)


def _delete(folder: Path) -> None:
    if not folder.exists():
        return
    with contextlib.suppress(OSError):
        step("remove")
        shutil.rmtree(folder, ignore_errors=True)
