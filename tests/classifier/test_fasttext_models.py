"""fastText's classifiers: a quantised file built by hand, and the real library if it is there."""

import struct
from pathlib import Path

import numpy as np
import pytest

from nlpkit.errors import NlpkitError
from nlpkit.tasks.classify.fasttext import FastTextClassifier, label_tree, open_classifier
from nlpkit.vectors.ngrams import hash_ngram, ngrams

LABELS = [("__label__a", 7), ("__label__b", 5), ("__label__c", 1)]
WORDS = [("</s>", 9), ("good", 4)]
PARTS, PART, LAST = 2, 2, 1
DIM = PART + LAST
BUCKETS = 40
KEPT = [(bucket, row) for row, bucket in enumerate(range(0, BUCKETS, 2))]


def quantised(loss: int = 1, *, model: int = 3, codes: int | None = None) -> tuple[bytes, dict]:
    """The bytes of a pruned, quantised classifier, and its matrices."""
    random = np.random.default_rng(3)
    arguments = [DIM, 5, 5, 1, 5, 1, loss, model, BUCKETS, 2, 3, 100]
    data = struct.pack("<ii12id", 793712314, 12, *arguments, 1e-4)
    entries = [(word, count, 0) for word, count in WORDS] + [(name, n, 1) for name, n in LABELS]
    data += struct.pack("<iiiqq", len(entries), len(WORDS), len(LABELS), 30, len(KEPT))
    for word, count, kind in entries:
        data += word.encode() + b"\0" + struct.pack("<qb", count, kind)
    data += b"".join(struct.pack("<ii", *pair) for pair in KEPT)
    rows = len(WORDS) + len(KEPT)
    numbers = random.integers(0, 256, (rows, PARTS)).astype(np.uint8)
    first, second = random.normal(size=(256, PART)), random.normal(size=(256, LAST))
    norms, norm_codes = random.random((256, 1)), random.integers(0, 256, rows).astype(np.uint8)
    size = numbers.size if codes is None else codes
    data += struct.pack("<??qqi", True, True, rows, DIM, size) + numbers.tobytes()
    data += struct.pack("<4i", DIM, PARTS, PART, LAST)
    data += np.concatenate([first.ravel(), second.ravel()]).astype("<f4").tobytes()
    data += norm_codes.tobytes() + struct.pack("<4i", 1, 1, 1, 1) + norms.astype("<f4").tobytes()
    inputs = np.concatenate([first[numbers[:, 0]], second[numbers[:, 1]]], axis=1)
    inputs = inputs * norms[norm_codes]
    outputs = random.normal(size=(len(LABELS), DIM))
    data += struct.pack("<?qq", False, *outputs.shape) + outputs.astype("<f4").tobytes()
    return data, {"inputs": inputs, "outputs": outputs}


def hidden_by_hand(inputs: np.ndarray) -> np.ndarray:
    kept = dict(KEPT)
    rows = []
    for word in ("good", "odd"):
        if word == "good":
            rows.append(1)
        buckets = [hash_ngram(gram.encode()) % BUCKETS for gram in ngrams(word, 2, 3)]
        rows += [len(WORDS) + kept[bucket] for bucket in buckets if bucket in kept]
    return inputs[[*rows, 0]].mean(axis=0)


def write(tmp_path: Path, data: bytes) -> str:
    (tmp_path / "m.ftz").write_bytes(data)
    return str(tmp_path / "m.ftz")


@pytest.mark.parametrize("loss", [1, 2, 3])
def test_a_quantised_pruned_model_by_hand(tmp_path: Path, loss: int) -> None:
    data, matrices = quantised(loss)
    classifier = FastTextClassifier.load(write(tmp_path, data))
    scores = matrices["outputs"] @ hidden_by_hand(matrices["inputs"])
    if loss == 3:
        expected = np.exp(scores) / np.exp(scores).sum()
    else:
        expected = 1 / (1 + np.exp(-(np.floor(scores * 32) / 32 if loss == 2 else scores)))
        if loss == 1:  # (a, (b, c)): node 0 parts c from b, node 1, the root, parts those from a
            inner, root = expected[0], expected[1]
            expected = np.array([1 - root, root * inner, root * (1 - inner)])
            assert label_tree(np.array([7, 5, 1])).tolist() == [[2, 1], [3, 0]]
            expected = np.array([root, (1 - root) * inner, (1 - root) * (1 - inner)])
    found = classifier.probabilities(["good odd"])[0]
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert classifier.predict(["good odd"]) == ["abc"[int(expected.argmax())]]


def test_what_is_no_classifier_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NlpkitError, match="contradict"):
        open_classifier(write(tmp_path, quantised(model=2)[0]))
    with pytest.raises(NlpkitError, match=r"contradict|cut short"):
        open_classifier(write(tmp_path, quantised(codes=7)[0]))
    data = quantised()[0]
    for end in range(0, len(data) - 1, 997):
        with pytest.raises(NlpkitError):
            open_classifier(write(tmp_path, data[:end]))
    with pytest.raises(NlpkitError, match="no classifier"):
        open_classifier(write(tmp_path, b"a b c"))


@pytest.mark.parametrize("loss", ["softmax", "hs", "ova"])
def test_fasttext_itself_gives_the_same_answers(tmp_path: Path, loss: str) -> None:
    fasttext = pytest.importorskip("fasttext", reason="fasttext is not installed")
    random = np.random.default_rng(1)
    lines = []
    for i in range(300):
        name = "abcd"[i % 4]
        words = [f"{name}{number}é" for number in random.integers(0, 30, 6)]
        lines.append(f"__label__{name} " + " ".join(words))
    (tmp_path / "t").write_text("\n".join(lines) + "\n", encoding="utf-8")
    model = fasttext.train_supervised(
        str(tmp_path / "t"), loss=loss, minn=2, maxn=4, wordNgrams=2, dim=10, bucket=5000, thread=1
    )
    model.save_model(str(tmp_path / "m.bin"))
    ours = FastTextClassifier.load(str(tmp_path / "m.bin"))
    texts = ["a1é a2é", "unknown d4é", "", "c3é \u65e5 b1é __label__x d"]
    found = ours.probabilities(texts)
    for text, row in zip(texts, found, strict=True):
        # its method predict() fails with numpy 2
        for share, label in model.f.predict(text + "\n", 4, 0.0, "strict"):
            place = ours.labels.ids[label.removeprefix("__label__")]
            assert abs(row[place] - share) < 1e-3
