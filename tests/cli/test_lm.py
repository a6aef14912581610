"""``nlpkit lm`` as it is used: trained, scored, asked, compared, with pipes and bad input."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import pytest
from model_kinds import SENTENCE, SHUFFLED
from warm import Warm

TEXT = "\n".join([SENTENCE, SENTENCE.replace("cat", "dog"), "the dog ran off."] * 20) + "\n"


@pytest.fixture(scope="module")
def folder(warm: Warm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a text and models of it."""
    where = tmp_path_factory.mktemp("lm")
    (where / "text.txt").write_text(TEXT, encoding="utf-8")
    small = ["--dim", "16", "--layers", "1", "--block-size", "16", "--batch-size", "4"]
    for name, flags in {
        "words": ["--model", "ngram", "--order", "3", "-t", "word", "--val-fraction", "0"],
        "chars": ["--model", "ngram", "--order", "5"],
        "lstm": ["--model", "lstm", *small, "--max-iters", "60", "--dim", "32"],
    }.items():
        warm.ok(where, "lm", "train", "text.txt", "-o", f"{name}.model", *flags)
    return where


def rows(out: str) -> list[dict]:
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize("model", ["words", "chars", "lstm"])
def test_what_was_learned_is_likelier_than_what_was_shuffled(
    warm: Warm, folder: Path, model: str
) -> None:
    lines = f"{SENTENCE}\n{SHUFFLED}\n"
    good, bad = rows(
        warm.ok(folder, "lm", "score", f"{model}.model", "--lines", "--json", input=lines)
    )
    assert good["bits_per_byte"] < bad["bits_per_byte"]
    assert good["words"] == 12
    (whole,) = rows(warm.ok(folder, "lm", "score", f"{model}.model", "text.txt", "--json"))
    assert whole["bytes"] == len(TEXT)
    nats = whole["bits_per_byte"] * whole["bytes"] * math.log(2)
    assert whole["perplexity_per_word"] == pytest.approx(math.exp(nats / whole["words"]), rel=1e-2)


@pytest.mark.parametrize("model", ["words", "chars", "lstm"])
def test_the_tokens_of_a_text_add_up_to_its_score(warm: Warm, folder: Path, model: str) -> None:
    text = "the small cat sat.\nthe dog ran off.\n"
    tokens = rows(warm.ok(folder, "lm", "score", f"{model}.model", "--tokens", input=text))
    (whole,) = rows(warm.ok(folder, "lm", "score", f"{model}.model", "--json", input=text))
    assert len(tokens) == whole["tokens"]
    bits = -sum(token["logprob"] for token in tokens) / math.log(2)
    assert bits / len(tokens) == pytest.approx(whole["bits_per_token"], rel=1e-3)
    if model != "words":
        assert "".join(token["token"] for token in tokens) == text


def test_a_text_longer_than_any_block_is_scored_as_in_one_piece(warm: Warm, folder: Path) -> None:
    for model in ("chars", "lstm"):
        tokens = rows(warm.ok(folder, "lm", "score", f"{model}.model", "text.txt", "--tokens"))
        (whole,) = rows(warm.ok(folder, "lm", "score", f"{model}.model", "text.txt", "--json"))
        mean = -sum(token["logprob"] for token in tokens) / len(tokens)
        assert mean == pytest.approx(math.log(whole["perplexity"]), rel=1e-3)


def test_next_shows_probabilities_that_fall(warm: Warm, folder: Path) -> None:
    found = rows(warm.ok(folder, "lm", "next", "words.model", "the small", "-k", "3", "--json"))
    assert {found[0]["next"], found[1]["next"]} == {"cat", "dog"}
    shares = [row["probability"] for row in found]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) <= 1
    two = rows(warm.ok(folder, "lm", "next", "words.model", "--json", input="the old\na dog\n"))
    assert [row["text"] for row in two] == ["the old"] * 5 + ["a dog"] * 5
    (word,) = rows(
        warm.ok(folder, "lm", "next", "chars.model", "the sm", "--words", "-k", "1", "--json")
    )
    assert word["next"] == "all"


def test_compare_puts_first_what_the_first_text_favours(warm: Warm, folder: Path) -> None:
    pair = ["the small _", "the old _"]
    found = rows(warm.ok(folder, "lm", "compare", "words.model", *pair, "-k", "3", "--json"))
    assert found[0]["token"] in ("cat", "dog")
    assert found[-1]["token"] == "mat"
    assert found[0]["difference"] == pytest.approx(
        math.log(found[0]["first"] / found[0]["second"]), abs=1e-2
    )
    every = warm.ok(folder, "lm", "compare", "words.model", *pair, "-k", "0", "--json")
    assert sum(row["first"] for row in rows(every)) == pytest.approx(1, abs=1e-3)
    named = warm.ok(folder, "lm", "compare", "chars.model", *pair, "--targets", "mat,cat", "--json")
    assert [row["token"] for row in rows(named)] == ["cat", "mat"]


@pytest.mark.parametrize("name", ["plot.html", "plot.svg"])
def test_the_scatter_plot_is_one_file(warm: Warm, folder: Path, name: str) -> None:
    warm.ok(folder, "lm", "compare", "words.model", "the small _", "the old _", "--plot", name)
    text = (folder / name).read_text(encoding="utf-8")
    assert "<svg" in text
    assert "<script" not in text
    assert (name == "plot.svg") or ">&#x27;" in text.replace("'", "&#x27;")


def test_pairs_of_texts_come_from_a_file(warm: Warm, folder: Path) -> None:
    text = "the small _\tthe old _\nthe _\ta _\n"
    found = rows(
        warm.ok(
            folder, "lm", "compare", "words.model", "--pairs", "-", "-k", "2", "--json", input=text
        )
    )
    assert [row["pair"] for row in found] == [1, 1, 2, 2]
    assert "•" in warm.ok(folder, "lm", "compare", "words.model", "the _", "a _", "--view")


def test_an_arpa_file_scores_as_the_model_it_came_from(warm: Warm, folder: Path) -> None:
    warm.ok(folder, "lm", "export", "words.model", "-o", "words.arpa")
    warm.ok(folder, "lm", "import", "words.arpa", "-o", "again.model")
    text = "the small cat sat on the old mat\n"  # the same words by white space alone
    (one,) = rows(warm.ok(folder, "lm", "score", "words.model", "--json", input=text))
    (two,) = rows(warm.ok(folder, "lm", "score", "again.model", "--json", input=text))
    assert one["perplexity"] == pytest.approx(two["perplexity"], rel=1e-4)


def test_samples_keep_to_their_wishes(warm: Warm, folder: Path) -> None:
    command = ["lm", "sample", "words.model", "the", "--json", "-n", "30"]
    (plain,) = rows(warm.ok(folder, *command, "--seed", "4"))
    assert set("".join(plain["tokens"])) <= set(TEXT)
    (biased,) = rows(warm.ok(folder, *command, "--logit-bias", "small=50", "-n", "1"))
    assert biased["tokens"] == ["small"]
    (once,) = rows(warm.ok(folder, *command, "--no-repeat-ngram", "2", "--temperature", "2"))
    pairs = list(itertools.pairwise(["the", *once["tokens"]]))
    assert len(set(pairs)) == len(pairs) > 2
    assert "<unk>" not in once["tokens"]
    beams = rows(warm.ok(folder, *command, "--beams", "3", "--samples", "2"))
    assert [beam["score"] for beam in beams] == sorted((b["score"] for b in beams), reverse=True)
    assert warm.ok(folder, "lm", "sample", "lstm.model", "the", "-n", "40").startswith("the")


def test_a_conversation_keeps_its_context(warm: Warm, folder: Path) -> None:
    out = warm.ok(
        folder, "lm", "sample", "words.model", "--interactive", "-n", "3", input="the small\nthe\n"
    )
    assert len(out.splitlines()) == 2


def test_copied_text_is_found(warm: Warm, folder: Path) -> None:
    (folder / "copy.txt").write_text(SENTENCE + "\nzz qq xx vv kk jj ww hh\n", encoding="utf-8")
    (record,) = rows(
        warm.ok(
            folder,
            "lm",
            "novelty",
            "words.model",
            "--train",
            "text.txt",
            "--sample",
            "copy.txt",
            "--heldout",
            "copy.txt",
            "--json",
        )
    )
    assert record["passages"][0]["text"].startswith(SENTENCE)
    assert 0.2 < record["new"]["8"] < 0.6
    assert record["heldout"] == record["new"]
    assert "new" in warm.ok(
        folder, "lm", "novelty", "words.model", "--train", "text.txt", "-n", "50"
    )


def test_gradients_by_layer_and_distance_are_in_the_metrics(warm: Warm, folder: Path) -> None:
    curve = json.loads(warm.ok(folder, "info", "lstm.model", "--json"))["curve"]
    measured = [record for record in curve if "gradient_by_distance" in record]
    assert len(measured) >= 10
    last = measured[-1]
    assert len(last["gradient_by_distance"]) == 16
    assert last["gradient_by_distance"][0] > last["gradient_by_distance"][-1] > 0
    assert set(last["gradient_by_layer"]) == {"embedding", "layer 1", "head"}


@pytest.mark.parametrize("unit", ["lines", "documents"])
def test_units_of_text_do_not_see_each_other(
    warm: Warm, folder: Path, tmp_path: Path, unit: str
) -> None:
    between = "\n" if unit == "lines" else "\n\n"
    (tmp_path / "text.txt").write_text(between.join(["a b c", "x y z"] * 20), encoding="utf-8")
    warm.ok(
        tmp_path, "lm", "train", "text.txt", "-o", "m.model", "--model", "ngram", "--order", "4",
        "-t", "word", "--unit", unit, "--val-fraction", "0",
    )  # fmt: skip
    scores = rows(warm.ok(tmp_path, "lm", "score", "m.model", "--tokens", input="a b c\na b c\n"))
    half = len(scores) // 2
    assert [s["logprob"] for s in scores[:half]] == [s["logprob"] for s in scores[half:]]


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        (["lm", "compare", "words.model", "no blank", "the _"], "", "no blank"),
        (["lm", "compare", "words.model", "a _ b _", "the _"], "", "2 blanks"),
        (["lm", "compare", "words.model", "the _ cat", "the _"], "", "not at the end"),
        (["lm", "score", "chars.model"], "the Ω\n", "has never seen 'Ω'"),
        (["lm", "score", "words.model"], "", "no text"),
        (["lm", "export", "lstm.model"], "", "holds no n-grams"),
        (["lm", "train", "-o", "n.model", "--model", "ngram"], "ab", "smaller --order"),
        (["lm", "train", "-o", "n.model", "--model", "lstm"], "a", "1 token is too few"),
        (["lm", "train", "-o", "n.model", "--model", "ngram", "--order", "7"], "abc", "at most 6"),
        (["lm", "train", "-o", "n.model", "--model", "ngram", "--smoothing", "interpolation",
          "--val-fraction", "0"], "the cat sat on the mat", "held-out"),
        (["lm", "import", "-o", "n.model", "text.txt"], "", "begins with"),
        (["lm", "novelty", "words.model", "--train", "-"], "short", "too few"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(
    warm: Warm, folder: Path, arguments: list[str], text: str, message: str
) -> None:
    done = warm.run(folder, *arguments, input=text)
    assert done.code == 1, done.err
    (line,) = [line for line in done.err.splitlines() if line.startswith("error")]
    assert message in line
    assert not (folder / "n.model").exists()
