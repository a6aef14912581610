"""``nlpkit gpt sample`` and ``nlpkit gpt score``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nlpkit import settings as limits
from nlpkit import textio
from nlpkit.cli import options
from nlpkit.cli.frame import UsageError
from nlpkit.cli.output import Notes, Writer, open_output
from nlpkit.errors import NlpkitError

if TYPE_CHECKING:
    from nlpkit.tasks.lm.model import Continuation, GptModel

_STREAM = 1 << 12


def sample(
    model: options.Model,
    prompt: Annotated[
        str | None,
        typer.Argument(metavar="PROMPT", help="Text to go on from; - reads one a line."),
    ] = None,
    prompt_file: Annotated[
        str | None,
        typer.Option("--prompt-file", metavar="FILE", help="Go on from the whole of a file."),
    ] = None,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", "-n", min=1, max=limits.MANY, help="Tokens to write.")
    ] = 200,
    samples: Annotated[
        int, typer.Option("--samples", min=1, max=10_000, help="Texts for each prompt.")
    ] = 1,
    temperature: options.Temperature = 0.8,
    top_k: options.TopK = 0,
    top_p: options.TopP = 1.0,
    min_p: Annotated[
        float,
        typer.Option(
            "--min-p", help="Draw only from tokens this share, 0 to 1, as likely as the first."
        ),
    ] = 0.0,
    repetition_penalty: Annotated[
        float,
        typer.Option(
            "--repetition-penalty", help="Above 1, up to 100: tokens that were there, rarer."
        ),
    ] = 1.0,
    stop: Annotated[
        list[str] | None,
        typer.Option("--stop", metavar="TEXT", help="End before this text; may be repeated."),
    ] = None,
    stream: Annotated[
        bool | None,
        typer.Option(
            "--stream/--no-stream", help="Show tokens as they come.", show_default="on a terminal"
        ),
    ] = None,
    format: Annotated[
        Literal["text", "jsonl"] | None,
        typer.Option("--format", "-f", help="text: prompt and text; jsonl: one object per text."),
    ] = None,
    json: options.Json = False,
    stats: Annotated[bool, typer.Option("--stats", help="Say how fast it was, on stderr.")] = False,
    quantize: Annotated[
        Literal["none", "int8"], typer.Option("--quantize", help="Weights of 8 bits: faster.")
    ] = "none",
    seed: options.Seed = 1,
    device: options.UseDevice = "auto",
    threads: options.Threads = 0,
    quiet: options.Quiet = False,
) -> None:
    """Let a model write.

    Prompts on standard input, one a line, are continued together. Beyond its block size a model
    forgets the older half of its context. A text ends at --max-tokens, at --stop or where the model
    ends it (the end-of-text mark of subwords). Keys of --json: prompt, text, tokens, logprobs
    (natural logarithms, by token), finish (length or stop).

    Examples:
      $ nlpkit gpt train sample_corpora/tales.txt -o tales.model --max-time 30s
      $ nlpkit gpt sample tales.model "Once upon a time" -n 100
      $ nlpkit gpt sample tales.model "The " --samples 3 --stop . --temperature 0.5 --json
      $ printf 'One day\\nAt night\\n' | nlpkit gpt sample tales.model - -n 40
    """
    import torch

    from nlpkit.device import memory_advice, pick_device
    from nlpkit.generate.sampling import SamplingSettings
    from nlpkit.parallel import worker_count
    from nlpkit.tasks.lm.model import GptModel
    from nlpkit.text.codec import count_ids

    torch.set_num_threads(worker_count(threads))
    sampling = SamplingSettings(
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        repetition_penalty=repetition_penalty,
    )
    if prompt is not None and prompt_file is not None:
        raise UsageError("give a PROMPT or --prompt-file, not both")
    prompts = _prompts(prompt, prompt_file)
    rows = [text for text in prompts for _ in range(samples)]
    gpt = GptModel.load(model)
    sampling.check_vocab(count_ids(gpt.codec))
    read = sum(len(gpt.encode_prompt(text)) for text in prompts)
    device = "cpu" if device == "auto" and quantize == "int8" else device
    chosen = pick_device(device, gpt.work(samples * (read + len(prompts) * max_tokens)))
    gpt.model.to(chosen)
    notes = Notes(quiet)
    if quantize == "int8" or gpt.pays_to_compile(max_tokens):
        _announce_compiler(notes)
    if quantize == "int8":
        gpt.quantize()
    else:
        gpt.speed_up(max_tokens)
    as_json = options.pick_format(format, json, "text") == "jsonl"
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    live = len(rows) == 1 and not as_json and (on_terminal if stream is None else stream)
    notes.say(f"device {chosen}")
    started, drawn, first = time.perf_counter(), 0, 0.0
    finished: list[Continuation] = []
    with open_output("-") as out, memory_advice("fewer --samples or prompts at a time"):
        if live:
            out.write(rows[0])
            out.flush()
        for step in gpt.continue_prompts(
            rows, max_tokens, sampling, seed, stop=stop or (), log_probabilities=as_json
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
            _write_texts(out, gpt, finished, as_json)
    if stats:
        seconds = time.perf_counter() - started
        Notes().say(
            f"{drawn} tokens in {seconds:.2f} s, {drawn / seconds:.1f} tokens/s, "
            f"first after {first:.3f} s"
        )


def _announce_compiler(notes: Notes) -> None:
    from nlpkit.kernels.compiling import FIRST_TIME, is_compiled
    from nlpkit.kernels.transformer import step

    if not is_compiled(step):
        notes.say(FIRST_TIME)


def _prompts(prompt: str | None, prompt_file: str | None) -> list[str]:
    if prompt_file is not None:
        return ["".join(block.text() for block in textio.read_blocks([prompt_file]))]
    if prompt == textio.STDIN:
        lines = list(textio.read_lines(options.resolve_inputs([textio.STDIN])))
        if not lines:
            raise NlpkitError("no prompt on standard input", hint="a prompt a line")
        return lines
    return [prompt or ""]


def _write_texts(out: Writer, gpt: GptModel, finished: list[Continuation], as_json: bool) -> None:
    for row in finished:
        if not as_json:
            out.write(f"{row.prompt}{row.text}\n")
            continue
        out.write_json(
            {
                "prompt": row.prompt,
                "text": row.text,
                "tokens": [gpt.codec.decode([index]) for index in row.ids],
                "logprobs": [round(score, 5) for score in row.log_probabilities],
                "finish": "stop" if row.stopped else "length",
            }
        )


def score(
    model: options.Model,
    inputs: options.Inputs = None,
    lines: Annotated[bool, typer.Option("--lines", help="Score each line on its own.")] = False,
    stride: Annotated[
        int | None,
        typer.Option(
            "--stride",
            min=1,
            max=limits.LONGEST,
            help="Tokens from window to window.",
            show_default="half a block",
        ),
    ] = None,
    json: options.Json = False,
    device: options.UseDevice = "auto",
    threads: options.Threads = 0,
    encoding: options.Encoding = "utf-8",
    errors: options.Errors = "strict",
    quiet: options.Quiet = False,
) -> None:
    """Say how well a model predicts text: perplexity, bits per token and byte.

    Every token is predicted from at least half a block of context where there is so much. Columns
    and keys: perplexity, bits_per_token, bits_per_byte, tokens, bytes; with --lines also text.

    Examples:
      $ nlpkit gpt train sample_corpora/tales.txt -o tales.model --max-time 30s
      $ nlpkit gpt score tales.model sample_corpora/tales.txt
      $ printf 'Once upon a time.\\nxqz jjv\\n' | nlpkit gpt score tales.model --lines
    """
    import torch

    from nlpkit.device import pick_device
    from nlpkit.parallel import worker_count
    from nlpkit.tasks.lm.model import GptModel

    torch.set_num_threads(worker_count(threads))
    gpt = GptModel.load(model)
    paths = options.resolve_inputs(inputs)
    chosen = pick_device(device, gpt.work(sum(map(_guess_size, paths))))
    gpt.model.to(chosen)
    blocks = textio.read_blocks(paths, encoding=encoding, errors=errors)
    texts: Iterable[str] = (line for block in blocks for line in block.lines(errors))
    if not lines:
        texts = ["".join(block.text(errors) for block in blocks)]
    with open_output("-") as out:
        for text in texts:
            found = gpt.score(text, stride)
            record: dict[str, Any] = {
                "perplexity": round(found.perplexity, 4),
                "bits_per_token": round(found.bits_per_token, 4),
                "bits_per_byte": round(found.bits_per_byte, 4),
                "tokens": found.tokens,
                "bytes": found.bytes,
                **({"text": text} if lines else {}),
            }
            if not lines and not found.tokens:
                raise NlpkitError("no text to score", hint="a file that is not empty")
            if json:
                out.write_json(record)
            elif lines:
                out.write("\t".join(str(value) for value in record.values()) + "\n")
            else:
                out.write("".join(f"{name}\t{value}\n" for name, value in record.items()))
    Notes(quiet).say(f"device {chosen}")


def _guess_size(path: str) -> int:
    """Bytes of a file; of a stream, which may be of any length, a guess."""
    return os.path.getsize(path) if os.path.isfile(path) else _STREAM
