"""WordPiece, the subwords of BERT: words are cut into the longest pieces that the vocabulary has.

``playing`` becomes ``play ##ing``; ``##`` marks a piece that continues a word. Text is cleaned and
split into words and punctuation first, and lower-cased without accents if the model is uncased.
All of it through the ``tokenizers`` library, equal to transformers' BertTokenizer. A tokenizer is
read from ``tokenizer.json`` or from ``vocab.txt`` (with ``tokenizer_config.json``, if that is
there), and saved as ``tokenizer.json``.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nlpkit import textio
from nlpkit.errors import NlpkitError
from nlpkit.parallel import in_thread
from nlpkit.text import codec
from nlpkit.text.codec import Codec, in_parts, whole_characters
from nlpkit.text.tokenizer_json import parse_tokenizer

PAD, UNK, CLS, SEP, MASK = SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PREFIX = "##"
TOKENIZER, VOCAB, TOKENIZER_CONFIG = "tokenizer.json", "vocab.txt", "tokenizer_config.json"
_LONGEST_WORD = 100  # characters; a longer one is [UNK], as in the first BERT
_WORD_ENDS = re.compile(r"[\s\u4e00-\u9fff]")  # a Han character is a word of its own


class Pieces(NamedTuple):
    """The pieces of a text and where they come from."""

    ids: list[int]
    spans: list[tuple[int, int]]  # of characters of the text
    words: list[int]  # the number of the word that a piece belongs to


class WordPiece(Codec):
    """A WordPiece tokenizer and its special tokens.

    >>> texts = ["low lower lowest slow slower"] * 20
    >>> codec = WordPiece.train(texts, vocab_size=40, lower=True)
    >>> codec.decode(codec.encode("Slower LOW")), codec.tokens(codec.encode("[MASK]"))
    ('slower low', ['[MASK]'])
    """

    units, file = "WordPiece", TOKENIZER

    def __init__(self, backend: Any, source: str = "the tokenizer") -> None:
        backend.no_truncation()
        backend.no_padding()
        self.backend = backend
        ids = {token: backend.token_to_id(token) for token in SPECIALS}
        missing = [token for token, index in ids.items() if index is None and token != MASK]
        if missing:
            raise NlpkitError(
                f"{source} has no {', '.join(missing)}", hint="the vocabulary of a BERT"
            )
        self.pad_id, self.unk_id, self.cls_id, self.sep_id = (ids[token] for token in SPECIALS[:4])
        self._mask_id = ids[MASK]

    # --- making ---------------------------------------------------------------------------------

    @classmethod
    def train(
        cls, texts: Iterable[str], *, vocab_size: int = 8192, lower: bool = True
    ) -> WordPiece:
        """Learn a vocabulary from texts; ``lower`` makes it uncased, without accents.

        The same texts give the same vocabulary. The library alone does not: it numbers pieces of
        one character in the order of a hash table, so they are numbered before.
        """
        from tokenizers import trainers

        smallest = len(SPECIALS) + 1
        if vocab_size < smallest:
            raise NlpkitError(f"`vocab_size` {vocab_size}", hint=f"{smallest} or more")
        texts = [whole_characters(text) for text in texts]
        backend = _new_backend({token: i for i, token in enumerate(SPECIALS)}, lower=lower)
        letters = _alphabet(texts, backend.normalizer, max(1, min(1000, vocab_size // 4)))
        inside = [PREFIX + letter for letter in letters if _may_continue(letter)]
        trainer = trainers.WordPieceTrainer(
            vocab_size=vocab_size,
            min_frequency=2,
            limit_alphabet=len(letters),
            initial_alphabet=letters,
            special_tokens=[*SPECIALS, *inside],
            continuing_subword_prefix=PREFIX,
            show_progress=False,
        )
        in_thread(lambda: backend.train_from_iterator(texts, trainer))
        numbers = backend.get_vocab()
        return cls.from_vocab(sorted(numbers, key=lambda token: numbers[token]), lower=lower)

    @classmethod
    def from_vocab(cls, tokens: Sequence[str], source: str = VOCAB, **options: Any) -> WordPiece:
        """From the tokens of a ``vocab.txt``, in the order of their ids.

        ``options``: ``lower``, ``strip_accents`` (None: if ``lower``), ``chinese`` (characters are
        words).
        """
        numbers = {token: index for index, token in enumerate(tokens)}
        return cls(_new_backend(numbers, **options), source)

    @classmethod
    def load(cls, path: str | Path) -> WordPiece:
        """Read a ``tokenizer.json``, a ``vocab.txt``, or a folder with either."""
        file = Path(path)
        if file.is_dir():
            there = [file / name for name in (TOKENIZER, VOCAB) if (file / name).is_file()]
            if not there:
                raise NlpkitError(
                    f"{path} has no vocabulary", hint=f"a {TOKENIZER} or a {VOCAB} beside the model"
                )
            file = there[0]
        if not file.is_file():
            raise NlpkitError(f"no such tokenizer: {path}", hint=f"a {TOKENIZER} or a {VOCAB}")
        try:
            text = file.read_text(encoding="utf-8")
        except OSError as error:
            raise NlpkitError(f"cannot read {file}: {error.strerror}") from None
        except ValueError:
            raise NlpkitError(f"{file} is not UTF-8", hint="copy it again") from None
        if file.suffix == ".json":
            return cls._from_json(text, file)
        tokens = text.split("\n")
        tokens = [token.removesuffix("\r") for token in tokens[: -1 if tokens[-1] == "" else None]]
        cased = any(token != token.lower() for token in tokens if token[:1] != "[")
        options = {"lower": not cased, **_read_options(file.with_name(TOKENIZER_CONFIG))}
        return cls.from_vocab(tokens, str(file), **options)

    @classmethod
    def _from_json(cls, text: str, file: Path) -> WordPiece:
        from tokenizers import models

        backend = parse_tokenizer(text, str(file))
        if not isinstance(backend.model, models.WordPiece):
            found = type(backend.model).__name__
            raise NlpkitError(
                f"{file} has {found} tokens, not WordPiece", hint="a BERT's tokenizer"
            )
        return cls(backend, str(file))

    def save(self, path: str | Path) -> None:
        """Write a ``tokenizer.json``."""
        textio.write_text(str(path), self.backend.to_str(pretty=True) + "\n")

    def write(self, file: Path) -> None:
        self.save(file)

    @classmethod
    def read(cls, file: Path, tokenizer: str = "word") -> WordPiece:
        return cls.load(file)

    def unknown_words(self, texts: Iterable[str], *, least: int = 2) -> list[str]:
        """What is [UNK] in texts, words and punctuation marks, if seen so often, in order.

        >>> WordPiece.from_vocab([*SPECIALS, "no"]).unknown_words(["No, no!", "no, \u00e9t\u00e9"])
        [',']
        """
        backend, found = self.backend, Counter[str]()
        for text, count in Counter(texts).items():
            if self.unk_id not in self.encode(text):
                continue
            text = whole_characters(text)
            if backend.normalizer is not None:
                text = backend.normalizer.normalize_str(text)
            for word, _ in backend.pre_tokenizer.pre_tokenize_str(text):
                if self.unk_id in self.encode(word):
                    found[word] += count
        return sorted(word for word, count in found.items() if count >= least)

    def extended(self, words: Sequence[str], first: int) -> WordPiece:
        """The same with more whole words, whose ids begin with ``first``."""
        from tokenizers import Tokenizer

        state = json.loads(self.backend.to_str())
        state["model"]["vocab"] |= {word: first + place for place, word in enumerate(words)}
        return WordPiece(Tokenizer.from_str(json.dumps(state)))

    # --- using ----------------------------------------------------------------------------------

    def __len__(self) -> int:
        return int(self.backend.get_vocab_size())

    @property
    def mask_id(self) -> int:
        """The id of [MASK], which sentence encoders may lack."""
        if self._mask_id is None:
            raise NlpkitError(f"the tokenizer has no {MASK}", hint="a model of masked words")
        return int(self._mask_id)

    @property
    def special_ids(self) -> list[int]:
        """Ids of all special tokens, those of the tokenizer's own included."""
        added = self.backend.get_added_tokens_decoder()
        return sorted(index for index, token in added.items() if token.special)

    @property
    def lower(self) -> bool:
        """Whether letter case is lost."""
        return bool(getattr(self.backend.normalizer, "lowercase", False))

    def vocabulary(self) -> list[str]:
        """Every token by id; a number without one is empty."""
        numbers = self.backend.get_vocab()
        tokens = [""] * (1 + max(numbers.values()))
        for token, index in numbers.items():
            tokens[index] = token
        return tokens

    def encode(self, text: str) -> list[int]:
        """Ids of a text, without [CLS] and [SEP]."""
        return self.encode_many([text])[0]

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of many texts, without [CLS] and [SEP]."""
        if any(len(text) > codec.PART for text in texts):
            return [
                [index for part in in_parts(text, _WORD_ENDS) for index in self._ids([part])[0]]
                for text in texts
            ]
        return self._ids(texts)

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        texts = [whole_characters(text) for text in texts]
        return [row.ids for row in self.backend.encode_batch_fast(texts, add_special_tokens=False)]

    def pieces(self, text: str) -> Pieces:
        """Ids with their places in the text and the words they belong to."""
        found = Pieces([], [], [])
        start = first = 0  # characters and words before this part
        for part in in_parts(text, _WORD_ENDS):
            row = self.backend.encode(whole_characters(part), add_special_tokens=False)
            found.ids.extend(row.ids)
            found.spans.extend((start + left, start + right) for left, right in row.offsets)
            found.words.extend(-1 if word is None else first + word for word in row.word_ids)
            start, first = start + len(part), max(found.words, default=-1) + 1
        return found

    def encode_words(self, words: Sequence[str]) -> tuple[list[int], list[int]]:
        """Ids of words that are split already, and how many each word has: at least one.

        >>> WordPiece.from_vocab([*SPECIALS, "play", "##ing"]).encode_words(["playing", "\\u200b"])
        ([5, 6, 1], [2, 1])
        """
        rows = self.encode_many(words)
        rows = [row or [self.unk_id] for row in rows]  # a word of invisible characters
        return [index for row in rows for index in row], [len(row) for row in rows]

    def wrap(self, first: Sequence[int], second: Sequence[int] | None = None) -> list[int]:
        """[CLS] first [SEP], or [CLS] first [SEP] second [SEP]."""
        ids = [self.cls_id, *first, self.sep_id]
        return ids if second is None else [*ids, *second, self.sep_id]

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The pieces as they stand in the vocabulary."""
        found = [self.backend.id_to_token(index) for index in ids]
        return [UNK if token is None else token for token in found]

    def decode(self, ids: Iterable[int]) -> str:
        """Pieces joined to words, words by spaces; special tokens stay."""
        words: list[str] = []
        for token in self.tokens(ids):
            if token.startswith(PREFIX) and words:
                words[-1] += token.removeprefix(PREFIX)
            else:
                words.append(token)
        return " ".join(words)


def _alphabet(texts: Sequence[str], normalizer: Any, most: int) -> list[str]:
    """The most frequent characters of texts as the normaliser leaves them, in their own order."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    normal: Counter[str] = Counter()
    for letter, count in counts.items():
        for kept in normalizer.normalize_str(letter).strip():
            normal[kept] += count
    return sorted(sorted(normal, key=lambda letter: (-normal[letter], letter))[:most])


def _may_continue(letter: str) -> bool:
    """Whether a character can stand within a word: punctuation and ideographs are words alone."""
    category = unicodedata.category(letter)
    ideograph = "CJK" in unicodedata.name(letter, "")
    return category[0] in "LNM" and not ideograph


def _new_backend(
    vocab: dict[str, int],
    *,
    lower: bool = True,
    strip_accents: bool | None = None,
    chinese: bool = True,
) -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

    backend = Tokenizer(
        models.WordPiece(vocab, unk_token=UNK, max_input_chars_per_word=_LONGEST_WORD)
    )
    backend.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=chinese, strip_accents=strip_accents, lowercase=lower
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece(prefix=PREFIX)
    there = [token for token in SPECIALS if token in vocab]
    backend.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in there]
    )
    return backend


def _read_options(file: Path) -> dict[str, Any]:
    """How ``vocab.txt`` is used: what ``tokenizer_config.json`` beside it says, if it is there."""
    if not file.is_file():
        return {}
    try:
        values = textio.parse_json(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise NlpkitError(f"cannot read {file}: {error.strerror}") from None
    except ValueError as error:
        raise NlpkitError(f"{file} is damaged: {error}") from None
    values = values if isinstance(values, dict) else {}
    names = {
        "do_lower_case": "lower",
        "strip_accents": "strip_accents",
        "tokenize_chinese_chars": "chinese",
    }
    found = {ours: values[theirs] for theirs, ours in names.items() if theirs in values}
    for ours, value in found.items():
        if not isinstance(value, bool) and not (value is None and ours == "strip_accents"):
            raise NlpkitError(f"{file}: {ours} cannot be {value!r}", hint="true or false")
    return found
