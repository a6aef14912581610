"""The fuzzer itself: it finds every command, and sees what a broken one does."""

from __future__ import annotations

import gc
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fuzz.case import Case, Step
from fuzz.commands import Command, Parameter, find_commands
from fuzz.generate import Generator
from fuzz.judge import is_refused, judge
from fuzz.reduce import reduce_case
from fuzz.report import Tally, describe, sorts, table
from fuzz.run import run, warm
from fuzz.samples import Checkpoint, Samples, prepare, write_files
from fuzz.sandbox import Limits, Outcome, Sandbox

COMMANDS = find_commands()
LIMITS = Limits(cpu=0.5, wall=1.0, endless=0.2, grace=0.3, memory=300 << 20)


@pytest.fixture
def samples(tmp_path: Path) -> Samples:
    folder = tmp_path / "samples"
    folder.mkdir()
    found = Samples(folder)
    write_files(found)
    return found


# --- finding commands ---------------------------------------------------------------------------


def test_every_command_of_the_table_is_found_with_its_parameters() -> None:
    from nlpkit.cli.main import COMMANDS as TABLE

    assert {command.name.split()[0] for command in COMMANDS} == set(TABLE)
    by_name = {command.name: command for command in COMMANDS}
    assert {"tokenize", "gpt train", "vectors evaluate analogies", "demo"} <= set(by_name)
    train = by_name["gpt train"]
    assert train.find("max_iters").kind == "integer"  # type: ignore[union-attr]
    assert train.find("max_iters").low == 1  # type: ignore[union-attr]
    assert "adamw" in train.find("optimizer").choices  # type: ignore[union-attr]
    assert train.find("resume").kind == "flag"  # type: ignore[union-attr]


def test_a_seed_stands_for_one_list_of_cases(samples: Samples) -> None:
    first, again, other = (Generator(COMMANDS, samples, seed) for seed in (1, 1, 2))
    cases = [first.case(number) for number in range(2400)]
    assert cases == [again.case(number) for number in range(2400)]
    assert cases != [other.case(number) for number in range(2400)]
    assert {case.command for case in cases} == {command.name for command in COMMANDS}


def test_sorts_of_trouble_that_few_commands_meet_are_not_rare(samples: Samples) -> None:
    samples.path("ckpt.pt").write_bytes(b"x" * 100)
    samples.add("foreign", "ckpt.pt")
    samples.path("unfinished").mkdir()
    samples.path("unfinished/state.json").write_text('{"step": 1}')
    arguments = (("text.txt",), ("--output", "new.model"))
    unfinished = Checkpoint("unfinished", "gpt train", arguments, ("text.txt",))
    samples.checkpoints.append(unfinished)
    generator = Generator(COMMANDS, samples, 1)
    counts = Counter(sort for number in range(2500) for sort in set(sorts(generator.case(number))))
    for sort in (
        *("FIFO", "unreadable file", "a line of many MB", "a million lines"),
        *("damaged checkpoint", "damaged nanoGPT file"),
    ):
        assert counts[sort] >= 12, counts


def test_samples_are_made_once_for_two_processes_that_need_them_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(commands: Any, samples: Samples, sandbox: Sandbox) -> None:
        with open(tmp_path / "made", "a") as made:
            made.write("x")
        for number in range(5):
            samples.path(str(number)).write_text("whole")
            time.sleep(0.1)

    monkeypatch.setattr("fuzz.samples._make", make)
    sandbox = Sandbox(tmp_path, fails)
    children = []
    for _ in range(2):
        pid = os.fork()
        if not pid:
            found = prepare([], sandbox)
            whole = all(found.path(str(number)).read_text() == "whole" for number in range(5))
            os._exit(0 if whole else 1)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0]
    assert (tmp_path / "made").read_text() == "x"
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 1


# --- what a broken command does -----------------------------------------------------------------


def raises() -> None:
    raise ValueError("no such thing")


def writes_half_a_file() -> None:
    Path("out.txt").write_text("hal")
    fails()


def changes_its_input() -> None:
    Path("in.txt").write_text("")


def leaves_a_temporary_file() -> None:
    tempfile.mkstemp()


def hangs() -> None:
    while True:
        time.sleep(0.1)


def hangs_deaf() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    time.sleep(300)


def ignores_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    hangs()


def allocates() -> None:
    bytearray(2 << 30)


def crashes() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def fails() -> None:
    sys.stderr.write("error: no such file: x (try: another)\n")
    raise SystemExit(1)


def fails_twice() -> None:
    sys.stderr.write("error: one\n")
    fails()


def fails_in_two_lines() -> None:
    sys.stderr.write("error: one\nand two\n")
    raise SystemExit(1)


def fails_silently() -> None:
    raise SystemExit(1)


def exits_strangely() -> None:
    raise SystemExit(3)


def warns() -> None:
    sys.stderr.write("/nlpkit/x.py:3: RuntimeWarning: a division by zero\n  x = 1 / y\n")


def prints_nan() -> None:
    sys.stdout.write('{"loss": NaN}\n')


def writes_all_of_a_file() -> None:
    Path("out.txt").write_text("all")


def prints_json() -> None:
    sys.stdout.write('{"loss": 1.5}\n')


def is_interrupted() -> None:
    try:
        while True:
            sum(range(1000))
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        raise SystemExit(130) from None


def run_entry(entry: Any, folder: Path, **changes: Any) -> tuple[Case, Outcome]:
    case = Case(
        number=1,
        command="tokenize",
        arguments=(("in.txt",), ("--output", "out.txt"), ("--json",)),
        steps=(Step("write", "in.txt", b"a b\n"),),
        outputs=("out.txt",),
        **changes,
    )
    return case, Sandbox(folder, entry, LIMITS).run(case)


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        (raises, "ValueError at ?"),
        (writes_half_a_file, "leaves out.txt (exit code 1)"),
        (changes_its_input, "changes in.txt (exit code 0)"),
        (leaves_a_temporary_file, "leaves tmp* in TMPDIR"),
        (hangs, "takes too long"),
        (ignores_interrupts, "does not stop on Ctrl-C"),
        (allocates, "MemoryError at ?"),
        (crashes, "dies of SIGSEGV"),
        (fails_twice, "2 error lines"),
        (fails_in_two_lines, "an error of more than one line"),
        (fails_silently, "exit code 1, no error line"),
        (exits_strangely, "exit code 3: nothing on stderr"),
        (warns, "a warning of Python: RuntimeWarning: a division by zero"),
        (prints_nan, "what should be JSON on stdout is none"),
        (is_interrupted, "takes too long"),
        (fails, ""),
        (writes_all_of_a_file, ""),
        (prints_json, ""),
    ],
)
def test_a_broken_command_is_seen_and_a_good_one_is_not(
    entry: Any, fault: str, tmp_path: Path
) -> None:
    case, outcome = run_entry(entry, tmp_path)
    assert judge(case, outcome) == fault, outcome
    assert list(tmp_path.iterdir()) == []


def test_endless_work_may_be_ended_by_ctrl_c(tmp_path: Path) -> None:
    case, outcome = run_entry(is_interrupted, tmp_path, endless=True)
    assert (outcome.code, judge(case, outcome)) == (130, "")


def test_much_work_that_was_asked_for_may_be_ended(samples: Samples) -> None:
    generator = Generator(find_commands(), samples, 1, "names report", "other_options")
    cases = [generator.case(number) for number in range(300)]
    much = [case for case in cases if ("--count", "100000") in case.arguments]
    assert much
    assert all(case.endless for case in much)
    assert not all(case.endless for case in cases)


def test_a_command_that_waits_for_nothing_is_not_waited_for(
    samples: Samples, tmp_path: Path
) -> None:
    limits = Limits(wall=60.0, idle=0.2)
    wanted = [command for command in COMMANDS if command.name == "sentences"]
    tally = Tally()
    started = time.monotonic()
    for entry in (hangs_deaf, hangs_deaf):
        run(Generator(wanted, samples, 1), Sandbox(tmp_path, entry, limits), range(3), tally)
    assert time.monotonic() - started < 20
    (finding,) = tally.findings.values()
    assert (finding.fault, finding.count) == ("does not stop on Ctrl-C", 6)


def shows_its_surroundings() -> None:
    sys.stdout.write(f"{sys.stdin is None} {os.getcwd()} {sys.argv} {sys.stdout.isatty()}")
    with open("/dev/null", "w") as out:
        out.write("x")
    limits = resource.getrlimit(resource.RLIMIT_AS)
    sys.stdout.write(f" {limits[0] > 0} {Path(tempfile.gettempdir()).name}\n")


def test_streams_and_surroundings_are_what_was_asked_for(tmp_path: Path) -> None:
    _, outcome = run_entry(shows_its_surroundings, tmp_path, circumstances=("stdin closed",))
    assert outcome.out.startswith(b"True ")
    assert b"'nlpkit', 'tokenize', 'in.txt'" in outcome.out
    assert outcome.out.endswith(b"False True tmp\n")
    _, outcome = run_entry(shows_its_surroundings, tmp_path, circumstances=("terminal",))
    assert "True True tmp" in outcome.err
    case, outcome = run_entry(shows_its_surroundings, tmp_path, circumstances=("stdout full",))
    assert judge(case, outcome).startswith("exit code 120")


# --- reducing and reporting ---------------------------------------------------------------------


def test_a_fault_is_reduced_to_what_it_takes() -> None:
    case = Case(
        number=1,
        command="tokenize",
        arguments=(("in.txt",), ("--lower",), ("--jobs", "-1"), ("--json",)),
        steps=(Step("folder", "x"), Step("write", "in.txt", b"some words, then \xff and more")),
        circumstances=("terminal", "TMPDIR missing"),
        signal=2,
    )

    def fault(one: Case) -> str:
        data = b"".join(step.data for step in one.steps)
        return "bad" if b"\xff" in data and ("--jobs", "-1") in one.arguments else ""

    small = reduce_case(case, fault)
    assert small == Case(
        1, "tokenize", (("--jobs", "-1"),), steps=(Step("write", "in.txt", b"\xff"),)
    )
    assert small.shell() == "printf '\\377' > in.txt\nnlpkit tokenize --jobs -1 < /dev/null"


def test_shell_lines_make_the_same_files(tmp_path: Path) -> None:
    (tmp_path / "good").mkdir()
    (tmp_path / "good/config.json").write_bytes(b"{}")
    steps = (
        Step("copy", "m", source=str(tmp_path / "good")),
        Step("append", "m/config.json", b"'%s'\\\x00\xff\n"),
        Step("patch", "m/config.json", b"!", number=1),
        Step("write", "cut", b"123456"),
        Step("cut", "cut", number=3),
        Step("write", "many lines", b"a\n", times=2500),
        Step("write", "a\n'b", b"x", times=2500),
        Step("folder", "folder"),
        Step("link", "link", source="m"),
        Step("write", "gone"),
        Step("remove", "gone"),
        Step("mode", "cut", number=0o400),
    )
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    for step in steps:
        step.apply(tmp_path / "here")
    lines = "\n".join(step.shell() for step in steps)
    subprocess.run(["bash", "-ec", lines], cwd=tmp_path / "there", check=True)

    def files(folder: Path) -> dict[str, Any]:
        return {
            str(path.relative_to(folder)): path.read_bytes()
            if path.is_file()
            else path.is_symlink()
            for path in folder.rglob("*")
        }

    assert files(tmp_path / "here") == files(tmp_path / "there")
    assert len(files(tmp_path / "here")) == 7


def test_a_command_that_breaks_is_in_the_table_with_a_line_that_shows_it(
    samples: Samples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nlpkit.cli import main, options

    def broken(*arguments: Any) -> list[str]:
        raise ValueError("deliberately")

    monkeypatch.setattr(options, "resolve_inputs", broken)
    wanted = [command for command in COMMANDS if command.name in ("detokenize", "sentences")]
    sandbox = Sandbox(tmp_path, main.main)
    tally = Tally()
    run(Generator(wanted, samples, 1), sandbox, range(8), tally, shrink=1)
    assert tally.total("tried") == 8
    assert tally.total("failed") > 3
    (finding,) = tally.findings.values()
    assert finding.fault.startswith("ValueError at nlpkit/cli/options.py")
    assert f"\n    nlpkit {finding.command} < /dev/null\n" in describe(finding)
    assert "detokenize" in table(tally)


def test_ctrl_c_is_heard_after_commands_were_run_to_warm_up(
    samples: Samples, tmp_path: Path
) -> None:
    from nlpkit.cli.main import main

    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    wanted = [command for command in COMMANDS if command.name == "sentences"]
    try:
        assert warm(wanted, samples, Sandbox(tmp_path, main)) == []
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        gc.unfreeze()
        for number, handler in zip((signal.SIGINT, signal.SIGTERM), before, strict=True):
            signal.signal(number, handler)


def test_counts_of_a_tally() -> None:
    tally = Tally()
    case = Case(1, "pad", ())
    for fault, code in (("", 0), ("", 1), ("takes too long", 0), ("takes too long", 0)):
        tally.add(case, Outcome(code=code), fault, is_refused(Outcome(code=code)))
    assert tally.counts["pad"] == {"tried": 4, "ok": 1, "refused": 1, "failed": 2}
    assert [finding.count for finding in tally.findings.values()] == [2]


def test_new_commands_are_covered_by_themselves(samples: Samples) -> None:
    count = Parameter("hops", "integer", ("--hops",), low=1)
    new = Command("brew", (Parameter("inputs", "text", metavar="INPUT", repeated=True), count))
    cases = [Generator([new], samples, 1).case(number) for number in range(400)]
    hops = {group[1] for case in cases for group in case.arguments if group[:-1] == ("--hops",)}
    assert {"0", "9223372036854775808", "nan", ""} <= hops
    assert sum(step.what == "write" for case in cases for step in case.steps) > 20
