"""Kills every trainer wherever that may hurt, and looks at what is left.

    CHAOS_SECONDS=60 CHAOS_SEED=2 python tests/chaos/kills.py [TRAINER]

For each trainer: death before every single change to files (a run that saves a checkpoint after
each step), death at random moments, and a disk that is full from every change on, from some size of
a file on, and in earnest (a small tmpfs, for root). Half of the runs replace an older model, and
some have a system that cannot exchange two folders. After each of them:

- the old model or the new one is there, whole, and a command can use it; without an old one, none
  or the new one: never neither, never a part;
- a checkpoint that is there can be resumed, and the model is bit for bit that of a run to which
  nothing happened; without a checkpoint the same command trains it again;
- a full disk is an error of one line and leaves no temporary files.

Attacks come in a random order (``CHAOS_SEED``), one trainer after the other, until
``CHAOS_SECONDS`` are over (600 unless told; 0 tries everything).
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from model_kinds import MODEL, Kind, weights, write_data
from warm import Fault, Outcome, Warm

# Short runs: what counts is how often they write, not what they learn.
SHORT = {
    "names": ["--epochs", "3", "--layers", "1"],
    "gpt": ["--max-iters", "4"],
    "tag": ["--epochs", "2", "--affixes", "no", "--batch-tokens", "32"],
    "classify": ["--epochs", "3"],
    "word2vec": ["--epochs", "2", "--checkpoint-every", "0.001"],
    "lm": ["--max-iters", "4"],
    "bert": ["--max-iters", "4"],
    "elmo": ["--epochs", "2"],
    "qa": ["--epochs", "2"],
    "seq2seq": ["--max-iters", "4"],
    "vectors": ["--epochs", "3"],
}
TRAINERS = {
    "names gpt": Kind("names", ("--model", "gpt")),
    "names lstm": Kind("names", ("--model", "lstm")),
    "names ngram": Kind("names", ("--model", "ngram")),
    "gpt char": Kind("gpt", ("--tokenizer", "char")),
    "gpt subwords": Kind("gpt", ("--tokenizer", "tokenizer.json")),
    "tag": Kind("tag", ()),
    "classify bow": Kind("classify", ("--model", "bow")),
    "classify cnn": Kind("classify", ("--model", "cnn")),
    "word2vec": Kind("word2vec", ("--threads", "1")),
    "documents": Kind("word2vec", ("--documents", "--threads", "1")),
    "glove": Kind("vectors", ("--method", "glove")),
    "lm lstm": Kind("lm", ("--model", "lstm")),
    "lm mlp": Kind("lm", ("--model", "mlp")),
    "seq2seq lstm": Kind("seq2seq", ("--model", "lstm")),
    "seq2seq transformer": Kind("seq2seq", ("--model", "transformer")),
    "bert": Kind("bert", ()),
    "elmo": Kind("elmo", ()),
    "qa": Kind("qa", ()),
    "classify bert": Kind("classify", ("--pretrained", "tiny.bert")),
}
CHECKPOINT = f"{MODEL}.checkpoint"
RANDOM_DEATHS = 8  # of each trainer, at any moment
FULL_DISKS = 4  # of each trainer and kind of full disk
KILLED = (-signal.SIGKILL, -signal.SIGALRM)
COLUMNS = (
    "deaths",
    "full disks",
    "old",
    "new",
    "none",
    "neither",
    "resumed",
    "identical",
    "faults",
)


@dataclass(frozen=True)
class Attack:
    """One run and what happens to it."""

    fault: Fault
    replaces: bool  # whether there is an older model
    disk: int = 0  # bytes that are free on it, 0 for as many as there are

    @property
    def is_death(self) -> bool:
        return bool(self.fault.die_before or self.fault.die_after)

    def __str__(self) -> str:
        happens = {name: value for name, value in vars(self.fault).items() if value}
        happens |= {"free bytes": self.disk} if self.disk else {}
        text = ", ".join(f"{name} {value}" for name, value in happens.items())
        return f"{text}; {'an older model' if self.replaces else 'no older model'}"


@dataclass
class Report:
    """What was tried on a trainer and what came of it."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    untried: int = 0  # attacks that there was no time for


class Target:
    """A trainer with the model that it makes, and an older one to be replaced."""

    def __init__(self, name: str, warm: Warm, folder: Path, patch: str = "") -> None:
        self.name, self.kind, self.warm = name, TRAINERS[name], warm
        self.fault = Fault(save_always=True, patch=patch)
        self.data, self.older, self.place = folder / "data", folder / "older", folder / "run"
        self.data.mkdir(parents=True)
        write_data(self.data)
        with self._fresh(None):
            # n-gram models draw nothing, so they need another setting as well
            self._ok("--seed", "2", *(["--order", "3"] if self.kind.command == "names" else []))
            shutil.copytree(self.place / MODEL, self.older)
        self.old = weights(self.older)
        with self._fresh(None):
            self._ok()
            self.new = weights(self.place / MODEL)
        assert self.new != self.old, "nothing tells the two models apart"
        self.largest = max(map(len, self.new.values()))  # bytes of a file
        started = time.monotonic()
        with self._fresh(None):
            self.changes = self._train(fault=self.fault).changes
        self.seconds = time.monotonic() - started

    def attacks(self, chance: random.Random) -> list[Attack]:
        """All that is to be tried, in the order that chance gives."""
        found = []
        for number in range(1, self.changes + 1):
            die = replace(self.fault, die_before=number)
            found.append(Attack(die, replaces=number % 2 == 0))
            found.append(Attack(replace(die, no_exchange=number % 3 == 0), replaces=True))
        for _ in range(RANDOM_DEATHS):
            die = replace(self.fault, die_after=chance.uniform(0.001, self.seconds))
            found.append(Attack(die, replaces=chance.random() < 0.5))
        for _ in range(FULL_DISKS):
            full = replace(self.fault, fail_before=chance.randint(1, self.changes))
            found.append(Attack(full, replaces=chance.random() < 0.5))
            small = replace(self.fault, largest_file=chance.randint(4096, self.largest + 4096))
            found.append(Attack(small, replaces=chance.random() < 0.5))
            if can_mount():
                free = chance.randint(1, 6 * self.largest + (1 << 16))
                found.append(Attack(self.fault, chance.random() < 0.5, disk=free))
        chance.shuffle(found)
        return found

    def attack(self, attack: Attack, report: Report) -> None:
        """Let it happen, then look at what is left and go on from there."""
        faults = []
        with self._fresh(attack) as make_room:
            done = self._train(*(["--force"] if attack.replaces else []), fault=attack.fault)
            if attack.is_death:  # which comes too late where rounds are as long as time allows
                report.counts["deaths"] += done.code in KILLED
            else:
                report.counts["full disks"] += 1
            faults += self._look_at_end(attack, done)
            make_room()
            state = self._state(attack)
            report.counts[state] += 1
            if state == "neither":
                faults.append(f"neither the old model nor the new one is left: {self._listing()}")
            else:
                faults += self._go_on(state, report.counts)
        report.counts["faults"] += len(faults)
        report.faults += [f"{self.name}: {attack}: {fault}" for fault in faults]

    def _train(self, *more: str, fault: Fault | None = None) -> Outcome:
        arguments = [*self.kind.train(), *SHORT[self.kind.command], *more]
        return self.warm.run(self.place, *arguments, fault=fault)

    def _ok(self, *more: str) -> None:
        done = self._train(*more)
        assert done.code == 0, done.err

    @contextlib.contextmanager
    def _fresh(self, attack: Attack | None) -> Iterator[Callable[[], None]]:
        """The place of a run as it finds it; the function ends a shortage of room there."""
        self.place.mkdir()
        try:
            with small_disk(self.place, attack.disk if attack else 0) as (shrink, make_room):
                shutil.copytree(self.data, self.place, dirs_exist_ok=True)
                if attack and attack.replaces:
                    shutil.copytree(self.older, self.place / MODEL)
                shrink()
                yield make_room
        finally:
            shutil.rmtree(self.place)

    # --- what is left ---------------------------------------------------------------------------

    def _look_at_end(self, attack: Attack, done: Outcome) -> list[str]:
        if attack.is_death:
            fine = done.code in (0, *KILLED)
            return [] if fine else [f"ended by itself with {done.code}: {done.err[-600:]}"]
        if done.code == 0:
            return []  # there was room enough
        faults = []
        last = done.err.rstrip("\n").rpartition("\n")[2]
        if done.code != 1 or "Traceback" in done.err or not last.startswith("error: "):
            faults.append(f"a full disk ended it with {done.code}: {done.err[-600:]}")
        if left := [name for name in self._listing() if name.startswith(".")]:
            faults.append(f"a full disk left {left}")
        return faults

    def _state(self, attack: Attack) -> str:
        """What a command finds at the model's place: old, new, none or neither."""
        arguments, text = self.kind.use()
        used = self.warm.run(self.place, *arguments, input=text)
        model = self.place / MODEL
        if not model.exists():
            return "neither" if attack.replaces else "none"
        found = weights(model)
        if used.code == 0 and found == self.new:
            return "new"
        return "old" if used.code == 0 and found == self.old and attack.replaces else "neither"

    def _go_on(self, state: str, counts: Counter[str]) -> list[str]:
        """The next command: resume if that is possible, else train again."""
        resumes = (self.place / CHECKPOINT).exists()
        flags = ["--resume"] if resumes else []
        done = self._train(*flags, *(["--force"] if state != "none" else []))
        what = "resuming" if resumes else "training again"
        if done.code != 0:
            return [f"{what} ended with {done.code}: {done.err[-600:]}"]
        counts["resumed"] += resumes
        if weights(self.place / MODEL) != self.new:
            return [f"{what} gave another model than a run to which nothing happened"]
        counts["identical"] += resumes
        if (self.place / CHECKPOINT).exists():
            return [f"{what} left the checkpoint"]
        return []

    def _listing(self) -> list[str]:
        return sorted(path.name for path in self.place.iterdir())


# --- a small disk -------------------------------------------------------------------------------


@functools.cache
def can_mount() -> bool:
    """Whether this process may mount a file system in memory."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as folder:
        if _mount("size=64k", folder).returncode != 0:
            return False
        _unmount(folder)
    return True


@contextlib.contextmanager
def small_disk(folder: Path, free: int) -> Iterator[tuple[Callable[[], None], Callable[[], None]]]:
    """A disk at a folder, and functions that leave so many free bytes on it, and that end this."""
    if not free:
        yield (lambda: None), (lambda: None)
        return
    _mount("size=64m", str(folder)).check_returncode()

    def shrink() -> None:
        space = os.statvfs(folder)
        used = (space.f_blocks - space.f_bfree) * space.f_frsize
        _mount(f"remount,size={used + free}", str(folder)).check_returncode()

    def make_room() -> None:
        _mount("remount,size=64m", str(folder)).check_returncode()

    try:
        yield shrink, make_room
    finally:
        _unmount(str(folder))


def _mount(options: str, folder: str) -> subprocess.CompletedProcess[bytes]:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder]
    return subprocess.run(command, capture_output=True)


def _unmount(folder: str) -> None:
    subprocess.run(["umount", folder], check=True)


# --- all of it ----------------------------------------------------------------------------------


def run(names: list[str], seconds: float, seed: int) -> dict[str, Report]:
    """Attack the trainers in turn until all is tried or the time is over."""
    until = time.monotonic() + seconds if seconds else float("inf")
    reports = {name: Report() for name in names}
    with tempfile.TemporaryDirectory(prefix="nlpkit-chaos-") as folder, Warm() as warm:
        plans = {}
        for name in names:
            target = Target(name, warm, Path(folder) / name.replace(" ", "-"))
            plans[name] = (target, target.attacks(random.Random(f"{seed} {name}")))
        while time.monotonic() < until and any(attacks for _, attacks in plans.values()):
            for name, (target, attacks) in plans.items():
                if attacks and time.monotonic() < until:
                    target.attack(attacks.pop(), reports[name])
        for name, (_, attacks) in plans.items():
            reports[name].untried = len(attacks)
    return reports


def table(reports: dict[str, Report]) -> str:
    """A line for each trainer, and one for all."""
    total = Report(sum((report.counts for report in reports.values()), Counter()))
    rows = [("trainer", *COLUMNS)]
    for name, report in {**reports, "all": total}.items():
        rows.append((name, *(str(report.counts[column]) for column in COLUMNS)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *cells[1:]]) + "\n")
    return "".join(lines)


def main() -> None:
    seed = int(os.environ.get("CHAOS_SEED", "1"))
    seconds = float(os.environ.get("CHAOS_SECONDS", "600"))
    unknown = set(sys.argv[1:]) - TRAINERS.keys()
    if unknown:
        sys.exit(f"no trainer {', '.join(unknown)}: {', '.join(TRAINERS)}")
    reports = run(sys.argv[1:] or list(TRAINERS), seconds, seed)
    sys.stdout.write(table(reports))
    if untried := sum(report.untried for report in reports.values()):
        sys.stdout.write(f"no time for {untried:,} more: CHAOS_SECONDS=0 tries everything\n")
    if not can_mount():
        sys.stdout.write("no tmpfs could be mounted: run as root to fill a real disk\n")
    faults = [fault for report in reports.values() for fault in report.faults]
    for fault in faults:
        sys.stdout.write(f"\n{fault}\n")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
