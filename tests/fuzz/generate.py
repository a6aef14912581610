"""The list of cases that a seed stands for: case ``n`` is the same on every machine.

A case starts as a good, quick command line; then one to three things are made worse.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from . import contents, roles
from .case import Case, Step
from .commands import Command, Parameter
from .damage import damage
from .samples import Samples, copied, is_trainer

INTEGERS = (
    *("0", "-1", "1", "2", "1000", "65536", "2147483648", "1000000000", "9223372036854775808"),
    *("-9223372036854775809", "1e3", "nan", "inf", "", "x", " 5", "0x10", "1.5", "٣", "9" * 5000),
)
FRACTIONS = (
    *("0", "-0.0", "1", "-1", "0.5", "nan", "inf", "-inf", "1e308", "-1e308", "1e-320", "1e400"),
    *("", "x", "1,5", "9" * 5000),
)
TEXTS = (
    *("", " ", "x", "x" * 5000, "\n", "a\nb", "a\tb", "é", "\udcff", "-", "--", "\x1b[31m", "%s"),
    *("{}", "[bold]x", "..", "../..", "/", "(", "[", "(?P<", "\\", "*", ".*", "nan", "0", "-1"),
    *("1e308", "10000000000", "a" * 300, "a/b", "a:b", ":", "cuda", "meta", "cpu:7", "utf-7"),
    *("idna", "base64", "rot13", "utf-16", "99d", "0s", "nans", "-5m", "1e308d"),
)
ENDINGS = (".gz", ".bz2", ".xz", ".zst", ".npy", ".npz", ".json", ".png", ".svg", ".html", ".bin")
LONG_NAME = "n" * 245
TOO_LONG_NAME = "n" * 300
NOT_UTF8 = os.fsdecode(b"name-\xff.txt")
RARE_SHARE = 0.06  # of the cases: some take ten times as long as others
MANY = 50  # of something: work that a test should not wait for


@dataclass
class Draft:
    """A case in the making."""

    command: Command
    random: Random
    samples: Samples
    arguments: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)
    extra: list[tuple[str, ...]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)  # parameter: sample that it names
    steps: list[Step] = field(default_factory=list)
    stdin: str = ""
    outputs: list[str] = field(default_factory=list)
    circumstances: list[str] = field(default_factory=list)
    signal: int = 0
    after: float = 0.0
    endless: bool = False
    big: bool = False
    then: tuple[tuple[str, ...], ...] = ()

    def set(self, parameter: Parameter, *values: str) -> None:
        """Give a parameter these values."""
        self.arguments[parameter.name] = [
            (parameter.flag, value) if parameter.flags else (value,) for value in values
        ]

    def copy(self, name: str) -> None:
        """Have a sample in the folder."""
        if not any(step.path == name for step in self.steps):
            self.steps.append(copied(self.samples, name))

    def replace(self, name: str, step: Step) -> None:
        """Another file instead of a copy of a sample."""
        self.steps = [one for one in self.steps if one.path != name] + [step]

    def add(self, circumstance: str) -> None:
        if circumstance not in self.circumstances:
            self.circumstances.append(circumstance)

    def _default_outputs(self) -> Iterator[str]:
        for parameter in self.command.parameters:
            if roles.is_output(parameter) and isinstance(parameter.default, str):
                yield parameter.default

    def case(self, number: int) -> Case:
        ordered = [
            group
            for parameter in self.command.parameters
            for group in self.arguments.get(parameter.name, [])
        ]
        return Case(
            number=number,
            command=self.command.name,
            arguments=(*ordered, *self.extra),
            steps=tuple(self.steps),
            stdin=self.stdin,
            outputs=tuple(dict.fromkeys([*self.outputs, *self._default_outputs()])),
            circumstances=tuple(self.circumstances),
            signal=self.signal,
            after=self.after,
            endless=self.endless
            or self.command.name in roles.ENDLESS_COMMANDS
            or any(map(self._asks_for_much, self.command.parameters)),
            big=self.big,
            then=self.then,
        )

    def _asks_for_much(self, parameter: Parameter) -> bool:
        """Whether an option wants work that a test should not wait for, but Ctrl-C can end."""
        values = (group[-1] for group in self.arguments.get(parameter.name, []))
        return parameter.name in roles.ENDLESS and any(_as_number(one) > MANY for one in values)


class Generator:
    """``case(n)`` for any n; commands take turns."""

    def __init__(
        self,
        commands: list[Command],
        samples: Samples,
        seed: int,
        only: str = "",
        mutation: str = "",
    ) -> None:
        """``only`` is how names of commands start, ``mutation`` the only thing to be made worse."""
        self.everything, self.samples, self.seed = commands, samples, seed
        self.commands = [command for command in commands if command.name.startswith(only)]
        self.mutations = [one for one in MUTATIONS if mutation in ("", one[0].__name__)]
        self.rare = [one for one in RARE if mutation in ("", one.__name__)]

    def case(self, number: int) -> Case:
        random = Random(f"{self.seed}/{number}")
        count = random.choices((1, 2, 3), (70, 20, 10))[0]
        wants_rare = random.random() < RARE_SHARE or not self.mutations
        rare = self._rare(random) if wants_rare else None
        draft = rare or self._start(self._command(random, number), random)
        if self.mutations:
            mutations, weights = zip(*self.mutations, strict=True)
            for mutate in random.choices(mutations, weights, k=count - (rare is not None)):
                mutate(draft)
        command = draft.command
        if is_trainer(command) and draft.outputs == ["new.model"] and random.random() < 0.4:
            draft.then = tuple(self._uses(command))
        return draft.case(number)

    def _command(self, random: Random, number: int) -> Command:
        command = self.commands[number % len(self.commands)]
        if command.name in roles.ENDLESS_COMMANDS and random.random() < 0.8:
            return random.choice(self.commands)  # it would take most of the time
        return command

    def _rare(self, random: Random) -> Draft | None:
        """A case of a sort that few commands could meet, with one of these commands.

        Sorts are drawn evenly, whatever the number of commands that they fit.
        """
        if not self.rare:
            return None
        mutate = random.choice(self.rare)
        for command in random.sample(self.commands, len(self.commands)):
            draft = self._start(command, random)
            if mutate(draft):
                return draft
        return None

    def _uses(self, trainer: Command) -> Iterator[tuple[str, ...]]:
        """A command line that loads the new model: what was trained can be used."""
        group = trainer.name.split()[0]
        for command in self.everything:
            model = command.find("model")
            if command.name.startswith(f"{group} ") and model is not None and model.required:
                limits = [
                    (parameter.flag, value)
                    for parameter in command.parameters
                    if parameter.flags and (value := roles.quick_value(command, parameter))
                ]
                words = [word for option in limits for word in option]
                yield (*command.name.split(), "new.model", *words)
                return
        if group == "word2vec":
            yield ("vectors", "info", "new.model")

    def _start(self, command: Command, random: Random) -> Draft:
        """A good command line; inputs come from a file or by standard input."""
        draft = Draft(command, random, self.samples)
        for parameter in draft.command.parameters:
            if roles.is_needed(draft.command, parameter):
                _set_good(draft, parameter)
        _fit_together(draft)
        if draft.random.random() < 0.3:
            _feed(draft)
        return draft


def _set_good(draft: Draft, parameter: Parameter) -> None:
    command, random = draft.command, draft.random
    role = roles.files_role(command, parameter)
    value = roles.quick_value(command, parameter)
    if value is None and roles.is_output(parameter):
        value = roles.new_name(parameter)
        draft.outputs.append(value)
    elif value is None and role:
        value = random.choice(draft.samples.of(role))
        draft.files[parameter.name] = value
        draft.copy(value)
    elif value is None:
        value = random.choice(roles.good_words(command, parameter))
    draft.set(parameter, *roles.times(command, parameter) * [value])


def _fit_together(draft: Draft) -> None:
    """A folder has its own tokenizer, as nanoGPT's checkpoint has not; an index its own texts."""
    if draft.files.get("source") == "lines.index":
        draft.arguments.pop("inputs", None)
        draft.files.pop("inputs", None)
    if draft.files.get("source") == "gpt2":
        draft.arguments.pop("tokenizer", None)
        draft.files.pop("tokenizer", None)


def _feed(draft: Draft) -> None:
    for parameter in draft.command.parameters:
        name = draft.files.get(parameter.name)
        if name and not parameter.flags and parameter.repeated and not parameter.required:
            del draft.arguments[parameter.name]
            draft.stdin = name
            return


# --- what makes a case worse --------------------------------------------------------------------


def odd_value(draft: Draft) -> None:
    """An option with a value at or beyond its limits."""
    options = [one for one in draft.command.parameters if one.name not in roles.LEFT_OUT]
    options = [one for one in options if one.kind != "flag" and not roles.is_output(one)]
    if not options:
        return
    parameter = draft.random.choice(options)
    value = draft.random.choice(_odd_values(parameter))
    amount = _as_number(value)
    if parameter.name in roles.PROCESSES and amount > 4:
        draft.add("another user")
        if os.getuid() != 0:
            return
    draft.files.pop(parameter.name, None)
    draft.set(parameter, value)


def _odd_values(parameter: Parameter) -> tuple[str, ...]:
    if parameter.kind == "integer":
        edges = [round(edge) + by for edge in (parameter.low, parameter.high) if edge is not None
                 for by in (-1, 0, 1)]  # fmt: skip
        return (*INTEGERS, *map(str, edges))
    if parameter.kind == "number" and parameter.metavar != "TIME":
        edges = [edge + by for edge in (parameter.low, parameter.high) if edge is not None
                 for by in (-0.01, 0, 0.01)]  # fmt: skip
        return (*FRACTIONS, *map(str, edges))
    if parameter.kind == "choice":
        return ("", "x", parameter.choices[0].upper(), parameter.choices[-1] + " ")
    return TEXTS


def _as_number(value: str) -> float:
    try:
        return float(value.rstrip("smhd"))
    except ValueError:
        return 0.0


def other_options(draft: Draft) -> None:
    """Some more options with good values, whether they go together or not."""
    options = [one for one in draft.command.parameters if one.name not in roles.LEFT_OUT]
    for parameter in draft.random.sample(options, min(len(options), draft.random.randint(1, 4))):
        if parameter.kind == "flag":
            draft.arguments[parameter.name] = [(draft.random.choice(parameter.flags),)]
            continue
        role = roles.files_role(draft.command, parameter)
        words = roles.good_words(draft.command, parameter)
        if roles.is_output(parameter) or (role and parameter.name not in draft.files):
            _set_good(draft, parameter)
        elif not role and parameter.name not in roles.QUICK:
            draft.set(parameter, draft.random.choice(words))


def bad_content(draft: Draft) -> None:
    """A file that holds something else than it should."""
    name = _some_file(draft)
    if name is None:
        return
    good = draft.samples.path(name).read_bytes()
    draft.replace(name, Step("write", name, contents.bad_content(draft.random, good)))


def long_line(draft: Draft) -> bool:
    """A line of many MB."""
    return _big_content(draft, contents.LONG_LINES)


def many_lines(draft: Draft) -> bool:
    """A million lines."""
    return _big_content(draft, contents.MANY_LINES)


def _big_content(draft: Draft, sorts: tuple[tuple[bytes, int], ...]) -> bool:
    name = _some_file(draft)
    if name is None:
        return False
    data, times = draft.random.choice(sorts)
    draft.replace(name, Step("write", name, data, times=times))
    draft.big = True
    # a million texts keep a neural model busy, and that is nobody's fault
    uses_model = any(role.startswith("model") for role in _roles(draft.command))
    draft.endless = draft.endless or uses_model or is_trainer(draft.command)
    return True


def _roles(command: Command) -> list[str]:
    return [roles.files_role(command, parameter) for parameter in command.parameters]


def damaged_archive(draft: Draft) -> None:
    """A compressed file that breaks off, or is none."""
    name = _some_file(draft)
    if name is None:
        return
    good = draft.samples.path(name).read_bytes()
    ending, data = contents.damaged_archive(draft.random, good)
    new = name + ending
    draft.replace(name, Step("write", new, data))
    _rename(draft, name, new)


def _some_file(draft: Draft) -> str | None:
    """A file among the samples that are read."""
    names = [name for name in draft.files.values() if draft.samples.path(name).is_file()]
    return draft.random.choice(names) if names else None


def _rename(draft: Draft, old: str, new: str) -> None:
    for parameter, groups in draft.arguments.items():
        if draft.files.get(parameter) == old:
            draft.arguments[parameter] = [(*group[:-1], new) for group in groups]
    draft.stdin = new if draft.stdin == old else draft.stdin


def bad_place(draft: Draft) -> None:
    """An input that is missing, a folder, a pipe, not readable, or oddly named."""
    if not draft.files:
        return
    random = draft.random
    name = draft.files[parameter := random.choice(sorted(draft.files))]
    if draft.stdin == name or parameter not in draft.arguments:
        return
    good = _good_bytes(draft, name)
    new, step = random.choice(
        (
            ("nowhere", None),
            ("", None),
            (".", None),
            ("-", None),
            ("/dev/null", None),
            ("/proc/self/mem", None),
            ("/dev/zero", None),
            (f"{name}/", None),
            (f"{name}/x", None),
            (TOO_LONG_NAME, None),
            ("folder", Step("folder", "folder")),
            ("loop", Step("link", "loop", source="loop")),
            ("dangling", Step("link", "dangling", source="nowhere")),
            ("link", Step("link", "link", source=name)),
            (LONG_NAME, Step("write", LONG_NAME, good)),
            (NOT_UTF8, Step("write", NOT_UTF8, good)),
            ("a\nb", Step("write", "a\nb", good)),
            ("-x", Step("write", "-x", good)),
        )
    )
    if step is not None:
        draft.steps.append(step)
    if new == "/dev/zero":
        draft.big = draft.endless = True
    _put_instead(draft, parameter, new)


def _good_bytes(draft: Draft, name: str) -> bytes:
    path = draft.samples.path(name)
    return path.read_bytes() if path.is_file() else b"x"


def _put_instead(draft: Draft, parameter: str, new: str) -> None:
    draft.arguments[parameter] = [(*group[:-1], new) for group in draft.arguments[parameter]]
    del draft.files[parameter]


def _named_file(draft: Draft) -> str | None:
    """A parameter that names a file."""
    names = [name for name in sorted(draft.files) if name in draft.arguments]
    return draft.random.choice(names) if names else None


def pipe(draft: Draft) -> bool:
    """A FIFO, most often with what a file would hold."""
    parameter = _named_file(draft)
    if parameter is None:
        return False
    good = _good_bytes(draft, draft.files[parameter])
    data = good if draft.random.random() < 0.7 else contents.bad_content(draft.random, good)
    draft.steps.append(Step("fifo", "pipe", data))
    _put_instead(draft, parameter, "pipe")
    return True


def secret(draft: Draft) -> bool:
    """A file that may not be read."""
    parameter = _named_file(draft)
    if parameter is None:
        return False
    draft.steps.append(Step("write", "secret", _good_bytes(draft, draft.files[parameter])))
    draft.steps.append(Step("mode", "secret", number=0))
    draft.add("another user")
    _put_instead(draft, parameter, "secret")
    return True


def damaged_nanogpt(draft: Draft) -> bool:
    """A checkpoint of nanoGPT that is not whole."""
    parameter = draft.command.find("source")
    name = "ckpt.pt"
    if parameter is None or name not in draft.samples.of("foreign"):
        return False
    if roles.files_role(draft.command, parameter) != "foreign":
        return False
    draft.set(parameter, name)
    draft.files[parameter.name] = name
    draft.copy(name)
    draft.steps += damage(draft.random, draft.samples.path(name), name, [])
    return True


def damaged_model(draft: Draft) -> None:
    """A model, vectors or a vocabulary that somebody else has changed; or one of another kind."""
    random, samples = draft.random, draft.samples
    found = [(parameter, name) for parameter, name in draft.files.items() if _is_model(draft, name)]
    if not found:
        bad_content(draft)
        return
    parameter, name = random.choice(found)
    if random.random() < 0.08:
        other = random.choice(samples.of("model") + samples.of("vectors"))
        draft.copy(other)
        _rename(draft, name, other)
        draft.files[parameter] = other
        return
    others = [samples.path(other) for other in samples.of("model") if other != name]
    for _ in range(random.choice((1, 1, 1, 2))):
        draft.steps += damage(random, samples.path(name), name, others)


def _is_model(draft: Draft, name: str) -> bool:
    path = draft.samples.path(name)
    return path.is_dir() or path.suffix in (".json", ".bin", ".pt", ".vocab")


def bad_output(draft: Draft) -> None:
    """An output that cannot be written, is there already, or is oddly named."""
    places = [one for one in draft.command.parameters if roles.is_output(one)]
    if not places:
        return
    random = draft.random
    parameter = random.choice(places)
    name = roles.new_name(parameter)
    model = random.choice(draft.samples.of("model"))
    folder = Step("folder", "folder")
    new, steps = random.choice(
        (
            ("missing/out", []),
            ("", []),
            (".", []),
            ("-", []),
            ("/", []),
            ("/dev/null", []),
            ("/dev/full", []),
            ("/proc/x", []),
            (f"{name}/", []),
            (TOO_LONG_NAME, []),
            (LONG_NAME, []),
            (NOT_UTF8, []),
            ("a\nb", []),
            (f"out{random.choice(ENDINGS)}", []),
            (f"out{random.choice(ENDINGS)}", []),
            (f"out{random.choice(ENDINGS)}", []),
            ("folder", [folder]),
            ("old", [Step("write", "old", b"old")]),
            ("old/x", [Step("write", "old", b"old")]),
            ("link", [Step("write", "old", b"old"), Step("link", "link", source="old")]),
            ("link", [folder, Step("link", "link", source="folder")]),
            ("link", [Step("link", "link", source="dangling")]),
            ("loop", [Step("link", "loop", source="loop")]),
            ("old.model", [Step("copy", "old.model", source=str(draft.samples.path(model)))]),
            ("locked/out", [Step("folder", "locked"), Step("mode", "locked", number=0o555)]),
            ("full/out", [Step("folder", "full")]),
            ("full/out", [Step("folder", "full")]),
            ("INPUT", []),
        )
    )
    if new == "INPUT":
        if not draft.files:
            return
        new = random.choice(sorted(draft.files.values()))
    draft.steps += steps
    if new.startswith("locked"):
        draft.add("another user")
    if new.startswith("full"):
        draft.add("folder full")
    force = draft.command.find("force")
    if force is not None and random.random() < 0.5:
        draft.arguments["force"] = [(force.flag,)]
    draft.outputs += [new.rstrip("/"), *(step.source for step in steps if step.what == "link")]
    draft.set(parameter, new)


def odd_streams(draft: Draft) -> None:
    """Standard streams that are closed, full, without a reader, or a terminal."""
    stream = draft.random.choice(
        ("stdin closed", "stdout closed", "stdout full", "stdout without reader", "stderr closed")
        + 3 * ("terminal",)
    )
    draft.add(stream)


def odd_surroundings(draft: Draft) -> None:
    """No room for temporary files, or the rights of another user."""
    draft.add(
        draft.random.choice(("TMPDIR missing", "TMPDIR full", "TMPDIR read-only", "another user")),
    )


def wrong_usage(draft: Draft) -> None:
    """Options that are not there, have no value, or come twice."""
    random = draft.random
    given = sorted(draft.arguments)
    chosen = random.choice(given) if given else ""
    kind = random.randrange(8)
    if kind == 0:
        draft.extra.append((random.choice(("--nope", "-Z", "--", "--help", "-h", "-", "--=x")),))
    elif kind == 1:
        draft.extra.append(("extra",))
    elif kind == 2 and chosen:
        draft.arguments[chosen] = draft.arguments[chosen] * 2
    elif kind == 3 and chosen:
        del draft.arguments[chosen]
        draft.files.pop(chosen, None)
    elif kind == 4 and chosen:
        draft.extra.append(draft.arguments.pop(chosen)[0][:1])
    elif kind == 5 and chosen and len(draft.arguments[chosen][0]) == 2:
        draft.arguments[chosen] = [("=".join(group),) for group in draft.arguments[chosen]]
    elif kind == 6:
        draft.extra += [("--",), (random.choice(TEXTS),)]
    elif options := [one for one in draft.command.parameters if one.flags]:
        draft.extra.append((random.choice(options).flag,))


def signalled(draft: Draft) -> None:
    """Ctrl-C, a polite kill or a closed terminal, at any time."""
    draft.signal = draft.random.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    draft.after = draft.random.choice((0.002, 0.005, 0.01, 0.03, 0.1, 0.3))


def resumed(draft: Draft) -> bool:
    """A checkpoint in the way, most often a damaged one."""
    random, samples = draft.random, draft.samples
    found = [one for one in samples.checkpoints if one.command == draft.command.name]
    if not found:
        return False
    checkpoint = random.choice(found)
    name = "new.model.checkpoint"
    draft.arguments = {}
    draft.extra = [*checkpoint.arguments]
    draft.steps = [copied(samples, name) for name in checkpoint.reads]
    draft.steps.append(Step("copy", name, source=str(samples.path(checkpoint.name))))
    draft.files, draft.stdin, draft.outputs = {}, "", ["new.model"]
    if random.random() < 0.85:
        draft.extra.append(("--resume",))
    else:  # another text, of which the checkpoint knows nothing
        draft.steps[0] = Step("write", checkpoint.reads[0], b"a b\n" * 30)
    others = [samples.path(one.name) for one in samples.checkpoints if one is not checkpoint]
    for _ in range(random.choice((0, 1, 1, 1, 1, 2))):
        draft.steps += damage(random, samples.path(checkpoint.name), name, others)
    draft.endless = True
    return True


Mutation = Callable[[Draft], None]
MUTATIONS: tuple[tuple[Mutation, float], ...] = (
    (odd_value, 6),
    (other_options, 3),
    (bad_content, 6),
    (damaged_model, 6),
    (bad_place, 3),
    (bad_output, 2.5),
    (damaged_archive, 1),
    (odd_streams, 1.5),
    (odd_surroundings, 0.8),
    (wrong_usage, 1),
    (signalled, 0.7),
)
# each says whether the command could meet it
RARE: tuple[Callable[[Draft], bool], ...] = (
    pipe,
    secret,
    long_line,
    many_lines,
    damaged_nanogpt,
    resumed,
    resumed,
)
