"""Commands in forks of one warm process, so that torch is loaded once and not for each of them.

``Warm`` starts ``python tests/warm.py SOCKET`` as a server. It imports what is heavy, never runs
any of it (threads do not survive a fork), and forks for each request: the fork is a process that
has seen no other command, with an empty heap of its own to spoil, and calls
``nlpkit.cli.main.main`` with the arguments of a command line, on the streams that came along.

A ``Fault`` happens to the process on the way: a signal after so many training steps, sudden death
after so many seconds or before so many changes to files, a disk that is full. Changes to files are
seen by an audit hook, which Python calls before each of them, so nothing that a writer does through
Python can be missed, and no writer has to know that it is being watched.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import gc
import importlib
import json
import os
import pkgutil
import re
import runpy
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

# what commands import on their way: the first optimizer, flags of commands, statistics
HEAVY = ("torch._dynamo", "safetensors.torch", "pydantic", "scipy.stats")
TIMEOUT = 300.0  # a net for what hangs: a busy machine takes its time
# What Python's audit hooks call the operations that change something on a disk.
CHANGES = (
    "open",
    "os.chmod",
    "os.link",
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.symlink",
    "os.truncate",
    "shutil.rmtree",
    "tempfile.mkdtemp",
    "tempfile.mkstemp",
)


@dataclass(frozen=True)
class Fault:
    """What happens to a command; the default is nothing."""

    signal: int = 0  # sent to itself ...
    after_steps: int = 0  # ... when so many records of progress are out
    die_after: float = 0.0  # seconds until it is killed
    die_before: int = 0  # the so manieth change to files never happens: it is killed
    fail_before: int = 0  # the so manieth change to files, and all after it, find the disk full
    largest_file: int = 0  # bytes of a file before the disk is full
    no_exchange: bool = False  # the system cannot let two folders change places
    save_always: bool = False  # a checkpoint after each step
    patch: str = ""  # MODULE:FUNCTION to call first, for a mistake that has to be found


@dataclass(frozen=True)
class Outcome:
    """How a command ended. ``code`` is negative when a signal killed it, as in ``subprocess``."""

    code: int
    out: str
    err: str
    changes: int  # to files, as far as it came


class Warm:
    """``with Warm() as warm: warm.run(folder, "names", "train", ...)``."""

    def __init__(self) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"}
        self._environment = environment
        self._folder = tempfile.TemporaryDirectory(prefix="nlpkit-warm-")
        self._socket = f"{self._folder.name}/socket"
        self._server = subprocess.Popen(
            [sys.executable, __file__, self._socket],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        assert self._server.stdout is not None
        if not self._server.stdout.readline():
            raise RuntimeError("the warm process ended")

    def __enter__(self) -> Warm:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the server and whatever it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._server.pid, signal.SIGKILL)
        self._server.wait()
        self._folder.cleanup()

    @property
    def command(self) -> str:
        """What a shell writes for ``nlpkit`` to have it run here, pipes and all."""
        client = Path(__file__).with_name("warm_client.py")
        return shlex.join([sys.executable, "-IS", str(client), self._socket])

    def run(
        self,
        folder: Path,
        *arguments: str,
        input: str | bytes = b"",
        fault: Fault | None = None,
        timeout: float = TIMEOUT,
        env: Mapping[str, str] | None = None,
        script: Path | None = None,
    ) -> Outcome:
        """A command in a folder, to its end. One that takes too long has code -SIGALRM.

        With ``script`` that file of Python is run instead, with the arguments.
        """
        with tempfile.TemporaryDirectory() as aside:
            given = Path(aside) / "in"
            given.write_bytes(input.encode() if isinstance(input, str) else input)
            # variables that a test has set
            changed = dict(os.environ.items() - self._environment.items())
            request = {
                "folder": str(folder),
                "arguments": arguments,
                "script": script and str(script),
                "timeout": timeout,
                "fault": asdict(fault or Fault()),
                "changes": f"{aside}/changes",
                "environment": {**changed, **(env or {})},
            }
            with (
                given.open("rb") as in_,
                open(f"{aside}/out", "wb") as out,
                open(f"{aside}/err", "wb") as err,
                socket.socket(socket.AF_UNIX) as server,
            ):
                server.connect(self._socket)
                streams = [in_.fileno(), out.fileno(), err.fileno()]
                socket.send_fds(server, [json.dumps(request).encode() + b"\n"], streams)
                answer = server.makefile().readline()
            if not answer:
                raise RuntimeError("the warm process ended")
            seen = Path(aside) / "changes"
            return Outcome(
                json.loads(answer),
                (Path(aside) / "out").read_text(encoding="utf-8", errors="replace"),
                (Path(aside) / "err").read_text(encoding="utf-8", errors="replace"),
                seen.stat().st_size if seen.exists() else 0,
            )

    def ranks(
        self, folder: Path, arguments: Sequence[Sequence[str]], script: Path | None = None
    ) -> list[Outcome]:
        """A process for each list of arguments, all at once, told what torchrun tells them."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
        size = str(len(arguments))

        def one(rank: int) -> Outcome:
            told = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": size}
            return self.run(folder, *arguments[rank], env={**address, **told}, script=script)

        with ThreadPoolExecutor(len(arguments)) as pool:
            return list(pool.map(one, range(len(arguments))))

    def ok(self, folder: Path, *arguments: str, input: str | bytes = b"") -> str:
        """What a command writes when all goes well."""
        done = self.run(folder, *arguments, input=input)
        assert done.code == 0, f"nlpkit {' '.join(arguments)}: {done.code}\n{done.err}"
        return done.out


# --- the server ---------------------------------------------------------------------------------


def one_thread() -> dict[str, str]:
    """Every option has its variable: with one thread results are the same everywhere."""
    from fuzz.commands import find_commands

    threaded = [command.name for command in find_commands() if command.find("threads")]
    names = (re.sub("[ -]", "_", name).upper() for name in threaded)
    return {f"NLPKIT_{name}_THREADS": "1" for name in names}


def serve(where: str) -> None:
    """Fork for each connection; what the command ends with is the answer."""
    _load()
    os.environ.update(one_thread())
    gc.collect()
    gc.freeze()  # what is here stays: no fork looks through it, which would copy it
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(where)
    listener.listen(64)
    waiting: dict[int, socket.socket] = {}  # who asked, by process
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        ready = select.select([listener, ended, 0], [], [])[0]
        if 0 in ready:  # whoever has started this is gone
            return
        if listener in ready:
            client = listener.accept()[0]
            request, streams = _receive(client)
            child = os.fork()
            if child == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _run(request, streams)
            for descriptor in streams:
                os.close(descriptor)
            waiting[child] = client
        if ended in ready:
            os.read(ended, 4096)
            _answer(waiting)


def _load() -> None:
    """Import what commands import on their way, and run none of it."""
    import nlpkit

    own = [one.name for one in pkgutil.walk_packages(nlpkit.__path__, "nlpkit.")]
    for name in (*HEAVY, *own):
        if not name.endswith("__main__"):
            importlib.import_module(name)
    with contextlib.suppress(ImportError):  # typer imports it for the first flag of a command
        importlib.import_module("typer._adapters")
    from numba.core.registry import cpu_target

    cpu_target.target_context.refresh()  # what the first kernel of a process loads
    cpu_target.typing_context.refresh()


def _receive(client: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """A request, and the three streams that came with it."""
    data, streams, _, _ = socket.recv_fds(client, 1 << 16, 3)
    while not data.endswith(b"\n"):
        data += client.recv(1 << 16)
    return json.loads(data), list(streams)


def _answer(waiting: dict[int, socket.socket]) -> None:
    """Tell those whose commands have ended."""
    while waiting:
        process, status = os.waitpid(-1, os.WNOHANG)
        if not process:
            return
        with waiting.pop(process) as client, contextlib.suppress(OSError):
            client.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _run(request: dict[str, Any], streams: list[int]) -> NoReturn:
    """In the fork: the streams, the fault, then the command; its code is that of the process."""
    import nlpkit.cli.main
    import nlpkit.faults

    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - for as long as it lives
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding="utf-8", closefd=False)  # noqa: SIM115
    os.chdir(request["folder"])
    os.environ.update(request["environment"])
    importlib.reload(nlpkit.faults)  # which has looked for its variable
    sys.argv = ["nlpkit", *request["arguments"]]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    fault = Fault(**request.get("fault", {}))
    # the default action of this signal ends a process at once and runs none of its code
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, fault.die_after or request.get("timeout", TIMEOUT))
    _prepare(fault, request.get("changes"))
    with contextlib.ExitStack() as stack:
        stack.push(_end)
        if request.get("script"):
            runpy.run_path(request["script"], run_name="__main__")
            sys.exit()
        nlpkit.cli.main.main()
    raise AssertionError("a command returned")


def _end(kind: Any, error: BaseException | None, traceback: Any) -> NoReturn:
    """End as the interpreter does, but leave its memory to the system: that takes a second."""
    code = error.code if isinstance(error, SystemExit) else 1
    if not isinstance(error, SystemExit):
        sys.excepthook(kind, error, traceback)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _prepare(fault: Fault, record: str | None) -> None:
    if fault.patch:
        module, _, function = fault.patch.partition(":")
        getattr(importlib.import_module(module), function)()
    if fault.save_always:
        from nlpkit.training.run import Run

        Run.save_seconds = -1.0
    if fault.after_steps:
        from nlpkit.training import loop as training
        from nlpkit.vectors import glove
        from nlpkit.word2vec import train

        _signal_after(training.Trainer, "fit", fault)
        _signal_after(train.Word2VecTrainer, "train", fault)
        _signal_after(glove.GloveTrainer, "train", fault)
    if fault.largest_file:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # as a full disk: an error, no signal
        resource.setrlimit(resource.RLIMIT_FSIZE, (fault.largest_file, fault.largest_file))
    if record is not None:
        _watch_changes(fault, os.open(record, os.O_WRONLY | os.O_CREAT | os.O_APPEND))


def _signal_after(trainer: Any, name: str, fault: Fault) -> None:
    """The signal comes while the step's record is being looked at, so it is always the same."""
    generator: Callable[[Any], Iterator[Any]] = getattr(trainer, name)

    def watched(self: Any) -> Iterator[Any]:
        for step, progress in enumerate(generator(self), 1):
            if step == fault.after_steps:
                os.kill(os.getpid(), fault.signal)
            yield progress

    setattr(trainer, name, watched)


def _watch_changes(fault: Fault, record: int) -> None:
    """Count changes below the working folder, one byte each, and let the fault happen."""
    here = os.getcwd()
    count = 0

    def watch(event: str, details: tuple[Any, ...]) -> None:
        nonlocal count
        if event == "ctypes.dlsym" and fault.no_exchange and details[1] == "renameat2":
            raise AttributeError("renameat2")
        if event not in CHANGES or not _is_change(event, details, here):
            return
        count += 1
        if count == fault.die_before:
            os.kill(os.getpid(), signal.SIGKILL)
        os.write(record, b".")
        undoing = event in ("os.remove", "os.rmdir", "shutil.rmtree")
        if fault.fail_before and count >= fault.fail_before and not undoing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(details[0]))

    sys.addaudithook(watch)


def _is_change(event: str, details: tuple[Any, ...], here: str) -> bool:
    paths = [os.fsdecode(part) for part in details[:2] if isinstance(part, str | bytes)]
    if event == "open":
        paths = paths[:1]
        flags = details[2] or 0
        if not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            return False
    return any(os.path.abspath(path).startswith(here + os.sep) for path in paths)


if __name__ == "__main__":
    serve(sys.argv[1])
