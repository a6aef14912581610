"""Make docs/demo.svg: scenes of a terminal, each a command run for real, one after the other.

    python docs/make_recording.py                # trains four small models: about three minutes
    python docs/make_recording.py --models DIR   # keeps them there, to draw again at once

Commands write to a pseudo-terminal, so that tables, colours and maps are those that a person sees.
The picture is one file with no script: lines become visible by SMIL animations, word by word where
a model writes. A viewer that knows no animations shows the first scene.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from rich.console import Console
from rich.style import Style
from rich.terminal_theme import MONOKAI
from rich.text import Text

from nlpkit.samples import sample_folder

WIDTH, HEIGHT = 84, 24  # of the terminal, in characters
CELL, LINE, MARGIN, TITLE = 8.4, 18, 14, 30  # pixels
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


class Scene(NamedTuple):
    """Commands that are shown together; ``writes`` is the time in which words appear one by one."""

    commands: list[str]
    seconds: float
    writes: float = 0.0


PREPARE = [  # what is not shown
    "nlpkit word2vec train sample_corpora/world.txt -o world.model",
    "nlpkit tag train sample_corpora/tagged-train.conllu --column misc:NER -o ner.model --epochs 6",
    "nlpkit seq2seq train sample_corpora/dates.tsv -t char -o dates.model --max-time 20s",
]
GPT = "nlpkit gpt train sample_corpora/tales.txt -o tales.model --max-time 60s"
TEDDY = "He said Teddy Roosevelt met Anna in New York"
SCENES = [
    Scene(
        [
            "nlpkit vectors analogy man king woman -m world.model -n 3",
            "nlpkit vectors analogy france paris italy -m world.model -n 3",
            "nlpkit vectors nearest dog -m world.model -n 3",
        ],
        6,
    ),
    Scene(
        [
            "nlpkit vectors plot paris rome madrid france italy spain king queen dog pig goose"
            " -m world.model"
        ],
        6,
    ),
    Scene(
        [
            f"echo '{TEDDY}' | nlpkit tag predict ner.model --format color",
            f"echo '{TEDDY}' | nlpkit tag predict ner.model --format slash",
            "nlpkit tag inspect ner.model 'He said Teddy bears are on sale' --cell 5",
        ],
        6,
    ),
    Scene(["nlpkit seq2seq attention dates.model '3 May 1998'"], 6),
    Scene([GPT, "nlpkit gpt sample tales.model 'Once upon a time' -n 400 --seed 3"], 14, 8),
]


def run(command: str, folder: Path) -> str:
    """What a command shows on a terminal; notes, which go to stderr, come first."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    with tempfile.TemporaryFile() as notes:
        done = subprocess.Popen(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=terminal,
            stderr=notes,
        )
        os.close(terminal)
        shown = b"".join(_read_all(controller))
        os.close(controller)
        notes.seek(0)
        said = notes.read().decode()
        if done.wait():
            raise SystemExit(f"{command}\n{said}")
    return said + shown.decode().replace("\r\n", "\n")


def _read_all(descriptor: int) -> Iterator[bytes]:
    while True:
        try:
            data = os.read(descriptor, 65536)
        except OSError:  # Linux says so when the last writer has left
            return
        if not data:
            return
        yield data


class Piece(NamedTuple):
    """Text in one style at a place of the screen, from a share of the scene's time on."""

    row: int
    column: int
    text: str
    style: Style
    begin: float


def layout(scene: Scene, outputs: list[str]) -> list[Piece]:
    """The pieces of a scene: prompts, then what the commands have shown, cut to the screen."""
    console = Console(width=WIDTH, color_system="truecolor", force_terminal=True)
    lines: list[tuple[Text, bool]] = []  # and whether a model has written it
    for command, output in zip(scene.commands, outputs, strict=True):
        prompt = Text.assemble(("$ ", "bold green"), (command, "bold"))
        written = bool(scene.writes) and command is scene.commands[-1]
        shown = [Text.from_ansi(line) for line in output.rstrip("\n").split("\n")]
        lines += [(line, False) for line in prompt.wrap(console, WIDTH)]
        lines += [(part, written) for line in shown for part in line.wrap(console, WIDTH)]
        lines.append((Text(""), False))
    lines = lines[:HEIGHT]
    words = sum(len(line.plain.split(" ")) for line, written in lines if written)
    pieces, word = [], 0
    for row, (line, written) in enumerate(lines):
        column = 0
        for segment in line.render(console):
            style = segment.style or Style.null()
            parts = segment.text.split(" ") if written else [segment.text]
            for number, part in enumerate(parts):
                begin = 0.0
                if written:
                    begin = (1 + scene.writes * word / max(1, words)) / scene.seconds
                    word += 1
                if part.strip("\n "):
                    pieces.append(Piece(row, column, part.rstrip("\n"), style, begin))
                column += len(part) + (written and number < len(parts) - 1)
    return pieces


def draw(scenes: list[tuple[Scene, list[Piece]]]) -> str:
    """All scenes as one picture that begins again when it has ended."""
    total = sum(scene.seconds for scene, _ in scenes)
    width = WIDTH * CELL + 2 * MARGIN
    height = HEIGHT * LINE + TITLE + MARGIN
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'font-family="{FONT}" font-size="14">',
        f'<rect width="100%" height="100%" rx="8" fill="{MONOKAI.background_color.hex}"/>',
        *(
            f'<circle cx="{18 + 18 * place}" cy="15" r="5" fill="{colour}"/>'
            for place, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
        ),
    ]
    start = 0.0
    for number, (scene, pieces) in enumerate(scenes):
        end = start + scene.seconds
        out.append(f'<g visibility="{"hidden" if number else "visible"}">')
        out.append(_animate(start / total, end / total, total))
        for piece in pieces:
            begin = (start + piece.begin * scene.seconds) / total
            out += _draw_piece(piece, _animate(begin, end / total, total) if piece.begin else "")
        out.append("</g>")
        start = end
    return "\n".join([*out, "</svg>"]) + "\n"


def _animate(begin: float, end: float, seconds: float) -> str:
    """Visible from one share of the whole time to another."""
    times = [(0.0, "hidden"), (begin, "visible"), (end, "hidden")]
    kept = [pair for pair in times if pair[0] < 1 and not (pair == times[0] and begin == 0)]
    values = ";".join(value for _, value in kept)
    places = ";".join(f"{place:.4f}" for place, _ in kept)
    return (
        f'<animate attributeName="visibility" calcMode="discrete" dur="{seconds:g}s" '
        f'repeatCount="indefinite" values="{values}" keyTimes="{places}"/>'
    )


def _draw_piece(piece: Piece, animation: str) -> list[str]:
    style = piece.style
    ink, paper = MONOKAI.foreground_color.hex, ""
    if style.color is not None:
        ink = style.color.get_truecolor(MONOKAI).hex
    if style.bgcolor is not None:
        paper = style.bgcolor.get_truecolor(MONOKAI, foreground=False).hex
    if style.reverse:
        ink, paper = paper or MONOKAI.background_color.hex, ink
    left = MARGIN + piece.column * CELL
    top = TITLE + piece.row * LINE
    width = len(piece.text) * CELL
    found = []
    if paper:
        found.append(
            f'<rect x="{left:.1f}" y="{top + 1}" width="{width:.1f}" height="{LINE}" '
            f'fill="{paper}"/>'
        )
    bold = ' font-weight="bold"' if style.bold else ""
    dim = ' opacity="0.6"' if style.dim else ""
    found.append(
        f'<text x="{left:.1f}" y="{top + 14}" textLength="{width:.1f}" fill="{ink}"{bold}{dim} '
        f'xml:space="preserve">{escape(piece.text)}{animation}</text>'
    )
    return found


def main() -> None:
    """Train, run, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", help="a folder to keep the trained models in")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(chosen.models or temporary).resolve()
        folder.mkdir(exist_ok=True)
        if not (folder / "sample_corpora").exists():
            (folder / "sample_corpora").symlink_to(sample_folder())
        kept: dict[str, str] = {}
        for command in [*PREPARE, GPT]:
            model = folder / command.split(" -o ")[1].split()[0]
            log = model.with_suffix(".log")
            if not model.exists():
                log.write_text(run(command, folder), encoding="utf-8")
            kept[command] = log.read_text(encoding="utf-8")
        scenes = []
        for scene in SCENES:
            outputs = [kept.get(one) or run(one, folder) for one in scene.commands]
            scenes.append((scene, layout(scene, outputs)))
    (Path(__file__).parent / "demo.svg").write_text(draw(scenes), encoding="utf-8")


if __name__ == "__main__":
    main()
