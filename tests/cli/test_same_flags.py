"""The same flag everywhere: all commands are held against the table of conventions."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from pathlib import Path
from typing import Any, get_args

import pytest
from command_runner import Runner
from hypothesis import given
from hypothesis import strategies as st
from test_help import ALL

from nlpkit.cli import tables
from nlpkit.cli.everywhere import NO_OUTPUT, draw_seed
from nlpkit.cli.tables import width_of

# What a short flag stands for. -n is how many: rows of results, or tokens of text.
SHORT = {
    "-t": {"tokenizer"},
    "-f": {"format"},
    "-o": {"output"},
    "-j": {"jobs"},
    "-q": {"quiet"},
    "-m": {"model"},
    "-V": {"vocab"},
    "-n": {"count", "number", "k", "max_tokens"},
    "-T": {"temperature"},
    "-k": {"k", "count"},
    "-i": {"interactive"},
    "-h": {"help"},
}
HIDES_FORMAT = {"classify train", "tag train"}  # an older name of --input
# One long flag for one thing.
LONG = {
    "quiet": "--quiet",
    "output": "--output",
    "seed": "--seed",
    "json": "--json",
    "format": "--format",
    "encoding": "--encoding",
    "errors": "--errors",
    "input": "--input",
    "force": "--force",
    "resume": "--resume",
    "device": "--device",
    "threads": "--threads",
    "header": "--header",
}
HOW_MANY = {"--count", "--max-tokens"}  # long names of -n
WRITES_TOKENS = {"lm sample", "lm novelty", "gpt sample", "gpt answer", "gpt evaluate"}
READS_TEXT = {"auto", "text", "jsonl", "csv", "tsv"}
ROWS = {"table", "tsv", "csv", "markdown"}  # who has one has all
OTHER_INPUT = {"tag predict"}  # its input may be columns, too


@pytest.mark.parametrize("name", ALL)
def test_every_command_keeps_the_conventions(name: str) -> None:
    params = {one.name: one for one in ALL[name].params}
    assert "--quiet" in params["quiet"].opts
    if name not in NO_OUTPUT:
        assert "-o" in params["output"].opts
    for parameter in params.values():
        for flag in parameter.opts:
            if len(flag) == 2 and flag[0] == "-":
                assert parameter.name in SHORT[flag], f"{flag} is {parameter.name} here"
            if flag == "-n":
                (long,) = HOW_MANY & set(parameter.opts)
                assert (long == "--max-tokens") == (name in WRITES_TOKENS)
            if flag == "-k":  # the older name
                assert "-n" in parameter.opts
        if parameter.name in LONG and parameter.param_type_name == "option":
            assert LONG[parameter.name] in parameter.opts, parameter.name
    if "json" in params:
        assert params["json"].is_flag
        assert "format" in params
    if "format" in params and name not in HIDES_FORMAT:
        offered = set(get_args(params["format"].type_descriptor.annotation))
        assert "jsonl" in offered
        if offered & ROWS:
            assert offered >= set(tables.FORMATS)
    if "encoding" in params:
        assert params["encoding"].default == "utf-8"
        assert "errors" in params
    if "key" in params or any(one.metavar == "INPUT" for one in params.values()):
        offered = set(get_args(params["input"].type_descriptor.annotation))
        assert offered == READS_TEXT or (name in OTHER_INPUT and offered > READS_TEXT)
        assert {"--key", "--column"} <= set(params["key"].opts)
        assert "encoding" in params
    if "device" in params:
        assert "threads" in params
    if "seed" in params:
        assert params["seed"].default == 1
    if "resume" in params:
        assert {"output", "force", "seed", "threads", "metrics"} <= set(params)


def test_a_short_flag_has_one_long_name() -> None:
    longs: dict[tuple[str, str], set[Any]] = defaultdict(set)
    for command in ALL.values():
        for one in command.params:
            if one.param_type_name == "option":
                for flag in one.opts:
                    if len(flag) == 2:
                        named = (opt for opt in one.opts if opt.startswith("--"))
                        longs[flag, one.name].add(next(named))
    assert longs
    assert all(len(names) == 1 for names in longs.values()), longs


# --- formats ------------------------------------------------------------------------------------


def test_rows_in_every_format(run: Runner, trained_vectors: str) -> None:
    ask = ("vectors", "similarity", "king", "queen", "-q", "-m", trained_vectors)
    plain = run.ok(*ask)
    assert plain == "king queen\t1.0000\n"
    assert run.ok(*ask, "--header") == "query\tscore\n" + plain
    assert run.ok(*ask, "--format", "csv", "--header") == "query,score\nking queen,1.0000\n"
    assert run.ok(*ask, "--format", "markdown") == (
        "| query | score |\n| --- | --- |\n| king queen | 1.0000 |\n"
    )
    assert json.loads(run.ok(*ask, "--json")) == {"query": "king queen", "score": 1.0}
    assert run.ok(*ask, "--format", "table").splitlines()[2] == "king queen  1.0000"
    run.ok(*ask, "--json", "-o", "answer.jsonl.gz")
    assert run.shell("zcat answer.jsonl.gz").out == run.ok(*ask, "--json")


@pytest.fixture
def trained_vectors(run: Runner) -> str:
    return run.write("v.txt", "2 2\nking 1 0\nqueen 1 0\n")


@given(rows=st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9)), max_size=4))
def test_csv_holds_any_text(rows: list[tuple[str, str]]) -> None:
    rows = [(a.replace("\0", ""), b.replace("\0", "")) for a, b in rows]
    text = "".join(tables.delimited(row, "csv") for row in rows)
    assert [tuple(row) for row in csv.reader(io.StringIO(text, newline=""))] == rows


def test_a_table_keeps_names_whole_and_drops_intervals_on_a_narrow_terminal() -> None:
    columns = ["section", "correct", "low", "high", "accuracy"]
    rows = [["capital-common-countries", 12, 0.1, 0.9, 0.5]]
    wide = tables.table(columns, rows, width=80)
    narrow = tables.table(columns, rows, width=46)
    assert "low" in wide
    assert narrow.splitlines()[0].split() == ["section", "correct", "accuracy"]
    # one column too narrow: both ends of the interval go, and nothing else
    slightly = tables.table(
        [*columns, "note"], [[*rows[0], "x"]], width=width_of(wide[: wide.index("\n")]) + 5
    )
    assert slightly.splitlines()[0].split() == ["section", "correct", "accuracy", "note"]
    assert "capital-common-countries" in narrow
    assert max(map(len, narrow.splitlines())) <= 46


def test_a_note_is_folded_before_it_is_dropped() -> None:
    note = "small: vectors trained on plain text will help most"
    shown = tables.table(
        ["measure", "value", "note"], [("tokens", 3, ""), ("advice", "", note)], width=50
    )
    assert shown.splitlines()[2] == "tokens       3"
    assert [line.split("  ")[-1].strip() for line in shown.splitlines()[3:]] == [
        "small: vectors trained on plain",
        "text will help most",
    ]
    assert "note" not in tables.table(
        ["word", "score", "note"], [("king", 0.5, "x" * 30)], width=20
    )


def test_a_table_wraps_what_is_too_long_and_counts_wide_letters() -> None:
    drawn = tables.table(["text", "n"], [["word " * 40, 3], ["東京", 12]], width=40)
    assert max(map(width_of, drawn.splitlines())) <= 40
    last = drawn.splitlines()[-1]
    assert last.startswith("東京")
    assert last.endswith("12")


def test_numbers_stand_to_the_right_however_they_are_written() -> None:
    drawn = tables.table(["p", "bar"], [["0.184", "x"], ["9.8e-05", "y"], [None, "z"], ["5%", "w"]])
    assert drawn.splitlines()[2:] == ["  0.184  x", "9.8e-05  y", "         z", "     5%  w"]


# --- seeds and variables ------------------------------------------------------------------------


def test_a_random_seed_is_drawn_and_named() -> None:
    args, seed = draw_seed(["a", "--seed", "random"], "X")
    assert args == ["a", "--seed", str(seed)]
    args, seed = draw_seed(["--seed=random"], "X")
    assert args == [f"--seed={seed}"]
    assert draw_seed(["--", "--seed", "random"], "X") == (["--", "--seed", "random"], None)


def test_a_random_seed_through_a_command_can_be_repeated(run: Runner) -> None:
    run.write("v.txt", "3 2\na 1 0\nb 0 1\nc 1 1\n")
    plot = ("vectors", "plot", "a", "b", "c", "-m", "v.txt")
    first = run(*plot, "--seed", "random")
    assert first.code == 0
    seed = first.err.split()[1]
    assert run.ok(*plot, "--seed", seed) == first.out
    assert run(*plot, "-q", "--seed", "random").err == ""
    assert "'--seed': should be a number or random\n" in run(*plot, "--seed", "randm").err


def test_a_mistyped_variable_is_named_with_the_nearest_right_one(run: Runner) -> None:
    env = {"NLPKIT_TOKENIZE_LOWR": "1", "NLPKIT_VOCAB_BUILD_LOWER": "1"}
    result = run("tokenize", input="A\n", env=env)
    assert result.out == "A\n"
    assert result.err == (
        "warning: NLPKIT_TOKENIZE_LOWR stands for nothing: did you mean NLPKIT_TOKENIZE_LOWER?\n"
    )
    assert run("tokenize", "-q", input="A\n", env=env).err == ""


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("NLPKIT_VOCAB_BILD_LOWER", "NLPKIT_VOCAB_BUILD_LOWER"),  # no command of the group
        ("NLPKIT_VOCAB_BUILD_LOWR", "NLPKIT_VOCAB_BUILD_LOWER"),  # of a neighbour
        ("NLPKIT_VOCAB_STATS_FROMAT", "NLPKIT_VOCAB_STATS_FORMAT"),
        ("NLPKIT_VOKAB_STATS_FORMAT", "NLPKIT_VOCAB_STATS_FORMAT"),
        ("NLPKIT_FORMATT", "NLPKIT_VOCAB_STATS_FORMAT"),  # without the name of the command
    ],
)
def test_a_mistyped_command_in_a_variable_is_named_too(
    run: Runner, made: Path, wrong: str, right: str
) -> None:
    env = {wrong: "1", "NLPKIT_VOCAB_MERGE_OUTPUT": "-", "NLPKIT_W2V_TRAIN_DIM": "3"}
    found = run("vocab", "stats", str(made / "words.vocab"), env=env).err
    assert found == f"warning: {wrong} stands for nothing: did you mean {right}?\n"


def test_a_variable_that_is_like_no_other_is_named_alone(run: Runner) -> None:
    found = run("tokenize", input="A\n", env={"NLPKIT_TREADS": "3"}).err
    assert found == "warning: NLPKIT_TREADS stands for nothing: check the spelling\n"


def test_output_of_any_command_goes_to_a_file_that_appears_whole(run: Runner, made: Path) -> None:
    vocab = str(made / "words.vocab")
    shown = run.ok("vocab", "stats", vocab)
    assert run.ok("vocab", "stats", vocab, "-o", "stats.txt") == ""
    assert (run.folder / "stats.txt").read_text() == shown
    assert "no such folder" in run.fails("vocab", "stats", vocab, "-o", "nowhere/stats.txt")
