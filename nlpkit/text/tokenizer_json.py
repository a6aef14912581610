"""Reading ``tokenizer.json``, the file of the ``tokenizers`` library, also a damaged one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nlpkit import textio
from nlpkit.errors import NlpkitError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MOST_IDS = 100_000_000
_LARGE_ID = re.compile(r'":\s*\d{9,}')  # a key of the file and its number, never inside a token


def parse_tokenizer(text: str, name: str) -> Tokenizer:
    """The tokenizer that a file's text describes; ``name`` is the file, for errors.

    The library checks most of what it reads. What would end the program in it is checked here:
    memory for the largest id, and merges that are shorter than the mark of continuing pieces.

    >>> parse_tokenizer('{"model": 3', "a.json")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    nlpkit.errors.NlpkitError: a.json is not a tokenizer.json: ...
    """
    from tokenizers import Tokenizer

    try:
        if _LARGE_ID.search(text):
            raise ValueError(f"an id of {MOST_IDS} or more")
        if "continuing_subword_prefix" in text:
            _check_merges(textio.parse_json(text))
        return Tokenizer.from_str(text)
    except NlpkitError:
        raise
    # the library raises bare Exception for a file it does not understand
    except Exception as error:  # noqa: BLE001
        reason = str(error).partition("\n")[0]
        raise NlpkitError(f"{name} is not a tokenizer.json: {reason}") from None


def _check_merges(parsed: Any) -> None:
    """The second half of each merge of BPE begins with the mark, which is cut off from it."""
    model = parsed.get("model") if isinstance(parsed, dict) else None
    mark = model.get("continuing_subword_prefix") if isinstance(model, dict) else None
    merges = model.get("merges") if isinstance(model, dict) else None
    if not mark or not isinstance(mark, str) or not isinstance(merges, list):
        return
    for merge in merges:
        *_, second = merge.split(" ") if isinstance(merge, str) else merge
        if not second.startswith(mark):
            raise ValueError(f"a merge does not have the prefix {mark[:20]!r} of pieces")
