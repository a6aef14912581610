"""What ``lm`` and ``gpt`` share: training, writing and conversing with any language model."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nlpkit import settings as limits
from nlpkit import textio
from nlpkit.cli import options
from nlpkit.cli.flags import flag_field
from nlpkit.cli.output import Notes, Writer, open_output
from nlpkit.cli.progress_training import check_place, draw_run, prepare_torch
from nlpkit.errors import NlpkitError, UsageError
from nlpkit.generate.settings import SamplingSettings
from nlpkit.signals import ask_to_stop
from nlpkit.tasks.lm.settings import WritingSettings
from nlpkit.text.records import TEXT_KEYS, Reading, row_lines, with_record
from nlpkit.training.run import Progress

if TYPE_CHECKING:
    from nlpkit.tasks.lm.model import Continuation, TextModel

Init = Annotated[
    str | None,
    typer.Option(
        "--init",
        metavar="MODEL",
        help="Start from a model's weights.",
        rich_help_panel=limits.MODEL,
    ),
]
SampleTokens = Annotated[
    int,
    typer.Option("--sample", min=0, max=10_000, help="Show so many tokens at each evaluation."),
]
Prompt = Annotated[
    str | None,
    typer.Argument(metavar="PROMPT", help="Text to go on from; - reads one per line."),
]


@dataclass(frozen=True)
class Request:
    """Flags of ``sample``, besides how to draw."""

    prompt: Prompt = None
    prompt_file: str | None = flag_field(None, "Go on from the whole of a file.", metavar="FILE")
    prompts: str | None = flag_field(
        None,
        "Go on from each prompt of a file of JSON lines; they may have several lines.",
        metavar="FILE",
    )
    stop: list[str] | None = flag_field(
        None, "End before this text; may be repeated.", metavar="TEXT"
    )
    logit_bias: list[str] | None = flag_field(
        None,
        "Add a number to the logit of a token; -100 forbids it. May be repeated.",
        metavar="TOKEN=N",
    )
    interactive: bool = flag_field(
        False, "A conversation on a terminal; Ctrl-C stops a sentence.", "--interactive", "-i"
    )
    turn: str | None = flag_field(
        None,
        "What a turn of --interactive looks like; {text} is what was typed.",
        metavar="TEMPLATE",
        shown_default="{text}",
    )
    stream: bool | None = flag_field(
        None, "Show tokens as they come.", "--stream/--no-stream", shown_default="on a terminal"
    )
    format: Literal["text", "jsonl"] | None = flag_field(
        None, "text: prompt and text; jsonl: one object per text.", "--format", "-f"
    )
    stats: bool = flag_field(False, "Say how fast it was, on stderr.")
    seed: options.Seed = 1

    @property
    def as_json(self) -> bool:
        """Whether objects are written, not text."""
        return self.format == "jsonl"


def start_run(
    make: Callable[[dict[str, Any]], Any], output: str, flags: options.Training, sample_tokens: int
) -> None:
    """Make a run for the device and process at hand, and see it to its end."""
    from nlpkit.training.distributed import Processes

    processes = Processes.from_environment()
    notes = check_place(output, flags, processes)
    chosen = processes.join(prepare_torch(flags, notes))
    run = make({"device": chosen, "processes": processes})
    if flags.resume and run.trainer is None:
        raise UsageError("n-grams are counted at once: there is nothing to resume")

    def show_sample(progress: Progress) -> None:
        if sample_tokens and progress.due:
            run.model.model.eval()
            written = run.model.sample("", sample_tokens, seed=run.settings.seed)
            notes.say(f"--- step {progress.step}\n{written}")

    draw_run(run, output, notes, resume=flags.resume, force=flags.force, on_progress=show_sample)


def run_sample(
    path: str,
    request: Request,
    use: options.Use,
    reading: Reading,
    sampling: SamplingSettings,
    writing: WritingSettings,
    *,
    gpt: bool = False,
) -> None:
    """Load a model and let it write."""
    from nlpkit.tasks.lm.model import GptModel, TextModel

    as_json = request.as_json  # --json and --format text are refused before anything is read
    given = (request.prompt, request.prompt_file, request.prompts)
    if sum(one is not None for one in given) > 1:
        raise UsageError("give one of PROMPT, --prompt-file and --prompts")
    prompts = [""] if request.interactive else _prompts(request, reading)
    model = (GptModel if gpt else TextModel).load(path)
    bias = tuple(_bias(model, text) for text in request.logit_bias or [])
    sampling = replace(sampling, logit_bias=bias)
    sampling.check_vocab(model.codec.n_ids)
    notes = Notes()
    _make_ready(model, prompts, use, writing, notes)
    if request.interactive:
        turn = request.turn or "{text}"
        converse(model, sampling, writing, request.stop or [], turn, request.seed)
    elif writing.beams:
        _write_beams(model, prompts, request, sampling, writing, as_json)
    else:
        _write_samples(model, prompts, request, sampling, writing, as_json)


def _make_ready(
    model: TextModel, prompts: list[str], use: options.Use, writing: WritingSettings, notes: Notes
) -> None:
    read = sum(len(model.encode_prompt(text)) for text in prompts)
    int8 = writing.quantize == "int8"
    if int8 and use.device == "auto":
        use = replace(use, device="cpu")
    tokens = writing.samples * (read + len(prompts) * writing.max_tokens)
    options.place(model.model, use, model.work(tokens))
    if writing.beams:
        return
    if int8 or model.pays_to_compile(writing.max_tokens):
        _announce_compiler(notes)
    if int8:
        model.quantize()
    else:
        model.speed_up(writing.max_tokens)


def _announce_compiler(notes: Notes) -> None:
    from nlpkit.kernels.compiling import FIRST_TIME, is_compiled
    from nlpkit.kernels.transformer import step

    if not is_compiled(step):
        notes.say(FIRST_TIME)


def _bias(model: TextModel, text: str) -> tuple[int, float]:
    token, equals, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        equals = ""
    if not equals or not token or not -1e4 <= value <= 1e4:
        raise UsageError(f"--logit-bias {text!r} is not TOKEN=N, such as ' the=-5'")
    ids = model.codec.encode(token)
    if len(ids) != 1:
        raise UsageError(f"--logit-bias {text!r}: {token!r} is {len(ids)} tokens for this model")
    return ids[0], value


def _prompts(request: Request, reading: Reading) -> list[str]:
    if request.prompt_file is not None:
        return ["".join(block.text() for block in textio.read_blocks([request.prompt_file]))]
    if request.prompts is not None:
        from nlpkit.tasks.lm.examples import read_examples

        (path,) = options.resolve_inputs([request.prompts])
        rows = row_lines(path, ("prompt",))
        name = textio.source_name(request.prompts)
        return [one.prompt for one in read_examples(rows, name, answers=False)]
    if request.prompt == textio.STDIN:
        keys = ("prompt", *TEXT_KEYS)
        lines = list(options.read_lines([textio.STDIN], reading, keys))
        if not lines:
            raise NlpkitError("no prompt on standard input", hint="one prompt per line")
        return lines
    return [request.prompt or ""]


def _write_samples(
    model: TextModel,
    prompts: list[str],
    request: Request,
    sampling: SamplingSettings,
    writing: WritingSettings,
    as_json: bool,
) -> None:
    from nlpkit.device import memory_advice

    rows = [text for text in prompts for _ in range(writing.samples)]
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    wanted = on_terminal if request.stream is None else request.stream
    live = len(rows) == 1 and not as_json and wanted
    started, drawn, first = time.perf_counter(), 0, 0.0
    finished: list[Continuation] = []
    with open_output("-") as out, memory_advice("fewer --samples or prompts at a time"):
        if live:
            out.write(rows[0])
            out.flush()
        for step in model.continue_prompts(
            rows,
            writing.max_tokens,
            sampling,
            request.seed,
            stop=request.stop or [],
            log_probabilities=as_json,
        ):
            drawn += len(step)
            first = first or time.perf_counter() - started
            finished = [row for row, _ in step]
            if live and step[0][1]:
                out.write(step[0][1])
                out.flush()
        if live:
            out.write("\n")
        else:
            _write_texts(out, model, finished, as_json)
    if request.stats:
        seconds = time.perf_counter() - started
        Notes().say(
            f"{drawn} tokens in {seconds:.2f} s, {drawn / seconds:.1f} tokens/s, "
            f"first after {first:.3f} s"
        )


def _write_texts(
    out: Writer, model: TextModel, finished: list[Continuation], as_json: bool
) -> None:
    for row in finished:
        if not as_json:
            out.write(f"{row.prompt}{row.text}\n")
            continue
        out.write_json(
            with_record(
                row.prompt,
                {
                    "prompt": row.prompt,
                    "text": row.text,
                    "tokens": [model.codec.decode([index]) for index in row.ids],
                    "logprobs": [round(score, 5) for score in row.log_probabilities],
                    "finish": "stop" if row.stopped else "length",
                },
            )
        )


def _write_beams(
    model: TextModel,
    prompts: list[str],
    request: Request,
    sampling: SamplingSettings,
    writing: WritingSettings,
    as_json: bool,
) -> None:
    from nlpkit.device import memory_advice

    with open_output("-") as out, memory_advice("fewer --beams"):
        for prompt in prompts:
            found = model.search(prompt, writing, sampling, request.stop or [])
            for text, beam in found[: writing.samples]:
                if as_json:
                    record = {
                        "prompt": prompt,
                        "text": text,
                        "score": round(beam.score, 5),
                        "logprob": round(beam.log_probability, 5),
                        "finish": "stop" if beam.ended else "length",
                    }
                    out.write_json(with_record(prompt, record))
                else:
                    out.write(f"{prompt}{text}\n")


_TEXT = "{text}"
_ASK = "> "


def converse(
    model: TextModel,
    sampling: SamplingSettings,
    writing: WritingSettings,
    stop: Sequence[str],
    turn: str,
    seed: int,
) -> None:
    """Read a line, write an answer, and so on; all that was said before is the context."""
    turn = turn.replace("\\n", "\n")
    if _TEXT not in turn:
        raise NlpkitError(f"`turn` {turn!r} has no {_TEXT}", hint=f"'User: {_TEXT}\\nBot:'")
    context = ""
    with open_output("-") as out:
        for number, line in enumerate(_lines(out)):
            context += turn.replace(_TEXT, line)
            context += _answer(out, model, context, sampling, writing, stop, seed + number)
            context += "\n"


def _lines(out: Writer) -> Iterator[str]:
    """What is typed, or piped in, line by line."""
    on_terminal = sys.stdin is not None and sys.stdin.isatty()
    while True:
        if on_terminal:
            out.write(_ASK)
            out.flush()
        line = sys.stdin.readline() if sys.stdin is not None else ""
        if not line:
            return
        yield line.rstrip("\r\n")


def _answer(
    out: Writer,
    model: TextModel,
    context: str,
    sampling: SamplingSettings,
    writing: WritingSettings,
    stop: Sequence[str],
    seed: int,
) -> str:
    written = ""
    with ask_to_stop() as stopped:
        steps = model.continue_prompts([context], writing.max_tokens, sampling, seed, stop=stop)
        for step in steps:
            written += step[0][1]
            out.write(step[0][1])
            out.flush()
            if stopped():
                break
    out.write("\n")
    out.flush()
    return written
