"""What every command is made of: its help page, and the one place that maps errors to exit codes.

0    all went well (also when the reader of our pipe went away early)
1    something the user can fix: one line on stderr says what, where and what to try
2    wrong usage
130  Ctrl-C, SIGTERM or SIGHUP
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_name

from nlpkit.cli import everywhere
from nlpkit.cli.flags import declare_flags
from nlpkit.cli.helppage import Page, command_page, render
from nlpkit.cli.output import drop_stream, write_stderr
from nlpkit.errors import NlpkitError, NlpkitNote, NlpkitWarning, UsageError


class NoInput(Exception):
    """Standard input was expected and is a terminal: show the help instead of hanging."""


def fail(message: str, code: int = 1) -> None:
    """One line on stderr, then the exit code."""
    line = " ".join(message.split("\n"))
    write_stderr(f"error: {line}\n")
    raise typer.Exit(code)


_PARAMETER = re.compile(r"`([a-z][a-z0-9_]*)`")


def name_flags(message: str, command: Any) -> str:
    """Engines speak of `parameters`: show those that the command has as its flags."""
    flags = {
        flag.lstrip("-").replace("-", "_"): flag
        for parameter in command.params
        for flag in parameter.opts
        if flag.startswith("--")
    }
    return _PARAMETER.sub(lambda found: flags.get(found[1], found[0]), message)


def _drop_stdout() -> None:
    drop_stream("stdout")


_CANNOT_WRITE = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EIO,
    errno.EROFS,
    errno.EBADF,
)


@contextlib.contextmanager
def full_disk_is_one_line() -> Iterator[None]:
    """For all that is written to stdout, help pages too."""
    try:
        yield
    except OSError as error:
        if error.errno in _CANNOT_WRITE:
            where = error.filename or "standard output"
            _drop_stdout()
            fail(f"cannot write {where}: {error.strerror}")
        raise


@contextlib.contextmanager
def _warnings_are_lines() -> Iterator[None]:
    """Warnings of engines without the file and line they come from."""
    with warnings.catch_warnings():
        show: Callable[..., None] = warnings.showwarning

        def show_line(message: Any, category: type[Warning], *rest: Any, **more: Any) -> None:
            from nlpkit.cli.output import Notes

            if issubclass(category, NlpkitNote):
                Notes().say(str(message))
            elif issubclass(category, NlpkitWarning):
                Notes().warn(str(message))
            else:
                show(message, category, *rest, **more)

        warnings.showwarning = show_line
        warnings.simplefilter("always", NlpkitWarning)
        yield


class Command(TyperCommand):
    """A command whose help is its docstring, with its options in groups and examples at the end."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._added = everywhere.missing(self.name, self.params)
        names = [one.name for one in self.params]
        for one in self._added:
            end = names.index("format") + 1 if one.name == "json" else len(self.params)
            self.params.insert(end, one)
        self._seed: int | None = None

    def get_help(self, ctx: Any) -> str:
        return show_page(command_page(self, ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if any(one.name == "seed" for one in self.params):
            args, self._seed = everywhere.draw_seed(args, f"{ctx.auto_envvar_prefix}_SEED")
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            seed = getattr(error.param, "name", "") == "seed"
            error.message = everywhere.plain_words(
                error.message, "a number or random" if seed else ""
            )
            raise

    def _say_first(self, ctx: Any) -> None:
        """What a person should know before the command does its work."""
        from nlpkit.cli.output import Notes

        notes = Notes()
        root = ctx.find_root()
        if root is not ctx and root.auto_envvar_prefix:
            prefixes = {
                name: f"NLPKIT_{name.upper().replace('-', '_')}" for name in root.command.commands
            }
            first = root.invoked_subcommand
            found = everywhere.mistyped(
                everywhere.variables(self, ctx.auto_envvar_prefix),
                f"{ctx.auto_envvar_prefix}_",
                prefixes[first],
                prefixes.values(),
                lambda: everywhere.variables(root.command.whole(first), prefixes[first]),
            )
            for wrong, near in found:
                meant = f"did you mean {near}?" if near else "check the spelling"
                notes.warn(f"{wrong} stands for nothing: {meant}")
        if self._seed is not None:
            notes.say(f"seed {self._seed}")
        elif self.name == "sample" and "seed" in ctx.params and sys.stdout is not None:
            source = ctx.get_parameter_source("seed")
            if source is not None and source.name == "DEFAULT" and sys.stdout.isatty():
                notes.say(f"seed {ctx.params['seed']}, as always; --seed random for other samples")

    def invoke(self, ctx: Any) -> Any:
        try:
            with _warnings_are_lines(), everywhere.taken(ctx, self._added):
                self._say_first(ctx)
                result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
            return result
        except NoInput:
            typer.echo(ctx.get_help(), err=True)
            raise typer.Exit(2) from None
        except UsageError as error:
            fail(name_flags(str(error), self), 2)
        except NlpkitError as error:
            fail(name_flags(str(error), self))
        except BrokenPipeError:
            _drop_stdout()
            raise typer.Exit(0) from None
        except KeyboardInterrupt:
            _drop_stdout()
            fail("interrupted", 130)
        except OSError as error:
            if error.errno in _CANNOT_WRITE:
                raise  # full_disk_is_one_line knows what to do
            what = f"cannot open {error.filename}: " if error.filename else ""
            fail(f"{what}{error.strerror or error}")
        except MemoryError:
            fail("out of memory (try: smaller inputs, batches or models)")


def show_page(page: Page) -> str:
    """A help page as wide as the terminal, up to 80 columns, in colours if it is one."""
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    colour = is_terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return render(page, shutil.get_terminal_size().columns, colour=colour).rstrip("\n")


class Group(TyperGroup):
    """A group of commands, such as ``nlpkit vocab``."""

    def get_help(self, ctx: Any) -> str:
        page = command_page(self, ctx)
        rows = [(name, (entry.help or "").split("\n")[0]) for name, entry in self.commands.items()]
        return show_page(replace(page, sections={"Commands": rows, **page.sections}))


class App(typer.Typer):
    """The commands of one module."""

    def command(
        self, name: str | None = None, *, defaults: dict[str, Any] | None = None, **settings: Any
    ) -> Callable[..., Any]:
        """Register a command; ``defaults`` are its own for options of settings classes."""

        def declare(command: Callable[..., Any]) -> Callable[..., Any]:
            own_name = name or get_command_name(command.__name__.rstrip("_"))
            register = super(App, self).command(own_name, **{"cls": Command, **settings})
            register(declare_flags(command, defaults))
            return command

        return declare


def new_app(help: str | None = None, *commands: Callable[..., Any]) -> App:
    """An app for one module of commands; with ``help`` it is a group, without a single command.

    ``commands`` are functions of other modules; those of its own are registered by a decorator.
    """
    app = App(
        help=help, cls=Group, add_completion=False, rich_markup_mode=None, no_args_is_help=True
    )
    if help is not None:
        app.callback()(_group_callback(help))
    for command in commands:
        app.command()(command)
    return app


def _group_callback(text: str) -> Callable[[], None]:
    def group() -> None:
        pass

    group.__doc__ = text
    return group
