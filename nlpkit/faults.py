"""The seam for fault injection: each change of the disk is announced here before it is made.

``NLPKIT_FAULT=7`` in the environment ends the process without any clean-up just before its seventh
change (exit code 137, as after SIGKILL); ``NLPKIT_FAULT=7:ENOSPC`` makes that change fail with the
named error instead. A test counts up until the command ends as usual: then it has seen a fault
between every two operations. All that writes models and output files calls ``step``: ``textio``,
``folders`` and ``modeldir``. Without the variable a step does nothing.
"""

from __future__ import annotations

import errno
import os

VARIABLE = "NLPKIT_FAULT"
KILLED = 137

_number, _, _error = os.environ.get(VARIABLE, "").partition(":")
_steps_left = int(_number) if _number.isdigit() else 0


def step(operation: str) -> None:
    """Say that a file operation (mkdir, write, fsync, rename, remove) comes next."""
    global _steps_left
    if not _steps_left:
        return
    _steps_left -= 1
    if _steps_left:
        return
    if not _error:
        os._exit(KILLED)
    number = getattr(errno, _error)
    raise OSError(number, f"{os.strerror(number)} (injected before: {operation})")
