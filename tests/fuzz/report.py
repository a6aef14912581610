"""What was tried, by command, and each distinct fault with a line of shell that shows it."""

from __future__ import annotations

import signal
import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from .case import Case
from .sandbox import Outcome

COLUMNS = ("tried", "ok", "refused", "failed")


@dataclass
class Finding:
    """A fault: how often, the case that shows it best, and how it ended."""

    fault: str
    command: str
    case: Case
    outcome: Outcome
    count: int = 0


@dataclass
class Tally:
    """Counts by command, and findings by fault."""

    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    findings: dict[tuple[str, str], Finding] = field(default_factory=dict)
    sorts: Counter[str] = field(default_factory=Counter)  # of trouble, see below
    slowest: float = 0.0
    largest: int = 0
    seconds: float = 0.0

    def add(self, case: Case, outcome: Outcome, fault: str, refused: bool) -> bool:
        """Count a case; whether its fault is a new one."""
        row = self.counts.setdefault(case.command, dict.fromkeys(COLUMNS, 0))
        row["tried"] += 1
        self.sorts.update(set(sorts(case)))
        row["failed" if fault else "refused" if refused else "ok"] += 1
        self.slowest = max(self.slowest, outcome.seconds)
        self.largest = max(self.largest, outcome.peak)
        if not fault:
            return False
        key = fault_key(case, fault)
        new = key not in self.findings
        finding = self.findings.setdefault(key, Finding(fault, case.command, case, outcome))
        finding.count += 1
        return new

    def merge(self, other: Tally) -> None:
        """Add what another process counted."""
        for command, row in other.counts.items():
            mine = self.counts.setdefault(command, dict.fromkeys(COLUMNS, 0))
            for column in COLUMNS:
                mine[column] += row[column]
        for key, finding in other.findings.items():
            if key in self.findings:
                self.findings[key].count += finding.count
            else:
                self.findings[key] = finding
        self.sorts.update(other.sorts)
        self.slowest = max(self.slowest, other.slowest)
        self.largest = max(self.largest, other.largest)

    def total(self, column: str) -> int:
        return sum(row[column] for row in self.counts.values())


def sorts(case: Case) -> Iterator[str]:
    """The sorts of trouble in a case that are worth counting."""
    yield from case.circumstances
    if case.signal:
        yield signal.Signals(case.signal).name
    for step in case.steps:
        if step.what == "fifo":
            yield "FIFO"
        elif step.what == "mode" and not step.number:
            yield "unreadable file"
        elif step.what == "write" and step.times > 1:
            yield "a million lines" if step.data.endswith(b"\n") else "a line of many MB"
        elif step.what in ("copy", "link", "folder", "mode"):
            continue
        elif ".checkpoint" in step.path:
            yield "damaged checkpoint"
        elif step.path == "ckpt.pt":
            yield "damaged nanoGPT file"
        elif "/" in step.path:
            yield "damaged model"


def fault_key(case: Case, fault: str) -> tuple[str, str]:
    """A traceback is one fault wherever it happens, and so is a death or a signal that nobody
    handles; other faults belong to their command."""
    anywhere = " at nlpkit/" in fault or case.signal or "Ctrl-C" in fault or "dies of" in fault
    return ("" if anywhere else case.command, fault)


def table(tally: Tally) -> str:
    """Tried, ok, refused and failed for each command."""
    width = max(map(len, [*tally.counts, "command"]))
    lines = [f"{'command':<{width}}" + "".join(f"{column:>9}" for column in COLUMNS)]
    for command, row in tally.counts.items():
        lines.append(f"{command:<{width}}" + "".join(f"{row[column]:>9,}" for column in COLUMNS))
    totals = "".join(f"{tally.total(column):>9,}" for column in COLUMNS)
    lines.append(f"{'all':<{width}}{totals}")
    speed = tally.total("tried") / max(tally.seconds, 1e-9)
    lines.append(
        f"{tally.seconds:.0f} s, {speed:.1f} cases a second; slowest {tally.slowest:.1f} s, "
        f"most memory {tally.largest / 1e6:,.0f} MB"
    )
    lines += [f"{count:>9,}  {sort}" for sort, count in tally.sorts.most_common()]
    return "\n".join(lines)


def describe(finding: Finding) -> str:
    """A fault, the lines of shell that show it, and the end of what was said on stderr."""
    lines = finding.outcome.err.strip().splitlines()
    said = lines[:6] if finding.outcome.killed else lines[-6:]
    shell = textwrap.indent(finding.case.shell(), "    ")
    err = textwrap.indent("\n".join(line[:200] for line in said), "    | ")
    times = f"{finding.count} times" if finding.count > 1 else "once"
    head = f"{finding.command}: {finding.fault} ({times}, first as case {finding.case.number})"
    return f"{head}\n{shell}\n{err}"
