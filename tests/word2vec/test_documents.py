"""Paragraph vectors: one step against numpy, what is learned, inference, and ids of documents."""

from pathlib import Path

import numpy as np
import pytest

from nlpkit.errors import NlpkitError
from nlpkit.text.pipeline import TokenSettings
from nlpkit.text.records import Reading, read_records
from nlpkit.vectors.formats import load
from nlpkit.vectors.settings import TextSettings
from nlpkit.word2vec import store as store_module
from nlpkit.word2vec.config import Arch, Word2VecConfig
from nlpkit.word2vec.document_engine import DocumentEngine, InferredVectors
from nlpkit.word2vec.model import Word2Vec, begin, begin_text
from nlpkit.word2vec.store import build_store, read_corpus

SETTINGS = {"dim": 16, "min_count": 1, "documents": True, "threads": 1, "sample": 0.0}
GROUPS = [[f"sea{i}" for i in range(8)], [f"hill{i}" for i in range(8)]]


def text(lines: int = 300, words: int = 12) -> bytes:
    random = np.random.default_rng(3)
    rows = [random.choice(GROUPS[i % 2], words) for i in range(lines)]
    return "".join(" ".join(row) + "\n" for row in rows).encode()


def config_of(**changes: object) -> Word2VecConfig:
    return Word2VecConfig(**{**SETTINGS, **changes})  # type: ignore[arg-type]


def trained(data: bytes, **changes: object) -> Word2Vec:
    config = config_of(**changes)
    run = begin(build_store([data], config), "hash", config, TokenSettings())
    run.fit()
    return run.result()


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("arch", list(Arch))
def test_a_piece_of_one_block_is_one_gradient_step(arch: Arch) -> None:
    config = config_of(arch=arch, dim=10, window=2, shrink_windows=False)
    lines = ["a b a c", "d", "b c e"]
    store = build_store(["\n".join(lines).encode()], config)
    engine = DocumentEngine(store, config, 100)
    random = np.random.default_rng(1)
    words = len(store.words)
    inputs = random.normal(size=(words + 3, 10))
    outputs = random.normal(size=(words, 10))
    engine.set_rows(slice(None), inputs.astype(np.float32))
    engine.set_outputs(slice(0, words), outputs.astype(np.float32))
    worker = engine.make_worker()
    engine.train_piece(0, 0, len(store), 0.1, worker)
    noise, share = worker.space.noise, config.negative / len(worker.space.noise)
    moved_in, moved_out = inputs.copy(), outputs.copy()
    for document, line in enumerate(lines):
        ids = [store.words.index(word) for word in line.split()]
        for place, centre in enumerate(ids):
            rows = [words + document]
            if arch is Arch.CBOW:
                rows += ids[max(0, place - 2) : place] + ids[place + 1 : place + 3]
            hidden = inputs[rows].mean(axis=0)
            targets = [centre, *(word for word in noise if word != centre)]
            steps = -share * sigmoid(outputs[targets] @ hidden)
            steps[0] = sigmoid(-outputs[centre] @ hidden)
            np.add.at(moved_in, rows, 0.1 * steps @ outputs[targets])
            np.add.at(moved_out, targets, 0.1 * np.outer(steps, hidden))
    found_in, found_out = engine.matrices()
    np.testing.assert_allclose(found_in, moved_in, atol=2e-5)
    np.testing.assert_allclose(found_out, moved_out, atol=2e-5)


@pytest.mark.parametrize("changes", [{}, {"document_words": True}, {"arch": "cbow"}], ids=str)
def test_documents_and_new_texts_lie_with_those_of_their_kind(
    changes: dict[str, object], tmp_path: Path
) -> None:
    model = trained(text(), epochs=20, lr=0.05, **changes)
    model.save(tmp_path / "m")
    documents = load(str(tmp_path / "m" / "documents"))
    assert list(documents.words) == [str(number) for number in range(1, 301)]
    unit = documents.matrix / np.linalg.norm(documents.matrix, axis=1, keepdims=True)
    nearest = (unit @ unit.T - 2 * np.eye(len(unit))).argmax(axis=1)
    assert (nearest % 2 == np.arange(300) % 2).mean() > 0.95
    inferred = InferredVectors(str(tmp_path / "m"), TextSettings(method="infer"))
    new = [["sea1", "sea3", "sea2", "sea5"], ["?", "hill1", "hill7", "hill2"], ["?"]]
    rows = inferred.embed(new)
    assert (unit @ rows[0]).argmax() % 2 == 0
    assert (unit @ rows[1]).argmax() % 2 == 1
    assert not rows[2].any(), "no known word"
    np.testing.assert_array_equal(rows[:1], inferred.embed(new[:1]), "whatever stands beside it")
    np.testing.assert_array_equal(rows, np.concatenate(list(inferred.stream(iter(new)))))


def test_each_sentence_knows_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines without a known word have no sentence, and long ones have several."""
    monkeypatch.setattr(store_module, "LONGEST_SENTENCE", 2)
    config = config_of(min_count=2)
    store = build_store([b"\nrare\na b a b a\n\nb odd\n"], config)
    assert store.documents is not None
    assert store.documents.names == ["1", "2", "3", "4", "5"]
    assert store.documents.of_sentence.tolist() == [2, 2, 2, 4]
    assert store.documents.with_words.tolist() == [False, False, True, False, True]
    model = trained(b"\nrare\na b a b a\n\nb odd\n", min_count=2, epochs=1)
    assert model.documents is not None
    assert model.documents.matrix.any(axis=1).tolist() == [False, False, True, False, True]


def read(folder: Path, name: str, data: str, reading: Reading, **changes: object) -> list[str]:
    (folder / name).write_text(data)
    blocks = read_records([str(folder / name)], reading)
    store, _ = read_corpus(blocks, config_of(**changes), TokenSettings())
    assert store.documents is not None
    return store.documents.names


def test_ids_are_numbers_keys_or_columns(tmp_path: Path) -> None:
    assert read(tmp_path, "t.txt", "a b\nc\n", Reading()) == ["1", "2"]
    table = "x\ta b\ny\tc d\n"
    assert read(tmp_path, "t.tsv", table, Reading(key="2"), id_key="1") == ["x", "y"]
    lines = '{"id": 7, "text": "a b"}\n{"id": "é\\n", "text": "c"}\n'
    assert read(tmp_path, "t.jsonl", lines, Reading(), id_key="id") == ["7", "é\\n"]


@pytest.mark.parametrize(
    ("name", "data", "reading", "message"),
    [
        ("t.tsv", "x\ta\nx\tb\n", Reading(key="2"), "line 2: the document 'x' was on line 1"),
        ("t.txt", "a b\n", Reading(), "plain lines have no '1' to be their id"),
        ("t.jsonl", '{"text": "a"}\n', Reading(), "line 1: no id at '1'"),
        ("t.tsv", "\ta\n", Reading(key="2"), "line 1: the document has an empty id"),
    ],
)
def test_wrong_ids_are_refused(
    tmp_path: Path, name: str, data: str, reading: Reading, message: str
) -> None:
    with pytest.raises(NlpkitError, match=message):
        read(tmp_path, name, data, reading, id_key="1")


def test_settings_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    for changes in ({"loss": "hs"}, {"subwords": "3-6"}, {"arch": "cbow", "document_words": True}):
        with pytest.raises(NlpkitError):
            config_of(**changes)
    with pytest.raises(NlpkitError, match="is for documents"):
        Word2VecConfig(id_key="id")
    with pytest.raises(NlpkitError, match="trained on the CPU"):
        begin_text([["a"]], config_of(), TokenSettings(), sentences=True, engine="torch")
    model = trained(b"a b c\n" * 20, documents=False, epochs=1)
    model.save(tmp_path / "plain")
    with pytest.raises(NlpkitError, match="has learned no documents"):
        InferredVectors(str(tmp_path / "plain"), TextSettings(method="infer"))
    with pytest.raises(NlpkitError, match="has learned no documents"):
        load(str(tmp_path / "plain" / "documents"))
