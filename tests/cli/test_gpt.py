"""``nlpkit gpt`` as a user runs it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from model_files import without_manifest
from typer.testing import CliRunner, Result
from warm import Warm

from nlpkit.cli.main import app
from nlpkit.text.subwords import Subwords

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


def test_low_precision_trains_or_says_that_the_processor_cannot(folder: Path, warm: Warm) -> None:
    flags = ["-o", "low", "--max-iters", "2", "--dtype", "bfloat16", *SMALL]
    done = warm.run(folder, "gpt", "train", "text.txt", *flags)
    if done.code:
        assert done.code == 1
        assert "error: this processor cannot compute in bfloat16" in done.err
    assert (folder / "low").exists() == (done.code == 0)


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


@pytest.mark.parametrize(
    ("init", "tokenizer", "knows"),
    [
        ("char", "byte", "characters"),
        ("char", "tokenizer.json", "characters"),
        ("bpe", "char", "subwords"),
        ("bpe", "byte", "subwords"),
        ("bpe", "other.json", "subwords"),
    ],
)
def test_another_tokenizer_than_that_of_the_first_weights_is_refused(
    folder: Path, tmp_path: Path, init: str, tokenizer: str, knows: str
) -> None:
    if tokenizer == "other.json":
        Subwords.train([TEXT], vocab_size=270).save(str(folder / tokenizer))
    name = str(folder / tokenizer) if tokenizer.endswith("json") else tokenizer
    output = tmp_path / "more"
    flags = ["-o", str(output), "--init", str(folder / init), "--max-iters", "2", "--quiet"]
    result = run("train", str(folder / "text.txt"), *flags, "-t", name, *ONE)
    assert result.exit_code == 1
    assert f"not that of the --init model, which knows {knows}" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not output.exists()


@pytest.mark.parametrize(("init", "tokenizer"), [("char", "char"), ("bpe", "tokenizer.json")])
def test_the_same_tokenizer_may_be_named(
    folder: Path, tmp_path: Path, init: str, tokenizer: str
) -> None:
    name = str(folder / tokenizer) if tokenizer.endswith("json") else tokenizer
    flags = ["-o", str(tmp_path / "more"), "--init", str(folder / init), "--max-iters", "2"]
    result = run("train", str(folder / "text.txt"), *flags, "-t", name, *ONE)
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
        ("short", [], "too few for --block-size 64"),
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


def test_unknown_characters_are_one_line_and_nothing_is_written_before(folder: Path) -> None:
    model = str(folder / "char")
    for command, text in (
        (["sample", model, "-", "--stream"], "To\nŽ\n"),
        (["sample", model, "Ž", "--stream"], ""),
        (["score", model], "To Ž\n"),
        (["attention", model, "Ž"], ""),
    ):
        result = run(*command, input=text)
        assert result.exit_code == 1
        assert result.stdout == ""
        assert result.stderr.startswith("error: the model has never seen 'Ž' (U+017D)")
        assert result.stderr.count("\n") == 1
    lines = run("score", model, "--lines", *ONE, input="To\nŽ\n")  # as far as it comes
    assert lines.stdout.count("\n") == 1
    assert lines.stderr.count("\n") == 1


def test_writing_ends_at_the_end_of_the_text(folder: Path, tmp_path: Path) -> None:
    flags = ["-t", str(folder / "tokenizer.json"), "--max-iters", "60", *SMALL]
    text = "To be<|endoftext|>" * 300
    made = run("train", "-", "-o", str(tmp_path / "m"), *flags, input=text)
    assert made.exit_code == 0, made.stderr
    greedy = ["-n", "40", "--temperature", "0", *ONE]
    row = json.loads(run("sample", str(tmp_path / "m"), "To", "--json", *greedy).stdout)
    assert row["text"] == " be"
    assert row["finish"] == "stop"
    assert row["tokens"][-1] == "<|endoftext|>"
    assert len(row["logprobs"]) == len(row["tokens"])
    both = run("sample", str(tmp_path / "m"), "-", *greedy, input="To\nTo be\n").stdout
    assert both == "To be\nTo be\n"
    assert run("sample", str(tmp_path / "m"), "To", "--stream", *greedy).stdout == "To be\n"


def test_import_names_what_it_cannot_honour(tmp_path: Path) -> None:
    sizes = {"n_embd": 8, "n_head": 2, "n_layer": 1, "n_positions": 8, "vocab_size": 300}
    for change in ({"rope_theta": 10000.0}, {"n_inner": 9}, {"add_cross_attention": True}):
        (tmp_path / "config.json").write_text(json.dumps({**sizes, **change}))
        result = run("import", str(tmp_path), "-o", str(tmp_path / "m"))
        assert result.exit_code == 1
        assert next(iter(change)) in result.stderr
        assert result.stderr.count("\n") == 1


def test_tokenizer_and_model_of_different_sizes_are_refused(folder: Path, tmp_path: Path) -> None:
    without_manifest(shutil.copytree(folder / "char", tmp_path / "m"))
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


# --- recipes ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gpt2(folder: Path) -> Path:
    """A model of subwords and the recipe gpt2."""
    flags = ["--recipe", "gpt2", "--max-iters", "30", "-t", str(folder / "tokenizer.json")]
    result = run("train", str(folder / "text.txt"), "-o", str(folder / "gpt2"), *flags, *SMALL)
    assert result.exit_code == 0, result.stderr
    return folder / "gpt2"


def recorded_recipe(model: Path) -> str:
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    return str(config["settings"]["recipe"])


def test_the_recipe_is_recorded(folder: Path, gpt2: Path) -> None:
    assert recorded_recipe(folder / "bpe") == "modern"
    assert recorded_recipe(gpt2) == "gpt2"


def test_transformers_loads_what_the_recipe_gpt2_trained(gpt2: Path, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    import torch

    from nlpkit.tasks.lm.model import GptModel

    result = run("export", str(gpt2), "-o", str(tmp_path / "hf"))
    assert result.exit_code == 0, result.stderr
    ours = GptModel.load(gpt2)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "hf").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    assert len(tokenizer) == len(ours.codec) == theirs.config.vocab_size
    for text in [
        TEXT,
        "",
        "  two  spaces \t and\n\nlines ",
        "na\u00efve \u6771\u4eac \U0001f44d\U0001f3fd isn't , it .",
        "one<|endoftext|>two",
    ]:
        ids = ours.codec.encode(text)
        assert tokenizer(text)["input_ids"] == ids
        assert tokenizer.decode(ids) == text
    ids = torch.tensor([ours.codec.encode(TEXT)[:16]])
    with torch.no_grad():
        assert torch.allclose(theirs(ids).logits, ours.model(ids)[0], atol=1e-4)


def test_transformers_adds_no_token_to_a_tokenizer_without_specials(
    folder: Path, tmp_path: Path
) -> None:
    transformers = pytest.importorskip("transformers")
    Subwords.train([TEXT], vocab_size=270, specials=()).save(str(tmp_path / "plain.json"))
    flags = ["--recipe", "gpt2", "--max-iters", "2", "-t", str(tmp_path / "plain.json"), *SMALL]
    assert run("train", str(folder / "text.txt"), "-o", str(tmp_path / "m"), *flags).exit_code == 0
    assert run("export", str(tmp_path / "m"), "-o", str(tmp_path / "hf")).exit_code == 0
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    assert len(tokenizer) == 270
    assert tokenizer.eos_token is None
    assert transformers.AutoConfig.from_pretrained(tmp_path / "hf").eos_token_id is None


def test_what_was_exported_comes_in_and_is_trained_further(gpt2: Path, tmp_path: Path) -> None:
    assert run("export", str(gpt2), "-o", str(tmp_path / "hf")).exit_code == 0
    assert run("import", str(tmp_path / "hf"), "-o", str(tmp_path / "again")).exit_code == 0
    flags = ["--init", str(tmp_path / "again"), "--max-iters", "2", *ONE]
    result = run("train", "-o", str(tmp_path / "more"), *flags, input=TEXT)
    assert result.exit_code == 0, result.stderr
    assert recorded_recipe(tmp_path / "more") == "gpt2"


def test_another_recipe_than_that_of_the_first_weights_is_refused(
    gpt2: Path, folder: Path, tmp_path: Path
) -> None:
    for init, recipe in ((gpt2, "modern"), (folder / "bpe", "gpt2")):
        flags = ["-o", str(tmp_path / "m"), "--init", str(init), "--recipe", recipe, *ONE]
        result = run("train", *flags, input=TEXT)
        assert result.exit_code == 1
        assert f"cannot be trained further with recipe {recipe}" in result.stderr
        assert not (tmp_path / "m").exists()


def test_attention_as_a_heat_map_of_characters(folder: Path, tmp_path: Path) -> None:
    flags = ["--layer", "1", "--head", "2"]
    shown = run("attention", str(folder / "char"), "To be", *flags, "--format", "map").stdout
    _, legend, caption, *rows = shown.splitlines()
    assert "'█' 80-100%" in legend
    assert max(map(len, shown.splitlines())) <= 80
    assert caption == "layer 1, head 2"
    assert [row.split()[0] for row in rows] == ["T", "o", "␣", "b", "e"]
    assert rows[0].endswith("██")  # the first token has itself to look at, and nothing else
    page = tmp_path / "map.html"
    out = run("attention", str(folder / "char"), "To be", *flags, "--plot", str(page)).stdout
    assert json.loads(out)["head"] == 2
    assert page.read_text().startswith("<!doctype html>")
    assert "<title>b → ␣" not in page.read_text()
    assert "<title>b →  : 0." in page.read_text()
    cells = run("attention", str(folder / "char"), "To be", *flags, "-f", "csv").stdout
    assert cells.startswith("1,2,T,T,1.0000\n1,2,o,T,")
    both = run("attention", str(folder / "char"), "To be", "--json", "--format", "map")
    assert both.exit_code == 2


def test_the_curve_is_written_while_it_is_made(folder: Path, tmp_path: Path) -> None:
    curve, model = tmp_path / "curve.jsonl", str(tmp_path / "m")
    flags = ["-o", model, "--max-iters", "4", "--eval-interval", "2", *SMALL]
    result = run("train", str(folder / "text.txt"), *flags, "--metrics", str(curve))
    assert result.exit_code == 0, result.stderr
    assert curve.read_text() == (tmp_path / "m" / "metrics.jsonl").read_text()
    assert len(curve.read_text().splitlines()) >= 2
    nowhere = str(tmp_path / "no" / "curve.jsonl")
    result = run("train", str(folder / "text.txt"), *flags, "--force", "--metrics", nowhere)
    assert result.exit_code == 1
    assert "no such folder" in result.stderr
