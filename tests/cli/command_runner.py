"""Run the installed ``nlpkit`` as a person would: in a process of its own.

Commands run in forks of a process that has imported all they need; what ``new`` and ``shell`` run
does not.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from warm import Warm

TEXT = """\
The king sat in the old house, and the queen read a book.
"Don't you know?" said the queen; "it's Mr. Smith's house."

Naïve cafés cost $5.50 in the U.S. -- or 3.14 in 東京 👍🏽!
"""
_installed = Path(sys.executable).with_name("nlpkit")
NLPKIT = [str(_installed)] if _installed.exists() else [sys.executable, "-m", "nlpkit"]


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


class Runner:
    """``run("tokenize", "--lower", input="Hi")`` in a folder of its own."""

    def __init__(self, folder: Path, warm: Warm | None = None) -> None:
        self.folder, self._warm = folder, warm

    def __call__(
        self, *arguments: str, input: str | bytes = b"", env: dict[str, str] | None = None
    ) -> Result:
        # other variables are for the interpreter, or for what it imports
        if self._warm and all(name.startswith("NLPKIT_") for name in env or {}):
            done = self._warm.run(self.folder, *arguments, input=input, env=env)
            return Result(done.code, done.out, done.err)
        return self.new(*arguments, input=input, env=env)

    def new(
        self, *arguments: str, input: str | bytes = b"", env: dict[str, str] | None = None
    ) -> Result:
        """The command in a new process, whatever it loads."""
        return self._finish([*NLPKIT, *arguments], input, env)

    def shell(self, line: str, input: str | bytes = b"") -> Result:
        """A line of bash in which ``nlpkit`` is the command under test."""
        define = f'nlpkit() {{ {" ".join(NLPKIT)} "$@"; }}; '
        return self._finish(["bash", "-c", define + line], input, None)

    def ok(
        self, *arguments: str, input: str | bytes = b"", env: dict[str, str] | None = None
    ) -> str:
        """What the command writes when all goes well."""
        result = self(*arguments, input=input, env=env)
        assert result.code == 0, result.err
        return result.out

    def fails(self, *arguments: str, input: str | bytes = b"", code: int = 1) -> str:
        """The one line on stderr of a command that fails and leaves nothing behind."""
        before = self.files()
        return self.check_failure(self(*arguments, input=input), before, code)

    def shell_fails(self, line: str, code: int = 1) -> str:
        before = self.files()
        return self.check_failure(self.shell(line), before, code)

    def check_failure(self, result: Result, before: dict[str, bytes], code: int = 1) -> str:
        assert result.code == code, result.err
        assert "Traceback" not in result.err
        assert result.err.startswith("error: ")
        assert result.err.count("\n") == 1, result.err
        assert self.files() == before
        return result.err

    def files(self) -> dict[str, bytes]:
        """Every file below the folder, hidden ones too."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes() if path.is_file() else b""
            for path in self.folder.rglob("*")
        }

    def write(self, name: str, data: str | bytes) -> str:
        (self.folder / name).write_bytes(data.encode() if isinstance(data, str) else data)
        return name

    def _finish(self, command: list[str], input: str | bytes, env: dict[str, str] | None) -> Result:
        done = subprocess.run(
            command,
            input=input.encode() if isinstance(input, str) else input,
            capture_output=True,
            cwd=self.folder,
            env={**os.environ, "COLUMNS": "100", **(env or {})},
            timeout=300,
        )
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())
