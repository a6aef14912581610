"""Tokens of a vocabulary as ids: of sentences that are cut already, or that a tokeniser cuts.

The words of taggers, classifiers and encoder-decoders. The file is that of ``Vocab``; words that
have a row in given vectors stand in ``vector-words.txt`` beside it, one word per line.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from nlpkit import modeldir
from nlpkit.text.codec import Codec
from nlpkit.text.detokenize import detokenize
from nlpkit.text.tokenizers import get_tokenizer
from nlpkit.text.vocab import PAD, UNK, Vocab, dump_words, read_words

WORDS, VECTOR_WORDS = "words.tsv", "vector-words.txt"


class VocabCodec(Codec):
    """A vocabulary and the tokeniser that cuts text into its tokens.

    >>> codec = VocabCodec(Vocab.from_counts({"the": 2, "cat": 1}), vector_words=["cat", "dog"])
    >>> codec.encode("the cat sat"), codec.decode([2, 3])
    ([2, 3, 1], 'the cat')
    >>> codec.vector_rows(["The", "Dog"])
    [0, 2]
    """

    units = "words"

    def __init__(
        self,
        vocab: Vocab,
        tokenizer: str = "word",
        vector_words: Sequence[str] = (),
        *,
        form: Callable[[str], str] | None = None,
        cut: Callable[[str], Sequence[str]] | None = None,
        unknown: str = UNK,
        file: str = WORDS,
    ) -> None:
        """``form`` makes of a token what stands in the vocabulary: lower case, say.

        ``cut`` cuts text into tokens, if that is more than a tokeniser by name can do; tokens that
        are not there are ``unknown``.
        """
        self.vocab, self.tokenizer, self.form, self.file = vocab, tokenizer, form, file
        self.vector_words = list(vector_words)
        self.unknown = vocab.ids[unknown] if unknown else -1
        self._rows = {word: row for row, word in enumerate(self.vector_words, 1)}
        self._given_cut = cut

    @functools.cached_property  # who has tokens already needs no tokeniser
    def _cut(self) -> Callable[[str], Sequence[str]]:
        return self._given_cut or get_tokenizer(self.tokenizer).tokens

    def __len__(self) -> int:
        return len(self.vocab)

    def __contains__(self, token: str) -> bool:
        return (self.form(token) if self.form else token) in self.vocab

    def encode_tokens(self, tokens: Iterable[str]) -> list[int]:
        """Ids of tokens; one that is not known is <unk>, or -1 where there is none."""
        ids, unknown = self.vocab.ids, self.unknown
        forms = tokens if self.form is None else map(self.form, tokens)
        return [ids.get(form, unknown) for form in forms]

    def vector_rows(self, tokens: Sequence[str]) -> list[int]:
        """Rows in the given vectors, from 1 on, by the token, its lower case or its form."""
        rows, form = self._rows, self.form or str.lower
        if not rows:
            return [0] * len(tokens)
        return [rows.get(t) or rows.get(t.lower()) or rows.get(form(t), 0) for t in tokens]

    def encode(self, text: str) -> list[int]:
        return self.encode_tokens(self._cut(text))

    def split(self, text: str) -> list[tuple[str, int]]:
        tokens = self._cut(text)
        return list(zip(tokens, self.encode_tokens(tokens), strict=True))

    def decode(self, ids: Iterable[int]) -> str:
        return self.fill(list(ids), ())

    def show(self, index: int) -> str:
        return self.vocab.tokens[index]

    def fill(self, ids: Sequence[int], unknown: Sequence[str]) -> str:
        left = iter(unknown)
        words = [next(left) if index < 0 else self.vocab.tokens[index] for index in ids]
        return detokenize(words) if self.tokenizer == "word" else " ".join(words)

    # --- files ----------------------------------------------------------------------------------

    def write(self, file: Path) -> None:
        modeldir.write_text(file, self.vocab.dumps())
        if self.vector_words:
            modeldir.write_text(file.with_name(VECTOR_WORDS), dump_words(self.vector_words))

    @classmethod
    def read(
        cls,
        file: Path,
        tokenizer: str = "word",
        *,
        form: Callable[[str], str] | None = None,
        cut: Callable[[str], Sequence[str]] | None = None,
        padded: bool = False,
    ) -> VocabCodec:
        """From its file: ``source.whitespace.tsv`` says how text is cut, ``words.tsv`` does not.

        A model that looks at one token after the other needs <unk>, a ``padded`` one <pad> too.
        """
        *named, kind = file.stem.split(".")
        vocab = Vocab.load(str(file))
        if named:  # a side of pairs, which has marks of its own
            return cls(vocab, kind, unknown="", file=f"{kind}.tsv")
        vocab = vocab.having(UNK, file, first=PAD if padded else "")
        known = read_words(file.with_name(VECTOR_WORDS)) if file.name == WORDS else []
        return cls(vocab, tokenizer, known, form=form, cut=cut, file=file.name)
