"""Files written here load in gensim with the same neighbours, and gensim's load here."""

from pathlib import Path

import numpy as np
import pytest

from nlpkit.vectors.formats import load, save
from nlpkit.vectors.settings import VectorFormat
from nlpkit.vectors.store import Vectors

gensim = pytest.importorskip("gensim", reason="gensim is not installed")

WORDS = ["</s>", "non\u00a0breaking", "🙂", "the", "é"]


def sample() -> Vectors:
    matrix = np.random.default_rng(1).standard_normal((len(WORDS), 6)).astype(np.float32)
    return Vectors(WORDS, matrix)


@pytest.mark.parametrize(
    "format",
    [VectorFormat.WORD2VEC, VectorFormat.BINARY, VectorFormat.FASTTEXT, VectorFormat.GLOVE],
)
def test_gensim_reads_what_is_written_here(tmp_path: Path, format: VectorFormat) -> None:
    vectors = sample()
    save(vectors, str(tmp_path / "v"), format)
    theirs = gensim.models.KeyedVectors.load_word2vec_format(
        str(tmp_path / "v"),
        binary=format is VectorFormat.BINARY,
        no_header=format is VectorFormat.GLOVE,
    )
    assert theirs.index_to_key == WORDS
    np.testing.assert_array_equal(theirs.vectors, vectors.matrix)
    ours = vectors.nearest_to(vectors.matrix[3], 3, banned=[[3]])[0]
    assert [near.word for near in ours] == [word for word, _ in theirs.most_similar("the", topn=3)]


@pytest.mark.parametrize("binary", [False, True])
def test_what_gensim_writes_is_read_here(tmp_path: Path, binary: bool) -> None:
    theirs = gensim.models.KeyedVectors(6)
    theirs.add_vectors(WORDS, sample().matrix)
    theirs.save_word2vec_format(str(tmp_path / "v"), binary=binary)
    vectors = load(str(tmp_path / "v"))
    assert list(vectors.words) == WORDS
    np.testing.assert_array_equal(vectors.matrix, sample().matrix)
