"""Help pages: nothing without a word of help, and examples that run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import typing
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from warm import Warm

from nlpkit.cli.helppage import EXAMPLES, command_page, fold_command, render
from nlpkit.cli.main import COMMANDS, app
from nlpkit.text.vocab import Vocab
from nlpkit.vectors.formats import save
from nlpkit.vectors.store import Vectors
from nlpkit.vectors.words import ListedWords

SAMPLES = Path(__file__).parent.parent / "sample_corpora"
ROOT: Any = typer.main.get_command(app)


def leaves(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every command that does something, with its full name."""
    subcommands = getattr(command, "commands", None)
    if not subcommands:
        yield name, command
        return
    for part, subcommand in subcommands.items():
        yield from leaves(subcommand, f"{name} {part}")


ALL = dict(leaf for name in COMMANDS for leaf in leaves(ROOT.get_command(None, name), name))
every_command = pytest.mark.parametrize("name", ALL)


def examples(name: str) -> list[str]:
    _, _, text = (ALL[name].help or "").partition(EXAMPLES)
    return [line.strip()[2:] for line in text.splitlines() if line.strip().startswith("$ ")]


@every_command
def test_every_argument_and_option_has_help_text(name: str) -> None:
    for parameter in ALL[name].params:
        if parameter.name != "help":
            assert parameter.help, f"{name}: {parameter.name}"
            assert parameter.help.rstrip("]").endswith((".", ")")), f"{name}: {parameter.help}"


# these name their range in words, and their engine says what is wrong with a value
SAID_IN_WORDS = ("--temperature", "--top-p", "--min-p", "--typical-p", "--repetition-penalty")


@every_command
def test_every_number_has_a_least_and_a_most(name: str) -> None:
    for parameter in ALL[name].params:
        hint = parameter.type_descriptor.annotation
        if {int, float} & {hint, *typing.get_args(hint)} and parameter.metavar != "TIME":
            if set(parameter.opts) & set(SAID_IN_WORDS):
                assert re.search(r"\b(100|1)\b", parameter.help), parameter.name
            else:
                assert None not in (parameter.min, parameter.max), parameter.name


def page(name: str) -> str:
    context = ALL[name].make_context(f"nlpkit {name}", [], resilient_parsing=True)
    return render(command_page(ALL[name], context))


@every_command
def test_every_help_page_fits_80_columns_with_placeholders_that_say_what_is_meant(
    name: str,
) -> None:
    shown = page(name)
    assert not [line for line in shown.splitlines() if len(line) > 80]
    assert not re.search(r"<(int|float|str|list)", shown)


def test_options_stand_in_groups_and_what_must_be_given_comes_first() -> None:
    shown = page("word2vec train")
    titles = re.findall(r"^(\w+):$", shown, re.MULTILINE)
    assert titles[:2] == ["Arguments", "Options"]
    assert {"Training", "Data", "Output"} <= set(titles)
    first = shown.partition("Options:\n")[2].lstrip()
    assert first.startswith("-o, --output MODEL")


@pytest.mark.parametrize(
    ("name", "first"),
    [("lm train", "--model"), ("classify train", "--model"), ("tag train", "--encoder")],
)
def test_what_decides_which_options_matter_comes_first_in_its_group(name: str, first: str) -> None:
    assert page(name).partition("Model:\n")[2].lstrip().startswith(first)


def test_a_narrow_terminal_gets_narrow_lines_and_colour_only_when_asked() -> None:
    context = ALL["pad"].make_context("nlpkit pad", [], resilient_parsing=True)
    made = command_page(ALL["pad"], context)
    narrow = render(made, 60)
    # what is one word of shell stays whole
    assert not [line for line in narrow.splitlines() if len(line) > 60 and "printf" not in line]
    assert "\x1b[" not in narrow
    assert "\x1b[36m--value N\x1b[0m" in render(made, colour=True)


@every_command
def test_examples_folded_to_80_columns_are_the_same_commands(name: str) -> None:
    for line in examples(name):
        folded = "\n".join(fold_command(line, 78))
        assert shlex.split(folded.replace("\\\n", "")) == shlex.split(line)


def test_the_manual_page_has_every_command_and_passes_the_formatter() -> None:
    done = subprocess.run([sys.executable, "-m", "nlpkit", "--man"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name in ALL:
        assert f'.SH "NLPKIT {name.upper()}"'.replace("-", "\\-") in done.stdout
    if groff := shutil.which("groff"):
        shown = subprocess.run(
            [groff, "-man", "-Tutf8", "-Kutf8", "-ww"],
            input=done.stdout,
            capture_output=True,
            text=True,
        )
        assert not shown.stderr


@every_command
def test_every_help_page_says_what_it_does_first_and_ends_with_examples(name: str) -> None:
    first, *rest = (ALL[name].help or "").split("\n")
    assert first.endswith(".")
    assert len(first) < 100
    assert EXAMPLES in rest
    assert examples(name), name
    after = rest[rest.index(EXAMPLES) + 1 :]
    assert all(line.startswith("  $ nlpkit") or "| nlpkit" in line for line in after if line), after


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_of_commands_repeats_their_first_line(name: str) -> None:
    command = ROOT.get_command(None, name)
    assert COMMANDS[name].help == (command.help or "").split("\n")[0]


@every_command
def test_every_example_parses(name: str) -> None:
    for line in examples(name):
        for arguments in nlpkit_calls(line):
            command: Any = ROOT
            while getattr(command, "commands", None) or command is ROOT:
                part, *arguments = arguments
                found = (
                    command.get_command(None, part) if command is ROOT else command.commands[part]
                )
                assert found is not None, line
                command = found
            command.make_context(name, arguments, resilient_parsing=False)


def nlpkit_calls(line: str) -> Iterator[list[str]]:
    """The arguments of each ``nlpkit`` in a line of shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    call: list[str] = []
    for word in [*lexer, "|"]:
        if word in ("|", ">", "&&", ";"):
            if call[:1] == ["nlpkit"]:
                yield call[1:]
            call = []
        else:
            call.append(word)


# --- examples that run --------------------------------------------------------------------------

# the examples of these take their time, and their commands have tests of their own
TRAINERS = (
    *("names", "gpt", "word2vec train", "tag", "classify", "demo"),
    *("elmo", "qa", "seq2seq", "bert", "lm"),
    "vectors from-counts",
)
RUNNABLE = [name for name in ALL if not name.startswith(TRAINERS) or name == "word2vec examples"]
# examples that name a file from elsewhere, or take long
LEFT_OUT = (
    "glove.6B",
    "questions-words",
    "wordsim353",
    "raw.txt.gz",
    "queries.txt",
    "seed1",
    "tsne",
    "pairs/",
    "german.vec",
    "1900.model",
)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the vectors and the vocabulary that examples ask for."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "sample_corpora").symlink_to(SAMPLES)
    words = (SAMPLES / "world.txt").read_text(encoding="utf-8").split()
    vocab = Vocab.from_counts(Counter(words), specials=(), min_count=40)
    vocab.save(str(folder / "world.vocab"))
    numbers = np.random.default_rng(1)
    for name, dim in (("world", 30), ("counts", 30)):
        matrix = numbers.normal(size=(len(vocab), dim)).astype(np.float32)
        vectors = Vectors(ListedWords(vocab.tokens, np.array(vocab.counts)), matrix)
        save(vectors, str(folder / f"{name}.model"))
    return folder


def shell(line: str, folder: Path, warm: Warm) -> subprocess.CompletedProcess[bytes]:
    define = f'nlpkit() {{ {warm.command} "$@"; }}; '
    return subprocess.run(
        ["bash", "-c", define + line],
        cwd=folder,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "100"},
        timeout=300,
    )


@pytest.mark.parametrize("name", RUNNABLE)
def test_the_examples_of_a_command_run_in_order(
    name: str, trained: Path, tmp_path: Path, warm: Warm
) -> None:
    for entry in trained.iterdir():
        if name != "samples" and not any(f"-o {entry.name}" in line for line in examples(name)):
            (tmp_path / entry.name).symlink_to(entry)
    for line in examples(name):
        if not any(part in line for part in LEFT_OUT):
            done = shell(line, tmp_path, warm)
            assert done.returncode == 0, (line, done.stderr.decode())
            assert b"Traceback" not in done.stderr
