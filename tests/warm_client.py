"""``nlpkit`` for shells of tests: asks the warm process to run the command on the same streams.

``python -IS tests/warm_client.py SOCKET ARGUMENT...``; it starts in a fiftieth of a second.
"""

import json
import os
import socket
import sys


def main() -> int:
    where, *arguments = sys.argv[1:]
    request = {"folder": os.getcwd(), "arguments": arguments, "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(where)
        socket.send_fds(server, [json.dumps(request).encode() + b"\n"], [0, 1, 2])
        code = int(server.makefile().readline() or 1)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
