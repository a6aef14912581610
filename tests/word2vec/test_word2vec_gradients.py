"""One step of each kernel is -lr times the gradient, by formula and by finite differences."""

from __future__ import annotations

import numpy as np
import pytest
import word2vec_reference as reference
from word2vec_reference import Doubles, Task

from nlpkit.word2vec.blocks import Steps, Workspace, cbow_block, make_workspace, skipgram_block
from nlpkit.word2vec.exact import centre_step
from nlpkit.word2vec.huffman import build_tree
from nlpkit.word2vec.tiles import aligned_zeros, padded

VOCABULARY, DIM, WINDOW = 7, 5, 3
# Words come twice, the first and last centres are inside the piece, noise holds a centre (2) and
# the same word twice.
TASK = Task(
    words=[0, 3, 1, 2, 2, 4, 0, 5, 1, 6],
    windows=[(0, 2), (0, 4), (1, 4), (0, 7), (2, 7), (4, 7), (3, 9), (6, 9), (6, 10), (8, 10)],
)
CENTRES = range(1, 9)
NOISE = [2, 6, 3, 6, 0]
SHARE = 0.4
LR = 0.5


def random_matrices() -> tuple[Doubles, Doubles]:
    random = np.random.default_rng(3)
    inputs, outputs = random.normal(scale=0.7, size=(2, VOCABULARY, DIM))
    return inputs, outputs


def in_memory(matrix: Doubles) -> np.ndarray:
    rows = aligned_zeros(VOCABULARY, padded(DIM))
    rows[:, :DIM] = matrix
    return rows


def workspace(outputs: int) -> Workspace:
    space = make_workspace(len(CENTRES), outputs, WINDOW, padded(DIM), len(TASK.words))
    # What a buffer held before must not matter.
    for buffer in (space.inputs, space.outputs, space.pairs, space.hidden, space.errors):
        buffer[:] = 123.0
    space.sums[:], space.change[:], space.covers[:], space.weights[:] = 9.0, 9.0, 9, 9.0
    space.word[:] = TASK.words
    space.low[:] = [low for low, _ in TASK.windows]
    space.high[:] = [high for _, high in TASK.windows]
    return space


def expected_changes(loss_of: object, arch: str, mean: bool) -> tuple[Doubles, Doubles, float]:
    """Changes of both matrices, and the summed loss, from finite differences centre by centre."""
    inputs, outputs = random_matrices()
    change_in, change_out = np.zeros_like(inputs), np.zeros_like(outputs)
    total = 0.0
    for p in CENTRES:

        def loss(ins: Doubles, outs: Doubles, p: int = p) -> float:
            found = reference.predictions(TASK, range(p, p + 1), ins, arch, mean)
            return sum(loss_of(x, centre, outs) for x, centre in found)  # type: ignore[operator]

        gradient_in, gradient_out = reference.finite_differences(loss, inputs, outputs)
        # The CBOW step for the words of a mean is that of the mean, not 1/C of it.
        boost = len(TASK.contexts(p)) if arch == "cbow" and mean else 1
        change_in -= LR * boost * gradient_in
        change_out -= LR * gradient_out
        total += loss(inputs, outputs)
    return change_in, change_out, total


def check(
    rows_in: np.ndarray, rows_out: np.ndarray, expected_in: Doubles, expected_out: Doubles
) -> None:
    inputs, outputs = random_matrices()
    np.testing.assert_allclose(rows_in[:, :DIM] - inputs, expected_in, atol=2e-5)
    np.testing.assert_allclose(rows_out[:, :DIM] - outputs, expected_out, atol=2e-5)
    assert not rows_in[:, DIM:].any()  # the padding stays zero
    assert not rows_out[:, DIM:].any()


@pytest.mark.parametrize(("arch", "mean"), [("skipgram", True), ("cbow", True), ("cbow", False)])
def test_negative_sampling_block_is_one_gradient_step(arch: str, mean: bool) -> None:
    def loss_of(x: Doubles, centre: int, outputs: Doubles) -> float:
        return reference.negative_sampling_loss(x, centre, outputs, NOISE, SHARE)

    expected_in, expected_out, total = expected_changes(loss_of, arch, mean)
    inputs, outputs = random_matrices()
    rows_in, rows_out = in_memory(inputs), in_memory(outputs)
    space = workspace(len(NOISE))
    space.noise[:] = NOISE
    how = Steps(WINDOW, mean, False, np.float32(SHARE), np.float32(LR))
    where = (rows_in, rows_out, CENTRES.start, CENTRES.stop, how, True, space)
    if arch == "skipgram":
        loss, count = skipgram_block(*where)
        assert count == sum(len(TASK.contexts(p)) for p in CENTRES)
    else:
        loss, count = cbow_block(*where)
        assert count == len(CENTRES)
    check(rows_in, rows_out, expected_in, expected_out)
    assert loss == pytest.approx(total, rel=2e-4)


def one_block(arch: str, space: Workspace, scale: float = 1.0) -> float:
    """The loss of a block whose vectors are ``scale`` times the random ones."""
    space.noise[:] = NOISE
    rows_in, rows_out = (in_memory(matrix * scale) for matrix in random_matrices())
    how = Steps(WINDOW, True, False, np.float32(SHARE), np.float32(LR))
    block = skipgram_block if arch == "skipgram" else cbow_block
    loss, _ = block(rows_in, rows_out, CENTRES.start, CENTRES.stop, how, True, space)
    return loss


@pytest.mark.parametrize("arch", ["skipgram", "cbow"])
def test_the_loss_of_scores_of_thousands_is_a_number(arch: str) -> None:
    """Also where a noise word is the centre, and its score counts 0 times."""
    assert 100 < one_block(arch, workspace(len(NOISE)), scale=100.0) < 1e7


def test_a_word_of_many_rows_weighs_as_many_in_the_mean_of_a_window() -> None:
    space = workspace(len(NOISE))
    space = space._replace(parts=np.array(TASK.words, np.int32) + 1)
    one_block("cbow", space)
    inputs = random_matrices()[0]
    for c, p in enumerate(CENTRES):
        words = TASK.contexts(p)
        mean = np.average(inputs[words], axis=0, weights=[word + 1 for word in words])
        np.testing.assert_allclose(space.hidden[c, :DIM], mean, atol=1e-6)


@pytest.mark.parametrize("full", [True, False], ids=["softmax", "hierarchical"])
@pytest.mark.parametrize(("arch", "mean"), [("skipgram", True), ("cbow", True), ("cbow", False)])
def test_exact_steps_are_gradient_steps(full: bool, arch: str, mean: bool) -> None:
    tree = build_tree(np.array([40, 30, 20, 10, 7, 3, 1]))

    def loss_of(x: Doubles, centre: int, outputs: Doubles) -> float:
        if full:
            return reference.softmax_loss(x, centre, outputs)
        path = slice(tree.starts[centre], tree.starts[centre + 1])
        return reference.hierarchical_loss(
            x, outputs, tree.nodes[path].tolist(), tree.codes[path].tolist()
        )

    expected_in, expected_out, total = expected_changes(loss_of, arch, mean)
    inputs, outputs = random_matrices()
    space = workspace(VOCABULARY)
    space.noise[:] = np.arange(VOCABULARY)
    change_in, change_out = np.zeros_like(inputs), np.zeros_like(outputs)
    how = Steps(WINDOW, mean, False, np.float32(SHARE), np.float32(LR))
    loss = 0.0
    for p in CENTRES:  # each from the same start, as the reference does
        rows_in, rows_out = in_memory(inputs), in_memory(outputs)
        step_loss, count = centre_step(rows_in, rows_out, tree, full, arch == "cbow", p, how, space)
        assert count == (1 if arch == "cbow" else len(TASK.contexts(p)))
        change_in += rows_in[:, :DIM] - inputs
        change_out += rows_out[:, :DIM] - outputs
        loss += step_loss
    np.testing.assert_allclose(change_in, expected_in, atol=5e-5)
    np.testing.assert_allclose(change_out, expected_out, atol=5e-5)
    assert loss == pytest.approx(total, rel=2e-4)
