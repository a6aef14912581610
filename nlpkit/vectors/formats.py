"""Load vectors from whatever a path holds, told by its content, and save them in any format.

The formats themselves are in ``folder``, ``textformat``, ``binaryformat`` and ``fasttext``; all but
the first are imported when they are met, because a folder is there to be opened fast.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlpkit import compression, modeldir, textio
from nlpkit.errors import NlpkitError
from nlpkit.vectors import folder
from nlpkit.vectors.settings import VectorFormat
from nlpkit.vectors.source import Source, open_source
from nlpkit.vectors.store import Vectors

MOST_GIVEN = 200_000  # the most frequent words of given vectors go into a tagger or classifier

_PICKLE = b"\x80"
_ZIP = b"PK\x03\x04"
_NPY = b"\x93NUMPY"


def detect(source: Source) -> str:
    """What a file is: ``text``, ``binary`` or ``fasttext-bin``; anything else is an error.

    >>> detect(Source("x", b"1 2\\nthe 0.5 0.5\\n"))
    'text'
    """
    from nlpkit.vectors import fasttext, textformat

    start = source.data[:8]
    if start.startswith(fasttext.MAGIC):
        return "fasttext-bin"
    if start.startswith(_PICKLE) and start[1:2] in b"\2\3\4\5":
        raise NlpkitError(
            f"{source.name} is a pickle, as gensim's save() writes; reading one can run code",
            hint="in Python with gensim: "
            "KeyedVectors.load(FILE).save_word2vec_format('vectors.bin', binary=True)",
        )
    if start.startswith((_ZIP, _NPY)):
        kind = "a zip archive" if start.startswith(_ZIP) else "a numpy array without words"
        raise NlpkitError(f"{source.name} is {kind}, not word vectors")
    header = textformat.read_header(source)
    if header is not None:
        is_text = textformat.looks_like_rows(source, header.end, header.dim)
        return "text" if is_text else "binary"
    if textformat.guess_dim(source) is not None:
        return "text"
    raise NlpkitError(
        f"{source.name} does not hold word vectors",
        hint="a model folder, spaCy's, word2vec text or binary, GloVe, fastText .vec or .bin",
    )


def given(vectors: Vectors | str | os.PathLike[str] | None) -> Vectors | None:
    """Vectors as they are, or those of a path."""
    return load(os.fspath(vectors)) if isinstance(vectors, str | os.PathLike) else vectors


def given_table(
    vectors: Vectors | str | os.PathLike[str] | None,
) -> tuple[list[str], NDArray[np.float32] | None]:
    """The most frequent words of given vectors and a table for a model: row 0 is for no vector.

    Numbers are scaled to a spread of 1, so that vectors of any source will do.
    """
    found = given(vectors)
    if found is None:
        return [], None
    count = min(len(found), MOST_GIVEN)
    matrix = np.array(found.matrix[:count], np.float32)
    matrix /= max(float(matrix.std()), 1e-6)
    return [found.words[row] for row in range(count)], np.pad(matrix, ((1, 0), (0, 0)))


def load(path: str, *, errors: str = "strict", trained: bool = False) -> Vectors:
    """Vectors from a model folder or a file of any known format, compressed or not.

    ``errors`` (strict, replace, ignore) is for words that are not UTF-8. With ``trained`` all that
    further training needs is read from fastText's ``.bin``, not only what questions need.
    ``FOLDER/documents`` are the documents of a folder that has learned some.

    >>> load("glove.6B.50d.txt").get("the")  # doctest: +SKIP
    """
    path = os.fspath(modeldir.find_model(path))
    if os.path.isdir(path):
        from nlpkit.vectors import spacy

        found = spacy.find(path)
        return folder.read_folder(path) if found is None else spacy.read(found)
    model, name = os.path.split(path)
    if name == "documents" and os.path.isdir(model) and not os.path.exists(path):
        return folder.read_documents(model)
    from nlpkit.vectors import binaryformat, fasttext, textformat

    with open_source(path, errors) as source:
        kind = detect(source)
        if kind == "fasttext-bin":
            return fasttext.read_fasttext(source, outputs=trained)
        if kind == "text":
            return textformat.read_text(source)
        header = textformat.read_header(source)
        assert header is not None, "a binary file is told by its header"
        return binaryformat.read_binary(source, header)


def format_of_name(path: str) -> VectorFormat:
    """The format that a file name suggests; a name without a known ending is a folder.

    >>> format_of_name("v.vec.gz").value, format_of_name("v.bin").value, format_of_name("v").value
    ('fasttext', 'binary', 'folder')
    """
    packed = compression.ending(path)
    name = os.path.basename(path).removesuffix(packed).lower()
    if "glove" in name and name.endswith(".txt"):
        return VectorFormat.GLOVE
    endings = {
        ".txt": VectorFormat.WORD2VEC,
        ".vec": VectorFormat.FASTTEXT,
        ".bin": VectorFormat.BINARY,
    }
    # what is compressed is a file, whatever it is called
    other = VectorFormat.WORD2VEC if packed else VectorFormat.FOLDER
    return endings.get(os.path.splitext(name)[1], other)


def save(
    vectors: Vectors,
    path: str,
    format: VectorFormat | None = None,
    *,
    settings: dict[str, Any] | None = None,
    force: bool = False,
) -> VectorFormat:
    """Write vectors whole or not at all, in the given format or the one the name suggests."""
    chosen = format_of_name(path) if format is None else format
    if format is None and chosen is VectorFormat.BINARY and _has_trained_ngrams(vectors):
        chosen = VectorFormat.FASTTEXT_BIN
    broken = next((word for word in vectors.words if "\n" in word or not word), None)
    if broken is not None:
        raise NlpkitError(f"no format can hold the word {broken!r}")
    if chosen is VectorFormat.FOLDER:
        folder.write_folder(vectors, path, settings=settings, force=force)
        return chosen
    if os.path.exists(path) and not force:
        raise NlpkitError(f"{path} exists already", hint="`force` to replace it")
    from nlpkit.vectors import binaryformat, fasttext, textformat

    with textio.output_writer(path) as out:
        if chosen is VectorFormat.FASTTEXT_BIN:
            fasttext.write_fasttext(vectors, out, settings or {})
        elif chosen is VectorFormat.BINARY:
            binaryformat.write_binary(vectors, out)
        else:
            textformat.write_text(vectors, out, header=chosen is not VectorFormat.GLOVE)
    return chosen


def keeps_ngrams(vectors: Vectors, written: VectorFormat) -> bool:
    """Whether nothing is lost when vectors are written in a format."""
    return vectors.subwords is None or written in (VectorFormat.FOLDER, VectorFormat.FASTTEXT_BIN)


def _has_trained_ngrams(vectors: Vectors) -> bool:
    return getattr(vectors.subwords, "trained", None) is not None
