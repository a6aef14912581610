"""``nlpkit gpt`` as a user runs it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from nlpkit.cli.main import app
from nlpkit.subwords import Subwords

TEXT = "To be, or not to be: that is the question.\nWhether 'tis nobler in the mind.\n" * 20
ONE = ["--threads", "1"]
SMALL = ["--dim", "16", "--layers", "1", "--heads", "2", "--block-size", "16", "--threads", "1"]


def run(*arguments: str, input: str = "") -> Result:
    result = CliRunner().invoke(app, ["gpt", *arguments], input=input)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gpt")
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    Subwords.train([TEXT], vocab_size=280).save(str(folder / "tokenizer.json"))
    for name, tokenizer in (("char", "char"), ("bpe", str(folder / "tokenizer.json"))):
        flags = ["-o", str(folder / name), "--max-iters", "8", "-t", tokenizer, *SMALL]
        result = run("train", str(folder / "text.txt"), *flags)
        assert result.exit_code == 0, result.stderr
    return folder


def test_sample_goes_on_from_prompts(folder: Path) -> None:
    text = run("sample", str(folder / "char"), "To be", "-n", "30", "--threads", "1").stdout
    assert text.startswith("To be")
    assert len(text) == len("To be") + 30 + 1
    again = run("sample", str(folder / "char"), "To be", "-n", "30", "--threads", "1").stdout
    assert text == again
    streamed = run("sample", str(folder / "char"), "To be", "-n", "30", "--stream").stdout
    assert streamed == text


def test_prompts_on_stdin_and_several_samples_as_json(folder: Path) -> None:
    flags = ["-n", "4", "--samples", "2", "--json", "--threads", "1", "--stats"]
    result = run("sample", str(folder / "bpe"), "-", *flags, input="To\nthe mind\n")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["prompt"] for row in rows] == ["To", "To", "the mind", "the mind"]
    assert all(len(row["tokens"]) == len(row["logprobs"]) == 4 for row in rows)
    assert all(row["finish"] == "length" for row in rows)
    assert "tokens/s" in result.stderr


def test_prompt_file_stop_and_int8(folder: Path) -> None:
    flags = ["--prompt-file", str(folder / "text.txt"), "-n", "5", "--quantize", "int8"]
    assert run("sample", str(folder / "char"), *flags).stdout.startswith(TEXT)
    whole = json.loads(run("sample", str(folder / "char"), "To", "-n", "9", "--json").stdout)
    stop = whole["text"][3]
    cut = run("sample", str(folder / "char"), "To", "-n", "9", "--json", "--stop", stop).stdout
    assert json.loads(cut)["text"] == whole["text"].split(stop)[0]
    assert json.loads(cut)["finish"] == "stop"


def test_low_precision_trains_or_says_that_the_processor_cannot(folder: Path) -> None:
    flags = ["-o", str(folder / "low"), "--max-iters", "2", "--dtype", "bfloat16", *SMALL]
    command = [sys.executable, "-m", "nlpkit", "gpt", "train", str(folder / "text.txt"), *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        assert done.returncode == 1
        assert "error: this processor cannot compute in bfloat16" in done.stderr
    assert (folder / "low").exists() == (done.returncode == 0)


def test_score_prints_perplexity_for_all_or_by_line(folder: Path) -> None:
    whole = run("score", str(folder / "char"), str(folder / "text.txt"), "--json", *ONE).stdout
    record = json.loads(whole)
    assert record["tokens"] == record["bytes"] == len(TEXT)
    assert record["bits_per_token"] == record["bits_per_byte"]
    lines = run("score", str(folder / "bpe"), "--lines", *ONE, input="to be\nxqz\n").stdout
    assert [line.split("\t")[-1] for line in lines.splitlines()] == ["to be", "xqz"]


def test_fine_tuning_starts_from_a_model(folder: Path, tmp_path: Path) -> None:
    flags = ["--init", str(folder / "char"), "--freeze", "1", "--max-iters", "2", "--threads", "1"]
    result = run("train", str(folder / "text.txt"), "-o", str(tmp_path / "more"), *flags)
    assert result.exit_code == 0, result.stderr
    assert run("sample", str(tmp_path / "more"), "To", "-n", "3").exit_code == 0


def test_attention_is_json_and_a_picture(folder: Path, tmp_path: Path) -> None:
    picture = tmp_path / "attention.svg"
    out = run("attention", str(folder / "char"), "To be", "--plot", str(picture)).stdout
    assert [json.loads(line)["head"] for line in out.splitlines()] == [1, 2]
    assert picture.stat().st_size > 1000


@pytest.mark.parametrize(
    ("text", "flags", "message"),
    [
        ("", [], "no text to train on"),
        ("short", [], "too few for a block size of 64"),
        (TEXT, ["--heads", "3"], "--heads 3 does not divide --dim 128"),
        (TEXT, ["--size", "huge"], "no size 'huge'"),
        (TEXT, ["--tokenizer", "none.json"], "no such subword model"),
        (TEXT, ["--resume", *SMALL], "no checkpoint to resume"),
        (TEXT, ["--init", "none.model"], "no such model"),
    ],
)
def test_bad_training_is_one_line(
    tmp_path: Path, text: str, flags: list[str], message: str
) -> None:
    result = run("train", "-", "-o", str(tmp_path / "m"), "--quiet", *flags, input=text)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_freeze_without_init_is_wrong_usage(tmp_path: Path) -> None:
    result = run("train", "-", "-o", str(tmp_path / "m"), "--freeze", "1", input=TEXT)
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["Žižek"], "never seen 'Ž'"),
        (["To", "--temperature", "-1"], "--temperature cannot be -1"),
        (["To", "--top-k", "99999"], "more than the"),
        (["To", "--repetition-penalty", "0"], "--repetition-penalty cannot be 0"),
    ],
)
def test_bad_sampling_is_one_line(folder: Path, flags: list[str], message: str) -> None:
    result = run("sample", str(folder / "char"), *flags)
    assert result.exit_code == 1
    assert message in result.stderr


def test_tokenizer_and_model_of_different_sizes_are_refused(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "char", tmp_path / "m")
    (tmp_path / "m" / "characters.json").write_text('["a", "b"]')
    assert "the tokenizer has 2 ids" in run("sample", str(tmp_path / "m"), "a").stderr


def test_cut_weights_and_other_kinds_are_one_line(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "char", tmp_path / "m")
    weights = tmp_path / "m" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:300])
    assert "is damaged" in run("score", str(tmp_path / "m"), input="a").stderr
    config = tmp_path / "m" / "config.json"
    config.write_text('{"kind": "tagger", "format_version": 1}')
    assert "is a tagger model" in run("sample", str(tmp_path / "m")).stderr


def test_export_needs_gpt2s_kind(folder: Path, tmp_path: Path) -> None:
    result = run("export", str(folder / "bpe"), "-o", str(tmp_path / "hf"))
    assert result.exit_code == 1
    assert "not of GPT-2's kind" in result.stderr
