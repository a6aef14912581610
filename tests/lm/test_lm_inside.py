"""Inside of models of text: gates, neurons, heads, lanes, softmaxes, examples, copied passages."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from nlpkit.errors import NlpkitError
from nlpkit.generate.causal_beam import search_beams
from nlpkit.generate.loop import generate
from nlpkit.generate.sampling import SamplingSettings, adjust_logits, draw_keys, sample_next
from nlpkit.models.build import build_model
from nlpkit.models.kneser_ney import kneser_ney
from nlpkit.models.ngram_text import NGramText
from nlpkit.models.recurrent import Recurrent
from nlpkit.models.settings import ModelSettings
from nlpkit.models.softmax import OutputLayer
from nlpkit.nn.encoder_config import EncoderConfig
from nlpkit.nn.inference import NumpyEncoder
from nlpkit.tasks.lm.ask import blank_logs, next_words
from nlpkit.tasks.lm.examples import (
    Example,
    ExampleBatches,
    example_ids,
    read_examples,
)
from nlpkit.tasks.lm.inspect import gate_arrays, head_roles, position_table, step_records
from nlpkit.tasks.lm.lanes import CarriedState, lane_loss
from nlpkit.tasks.lm.model import TextModel
from nlpkit.tasks.lm.neurons import (
    find_neurons,
    text_features,
    token_features,
    word_features,
)
from nlpkit.tasks.lm.novelty import Windows
from nlpkit.tasks.lm.score import stream_losses
from nlpkit.text.characters import Characters
from nlpkit.training.batches import Lanes

SMALL = {"vocab_size": 9, "dim": 8, "layers": 2, "block_size": 8, "heads": 2}


def model_of(kind: str, **more: object) -> torch.nn.Module:
    model = build_model(ModelSettings(model=kind, **{**SMALL, **more}), seed=3)
    generator = torch.Generator().manual_seed(3)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4, generator=generator)
    return model.eval()


def ids(size: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 9, size)


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_gates_by_the_equations_end_in_the_states_of_torch(kind: str) -> None:
    model = model_of(kind)
    assert isinstance(model, Recurrent)
    text = ids(12)
    gates = gate_arrays(model, text.tolist())
    with torch.no_grad():
        states = model.states(torch.from_numpy(text)[None], None)[0].numpy()
    assert np.allclose(gates["state"][-1], states, atol=1e-5)
    for name in set(gates) - {"state", "cell"}:
        assert ((gates[name] > 0) & (gates[name] < 1)).all()


def test_a_counter_of_columns_is_found_among_noise() -> None:
    text = "".join("abcdefg"[: 2 + i % 6] + "\n" for i in range(60))
    column = text_features(text)["line"]
    random = np.random.default_rng(1)
    states = random.normal(size=(1, len(text), 6))
    states[0, :, 4] = 0.3 * column + 0.05 * states[0, :, 4]
    best = find_neurons(states, token_features(text))[0]
    assert (best["feature"], best["layer"], best["unit"]) in (("line", 1, 5), ("word", 1, 5))
    assert best["correlation"] > 0.9
    with pytest.raises(NlpkitError, match="too few"):
        find_neurons(states[:, :20], token_features(text[:20]))


def test_features_know_brackets_urls_and_comments() -> None:
    text = 'x (y) "z" # see http://a.b\n  w'
    found = text_features(text)
    assert [text[i] for i in np.flatnonzero(found["brackets"])] == ["y"]
    assert "".join(text[i] for i in np.flatnonzero(found["url"])) == "http://a.b"
    assert found["comment"].sum() == len("# see http://a.b")
    assert found["indentation"][-1] == 2


def test_heads_are_known_by_what_they_look_at() -> None:
    shifted = np.eye(5, k=-1)
    shifted[0, 0] = 1
    assert head_roles(shifted)["previous"] == 1
    assert head_roles(np.eye(5))["same"] == 1
    first = np.zeros((5, 5))
    first[:, 0] = 1
    assert head_roles(first)["start"] == 1


def test_positions_are_those_of_the_model() -> None:
    learned = build_model(ModelSettings.gpt2(vocab_size=9, block_size=6, layers=1, heads=2, dim=8))
    kind, table = position_table(learned)
    assert kind == "learned"
    assert table.shape == (6, 8)
    assert position_table(model_of("gpt"))[0] == "rotary"
    with pytest.raises(NlpkitError, match="no positional"):
        position_table(model_of("lstm"))


@pytest.mark.parametrize("kind", ["mlp", "lstm", "gpt"])
def test_steps_say_what_was_expected(kind: str) -> None:
    records = step_records(model_of(kind), [1, 2, 3, 4], str, 3)
    assert [record["token"] for record in records] == ["2", "3", "4"]
    for record in records:
        shares = [share for _, share in record["expected"]]
        assert shares == sorted(shares, reverse=True)
        assert record["probability"] <= shares[0] + 1e-6


# --- scores and states --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["mlp", "gru", "gpt"])
@pytest.mark.parametrize("cuts", [[40], [1, 2, 30, 7], [13, 13, 14]])
def test_losses_do_not_depend_on_the_parts_in_which_text_comes(kind: str, cuts: list[int]) -> None:
    model, text = model_of(kind), ids(40)
    edges = np.cumsum([0, *cuts])
    parts = [text[a:b] for a, b in itertools.pairwise(edges)]
    whole = list(stream_losses(model, [text], 0))
    found = list(stream_losses(model, parts, 0))
    assert np.array_equal(np.concatenate([i for i, _ in found]), text)
    assert np.allclose(
        np.concatenate([x for _, x in found]), np.concatenate([x for _, x in whole]), atol=1e-5
    )


def test_independent_lines_are_scored_each_from_its_beginning() -> None:
    model = model_of("gpt")
    lines = [[3, 4, 0], [5, 0], [3, 4, 0]]
    flat = [x for line in lines for x in line]
    found = np.concatenate([x for _, x in stream_losses(model, [flat], 0, mark=0)])
    assert np.allclose(found[:3], found[5:], atol=1e-6)


def test_a_state_that_is_carried_makes_blocks_as_good_as_one_long_text() -> None:
    model = model_of("lstm")
    assert isinstance(model, Recurrent)
    text = ids(65)
    lanes = Lanes(text, batch_size=1, block_size=8, seed=1)
    carried = CarriedState(model, 1)
    losses = [
        float(carried.loss(model, *lanes[n], fresh=lanes.is_fresh(n)))
        for n in range(lanes.per_epoch)
    ]
    whole = model.token_losses(torch.from_numpy(text[:-1])[None], torch.from_numpy(text[1:])[None])
    assert np.mean(losses) == pytest.approx(float(whole.mean()), abs=1e-5)
    assert lane_loss(model, text, rows=1) == pytest.approx(float(whole.mean()), abs=1e-5)
    with pytest.raises(NlpkitError, match="too few"):
        Lanes(text, batch_size=32, block_size=8, seed=1)


def test_recurrent_dropout_changes_training_and_nothing_else() -> None:
    model = model_of("gru", recurrent_dropout=0.5)
    idx = torch.from_numpy(ids(8))[None]
    before = model(idx)[0]
    model.train()
    assert not torch.allclose(model(idx)[0], before)
    model.eval()
    assert torch.equal(model(idx)[0], before)


# --- softmaxes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["adaptive", "sampled", "full"])
def test_every_softmax_learns_the_same_distribution(kind: str) -> None:
    torch.manual_seed(1)
    vocab = 1500
    layer = OutputLayer(4, vocab, kind)
    states = torch.ones(256, 4)
    share = 1 / torch.arange(1, vocab + 1.0)
    targets = torch.multinomial(share, 256, replacement=True)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
    for _ in range(60):
        loss = layer.loss(states, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    layer.eval()
    logs = layer.logits(states[:1]).log_softmax(dim=-1)[0]
    assert float(logs.exp().sum()) == pytest.approx(1, abs=1e-3)
    entropy = -float(torch.bincount(targets, minlength=vocab).div(256).mul(logs).sum())
    counts = torch.bincount(targets, minlength=vocab).float() / 256
    best = -float((counts[counts > 0] * counts[counts > 0].log()).sum())
    assert entropy < best + 0.8


def test_adaptive_logits_give_the_adaptive_loss() -> None:
    torch.manual_seed(2)
    layer = OutputLayer(8, 1200, "adaptive")
    states, targets = torch.randn(20, 8), torch.randint(0, 1200, (20,))
    by_logits = -layer.logits(states).gather(1, targets[:, None]).mean()
    assert float(layer.loss(states, targets)) == pytest.approx(float(by_logits), abs=1e-4)


# --- drawing ------------------------------------------------------------------------------------


def test_penalties_and_forbidden_n_grams() -> None:
    seen = torch.tensor([[1, 2, 1, 2, 3, 1]])
    logits = torch.zeros(1, 5)
    counted = adjust_logits(logits, SamplingSettings(frequency_penalty=0.5), seen)
    assert counted.tolist() == [[0.0, -1.5, -1.0, -0.5, 0.0]]
    forbidden = adjust_logits(logits, SamplingSettings(no_repeat_ngram=2), seen)
    assert torch.isinf(forbidden).tolist() == [[False, False, True, False, False]]
    with pytest.raises(NlpkitError, match="presence_penalty"):
        SamplingSettings(presence_penalty=1000.0)


def test_typical_sampling_leaves_out_what_is_too_likely_and_too_rare() -> None:
    shares = torch.tensor([[0.5, 0.12, 0.11, 0.1, 0.09, 0.07, 0.01]])
    settings = SamplingSettings(typical_p=0.3)
    keys = draw_keys(torch.Generator().manual_seed(1), 200)
    drawn = set(sample_next(shares.log().expand(200, -1), settings, keys).tolist())
    entropy = -float((shares * shares.log()).sum())
    nearest = min(range(7), key=lambda i: abs(-math.log(shares[0, i]) - entropy))
    assert nearest in drawn
    assert 6 not in drawn
    assert 0 not in drawn


def test_beams_find_what_greed_misses() -> None:
    model = build_model(ModelSettings(model="bigram", vocab_size=4)).eval()
    # 0 -> 1 is likelier than 0 -> 2, but 2 -> 3 is certain and nothing is behind 1
    table = torch.tensor([[0, 0.6, 0.4, 0], [0.25] * 4, [0, 0, 0, 1.0], [0.25] * 4])
    model.table.data = table.clamp_min(1e-6).log()
    found = search_beams(model, [0], 2, beams=3)
    assert found[0].ids == (2, 3)
    assert found[0].log_probability == pytest.approx(math.log(0.4), abs=1e-3)
    assert search_beams(model, [0], 2, beams=1)[0].ids[0] == 1
    ended = search_beams(model, [0], 5, beams=2, end=3)
    assert ended[0].ended


def random_weights(model: nn.Module) -> nn.Module:
    generator = torch.Generator().manual_seed(2)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=1.0, generator=generator)
    return model


@pytest.mark.parametrize("kind", ["gpt", "lstm", "mlp"])
def test_one_beam_writes_what_greed_writes_beyond_the_block_too(kind: str) -> None:
    settings = ModelSettings(model=kind, vocab_size=9, dim=16, layers=2, heads=2, block_size=8)
    model = random_weights(build_model(settings)).eval()
    prompt = list(range(9)) * 2
    greedy = SamplingSettings(temperature=0)
    steps = generate(model, [prompt], 20, greedy, torch.Generator())
    written = tuple(int(ids[0]) for ids, _ in steps)
    assert len(set(written)) > 1
    assert search_beams(model, prompt, 20, beams=1)[0].ids == written


@pytest.mark.parametrize("kind", ["gpt", "gru"])
def test_beams_that_carry_their_cache_find_what_reading_all_anew_finds(kind: str) -> None:
    settings = ModelSettings(model=kind, vocab_size=9, dim=16, layers=1, heads=2, block_size=16)
    model = random_weights(build_model(settings)).eval()
    alive: list[tuple[float, list[int]]] = [(0.0, [1, 2])]
    for _ in range(6):
        grown = [
            (score + float(new), [*row, index])
            for score, row in alive
            for index, new in enumerate(model(torch.tensor([row]))[0][0, -1].log_softmax(-1))
        ]
        alive = sorted(grown, reverse=True)[:3]
    found = search_beams(model, [1, 2], 6, beams=3)
    assert [list(beam.ids) for beam in found] == [row[2:] for _, row in alive]
    assert found[0].log_probability == pytest.approx(alive[0][0], abs=1e-4)


@pytest.mark.filterwarnings("ignore:too few n-grams")
def test_next_words_have_the_probability_of_all_their_tokens() -> None:
    text = "the cat sat on the mat, the cat ran. " * 8
    codec = Characters.from_text([text])
    trie = kneser_ney(np.array(codec.encode(text), np.int32), 5, len(codec))
    model = TextModel(NGramText(trie), codec)
    found = dict(next_words(model, "on the ", 10_000))
    for word in ("cat", "mat,"):
        ids = codec.encode(f"on the {word} ")
        _, logs = blank_logs(model, "on the _", [word])
        scores, _ = trie.score(np.array(ids, np.int32), trie.start)
        assert math.log(found[word]) == pytest.approx(scores[-len(word) - 1 :].sum(), abs=0.01)
        assert logs[0] == pytest.approx(scores[-len(word) - 1 : -1].sum(), abs=1e-4)
    assert next_words(model, "on the ", 2)[0][0] == "cat"


# --- examples -----------------------------------------------------------------------------------


def test_only_completions_are_targets() -> None:
    codec = Characters("abc\x04")
    pairs = example_ids([Example("ab", "c"), Example("a" * 20, "bb")], codec)
    batches = ExampleBatches(pairs, batch_size=4, block_size=8, seed=1)
    idx, targets = batches[0]
    counted = sorted(row[row >= 0].tolist() for row in targets)
    assert counted == [[1, 1, 3], [2, 3]]
    assert idx.size(1) <= 8
    with pytest.raises(NlpkitError, match="does not fit"):
        ExampleBatches([([1], [2] * 9)], batch_size=1, block_size=8, seed=1)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"completion": "x"}', "a completion without a prompt"),
        ('{"prompt": "x"}', "without a completion"),
        ("[1]", "not an object"),
        ("{", "not JSON"),
    ],
)
def test_examples_that_are_none_are_named_by_their_line(line: str, message: str) -> None:
    with pytest.raises(NlpkitError, match=message) as caught:
        read_examples(['{"prompt": "a", "completion": "b"}', line], "some.jsonl")
    assert "some.jsonl: line 2" in str(caught.value)


def test_a_template_makes_prompts_of_the_keys_of_an_object() -> None:
    made = read_examples(['{"q": "Why?", "answer": "so"}'], "-", template="Q: {q}\nA:")
    assert made == [Example("Q: Why?\nA:", "so")]


# --- novelty ------------------------------------------------------------------------------------


def test_the_longest_shared_passages_are_those_that_were_copied() -> None:
    random = np.random.default_rng(1)
    known = bytes(random.integers(97, 123, 5000).astype(np.uint8))
    fresh = bytes(random.integers(97, 123, 300).astype(np.uint8))
    text = fresh[:100] + known[1000:1200] + fresh[100:200] + known[50:110] + fresh[200:]
    found = Windows(text, 16).passages(known, 3)
    assert [(passage.length, passage.source) for passage in found] == [(200, 1000), (60, 50)]
    assert Windows(known[:500], 12).new_share(known) == 0
    assert Windows(fresh, 12).new_share(known) == 1
    assert 0.4 < Windows(text, 16).new_share(known) < 0.7


@given(
    st.text("ab", max_size=60).map(str.encode),
    st.text("abc", max_size=200).map(str.encode),
    st.integers(1, 20),
)
def test_novelty_is_that_of_a_plain_search(text: bytes, known: bytes, size: int) -> None:
    windows = [text[i : i + size] for i in range(len(text) - size + 1)]
    new = sum(window not in known for window in windows)
    assert Windows(text, size).new_share(known) == pytest.approx(new / max(1, len(windows)))
    for passage in Windows(text, 16).passages(known, 3):
        copied = known[passage.source : passage.source + passage.length]
        assert text[passage.at : passage.at + passage.length] == copied
    longest = next((n for n in range(60, 15, -1) if has_shared(text, known, n)), 0)
    best = Windows(text, 16).passages(known, 1)
    assert (best[0].length if best else 0) == longest


def has_shared(text: bytes, known: bytes, size: int) -> bool:
    return any(text[i : i + size] in known for i in range(len(text) - size + 1))


def test_features_of_words() -> None:
    words = 'He said : " The NATO ( 12 members ) met . " They left . See www.example.org'.split()
    found = word_features(words)
    marked = {name: [w for w, on in zip(words, found[name], strict=True) if on] for name in found}
    assert marked["quotes"] == "The NATO ( 12 members ) met .".split()
    assert marked["brackets"] == ["12", "members"]
    assert marked["capital"] == ["He", "The", "NATO", "They", "See"]
    assert (marked["upper"], marked["digit"], marked["url"]) == (
        ["NATO"],
        ["12"],
        ["www.example.org"],
    )
    stop = words.index(".")
    assert found["sentence"][stop + 1 : stop + 4].tolist() == [0, 1, 2]


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_gates_in_numpy_are_those_of_a_cell_that_is_stepped_by_hand(kind: str) -> None:
    torch.manual_seed(1)
    make = nn.LSTM if kind == "lstm" else nn.GRU
    rnn = make(5, 4, num_layers=2, bidirectional=True, batch_first=True)
    weights = {f"rnn.{name}": value.detach().numpy() for name, value in rnn.named_parameters()}
    encoder = NumpyEncoder(EncoderConfig(kind, 5, 4, layers=2), weights)
    table = torch.randn(7, 5)
    encoder.watched = []
    encoder(encoder.first(table.numpy()), np.arange(7)[None], np.array([7]))
    assert len(encoder.watched) == 2
    with torch.no_grad():
        states, _ = rnn(table[None])
        first = make(5, 4, batch_first=True)
        names = {name: weights[f"rnn.{name}"] for name, _ in first.named_parameters()}
        first.load_state_dict({name: torch.from_numpy(value) for name, value in names.items()})
        ahead, _ = first(table[None])
    assert np.allclose(encoder.watched[1]["state"], states[0], atol=1e-5)
    seen = encoder.watched[0]
    assert np.allclose(seen["state"][:, :4], ahead[0], atol=1e-5)
    parts = [names[f"weight_{way}_l0"] for way in ("ih", "hh")]
    before = np.concatenate([np.zeros((1, 4)), ahead[0].numpy()[:-1]])
    raw = (
        table.numpy() @ parts[0].T + before @ parts[1].T + names["bias_ih_l0"] + names["bias_hh_l0"]
    )
    gates = 1 / (1 + np.exp(-raw))
    order = ["input", "forget"] if kind == "lstm" else ["reset", "update"]
    for place, name in enumerate(order):
        assert np.allclose(seen[name][:, :4], gates[:, 4 * place : 4 * place + 4], atol=1e-5)
    if kind == "lstm":
        assert np.allclose(seen["output"][:, :4], gates[:, 12:], atol=1e-5)
        assert np.allclose(seen["state"], seen["output"] * np.tanh(seen["cell"]), atol=1e-5)
