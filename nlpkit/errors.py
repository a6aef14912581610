"""The one exception that means "the user can fix this".

Engines raise it, the command line prints it as a single line and exits with 1.
Anything else that escapes is a bug and shows its traceback.
"""

from __future__ import annotations


def plural(count: int, noun: str) -> str:
    """A number with its noun.

    >>> plural(1, "pair"), plural(1200, "pair"), plural(2, "entry")
    ('1 pair', '1,200 pairs', '2 entries')
    """
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun[:-1]}ies" if noun.endswith("y") else f"{count:,} {noun}s"


def with_article(noun: str) -> str:
    """A noun behind its indefinite article.

    >>> with_article("elmo model"), with_article("names model"), with_article("lm model")
    ('an elmo model', 'a names model', 'an lm model')
    """
    return f"an {noun}" if noun[:1] in "aeio" or noun.startswith("lm") else f"a {noun}"


class NlpkitError(Exception):
    """What went wrong, where, and the next thing to try.

    Parameters stand in backquotes, `min_count`; the command line shows them as flags.

    >>> str(NlpkitError("no such file: corpus.txt", hint="check the path"))
    'no such file: corpus.txt (try: check the path)'
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} (try: {self.hint})" if self.hint else self.message


class UsageError(NlpkitError):
    """Options that do not go together: a command exits with 2, as for any wrong usage."""


class NlpkitWarning(UserWarning):
    """What a user may want to know while the work goes on; a command shows it as one line."""


class NlpkitNote(NlpkitWarning):
    """The same where nothing is wrong: the line does not begin with "warning"."""
