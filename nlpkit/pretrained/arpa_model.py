"""An ARPA file as a model folder, and the names that tokens have in one."""

from __future__ import annotations

from collections.abc import Iterable

from nlpkit import modeldir, registry
from nlpkit.models.ngram_text import NGramText
from nlpkit.pretrained.arpa import read_arpa
from nlpkit.tasks.lm.model import TextModel
from nlpkit.text.codec import Codec
from nlpkit.text.word_codec import LINE_END, UNK, Words


def load_arpa(lines: Iterable[str], source: str) -> TextModel:
    """The model of an ARPA file; its words are those between white space."""
    trie, words = read_arpa(lines, source)
    codec = Words([LINE_END, UNK, *words[2:]], "whitespace")
    found = TextModel(NGramText(trie), codec, unit="lines")
    found.config = modeldir.ModelConfig(
        kind=registry.LM,
        settings={
            "model": "ngram",
            "order": trie.order,
            "unit": "lines",
            "words": "whitespace",
            "levels": trie.levels,
            "architecture": found.model.settings.to_dict(),
        },
    )
    return found


def token_names(codec: Codec) -> list[str]:
    """What each token is called: itself; a byte by its number where it is no character."""
    if isinstance(codec, Words):
        return codec.words
    names = [codec.decode([index]) for index in range(len(codec))]
    return [name if name and name != "\ufffd" else f"<0x{i:02X}>" for i, name in enumerate(names)]
