"""What a terminal is shown: words from files may hold sequences that it would obey."""

from __future__ import annotations

import re
from typing import IO, Any

# C0 and C1 controls, and what turns the direction of text around; tabs and line ends stay
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")


def visible(text: str) -> str:
    r"""Control characters as escapes; those that JSON leaves as they are in a form it can read.

    >>> print(visible("a\x1b[31mred\x9b0m"))
    a\x1b[31mred\u009b0m
    """
    return _CONTROLS.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x20 else f"\\u{code:04x}"


def safe_for(stream: IO[Any], text: str) -> str:
    """Text as it may reach a stream: untouched unless that is a terminal."""
    return visible(text) if stream.isatty() else text
