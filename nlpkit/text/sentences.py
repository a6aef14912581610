r"""Sentence splitting by rules over running text.

Every mark that may end a sentence is a candidate: a run of ``.``, ``!``, ``?`` or ``…`` (also the
full-width ones) with the quotes and brackets that close behind it, then white space. What stands
before and after decides: abbreviations, initials, list numbers and a following lower-case word say
no. Text is never changed: sentences are spans of it, trimmed of white space.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from nlpkit.text.patterns import Span
from nlpkit.text.words import ABBREVIATIONS, DAYS

# Abbreviations that want something behind them: a name, a number, an example.
NEVER_LAST = frozenset(
    """
    mr mrs ms dr drs prof rev hon gen col capt lt maj sgt cpl cmdr adm gov sen rep pres st messrs
    mme mlle supt insp atty vs viz cf ca approx fig figs eq eqs vol vols pp sec no nos art op mt ft
    e.g i.e eg ie est tel ext ed eds
    """.split()
)
ABBREVIATED = frozenset(
    [*ABBREVIATIONS, *NEVER_LAST, *DAYS, "etc", "ph", "attn", "a.m", "p.m", "u.s", "u.k", "ph.d"]
)
# Words that often open a sentence and are seldom a name behind an abbreviation.
OPENERS = frozenset(
    """
    the a an this that these those he she it we they i you his her its our their my your there here
    but and so if when while after before although because however in on at for from to as by with
    what who where why how is are was were do does did have has had no not yes please also then
    """.split()
)

# Repeats are possessive and the look-out bounded, so that endless marks take linear time.
_CANDIDATE = r"""
    (?: (?<![.!?…]) (?P<mark>[.!?…]++) (?P<close>["'”’»)\]}*]*+) (?=\s)
      | (?<![。！？｡]) (?P<mark>[。！？｡]++) (?P<close>["'”’»)\]}*]*+(?=\s)|["'”’»)\]}]*+) )
    (?P<gap>\s*+)
    (?P<next>\S{0,100}+)
"""
_LONGEST_LOOK_BACK = 100  # characters, for the same reason
_FACE = r"(?:[:;=][-o^']?[)(DPp]+|<3|\^_*\^)"
_WEB = r"(?:https?://|www\.)\S*[^\s.,;:!?]"
# Ends without a mark: a face, an address of the web or a drawn line, then something new.
_BARE = rf"""
    (?: (?<=\S\s){_FACE} | (?<!\S){_WEB} )(?P<gap>\s+)(?=["“(]?\p{{Lu}}|http)
  | (?<!\S)[-=*~\#]{{5,}}(?P<gap>\s+)(?=\S)
  | (?<=\S)(?P<gap>\s+)(?=[-=*~\#]{{5,}}(?!\S))
"""


_OPENING = re.compile(r"\w|[\"'“‘«(\[]\w?")
_SPEECH = re.compile(
    r"(?:I|[Hh]e|[Ss]he|[Ww]e|[Tt]hey|the \w+|[A-Z]\w+) "
    r"(?:said|asked|replied|answered|cried|whispered|shouted|added|thought|told|called)\b"
)
_DOTTED = re.compile(r"[^\W\d_]{1,3}(?:\.[^\W\d_]{1,3})+")  # U.S, but neither 3.50 nor example.com
_WORD_START = re.compile(r"[^\W\d_]+")


@functools.cache
def _patterns() -> tuple[Any, Any]:
    import regex

    return regex.compile(_CANDIDATE, regex.X), regex.compile(_BARE, regex.X)


def split_sentences(text: str) -> list[str]:
    """The sentences of a text.

    >>> split_sentences('Dr. Smith paid $3.50. "Why?" he asked. Nobody knew...')
    ['Dr. Smith paid $3.50.', '"Why?" he asked.', 'Nobody knew...']
    """
    return [text[start:end] for start, end in sentence_spans(text)]


def sentence_spans(text: str) -> list[Span]:
    """Where each sentence stands, in characters."""
    candidate, bare = _patterns()
    cuts = [match.start("gap") for match in bare.finditer(text)]
    position = 0
    while match := candidate.search(text, position):
        if _ends_sentence(text, match):
            cuts.append(match.start("gap"))
        position = match.start("gap")
    spans = []
    start = 0
    for cut in [*sorted(cuts), len(text)]:
        piece = text[start:cut]
        if piece.strip():
            left = start + len(piece) - len(piece.lstrip())
            spans.append((left, left + len(piece.strip())))
        start = cut
    return spans


def _ends_sentence(text: str, match: Any) -> bool:
    mark, close, following = match["mark"], match["close"], match["next"]
    if not following or not _OPENING.search(following):
        return False  # the end of the text, or more marks: . . . and :)
    if mark[0] in "。！？｡":
        return True
    opener = following.lstrip("\"'“‘«([{*-–—•")
    starts_lower = opener[:1].islower() and not opener.startswith(("http", "www."))
    if close and _SPEECH.match(text, match.start("next")):
        return False  # "Why?" I asked.
    if mark != ".":
        # "Why?" he asked, well... no
        return not starts_lower or (not close and mark[0] in "!?")
    words = _look_back(text, match.start()).split()
    before = words[-1].lstrip("\"'“‘«([{") if words else ""
    word = before.lower()
    if starts_lower:
        return before.isalpha() and len(before) > 2 and word not in ABBREVIATED
    if close:
        return True
    if word in NEVER_LAST or (len(before) == 1 and before.isalpha() and before != "I"):
        return False  # a title or an initial
    if before.isdigit() and len(before) <= 2 and _begins(text, match.start() - len(before)):
        return False  # the number of a list item
    if word != "etc" and (word in ABBREVIATED or _DOTTED.fullmatch(before)):
        first_word = _WORD_START.match(opener)
        return bool(first_word and first_word[0].lower() in OPENERS)
    return True


def _begins(text: str, position: int) -> bool:
    """Whether a sentence may begin there: the text does, or a sentence has just ended."""
    before = _look_back(text, position)
    kept = before.rstrip()
    return not kept or kept[-1] in ".!?:;)" or "\n" in before[len(kept) :]


def _look_back(text: str, position: int) -> str:
    return text[max(position - _LONGEST_LOOK_BACK, 0) : position]
