"""``nlpkit tag`` as a user runs it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from nlpkit.cli.main import app

SMALL = ["--hidden", "8", "--word-dim", "8", "--threads", "1", "--quiet"]
NER = (
    "Ann\tNNP\tB-PER\nmet\tVBD\tO\nBob\tNNP\tB-PER\nRay\tNNP\tI-PER\n\n"
    "# a comment\nRio\tNNP\tB-LOC\nwaits\tVBZ\tO\n.\t.\tO\n\n"
)
POS = (
    "# text = The dog barks.\n1\tThe\tthe\tDET\tDT\t_\t_\t_\t_\t_\n"
    "2\tdog\tdog\tNOUN\tNN\t_\t_\t_\t_\t_\n2.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "3-4\tbarks.\t_\t_\t_\t_\t_\t_\t_\t_\n3\tbarks\tbark\tVERB\tVBZ\t_\t_\t_\t_\tSpaceAfter=No\n"
    "4\t.\t.\tPUNCT\t.\t_\t_\t_\t_\t_\n\n"
)


def run(*arguments: str, input: str | bytes = "") -> Result:
    result = CliRunner().invoke(app, ["tag", *arguments], input=input)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tag")
    (folder / "ner.conll").write_text(NER * 4)
    (folder / "pos.conllu").write_text(POS * 4)
    for name, data in [("ner", "ner.conll"), ("pos", "pos.conllu")]:
        flags = ["--epochs", "60", "--lr", "0.02", "--batch-tokens", "16", *SMALL]
        result = run("train", str(folder / data), "-o", str(folder / name), *flags)
        assert result.exit_code == 0, result.output
    return folder


def test_columns_come_back_with_tags_filled_in(folder: Path) -> None:
    blank = NER.replace("B-PER", "_").replace("I-PER", "_").replace("B-LOC", "_")
    assert run("predict", str(folder / "ner"), input=blank).stdout == NER
    untagged = "Ann\tNNP\nmet\tVBD\n\n"
    tagged = "Ann\tNNP\tB-PER\nmet\tVBD\tO\n\n"
    assert run("predict", str(folder / "ner"), input=untagged).stdout == tagged


def test_conllu_in_conllu_out_byte_for_byte(folder: Path) -> None:
    blank = POS.replace("NOUN", "_").replace("\r", "") + "# the end\n"
    result = run("predict", str(folder / "pos"), input=blank)
    assert result.stdout == POS + "# the end\n"
    crlf = POS.replace("\n", "\r\n")
    assert run("predict", str(folder / "pos"), input=crlf.encode()).stdout_bytes == crlf.encode()


def test_entities_of_a_column_model_go_into_misc(folder: Path) -> None:
    text = POS.replace("dog", "Rio")
    out = run("predict", str(folder / "ner"), input=text).stdout
    assert "\tNOUN\tNN\t_\t_\t_\t_\tNER=" in out
    assert out.replace("NER=O", "_").count("\t") == text.count("\t")


def test_raw_text_and_tokens_become_slash_lines(folder: Path) -> None:
    result = run("predict", str(folder / "pos"), input="The dog barks.\n\nThe dog\n")
    assert result.stdout == "The/DET dog/NOUN barks/VERB ./PUNCT\n\nThe/DET dog/NOUN\n"
    result = run("predict", str(folder / "pos"), "--input", "tokens", input="The dog barks.\n")
    assert result.stdout.startswith("The/DET dog/NOUN barks./")


def test_jsonl_has_offsets_and_probabilities(folder: Path) -> None:
    result = run("predict", str(folder / "ner"), "--json", input="Ann  met Bob Ray\n")
    record = json.loads(result.stdout)
    assert record["tokens"] == ["Ann", "met", "Bob", "Ray"]
    for entity in record["entities"]:
        assert record["text"][entity["start"] : entity["end"]] == entity["text"]
        assert 0 < entity["probability"] <= 1
    assert [(e["text"], e["type"]) for e in record["entities"]] == [
        ("Ann", "PER"),
        ("Bob Ray", "PER"),
    ]
    columns = run("predict", str(folder / "pos"), "--json", input=POS)
    assert json.loads(columns.stdout)["text"] == "The dog barks."


def test_colours(folder: Path) -> None:
    result = run("predict", str(folder / "ner"), "-f", "color", input="Ann met Bob Ray\n")
    assert "Bob Ray\x1b[0m\x1b[2m[PER]" in result.stdout


def test_output_order_is_input_order(folder: Path) -> None:
    lines = [" ".join(["dog"] * (1 + number * 7 % 11)) for number in range(60)]
    result = run("predict", str(folder / "pos"), input="\n".join(lines))
    assert [line.count("dog/") for line in result.stdout.splitlines()] == [
        line.count("dog") for line in lines
    ]


def test_predicting_leaves_torch_alone(folder: Path) -> None:
    code = (
        "import sys; from nlpkit.cli.main import app\n"
        "try: app(['tag', 'predict', sys.argv[1]])\n"
        "except SystemExit: pass\n"
        "print(*sorted({'torch', 'numba', 'matplotlib', 'rich', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder / "pos")],
        input=b"The dog\n",
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"The/DET dog/NOUN\n\n"


def test_evaluate_a_model_and_two_files(folder: Path, tmp_path: Path) -> None:
    data = str(folder / "ner.conll")
    report = json.loads(run("evaluate", str(folder / "ner"), data, "--json").stdout)
    assert report["entities"]["f1"] == 1.0
    assert report["known_tokens"] == report["tokens"] == 28
    predicted = tmp_path / "predicted"
    predicted.write_text((NER * 4).replace("Bob\tNNP\tB-PER", "Bob\tNNP\tO", 1))
    page = tmp_path / "c.html"
    sure = run("evaluate", str(folder / "ner"), data, "--json", "--plot", str(page)).stdout
    bins = json.loads(sure)["calibration"]
    assert sum(part["tokens"] for part in bins) == 28
    assert all(part["accuracy"] == 1 for part in bins)
    assert json.loads(sure)["calibration_error"] == pytest.approx(
        sum(part["tokens"] * (1 - part["confidence"]) for part in bins) / 28
    )
    assert "<title>right B-PER → B-PER: " in page.read_text()
    assert " tokens: " in page.read_text()
    picture = tmp_path / "c.svg"
    result = run(
        "evaluate", data, str(predicted), "--worst", "1", "--confusion", "--plot", str(picture)
    )
    assert (
        "entity F1\t91.67%" in result.stdout
    )  # 11 of 12 and 11 of 12: the I- left behind is wrong
    assert "Bob\tB-PER\tO\n" in result.stdout
    assert "right \\ predicted" in result.stdout
    assert picture.read_text().startswith("<?xml")


def test_tags_that_training_never_saw_are_mistakes_with_a_warning(folder: Path) -> None:
    (folder / "new.conllu").write_text(POS.replace("NOUN", "THING"))
    result = run("evaluate", str(folder / "pos"), str(folder / "new.conllu"))
    assert result.exit_code == 0
    assert "training never saw count as mistakes: THING" in result.stderr
    assert "accuracy\t75.00%" in result.stdout


def test_check(folder: Path) -> None:
    bad = folder / "bad.conll"
    bad.write_text(NER + "Zed\tNNP\tO\nRio\tNNP\tI-LOC\n\n" + NER)
    result = run("check", str(folder / "ner.conll"), str(bad))
    assert f"illegal\t\t{bad}: line 12: I-LOC after O" in result.stdout
    assert "shared\t4\tsentences" in result.stdout
    records = [json.loads(x) for x in run("check", str(bad), "--json").stdout.splitlines()]
    assert records[0]["sentences"] == 5
    assert records[0]["duplicates"] == 2


def test_training_reports_illegal_tags_and_goes_on(tmp_path: Path) -> None:
    data = tmp_path / "d"
    data.write_text("a\tB-X\nb\tI-X\n\nc\tO\nd\tI-X\n\ne\tB-X\n")
    flags = [flag for flag in SMALL if flag != "--quiet"]
    result = run("train", str(data), "-o", str(tmp_path / "m"), "--epochs", "1", *flags)
    assert result.exit_code == 0
    assert f"warning: {data}: line 5: I-X after O" in result.stderr


@pytest.mark.parametrize(
    ("content", "flags", "message"),
    [
        (b"", [], "nothing in it"),
        (b"\n\n# only\n\n", [], "no tagged sentences"),
        (b"Just plain text here.\n", [], "no tagged sentences were recognised"),
        (b"a\tX\tO\nb\tX\n" + b"d\tX\tO\n" * 30, [], "line 2: expected 3 columns between tabs"),
        (b"a\tX\nb\n\nc\tX\n", [], "line 2: expected 2 columns"),
        (b"EU NNP B-ORG\nsays VBZ\n. . O\n", [], "line 2: expected 3 columns between spaces"),
        (POS.replace("\tNN\t_", "").encode(), [], "line 3: expected 10 columns between tabs"),
        (b"a\tX\n\xffb\tO\n", [], "line 2, byte 1: 0xff is not valid UTF-8"),
        (POS.replace("NOUN", "_").encode(), ["--column", "feats"], "holds _ everywhere"),
        (POS.encode(), ["--column", "nope"], "no such CoNLL-U column"),
    ],
)
def test_bad_data_is_one_clear_line(
    tmp_path: Path, content: bytes, flags: list[str], message: str
) -> None:
    data = tmp_path / "data"
    data.write_bytes(content)
    result = run("train", str(data), "-o", str(tmp_path / "m"), *flags, *SMALL)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "m").exists()


def test_one_tag_trains_with_a_warning(tmp_path: Path) -> None:
    data = tmp_path / "d"
    data.write_text("a/X b/X\nc/X\n")
    flags = [flag for flag in SMALL if flag != "--quiet"]
    result = run("train", str(data), "-o", str(tmp_path / "m"), "--epochs", "1", *flags)
    assert "one tag only" in result.stderr
    assert run("predict", str(tmp_path / "m"), input="q r\n").stdout == "q/X r/X\n"


def test_strings_of_characters(tmp_path: Path) -> None:
    data = tmp_path / "dna"
    data.write_text("ACGACG\tNNNCCC\nGACTTT\tNNNCCC\n" * 3)
    flags = ["--epochs", "30", "--lr", "0.02", "--batch-tokens", "12", *SMALL]
    assert run("train", str(data), "-o", str(tmp_path / "m"), *flags).exit_code == 0
    assert run("predict", str(tmp_path / "m"), input="ACGACG\n").stdout == "ACGACG\tNNNCCC\n"


def test_an_existing_model_is_refused(folder: Path) -> None:
    result = run("train", str(folder / "pos.conllu"), "-o", str(folder / "pos"))
    assert result.exit_code == 1
    assert "--force" in result.stderr
    wrong = run("predict", str(folder / "nowhere"), input="x")
    assert wrong.exit_code == 1
    assert "no such model" in wrong.stderr


def test_a_saved_config_trains_the_same_model(folder: Path, tmp_path: Path) -> None:
    config = folder / "pos" / "config.json"
    target = tmp_path / "again"
    flags = ["--config", str(config), "--threads", "1", "--quiet"]
    result = run("train", str(folder / "pos.conllu"), "-o", str(target), *flags)
    assert result.exit_code == 0, result.output
    weights = "weights.safetensors"
    assert (target / weights).read_bytes() == (folder / "pos" / weights).read_bytes()


@pytest.mark.parametrize("text", ["", "\n", " \n\t\n", "\r\n\r\n", "\ufeff", "Ann", "# x\n", "#"])
@pytest.mark.parametrize("flags", [[], ["--input", "text"], ["--input", "columns"], ["--json"]])
def test_next_to_nothing_is_tagged(folder: Path, text: str, flags: list[str]) -> None:
    result = run("predict", str(folder / "ner"), *flags, input=text)
    assert (result.exit_code, result.stderr) == (0, "")


def test_blank_lines_do_not_hide_columns(folder: Path, tmp_path: Path) -> None:
    # the lines arrive one after the other, as from a pipe that waits
    from nlpkit.cli.output import Writer
    from nlpkit.cli.tag_output import predict_stream
    from nlpkit.tasks.tag.predictor import Tagger
    from nlpkit.textio import TextBlock

    blocks = [
        TextBlock(b"\n", "-", 1),
        TextBlock(b" \n", "-", 2),
        TextBlock(b"Ann\tNNP\t_\n", "-", 3),
    ]
    out = io.BytesIO()
    predict_stream(
        Tagger.load(str(folder / "ner")),
        blocks,
        Writer(out),
        input="auto",
        format="auto",
        errors="strict",
        token_column=None,
        to_file=False,
    )
    assert out.getvalue() == b"\n \nAnn\tNNP\tB-PER\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "nothing in it"),
        ("\n \n", "no tagged sentences were recognised"),
        ("Ann\nmet\n", "no tagged sentences were recognised"),
        ("Ann\tNNP\tB-PER\nmet\tVBD\n", "line 2: expected 3 columns"),
        ("Ann\tNNP\tB-PER\nmet\tVBD\t\n", "line 2: the tag is empty"),
        ("Ann\tNNP\tB-PER\n\tVBD\tO\n", "line 2: the token is empty"),
    ],
)
def test_evaluating_bad_columns_is_one_clear_line(
    folder: Path, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "bad.conll").write_text(text)
    for command in (["evaluate", str(folder / "ner")], ["check"], ["train", "-o", "x"]):
        result = run(*command, str(tmp_path / "bad.conll"))
        assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
        assert message in result.stderr


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("met\tVBD\t", "met VBD ", 1),
        lambda text: text.rstrip("\n"),
    ],
)
def test_line_ends_marks_and_spaces_make_no_difference(
    folder: Path, tmp_path: Path, change: Callable[[str], str]
) -> None:
    (tmp_path / "test.conll").write_bytes(change(NER * 2).encode())
    result = run("evaluate", str(folder / "ner"), str(tmp_path / "test.conll"), "--json")
    scores = json.loads(result.stdout)
    assert (scores["tokens"], scores["accuracy"], result.stderr) == (14, 1, "")


def test_tags_that_training_never_saw_are_named_whole(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "pos.txt").write_text("The\tDET\ndog\tNOUN\nbarks\tVERB\n.\tPUNCT\n")
    warning = run("evaluate", str(folder / "ner"), str(tmp_path / "pos.txt")).stderr
    assert "never saw count as mistakes: DET NOUN PUNCT VERB\n" in warning
    (tmp_path / "ner.txt").write_text("Ann\tB-PER\nof\tO\nOslo\tB-TOWN\n")
    warning = run("evaluate", str(folder / "ner"), str(tmp_path / "ner.txt")).stderr
    assert "never saw count as mistakes: TOWN\n" in warning
    (tmp_path / "one.txt").write_text("Ann\tB-PER\nBob\tB-PER\n")
    assert run("evaluate", str(folder / "ner"), str(tmp_path / "one.txt")).exit_code == 0


def test_the_last_line_without_an_end_counts_in_finding_out_the_layout(tmp_path: Path) -> None:
    # by itself the first line could be a string with a tag for each of its characters
    (tmp_path / "short.txt").write_text("The\tDET\ndog\tNOUN")
    report = json.loads(run("check", str(tmp_path / "short.txt"), "--json").stdout)
    assert report["tokens"] == 2
