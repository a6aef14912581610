"""Make docs/demo.svg: a terminal picture of a few commands, run for real and drawn by Rich."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from nlpkit.samples import sample_folder

COMMANDS = [
    "echo \"Don't panic: it's Mr. Smith's e-mail.\" | nlpkit tokenize",
    "nlpkit word2vec train sample_corpora/world.txt -o world.model --quiet",
    "nlpkit vectors analogy man king woman -m world.model -n 3",
    "nlpkit vectors analogy france paris italy -m world.model -n 3",
    "nlpkit names train sample_corpora/names-en.txt -o names.model --model ngram --quiet",
    "nlpkit names sample names.model -n 4 --prefix Mar --novel --unique",
]


def main() -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path}
    console = Console(record=True, width=84, force_terminal=True)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "sample_corpora").symlink_to(sample_folder())
        for command in COMMANDS:
            console.print(Text("$ ", "bold green") + Text(command, "bold"))
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            if done.stdout:
                console.print(Text(done.stdout.rstrip("\n")))
    svg = console.export_svg(title="nlpkit", unique_id="nlpkit")
    (Path(__file__).parent / "demo.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
