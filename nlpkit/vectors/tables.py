"""The learned table of another kind of model as vectors: a classifier's, tagger's, name model's or
GPT's embeddings, a row for each of its words, characters or subwords.

Only files are read here, as their own modules write them; models are not built.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlpkit import modeldir, schema
from nlpkit.errors import NlpkitError, with_article
from nlpkit.nn.inference import read_arrays
from nlpkit.registry import CLASSIFIER, GPT, NAMES, TAGGER
from nlpkit.text.vocab import Vocab, on_one_line
from nlpkit.vectors.store import Vectors
from nlpkit.vectors.words import ListedWords

_BYTES = 256


def read_table(folder: Path, kind: str) -> Vectors:
    """The embeddings of a model folder; a model that has none of words is an error."""
    if kind not in _ROWS and kind.endswith(modeldir.CHECKPOINT):
        raise NlpkitError(
            f"{folder} is {with_article(schema.plain(kind))} with no vectors in it to use",
            hint="its training again with `resume`, to the end",
        )
    if kind not in _ROWS:
        raise NlpkitError(
            f"{folder} is {with_article(schema.plain(kind))} model, not word vectors",
            hint=f"vectors, or a model of kind {', '.join(_ROWS)}",
        )
    tensor, row_names = _ROWS[kind]
    arrays = read_arrays(folder)
    if tensor not in arrays or arrays[tensor].ndim != 2 or "features" in arrays:
        raise NlpkitError(
            f"{folder} has no table of embeddings: this {kind} model keeps no words",
            hint="a recurrent, convolutional or transformer model",
        )
    table = arrays[tensor].astype(np.float32)
    names, counts = row_names(folder)
    # rows after the last name are for padding; a line end as a word would break lines
    names = [on_one_line(name) for name in names[: len(table)]]
    listed = ListedWords(names, None if counts is None else counts[: len(names)])
    return Vectors(listed, table[: len(names)])


def _words(folder: Path) -> tuple[list[str], NDArray[np.int64] | None]:
    vocab = Vocab.load(str(folder / "words.tsv"))
    return vocab.tokens, np.array(vocab.counts, np.int64)


def _characters_of_names(folder: Path) -> tuple[list[str], None]:
    """Labels, or one start, come first."""
    found = _read_json(folder / "alphabet.json")
    if not isinstance(found, dict):
        raise _damaged(folder / "alphabet.json")
    characters, labels = found.get("characters"), found.get("labels")
    if not isinstance(characters, str) or not isinstance(labels, list):
        raise _damaged(folder / "alphabet.json")
    return [*(map(str, labels or ["<start>"])), *characters], None


def _tokens_of_gpt(folder: Path) -> tuple[list[str], None]:
    """Characters, the subwords of a tokenizer.json (with Ġ for a space), or bytes."""
    if (folder / "characters.json").is_file():
        found = _read_json(folder / "characters.json")
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise _damaged(folder / "characters.json")
        return found, None
    file = folder / "tokenizer.json"
    if not file.is_file():
        return [chr(byte) if 33 <= byte < 127 else f"\\x{byte:02x}" for byte in range(_BYTES)], None
    found = _read_json(file)
    try:
        ids = {**found["model"]["vocab"]}
        ids.update({added["content"]: added["id"] for added in found.get("added_tokens", [])})
        tokens = sorted(ids, key=ids.__getitem__)
    except (KeyError, TypeError, AttributeError):
        raise _damaged(file) from None
    if [ids[token] for token in tokens] != list(range(len(tokens))):
        raise _damaged(file)
    return tokens, None


def _read_json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise _damaged(file) from None


def _damaged(file: Path) -> NlpkitError:
    return NlpkitError(f"{file} is damaged", hint=schema.AGAIN)


_Names = Callable[[Path], tuple[list[str], "NDArray[np.int64] | None"]]
_ROWS: dict[str, tuple[str, _Names]] = {  # of each kind: its tensor, and what its rows stand for
    CLASSIFIER: ("embedding.weight", _words),
    TAGGER: ("words.word.weight", _words),
    NAMES: ("embedding.weight", _characters_of_names),
    GPT: ("embedding.weight", _tokens_of_gpt),
}
