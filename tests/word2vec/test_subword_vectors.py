"""Words made of n-grams: the rows they have, what training does to them, and fastText's files."""

from pathlib import Path

import numpy as np
import pytest

from nlpkit.errors import NlpkitError
from nlpkit.text.pipeline import TokenSettings
from nlpkit.vectors.formats import load, save
from nlpkit.vectors.ngrams import hash_ngram, ngrams
from nlpkit.vectors.settings import VectorFormat
from nlpkit.vectors.store import Vectors
from nlpkit.word2vec import subwords as engine_module
from nlpkit.word2vec.config import Arch, Loss, Word2VecConfig
from nlpkit.word2vec.model import Word2VecRun, begin
from nlpkit.word2vec.resume import load_checkpoint
from nlpkit.word2vec.store import build_store
from nlpkit.word2vec.subwords import NgramTable, SubwordEngine
from nlpkit.word2vec.train import Word2VecTrainer

# two families of words: each keeps to itself, and shares its beginnings
KIND = ["walked", "walking", "walker", "talked", "talking", "talker"]
OTHER = ["redness", "redder", "reddish", "bluish", "blueness", "bluer"]
SETTINGS = {"dim": 16, "min_count": 1, "subwords": "3-4", "buckets": 2000, "threads": 1}


def text(lines: int = 600) -> bytes:
    random = np.random.default_rng(5)
    rows = [random.permutation(KIND if i % 2 else OTHER) for i in range(lines)]
    return "".join(" ".join(row) + "\n" for row in rows).encode()


def run_of(data: bytes, init: str | None = None, **changes: object) -> Word2VecRun:
    config = Word2VecConfig(**{**SETTINGS, **changes})  # type: ignore[arg-type]
    return begin(build_store([data], config), "hash", config, TokenSettings(), init=init)


def trained(data: bytes, **changes: object) -> Word2VecRun:
    run = run_of(data, **changes)
    run.fit()
    return run


def test_rows_are_the_word_and_the_buckets_of_its_ngrams() -> None:
    words = ["café", "caf", "</s>"]
    table = NgramTable.build(words, 2, 3, 50)
    for number, word in enumerate(words[:2]):
        buckets = [hash_ngram(gram.encode()) % 50 for gram in ngrams(word, 2, 3)]
        own, *rest = table.rows_of(number).tolist()
        assert own == number
        assert sorted(table.buckets[row - 3] for row in rest) == sorted(buckets)
    assert table.rows_of(2).tolist() == [2]


@pytest.mark.parametrize("arch", list(Arch))
def test_a_step_moves_all_rows_of_a_word_as_its_vector(arch: Arch) -> None:
    """One block by the kernel is one block of plain word2vec on the vectors of the words."""
    config = Word2VecConfig(**{**SETTINGS, "arch": arch, "sample": 0.0})  # type: ignore[arg-type]
    plain = Word2VecConfig(**{**SETTINGS, "arch": arch, "sample": 0.0, "subwords": None})  # type: ignore[arg-type]
    store = build_store([b"walked talked walker\n"], config)
    random = np.random.default_rng(1)
    table = NgramTable.build(store.words, 3, 4, 2000)
    engine = SubwordEngine(store, config, 100, table)
    rows = random.normal(size=(engine.inputs, 16)).astype(np.float32)
    outputs = random.normal(size=(3, 16)).astype(np.float32)
    engine.set_rows(slice(None), rows)
    engine.set_outputs(slice(0, 3), outputs)
    other = engine_module.CpuEngine(store, plain, 100)
    means = np.stack([rows[table.rows_of(word)].mean(axis=0) for word in range(3)])
    other.set_rows(slice(0, 3), means)
    other.set_outputs(slice(0, 3), outputs)
    for one in (engine, other):
        one.train_piece(0, 0, len(store), 0.1, one.make_worker())
    moved = other.matrices()[0] - means
    expected = rows.copy()
    for word in range(3):
        np.add.at(expected, table.rows_of(word), moved[word])
    assert np.abs(moved).max() > 1e-3
    np.testing.assert_allclose(engine.matrices()[0], expected, atol=1e-5)
    np.testing.assert_allclose(engine.matrices()[1], other.matrices()[1], atol=1e-5)


@pytest.mark.parametrize("arch", list(Arch))
def test_an_unknown_word_is_near_the_words_it_looks_like(arch: Arch) -> None:
    vectors = trained(text(), arch=arch, epochs=3).result()
    near = [found.word for found in vectors.nearest_to(vectors.get("walks")[None], 4)[0]]
    assert set(near) <= set(KIND)
    near = [found.word for found in vectors.nearest_to(vectors.get("redden")[None], 4)[0]]
    assert set(near) <= set(OTHER)


def test_two_threads_learn_the_same_things() -> None:
    vectors = trained(text(), threads=2, epochs=3).result()
    near = [found.word for found in vectors.nearest_to(vectors.get("walks")[None], 4)[0]]
    assert set(near) <= set(KIND)


def test_a_resumed_run_gives_the_same_bits(tmp_path: Path) -> None:
    whole = trained(text())
    run = run_of(text())
    steps = run.steps()
    next(steps)
    steps.close()
    run.save_checkpoint(tmp_path / "c")
    how = run.tokens
    sources: dict[str, str | None] = {"vocab": None, "init": None}
    again = load_checkpoint(tmp_path / "c", run.config, how, sources, device="cpu")
    again.fit()
    assert run.words_trainer.state().chunks_done > 0
    np.testing.assert_array_equal(again.result().matrix, whole.result().matrix)
    assert again.result().get("unseen").tolist() == whole.result().get("unseen").tolist()


@pytest.mark.parametrize("name", ["model", "model.bin"])
def test_files_keep_known_and_unknown_words(tmp_path: Path, name: str) -> None:
    vectors = trained(text(100), arch="cbow", epochs=1).result()
    vectors.save(tmp_path / name)
    again = Vectors.load(tmp_path / name)
    assert list(again.words) == list(vectors.words)
    for word in [*KIND, "unseen", "日本語"]:
        np.testing.assert_allclose(again.get(word), vectors.get(word), atol=1e-6)
    # and from either form to the other
    save(load(str(tmp_path / name), trained=True), str(tmp_path / "x.bin"))
    save(load(str(tmp_path / "x.bin"), trained=True), str(tmp_path / "y"))
    np.testing.assert_allclose(
        Vectors.load(tmp_path / "y").get("unseen"), vectors.get("unseen"), atol=1e-6
    )


def test_gensim_and_fasttext_read_what_is_written(tmp_path: Path) -> None:
    vectors = trained(text(100), epochs=1).result()
    vectors.save(tmp_path / "m.bin")
    words = [*KIND, "unseen", "naïve"]
    ours = np.stack([vectors.get(word) for word in words])
    readers = 0
    try:
        import fasttext

        model = fasttext.load_model(str(tmp_path / "m.bin"))
        theirs = np.stack([model.get_word_vector(word) for word in words])
        np.testing.assert_allclose(theirs, ours, atol=1e-5)
        readers += 1
    except ImportError:
        pass
    try:
        from gensim.models.fasttext import load_facebook_model

        keyed = load_facebook_model(str(tmp_path / "m.bin")).wv
        np.testing.assert_allclose(np.stack([keyed[word] for word in words]), ours, atol=1e-5)
        readers += 1
    except ImportError:
        pass
    if not readers:
        pytest.skip("neither fasttext nor gensim is installed")


def test_training_goes_on_from_a_bin(tmp_path: Path) -> None:
    first = trained(text(100), epochs=1)
    first.result().save(tmp_path / "m.bin")
    run = run_of(b"walked talked newword\n" * 50, init=str(tmp_path / "m.bin"))
    at_start = run.result()
    np.testing.assert_allclose(at_start.get("walked"), first.result().get("walked"), atol=1e-6)
    # buckets of words that the new text does not have are still there
    np.testing.assert_allclose(at_start.get("redness2"), first.result().get("redness2"), atol=1e-6)
    for _ in run.steps():
        pass
    assert not np.allclose(run.result().get("walked"), at_start.get("walked"))


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NlpkitError, match="negative sampling, not hs"):
        Word2VecConfig(subwords="3-6", loss=Loss.HS)
    for wrong in ("6-3", "0-3", "3-", "a", "3-6-7"):
        with pytest.raises(NlpkitError, match="no lengths of n-grams"):
            Word2VecConfig(subwords=wrong)
    trained(text(20), epochs=1).result().save(tmp_path / "m.bin")
    with pytest.raises(NlpkitError, match="n-grams 3-4 in 2000 buckets"):
        run_of(text(20), init=str(tmp_path / "m.bin"), buckets=100)
    plain = Vectors(["walked"], np.ones((1, 16), np.float32))
    plain.save(tmp_path / "p.txt")
    with pytest.raises(NlpkitError, match="no n-grams to start from"):
        run_of(text(20), init=str(tmp_path / "p.txt"))
    config = Word2VecConfig(**SETTINGS)  # type: ignore[arg-type]
    with pytest.raises(NlpkitError, match="trained on the CPU"):
        Word2VecTrainer(build_store([text(20)], config), config, engine="torch")


def test_a_bin_without_ngrams_is_fasttexts_too(tmp_path: Path) -> None:
    plain = Vectors(["a", "b"], np.arange(4, dtype=np.float32).reshape(2, 2))
    save(plain, str(tmp_path / "p.bin"), VectorFormat.FASTTEXT_BIN)
    again = load(str(tmp_path / "p.bin"))
    np.testing.assert_array_equal(again.matrix, plain.matrix)
    assert again.subwords is None
