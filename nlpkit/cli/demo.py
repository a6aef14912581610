"""``nlpkit demo``: the real commands, one after the other, on the sample corpora."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from nlpkit import textio
from nlpkit.cli.flags import flag
from nlpkit.cli.frame import new_app
from nlpkit.cli.output import open_output
from nlpkit.errors import NlpkitError
from nlpkit.samples import sample_folder
from nlpkit.signals import ask_to_stop, stop_signals

app = new_app()


class Step(NamedTuple):
    """What a step shows, the command line, and one for --quick where that would take long."""

    title: str
    command: str
    quick: str | None = None


REVIEWS = (
    r"printf '%s\n' 'Never coming back!' 'horrible service' 'rude waitress' 'cold food' "
    r"'horrible food!' awesome 'awesome services!' rocks 'poor work' \"couldn't have done better\""
).replace('\\"', '"')

# steps, not seconds, so that a busy machine takes longer and does not learn less
STEPS = [
    Step(
        "Words and punctuation",
        """echo "Don't pay Dr. O'Neill \\$5.50: it's a well-known trick 🙂" | nlpkit tokenize""",
    ),
    Step(
        "And back",
        """echo "Do n't pay Dr. O'Neill \\$ 5.50 ( yet ) !" | nlpkit detokenize""",
    ),
    Step(
        "Sentences, not fooled by abbreviations",
        """echo 'Mr. Fox left at 5 p.m. "Why?" asked the hen. Nobody knew...' | nlpkit sentences""",
    ),
    Step(
        "The most frequent words of a text",
        "nlpkit tokenize --lower --no-punct --stopwords en sample_corpora/tales.txt"
        " | nlpkit vocab build --no-specials --max-size 5",
    ),
    Step(
        "Subwords: train a byte-level BPE, then encode",
        "nlpkit bpe train sample_corpora/tales.txt --vocab-size 1000 -o tales.json"
        " && echo 'Once upon a time' | nlpkit bpe encode -m tales.json --json",
    ),
    Step(
        "Reviews into numbers: hash the words into 50 buckets, pad to four",
        f"""{REVIEWS} | nlpkit tokenize -t regex --pattern "[\\w']+" --lower"""
        " | nlpkit vectorize --mode hash --buckets 50 | nlpkit pad --maxlen 4 --padding post",
    ),
    Step(
        "Word vectors: a million words in a few seconds",
        "nlpkit word2vec train sample_corpora/world.txt -o world.model",
    ),
    Step(
        "Man is to king as woman is to ...? France is to Paris as Italy is to ...?",
        "printf 'man king woman\\nfrance paris italy\\n'"
        " | nlpkit vectors analogy -m world.model -n 2",
    ),
    Step(
        "Where words stand",
        "nlpkit vectors plot king queen prince princess man woman paris rome france italy"
        " -m world.model",
    ),
    Step(
        "A generator of names, and names that start with Mar and are in no list",
        "nlpkit names train sample_corpora/names-en.txt -o names.model --max-iters 300"
        " && nlpkit names sample names.model -n 5 --prefix Mar --novel --unique",
        "nlpkit names train sample_corpora/names-en.txt -o names.model --model ngram"
        " && nlpkit names sample names.model -n 5 --prefix Mar --novel --unique",
    ),
    Step(
        "A tagger that looks to the right: is Teddy a person?",
        "nlpkit tag train sample_corpora/tagged-train.conllu --column misc:NER -o ner.model"
        " --epochs 6 && printf 'He said Teddy Roosevelt was a great president\\n"
        "He said Teddy bears are on sale\\n' | nlpkit tag predict ner.model",
        "nlpkit tag train sample_corpora/tagged-train.conllu --column misc:NER -o ner.model"
        " --epochs 1 --hidden 32 && printf 'He said Teddy Roosevelt was a great president\\n"
        "He said Teddy bears are on sale\\n' | nlpkit tag predict ner.model",
    ),
    Step(
        "Restaurant reviews: train, score on the test part, ask",
        "nlpkit classify train sample_corpora/reviews.tsv -o reviews.model"
        " && nlpkit classify evaluate reviews.model sample_corpora/reviews.tsv"
        " && echo 'horrible service and cold food' | nlpkit classify predict reviews.model",
    ),
    Step(
        "Dates into ISO 8601 by an encoder-decoder, and where its attention was",
        "nlpkit seq2seq train sample_corpora/dates.tsv -t char -o dates.model --max-iters 120"
        " && echo 'the 3rd of May, 1998' | nlpkit seq2seq predict dates.model"
        " && nlpkit seq2seq attention dates.model '3 May 1998'",
        "nlpkit seq2seq train sample_corpora/dates.tsv -t char -o dates.model --max-iters 5"
        " --dim 32 && echo 'the 3rd of May, 1998' | nlpkit seq2seq predict dates.model",
    ),
    Step(
        "A small GPT learns to tell tales",
        "nlpkit gpt train sample_corpora/tales.txt -o tales.model --max-iters 150"
        " && nlpkit gpt sample tales.model 'Once upon a time' -n 200",
        "nlpkit gpt train sample_corpora/tales.txt -o tales.model --size nano --max-iters 20"
        " --eval-interval 20 && nlpkit gpt sample tales.model 'Once upon a time' -n 40",
    ),
]

NEXT = """
Next:
  nlpkit --help               all commands
  nlpkit COMMAND --help       what one does, with examples
  nlpkit tokenize your.txt | nlpkit vocab build | head
  nlpkit demo --keep DIR      the same, with all models left in DIR: 'nlpkit info DIR/world.model'
"""


@app.command()
def demo(
    quick: bool = flag(False, "Train less, to see every step in seconds."),
    keep: str | None = flag(None, "Work in this folder and leave all files.", metavar="DIR"),
) -> None:
    """Run the main commands on the sample corpora and show each step.

    Nothing is downloaded, and without --keep nothing is left behind.

    Examples:
      $ nlpkit demo --quick
      $ nlpkit demo --quick --keep demo-files
    """
    if keep is not None:
        try:
            os.makedirs(keep, exist_ok=True)
        except OSError as error:
            raise NlpkitError(f"cannot make {keep}: {error.strerror}") from None
        _run_steps(Path(keep), quick)
        return
    with textio.temporary_files():
        temporary = tempfile.TemporaryDirectory(prefix="nlpkit-demo-")
    with temporary as folder:
        _run_steps(Path(folder), quick)


def _run_steps(folder: Path, quick: bool) -> None:
    link = folder / "sample_corpora"
    if not link.exists():
        link.symlink_to(sample_folder(), target_is_directory=True)
    # the commands shown are the ones run: this very nlpkit comes first in the path
    path = os.pathsep.join([_command_folder(folder), os.environ.get("PATH", os.defpath)])
    environment = {**os.environ, "PATH": path}
    for number, step in enumerate(STEPS, 1):
        command = step.quick if quick and step.quick else step.command
        with open_output("-") as out:
            out.write(f"\n{number}. {step.title}\n$ {command}\n")
        code = _run(command, folder, environment)
        if code:
            raise NlpkitError(f"step {number} of the demo failed with exit code {code}")
    with open_output("-") as out:
        out.write(NEXT)


def _run(command: str, folder: Path, environment: dict[str, str]) -> int:
    """The exit code of a line of shell; when this command is stopped, so is all that it started."""
    alive, inherited = os.pipe()
    try:
        with ask_to_stop() as stopped:
            process = subprocess.Popen(
                ["bash", "-c", command],
                cwd=folder,
                env=environment,
                start_new_session=True,
                pass_fds=[inherited],
            )
            os.close(inherited)
        try:
            if stopped():
                raise KeyboardInterrupt
            return process.wait()
        except KeyboardInterrupt:
            for number in stop_signals():  # a second one would leave half of the files behind
                signal.signal(number, signal.SIG_IGN)
            _stop_group(process, alive)
            raise
    finally:
        os.close(alive)


def _stop_group(process: subprocess.Popen[bytes], alive: int, seconds: float = 10.0) -> None:
    """Stop all that a step started and wait until none of it can write any more.

    ``alive`` reads as ended when the last process has closed its copy of the other end. To ask for
    the group itself would not do: where nobody collects orphans, it stays for ever as a zombie.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        if select.select([alive], [], [], seconds)[0]:
            break
    process.wait()


def _command_folder(folder: Path) -> str:
    """A folder with an ``nlpkit`` that runs this interpreter and package."""
    commands = folder / ".bin"
    commands.mkdir(exist_ok=True)
    script = commands / "nlpkit"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nlpkit "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return str(commands.absolute())
