"""Runs a case in a fork of this process, which has everything imported and compiled already.

The fork gets a folder, a time limit and a memory limit of its own, and standard streams as a new
interpreter would have them. Only one thread may run here when it forks: threads of OpenMP, rayon
or numba do not survive a fork, so ``warm_environment`` must be set before torch is imported.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import faulthandler
import gc
import io
import json
import os
import pty
import resource
import shutil
import signal
import stat
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from .case import FULL_SIZE, Case

NOBODY = 65534
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SHOWN = 1 << 20  # bytes of an output stream that are looked at
_WARM = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "NUMBA_THREADING_LAYER": "workqueue",  # the one that can be forked
    "TOKENIZERS_PARALLELISM": "false",
    "MPLBACKEND": "agg",
}


@dataclass(frozen=True)
class Limits:
    """What a command may use, beyond what the warm process has."""

    cpu: float = 10.0  # seconds
    wall: float = 60.0  # seconds; long, because a busy machine may not let it run for a while
    idle: float = 30.0  # seconds without any work, which even a busy machine would have let it do
    endless: float = 0.4  # seconds of CPU until endless work is ended
    grace: float = 15.0  # seconds of CPU from Ctrl-C to the end: a step is finished first
    memory: int = 2 << 30  # bytes

    def patience(self, case: Case) -> float:
        """Seconds until it is ended by Ctrl-C, whether it works or waits for something."""
        if case.endless and not case.big:
            return min(self.wall, 5.0)
        return self.wall * (3 if case.big else 1)

    def work(self, case: Case) -> float:
        """Seconds of CPU until it is ended by Ctrl-C."""
        if case.endless:
            return self.cpu / 3 if case.big else self.endless
        return self.cpu * (3 if case.big else 1)


@dataclass(frozen=True)
class Outcome:
    """What is known of a command that has ended."""

    code: int = 0
    killed: int = 0  # the signal that it died of
    out: bytes = b""
    err: str = ""
    left: tuple[str, ...] = ()  # new files and folders
    changed: tuple[str, ...] = ()  # files that were there and are not what they were
    temporary: tuple[str, ...] = ()  # what is left in TMPDIR
    seconds: float = 0.0
    cpu: float = 0.0  # seconds of work
    peak: int = 0  # bytes of memory beyond those of the warm process
    late: bool = False  # it was sent Ctrl-C because its time was over
    deaf: bool = False  # ... and did not listen to that


Entry = Callable[[], None]


@dataclass
class Sandbox:
    """``run(case)`` in a folder below ``root``; ``entry`` is what an interpreter would call."""

    root: Path
    entry: Entry
    limits: Limits = field(default_factory=Limits)
    floor: int = 0  # bytes that a fork has before it does anything

    def run(self, case: Case, words: list[str] | None = None) -> Outcome:
        """Make the folder, run the command (and what must work after it), clear up."""
        place = Place(Path(tempfile.mkdtemp(dir=self.root, prefix=f"{case.number}-")))
        try:
            place.make(case)
            outcome = self._run(case, place, words or case.words())
            for follower in case.then if outcome.code == outcome.killed == 0 else ():
                following = self._run(case, place, list(follower))
                if following.code or following.killed:
                    return following
            return outcome
        finally:
            place.remove()

    def run_in(self, folder: Path, case: Case) -> Outcome:
        """Run in a folder that is there and stays."""
        place = Place(Path(tempfile.mkdtemp(dir=self.root)), here=folder)
        try:
            place.tmp.mkdir()
            return self._run(case, place, case.words())
        finally:
            shutil.rmtree(place.base, ignore_errors=True)

    def _run(self, case: Case, place: Place, words: list[str]) -> Outcome:
        before = place.files()
        master, slave = pty.openpty() if "terminal" in case.circumstances else (-1, -1)
        started = time.monotonic()
        with _writers(case, place):
            ready, start = os.pipe()
            pid = os.fork()
            if not pid:
                _Child(self, case, place, slave, start).live(words)
            os.close(start)
            if slave >= 0:
                os.close(slave)
            os.read(ready, 1)
            os.close(ready)
            try:
                shown, usage, status, late, deaf = self._wait(pid, case, master)
            except BaseException:
                _send(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                raise
        seconds = time.monotonic() - started
        after = place.files()
        mounted = place.mounted()
        out = place.read("out")
        err = (shown + place.read("err")).decode("utf-8", "replace")
        return Outcome(
            code=os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 0,
            killed=os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
            out=out,
            err=err,
            left=tuple(sorted(after.keys() - before.keys()) + mounted["full"]),
            changed=tuple(sorted(name for name in before if after.get(name) != before[name])),
            temporary=tuple(sorted(os.listdir(place.tmp)) if place.tmp.is_dir() else [])
            + tuple(mounted["tmp"]),
            seconds=seconds,
            cpu=usage.ru_utime + usage.ru_stime,
            peak=max(0, 1024 * usage.ru_maxrss - self.floor),
            late=late,
            deaf=deaf,
        )

    def _wait(
        self, pid: int, case: Case, master: int
    ) -> tuple[bytes, resource.struct_rusage, int, bool, bool]:
        """Until the command has ended, by itself or not; what it showed on its terminal."""
        started = time.monotonic()
        end = started + self.limits.patience(case)
        work, allowed = _cpu_seconds(pid), self.limits.work(case)
        worked = work
        awake = looked = started  # when it was last seen to have worked, and last looked at
        send = bool(case.signal)
        shown = b""
        pause = 0.0005
        late = deaf = False
        while True:
            found, status, usage = os.wait4(pid, os.WNOHANG)
            if master >= 0:
                shown = (shown + _drain(master))[-SHOWN:]
            if found:
                break
            now, clock = time.monotonic(), _cpu_seconds(pid)
            if now - looked > 1:  # this process was held up, and the command perhaps as well
                end, awake = end + now - looked, awake + now - looked
            looked = now
            if clock > worked:
                worked, awake = clock, now
            if send and (clock - work >= case.after or now - awake > 5):
                _send(pid, case.signal)
                send = False
            hangs = now - awake >= self.limits.idle
            if hangs or now >= end or clock - work >= allowed:
                deaf = late
                _send(pid, signal.SIGKILL if late else signal.SIGINT)
                end, late, awake = now + self.limits.wall, True, now
                allowed += self.limits.grace
            time.sleep(pause)
            pause = min(1.5 * pause, 0.001 if send else 0.02)
        with contextlib.suppress(OSError):  # processes that it left behind
            os.killpg(pid, signal.SIGKILL)
        if master >= 0:
            shown += _drain(master)
            os.close(master)
        return shown, usage, status, late, deaf


@dataclass
class Place:
    """The folders of a case: where it runs, its TMPDIR, and what it writes to its streams."""

    base: Path
    here: Path = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.here = self.here or self.base / "here"
        self.tmp = self.base / "tmp"

    def make(self, case: Case) -> None:
        self.base.chmod(0o755)
        self.here.mkdir()
        self.tmp.mkdir()
        for step in case.steps:
            with contextlib.suppress(OSError):  # two damages to one file need not go together
                step.apply(self.here)
        if "TMPDIR missing" in case.circumstances:
            self.tmp.rmdir()
        if "another user" in case.circumstances and os.getuid() == 0:
            for path in (self.here, self.tmp, *self.here.rglob("*")):
                with contextlib.suppress(FileNotFoundError):
                    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        if "TMPDIR read-only" in case.circumstances:
            self.tmp.chmod(0o555)

    def files(self) -> dict[str, tuple[int, ...]]:
        """Every file below the folder and what would change if it were written."""
        found = {}
        for folder, folders, files in os.walk(self.here):
            for name in folders + files:
                path = os.path.join(folder, name)
                status = os.lstat(path)
                written = not stat.S_ISDIR(status.st_mode) and not stat.S_ISFIFO(status.st_mode)
                found[os.path.relpath(path, self.here)] = (
                    status.st_mode,
                    *((status.st_size, status.st_mtime_ns, status.st_ino) if written else ()),
                )
        return found

    def read(self, name: str) -> bytes:
        try:
            with open(self.base / name, "rb") as file:
                return file.read(SHOWN)
        except FileNotFoundError:
            return b""

    def mounted(self) -> dict[str, list[str]]:
        """What is left in file systems that only the command saw."""
        data = self.read("mounted")
        with contextlib.suppress(FileNotFoundError):
            (self.base / "mounted").unlink()
        return json.loads(data) if data else {"full": [], "tmp": []}

    def remove(self) -> None:
        for folder, folders, _ in os.walk(self.base):
            for name in folders:
                with contextlib.suppress(OSError):
                    os.chmod(os.path.join(folder, name), 0o700)
        shutil.rmtree(self.base, ignore_errors=True)


class _Child:
    """The fork: becomes what a new interpreter would be, then runs the command."""

    def __init__(
        self, sandbox: Sandbox, case: Case, place: Place, terminal: int, start: int
    ) -> None:
        self.sandbox, self.case, self.place, self.terminal = sandbox, case, place, terminal
        self.start = start  # says that the command is about to start
        self.mounts: dict[str, Path] = {}

    def live(self, words: list[str]) -> NoReturn:
        code = 70
        try:
            self._set_up(words)
            code = self._call()
        except BaseException:  # noqa: BLE001 - nothing may return into the caller's copy
            traceback.print_exc()
        finally:
            self._list_mounts()
            os._exit(code)

    def _set_up(self, words: list[str]) -> None:
        os.setsid()
        faulthandler.disable()  # pytest turns it on
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.chdir(self.place.here)
        os.environ.update(TMPDIR=str(self.place.tmp), COLUMNS="100", TERM="xterm")
        tempfile.tempdir = None
        atexit._clear()
        sys.argv = ["nlpkit", *words]
        self.report = os.open(self.place.base / "mounted", os.O_CREAT | os.O_RDWR, 0o600)
        self._open_streams()
        self._limit()
        if "another user" in self.case.circumstances and os.getuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            resource.setrlimit(resource.RLIMIT_NPROC, (100, 100))
            os.setuid(NOBODY)

    def _open_streams(self) -> None:
        circumstances = self.case.circumstances
        for number, name in ((0, "in"), (1, "out"), (2, "err")):
            if f"{('stdin', 'stdout', 'stderr')[number]} closed" in circumstances:
                os.close(number)
                continue
            handle = self._open_stream(number, name)
            os.dup2(handle, number)
            os.close(handle)
        sys.stdin = sys.__stdin__ = self._stream(0, "r", "strict")  # type: ignore[misc]
        sys.stdout = sys.__stdout__ = self._stream(1, "w", "strict")  # type: ignore[misc]
        sys.stderr = sys.__stderr__ = self._stream(2, "w", "backslashreplace")  # type: ignore[misc]

    def _open_stream(self, number: int, name: str) -> int:
        if number == 0:
            there = self.case.stdin and os.path.exists(self.case.stdin)
            return os.open(self.case.stdin if there else os.devnull, os.O_RDONLY)
        if number == 1 and "stdout full" in self.case.circumstances:
            return os.open("/dev/full", os.O_WRONLY)
        if number == 1 and "stdout without reader" in self.case.circumstances:
            reading, writing = os.pipe()
            os.close(reading)
            return writing
        if self.terminal >= 0:
            return os.dup(self.terminal)
        return os.open(self.place.base / name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)

    def _stream(self, number: int, mode: str, errors: str) -> io.TextIOWrapper | None:
        try:
            os.fstat(number)
        except OSError:
            return None  # as Python does when it starts
        buffering = 1 if number == 2 else -1
        return open(number, mode, buffering, "utf-8", errors, closefd=False)

    def _limit(self) -> None:
        limits, circumstances = self.sandbox.limits, self.case.circumstances
        cpu = 2 + int(limits.work(self.case) + limits.grace)  # if all else fails
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 5))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        largest = 512 << 20
        if "folder full" in circumstances:
            self.mounts["full"] = self.place.here / "full"
        if "TMPDIR full" in circumstances:
            self.mounts["tmp"] = self.place.tmp
        if self.mounts and not all(map(_mount_small, self.mounts.values())):
            self.mounts, largest = {}, FULL_SIZE  # files that may not grow are the next best
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
        memory = _virtual() + limits.memory
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    def _call(self) -> int:
        """The exit code, as the interpreter would find it."""
        code = 0
        try:
            os.write(self.start, b"x")
            os.close(self.start)
            self.sandbox.entry()
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else int(error.code is not None)
        except BaseException:  # noqa: BLE001 - this is where a traceback would be shown
            if sys.stderr is not None:
                traceback.print_exc()
            code = 1
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        atexit._run_exitfuncs()
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
        except (OSError, ValueError):
            if sys.stderr is not None:
                sys.stderr.write("Exception ignored in: stdout\n")
            code = 120
        if sys.stderr is not None:
            sys.stderr.flush()
        return code

    def _list_mounts(self) -> None:
        if self.mounts:
            left = {name: sorted(os.listdir(path)) for name, path in self.mounts.items()}
            left["full"] = [f"full/{name}" for name in left.get("full", [])]
            os.write(self.report, json.dumps({"tmp": [], **left}).encode())


def warm_environment() -> None:
    """Before torch and numba are imported: one thread each, in ways that survive a fork."""
    os.environ.update(_WARM)


def settle(sandbox: Sandbox) -> None:
    """After the last import: what is there now is shared by all forks and never collected."""
    gc.collect()
    gc.freeze()
    pid = os.fork()
    if not pid:
        os._exit(0)
    sandbox.floor = 1024 * os.wait4(pid, 0)[2].ru_maxrss


@contextlib.contextmanager
def _writers(case: Case, place: Place) -> Iterator[None]:
    """A process at the other end of each FIFO."""
    writers = []
    for step in case.steps:
        if step.what == "fifo":
            pid = os.fork()
            if not pid:
                try:
                    with open(place.here / step.path, "wb") as out:
                        out.write(step.data)
                finally:
                    os._exit(0)
            writers.append(pid)
    try:
        yield
    finally:
        for pid in writers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _send(pid: int, number: int) -> None:
    """To the command and the processes that it started, as a terminal does."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
        return
    with contextlib.suppress(ProcessLookupError):  # it has no group of its own yet
        os.kill(pid, number)


def _drain(master: int) -> bytes:
    data = b""
    os.set_blocking(master, False)
    with contextlib.suppress(OSError):
        while chunk := os.read(master, 1 << 16):
            data += chunk
    return data


def _cpu_seconds(pid: int) -> float:
    """The time that a process has worked."""
    try:
        return time.clock_gettime(~pid << 3 | 2)  # what clock_getcpuclockid(3) computes
    except OSError:
        return 0.0  # it has just ended


def _mount_small(path: Path) -> bool:
    """A file system of a few pages that only this process sees; whether that is allowed."""
    new_namespace, recursive, private = 0x20000, 0x4000, 0x40000
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "unshare") or library.unshare(new_namespace):
        return False
    if library.mount(b"none", b"/", None, recursive | private, None):
        return False
    options = f"size={FULL_SIZE},mode=777".encode()
    return library.mount(b"tmpfs", os.fsencode(path), b"tmpfs", 0, options) == 0


def _virtual() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
