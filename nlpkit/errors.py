"""The one exception that means "the user can fix this".

Engines raise it, the command line prints it as a single line and exits with 1.
Anything else that escapes is a bug and shows its traceback.
"""

from __future__ import annotations


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
