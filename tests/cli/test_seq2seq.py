"""``nlpkit seq2seq`` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner, Result

from nlpkit.cli.main import app

DIGITS = "zero one two three four five six seven eight nine".split()
BATCH = ["--batch-tokens", "200", "--eval-interval", "100"]
SMALL = ["-q", "--dim", "32", "--threads", "1", "--dtype", "float32"]


def run(*arguments: str, input: str | bytes = "") -> Result:
    threads = ["--threads", "1"] if arguments[0] in ("predict", "evaluate", "score") else []
    result = CliRunner().invoke(app, ["seq2seq", *arguments, *threads], input=input)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def ok(*arguments: str, input: str | bytes = "") -> str:
    result = run(*arguments, input=input)
    assert result.exit_code == 0, result.output
    return result.stdout


def fails(*arguments: str, input: str = "", code: int = 1) -> str:
    result = run(*arguments, input=input)
    assert result.exit_code == code, result.output
    last = result.stderr.strip().splitlines()[-1]
    return last


def digits(count: int, seed: int) -> str:
    random = Random(seed)
    rows = [[random.randrange(10) for _ in range(random.randint(1, 4))] for _ in range(count)]
    return "".join(f"{' '.join(map(str, r))}\t{' '.join(DIGITS[n] for n in r)}\n" for r in rows)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("seq2seq")
    (folder / "train.tsv").write_text(digits(200, 1))
    (folder / "dev.tsv").write_text(digits(40, 2))
    flags = [
        "-t",
        "whitespace",
        "--dev",
        str(folder / "dev.tsv"),
        "--epochs",
        "30",
        "--batch-tokens",
        "200",
    ]
    ok("train", str(folder / "train.tsv"), "-o", str(folder / "m"), *flags, *SMALL)
    return folder


def test_it_learns_and_answers_in_order(folder: Path) -> None:
    out = ok("predict", str(folder / "m"), "-q", input="1 2\n\n7\n3 4 5\n")
    assert out == "one two\n\nseven\nthree four five\n"


def test_evaluate_has_all_scores_and_a_signature(folder: Path) -> None:
    out = ok("evaluate", str(folder / "m"), str(folder / "dev.tsv"), "-q", "--json")
    found = {row["metric"]: row for row in map(json.loads, out.splitlines())}
    assert found["exact match %"]["score"] > 60
    assert found["BLEU"]["low"] <= found["BLEU"]["score"] <= found["BLEU"]["high"]
    assert "version:" in found["BLEU"]["signature"]
    assert found["token error %"]["score"] < 30


def test_comparing_a_model_with_itself_finds_no_difference(folder: Path) -> None:
    model, dev = str(folder / "m"), str(folder / "dev.tsv")
    plot, answers = folder / "lengths.svg", folder / "answers.txt"
    out = ok(
        *("evaluate", model, dev, "-q", "--compare", model, "--format", "tsv"),
        *("--plot", str(plot), "--answers", str(answers)),
    )
    rows = [line.split("\t") for line in out.splitlines()]
    assert all(row[1] == row[2] and float(row[3]) == 1 for row in rows)
    assert "<svg" in plot.read_text()
    assert len(answers.read_text().splitlines()) == 40


def test_the_first_of_nbest_is_the_answer_and_batches_do_not_matter(folder: Path) -> None:
    lines = "".join(line.split("\t")[0] + "\n" for line in digits(12, 3).splitlines())
    model = str(folder / "m")
    plain = ok("predict", model, "-q", input=lines).splitlines()
    for size in ("1", "7"):
        assert ok("predict", model, "-q", "--batch-size", size, input=lines).splitlines() == plain
    several = [
        line.split("\t")
        for line in ok("predict", model, "-q", "--nbest", "3", input=lines).splitlines()
    ]
    first = {number: text for number, _, text in reversed(several)}
    assert [first[str(number)] for number in range(1, 13)] == plain
    scores = [float(score) for number, score, _ in several if number == "1"]
    assert scores == sorted(scores, reverse=True)


def test_json_has_scores_and_tokens(folder: Path) -> None:
    record = json.loads(ok("predict", str(folder / "m"), "-q", "--json", input="4 2\n"))
    assert record["text"] == "four two"
    assert record["tokens"] == ["four", "two"]
    assert record["log_probability"] < 0


def test_draws_are_the_same_for_the_same_seed(folder: Path) -> None:
    flags = ["predict", str(folder / "m"), "-q", "--sampling", "--temperature", "3"]
    one, same, other = (
        ok(*flags, "--seed", seed, input="1 2 3\n4 5\n") for seed in ("1", "1", "2")
    )
    assert one == same != other


def test_terms_and_prefix_are_used(folder: Path) -> None:
    terms = folder / "terms.tsv"
    terms.write_text("7\tnine nine\n")
    model = str(folder / "m")
    out = ok("predict", model, "-q", "--terms", str(terms), input="1 7\n1 2\n")
    assert "nine nine" in out.splitlines()[0]
    assert out.splitlines()[1] == "one two"
    assert ok("predict", model, "-q", "--prefix", "zero", input="1\n").startswith("zero")


def test_eight_bits_say_the_same(folder: Path) -> None:
    out = ok("predict", str(folder / "m"), "-q", "--quantize", "int8", input="1 2\n7\n")
    assert out == "one two\nseven\n"


def test_score_prefers_the_right_target(folder: Path) -> None:
    out = ok("score", str(folder / "m"), "-q", "--json", input="1 2\tone two\n1 2\ttwo one\n")
    right, wrong = (json.loads(line)["log_probability"] for line in out.splitlines())
    assert right > wrong
    rows = ok(
        "score", str(folder / "m"), "-q", "-f", "markdown", input="1 2\tone two\n"
    ).splitlines()
    assert rows[0] == "| log_probability | tokens | perplexity | source | target |"
    assert rows[2].endswith("| 1 2 | one two |")


def test_attention_is_shown_in_all_forms(folder: Path) -> None:
    model = str(folder / "m")
    drawn = ok("attention", model, "3 1")
    assert "three" in drawn
    assert "'█' 80-100%" in drawn
    record = json.loads(ok("attention", model, "3 1", "three one", "--json"))
    assert record["target"] == ["three", "one", "</s>"]
    assert all(sum(row) == pytest.approx(1, abs=1e-3) for row in record["weights"])
    for name in ("a.png", "a.svg", "a.html"):
        pairs = ok("attention", model, "3 1", "-f", "pharaoh", "--plot", str(folder / name))
        assert pairs.strip().count("-") == 2
        assert (folder / name).stat().st_size > 200


def test_unknown_words_are_copied_where_they_are_looked_for(folder: Path) -> None:
    result = run("predict", str(folder / "m"), "--copy-unknown", input="x y z\n")
    assert result.exit_code == 0
    assert "75% of the input is unknown" in result.stderr or "100% of the input" in result.stderr


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--beams", "0"], "greater than or equal to 1"),
        (["--max-length", "0"], "0"),
        (["--nbest", "9"], "--nbest 9 needs --beams 9"),
        (["--sampling", "--terms", "t"], "not with --sampling"),
    ],
)
def test_wrong_usage_is_said(folder: Path, flags: list[str], message: str) -> None:
    result = run("predict", str(folder / "m"), *flags, input="1\n")
    assert message in result.stderr
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--model", "lstm", "--heads", "2"], "--heads needs --model transformer"),
        (["--metric", "bleu"], "--metric needs --dev"),
        (["--patience", "3"], "--patience needs --dev"),
        (["--attention", "none", "--input-feeding"], "not with none"),
    ],
)
def test_options_that_would_do_nothing_are_refused(
    folder: Path, tmp_path: Path, flags: list[str], message: str
) -> None:
    train = ["train", str(folder / "train.tsv"), "-o", str(tmp_path / "m"), *SMALL]
    assert message in fails(*train, *flags, code=2)
    assert not (tmp_path / "m").exists()


def test_exact_matches_are_shown_as_what_is_right(folder: Path, tmp_path: Path) -> None:
    model, dev = tmp_path / "m", str(folder / "dev.tsv")
    flags = ["-t", "whitespace", "--dev", dev, "--metric", "exact", "--max-iters", "2"]
    small = [flag for flag in SMALL if flag != "-q"]
    result = run("train", str(folder / "train.tsv"), "-o", str(model), *flags, *small)
    assert f"held-out 0.0% exact; wrote {model}\n" in result.stderr
    assert json.loads((model / "config.json").read_text())["metrics"] == {"heldout_exact": 0.0}


def test_what_cannot_be_written_is_named(folder: Path) -> None:
    message = fails("predict", str(folder / "m"), "--prefix", "one eleven", input="1\n")
    assert "cannot write 'one eleven'" in message
    assert "does not spell 'eleven'" in message


def test_a_second_model_that_is_none_is_said_before_the_first_one_answers(
    folder: Path, tmp_path: Path
) -> None:
    flags = ["--compare", str(tmp_path), "--answers", str(tmp_path / "a")]
    message = fails("evaluate", str(folder / "m"), str(folder / "dev.tsv"), *flags)
    assert "not a model folder" in message
    assert not (tmp_path / "a").exists()


def test_bad_pairs_are_named_and_nothing_is_written(folder: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "a.en", tmp_path / "a.de"
    one.write_text("a\nb\n")
    other.write_text("c\n")
    files = ["--source", str(one), "--target", str(other)]
    assert "has 2 lines" in fails("train", *files, "-o", str(tmp_path / "m"), *SMALL)
    empty = tmp_path / "empty.tsv"
    empty.write_text("a\t\n\tb\n")
    assert "no pair has text" in fails("train", str(empty), "-o", str(tmp_path / "m"), *SMALL)
    held = ["--dev", str(empty), "-t", "whitespace"]
    message = fails("train", str(folder / "train.tsv"), *held, "-o", str(tmp_path / "m"), *SMALL)
    assert "no held-out pair has text on both sides" in message
    blank = tmp_path / "blank.tsv"
    blank.write_text("\n\n")
    assert "no pairs in the input" in fails("evaluate", str(folder / "m"), str(blank))
    long = tmp_path / "long.tsv"
    long.write_text("a b c d e f g\th\n")
    assert "longer than --max-length 3" in fails(
        *("train", str(long), "-o", str(tmp_path / "m"), *SMALL, "-t", "word", "--max-length", "3")
    )
    assert {path.name for path in tmp_path.iterdir()} == {
        *("a.en", "a.de", "blank.tsv", "empty.tsv", "long.tsv")
    }


def test_what_is_left_out_of_training_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_text("a b\tc d\n" * 8 + "a\t\n" + "a b c d e\tf\n")
    flags = ["-t", "word", "--max-length", "3", "--epochs", "1", "--dim", "8", "--threads", "1"]
    result = run("train", str(file), "-o", str(tmp_path / "m"), *flags)
    assert result.exit_code == 0, result.stderr
    assert "left out, 1 pair: had an empty side" in result.stderr
    assert "left out, 1 pair: had a side of more than --max-length 3" in result.stderr
    assert "auto picked lstm" in result.stderr


def test_features_that_the_model_has_not_are_told(folder: Path) -> None:
    result = run("predict", str(folder / "m"), input="1 2\tone two\n3\n")
    assert "1 line with a tab" in result.stderr
    assert "with a tab" not in run("predict", str(folder / "m"), input="1 2\n3\n").stderr


def test_features_become_symbols(tmp_path: Path) -> None:
    file = tmp_path / "forms.tsv"
    words = ["walk", "talk", "look", "jump", "play", "call"]
    file.write_text("".join(f"{w}\t{w}ed\tV;PST\n{w}\t{w}s\tV;3;SG\n" for w in words) * 5)
    columns = ["--source-columns", "1,3", "--target-column", "2"]
    model = str(tmp_path / "m")
    ok(
        "train",
        str(file),
        *columns,
        "-t",
        "char",
        "--epochs",
        "30",
        "--batch-tokens",
        "200",
        "-o",
        model,
        *SMALL,
    )
    out = ok("predict", model, "-q", input="walk\tV;PST\nwalk\tV;3;SG\n")
    assert out == "walked\nwalks\n"


def test_a_model_of_another_kind_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"kind": "gpt", "format_version": 1}')
    message = fails("predict", str(tmp_path), input="1\n")
    assert "is a gpt model, not a seq2seq model" in message


def test_clean_sorts_out_by_reason(tmp_path: Path) -> None:
    rejected = tmp_path / "bad.tsv"
    result = run("clean", "--rejected", str(rejected), input="a b\tc d\na b\tc d\nx\tx\n")
    assert result.stdout == "a b\tc d\n"
    assert rejected.read_text() == "duplicate\t2\ta b\tc d\nidentical\t3\tx\tx\n"
    assert "1 of 3 pairs kept, 2 left out: 1 identical, 1 duplicate" in result.stderr


def test_a_marian_transformer_goes_out_and_comes_back(folder: Path, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    import torch

    model, hf = str(tmp_path / "m"), str(tmp_path / "hf")
    flags = ["--model", "transformer", "--marian", "--max-iters", "8", "--heads", "2"]
    ok("train", str(folder / "train.tsv"), "-o", model, *flags, *SMALL, "--vocab-size", "280")
    ok("export", model, "-o", hf, "-q")
    theirs = transformers.MarianMTModel.from_pretrained(hf).eval()
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(hf)
    from nlpkit.tasks.translate.model import Translator

    ours = Translator.load(model)
    row = ours.encode_sources(["1 2 3"])
    assert tokenizer("1 2 3")["input_ids"] == row[0]
    with torch.inference_mode():
        target = torch.tensor([[0, 20, 30, 40]])
        found = ours.model.logits(ours.model.hidden(target, ours.encode_batch(row)))
        expected = theirs(input_ids=torch.tensor(row), decoder_input_ids=target).logits
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    ok("import", hf, "-o", str(tmp_path / "back"), "-q")
    back = Translator.load(tmp_path / "back")
    pairs = [line.split("\t") for line in digits(5, 4).splitlines()]
    from nlpkit.tasks.translate.data import Pair

    given = [Pair(*pair) for pair in pairs]
    for one, other in zip(ours.score(given), back.score(given), strict=True):
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-3)
    assert "not of Marian's kind" in fails("export", str(folder / "m"), "-o", str(tmp_path / "x"))
