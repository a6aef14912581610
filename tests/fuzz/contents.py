"""Bad bytes: what a command may find in a file that should hold text, ids, labels or vectors."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from random import Random

MANY = 1_000_000
LONG = 20_000_000
# bytes and how often they come one after the other
LONG_LINES = ((b"x", LONG), (b"ab ", LONG // 3), (b".", 2_000_000))
MANY_LINES = ((b"a\n", MANY), (b"1 2\n", MANY))
NUMBERS = (
    *("0", "-1", "1e308", "1e400", "nan", "inf", "-inf", "1" * 5000, "0x10", "1_000", "٣"),
    *("2147483648", "9223372036854775808", "18446744073709551616", "-9223372036854775809"),
)
_JSON = (
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'{"text": NaN, "label": Infinity}\n',
    b'{"text": "\\ud800", "label": "\\udfff"}\n',
    b'{"text": "a\\u0000b", "label": "a\\nb"}\n',
    b'{"text": 1, "label": [1, null]}\n',
    b'{"label": "x"}\n',
    b'{"text": {}, "label": {}}\n',
    b'{"ids": [1, 2.5, "x", null, 1e400]}\n',
    b'{"tokens": ["a", ["b"]], "ids": [[1], [2]]}\n',
    b"null\n",
    b"[]\n",
    b'{"text": ' + b"9" * 5000 + b"}\n",
    b'{"text": "a", "text": "b", "label": ""}\n',
)
# one of each line that means something to some command, and is not quite right
_LINES = (
    b"a\tb\tc\td",
    b"\t",
    b"\t\t\t\t\t\t\t\t\t",
    b"1-1\ta\t_\t_\t_\t_\t_\t_\t_\t_",
    b"1\ta\tb",
    b"-DOCSTART- -X- O O",
    b"#",
    b"#version: 0.2",
    b": section",
    b"a b c d e",
    b"__label__",
    b"__label__a__label__b",
    b"a/b/c /x x/ /",
    b"king\t",
    b"\tlabel",
    b"word -1",
    b"word\t-5",
    b"word\tnan",
    b"3 4",
    b"999999999 999999999",
    b"0 0",
    b"-1 -1",
    b"a nan nan nan nan nan nan nan nan",
    b"a 1e400 0 0 0 0 0 0 0",
    b"<unk>",
    b"</s> 1 2",
    b"\\x41 \\n \\ud800",
    "é́̂ ‮ ​ ﻿ 👩‍👩‍👧".encode(),
    b"\x1b[2J\x1b]0;x\x07",
    b"\xe2\x80\xa8\x0b\x0c\xc2\x85",
)

Make = Callable[[Random, bytes], bytes]


def _flip(random: Random, good: bytes) -> bytes:
    data = bytearray(good or b"x")
    for _ in range(random.choice((1, 1, 3, 20))):
        data[random.randrange(len(data))] = random.randrange(256)
    return bytes(data)


def _numbers(random: Random, good: bytes) -> bytes:
    """Numbers of the good file replaced by odd ones."""
    words = good.split(b" ")
    for _ in range(random.randint(1, 3)):
        words[random.randrange(len(words))] = random.choice(NUMBERS).encode()
    return b" ".join(words)


def _odd_line(random: Random, good: bytes) -> bytes:
    lines = good.split(b"\n")
    for _ in range(random.randint(1, 3)):
        lines.insert(random.randint(0, min(len(lines), 8)), random.choice(_LINES))
    return b"\n".join(lines)


def _shuffle(random: Random, good: bytes) -> bytes:
    lines = good.split(b"\n")
    random.shuffle(lines)
    return b"\n".join(lines[: random.randint(1, len(lines))])


_MAKERS: tuple[Make, ...] = (
    lambda random, good: b"",
    lambda random, good: b"\n" * random.choice((1, 2, 1000)),
    lambda random, good: b" \n\t\n" * 3,
    lambda random, good: random.randbytes(random.choice((1, 10, 1000, 100_000))),
    lambda random, good: b"\0" * random.choice((1, 1000)),
    lambda random, good: good.replace(b" ", b"\0"),
    lambda random, good: good[: len(good) // 2] + b"\xff\xfe\x80" + good[len(good) // 2 :],
    lambda random, good: b"\xef\xbb\xbf" + good,
    lambda random, good: b"\xef\xbb\xbf",
    lambda random, good: good.decode("utf-8", "replace").encode("utf-16"),
    lambda random, good: good.decode("utf-8", "replace").encode("utf-32"),
    lambda random, good: good.replace(b"\n", b"\r\n"),
    lambda random, good: good.replace(b"\n", b"\r"),
    lambda random, good: good.rstrip(b"\n"),
    lambda random, good: good[: random.randrange(len(good) + 1)],
    lambda random, good: good + good,
    lambda random, good: random.choice(_JSON),
    lambda random, good: good + random.choice(_JSON),
    lambda random, good: random.choice(_LINES),
    lambda random, good: random.choice(NUMBERS).encode(),
    lambda random, good: good.replace(b"\t", b" "),
    lambda random, good: good.replace(b" ", b"\t"),
    lambda random, good: good.split(b"\n")[0],
    _flip,
    _flip,
    _numbers,
    _numbers,
    _odd_line,
    _odd_line,
    _odd_line,
    _shuffle,
)


def bad_content(random: Random, good: bytes) -> bytes:
    """Bytes that are not what ``good`` is, though perhaps close to it."""
    return random.choice(_MAKERS)(random, good)


def damaged_archive(random: Random, good: bytes) -> tuple[str, bytes]:
    """A name's ending and a compressed file that is not whole, or is none."""
    import zstandard

    compressors: dict[str, Callable[[bytes], bytes]] = {
        ".gz": lambda data: gzip.compress(data, mtime=0),
        ".bz2": bz2.compress,
        ".xz": lzma.compress,
        ".zst": zstandard.ZstdCompressor().compress,
    }
    ending = random.choice(list(compressors))
    data = compressors[ending](good)
    damages: tuple[Callable[[], bytes], ...] = (
        lambda: data[: random.randrange(len(data))],
        lambda: data + b"\xff" * random.choice((1, 100)),
        lambda: data + data,
        lambda: _flip(random, data),
        lambda: _flip(random, data[:10]) + data[10:],
        lambda: good,
        lambda: b"",
        lambda: data,
    )
    return ending, random.choice(damages)()
