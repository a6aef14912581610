"""Training: what is learned, that it can be repeated and resumed, and what goes wrong politely."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from nlpkit.errors import NlpkitError
from nlpkit.word2vec import train as training
from nlpkit.word2vec.config import Arch, Loss, Word2VecConfig
from nlpkit.word2vec.state import TrainState
from nlpkit.word2vec.store import IdStore, build_store
from nlpkit.word2vec.train import Word2VecTrainer

KINDS = [(arch, loss) for arch in Arch for loss in Loss]


def toy_config(**changes: object) -> Word2VecConfig:
    settings: dict[str, object] = {
        "dim": 20, "window": 2, "min_count": 1, "epochs": 4, "sample": 0.0, "threads": 1
    }  # fmt: skip
    return Word2VecConfig.from_settings(settings | changes)


def toy_corpus(lines: int = 1500) -> IdStore:
    """Two worlds that never meet: animals eat, vehicles drive."""
    random = np.random.default_rng(0)
    worlds = [
        (["cat", "dog", "horse", "cow"], ["eats", "drinks", "sleeps"]),
        (["car", "bus", "truck", "van"], ["drives", "stops", "turns"]),
    ]
    text = []
    for _ in range(lines):
        nouns, verbs = worlds[random.integers(2)]
        text.append(f"{random.choice(nouns)} {random.choice(verbs)} {random.choice(nouns)}\n")
    return build_store(["".join(text).encode()], toy_config())


def trained(store: IdStore, config: Word2VecConfig) -> TrainState:
    trainer = Word2VecTrainer(store, config)
    for _ in trainer.train():
        pass
    return trainer.state()


@pytest.mark.parametrize(("arch", "loss"), KINDS)
def test_words_of_a_kind_come_together_and_the_loss_falls(arch: Arch, loss: Loss) -> None:
    store = toy_corpus()
    trainer = Word2VecTrainer(store, toy_config(arch=arch, loss=loss, lr=0.05))
    losses = [record.loss for record in trainer.train() if record.due]
    assert len(losses) == 4
    assert losses[-1] < 0.9 * losses[0]
    vectors = trainer.state().input
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    place = {word: i for i, word in enumerate(store.words)}
    near = unit[place["cat"]] @ unit[place["cow"]]
    far = unit[place["cat"]] @ unit[place["truck"]]
    assert near > far + 0.3


@pytest.mark.parametrize(("arch", "loss"), KINDS)
def test_one_thread_gives_the_same_bits(arch: Arch, loss: Loss) -> None:
    store = toy_corpus(300)
    config = toy_config(arch=arch, loss=loss, epochs=1, sample=0.1)
    first, second = trained(store, config), trained(store, config)
    assert (first.input == second.input).all()
    assert (first.output == second.output).all()
    other = trained(store, toy_config(arch=arch, loss=loss, epochs=1, sample=0.1, seed=2))
    assert (first.input != other.input).any()


@pytest.mark.parametrize(("arch", "loss"), [(Arch.SKIPGRAM, Loss.NS), (Arch.CBOW, Loss.HS)])
@pytest.mark.parametrize("stop_after", [1, 3, 7])
def test_interrupted_and_resumed_is_uninterrupted(
    arch: Arch, loss: Loss, stop_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "SECONDS_PER_ROUND", 0.0)  # a record for every piece
    store = toy_corpus(1400)
    config = toy_config(arch=arch, loss=loss, epochs=2)
    whole = trained(store, config)

    trainer = Word2VecTrainer(store, config)
    for _, _record in zip(range(stop_after), trainer.train(), strict=False):
        pass
    kept = trainer.state()
    copy = TrainState(
        kept.input.copy(), kept.output.copy(), kept.chunks_done, kept.loss_sum, kept.loss_count
    )
    assert copy.chunks_done == stop_after
    resumed = Word2VecTrainer(store, config, resume=copy)
    records = list(resumed.train())
    assert (resumed.state().input == whole.input).all()
    assert (resumed.state().output == whole.output).all()
    assert records[-1].loss == whole.loss_sum / whole.loss_count


def test_an_interrupt_finishes_the_pieces_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    store = toy_corpus(1400)
    config = toy_config(threads=2, epochs=50)
    trainer = Word2VecTrainer(store, config)
    trainer.compile()
    trained_pieces: list[int] = []
    lock = threading.Lock()
    original = trainer._engine.train_piece

    def train_piece(number: int, start: int, stop: int, *rest: object) -> tuple[float, int]:
        if number == 20:
            raise KeyboardInterrupt
        result: tuple[float, int] = original(number, start, stop, *rest)
        if start < stop:  # not the empty piece that compiles
            with lock:
                trained_pieces.append(number)
        return result

    monkeypatch.setattr(trainer._engine, "train_piece", train_piece)
    with pytest.raises(KeyboardInterrupt):
        list(trainer.train())
    done = trainer.state().chunks_done
    assert sorted([*trained_pieces, 20]) == list(range(done))


def test_two_threads_learn_as_one_does() -> None:
    store = toy_corpus()
    losses = []
    for threads in (1, 2):
        state = trained(store, toy_config(threads=threads))
        losses.append(state.loss_sum / state.loss_count)
    assert losses[0] == pytest.approx(losses[1], rel=0.1)


def test_progress_counts_up_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "SECONDS_PER_ROUND", 0.0)
    store = toy_corpus(1400)
    config = toy_config(epochs=2)
    records = list(Word2VecTrainer(store, config).train())
    done = [record.words for record in records]
    assert done == sorted(done)
    assert done[-1] == 2 * len(store)
    assert [r.epoch for r in records if r.due] == [1, 2]
    rates = [record.learning_rate for record in records]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == pytest.approx(config.min_lr)


def test_init_keeps_the_vectors_of_known_words() -> None:
    store = toy_corpus(50)
    given = np.full((2, 20), 7.0, dtype=np.float32)
    trainer = Word2VecTrainer(store, toy_config(), init=(["bus", "unheard"], given))
    start = trainer.state().input
    assert (start[store.words.index("bus")] == 7.0).all()
    assert np.abs(start[store.words.index("cat")]).max() <= 0.5 / 20
    assert not trainer.state().output.any()


def test_what_does_not_fit_is_refused() -> None:
    store = toy_corpus(50)
    small = np.zeros((1, 3), dtype=np.float32)
    with pytest.raises(NlpkitError, match="3 dimensions, not 20"):
        Word2VecTrainer(store, toy_config(), init=(["bus"], small))
    with pytest.raises(NlpkitError, match="checkpoint"):
        Word2VecTrainer(store, toy_config(), resume=TrainState(small, small))


def test_a_vocabulary_of_one_word_trains_to_something() -> None:
    store = build_store([b"a a a a\n"], toy_config())
    for arch, loss in KINDS:
        assert np.isfinite(trained(store, toy_config(arch=arch, loss=loss)).input).all()


@pytest.mark.parametrize("dim", [1, 15, 16, 17, 40])
def test_any_dimension_works(dim: int) -> None:
    state = trained(toy_corpus(100), toy_config(dim=dim))
    assert state.input.shape == (14, dim)
    assert np.isfinite(state.input).all()


def test_a_compiled_kernel_is_seen() -> None:
    config = toy_config()
    store = toy_corpus(20)
    trained(store, config)
    assert Word2VecTrainer(store, config).is_compiled
