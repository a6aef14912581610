"""The bag of n-grams: a linear model of hashed words and n-grams, with two parents.

L2 logistic regression goes to the minimum of its own loss; naive Bayes is quick to believe and
right where texts are short and words speak for themselves. What the model says is the weighted sum
of both. The strength of the regression, the number of its epochs and both weights are those with
the lowest loss on held-out texts: those of ``dev``, or a fifth of the texts, which regressions on
the rest have not seen.

All regressions are trained side by side, one pass over the texts a step, by L-BFGS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from nlpkit.tasks.classify.features import Bags, FeatureIndex, text_weights
from nlpkit.tasks.classify.settings import ResolvedClassifier

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

STRENGTHS = (10.0, 100.0)  # C: how much the loss of all texts counts beside the penalty
PARTS = 5  # of the texts, of which one is held out, or each in turn
FEW_TEXTS = 1000
MANY_FEATURES = 200_000  # with more, those of one text only are left out
SMOOTHING = 1.0  # added to the counts of naive Bayes
LEAST = 0.05  # of the regression, so that there is always something to go by
MOST = 3.0
USUAL = 0.5  # weight of either, from which few held-out texts do not lead far away
LARGEST = 16_000_000  # weights of all regressions together

Floats = NDArray[np.float64]


class Rows(NamedTuple):
    """Texts as rows of features; text i has those from ``starts[i]`` on."""

    features: NDArray[np.int64]  # (N,)
    starts: NDArray[np.int64]  # (B + 1,)
    weights: NDArray[np.float32]  # (N,)

    @classmethod
    def of(cls, bags: Bags, index: FeatureIndex, *, sublinear: bool) -> Rows:
        """The known features of bags, with what each counts."""
        features, starts, counts = index.counted(bags)
        return cls(features, starts, text_weights(starts, counts, sublinear=sublinear))


def known_features(bags: Bags, numbers: int) -> NDArray[np.uint64]:
    """The features to learn, sorted: those of at least so many texts that memory is enough.

    ``numbers`` are those that training keeps of each: a weight of each label and regression.
    """
    features, texts = np.unique(bags.features, return_counts=True)
    least = 2 if len(features) > MANY_FEATURES else 1
    most = LARGEST // numbers
    if (texts >= least).sum() > most:
        least = np.partition(texts, -most - 1)[-most - 1] + 1
    return features[texts >= least]


class _Product(torch.autograd.Function):
    """A sparse matrix times weights, by scipy; the transpose is made once for all gradients."""

    @staticmethod
    def forward(ctx: Any, table: Any, turned: Any, weights: Tensor) -> Tensor:
        ctx.turned = turned
        return torch.from_numpy(table @ weights.detach().numpy())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor]:
        return None, None, torch.from_numpy(ctx.turned @ gradient.numpy())


class Bow(nn.Module):
    """Regressions by held-out part and strength; the last ones, without held-out part, are kept.

    ``forward`` gives the sum of their losses, ``heldout`` the loss of the best on held-out texts.
    """

    def __init__(
        self,
        rows: Rows,
        targets: NDArray[np.float32],
        n_features: int,
        settings: ResolvedClassifier,
        dev: tuple[Rows, NDArray[np.float32]] | None = None,
    ) -> None:
        """``targets`` (B, K): 1 for the labels of a text. ``dev`` is what is held out, if given."""
        super().__init__()
        self.multi_label, self.n_features = settings.multi_label, n_features
        self.n_texts, self.n_labels = targets.shape
        self.parts = [] if dev else _held_out(self.n_texts, settings.seed)
        inside = np.ones((len(self.parts) + 1, self.n_texts), np.float32)
        for row, part in zip(inside, self.parts, strict=False):
            row[part] = 0
        self._inside = torch.from_numpy(inside.repeat(len(STRENGTHS), axis=0))  # (P, B)
        self._sizes = self._inside.sum(dim=1).clamp(min=1)
        strengths = torch.tensor(STRENGTHS * len(inside))
        self._penalties = 1 / (2 * strengths * self._sizes)  # of the mean loss
        texts_with = np.bincount(rows.features, minlength=n_features)
        self.inverse = 1 + np.log((1 + self.n_texts) / (1 + texts_with))  # document frequency
        self._table = self._sparse(rows)
        self._turned = self._table.T.tocsr()
        self._targets = torch.from_numpy(targets)
        self.bayes = naive_bayes(rows, targets, n_features)
        self._bayes_held, self._held_targets = self._bayes_of_held_out(rows, targets, dev)
        if dev is None:
            self._held = self._table[np.concatenate(self.parts)]
            self._unseen_by = np.repeat(np.arange(len(self.parts)), list(map(len, self.parts)))
        else:
            self._held = self._sparse(dev[0])
            self._unseen_by = np.zeros(len(dev[1]), np.int64)
        # a row for each regression: for each feature, and the bias, the numbers of all labels
        size = (n_features + 1) * self.n_labels
        self.weights = nn.Parameter(torch.zeros(len(self._inside), size))

    def _sparse(self, rows: Rows) -> csr_matrix:
        """Texts by features (B, F + 1); the last column, always 1, is for the bias."""
        from scipy.sparse import csr_matrix

        ends = rows.starts[1:]
        values = np.insert(rows.weights * self.inverse[rows.features], ends, 1).astype(np.float32)
        columns = np.insert(rows.features, ends, self.n_features)
        parts = (values, columns, rows.starts + np.arange(len(rows.starts)))
        return csr_matrix(parts, shape=(len(ends), self.n_features + 1))

    def _bayes_of_held_out(
        self, rows: Rows, targets: NDArray[np.float32], dev: tuple[Rows, NDArray[np.float32]] | None
    ) -> tuple[Floats, NDArray[np.float32]]:
        if dev is not None:
            return _scores(dev[0], self.bayes), dev[1]
        found = np.zeros(targets.shape)
        for part in self.parts:
            rest = np.delete(np.arange(len(targets)), part)
            learned = naive_bayes(rows, targets, self.n_features, rest)
            found[part] = _scores(rows, learned)[part]
        order = np.concatenate(self.parts)
        return found[order], targets[order]

    def forward(self) -> Tensor:
        """The mean over all regressions of loss and penalty."""
        scores = self._all_scores(self._table)  # (B, P, K)
        if self.multi_label:
            targets = self._targets[:, None].expand_as(scores)
            losses = F.binary_cross_entropy_with_logits(scores, targets, reduction="none").sum(2)
        else:
            labels = self._targets.argmax(dim=1)[:, None].expand(scores.shape[:2])
            losses = F.cross_entropy(scores.flatten(0, 1), labels.flatten(), reduction="none")
            losses = losses.view(scores.shape[:2])
        means = (losses * self._inside.T).sum(dim=0) / self._sizes
        squares = self.weights[:, : -self.n_labels].square().sum(dim=1)
        return (means + self._penalties * squares).mean()

    def _all_scores(self, table: csr_matrix) -> Tensor:
        by_feature = self.weights.view(len(self.weights), -1, self.n_labels).transpose(0, 1)
        found = _Product.apply(table, self._turned, by_feature.reshape(self.n_features + 1, -1))
        return found.view(table.shape[0], len(self.weights), self.n_labels)

    @torch.no_grad()
    def choose(self) -> tuple[float, int, Floats]:
        """The lowest held-out loss, the strength it comes from, and the weights of both parents."""
        scores = self._all_scores(self._held).numpy()
        texts, firsts = np.arange(len(scores)), self._unseen_by * len(STRENGTHS)
        found = []
        for number in range(len(STRENGTHS)):
            loss, shares = self._pool(scores[texts, firsts + number].astype(np.float64))
            found.append((loss, number, shares))
        return min(found, key=lambda one: one[0])

    def _pool(self, regression: Floats) -> tuple[float, Floats]:
        """The weights of regression and naive Bayes with the lowest loss, and that loss."""
        from scipy.optimize import minimize

        targets, bayes = self._held_targets, self._bayes_held

        def loss_and_slopes(shares: Floats) -> tuple[float, Floats]:
            scores = shares[0] * regression + shares[1] * bayes
            if self.multi_label:
                loss = np.logaddexp(0, scores).sum()
                likely = 1 / (1 + np.exp(-scores.clip(-500, 500)))
            else:
                highest = scores.max(axis=1, keepdims=True)
                likely = np.exp(scores - highest)
                total = likely.sum(axis=1, keepdims=True)
                loss, likely = (np.log(total) + highest).sum(), likely / total
            wrong = likely - targets
            slopes = np.array([(wrong * regression).sum(), (wrong * bayes).sum()])
            away = shares - USUAL
            loss += (away**2).sum() - (scores * targets).sum()
            return loss / len(scores), (slopes + 2 * away) / len(scores)

        bounds = [(LEAST, MOST), (0.0, MOST)]
        found = minimize(
            loss_and_slopes, [USUAL, USUAL], jac=True, method="L-BFGS-B", bounds=bounds
        )
        return float(found.fun), found.x

    def heldout(self) -> float:
        """The loss on held-out texts, of the best regression so far and naive Bayes together."""
        return self.choose()[0]

    @torch.no_grad()
    def tensors(self) -> dict[str, Tensor]:
        """The model that comes out: what each feature adds to the score of each label."""
        _, number, shares = self.choose()
        kept = self.weights[len(self.weights) - len(STRENGTHS) + number].view(-1, self.n_labels)
        learned = kept.double().numpy() * shares[0]
        table = learned[:-1] * self.inverse[:, None] + self.bayes * shares[1]
        return {
            "embedding.weight": torch.from_numpy(table.astype(np.float32)),
            "output.weight": torch.eye(self.n_labels),
            "output.bias": torch.from_numpy(learned[-1].astype(np.float32)),
        }


def _held_out(n_texts: int, seed: int) -> list[NDArray[np.int64]]:
    """Texts to hold out: a fifth, or, where that is few, each fifth in turn."""
    order = np.random.default_rng([seed, n_texts]).permutation(n_texts)
    return np.array_split(order, min(PARTS, n_texts))[: _n_parts(n_texts)]


def _n_parts(n_texts: int) -> int:
    return 1 if n_texts >= FEW_TEXTS else min(PARTS, n_texts)


def n_regressions(n_texts: int, *, dev: bool) -> int:
    """How many are trained: of each strength one of all texts and one for each part held out.

    >>> n_regressions(100, dev=False), n_regressions(5000, dev=False), n_regressions(100, dev=True)
    (12, 4, 2)
    """
    return len(STRENGTHS) * (1 + (0 if dev else _n_parts(n_texts)))


def _scores(rows: Rows, table: Floats) -> Floats:
    """The sum of a table's rows for each text, (B, K)."""
    from scipy.sparse import csr_matrix

    parts = (rows.weights, rows.features, rows.starts)
    found: Floats = csr_matrix(parts, shape=(len(rows.starts) - 1, len(table))) @ table
    return found


def naive_bayes(
    rows: Rows,
    targets: NDArray[np.float32],
    n_features: int,
    texts: NDArray[np.int64] | None = None,
) -> Floats:
    """For each feature and label the log of how much more often texts of the label have it.

    >>> rows = Rows(np.array([0, 1]), np.array([0, 1, 2]), np.ones(2, np.float32))
    >>> ratios = naive_bayes(rows, np.array([[1, 0], [0, 1]], np.float32), 2)
    >>> (ratios > 0).tolist()
    [[True, False], [False, True]]
    """
    owners = np.repeat(np.arange(len(targets)), np.diff(rows.starts))
    features = rows.features
    if texts is not None:
        chosen = np.isin(owners, texts)
        owners, features = owners[chosen], features[chosen]
    total = np.bincount(features, minlength=n_features) + 2 * SMOOTHING
    ratios = np.empty((n_features, targets.shape[1]))
    for label in range(targets.shape[1]):
        inside = np.bincount(features, targets[owners, label], n_features) + SMOOTHING
        outside = total - inside
        ratios[:, label] = np.log(inside / inside.sum()) - np.log(outside / outside.sum())
    ratios /= 2
    return ratios
