"""Masking, sequences, baselines and the training itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_berts import TOKENS, small_codec

from nlpkit.errors import NlpkitError
from nlpkit.tasks.bert.baselines import measure_baselines
from nlpkit.tasks.bert.data import (
    Lines,
    SentencePairs,
    StreamSequences,
    encode_lines,
    split_lines,
    stream,
)
from nlpkit.tasks.bert.masking import IGNORED, Masked, Masking
from nlpkit.tasks.bert.settings import BertTraining
from nlpkit.tasks.bert.train import BertRun
from nlpkit.vectors.store import Vectors

CODEC = small_codec()
# the first letter is that of the end; what stands before either tells nothing
TEXT = [f"{letter} q {letter}" for letter in np.random.default_rng(1).choice([*"abcdefgh"], 400)]


def test_of_ten_chosen_tokens_eight_are_masked_one_is_random_one_kept() -> None:
    idx = np.full((400, 50), TOKENS.index("cat"))
    idx[:, 0] = CODEC.cls_id
    masked = Masking.of(CODEC, rate=0.3).apply(idx, np.random.default_rng(1))
    assert masked.places.shape == (400, 15)
    shown = np.take_along_axis(masked.idx, masked.places, axis=1)
    assert (masked.targets == TOKENS.index("cat")).all()
    assert (shown == CODEC.mask_id).mean() == pytest.approx(0.8, abs=0.02)
    assert (shown == TOKENS.index("cat")).mean() == pytest.approx(0.1, abs=0.02)
    assert not np.isin(shown[shown != CODEC.mask_id], CODEC.special_ids).any()
    rest = np.ones(idx.shape, bool)
    np.put_along_axis(rest, masked.places, False, axis=1)
    assert (masked.idx == idx)[rest].all()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, len(TOKENS) - 1), min_size=4, max_size=40), st.integers(0, 99))
def test_whole_words_are_masked_whole_and_special_tokens_never(row: list[int], seed: int) -> None:
    masking = Masking.of(CODEC, rate=0.4, masked=1.0, random=0.0, whole_words=True)
    idx = np.array([row])
    masked = masking.apply(idx, np.random.default_rng(seed))
    hidden = np.zeros(len(row), bool)
    hidden[masked.places[0][masked.targets[0] != IGNORED]] = True
    assert not (hidden & ~masking.ordinary[idx[0]]).any()
    assert (masked.idx[0][hidden] == CODEC.mask_id).all()
    assert (masked.idx[0] == idx[0])[~hidden].all()
    ordinary = masking.ordinary[idx[0]]
    starts = ~(masking.continues[idx[0]] & ordinary & np.append(False, ordinary[:-1]))
    words = np.cumsum(starts)
    whole = [hidden[words == word] for word in np.unique(words)]
    partial = [part for part in whole if part.any() and not part.all()]
    # only a word longer than all that may be masked is cut
    assert all(len(part) > round(0.4 * len(row)) for part in partial)


def test_every_nth_line_is_held_out_and_documents_stay_whole() -> None:
    lines = encode_lines(["the cat", "", "the dog", "a", " ", "b"], CODEC)
    assert lines.documents.tolist() == [0, 1, 3, 4]
    train, held = split_lines(lines, 0.5, False)
    assert [len(train), len(held)] == [2, 2]
    assert held.line(0).tolist() == CODEC.encode("the dog")
    with pytest.raises(NlpkitError, match="four documents, here are 3"):
        split_lines(lines, 0.5, True)
    lines = encode_lines(["the cat", "", "the dog", "a", " ", "b", "", "c"], CODEC)
    for share in (0.5, 0.02):  # however small the share: pairs need two documents
        train, held = split_lines(lines, share, True)
        assert train.documents.tolist() == [0, 1, 2]
        assert held.documents.tolist() == [0, 2, 3]
        assert held.line(1).tolist() == CODEC.encode("a")
    with pytest.raises(NlpkitError, match="no text"):
        encode_lines(["", " "], CODEC)


def test_pairs_follow_each_other_in_half_of_the_cases() -> None:
    documents = [[f"{letter} {other}" for other in "vwxyz"] for letter in "abcdef"]
    lines = encode_lines([line for part in documents for line in [*part, ""]], CODEC)
    pairs = SentencePairs(lines, CODEC, 16, 300, 1)[0]
    assert pairs.follows is not None
    assert pairs.segments is not None
    assert 0.4 < pairs.follows.mean() < 0.6
    letters = {CODEC.encode(letter)[0]: letter for letter in "abcdefvwxyz"}
    for row, kinds, other in zip(pairs.idx, pairs.segments, pairs.follows, strict=True):
        kept = row[row != CODEC.pad_id]
        ends = np.flatnonzero(kept == CODEC.sep_id) + 1
        first, second, rest = (part.tolist() for part in np.split(kept, ends))
        assert rest == []
        assert kinds[: len(kept)].sum() == len(second)
        documents_of = {letters[i] for i in (first[1], second[0])}
        assert (len(documents_of) == 2) == bool(other)
        if not other:  # the second text begins where the first ends
            assert ord(letters[second[1]]) == ord(letters[first[-2]]) + 1
    with pytest.raises(NlpkitError, match="blank lines"):
        SentencePairs(encode_lines(["a", "b"], CODEC), CODEC, 16, 4, 1)


def test_baselines_are_what_counting_gives() -> None:
    lines = encode_lines(["a b c", "a b c", "a b d", "b b"], CODEC)
    ids, ordinary = stream(lines, CODEC.sep_id), Masking.of(CODEC).ordinary
    a, b, c, d = (CODEC.encode(letter)[0] for letter in "abcd")
    start, end = CODEC.cls_id, CODEC.sep_id
    original = np.array([[start, a, b, c, end], [start, a, b, d, end]])
    masked = Masked(original, np.array([[2], [3]]), np.array([[b], [d]]))
    found = measure_baselines(ids, ordinary, masked)
    # the commonest token is b; behind a comes b, behind b c; between b and the end stands c
    assert (found.unigram, found.left, found.both) == (0.5, 0.5, 0.5)
    counts = np.bincount(ids, minlength=len(TOKENS)) * ordinary + 0.1
    want = -np.log(counts[[b, d]] / counts.sum()).mean()
    assert found.unigram_loss == pytest.approx(want)


def small_run(lines: Lines | None = None, **changes: object) -> BertRun:
    options: dict[str, object] = {
        "layers": 1,
        "heads": 4,
        "dim": 16,
        "length": 12,
        "batch_size": 16,
        "max_iters": 80,
        "val_fraction": 0.25,
        "dtype": "float32",
        "lr": 0.01,
    }
    wanted = BertTraining(**{**options, **changes}).resolve()  # type: ignore[arg-type]
    return BertRun(lines or encode_lines(TEXT, CODEC), CODEC, wanted)


@pytest.mark.parametrize(
    "changes",
    [{}, {"recipe": "bert", "dropout": 0.0, "max_iters": 200}, {"whole_words": True}],
)
def test_training_beats_the_left_neighbour(changes: dict[str, object]) -> None:
    run = small_run(**changes)
    for _ in run.trainer.fit():
        pass
    bert = run.finish()
    metrics = bert.config.metrics
    assert metrics["heldout_accuracy"] > run.baselines.left > run.baselines.unigram
    assert metrics["heldout_loss"] < run.baselines.unigram_loss
    assert bert.curve


def test_next_sentences_are_learned() -> None:
    # b follows a; what is from elsewhere is an a in half of the cases
    lines = encode_lines(["a a", "b b", ""] * 60, CODEC)
    run = small_run(lines, next_sentence=True, recipe="bert", dropout=0.0, max_iters=120)
    for _ in run.trainer.fit():
        pass
    assert run.finish().config.metrics["next_sentence_accuracy"] > 0.65


def test_a_run_starts_from_counts_or_given_vectors() -> None:
    run = small_run()
    counts = np.bincount(encode_lines(TEXT, CODEC).ids, minlength=len(TOKENS))
    bias = run.model.require_head().bias
    assert int(bias.argmax()) == int(counts.argmax())
    matrix = np.random.default_rng(1).normal(size=(2, 16)).astype(np.float32)
    lines = encode_lines(TEXT, CODEC)
    wanted = run.settings
    given_run = BertRun(lines, CODEC, wanted, vectors=Vectors(["cat", "zebra"], matrix))
    assert given_run.known_vectors == 1
    row = given_run.model.embedding.weight[TOKENS.index("cat")].detach()
    cosine = torch.cosine_similarity(row, torch.from_numpy(matrix[0]), dim=0)
    assert float(cosine) == pytest.approx(1, abs=1e-5)
    with pytest.raises(NlpkitError, match="3 dimensions"):
        BertRun(lines, CODEC, wanted, vectors=Vectors(["cat"], matrix[:1, :3]))


def test_sequences_begin_with_cls_and_depend_on_their_number_alone() -> None:
    lines = encode_lines(TEXT, CODEC)
    batches = StreamSequences(lines, CODEC, 12, 4, 7)
    first = batches[3].idx
    assert (first[:, 0] == CODEC.cls_id).all()
    assert (first == StreamSequences(lines, CODEC, 12, 4, 7)[3].idx).all()
    assert (first != batches[4].idx).any()
    with pytest.raises(NlpkitError, match="too few"):
        StreamSequences(encode_lines(["a"], CODEC), CODEC, 12, 4, 7)


def test_an_epoch_reads_the_whole_text_once_and_the_next_in_another_order() -> None:
    lines = encode_lines(TEXT, CODEC)
    batches = StreamSequences(lines, CODEC, 12, 1, 7)
    count = len(batches.ids) // 11
    first, second = ([batches[e * count + i].idx[0, 1:] for i in range(count)] for e in (0, 1))
    stream = np.bincount(batches.ids, minlength=len(TOKENS))
    read = np.bincount(np.concatenate(first), minlength=len(TOKENS))
    assert np.abs(stream - read).sum() <= 22  # what is left over at the end, and where it wraps
    assert (np.stack(first) != np.stack(second)).any()


@pytest.mark.parametrize(
    ("changes", "counts"),
    [({}, [12, 12, 12]), ({"mask_end": 0.15}, [12, 10, 8])],  # 0.3, 0.25 and 0.2 of 40
)
def test_the_share_of_masked_tokens_stays_or_falls_to_that_of_the_end(
    changes: dict[str, float], counts: list[int]
) -> None:
    run = small_run(length=40, batch_size=2, max_iters=3, **changes)
    asked: list[int] = []
    losses = run._losses

    def count(idx: torch.Tensor, places: torch.Tensor, *others: object) -> torch.Tensor:
        asked.append(places.size(1))
        found: torch.Tensor = losses(idx, places, *others)
        return found

    run._losses = count
    for _ in run.trainer.fit():
        pass
    assert asked == counts  # the last step is before the end
    assert small_run(mask=0.1).settings.mask_end == 0.1


def test_the_bias_of_relative_positions_learns_faster_than_the_rest() -> None:
    run = small_run()
    bias = {id(parameter) for parameter in run.model.relative.parameters()}
    rates = {
        id(parameter): group["lr"]
        for optimizer in run.trainer.optimizers
        for group in optimizer.param_groups
        for parameter in group["params"]
    }
    assert bias
    assert {rates[one] for one in bias} == {8 * run.settings.lr}
    assert rates.keys() == {id(parameter) for parameter in run.model.parameters()}
