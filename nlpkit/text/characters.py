"""Characters as tokens: the ones a text has, by code point."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nlpkit import modeldir, schema
from nlpkit.errors import NlpkitError
from nlpkit.text.codec import Codec


class Characters(Codec):
    """A table of characters.

    >>> table = Characters.from_text(["abba"])
    >>> table.encode("ba"), table.decode([1, 0])
    ([1, 0], 'ba')
    """

    units, file = "characters", "characters.json"

    def __init__(self, characters: Iterable[str], first: int = 0) -> None:
        """Ids count from ``first`` on: those below it are no characters."""
        self.characters, self.first = list(characters), first
        self.ids = {character: index for index, character in enumerate(self.characters, first)}

    @classmethod
    def from_text(cls, texts: Iterable[str]) -> Characters:
        """All that occur."""
        seen: set[str] = set()
        for text in texts:
            seen.update(text)
        return cls(sorted(seen))

    @classmethod
    def from_file(cls, value: Any, where: str) -> Characters:
        """What a JSON file lists: each character once."""
        characters = schema.read(list[str], value, where)
        strange = [one for one in characters if len(one) != 1 or "\ud800" <= one <= "\udfff"]
        if strange:
            schema.refuse(where, strange[0], "a character")
        if not characters or len(set(characters)) < len(characters):
            raise NlpkitError(f"{where}: there are none, or one twice", hint=schema.AGAIN)
        return cls(characters)

    def write(self, file: Path) -> None:
        text = json.dumps(self.characters, ensure_ascii=False)
        modeldir.write_text(file, text + "\n")

    @classmethod
    def read(cls, file: Path, tokenizer: str = "word") -> Characters:
        return cls.from_file(modeldir.read_json(file), str(file))

    def __len__(self) -> int:
        return self.first + len(self.characters)

    @property
    def first_id(self) -> int:
        return self.ids.get("\n", 0)

    def encode(self, text: str) -> list[int]:
        """Ids; a character that is not in the table is named, with the nearest that is."""
        try:
            return [self.ids[character] for character in text]
        except KeyError as error:
            unknown = error.args[0]
            raise NlpkitError(
                f"the model has never seen {unknown!r} (U+{ord(unknown):04X})",
                hint=f"{self.nearest(unknown)!r}",
            ) from None

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids, without those that are no characters."""
        first = self.first
        return "".join([self.characters[index - first] for index in ids if index >= first])

    def split(self, text: str) -> list[tuple[str, int]]:
        return [(character, self.ids.get(character, -1)) for character in text]

    def nearest(self, character: str) -> str:
        """The known character most like an unknown one: other case, without accent, or beside it.

        >>> Characters("abe").nearest("É")
        'e'
        """
        plain = unicodedata.normalize("NFKD", character)[0]
        for guess in (character.swapcase(), plain, plain.swapcase()):
            if guess in self.ids:
                return guess
        kind = unicodedata.category(character)[0]
        return min(
            self.characters,
            key=lambda known: (
                unicodedata.category(known)[0] != kind,
                abs(ord(known) - ord(character)),
            ),
        )
