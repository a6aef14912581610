"""The codec of one side of a pair: marks, the tokens of any codec, and features.

A source may have several columns, between tabs: the first is text, the others are features (as in
``gehen<TAB>V;PST;3;SG``), each of which is one symbol. Ids: four marks, tokens, features.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from nlpkit import modeldir, schema
from nlpkit.errors import NlpkitError
from nlpkit.models.seq2seq_settings import SPECIALS, UNKNOWN
from nlpkit.text.characters import Characters
from nlpkit.text.codec import Codec, find_codec, save_codec
from nlpkit.text.subwords import Subwords
from nlpkit.text.tokenizers import get_tokenizer
from nlpkit.text.vocab import Vocab
from nlpkit.text.vocab_codec import VocabCodec

FIRST = len(SPECIALS)  # the id of a side's first token
NAMES = ("bpe", "char", "word", "whitespace")
_FEATURES = re.compile(r"[;|,\s]+")
_UNKNOWN_TEXT = "⁇"


class SideCodec(Codec):
    """One side: tokens and features as the ids of a model.

    >>> codec = make_codec(["low\\tA;B"], "char")
    >>> codec.encode("wolf\\tB")
    [6, 5, 4, 3, 8]
    >>> codec.decode([6, 5, 4])
    'wol'
    """

    def __init__(
        self, tokens: Codec, features: Iterable[str] = (), *, n_tokens: int | None = None
    ) -> None:
        """``n_tokens`` may be more than there are, in a table that was padded."""
        self.tokens, self.features = tokens, list(features)
        self.units, self.n_tokens = tokens.units, n_tokens or len(tokens)
        first = FIRST + self.n_tokens
        self._feature_ids = {name: first + place for place, name in enumerate(self.features)}

    def __len__(self) -> int:
        return FIRST + self.n_tokens + len(self.features)

    def split(self, text: str) -> list[tuple[str, int]]:
        """What the model reads of a text: tokens and features with their ids."""
        text, _, rest = text.partition("\t")
        found = [
            (token, UNKNOWN if index < 0 else FIRST + index)
            for token, index in self.tokens.split(text)
        ]
        for column in rest.split("\t") if rest else ():
            names = split_features(column)
            found += [(name, self._feature_ids.get(name, UNKNOWN)) for name in names]
        return found

    def encode(self, text: str) -> list[int]:
        """Ids; what is not known is the mark of the unknown."""
        return [index for _, index in self.split(text)]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids, without marks and features."""
        return self.fill(list(ids), ())

    def fill(self, ids: Sequence[int], unknown: Sequence[str]) -> str:
        """The text of ids; ``unknown`` are texts for the unknown, in order."""
        known = FIRST + self.n_tokens
        kept = [
            -1 if index == UNKNOWN else index - FIRST
            for index in ids
            if index == UNKNOWN or FIRST <= index < known
        ]
        missing = max(0, kept.count(-1) - len(unknown))
        return self.tokens.fill(kept, [*unknown, *[_UNKNOWN_TEXT] * missing])

    def show(self, index: int) -> str:
        if index < FIRST:
            return SPECIALS[index]
        place = index - FIRST
        if place >= self.n_tokens:
            return self.features[place - self.n_tokens]
        return self.tokens.show(place)

    def count_unknown(self, ids: Iterable[int]) -> int:
        """How many stand for nothing that was learned: the mark of the unknown, and single bytes of
        characters that have no subword.

        >>> codec = make_codec(["low lower"] * 2, "bpe")
        >>> codec.count_unknown(codec.encode("low я"))
        2
        """
        by_bytes = isinstance(self.tokens, Subwords)
        return sum(
            count
            for index, count in Counter(ids).items()
            if index == UNKNOWN or (by_bytes and "\N{REPLACEMENT CHARACTER}" in self.show(index))
        )

    def write(self, file: Path) -> None:
        """The files of its parts, whose names begin with that of ``file``."""
        save_codec(self.tokens, file.parent, file.name)
        if self.features:
            text = json.dumps(self.features, ensure_ascii=False)
            modeldir.write_text(_features_file(file), text + "\n")

    @classmethod
    def read(cls, file: Path, tokenizer: str = "word", *, n_ids: int | None = None) -> SideCodec:
        """What ``write`` wrote; a table of ``n_ids`` rows may have more than its subwords."""
        listed = _features_file(file)
        features = schema.read(
            list[str], modeldir.read_json(listed) if listed.is_file() else [], str(listed)
        )
        tokens = find_codec(file.parent, file.name)
        if tokens is None:
            raise NlpkitError(
                f"{file.parent} has no tokeniser of its {file.name} side", hint=schema.AGAIN
            )
        padded = n_ids is not None and isinstance(tokens, Subwords)
        n_tokens = n_ids - FIRST - len(features) if padded and n_ids else None
        return cls(tokens, features, n_tokens=n_tokens)


def _features_file(file: Path) -> Path:
    return file.with_name(f"{file.name}.features.json")


def split_features(column: str) -> list[str]:
    """The features of a column: what stands between ``;``, ``|``, commas or spaces.

    >>> split_features("V;PST;3;SG")
    ['V', 'PST', '3', 'SG']
    """
    return [name for name in _FEATURES.split(column) if name]


def make_codec(texts: Sequence[str], tokenizer: str, vocab_size: int = 4000) -> SideCodec:
    """Learn a codec from texts; ``tokenizer`` is one of ``NAMES`` or the path of a subword model.

    ``vocab_size`` is how many subwords or words there are at most.
    """
    firsts = [text.partition("\t")[0] for text in texts]
    columns = {c for text in texts for c in text.split("\t")[1:]}
    features = sorted({name for column in columns for name in split_features(column)})
    tokens: Codec
    if tokenizer == "bpe":
        tokens = Subwords.train(firsts, vocab_size=max(256, vocab_size), specials=())
    elif tokenizer == "char":
        tokens = Characters.from_text(firsts)
    elif tokenizer in ("word", "whitespace"):
        tokenize = get_tokenizer(tokenizer).tokens
        counts = Counter(word for text in firsts for word in tokenize(text))
        vocab = Vocab.from_counts(counts, specials=(), max_size=vocab_size)
        tokens = VocabCodec(vocab, tokenizer, unknown="", file=f"{tokenizer}.tsv")
    else:
        tokens = Subwords.load(tokenizer)
    return SideCodec(tokens, features)
