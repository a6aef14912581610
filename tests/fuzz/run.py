"""Runs cases until the time is over, prints the table, and exits with 1 if there was a fault."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from itertools import count
from pathlib import Path

from .case import Case
from .commands import Command, find_commands
from .generate import MUTATIONS, RARE, Generator
from .judge import is_refused, judge
from .reduce import reduce_case
from .report import Tally, describe, fault_key, table
from .roles import ENDLESS_COMMANDS
from .samples import Samples, good_case, prepare, storage
from .sandbox import Outcome, Sandbox, settle, warm_environment


def main() -> int:
    options = _parse()
    warm_environment()
    from nlpkit.cli.main import main as entry

    commands = find_commands()
    sandbox = Sandbox(storage(), entry)
    _say(f"{len(commands)} commands; making samples in {sandbox.root}")
    samples = prepare(commands, sandbox)
    for case, outcome in samples.failures:
        _say(f"a sample could not be made:\n{case.shell()}\n{outcome.err}")
    for case in warm(commands, samples, sandbox):
        _say(f"a good command line is refused, so that bad ones tell little:\n{case.shell()}")
    generator = Generator(commands, samples, options.seed, options.only, options.mutation)
    if options.case is not None:
        return show(generator, sandbox, options.case)
    numbers = range(options.cases) if options.cases else count()
    tally = Tally()
    with contextlib.suppress(KeyboardInterrupt):  # what was found until then is worth a report
        run(generator, sandbox, numbers, tally, options.seconds, options.reduce)
    _print(table(tally))
    for finding in sorted(tally.findings.values(), key=lambda finding: -finding.count):
        _print(f"\n{describe(finding)}")
    faults = len(tally.findings)
    again = f"FUZZ_SEED={options.seed} make fuzz tries the same cases"
    _print(f"\n{faults} distinct faults; {again}" if faults else "no faults")
    # an interrupted run may have come too late or too early for a checkpoint on a busy machine
    broken = [c for c, outcome in samples.failures if outcome.code != 130 or judge(c, outcome)]
    return 1 if tally.findings or broken else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    seconds = float(os.environ.get("FUZZ_SECONDS", "60"))
    seed = int(os.environ.get("FUZZ_SEED", "1"))
    parser.add_argument("--seconds", type=float, default=seconds, help="time for new cases")
    parser.add_argument("--seed", type=int, default=seed, help="which list of cases")
    cases = int(os.environ.get("FUZZ_CASES", "0"))
    parser.add_argument("--cases", type=int, default=cases, help="no more cases than this")
    parser.add_argument("--case", type=int, help="run this one case and show all of it")
    parser.add_argument("--only", default="", help="commands whose names start with this")
    names = [mutate.__name__ for mutate in (*dict(MUTATIONS), *RARE)]
    parser.add_argument("--mutation", default="", choices=names, help="only cases made like this")
    parser.add_argument("--reduce", type=float, default=10.0, help="seconds to shrink each fault")
    return parser.parse_args()


def run(
    generator: Generator,
    sandbox: Sandbox,
    numbers: Iterable[int],
    tally: Tally,
    seconds: float = 60.0,
    shrink: float = 10.0,
) -> None:
    """Try cases until their time is over; to reduce what fails comes on top of it."""
    for number in numbers:
        if tally.seconds >= seconds:
            break
        started = time.monotonic()
        case = generator.case(number)
        outcome = attempt(sandbox, case)
        fault = judge(case, outcome)
        known = outcome.late and fault_key(case, fault) in tally.findings
        if fault and not known and not happens_again(sandbox, case, 1 if outcome.late else 3):
            _say(f"case {number}, {case.command}: {fault}, but not when it was tried again")
            _say(outcome.err[-2000:])
            fault = ""
        is_new = tally.add(case, outcome, fault, is_refused(outcome))
        tally.seconds += time.monotonic() - started
        if is_new:
            _say(f"case {number}, {case.command}: {fault}")
        if is_new and not outcome.late:  # else each try would take as long
            finding = tally.findings[fault_key(case, fault)]
            finding.case = reduce_case(case, lambda one: judge(one, sandbox.run(one)), shrink)


def happens_again(sandbox: Sandbox, case: Case, tries: int) -> bool:
    """Whether a case shows a fault in one of some more tries.

    Signals and limits of time hit a busy machine at other moments than an idle one; what nobody
    can see again nobody can mend.
    """
    return any(judge(case, sandbox.run(case)) for _ in range(tries))


def attempt(sandbox: Sandbox, case: Case) -> Outcome:
    """Run a case; if it is late, it may have had kernels to compile, so it gets another chance."""
    outcome = sandbox.run(case)
    if not outcome.late or case.endless or outcome.cpu < sandbox.limits.cpu / 2:
        return outcome
    patient = replace(sandbox.limits, cpu=60, wall=120.0)
    replace(sandbox, limits=patient).run(replace(case, circumstances=()))
    return sandbox.run(case)


def warm(commands: list[Command], samples: Samples, sandbox: Sandbox) -> list[Case]:
    """Run every command here once, so that its forks find all modules and kernels loaded.

    Those that fail come back.
    """
    refused = []
    with tempfile.TemporaryDirectory(dir=sandbox.root) as folder:
        for command in commands:
            if command.name not in ENDLESS_COMMANDS:
                case = good_case(command, samples)
                place = Path(folder, command.name.replace(" ", "-"))
                place.mkdir()
                for step in case.steps:
                    step.apply(place)
                if _call_here(sandbox, case.words(), place):
                    refused.append(case)
    # a command leaves signals as they suit the end of a process
    signal.signal(signal.SIGINT, signal.default_int_handler)
    settle(sandbox)
    return refused


def _call_here(sandbox: Sandbox, words: list[str], folder: Path) -> object:
    """The exit code of a call in this process; what it says does not matter."""
    before, arguments = os.getcwd(), sys.argv
    streams = sys.stdin, sys.stdout, sys.stderr
    saved = [os.dup(number) for number in range(3)]
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        os.chdir(folder)
        sys.argv = ["nlpkit", *words]
        for number in range(3):
            os.dup2(nothing, number)
        sys.stdin, sys.stdout, sys.stderr = (
            open(number, mode, closefd=False)  # noqa: SIM115 - they live on
            for number, mode in enumerate("rww")
        )
        try:
            sandbox.entry()
        except SystemExit as end:
            return end.code
        return 0
    finally:
        os.chdir(before)
        sys.argv = arguments
        sys.stdin, sys.stdout, sys.stderr = streams
        for number, handle in enumerate(saved):
            os.dup2(handle, number)
            os.close(handle)
        os.close(nothing)


def show(generator: Generator, sandbox: Sandbox, number: int) -> int:
    """One case with all that is known of it."""
    case = generator.case(number)
    outcome = attempt(sandbox, case)
    fault = judge(case, outcome)
    _print(case.shell())
    _print(f"{replace(outcome, err='', out=outcome.out[:2000])}\n{outcome.err}")
    _print(fault or "no fault")
    return 1 if fault else 0


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
