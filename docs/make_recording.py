"""Make docs/demo.svg: a terminal picture of commands, run for real and drawn by Rich.

Each runs on a terminal of its own (a pty), so that it shows what a person sees: tables, plots of
characters, colours. Text that a model writes appears letter by letter, by an animation in the SVG.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from rich.console import Console
from rich.text import Text

from nlpkit.samples import sample_folder

WIDTH, HEIGHT = 84, 24
# a table, a plot, coloured tags, a sparkline (said by training), a heat map, text being written
COMMANDS = [
    "nlpkit word2vec train sample_corpora/world.txt -o world.model --epochs 3",
    "nlpkit vectors analogy man king woman -m world.model -n 3 -q",
    "nlpkit vectors plot king queen man woman france paris italy rome -m world.model -q",
    "nlpkit tag train sample_corpora/tagged-train.conllu --column misc:NER -o ner.model -q",
    'echo "Ann Smith flew from Oslo to Paris on Monday." | nlpkit tag predict ner.model -f color',
    "nlpkit gpt train sample_corpora/tales.txt -o tales.model --max-time 60s",
    'nlpkit gpt attention tales.model "the old king" --layer 1 --head 1',
    'nlpkit gpt sample tales.model "Once upon a time" -n 200 -q',
]
WRITTEN = "gpt sample"  # the command whose answer is written before one's eyes
SECONDS = 6.0  # that it takes


def run(command: str, folder: str, environment: dict[str, str]) -> str:
    """What a command shows on a terminal."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    process = subprocess.Popen(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdin=follower,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    found = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # what Linux says when nobody writes any more
            break
        if not part:
            break
        found += part
    os.close(leader)
    if process.wait():
        raise SystemExit(f"{command}: {found.decode(errors='replace')}")
    return settled(found.decode("utf-8", "replace"))


def settled(shown: str) -> str:
    """The lines that are left when progress bars have come and gone.

    >>> settled("bar 10%\\rbar 20%\\r\\x1b[2Kdone\\r\\n")
    'done'
    """
    lines = shown.replace("\r\n", "\n").split("\n")
    last = (re.split(r"\r|\x1b\[2K|\x1b\[1A", line)[-1] for line in lines)
    kept = [re.sub(r"\x1b\[(\?25[lh]|\d*[A-HJK])", "", line).rstrip() for line in last]
    passing = ("━", "compiling kernels")  # a progress bar, and what is said once on a machine
    return "\n".join(line for line in kept if line and not any(one in line for one in passing))


def write_slowly(svg: str, lines: int) -> str:
    """The last lines of a picture appear one after the other, from the left to the right."""
    rows = re.findall(r'<clipPath id="nlpkit-line-\d+">.*?</clipPath>', svg, re.DOTALL)[-lines:]
    for number, row in enumerate(rows):
        each = SECONDS / lines
        moving = (
            f'<animate attributeName="width" from="0" to="100%" begin="{number * each:.1f}s" '
            f'dur="{each:.1f}s" fill="freeze"/></rect>'
        )
        svg = svg.replace(row, re.sub(r"/>\s*</clipPath>", f">{moving}</clipPath>", row))
    return svg


def main() -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "TERM": "xterm-256color", "COLUMNS": str(WIDTH)}
    environment.pop("NO_COLOR", None)
    console = Console(record=True, width=WIDTH, force_terminal=True, color_system="truecolor")
    written = 0
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "sample_corpora").symlink_to(sample_folder())
        for command in COMMANDS:
            console.print(Text("$ ", "bold green") + Text(command, "bold"))
            shown = run(command, folder, environment)
            if shown:
                console.print(Text.from_ansi(shown))
            if WRITTEN in command:
                written = sum(-(-len(line) // WIDTH) or 1 for line in shown.split("\n"))
    svg = console.export_svg(title="nlpkit", unique_id="nlpkit")
    (Path(__file__).parent / "demo.svg").write_text(write_slowly(svg, written), encoding="utf-8")


if __name__ == "__main__":
    main()
