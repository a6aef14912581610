"""A question and a text as windows that an encoder can read: none of the text's tokens is lost.

A window is ``[CLS] question [SEP] a stretch of the text [SEP]``. Windows overlap, so that an answer
at the edge of one stands inside another.
"""

from __future__ import annotations

from typing import NamedTuple

from nlpkit.errors import NlpkitError
from nlpkit.text.wordpiece import WordPiece

LONGEST_QUESTION = 64  # tokens; the rest of a longer one is cut
FEWEST = 8  # tokens of the text in a window


class Window(NamedTuple):
    """What is read at once, and which of its tokens are of the text."""

    ids: list[int]
    segments: list[int]
    first: int  # where the text begins in ids
    spans: list[tuple[int, int]]  # characters of the text, for each of its tokens here


def cover(length: int, room: int, overlap: int) -> list[tuple[int, int]]:
    """Stretches of at most ``room`` that cover everything, each ``overlap`` into the one before.

    >>> cover(10, 6, 2), cover(3, 6, 2), cover(0, 6, 2)
    ([(0, 6), (4, 10)], [(0, 3)], [(0, 0)])
    """
    step = max(1, room - overlap)
    stretches = [(0, min(room, length))]
    while stretches[-1][1] < length:
        start = stretches[-1][0] + step
        stretches.append((start, min(start + room, length)))
    return stretches


def make_windows(
    codec: WordPiece, question: str, context: str, *, room: int, overlap: int
) -> list[Window]:
    """The windows of a question on a text, none longer than ``room`` tokens."""
    most_question = min(LONGEST_QUESTION, room - 3 - FEWEST)
    if most_question < 1:
        raise NlpkitError(
            f"windows of {room} tokens have no room for a question and a text",
            hint=f"`max_length` {FEWEST + 4} or more, and a model that reads as many",
        )
    asked = codec.encode(question)[:most_question]
    pieces = codec.pieces(context)
    left = room - len(asked) - 3
    windows = []
    for start, end in cover(len(pieces.ids), left, min(overlap, left // 2)):
        ids = codec.wrap(asked, pieces.ids[start:end])
        first = len(asked) + 2
        segments = [0] * first + [1] * (len(ids) - first)
        windows.append(Window(ids, segments, first, pieces.spans[start:end]))
    return windows


def find_tokens(window: Window, start: int, end: int) -> tuple[int, int] | None:
    """The first and the last token, counted in ids, of characters of the text; None if they are
    not all in this window.

    >>> find_tokens(Window([], [], 3, [(0, 2), (3, 5), (5, 6)]), 3, 6)
    (4, 5)
    """
    touched = [place for place, (a, b) in enumerate(window.spans) if a < end and b > start]
    if not touched or window.spans[touched[0]][0] > start or window.spans[touched[-1]][1] < end:
        return None
    return window.first + touched[0], window.first + touched[-1]
