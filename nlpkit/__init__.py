"""nlpkit: the classics of neural NLP, from raw text to a sampled sentence, in the shell.

From Python: ``nlpkit.load`` opens a model, ``nlpkit.train_*`` make one. They are imported when they
are asked for, so that ``import nlpkit`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nlpkit.api import train_classifier as train_classifier
    from nlpkit.api import train_names as train_names
    from nlpkit.api import train_qa as train_qa
    from nlpkit.api import train_seq2seq as train_seq2seq
    from nlpkit.api import train_tagger as train_tagger
    from nlpkit.api import train_word2vec as train_word2vec
    from nlpkit.api import vectors_from_counts as vectors_from_counts
    from nlpkit.api_text import train_bert as train_bert
    from nlpkit.api_text import train_elmo as train_elmo
    from nlpkit.api_text import train_gpt as train_gpt
    from nlpkit.api_text import train_lm as train_lm
    from nlpkit.errors import NlpkitError as NlpkitError
    from nlpkit.registry import load as load

__version__ = "0.1.0"

_HOMES = {
    "load": "nlpkit.registry",
    "train_word2vec": "nlpkit.api",
    "vectors_from_counts": "nlpkit.api",
    "train_tagger": "nlpkit.api",
    "train_classifier": "nlpkit.api",
    "train_names": "nlpkit.api",
    "train_seq2seq": "nlpkit.api",
    "train_qa": "nlpkit.api",
    "train_gpt": "nlpkit.api_text",
    "train_lm": "nlpkit.api_text",
    "train_bert": "nlpkit.api_text",
    "train_elmo": "nlpkit.api_text",
    "NlpkitError": "nlpkit.errors",
}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'nlpkit' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
