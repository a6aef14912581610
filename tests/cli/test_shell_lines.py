"""Whole tasks as lines of shell, as they are typed: what one command writes, the next one reads."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from test_storage import on_terminal
from warm import Warm

ROOT = Path(__file__).parent.parent.parent
TAGGED = (
    '{"id": 0, "tokens": ["EU", "rejects", "German", "call"], "ner_tags": [3, 0, 7, 0]}\n'
    '{"id": 1, "tokens": ["Ann", "Lee", "sleeps", "."], "ner_tags": [1, 2, 0, 0]}\n'
) * 3
NAMES = "O,B-PER,I-PER,B-ORG,I-ORG,B-LOC,I-LOC,B-MISC,I-MISC"
SPANS = '{"id": 7, "text": "Ann Lee saw Peterson", "entities": [[0, 7, "PER"], [12, 17, "PER"]]}\n'
REVIEWS = 'nr,review,stars\n1,"Good, warm soup",1\n2,Cold and rude,0\n'

Shell = Callable[..., str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shell")
    (folder / "in.jsonl").write_text(
        '{"id": 1, "text": "The soup was cold."}\n{"id": 2, "text": "Great place!"}\n'
    )
    (folder / "in.tsv").write_text("id\treview\n1\tThe soup was cold.\n2\tGreat place!\n")
    (folder / "tagged.jsonl").write_text(TAGGED)
    (folder / "spans.jsonl").write_text(SPANS)
    (folder / "reviews.csv").write_text(REVIEWS + "3,good food,1\n4,cold food,0\n" * 6)
    (folder / "more.csv").write_text(REVIEWS)
    (folder / "sample_corpora").symlink_to(ROOT / "sample_corpora")
    return folder


@pytest.fixture
def shell(folder: Path, warm: Warm) -> Shell:
    """Lines of bash, which must end well; ``code`` is what else is expected."""

    def run(lines: str, code: int = 0) -> str:
        define = f'set -eo pipefail; nlpkit() {{ {warm.command} "$@"; }}\n'
        done = subprocess.run(
            ["bash", "-c", define + lines],
            cwd=folder,
            capture_output=True,
            encoding="utf-8",
            env={**os.environ, "COLUMNS": "80", "OMP_NUM_THREADS": "1"},
            timeout=120,
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr if code else done.stdout

    return run


def records(lines: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in lines.splitlines()]


def test_tokens_ids_and_tokens_again_keep_the_keys_of_a_record(shell: Shell) -> None:
    found = records(
        shell("""
        nlpkit tokenize --json --lower in.jsonl -o tokens.jsonl.zst
        nlpkit vocab build tokens.jsonl.zst -o words.vocab
        cat tokens.jsonl.zst | nlpkit encode -V words.vocab --json | nlpkit pad --json --maxlen 5 |
            nlpkit decode -V words.vocab --json
        """)
    )
    assert [one["id"] for one in found] == [1, 2]
    assert found[0]["text"] == "The soup was cold."
    assert found[0]["tokens"] == ["the", "soup", "was", "cold", "."]


def test_word_vectors_are_those_of_the_tokens_that_were_made(shell: Shell, folder: Path) -> None:
    shell("""
        train="nlpkit word2vec train -q --min-count 1 --dim 4 --epochs 1 --threads 1 -o"
        nlpkit tokenize --json --lower in.jsonl | $train of.tokens
        nlpkit tokenize --json --lower in.jsonl | $train of.text -t word
        """)
    assert "soup\t" in (folder / "of.tokens" / "vocab.tsv").read_text()
    assert "The\t" not in (folder / "of.tokens" / "vocab.tsv").read_text()
    assert "The\t" in (folder / "of.text" / "vocab.tsv").read_text()


def test_a_column_of_a_table_goes_through_a_pipe(shell: Shell) -> None:
    line = "cat in.tsv | nlpkit tokenize --input tsv --column review --json"
    assert records(shell(line))[1] == {
        "id": "2",
        "review": "Great place!",
        "tokens": ["Great", "place", "!"],
    }


def test_several_tables_with_integer_labels_train_a_classifier(shell: Shell) -> None:
    columns = "--text-column review --label-column stars"
    found = records(
        shell(f"""
        nlpkit classify train reviews.csv more.csv --key review --label-column stars -o stars \\
            -q --epochs 3 --threads 1
        nlpkit classify evaluate stars more.csv {columns} --plot stars.html > /dev/null
        nlpkit classify predict stars more.csv --column review --json
        """)
    )
    assert [one["nr"] for one in found] == ["1", "2"]
    assert {label["label"] for one in found for label in one["labels"]} <= {"0", "1"}  # type: ignore[attr-defined]
    both = shell("printf '__label__1 good soup\\n\\n' | nlpkit classify predict stars --json")
    gold, empty = records(both)
    assert gold["text"] == "good soup"
    assert empty["labels"] == []


def test_numbers_for_tags_become_names_and_come_out_in_every_form(shell: Shell) -> None:
    said = shell("nlpkit tag train tagged.jsonl -o ner -q", code=1)
    assert "--tag-names O,B-PER" in said
    flags = "--epochs 2 --threads 1 --word-dim 8 --hidden 8 -q"
    predict = "nlpkit tag predict ner -q"
    out = shell(f"""
        nlpkit tag train tagged.jsonl --tag-names {NAMES} -o ner {flags}
        {predict} --json tagged.jsonl > found.jsonl
        {predict} --format spans tagged.jsonl > found.spans.jsonl
        {predict} --format ner_tags tagged.jsonl > found.hf.jsonl
        for form in found found.spans found.hf; do {predict} $form.jsonl | head -1; done
        for form in found found.spans found.hf; do
            nlpkit tag evaluate ner $form.jsonl --json | head -c 12
        done
        """)
    assert out.count("EU/") == 3
    assert out.endswith('{"tokens": 2' * 3)
    first = records(shell("cat found.jsonl"))[0]
    assert (first["id"], len(first["tags"])) == (0, 4)  # type: ignore[arg-type]


def test_tasks_of_label_studio_and_examples_of_spacy_are_tagged(shell: Shell, folder: Path) -> None:
    value = {"start": 0, "end": 7, "labels": ["PER"]}
    example = {"id": 9, "data": {"text": "Ann Lee sleeps"}, "annotations": [{"result": []}]}
    example["annotations"][0]["result"].append({"type": "labels", "value": value})  # type: ignore[index]
    (folder / "tasks.json").write_text(json.dumps([example] * 4))
    out = shell("""
        nlpkit tag train tasks.json -o tasks -q --epochs 9 --threads 1 --word-dim 8 --hidden 8
        nlpkit tag predict tasks tasks.json -q --format spans | tail -1
        echo '["Ann Lee sleeps", {"entities": []}]' > old.jsonl
        nlpkit tag predict tasks old.jsonl -q --format spans
        echo '[["Ann Lee sleeps", {"entities": []}]]' > old.json
        nlpkit tag predict tasks old.json -q --format spans
        """)
    task, *old = out.splitlines()
    assert [json.loads(one)["entities"] for one in old] == [[[0, 7, "PER"]]] * 2
    assert json.loads(task) == {"id": 9, "text": "Ann Lee sleeps", "entities": [[0, 7, "PER"]]}


def test_spans_between_borders_of_tokens_are_counted_and_shown(shell: Shell) -> None:
    train = "nlpkit tag train spans.jsonl -o spans --epochs 1 --threads 1 --word-dim 8 --hidden 8"
    said = shell(f"{train} 2>&1")
    assert "1 span left out" in said
    assert "[12, 17] is 'Peter'" in said


def test_a_curve_can_be_followed_while_a_model_is_trained(shell: Shell) -> None:
    out = shell("""
        nlpkit names train sample_corpora/names-en.txt -o live --model mlp --dim 8 --threads 1 \
            --max-time 1s --metrics curve.jsonl -q &
        until [ -s curve.jsonl ]; do sleep 0.02; done
        [ -e live ] || head -1 curve.jsonl
        wait $!
        tail -1 curve.jsonl
        cmp curve.jsonl live/metrics.jsonl
        """)
    first, last = map(json.loads, out.splitlines())
    assert 1 <= first["step"] < last["step"]


def test_the_curve_of_word2vec_has_steps_and_is_drawn_by_them(shell: Shell, folder: Path) -> None:
    shell("""
        nlpkit tokenize --lower sample_corpora/tales.txt | head -500 > tales.txt
        nlpkit word2vec train tales.txt -o tales.model --dim 4 --epochs 2 --threads 1 \
            --metrics words.jsonl -q
        cmp words.jsonl tales.model/metrics.jsonl
        nlpkit info tales.model --plot curve.svg > /dev/null
        """)
    steps = [json.loads(line)["step"] for line in (folder / "words.jsonl").open()]
    assert steps == sorted(set(steps))
    assert "<!-- step -->" in (folder / "curve.svg").read_text(encoding="utf-8")


# --- pictures, and what a person sees on a terminal ---------------------------------------------


def test_words_are_drawn_with_groups_and_arrows(shell: Shell, folder: Path) -> None:
    (folder / "v.txt").write_text(
        "6 3\n, 1 1 1\nthe 1 1 0\nking 1 0 0\nqueen 1 0 1\nman 0 1 0\nwoman 0 1 1\n"
    )
    said = shell("""
        printf 'king\\troyal\\nqueen\\troyal\\nman\\tpeople\\n' > groups.tsv
        printf 'king queen\\nman woman\\n' > pairs.txt
        nlpkit vectors plot -m v.txt --groups groups.tsv --relations pairs.txt -o words.svg 2>&1
        nlpkit vectors plot -m v.txt --groups groups.tsv --relations pairs.txt -o words.html -q
        nlpkit vectors plot -m v.txt --top 9 -o top.svg 2>&1
        echo 'king ox' | nlpkit vectors plot -m v.txt --relations - -o one.svg 2>&1
        """)
    assert said == (
        "4 words to words.svg\n"
        "4 words to top.svg\n"  # no comma and no stop word
        "warning: 1 unknown word of the files left out\n"
        "1 word to one.svg\n"
    )
    picture = (folder / "words.svg").read_text(encoding="utf-8")
    for text in ("royal", "people", "woman", "4 words of v.txt"):
        assert f"<!-- {text} -->" in picture
    assert re.search(r"<!-- axis 1 \(\d+% of variance\) -->", picture)
    page = (folder / "words.html").read_text(encoding="utf-8")
    assert '"relations":[[0,1],[2,3]]' in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_a_table_on_a_narrow_terminal_keeps_names_and_scores(folder: Path) -> None:
    (folder / "v4.txt").write_text("4 2\nking 1 0\nqueen 0.9 0.1\nman 0.7 0.7\nwoman 0.6 0.8\n")
    (folder / "questions.txt").write_text(": a-very-long-name-of-a-section\nman king woman queen\n")
    ask = ("vectors", "evaluate", "analogies", "questions.txt", "-m", "v4.txt", "-q")
    wide = on_terminal(folder, *ask, columns=90)
    narrow = on_terminal(folder, *ask, columns=66)
    assert "coverage" in wide
    assert "coverage" not in narrow
    row = next(line for line in narrow.splitlines() if line.startswith("a-very"))
    assert row.split() == ["a-very-long-name-of-a-section", "1", "1", "1.0000"]


def test_a_person_is_told_that_samples_repeat_and_help_is_in_colour(
    shell: Shell, folder: Path
) -> None:
    shell("nlpkit names train sample_corpora/names-ca.txt -o names.model --model ngram -q")
    seen = on_terminal(folder, "names", "sample", "names.model", "-n", "1")
    assert "seed 1, as always; --seed random for other samples" in seen
    assert shell("nlpkit names sample names.model -n 1 2>&1").count("\n") == 1
    page = on_terminal(folder, "pad", "--help", columns=80)
    assert "\x1b[1mOutput:\x1b[0m" in page
    assert max(len(re.sub(r"\x1b\[\d*m", "", line)) for line in page.splitlines()) <= 80
