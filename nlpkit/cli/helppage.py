"""Help pages: what a command takes, in named groups, for 80 columns of a terminal or ``man``."""

from __future__ import annotations

import enum
import inspect
import re
import textwrap
import typing
from dataclasses import dataclass, field
from typing import Any

from nlpkit.settings import DATA, MODEL, OUTPUT, TRAINING, choices

EXAMPLES = "Examples:"
WIDTH = 80
LEFT = 27  # columns of flags, beside which their help stands
OTHER = "Other"
ORDER = ("Arguments", "Options", MODEL, TRAINING, DATA, OUTPUT, OTHER)
# What decides which of the others matter stands first in its group.
LEADING = ("model", "arch", "encoder", "size", "recipe", "pretrained")
LARGEST_SHOWN = 100  # a range that ends beyond is a safeguard, and says nothing to a reader

# Where options of several commands stand that name no group themselves.
_GROUPS = {
    DATA: "tokenizer pattern hyphens lower normalize strip_accents no_punct stopwords min_length "
    "input key encoding errors jobs vocab_file special",
    TRAINING: "epochs max_iters max_time lr batch_size dropout weight_decay device threads resume "
    "config checkpoint_every dtype eval_interval",
    OUTPUT: "output format json header force quiet plot metrics",
}
GROUP_OF = {name: group for group, names in _GROUPS.items() for name in names.split()}
_STYLES = {"heading": "\x1b[1m", "flag": "\x1b[36m", "end": "\x1b[0m"}


@dataclass(frozen=True)
class Page:
    """A help page by its parts."""

    usage: str
    summary: str
    paragraphs: list[str] = field(default_factory=list)
    sections: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)
    epilog: str = ""


def command_page(command: Any, ctx: Any) -> Page:
    """The page of a command, from its parameters and its docstring."""
    text, _, examples = inspect.cleandoc(command.help or "").partition(EXAMPLES)
    summary, *paragraphs = text.strip().split("\n\n")
    found: dict[str, list[tuple[str, str]]] = {}
    for parameter in sorted(command.get_params(ctx), key=_rank):
        if not parameter.hidden:
            found.setdefault(group_of(parameter), []).append(entry(parameter, ctx))
    if len(found.get(OTHER, ())) == sum(map(len, found.values())) - len(found.get("Arguments", ())):
        found["Options"] = found.pop(OTHER)
    order = [*ORDER[:-1], *(name for name in found if name not in ORDER), OTHER]
    sections = {name: found[name] for name in order if name in found}
    lines = [line.strip()[2:] for line in examples.splitlines() if line.strip()]
    return Page(_usage(command, ctx), " ".join(summary.split()), paragraphs, sections, lines)


def _rank(parameter: Any) -> int:
    is_leading = parameter.param_type_name == "option" and parameter.name in LEADING
    return LEADING.index(parameter.name) if is_leading else len(LEADING)


def _usage(command: Any, ctx: Any) -> str:
    return f"{ctx.command_path} {' '.join(command.collect_usage_pieces(ctx))}"


def group_of(parameter: Any) -> str:
    """The heading that a parameter stands under."""
    if parameter.param_type_name == "argument":
        return "Arguments"
    if parameter.name in ("help", "version", "man", "install_completion", "show_completion"):
        return OTHER
    if parameter.required:
        return "Options"  # what must be given comes first
    named = getattr(parameter, "rich_help_panel", None)
    return named or GROUP_OF.get(parameter.name, "Options")


def entry(parameter: Any, ctx: Any) -> tuple[str, str]:
    """Flags with their placeholder, and the help text with values and default."""
    hint = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    values = choices(hint) or _enum_values(hint)
    help = " ".join((parameter.help or "").split())
    notes = []
    if parameter.param_type_name == "argument":
        left = str(parameter.metavar or parameter.name.upper())
        left += "..." if parameter.nargs != 1 and not left.endswith("...") else ""
    else:
        flags = ", ".join(sorted(parameter.opts, key=len))
        if parameter.secondary_opts:
            flags += " / " + ", ".join(parameter.secondary_opts)
        left = flags
        if not parameter.is_flag:
            listed = "|".join(map(str, values))
            place = parameter.metavar or (listed if values else placeholder(hint))
            if values and not parameter.metavar and len(flags) + 1 + len(listed) > LEFT - 4:
                place = "NAME"
                notes.append("one of " + ", ".join(map(str, values)))
            left = f"{flags} {place}"
    if parameter.name == "seed":
        notes.append("random: draw one and say which")
    if (default := shown_default(parameter, ctx)) is not None:
        notes.append(f"default: {default}")
    if (limits := shown_range(parameter)) is not None:
        notes.append(limits)
    if parameter.required and parameter.param_type_name == "option":
        notes.append("required")
    return left, help + (f"  [{'; '.join(notes)}]" if notes else "")


def placeholder(hint: Any) -> str:
    """What stands for a value of this type.

    >>> placeholder(int | None), placeholder(str)
    ('N', 'TEXT')
    """
    parts = {hint, *typing.get_args(hint)}
    return "N" if parts & {int, float} else "TEXT"


def _enum_values(hint: Any) -> tuple[Any, ...]:
    for part in (hint, *typing.get_args(hint)):
        if isinstance(part, type) and issubclass(part, enum.Enum):
            return tuple(member.value for member in part)
    return ()


def shown_default(parameter: Any, ctx: Any) -> str | None:
    """The default in words, or None where there is nothing to say."""
    if isinstance(parameter.show_default, str):
        return parameter.show_default
    default = parameter.get_default(ctx, call=False)
    if not parameter.show_default or default is None or default == [] or parameter.required:
        return None
    if getattr(parameter, "is_flag", False):
        if not parameter.secondary_opts:
            return None
        chosen = parameter.opts if default else parameter.secondary_opts
        return str(chosen[0]).lstrip("-")
    if isinstance(default, enum.Enum):
        return str(default.value)
    if isinstance(default, float):
        return f"{default:g}"
    return str(default)


def shown_range(parameter: Any) -> str | None:
    """The range of a number, if it tells a reader anything."""
    low, high = getattr(parameter, "min", None), getattr(parameter, "max", None)
    if high is None or high > LARGEST_SHOWN or low is None or low < -LARGEST_SHOWN:
        return None
    return f"{low:g} to {high:g}"


# --- for a terminal -----------------------------------------------------------------------------


def render(page: Page, width: int = WIDTH, *, colour: bool = False) -> str:
    """A page as text, no line longer than ``width``."""
    width = max(min(width, WIDTH), 40)
    lines = _wrapped(page.usage, width, "Usage: ", " " * 11)
    lines += ["", *_wrapped(page.summary, width, "  ", "  ")]
    for paragraph in page.paragraphs:
        if paragraph.startswith(" "):  # a drawing or a table: as it is
            lines += ["", *(f"  {line}".rstrip() for line in paragraph.splitlines())]
        else:
            lines += ["", *_wrapped(" ".join(paragraph.split()), width, "  ", "  ")]
    flags = [name for entries in page.sections.values() for name, _ in entries if name[0] == "-"]
    for title, entries in page.sections.items():
        lines += ["", _style(f"{title}:", "heading", colour)]
        # flags stand in one column on all of the page, names of commands need less room
        names = flags if entries[0][0].startswith("-") else [name for name, _ in entries]
        left = min(LEFT, max(map(len, names)) + 4)
        for name, help in entries:
            lines += _entry_lines(name, help, left, width, colour)
    if page.examples:
        lines += ["", _style(EXAMPLES, "heading", colour)]
        for example in page.examples:
            lines += [f"  {line}" for line in fold_command(f"$ {example}", width - 2)]
    if page.epilog:
        lines += ["", *_wrapped(page.epilog, width, "", "")]
    return "\n".join(lines) + "\n"


def _entry_lines(name: str, help: str, left: int, width: int, colour: bool) -> list[str]:
    body = _wrapped(help, width, " " * left, " " * left) or [""]
    shown = _style(name, "flag", colour)
    if len(name) > left - 4:
        return [f"  {shown}", *body]
    return [f"  {shown}{' ' * (left - 2 - len(name))}{body[0].strip()}", *body[1:]]


def _style(text: str, style: str, colour: bool) -> str:
    return f"{_STYLES[style]}{text}{_STYLES['end']}" if colour else text


def _wrapped(text: str, width: int, first: str, rest: str) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=False,
    )


def fold_command(line: str, width: int) -> list[str]:
    r"""A line of shell on as many lines as it needs, still the same command.

    >>> fold_command("$ cat tales.txt | nlpkit tokenize --lower", 30)
    ['$ cat tales.txt |', '    nlpkit tokenize --lower']
    >>> fold_command("$ nlpkit tokenize --lower --json tales.txt", 30)
    ['$ nlpkit tokenize --lower \\', '    --json tales.txt']
    """
    if len(line) <= width:
        return [line]
    # words, where quoted ones stay whole
    words = re.findall(r"(?:'[^']*'|\"[^\"]*\"|\\.|[^\s])+", line)
    lines, current = [], ""
    # a flag and its value stay together
    for word in _pairs(words):
        if current and len(current) + 1 + len(word) > width - 2:
            head, bar, tail = current.rpartition(" | ")
            if bar and len(tail) + 5 + len(word) <= width - 2:
                lines.append(f"{head} |")
                current = f"    {tail} {word}"
            else:
                lines.append(current if current.endswith(" |") else f"{current} \\")
                current = f"    {word}"
        else:
            current = f"{current} {word}" if current else word
    return [*lines, current]


def _pairs(words: list[str]) -> list[str]:
    joined: list[str] = []
    for word in words:
        if joined and re.fullmatch(r"--?[\w-]+", joined[-1]) and not word.startswith(("-", "|")):
            joined[-1] += f" {word}"
        else:
            joined.append(word)
    return joined


# --- for man ------------------------------------------------------------------------------------


def manual(pages: dict[str, Page], root: Page, version: str) -> str:
    """All pages as one manual page in the macros of ``man``."""
    out = [
        f'.TH NLPKIT 1 "" "nlpkit {version}" "User Commands"',
        ".SH NAME",
        f"nlpkit \\- {_roff(root.summary.rstrip('.'))}",
        ".SH SYNOPSIS",
        f".B {_roff(root.usage)}",
    ]
    for title, entries in root.sections.items():
        out += [f".SH {_roff(title.upper())}"]
        for name, help in entries:
            out += [".TP", f".B {_roff(name)}", _roff(help)]
    for name, page in pages.items():
        out += [f'.SH "{_roff(name.upper())}"', f".B {_roff(page.usage)}", ".PP"]
        out += [_roff(page.summary)]
        for paragraph in page.paragraphs:
            out += [".PP", _roff(" ".join(paragraph.split()))]
        for title, entries in page.sections.items():
            out += [f".SS {_roff(title)}"]
            for flags, help in entries:
                out += [".TP", f".B {_roff(flags)}", _roff(help)]
        if page.examples:
            out += [".SS Examples", ".nf", *(f"$ {_roff(one)}" for one in page.examples), ".fi"]
    return "\n".join(out) + "\n"


def _roff(text: str) -> str:
    """Text in which nothing is a request or an escape of roff.

    >>> _roff(".5 a\\\\b -x")
    '\\\\&.5 a\\\\eb \\\\-x'
    """
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text
