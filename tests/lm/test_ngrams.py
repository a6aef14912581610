"""N-gram models: smoothing by hand, runs that are merged, ARPA files, weights by held-out text."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlpkit.errors import NlpkitError
from nlpkit.models.interpolation import interpolated
from nlpkit.models.kneser_ney import Trie, discounts_of, kneser_ney
from nlpkit.models.kneser_ney_counts import Scratch, count_levels
from nlpkit.pretrained.arpa import read_arpa, write_arpa

pytestmark = pytest.mark.filterwarnings("ignore::nlpkit.errors.NlpkitWarning")
VOCAB = 12


def zipf_text(size: int = 4000, seed: int = 1) -> np.ndarray:
    """Sentences of words 2 to 11 between marks, the frequent ones often one after the other."""
    random = np.random.default_rng(seed)
    words = 2 + np.minimum(random.zipf(1.6, size), VOCAB - 2) - 1
    words = np.where(random.random(size) < 0.3, 2 + (np.roll(words, 1) * 3) % 10, words)
    words[random.random(size) < 0.12] = 0
    return np.concatenate([[0], words, [0]]).astype(np.int32)


class ByHand:
    """Modified Kneser-Ney as Chen and Goodman write it, with dictionaries."""

    def __init__(self, text: list[int], order: int, vocab: int) -> None:
        self.order, self.vocab = order, vocab
        sentences, now = [], [0]
        for word in text[1:]:
            now.append(word)
            if word == 0:
                sentences.append(now)
                now = [0]
        raw: list[Counter[tuple[int, ...]]] = [Counter() for _ in range(order + 1)]
        for sentence in sentences:
            for end in range(1, len(sentence)):
                for n in range(1, order + 1):
                    if end - n + 1 >= 0:
                        raw[n][tuple(sentence[end - n + 1 : end + 1])] += 1
        self.counts: list[dict[tuple[int, ...], int]] = [{} for _ in range(order + 1)]
        self.counts[order] = dict(raw[order])
        for n in range(1, order):
            behind: dict[tuple[int, ...], set[int]] = defaultdict(set)
            for gram in raw[n + 1]:
                behind[gram[1:]].add(gram[0])
            self.counts[n] = {gram: len(words) for gram, words in behind.items()}
            for gram, count in raw[n].items():
                if gram not in behind:  # it begins a sentence
                    self.counts[n][gram] = count
        self.discounts = [
            discounts_of(np.array(list(table.values()) or [1], np.int32)) for table in self.counts
        ]

    def probability(self, context: tuple[int, ...], word: int) -> float:
        n = len(context) + 1
        lower = self.probability(context[1:], word) if context else 1 / self.vocab
        table, cut = self.counts[n], self.discounts[n]
        seen = [count for gram, count in table.items() if gram[:-1] == context]
        if not seen:
            return lower
        held = sum(cut[min(3, count)] for count in seen)
        count = table.get((*context, word), 0)
        return (max(count - cut[min(3, count)], 0) + held * lower) / sum(seen)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_probabilities_are_those_of_the_equations(order: int) -> None:
    text = zipf_text(700)
    trie, by_hand = kneser_ney(text, order, VOCAB, 0), ByHand(text.tolist(), order, VOCAB)
    for context in [(), (3,), (0, 3), (4, 2), (7, 9)]:
        known = context[-(order - 1) :] if order > 1 else ()
        state = trie.context(context, 0)
        logs = trie.distribution(state)
        for word in range(VOCAB):
            assert math.exp(logs[word]) == pytest.approx(
                by_hand.probability(known, word), rel=1e-4
            ), (context, word)


def test_the_words_behind_any_context_add_up_to_one() -> None:
    text = zipf_text()
    for trie in (kneser_ney(text, 5, VOCAB, 0), interpolated(text, text[:500], 4, VOCAB, 0)):
        state = trie.start
        for word in text[1:60].tolist():
            assert np.exp(trie.distribution(state)).sum() == pytest.approx(1, abs=1e-4)
            scored, after = trie.score(np.array([word], np.int32), state)
            assert scored[0] == pytest.approx(trie.distribution(state)[word], abs=1e-5)
            state = after


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.integers(0, 4), min_size=8, max_size=120),
    st.integers(2, 4),
    st.integers(2, 40),
)
def test_runs_on_disk_count_what_one_run_in_memory_counts(
    words: list[int], order: int, run: int
) -> None:
    ids = np.array([0, *words, 0], np.int32)
    whole = list(count_levels(ids, order, 5, 0))
    small = Scratch(memory=1)
    from nlpkit.models import kneser_ney_counts as counts

    before, counts._LEAST_RUN = counts._LEAST_RUN, run
    try:
        parts = list(count_levels(ids, order, 5, 0, small))
    finally:
        counts._LEAST_RUN = before
    for one, other in zip(whole, parts, strict=True):
        for name in ("words", "first", "counts", "left", "suffixes"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name


def test_a_million_words_and_six_of_them_fit_in_a_key() -> None:
    ids = np.array(
        [999_999, 5, 999_998, 7, 999_997, 1, 999_999, 5, 999_998, 7, 999_997, 2], np.int32
    )
    trie = kneser_ney(ids, 6, 1_000_000)
    state = trie.context(ids[:5].tolist(), 0)
    assert int(trie.distribution(state).argmax()) in (1, 2)
    assert trie.order == 6


def test_a_trie_that_was_written_scores_the_same_from_its_files(tmp_path: Path) -> None:
    text = zipf_text(500)
    trie = kneser_ney(text, 3, VOCAB, 0)
    trie.write(tmp_path)
    again = Trie.read(tmp_path, VOCAB, 0, trie.levels)
    assert np.array_equal(again.score(text, 1)[0], trie.score(text, 1)[0])
    with pytest.raises(NlpkitError, match="do not fit"):
        Trie.read(tmp_path, VOCAB, 0, [1, 2, 3])


def test_damaged_links_give_wrong_numbers_and_no_crash(tmp_path: Path) -> None:
    trie = kneser_ney(zipf_text(500), 3, VOCAB, 0)
    random = np.random.default_rng(1)
    for _ in range(20):
        nodes = trie.nodes.copy()
        places = random.integers(0, len(nodes), 50)
        nodes[places, 2 + random.integers(0, 2, 50)] = random.integers(-(2**31), 2**31 - 1, 50)
        damaged = Trie(trie.words, nodes, VOCAB, 0, trie.levels)
        damaged.score(zipf_text(200, 2), 1)
        damaged.distribution(5)


def test_weights_of_an_interpolation_make_held_out_text_likelier_than_any_neighbours() -> None:
    text, heldout = zipf_text(3000), zipf_text(800, 7)
    trie = interpolated(text, heldout, 3, VOCAB, 0)
    best = -float(trie.score(heldout, trie.start)[0].mean())
    assert all(0 < weight < 1 for weight in trie.details["weights"])
    unigrams = interpolated(text, heldout, 1, VOCAB, 0)
    assert best < -float(unigrams.score(heldout, unigrams.start)[0].mean())
    with pytest.raises(NlpkitError, match="held-out"):
        interpolated(text, heldout[:0], 3, VOCAB, 0)


# --- ARPA ---------------------------------------------------------------------------------------

WORDS = ["\n", "<unk>", *(f"w{i}" for i in range(VOCAB - 2))]


def arpa(order: int = 3) -> str:
    return "".join(write_arpa(kneser_ney(zipf_text(500), order, VOCAB, 0), WORDS))


def test_an_arpa_file_gives_back_the_model() -> None:
    trie = kneser_ney(zipf_text(500), 3, VOCAB, 0)
    again, words = read_arpa(arpa().split("\n"))
    ids = np.array([words.index(word if word != "\n" else "</s>") for word in WORDS], np.int32)
    text = zipf_text(300, 3)
    here, there = trie.score(text, trie.start)[0], again.score(ids[text], again.start)[0]
    assert np.abs(here - there).max() < 1e-4


def test_pruned_files_without_some_suffixes_back_off_further() -> None:
    text = """\\data\\
ngram 1=4
ngram 2=1
ngram 3=1

\\1-grams:
-1 <unk>
-99 <s> -0.5
-0.5 </s>
-0.4 a -0.3

\\2-grams:
-0.2 <s> a -0.1

\\3-grams:
-0.05 <s> a </s>

\\end\\
"""
    trie, words = read_arpa(text.split("\n"))
    scores, _ = trie.score(np.array([words.index("a"), 0], np.int32), trie.start)
    assert scores / math.log(10) == pytest.approx([-0.2, -0.05], abs=1e-5)
    scores, _ = trie.score(np.array([words.index("a")] * 2, np.int32), trie.start)
    assert scores[1] / math.log(10) == pytest.approx(-0.1 - 0.3 - 0.4, abs=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[: len(text) // 2], "line"),
        (lambda text: text.replace("\\end\\", ""), "ends in the middle"),
        (lambda text: text.replace("\\data\\", "data"), "begins with"),
        (lambda text: text.replace("ngram 1=", "ngram 1=1"), "1-grams|n-grams|1-gram"),
        (lambda text: text.replace("w3\t", "w3 x y z\t", 1), "expected"),
        (lambda text: text.replace("-99\t<s>", "0.5\t<s>"), "logarithm"),
        (lambda text: "\n".join(_backed_off(text.split("\n"))), "highest order"),
        (lambda text: text.replace("\tw1\t", "\tw2\t", 1), "twice"),
    ],
)
def test_files_that_are_cut_or_wrong_are_refused_in_one_line(change, message) -> None:
    with pytest.raises(NlpkitError, match=message) as caught:
        read_arpa(change(arpa()).split("\n"), "model.arpa")
    assert "model.arpa: line" in str(caught.value)
    assert "\n" not in str(caught.value)


def _backed_off(lines: list[str]) -> list[str]:
    place = lines.index("\\3-grams:") + 1
    return [*lines[:place], lines[place] + "\t-0.5", *lines[place + 1 :]]


@pytest.mark.parametrize(
    ("ids", "order", "message"),
    [([], 2, "no text"), ([1, 2], 3, "order"), ([1, 99], 1, "words")],
)
def test_texts_without_such_n_grams_are_refused(ids: list[int], order: int, message: str) -> None:
    with pytest.raises(NlpkitError, match=message):
        kneser_ney(np.array(ids, np.int32), order, VOCAB)
