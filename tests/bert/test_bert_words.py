"""Masked words, scores, attention, senses and comparisons, against what is written out by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from small_berts import small_bert

from nlpkit.errors import NlpkitError
from nlpkit.models.bert_model import BertModel
from nlpkit.tasks.bert.attention import attention_records
from nlpkit.tasks.bert.fill import blank_logs, fill, score_targets
from nlpkit.tasks.bert.score import score_text
from nlpkit.tasks.bert.senses import (
    Occurrence,
    find_occurrences,
    group_senses,
    occurrence_vectors,
)


def by_hand(bert: BertModel, ids: list[int], place: int) -> torch.Tensor:
    """Probabilities at a place, special tokens left out."""
    logits = bert.model.predict(bert.model(torch.tensor([ids])))[0, place]
    logits[bert.codec.special_ids] = -torch.inf
    return logits.softmax(dim=-1)


def test_one_mask_has_the_likeliest_words_first() -> None:
    bert = small_bert()
    ids = bert.codec.wrap(bert.codec.encode("the [MASK] sat"))
    want = by_hand(bert, ids, 2)
    found = fill(bert, "the [MASK] sat", top=4)
    assert [one.tokens[0] for one in found] == bert.codec.tokens(want.topk(4).indices.tolist())
    assert [one.probability for one in found] == pytest.approx(want.topk(4).values.tolist())
    assert found[0].text == f"the {found[0].tokens[0]} sat".replace(" ##", "")


def test_a_wide_beam_finds_the_likeliest_pair() -> None:
    bert = small_bert()
    codec = bert.codec
    ids = codec.wrap(codec.encode("the [MASK] sat [MASK]"))
    left, right = (i for i, index in enumerate(ids) if index == codec.mask_id)
    first = by_hand(bert, ids, left)
    best = -math.inf, (0, 0)
    for index in first.nonzero()[:, 0].tolist():
        second = by_hand(bert, [*ids[:left], index, *ids[left + 1 :]], right)
        total = math.log(first[index]) + math.log(second.max())
        best = max(best, (total, (index, int(second.argmax()))))
    found = fill(bert, "the [MASK] sat [MASK]", top=2, order="beam", beam=len(codec))
    assert found[0].tokens == codec.tokens(best[1])
    assert found[0].probability == pytest.approx(math.exp(best[0]), rel=1e-3)
    assert found[0].probability >= found[1].probability


def test_orders_of_filling_differ_as_they_should() -> None:
    bert = small_bert(3)
    text = "[MASK] the [MASK]"
    ids = bert.codec.wrap(bert.codec.encode(text))
    at = {place: by_hand(bert, ids, place).max().item() for place in (1, 3)}
    surest = max(at, key=lambda place: at[place])
    best, left = (fill(bert, text, order=order)[0] for order in ("best", "left"))
    token = bert.codec.tokens([int(by_hand(bert, ids, surest).argmax())])[0]
    assert best.tokens[0 if surest == 1 else 1] == token
    assert left.tokens[0] == bert.codec.tokens([int(by_hand(bert, ids, 1).argmax())])[0]


def test_targets_of_several_pieces_take_several_masks() -> None:
    bert = small_bert()
    codec = bert.codec
    ids = codec.wrap(codec.encode("the [MASK]"))
    play, ing = codec.encode("playing")
    two = [*ids[:2], codec.mask_id, codec.mask_id, *ids[3:]]
    want = by_hand(bert, two, 2)[play] * by_hand(bert, [*two[:2], play, *two[3:]], 3)[ing]
    found = {
        one.tokens[0]: one.probability
        for one in score_targets(bert, "the [MASK]", ["cat", "playing"])
    }
    assert found["playing"] == pytest.approx(float(want), rel=1e-4)
    tokens, logs = blank_logs(bert, "the [MASK]")
    assert found["cat"] == pytest.approx(math.exp(logs[tokens.index("cat")]), rel=1e-4)
    assert sum(np.exp(logs)) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize(
    ("text", "said"), [("no mask", r"no \[MASK\]"), ("[MASK] " * 30, "30|32 tokens")]
)
def test_what_cannot_be_filled_is_one_line(text: str, said: str) -> None:
    with pytest.raises(NlpkitError, match=said):
        fill(small_bert(), text)


def test_a_model_without_a_head_says_so() -> None:
    bert = small_bert(head="none")
    for work in (lambda: fill(bert, "a [MASK]"), lambda: score_text(bert, "a b")):
        with pytest.raises(NlpkitError, match="no head for masked tokens"):
            work()


def test_pseudo_likelihood_masks_each_token_in_turn() -> None:
    bert = small_bert()
    codec = bert.codec
    ids = codec.wrap(codec.encode("the cat sat"))
    want = [
        math.log(by_hand(bert, [*ids[:i], codec.mask_id, *ids[i + 1 :]], i)[ids[i]])
        for i in range(1, len(ids) - 1)
    ]
    found = score_text(bert, "the cat sat")
    assert found.log_probabilities == pytest.approx(want, abs=1e-4)
    assert found.perplexity == pytest.approx(math.exp(-sum(want) / 3), rel=1e-4)
    assert len(score_text(bert, "cat " * 50).tokens) == 50


@pytest.mark.parametrize("modern", [False, True])
def test_attention_adds_up_to_one_in_every_head(modern: bool) -> None:
    records = attention_records(small_bert(modern=modern), "the cat sat")
    assert [(r["layer"], r["head"]) for r in records] == list(itertools.product([1, 2], [1, 2]))
    for record in records:
        assert np.array(record["weights"]).sum(axis=1) == pytest.approx(1, abs=1e-3)
        assert len(record["weights"]) == len(record["tokens"]) == 5


def test_only_asked_for_positions_are_the_same_as_all() -> None:
    for bert in (small_bert(), small_bert(modern=True)):
        idx = torch.tensor([[2, 7, 9, 8, 3], [2, 9, 3, 0, 0]])
        inside = idx != 0
        places = torch.tensor([[1, 3], [0, 1]])
        whole = bert.model(idx, None, inside)
        part = bert.model(idx, None, inside, places)
        want = whole.gather(1, places[:, :, None].expand(-1, -1, whole.size(-1)))
        torch.testing.assert_close(part, want, atol=1e-5, rtol=1e-4)


def test_senses_are_groups_of_like_vectors() -> None:
    angles = np.array([0.0, 0.1, 0.05, 1.5, 1.6], np.float32)
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    places = [Occurrence(str(i), 0, 1) for i in range(5)]
    groups = group_senses(places, vectors)
    assert [{one.line for one in sense.occurrences} for sense in groups] == [
        {"0", "1", "2"},
        {"3", "4"},
    ]
    assert len(group_senses(places, vectors[[0, 0, 0, 0, 0]])) == 1


def test_an_occurrence_has_the_state_of_its_pieces_even_in_a_long_line() -> None:
    bert = small_bert()
    line = "cat " * 40 + "playing" + " dog" * 40
    (place,) = find_occurrences([line], "Playing", 9)
    vector = occurrence_vectors(bert, [place])[0]
    room = bert.max_length - 2
    first = 40 - room // 2
    ids = bert.codec.encode(line)[first : first + room]
    states = bert.model(torch.tensor([bert.codec.wrap(ids)]))[0]
    want = states[[40 - first + 1, 41 - first + 1]].mean(dim=0)
    np.testing.assert_allclose(vector, want / want.norm(), atol=1e-5)
