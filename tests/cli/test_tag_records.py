"""Tagged sentences as JSON lines: what others write, what predict writes, and through pipes."""

from __future__ import annotations

import json
import warnings
import zlib
from pathlib import Path
from typing import Any

import pytest
from command_runner import Runner
from warm import Warm

from nlpkit.errors import NlpkitError, NlpkitWarning
from nlpkit.tasks.tag.layouts import LayoutChoice
from nlpkit.tasks.tag.reading import read_tagged

SPANS = [
    '{"id": 1, "text": "Ada Lovelace lives in Paris.", '
    '"entities": [[0, 12, "PER"], [22, 27, "LOC"]]}',
    '{"text": "Ada Lovelace lives in Paris.", "label": [[22, 27, "LOC"], [0, 12, "PER"]]}',
    '{"text": "Ada Lovelace lives in Paris.", "entities": [{"start": 0, "end": 12, "type": "PER"}, '
    '{"start": 22, "end": 27, "labels": ["LOC"]}]}',
    '{"tokens": ["Ada", "Lovelace", "lives", "in", "Paris", "."], '
    '"tags": ["B-PER", "I-PER", "O", "O", "B-LOC", "O"]}',
    '{"tokens": ["Ada", "Lovelace", "lives", "in", "Paris", "."], "ner_tags": [1, 2, 0, 0, 3, 0]}',
    '["Ada Lovelace lives in Paris.", {"entities": [[0, 12, "PER"], [22, 27, "LOC"]]}]',
    '[["Ada Lovelace lives in Paris.", {"entities": [[0, 12, "PER"], [22, 27, "LOC"]]}]]',
    '[\n  {"id": 1, "data": {"text": "Ada Lovelace lives in Paris."}, "annotations": [{"result": ['
    '{"type": "labels", "value": {"start": 0, "end": 12, "labels": ["PER"]}}, '
    '{"type": "labels", "value": {"start": 22, "end": 27, "labels": ["LOC"]}}]}]}\n]',
    '[{"text": "Ada Lovelace lives in Paris.", "label": [{"start": 0, "end": 12, "labels": ["PER"]}'
    ', {"start": 22, "end": 27, "labels": ["LOC"]}]}]',
]
NAMES = "O,B-PER,I-PER,B-LOC"


@pytest.mark.parametrize("line", SPANS)
def test_each_way_to_write_entities_is_the_same_sentence(tmp_path: Path, line: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(line + "\n")
    ((sentence,), _) = read_tagged([str(path)], LayoutChoice(tag_names=NAMES))
    assert sentence.tokens == ["Ada", "Lovelace", "lives", "in", "Paris", "."]
    assert sentence.tags == ["B-PER", "I-PER", "O", "O", "B-LOC", "O"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, warm: Warm) -> Path:
    """A tagger that knows one sentence by heart."""
    folder = tmp_path_factory.mktemp("tagger")
    (folder / "train.jsonl").write_text((SPANS[0] + "\n") * 4)
    train = ["tag", "train", "train.jsonl", "-o", "ner", "--epochs", "15", "-q"]
    assert warm.run(folder, *train).code == 0
    return folder / "ner"


def test_entities_go_out_in_the_form_that_others_read(
    tmp_path: Path, warm: Warm, model: Path
) -> None:
    def tag(text: str, form: str, *more: str) -> dict[str, Any]:
        found = warm.run(
            tmp_path, "tag", "predict", str(model), "--format", form, *more, input=text
        )
        assert found.code == 0, found.err
        return json.loads(found.out)

    spans = [[0, 12, "PER"], [22, 27, "LOC"]]
    text = "Ada Lovelace lives in Paris."
    assert tag(text + "\n", "spans") == {"text": text, "entities": spans}
    doccano = json.dumps({"id": 3, "text": text, "label": []}) + "\n"
    assert tag(doccano, "spans") == {"id": 3, "text": text, "label": spans}
    tags = ["B-PER", "I-PER", "O", "O", "B-LOC", "O"]
    tokens = [*text[:-1].split(), "."]
    assert tag(text + "\n", "ner_tags") == {"tokens": tokens, "ner_tags": tags}
    table = f"id,body\n4,{text}\n"
    assert tag(table, "spans", "--key", "body", "-q") == {
        "id": "4", "body": text, "text": text, "entities": spans
    }  # fmt: skip
    (tmp_path / "again.jsonl").write_text(json.dumps(tag(doccano, "spans")) + "\n")
    ((sentence,), _) = read_tagged([str(tmp_path / "again.jsonl")], LayoutChoice())
    assert sentence.tags == tags


def test_spans_beside_tokens_are_counted_and_three_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    spans = [[0, 2, "X"], [1, 3, "X"], [4, 5, "X"], [5, 8, "X"], [0, 3, "PER"]]
    path.write_text(json.dumps({"text": "Ada Lovelace", "entities": spans}) + "\n")
    with pytest.warns(NlpkitWarning, match=r"4 spans left out, .*line 1: \[0, 2\] is 'Ad'") as seen:
        ((sentence,), _) = read_tagged([str(path)], LayoutChoice())
    assert str(seen[0].message).count("line 1:") == 3
    assert sentence.tags == ["B-PER", "O"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"tokens": ["a"], "tags": ["O", "O"]}', "line 1: 1 token and 2 tags"),
        ('{"tokens": ["a"]}', "line 1: no tags in it"),
        ('{"tokens": ["a"], "ner_tags": [1]}', "tags are integers .*tag_names"),
        ('{"text": "a"}', "line 1: no entities in it"),
        ('{"text": "a", "entities": [[0, 9, "X"]]}', "is no span"),
        ('{"text": "a", "entities": 3}', "line 1: entities is no list"),
        ('{"tokens": ["a\\tb"], "tags": ["O"]}', "a token is empty or has a tab"),
    ],
)
def test_a_record_that_is_no_tagged_sentence_is_named(tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(line + "\n")
    with warnings.catch_warnings(), pytest.raises(NlpkitError, match=says):
        read_tagged([str(path)], LayoutChoice())


def test_a_file_of_spacy_is_named_with_the_line_that_converts_it(tmp_path: Path) -> None:
    with pytest.raises(NlpkitError, match=r"DocBin of spaCy.*python -c"):
        read_tagged([str(tmp_path / "train.spacy")], LayoutChoice())


def test_a_file_of_spacy_is_named_wherever_text_is_read(run: Runner) -> None:
    (run.folder / "dev.spacy").write_bytes(zlib.compress(b"a map"))
    for command in ("tokenize", "vocab build"):
        assert "DocBin of spaCy" in run.fails(*command.split(), "dev.spacy")


def test_what_predict_writes_trains_evaluates_and_is_predicted_again(
    tmp_path: Path, warm: Warm
) -> None:
    lines = [
        SPANS[0],
        '{"text": "Bob sleeps in Rome.", "entities": [[0, 3, "PER"], [14, 18, "LOC"]]}',
    ]
    (tmp_path / "train.jsonl").write_text("\n".join(lines * 8) + "\n")
    train = ("tag", "train", "train.jsonl", "-o", "m", "--epochs", "6", "-q")
    warm.ok(tmp_path, *train)
    answer = warm.ok(tmp_path, "tag", "predict", "m", "--json", input=lines[0] + "\n")
    record = json.loads(answer)
    assert record["id"] == 1
    assert [entity["type"] for entity in record["entities"]] == ["PER", "LOC"]
    assert json.loads(warm.ok(tmp_path, "tag", "predict", "m", "--json", input=answer)) == record
    (tmp_path / "predicted.jsonl").write_text(answer * 3)
    scores = warm.ok(tmp_path, "tag", "evaluate", "m", "predicted.jsonl", "--json")
    assert json.loads(scores)["accuracy"] == 1.0


def test_trainers_and_scores_read_json_lines(tmp_path: Path, warm: Warm) -> None:
    words = "the king sat in the house and the queen sat in the garden".split()
    (tmp_path / "t.jsonl").write_text(json.dumps({"id": 1, "tokens": words}) + "\n")
    warm.ok(
        tmp_path,
        "vectors",
        "from-counts",
        "t.jsonl",
        "-o",
        "v.model",
        "--min-count",
        "1",
        "--dim",
        "2",
        "-q",
    )
    vocab = (tmp_path / "v.model" / "vocab.tsv").read_text()
    assert "king" in vocab
    assert "{" not in vocab
    (tmp_path / "c.csv").write_text('id,body\n1,"the king, sat"\n2,the queen\n')
    done = warm.run(tmp_path, "word2vec", "examples", "c.csv", "--column", "body", "-q")
    assert done.code == 0, done.err
    assert "queen" in done.out
