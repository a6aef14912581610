"""ELMo: the arithmetic against one written by hand, batches, state, import, training."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fuzz.foreign import ELMO_OPTIONS, write_elmo
from hypothesis import given
from hypothesis import strategies as st

from nlpkit.errors import NlpkitError
from nlpkit.models.elmo import Elmo, ElmoArchitecture
from nlpkit.models.elmo_model import ElmoModel, make_batch, mix_layers
from nlpkit.models.finetune import ElmoEncoder
from nlpkit.nn.layer_mix import LayerMix
from nlpkit.nn.projected_lstm import ProjectedLstm, Recurrence
from nlpkit.pretrained.elmo import import_elmo, read_options
from nlpkit.tasks.elmo.settings import ElmoSettings
from nlpkit.tasks.elmo.train import ElmoRun, Sentences
from nlpkit.text.word_bytes import word_rows

SMALL = ElmoArchitecture(dim=4, hidden=6, char_dim=3, widths=(1, 2), filters=(3, 5), longest_word=8)
SENTENCES = ["the cat sat".split(), "a dog".split(), [], "the old cat saw a small dog".split()]


def small_elmo() -> ElmoModel:
    model = Elmo(SMALL)
    model.initialize(torch.Generator().manual_seed(1))
    return ElmoModel(model.eval(), None)


def test_a_clipped_projected_lstm_follows_its_formula() -> None:
    lstm = ProjectedLstm(2, 3, 5, 3, cell_clip=0.3, projection_clip=0.2)
    lstm.initialize(torch.Generator().manual_seed(1))
    inputs = torch.randn(2, 1, 4, 3, generator=torch.Generator().manual_seed(2))
    outputs, _ = lstm(inputs)

    def sigmoid(x: Any) -> Any:
        return 1 / (1 + np.exp(-x))

    for way in range(2):
        w, u, b, p = (
            parameter[way].detach().double().numpy()
            for parameter in (lstm.of_input, lstm.of_state, lstm.bias, lstm.projection)
        )
        h, c = np.zeros((1, 3)), np.zeros((1, 5))
        for step in range(4):
            i, f, g, o = np.split(inputs[way, :, step].numpy() @ w + h @ u + b, 4, axis=1)
            c = np.clip(sigmoid(f) * c + sigmoid(i) * np.tanh(g), -0.3, 0.3)
            h = np.clip((sigmoid(o) * np.tanh(c)) @ p, -0.2, 0.2)
            np.testing.assert_allclose(outputs[way, :, step].detach(), h, atol=1e-6)


def test_gradients_of_the_recurrence_are_those_of_its_formula() -> None:
    generator = torch.Generator().manual_seed(3)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    weights = [draw(2, 4, 3, 20), draw(2, 2, 20), draw(2, 5, 2)]
    for part in weights:
        part.requires_grad_()
    first = draw(2, 3, 2), draw(2, 3, 5)
    for clips in ((math.inf, math.inf), (0.8, 0.9)):
        outputs = Recurrence.apply(weights[0].clone(), *weights[1:], *first, *clips)[0]
        assert bool((outputs.abs() == 0.9).any()) == (clips[1] == 0.9)  # some are clipped

        def outputs_of(gates: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
            return Recurrence.apply(gates.clone(), *others, *first, *clips)[0]  # noqa: B023

        assert torch.autograd.gradcheck(outputs_of, weights)


def test_vectors_are_the_same_at_any_batch_size_and_in_any_company() -> None:
    elmo = small_elmo()
    together = list(elmo.embed(SENTENCES))
    for size in (1, 12, 30):
        for one, other in zip(together, elmo.embed(SENTENCES, batch_tokens=size), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)
    alone = next(iter(elmo.embed([SENTENCES[3]])))
    np.testing.assert_allclose(together[3], alone, atol=1e-6)
    assert [vectors.shape for vectors in together] == [(3, 3, 8), (3, 2, 8), (3, 0, 8), (3, 7, 8)]


def test_nothing_is_remembered_between_calls_unless_asked_for() -> None:
    elmo = small_elmo()
    first, second = (next(iter(elmo.embed([SENTENCES[0]]))) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    one, two = elmo.embed_statefully([[SENTENCES[0]], [SENTENCES[0]]])
    np.testing.assert_allclose(one[0], first, atol=1e-6)
    assert np.abs(two[0] - first).max() > 1e-3
    np.testing.assert_array_equal(two[0][0], first[0])  # words by themselves have no state


def test_the_forward_half_sees_the_left_and_the_backward_half_the_right() -> None:
    elmo = small_elmo()
    one, other = elmo.embed([["a", "b", "c"], ["a", "b", "d"]])
    np.testing.assert_allclose(one[1:, :2, :4], other[1:, :2, :4], atol=1e-6)
    assert np.abs(one[1:, 0, 4:] - other[1:, 0, 4:]).max() > 1e-4


def test_the_loss_is_the_mean_over_both_directions() -> None:
    settings = ElmoArchitecture(**{**vars(SMALL), "words": 6})
    model = Elmo(settings)
    model.initialize(torch.Generator().manual_seed(1))
    batch = make_batch([["a", "b"], ["c"]], SMALL.longest_word)
    targets = torch.tensor([[1, 3, 4, 2], [1, 5, 2, 2]])  # <s> a b </s>, <s> c </s> and padding
    layers, _ = model(batch)
    assert model.softmax is not None
    ahead, behind = (model.softmax.log_prob(half.flatten(0, 1)) for half in layers[-1].split(4, 2))
    wanted = []
    for row, length in ((0, 4), (1, 3)):
        for step in range(length - 1):
            wanted.append(-ahead[4 * row + step, targets[row, step + 1]])
            wanted.append(-behind[4 * row + step + 1, targets[row, step]])
    torch.testing.assert_close(model.loss(batch, targets), torch.stack(wanted).mean())


def test_layer_mix_is_the_formula_of_the_paper() -> None:
    mix = LayerMix(3)
    layers = torch.randn(3, 2, 5)
    with torch.no_grad():
        mix.scores.copy_(torch.tensor([0.0, 1.0, 2.0]))
        mix.gamma.fill_(2.0)
    weights = np.exp([0.0, 1.0, 2.0]) / np.exp([0.0, 1.0, 2.0]).sum()
    expected = 2 * sum(w * h for w, h in zip(weights, layers.numpy(), strict=True))
    np.testing.assert_allclose(mix(layers).detach(), expected, rtol=1e-5)
    assert mix.shares == pytest.approx(weights, rel=1e-5)


@given(st.text(max_size=12), st.integers(3, 20))
def test_a_word_is_its_bytes_between_marks(word: str, longest: int) -> None:
    (row,) = (word_rows([word], longest) - 1).tolist()
    data = list(word.encode("utf-8", "replace"))[: longest - 2]
    assert row == [258, *data, 259, *[260] * (longest - 2 - len(data))]


def test_a_mix_needs_a_number_for_each_layer_and_layers_are_checked() -> None:
    layers = np.ones((3, 2, 4), np.float32)
    assert mix_layers(layers, "", [1, 2, 3]).tolist() == [[6.0] * 4] * 2
    with pytest.raises(NlpkitError, match="2 shares for 3 layers"):
        mix_layers(layers, "", [1, 2])
    with pytest.raises(NlpkitError, match="no layer 3"):
        mix_layers(layers, "3")


# --- AllenNLP's files ---------------------------------------------------------------------------


def embed_by_hand(words: list[str], arrays: dict[str, Any]) -> list[Any]:
    """All layers of a sentence, straight from TensorFlow's variables."""

    def sigmoid(x: Any) -> Any:
        return 1 / (1 + np.exp(-x))

    def vector(row: list[int]) -> Any:
        letters = arrays["char_embed"][row]
        found = []
        for number, width in enumerate((1, 2)):
            kernel = arrays[f"CNN/W_cnn_{number}"][0]
            spans = [letters[i : i + width] for i in range(len(row) - width + 1)]
            responses = [np.einsum("wd,wdf->f", span, kernel) for span in spans]
            found.append(np.tanh(np.max(responses, axis=0) + arrays[f"CNN/b_cnn_{number}"]))
        x = np.concatenate(found)
        for number in range(2):
            high = f"CNN_high_{number}"
            carry = sigmoid(x @ arrays[f"{high}/W_carry"] + arrays[f"{high}/b_carry"])
            new = np.maximum(x @ arrays[f"{high}/W_transform"] + arrays[f"{high}/b_transform"], 0)
            x = carry * new + (1 - carry) * x
        return x @ arrays["CNN_proj/W_proj"] + arrays["CNN_proj/b_proj"]

    rows = [[258, 256, 259, *[260] * 7]]
    for word in words:
        data = list(word.encode())[:8]
        rows.append([258, *data, 259, *[260] * (8 - len(data))])
    rows.append([258, 257, 259, *[260] * 7])
    tokens = np.stack([vector(row) for row in rows])
    layers: list[Any] = [[tokens, tokens]]
    for depth in range(2):
        both = []
        for way in range(2):
            cell = f"RNN_{way}/RNN/MultiRNNCell/Cell{depth}/LSTMCell"
            inputs = layers[-1][way]
            h, c, outputs = np.zeros(4), np.zeros(6), []
            for x in inputs if way == 0 else inputs[::-1]:
                gates = np.concatenate([x, h]) @ arrays[f"{cell}/W_0"] + arrays[f"{cell}/B"]
                i, j, f, o = np.split(gates, 4)
                c = np.clip(sigmoid(f + 1) * c + sigmoid(i) * np.tanh(j), -3, 3)
                h = np.clip((sigmoid(o) * np.tanh(c)) @ arrays[f"{cell}/W_P_0"], -3, 3)
                outputs.append(h)
            result = np.stack(outputs if way == 0 else outputs[::-1])
            both.append(result + inputs if depth else result)
        layers.append(both)
    return [np.concatenate(both, axis=1)[1:-1] for both in layers]


def test_an_imported_elmo_gives_what_tensorflows_variables_say(tmp_path: Path) -> None:
    arrays = write_elmo(tmp_path)
    elmo = import_elmo(tmp_path / "options.json", tmp_path / "weights.hdf5")
    words = ["Time", "flies", "überaus-lange", "."]
    (vectors,) = elmo.embed([words])
    for ours, theirs in zip(vectors, embed_by_hand(words, arrays), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_weights_that_do_not_fit_their_options_are_named(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    write_elmo(tmp_path)
    options, weights = tmp_path / "options.json", tmp_path / "weights.hdf5"
    with h5py.File(weights, "a") as file:
        del file["CNN_proj/W_proj"]
    with pytest.raises(NlpkitError, match="CNN_proj/W_proj is missing"):
        import_elmo(options, weights)
    with h5py.File(weights, "a") as file:
        file["CNN_proj/W_proj"] = np.zeros((9, 5), "f4")
    with pytest.raises(NlpkitError, match=r"CNN_proj/W_proj is float32 \(9, 5\), not float32"):
        import_elmo(options, weights)
    weights.write_bytes(b"not HDF5")
    with pytest.raises(NlpkitError, match="is not an HDF5 file"):
        import_elmo(options, weights)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"char_cnn": None}, "no char_cnn and lstm"),
        ({"char_cnn.n_characters": 50}, "n_characters is 50"),
        ({"char_cnn.filters": [[1, 2, 3]]}, "pairs of width and number"),
        ({"char_cnn.activation": "gelu"}, "activation"),
        ({"lstm.n_layers": 0}, "layers"),
        ({"lstm.peephole": True}, "peephole is not known here"),
    ],
)
def test_options_are_read_strictly(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    raw: dict[str, Any] = json.loads(json.dumps(ELMO_OPTIONS))
    for name, value in change.items():
        outer, _, inner = name.partition(".")
        if inner:
            raw[outer][inner] = value
        else:
            del raw[outer]
    (tmp_path / "options.json").write_text(json.dumps(raw))
    with pytest.raises(NlpkitError, match=message):
        read_options(tmp_path / "options.json")


# --- training -----------------------------------------------------------------------------------


def test_both_directions_learn_to_predict_their_next_word() -> None:
    lines = [["one", "two", "three", "four"], ["red", "green", "blue"]] * 40
    settings = ElmoSettings(
        dim=12, hidden=16, filters=16, epochs=20, batch_tokens=100, lr=0.05, dropout=0.0,
        min_count=1, val_fraction=0.1,
    )  # fmt: skip
    run = ElmoRun(Sentences.read(lines), settings)
    for _ in run.trainer.fit():
        pass
    elmo = run.finish()
    assert elmo.config.metrics["heldout_loss"] < 0.4, "log 7 = 1.9 by chance"


def test_text_without_words_is_refused() -> None:
    with pytest.raises(NlpkitError, match="no words to learn from"):
        Sentences.read([[], []])


def test_an_elmo_that_has_seen_no_capitals_reads_words_in_lower_case() -> None:
    small = ElmoSettings(dim=4, hidden=4, filters=16, max_iters=1, min_count=1, val_fraction=0.0)
    for words, lower in ((["red", "green"], True), (["Red", "green"], False)):
        elmo = ElmoRun(Sentences.read([words] * 4), small).train()
        assert elmo.model.settings.lower is lower
        given, same = elmo.embed([["RED"], ["red"]])
        assert np.array_equal(given, same) is lower
        encoder = ElmoEncoder(elmo)
        assert (encoder.encode_words(["Red"]) == encoder.encode_words(["red"])) is lower
