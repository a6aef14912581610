"""A test case: a command line, the files that it finds, and what else is odd about its world.

Everything that is done to files is a ``Step``, which can be carried out and can be written as a
line of shell: what is reported is what was run.
"""

from __future__ import annotations

import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

BIG = 4000  # longer bytes are not shown as a printf
FULL_SIZE = 64 << 10  # bytes that fit in a folder that is almost full
# what a case may ask of its surroundings besides its files
CIRCUMSTANCES = (
    "stdin closed",
    "stdout closed",
    "stdout full",
    "stdout without reader",
    "stderr closed",
    "terminal",
    "TMPDIR missing",
    "TMPDIR full",
    "TMPDIR read-only",
    "folder full",
    "another user",
)


@dataclass(frozen=True)
class Step:
    """One thing done to the folder before the command starts.

    ``write`` puts ``data`` ``times`` times into a file; ``copy`` takes ``source``; ``patch``
    overwrites bytes at ``number``; ``cut`` leaves ``number`` bytes; ``append`` adds ``data``;
    ``remove``, ``folder``, ``fifo`` (with ``data`` to be read from it), ``link`` (to ``source``)
    and ``mode`` (``number``) are what they say.
    """

    what: str
    path: str
    data: bytes = b""
    times: int = 1
    number: int = 0
    source: str = ""
    note: str = ""  # what is wrong, if that is hard to see

    def apply(self, folder: Path) -> None:
        path = folder / self.path
        match self.what:
            case "write":
                with open(path, "wb") as out:
                    for start in range(0, self.times, 1000):
                        out.write(self.data * min(1000, self.times - start))
            case "copy" if os.path.isdir(self.source):
                shutil.copytree(self.source, path, symlinks=True)
            case "copy":
                shutil.copyfile(self.source, path)
            case "patch":
                with open(path, "r+b") as file:
                    file.seek(self.number)
                    file.write(self.data)
            case "cut":
                os.truncate(path, self.number)
            case "append":
                with open(path, "ab") as file:
                    file.write(self.data)
            case "remove":
                path.unlink()
            case "folder":
                path.mkdir(exist_ok=True)
            case "fifo":
                os.mkfifo(path)
            case "link":
                os.symlink(self.source, path)
            case "mode":
                path.chmod(self.number)

    def shell(self) -> str:
        """The same for a person to type."""
        return f"{self._line()}  # {self.note}" if self.note else self._line()

    def _line(self) -> str:
        path = quote(self.path)
        match self.what:
            case "write" if self.times > 1 and self.data.endswith(b"\n"):
                return f"yes {ansi_c(self.data[:-1])} | head -n {self.times} > {path}"
            case "write" if self.times > 1:
                return f"yes {ansi_c(self.data)} | head -n {self.times} | tr -d '\\n' > {path}"
            case "write":
                return f"{_printed(self.data)} > {path}{_rest(self.data)}"
            case "copy":
                return f"cp -r {quote(self.source)} {path}"
            case "patch":
                rest = f"dd of={path} bs=1 seek={self.number} conv=notrunc status=none"
                return f"{_printed(self.data)} | {rest}{_rest(self.data)}"
            case "cut":
                return f"truncate -s {self.number} {path}"
            case "append":
                return f"{_printed(self.data)} >> {path}{_rest(self.data)}"
            case "remove":
                return f"rm {path}"
            case "folder":
                return f"mkdir -p {path}"
            case "fifo":
                return f"mkfifo {path}; {_printed(self.data)} > {path} &"
            case "link":
                return f"ln -s {quote(self.source)} {path}"
            case _:
                return f"chmod {self.number:o} {path}"


@dataclass(frozen=True)
class Case:
    """What is run, and where it may write."""

    number: int
    command: str
    arguments: tuple[tuple[str, ...], ...]  # an option and its value stay together
    steps: tuple[Step, ...] = ()
    stdin: str = ""  # a file of the folder; nothing at all if empty
    outputs: tuple[str, ...] = ()  # what the command was told to write
    circumstances: tuple[str, ...] = ()
    signal: int = 0  # is sent after so many seconds of work
    after: float = 0.0
    endless: bool = False  # it was asked for endless work: Ctrl-C ends it
    big: bool = False  # megabytes of input: it may take its time
    then: tuple[tuple[str, ...], ...] = ()  # commands that must work if this one did

    def words(self) -> list[str]:
        """The command line without ``nlpkit``."""
        return [*self.command.split(), *(word for group in self.arguments for word in group)]

    def shell(self) -> str:
        """Lines of shell that show the same."""
        lines = [f"{step.shell()}" for step in self.steps]
        lines += [f"# {what}" for what in self.circumstances if what not in _SHOWN]
        words = " ".join(map(quote, self.words()))
        line = f"nlpkit {words} < {quote(self.stdin) if self.stdin else '/dev/null'}"
        for what, shown in _SHOWN.items():
            if what in self.circumstances:
                line = f"{shown[0]}{line}{shown[1]}"
        if self.signal:
            line = f"timeout -s {self.signal} {self.after:.2f} {line}"
        return "\n".join([*lines, line, *(f"nlpkit {' '.join(map(quote, c))}" for c in self.then)])


_SHOWN = {
    "stdin closed": ("", " <&-"),
    "stdout closed": ("", " >&-"),
    "stdout full": ("", " > /dev/full"),
    "stdout without reader": ("", " | true"),
    "stderr closed": ("", " 2>&-"),
    "TMPDIR missing": ("TMPDIR=/nowhere ", ""),
}


def quote(word: str) -> str:
    """A word for bash; what is not printable is shown as an escape.

    >>> quote("a b"), quote("a\\nb")
    ("'a b'", "$'a\\\\nb'")
    """
    data = os.fsencode(word) if _is_file_name(word) else word.encode("utf-8", "surrogatepass")
    plain = all(32 <= byte < 127 for byte in data)
    if len(data) > 40 and len(set(data)) == 1:
        return f"\"$(yes {ansi_c(data[:1])} | head -n {len(data)} | tr -d '\\n')\""
    return shlex.quote(word) if plain else ansi_c(data)


def ansi_c(data: bytes) -> str:
    """Bytes in bash's ``$'...'``."""
    escapes = {10: "\\n", 9: "\\t", 13: "\\r", 39: "\\'", 92: "\\\\"}
    shown = (escapes.get(b) or (chr(b) if 32 <= b < 127 else f"\\x{b:02x}") for b in data)
    return f"$'{''.join(shown)}'"


def _is_file_name(word: str) -> bool:
    try:
        os.fsencode(word)
    except UnicodeEncodeError:
        return False
    return True


def _printed(data: bytes) -> str:
    """``printf '...'``, or its start if it is long."""
    return f"printf '{_octal(data if len(data) <= BIG else data[:200])}'"


def _rest(data: bytes) -> str:
    return f"  # the first 200 of {len(data):,} bytes" if len(data) > BIG else ""


def _octal(data: bytes) -> str:
    """Bytes for ``printf`` of any shell."""
    escapes = {10: "\\n", 9: "\\t", 13: "\\r", 92: "\\\\", 37: "%%"}
    return "".join(
        escapes.get(b) or (chr(b) if 32 <= b < 127 and b != 39 else f"\\{b:03o}") for b in data
    )
