"""A tagger trained once for all tests of its predictions."""

from __future__ import annotations

import pytest
from small_taggers import ENTITIES, run_of

from nlpkit.tagger.predictor import Tagger


@pytest.fixture(scope="session")
def entity_tagger() -> Tagger:
    run = run_of(ENTITIES, epochs=80, lr=0.02, dropout=0.1)
    for _ in run.trainer.fit():
        pass
    run.model.eval()
    return run.tagger()
