"""The parts that commands are made of: options, output, rows of ids."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pytest
import typer
from test_help import ALL

from nlpkit.cli.frame import fail, name_flags
from nlpkit.cli.options import read_config, resolve_inputs, resolve_jobs
from nlpkit.cli.output import Notes, Writer, open_output, write_rows
from nlpkit.cli.rows import parse_row
from nlpkit.errors import NlpkitError, UsageError


def test_what_was_found_is_shown_before_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "shown"
    with open(path, "w") as shown:
        monkeypatch.setattr("sys.stdout", shown)
        with contextlib.suppress(NlpkitError), open_output("-") as out:
            out.write("found\n")
            raise NlpkitError("no more of them")
        assert path.read_text() == "found\n"


def test_settings_from_toml_and_from_the_config_of_a_model(tmp_path: Path) -> None:
    toml, saved, plain = tmp_path / "a.toml", tmp_path / "config.json", tmp_path / "b.json"
    toml.write_text("min-count = 3\nlower = true\n", encoding="utf-8")
    saved.write_text('{"kind": "demo", "settings": {"min_count": 3}}', encoding="utf-8")
    plain.write_text('{"min-count": 3}', encoding="utf-8")
    assert read_config(str(toml)) == {"min_count": 3, "lower": True}
    assert read_config(str(saved)) == read_config(str(plain)) == {"min_count": 3}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.toml", "dim ="),
        ("a.json", "{"),
        ("a.json", "[1]"),
        ("a.json", "3"),
        ("a.json", "[" * 10**5),
    ],
)
def test_a_wrong_configuration_is_wrong_usage_that_names_the_file(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(typer.BadParameter, match=name):
        read_config(str(tmp_path / name))


def test_a_missing_configuration_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match="No such file"):
        read_config(str(tmp_path / "nowhere.toml"))


def test_flags_win_over_the_environment_the_environment_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.toml"
    path.write_text("dim = 1\nwindow = 1\nmin-count = 1\n", encoding="utf-8")
    monkeypatch.setenv("NLPKIT_DIM", "2")
    monkeypatch.setenv("NLPKIT_WINDOW", "2")
    arguments = ["-o", "m.model", "--config", str(path), "--dim", "3"]
    train = ALL["word2vec train"]
    context = train.make_context("train", [*arguments], auto_envvar_prefix="NLPKIT")
    settings = {name: context.params[name] for name in ("dim", "window", "min_count", "epochs")}
    assert settings == {"dim": 3, "window": 2, "min_count": 1, "epochs": 5}
    path.write_text("dimension = 1\n", encoding="utf-8")
    with pytest.raises(typer.BadParameter, match="no such setting here: dimension"):
        train.make_context("train", [*arguments])


def test_inputs_are_paths_and_one_of_them_is_standard_input() -> None:
    assert resolve_inputs(["a", "b"]) == ["a", "b"]
    with pytest.raises(UsageError, match="only once"):
        resolve_inputs(["-", "a", "-"])
    assert resolve_jobs(3) == 3
    assert resolve_jobs(0) >= 1


def written(format: str, *rows: list[object]) -> str:
    stream = io.BytesIO()
    write_rows(Writer(stream), ["word", "score"], rows, format)
    return stream.getvalue().decode()


def test_rows_for_programs() -> None:
    assert written("tsv", ["king", 0.5], ["[b]", None]) == "king\t0.5000\n[b]\t\n"
    assert json.loads(written("jsonl", ["東京", 0.25])) == {"word": "東京", "score": 0.25}


def test_rows_for_people_show_words_as_they_are() -> None:
    table = written("table", ["[/b]", 0.5], [":smile:", 1])
    assert "word" in table
    assert "[/b]" in table
    assert ":smile:" in table
    assert "0.5000" in table


def test_half_a_character_is_an_error_not_half_a_line() -> None:
    stream = io.BytesIO()
    with pytest.raises(NlpkitError, match=r"U\+D800 is half a character"):
        Writer(stream).write("a\ud800b\n")
    assert stream.getvalue() == b""


def test_a_failure_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as end:
        fail("first\nsecond", 2)
    assert end.value.exit_code == 2
    assert capsys.readouterr().err == "error: first second\n"


def test_notes_are_for_stderr_and_can_be_silenced(capsys: pytest.CaptureFixture[str]) -> None:
    Notes().say("a note")
    Notes().warn("take care")
    Notes(quiet=True).warn("nothing")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "a note\nwarning: take care\n"


def test_progress_without_a_terminal_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = 0.0
    monkeypatch.setattr("nlpkit.cli.output.time.monotonic", lambda: clock)
    with Notes().progress("reading", total=100) as bar:
        bar.update(1)
        clock = 20.0
        bar.update(50, "loss 1.5")
        bar.update(51)
    assert capsys.readouterr().err == "reading: 50%, 20 s left  loss 1.5\n"


@pytest.mark.parametrize(
    ("line", "row"),
    [("1 2", [1, 2]), ("", []), (" -3 ", [-3]), ("[1, 2]", [1, 2]), ('{"ids": [4], "x": 1}', [4])],
)
def test_rows_of_ids(line: str, row: list[int]) -> None:
    assert parse_row(line, "-", 1) == row


@pytest.mark.parametrize("line", ["a", "1.0", "[1.5]", "[true]", "{}", '{"ids": 3}', "[", "[[1]]"])
def test_lines_that_are_no_ids_are_named(line: str) -> None:
    with pytest.raises(NlpkitError, match=r"ids\.txt: line 7: expected ids"):
        parse_row(line, "ids.txt", 7)


def test_parameters_that_engines_speak_of_are_shown_as_flags() -> None:
    app = typer.Typer()

    @app.command()
    def train(min_count: int = 1, output: str = typer.Option("-", "--output", "-o")) -> None: ...

    command = typer.main.get_command(app)
    found = name_flags("a lower `min_count`, another `output`; the word `the`", command)
    assert found == "a lower --min-count, another --output; the word `the`"
