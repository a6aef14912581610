"""Where a BERT starts from: embeddings that know which tokens keep which company.

The matrix of positive PMI of co-occurrences, cut down by an SVD (``vectors.counts``), or vectors of
one's own. With them, and with the unigram model as the bias of the output, a small model leaves the
plateau of predicting frequencies within its first steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from nlpkit.errors import NlpkitError
from nlpkit.models.bert import Bert
from nlpkit.tasks.bert.data import Lines
from nlpkit.text.wordpiece import WordPiece
from nlpkit.vectors.counts import vectors_from_counts
from nlpkit.vectors.settings import CountSettings

if TYPE_CHECKING:
    from nlpkit.vectors.store import Vectors

_WINDOW = 3
_SCALE = 0.05  # standard deviation of the numbers in the table
_MOST_TOKENS = 4_000_000  # of the text that are counted: more changes little


@torch.no_grad()
def start_output(model: Bert, counts: NDArray[np.int64]) -> None:
    """The bias of the output becomes the log of the unigram model; ids without counts are last."""
    head = model.require_head()
    share = (counts + 0.1) / (counts + 0.1).sum()
    head.bias.copy_(torch.from_numpy(np.log(share)).float())


@torch.no_grad()
def start_from_counts(model: Bert, lines: Lines, seed: int) -> bool:
    """Embeddings from co-occurrences; False for a text that is too small for it."""
    size, dim = model.embedding.weight.shape
    # the last token of a line is marked as ~id, so that windows end there
    ids = lines.ids.copy()
    ends = lines.starts[1:][np.diff(lines.starts) > 0] - 1
    ids[ends] = ~ids[ends]
    settings = CountSettings(dim=dim, window=_WINDOW, seed=seed % 2**32)
    try:
        table = vectors_from_counts(ids[:_MOST_TOKENS], size, settings)
    except NlpkitError:
        return False
    _put(model, np.arange(size), table)
    return True


@torch.no_grad()
def start_from_vectors(model: Bert, codec: WordPiece, vectors: Vectors) -> int:
    """Embeddings of tokens that are words of given vectors; how many there were."""
    dim = model.embedding.weight.size(1)
    if vectors.dim != dim:
        raise NlpkitError(
            f"`vectors` have {vectors.dim} dimensions, the model {dim}", hint=f"`dim` {vectors.dim}"
        )
    known = [(i, token) for i, token in enumerate(codec.vocabulary()) if token in vectors]
    if not known:
        raise NlpkitError("`vectors` know no token of the vocabulary", hint="vectors of its text")
    _put(model, np.array([i for i, _ in known]), np.stack([vectors.get(t) for _, t in known]))
    return len(known)


def _put(model: Bert, rows: NDArray[np.int64], table: NDArray[np.float32]) -> None:
    """Rows that are all zero, of tokens without company, stay as they are."""
    there = np.abs(table).sum(axis=1) > 0
    found = table[there]
    # tokens differ in length by their frequency, of which the bias knows already
    found = found / np.linalg.norm(found, axis=1, keepdims=True) * found.shape[1] ** 0.5 * _SCALE
    model.embedding.weight[torch.from_numpy(rows[there])] = torch.from_numpy(found).float()
