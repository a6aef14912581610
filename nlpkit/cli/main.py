"""``nlpkit``: the table of commands. A command's module is imported when the command is run.

The table repeats each command's first help line, so that ``nlpkit --help`` imports nothing;
a test keeps the two equal.
"""

from __future__ import annotations

import copy
import importlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_command_name

import nlpkit
from nlpkit.cli.frame import full_disk_is_one_line, show_page
from nlpkit.cli.helppage import command_page, manual
from nlpkit.signals import run_interruptible


class Entry(NamedTuple):
    """Where a command lives and what ``nlpkit --help`` says of it."""

    module: str
    help: str


SECTIONS: dict[str, dict[str, Entry]] = {
    "Text": {
        "tokenize": Entry(
            "tokenize", "Split text into tokens, a line of tokens for a line of text."
        ),
        "detokenize": Entry("detokenize", "Join word tokens back into readable text."),
        "sentences": Entry("sentences", "Split running text into sentences, one per line."),
        "bpe": Entry("bpe", "Byte-level subwords: train, encode, decode."),
    },
    "Numbers": {
        "vocab": Entry("vocab", "Vocabularies: build, merge, stats."),
        "encode": Entry("encode", "Turn tokens into the ids of a vocabulary."),
        "decode": Entry("decode", "Turn ids back into tokens."),
        "pad": Entry("pad", "Pad or cut rows of ids to one length."),
        "vectorize": Entry(
            "vectorize", "Turn lines of tokens into one-hot, hashed or counted rows."
        ),
    },
    "Models": {
        "names": Entry("names", "Name generators: train, sample, score, report."),
        "lm": Entry(
            "lm", "Language models of text, n-grams to GPT: train, sample, score, ask, compare."
        ),
        "gpt": Entry("gpt", "GPT models: train, sample, score, answer, import, export, attention."),
        "bert": Entry("bert", "BERT: train, fill in words, embed, search, senses, import, export."),
        "word2vec": Entry(
            "word2vec", "Word vectors by word2vec: train, and show training examples."
        ),
        "walks": Entry(
            "walks",
            "Walk at random over a graph, each walk a line of nodes (node2vec).",
        ),
        "vectors": Entry("vectors", "Word vectors: ask, evaluate, convert, plot."),
        "elmo": Entry("elmo", "Word vectors in context by ELMo: train, embed, import."),
        "qa": Entry("qa", "Answer questions by spans of a text: train, answer, evaluate."),
        "classify": Entry("classify", "Label whole texts: sentiment, topic, language."),
        "tag": Entry("tag", "Tag words with parts of speech, entities or other labels."),
        "seq2seq": Entry("seq2seq", "One sequence into another: translate, pronounce, inflect."),
        "info": Entry(
            "info", "Show what a model is: kind, size, settings, layers, training curve."
        ),
    },
    "Start here": {
        "samples": Entry(
            "samples", "List the sample corpora, write one, or copy them to a folder."
        ),
        "demo": Entry("demo", "Run the main commands on the sample corpora and show each step."),
    },
}
COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}
ALIASES = {"w2v": "word2vec", "translate": "seq2seq"}


class LazyGroup(TyperGroup):
    """The root: knows all names, imports a module only to run or describe its command."""

    _following = ""  # the word behind the command's name

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if ALIASES.get(cmd_name, cmd_name) not in COMMANDS:
            return None
        command = typer.main.get_command(_only(_app(cmd_name), self._following))
        command.name = cmd_name
        return command

    def whole(self, cmd_name: str) -> Any:
        """A command with all commands below it."""
        return typer.main.get_command(_app(cmd_name))

    def make_context(self, *args: Any, **settings: Any) -> Any:
        with full_disk_is_one_line():
            return super().make_context(*args, **settings)

    def invoke(self, ctx: Any) -> Any:
        with full_disk_is_one_line():
            return super().invoke(ctx)

    def get_help(self, ctx: Any) -> str:
        page = command_page(self, ctx)
        tables = {
            title: [(name, entry.help) for name, entry in entries.items()]
            for title, entries in SECTIONS.items()
        }
        sections = {**tables, **page.sections}
        return show_page(replace(page, sections=sections, epilog=self.epilog or ""))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        # the names are what "did you mean" chooses from
        self.commands = dict.fromkeys([*COMMANDS, *ALIASES])  # type: ignore[assignment]
        self._following = args[1] if len(args) > 1 else ""
        return super().resolve_command(ctx, args)


def _app(name: str) -> typer.Typer:
    entry = COMMANDS[ALIASES.get(name, name)]
    app: typer.Typer = importlib.import_module(f"nlpkit.cli.{entry.module}").app
    return app


def _only(app: typer.Typer, name: str) -> typer.Typer:
    """The app with one of its commands, if it has one of this name: each takes a while to build."""
    named = [
        (command.name or get_command_name(command.callback.__name__), command)
        for command in app.registered_commands
        if command.callback
    ]
    wanted = [command for own_name, command in named if own_name == name]
    if not wanted:
        return app
    smaller = copy.copy(app)
    smaller.registered_commands = wanted
    smaller.registered_groups = []
    return smaller


app = typer.Typer(
    cls=LazyGroup,
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "auto_envvar_prefix": "NLPKIT",
    },
    epilog="Try 'nlpkit demo' first, 'nlpkit COMMAND --help' next.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nlpkit {nlpkit.__version__}")
        raise typer.Exit


def _print_manual(ctx: typer.Context, wanted: bool) -> None:
    if not wanted:
        return
    group: Any = ctx.command
    pages = {
        name: command_page(command, command.make_context(name, [], resilient_parsing=True))
        for first in COMMANDS
        for name, command in _leaves(group.get_command(ctx, first), f"nlpkit {first}")
    }
    root_page = command_page(group, ctx)
    tables = {
        title: [(name, entry.help) for name, entry in entries.items()]
        for title, entries in SECTIONS.items()
    }
    typer.echo(manual(pages, replace(root_page, sections=tables), nlpkit.__version__), nl=False)
    raise typer.Exit


def _leaves(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every command below this one, with its full name."""
    if not (subcommands := getattr(command, "commands", None)):
        yield name, command
        return
    for part, subcommand in subcommands.items():
        yield from _leaves(subcommand, f"{name} {part}")


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
    man: Annotated[
        bool,
        typer.Option(
            "--man", callback=_print_manual, is_eager=True, help="Print all help as a manual page."
        ),
    ] = False,
) -> None:
    """The classics of neural NLP as shell commands, from raw text to vectors."""


def run() -> None:
    """Run the command line: text is UTF-8 whatever the locale says."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.reconfigure(  # type: ignore[union-attr]
                encoding="utf-8",
                newline="\n",
                errors="backslashreplace" if stream is sys.stderr else "strict",
            )
    app(prog_name="nlpkit")


def main() -> None:
    """``run``, and signals are answered, but for those that come while this module is loaded."""
    run_interruptible(run)
