"""What every command is made of: its help page, and the one place that maps errors to exit codes.

0    all went well (also when the reader of our pipe went away early)
1    something the user can fix: one line on stderr says what, where and what to try
2    wrong usage
130  Ctrl-C, SIGTERM or SIGHUP
"""

from __future__ import annotations

import contextlib
import errno
import inspect
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from nlpkit.cli.output import drop_stream, write_stderr
from nlpkit.errors import NlpkitError, NlpkitWarning, UsageError

EXAMPLES = "Examples:"


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
def _warnings_are_lines(*, quiet: bool) -> Iterator[None]:
    """Warnings of engines without the file and line they come from."""
    with warnings.catch_warnings():
        show: Callable[..., None] = warnings.showwarning

        def show_line(message: Any, category: type[Warning], *rest: Any, **more: Any) -> None:
            from nlpkit.cli.output import Notes

            if issubclass(category, NlpkitWarning):
                Notes(quiet).warn(str(message))
            else:
                show(message, category, *rest, **more)

        warnings.showwarning = show_line
        warnings.simplefilter("always", NlpkitWarning)
        yield


def hide_environment(command: Any) -> None:
    """Every option has an environment variable; naming each would drown the help page."""
    for parameter in command.params:
        parameter.show_envvar = False


class Command(TyperCommand):
    """A command whose help is its docstring as written, with the examples at the end."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The arguments, then the options, each group that has a name under that name."""
        hide_environment(self)
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                plain = "Arguments" if parameter.param_type_name == "argument" else "Options"
                name = getattr(parameter, "rich_help_panel", None) or plain
                groups.setdefault(name, []).append(record)
        groups["Options"] = groups.pop("Options")  # what every command has comes last
        for name, records in groups.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        text, _, _ = self._parts()
        formatter.write_paragraph()
        for line in text.splitlines():
            formatter.write(f"  {line}".rstrip() + "\n")

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        _, heading, examples = self._parts()
        if heading:
            formatter.write_paragraph()
            formatter.write(heading + "\n" + examples.rstrip() + "\n")

    def _parts(self) -> tuple[str, str, str]:
        text, heading, examples = inspect.cleandoc(self.help or "").partition(EXAMPLES)
        return text.rstrip(), heading, examples.lstrip("\n")

    def invoke(self, ctx: Any) -> Any:
        try:
            with _warnings_are_lines(quiet=bool(ctx.params.get("quiet"))):
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


class Group(TyperGroup):
    """A group of commands, such as ``nlpkit vocab``."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = [(name, (entry.help or "").split("\n")[0]) for name, entry in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def new_app(help: str | None = None) -> typer.Typer:
    """An app for one module of commands; with ``help`` it is a group, without a single command."""
    app = typer.Typer(
        help=help, cls=Group, add_completion=False, rich_markup_mode=None, no_args_is_help=True
    )
    if help is not None:
        app.callback()(_group_callback(help))
    return app


def _group_callback(text: str) -> Callable[[], None]:
    def group() -> None:
        pass

    group.__doc__ = text
    return group
