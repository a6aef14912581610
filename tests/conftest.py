"""What all tests share."""

from __future__ import annotations

import signal
import threading

# A test run started in the background inherits an ignored Ctrl-C, and so would every command that
# the tests start: they could not be interrupted, which is what some tests are about.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)
