"""What holds for the command line as a whole: version, help, completion, environment, locale."""

from __future__ import annotations

import subprocess
import sys

import pytest
from command_runner import Runner

import nlpkit
from nlpkit.cli.main import COMMANDS


def test_version(run: Runner) -> None:
    assert run.ok("--version") == f"nlpkit {nlpkit.__version__}\n"


def test_both_spellings_of_help(run: Runner) -> None:
    page = run.ok("-h")
    assert page == run.ok("--help")
    assert all(f"  {name} " in page for name in COMMANDS)
    assert run.ok("vocab", "build", "-h") == run.ok("vocab", "build", "--help")


def test_no_command_shows_the_help_and_is_wrong_usage(run: Runner) -> None:
    result = run()
    assert result.code == 2
    assert result.err.startswith("Usage: nlpkit ")


def test_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nlpkit", "tokenize"], input=b"It's.\n", capture_output=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"It 's .\n", b"")


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("nlpkit tok", "tokenize"),
        ("nlpkit vocab me", "merge"),
        ("nlpkit tokenize --strip", "--strip-accents"),
    ],
)
def test_the_shell_completes_commands_and_options(run: Runner, words: str, answer: str) -> None:
    env = {
        "_NLPKIT_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    assert answer in run(env=env).out.split()


def test_the_completion_script_can_be_shown(run: Runner) -> None:
    # the shell is found among the parents of a process
    shown = run.shell("nlpkit --show-completion; true").out
    assert "_NLPKIT_COMPLETE=complete_bash" in shown


def test_an_environment_variable_stands_for_an_option_and_a_flag_wins(run: Runner) -> None:
    env = {"NLPKIT_TOKENIZE_LOWER": "1", "NLPKIT_TOKENIZE_TOKENIZER": "simple"}
    assert run.ok("tokenize", input="It's HERE", env=env) == "it s here\n"
    assert run.ok("tokenize", "-t", "word", input="It's HERE", env=env) == "it 's here\n"
    env = {"NLPKIT_VOCAB_BUILD_MIN_COUNT": "2"}
    assert run.ok("vocab", "build", "--no-specials", input="a a b", env=env) == "a\t2\n"


@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"LC_ALL": "POSIX", "PYTHONUTF8": "0"}])
def test_text_is_utf8_whatever_the_locale_says(run: Runner, locale: dict[str, str]) -> None:
    env = {**locale, "PYTHONIOENCODING": "ascii"}
    assert run.ok("tokenize", input="naïve 東京 👍🏽\n", env=env) == "naïve 東 京 👍🏽\n"
    result = run("tokenize", "-t", "東京", input="a\n", env=env)
    assert result.code == 1
    assert "Traceback" not in result.err


def test_a_file_name_that_is_not_utf8(run: Runner) -> None:
    name = b"na\xefve.txt"
    (run.folder / name.decode("utf-8", "surrogateescape")).write_bytes(b"It's.\n")
    assert run.shell("nlpkit tokenize na*.txt").out == "It 's .\n"
    result = run.shell("nlpkit tokenize na*.txt -o missing/na*")
    assert (result.code, result.err.count("\n")) == (1, 1)


def test_an_alias_of_a_command_is_known_where_its_command_is(run: Runner) -> None:
    if "word2vec" in COMMANDS:
        assert run.ok("w2v", "--help").startswith("Usage: nlpkit w2v")


def test_json_and_another_format_contradict_each_other(run: Runner) -> None:
    assert run.ok("tokenize", "--json", "--format", "jsonl", input="a\n") == run.ok(
        "tokenize", "--json", input="a\n"
    )
    line = run.fails("tokenize", "--json", "--format", "text", input="a\n", code=2)
    assert "--json and --format text contradict each other" in line
