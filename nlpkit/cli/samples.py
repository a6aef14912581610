"""``nlpkit samples``."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection

from nlpkit import textio
from nlpkit.cli import options
from nlpkit.cli.flags import argument, flag
from nlpkit.cli.frame import new_app
from nlpkit.cli.output import Notes, open_output, rows_format, write_rows
from nlpkit.errors import NlpkitError
from nlpkit.samples import list_samples, sample_folder

app = new_app()
FOLDER = "sample_corpora"


@app.command()
def samples(
    place: str | None = argument(
        None,
        "A sample to write, or a folder to copy them all to.",
        metavar="NAME|DIR",
        show_default="list them",
    ),
    force: bool = flag(False, "Replace copies that are there."),
    format: options.RowsFormat = None,
) -> None:
    """List the sample corpora, write one, or copy them to a folder.

    The examples of all help pages read them from sample_corpora/ in the current folder, where
    'nlpkit samples .' puts them. Columns (keys of jsonl): name, bytes, what.

    Examples:
      $ nlpkit samples
      $ nlpkit samples world.txt | head -3
      $ nlpkit samples . --force
    """
    found = list_samples()
    if place is None:
        with open_output("-") as out:
            write_rows(out, ["name", "bytes", "what"], found, rows_format(format))
        return
    by_name = {sample.name: sample for sample in found}
    if place in by_name:
        with open_output("-") as out:
            for chunk in textio.read_chunks(str(sample_folder() / place)):
                out.write_bytes(chunk)
        return
    if not os.path.isdir(place):
        raise NlpkitError(
            f"no sample and no folder: {place}", hint=f". for this folder, or {', '.join(by_name)}"
        )
    target = os.path.join(place, FOLDER)
    if os.path.realpath(target) == os.path.realpath(sample_folder()):
        Notes().say(f"{target}: the sample corpora are here already")
        return
    if os.path.islink(target):
        raise NlpkitError(f"{target} is a link to a folder elsewhere", hint="remove the link")
    if os.path.exists(target) and not force:
        raise NlpkitError(f"{target} exists", hint="--force to replace it")
    if os.path.exists(target):
        _check_copies(target, by_name)
    from nlpkit.folders import atomic_folder, check_place

    check_place(target)
    with atomic_folder(target) as folder:
        for sample in found:
            shutil.copyfile(sample_folder() / sample.name, folder / sample.name)
    Notes().say(f"{len(found)} sample corpora to {target}")


def _check_copies(target: str, names: Collection[str]) -> None:
    """What --force replaces holds copies of samples and nothing else that would be lost."""
    what = "is no folder"
    if os.path.isdir(target):
        with os.scandir(target) as entries:
            others = [one.name for one in entries if one.name not in names or not _is_copy(one)]
        if not others:
            return
        what = f"holds {min(others)}, which is no sample"
    raise NlpkitError(f"{target} {what}, and is not replaced", hint="move it away")


def _is_copy(entry: os.DirEntry[str]) -> bool:
    """A folder, or a link to a file elsewhere, was not copied here."""
    return entry.is_file(follow_symlinks=False)
