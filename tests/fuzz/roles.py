"""What a parameter stands for, told by its name, placeholder and command; good values for it."""

from __future__ import annotations

from .commands import Command, Parameter

OUTPUTS = ("output", "plot", "keep", "answers", "rejected", "items", "predictions", "metrics")
# Work that a user may ask for without end: Ctrl-C is what ends it, not a limit.
ENDLESS = (
    "epochs",
    "max_iters",
    "max_time",
    "count",
    "tries",
    "samples",
    "sample_tokens",
    "walks",
    "max_tokens",
    "grad_accum",
)
ENDLESS_COMMANDS = ("demo",)
PROCESSES = ("jobs", "threads")  # large numbers of them only where the system sets a limit
# Minutes of an external compiler, and not of this package.
LEFT_OUT = ("compile",)

# What makes a command quick, wherever it has such an option.
QUICK = {
    "epochs": "1",
    "max_iters": "2",
    "dim": "8",
    "layers": "1",
    "heads": "2",
    "hidden": "8",
    "word_dim": "8",
    "block_size": "8",
    "batch_size": "8",
    "min_count": "1",
    "min_frequency": "1",
    "vocab_size": "300",
    "max_tokens": "4",
    "threads": "1",
    "tries": "50",
    "buckets": "9",
    "device": "cpu",
}
QUICK_HERE: dict[str, dict[str, str | None]] = {
    "names sample": {"count": "3"},
    "names report": {"count": "5"},
    "classify train": {"batch_size": None},  # refused with bow
    "seq2seq train": {"heads": None},  # refused with recurrent models
}
# What a command cannot do without, though it is no required parameter.
NEEDED = {
    "gpt import": ("tokenizer",),
    "gpt sample": ("prompt",),
    "bpe encode": ("model",),
    "gpt answer": ("prompts",),
    "gpt evaluate": ("examples",),
    "lm compare": ("first", "second"),
    "lm inspect": ("text",),
    "vectors bias": ("file",),
    "seq2seq train": ("pairs",),
    "seq2seq score": ("pairs",),
    "seq2seq evaluate": ("pairs",),
    "seq2seq clean": ("pairs",),
    "bpe decode": ("model",),
}
# What a command takes any number of, it needs so many of.
TIMES = {
    "vectors merge": 2,
    "vectors similarity": 2,
    "vectors analogy": 3,
    "vectors odd-one-out": 3,
}

# Words of options that are not declared as choices.
_LISTED = {
    ("names train", "model"): ("ngram", "bigram", "mlp", "rnn", "lstm", "gru", "gpt"),
    ("names inspect", "name"): ("ann", "an"),
    ("gpt train", "size"): ("nano",),
    ("lm compare", "first"): ("the _",),
    ("lm compare", "second"): ("a _",),
    ("bert fill", "text"): ("the [MASK] sat",),
    ("bert compare", "first"): ("the [MASK] sat",),
    ("bert compare", "second"): ("a [MASK] ran",),
    ("bert senses", "word"): ("the",),
    ("tag train", "column"): ("upos", "misc:NER", "feats:Number"),
    ("tag evaluate", "column"): ("upos", "misc:NER"),
    ("tag check", "column"): ("upos", "misc:NER"),
}
_WORDS = {
    "encoding": ("utf-8", "latin-1", "cp1252", "utf-16"),
    "device": ("cpu", "auto"),
    "pattern": (r"\w+", "[a-z]+", "."),
    "stopwords": ("en",),
    "maxlen": ("3", "auto"),
    "label": ("positive", "en"),
    "special": ("<x>", "<pad>"),
    "stop": ("the", "."),
    "prefix": ("a",),
    "suffix": ("a",),
    "contains": ("n",),
    "max_time": ("1s", "0.5"),
    "checkpoint_every": ("10m", "1s"),
    "tag_column": ("-1", "2"),
    "token_column": ("1", "2"),
    "negative": ("a",),
}
_BY_METAVAR_WORDS = {
    "WORD": ("the", "of", "and", "to", "in"),
    "PROMPT": ("the king", "a"),
    "TEXT": ("the king",),
    "QUERY": ("the king", "of"),
    "QUESTION": ("who is here ?",),
    "NAME|PATH": ("word", "simple", "whitespace", "char", "gpt2"),
    "char|byte|PATH": ("char", "byte"),
    "NAME": ("x",),
    "TOKEN": ("<x>",),
    "TIME": ("1s",),
    "N": ("3",),
}

# Which files a parameter reads: by command and name, by name, by placeholder.
_FILES_HERE = {
    ("decode", "inputs"): "ids",
    ("pad", "inputs"): "ids",
    ("bpe decode", "inputs"): "ids",
    ("detokenize", "inputs"): "tokens",
    ("names train", "names"): "names",
    ("names score", "inputs"): "names",
    ("names train", "test_file"): "names",
    ("vectors evaluate analogies", "file"): "analogies",
    ("vectors evaluate similarity", "file"): "pairs",
    ("vectors bias", "file"): "lists",
    ("vectors align", "first"): "vectors",
    ("vectors align", "second"): "vectors",
    ("vectors shift", "first"): "vectors",
    ("vectors shift", "second"): "vectors",
    ("word2vec train", "vocab"): "vocab",
    ("lm compare", "pairs"): "texts",
    ("lm import", "arpa"): "arpa",
    ("gpt answer", "prompts"): "examples",
    ("gpt evaluate", "examples"): "examples",
    ("gpt train", "examples"): "examples",
    ("walks", "edges"): "edges",
    ("gpt train", "init"): "model gpt",
    ("tag train", "pretrained"): "model bert",
    ("classify train", "pretrained"): "model bert",
    ("qa train", "pretrained"): "model bert",
    ("qa train", "data"): "questions",
    ("qa train", "dev"): "questions",
    ("qa evaluate", "test"): "questions",
    ("info", "models"): "model",
    ("gpt export", "model"): "exportable",
    ("bert search", "source"): "search",
    ("bert import", "source"): "hf bert",
    ("bert export", "model"): "exportable bert",
    ("elmo import", "source"): "hf elmo",
    ("seq2seq import", "source"): "hf marian",
    ("seq2seq export", "model"): "exportable seq2seq",
    ("classify inspect", "model"): "classify encoder",
}
_FILES_BY_NAME = {"vocab": "vocab", "config": "config", "tokenizer": "tokenizer"}
_FILES_BY_METAVAR = {
    "VOCAB": "vocab",
    "VECTORS": "vectors",
    "SOURCE": "foreign",
    "PATH": "tokenizer",
    "INPUT": "text",
    "FILE": "text",
}
_FILES_BY_GROUP = {
    "seq2seq": {"PAIRS": "parallel", "FILE": "parallel", "OTHER": "model seq2seq"},
    "classify": {"TRAIN": "labelled", "TEST": "labelled", "FILE": "labelled"},
    "tag": {
        "TRAIN": "tagged",
        "TEST": "tagged",
        "DATA": "tagged",
        "FILE": "tagged",
        "TEST|PREDICTED": "tagged",
    },
}


def is_output(parameter: Parameter) -> bool:
    """Whether it names something to be written."""
    return parameter.name in OUTPUTS


def files_role(command: Command, parameter: Parameter) -> str:
    """Which of the sample files fit, "" if the parameter names none."""
    if is_output(parameter) or parameter.kind != "text":
        return ""
    metavar, group = parameter.metavar, command.name.split()[0]
    if here := _FILES_HERE.get((command.name, parameter.name)):
        return here
    if metavar.startswith("MODEL"):
        return f"model {group}"
    if role := _FILES_BY_GROUP.get(group, {}).get(metavar):
        return role
    if metavar and (role := _FILES_BY_NAME.get(parameter.name)):
        return role
    if role := _FILES_BY_METAVAR.get(metavar):
        return role
    return "text" if "FILE" in metavar or "PATH" in metavar else ""


def good_words(command: Command, parameter: Parameter) -> tuple[str, ...]:
    """Values that are no files and that a command should take."""
    if parameter.kind == "choice":
        return parameter.choices
    if listed := _LISTED.get((command.name, parameter.name)):
        return listed
    if parameter.kind == "integer" and parameter.name not in _WORDS:
        low = int(parameter.low or 0)
        high = int(parameter.high) if parameter.high is not None else low + 5
        return tuple(str(value) for value in sorted({low, min(low + 1, high), high}))
    if parameter.kind == "number" and parameter.name not in _WORDS:
        if parameter.metavar == "TIME":
            return _BY_METAVAR_WORDS["TIME"]
        low = parameter.low if parameter.low is not None else 0.0
        high = parameter.high if parameter.high is not None else low + 1.0
        return tuple(f"{value:g}" for value in (low, (low + high) / 2, high))
    by_name = _WORDS.get(parameter.name)
    return by_name or _BY_METAVAR_WORDS.get(parameter.metavar, ("x",))


def new_name(parameter: Parameter) -> str:
    """A name for something to be written."""
    if parameter.name == "plot":
        return "plot.svg"
    if parameter.metavar in ("MODEL", "VECTORS"):
        return "new.model"
    return "out" if parameter.metavar in ("DIR", "FOLDER") else "out.txt"


def is_needed(command: Command, parameter: Parameter) -> bool:
    """Whether a good command line has it."""
    if parameter.name in LEFT_OUT:
        return False
    return (
        parameter.required
        or (not parameter.flags and parameter.repeated)
        or (is_output(parameter) and parameter.default not in (None, "-"))
        or parameter.name in NEEDED.get(command.name, ())
        or quick_value(command, parameter) is not None
    )


def times(command: Command, parameter: Parameter) -> int:
    """How many values an argument needs."""
    several = parameter.repeated and not parameter.flags
    return TIMES.get(command.name, 1) if several else 1


def quick_value(command: Command, parameter: Parameter) -> str | None:
    """The value that keeps a command short."""
    if parameter.kind == "flag":
        return None
    here = QUICK_HERE.get(command.name, {})
    return here.get(parameter.name, QUICK.get(parameter.name))
