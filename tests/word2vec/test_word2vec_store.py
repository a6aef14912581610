"""The id store: what it keeps, how it numbers, and that a file serves as well as memory."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlpkit.errors import NlpkitError
from nlpkit.word2vec import store as store_module
from nlpkit.word2vec.config import Word2VecConfig
from nlpkit.word2vec.store import LONGEST_SENTENCE, IdStore, StoreBuilder, build_store

lines = st.lists(st.lists(st.sampled_from("a b c d é 😀 longer-word".split()), max_size=6))


def as_text(store: IdStore) -> list[list[str]]:
    sentences: list[list[str]] = [[]]
    for one in store.ids:
        sentences[-1].append(store.words[one if one >= 0 else ~one])
        if one < 0:
            sentences.append([])
    return sentences[:-1]


@given(lines, st.integers(1, 3), st.none() | st.integers(1, 3))
@settings(deadline=None)
def test_store_holds_the_sentences_of_the_words_it_keeps(
    sentences: list[list[str]], min_count: int, max_vocab: int | None
) -> None:
    config = Word2VecConfig(min_count=min_count, max_vocab=max_vocab)
    counts = Counter(word for sentence in sentences for word in sentence)
    kept = sorted((w for w in counts if counts[w] >= min_count), key=lambda w: (-counts[w], w))
    kept = kept[:max_vocab]
    expected = [[w for w in sentence if w in kept] for sentence in sentences]
    expected = [sentence for sentence in expected if sentence]
    blocks = [
        "".join(" ".join(s) + "\n" for s in part).encode()
        for part in (sentences[:2], sentences[2:])
    ]
    if not expected:
        with pytest.raises(NlpkitError, match="nothing to train on"):
            build_store(blocks, config)
        return
    from_bytes = build_store(blocks, config)
    builder = StoreBuilder()
    for sentence in sentences:
        builder.add_sentence(sentence)
    for store in (from_bytes, builder.finish(config), build_store(blocks, config, memory_limit=8)):
        assert store.words == kept
        assert store.counts.tolist() == [counts[w] for w in kept]
        assert store.text_words == counts.total()
        assert as_text(store) == expected


def test_tokens_may_hold_spaces() -> None:
    builder = StoreBuilder()
    builder.add_sentence(["New York", "is", "New York"])
    assert builder.finish(Word2VecConfig(min_count=1)).words == ["New York", "is"]


def test_long_sentences_are_cut() -> None:
    text = b"a b " * LONGEST_SENTENCE + b"\nc c\n"
    store = build_store([text], Word2VecConfig(min_count=1))
    assert [len(sentence) for sentence in as_text(store)] == [LONGEST_SENTENCE, LONGEST_SENTENCE, 2]


def test_a_given_vocabulary_keeps_its_order_and_counts() -> None:
    builder = StoreBuilder()
    builder.add_block(b"a b c\nb zz b\n")
    store = builder.finish(Word2VecConfig(), (["c", "unseen", "b"], [7, 5, 3]))
    assert store.words == ["c", "unseen", "b"]
    assert store.counts.tolist() == [7, 5, 3]
    assert as_text(store) == [["b", "c"], ["b", "b"]]


@given(lines.filter(lambda s: any(s)), st.integers(1, 9))
@settings(deadline=None)
def test_cuts_fall_between_sentences_and_cover_everything(
    sentences: list[list[str]], words: int
) -> None:
    text = "".join(" ".join(s) + "\n" for s in sentences).encode()
    store = build_store([text], Word2VecConfig(min_count=1))
    cuts = store.cuts(words)
    assert cuts[0] == 0
    assert cuts[-1] == len(store)
    assert (np.diff(cuts) > 0).all()
    assert (store.ids[cuts[1:] - 1] < 0).all()


def test_a_corpus_over_the_limit_leaves_memory() -> None:
    builder = StoreBuilder(memory_limit=1000)
    for _ in range(100):
        builder.add_block(b"some words to be kept\n")
    store = builder.finish(Word2VecConfig(min_count=1))
    assert isinstance(store.ids, np.memmap)
    assert len(store) == 500


@pytest.fixture
def little_room() -> Iterator[None]:
    """No file may grow beyond 1,000 bytes, as if the disk were full there."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("little_room")
@pytest.mark.parametrize("lines", [60, 10_000])  # fewer than a buffer holds, and more
def test_a_disk_without_room_for_the_corpus_is_one_line(lines: int) -> None:
    builder = StoreBuilder(memory_limit=8)

    def build() -> None:
        builder.add_block(b"some words to be kept\n" * lines)
        builder.finish(Word2VecConfig(min_count=1))

    with pytest.raises(NlpkitError, match=r"cannot write temporary files in .*TMPDIR"):
        build()


def test_a_corpus_on_disk_is_changed_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "IDS_AT_ONCE", 50)
    text = b"".join(b"in new york %s\n\n%d\n" % (b"a " * (i % 70), i) for i in range(200))
    config = Word2VecConfig(min_count=2, phrases=1, phrase_threshold=1)
    in_memory = build_store([text], config)
    on_disk = build_store([text], config, memory_limit=8)
    assert on_disk.words == in_memory.words
    assert on_disk.ids.tolist() == in_memory.ids.tolist()


def test_phrases_join_what_belongs_together() -> None:
    fillers = [f"word{i}" for i in range(40)]
    text = "".join(
        f"{fillers[i % 40]} new york city {fillers[i % 37]}\n{fillers[i % 31]} {fillers[i % 29]}\n"
        for i in range(400)
    )
    once = build_store([text.encode()], Word2VecConfig(phrases=1, phrase_threshold=4))
    assert "new_york" in once.words
    assert "york" not in once.words
    twice = build_store([text.encode()], Word2VecConfig(phrases=2, phrase_threshold=4))
    counts = dict(zip(twice.words, twice.counts.tolist(), strict=True))
    assert counts["new_york_city"] == 400
    assert "city" not in counts
    assert once.text_words == twice.text_words == 2800
