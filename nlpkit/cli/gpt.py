"""``nlpkit gpt``: train, sample, score, import, export, attention."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nlpkit import modeldir, textio
from nlpkit.cli import options
from nlpkit.cli.frame import Command, UsageError, new_app
from nlpkit.cli.output import Notes, Writer, open_output
from nlpkit.cli.progress_training import draw_training, prepare_torch
from nlpkit.errors import NlpkitError
from nlpkit.lm.recipes import GptSettings

if TYPE_CHECKING:
    from nlpkit.lm.gptmodel import Continuation, GptModel
    from nlpkit.training import Progress

DEFAULTS = GptSettings()
app = new_app("GPT models: train, sample, score, import, export, attention.")


@app.command(cls=Command)
def train(
    text: options.Inputs = None,
    output: options.NewModel = ...,  # type: ignore[assignment]
    tokenizer: Annotated[
        str | None,
        typer.Option(
            "--tokenizer",
            "-t",
            metavar="char|byte|PATH",
            help="Characters, bytes, or the subwords of a tokenizer.json.",
            show_default="char, or that of --init",
        ),
    ] = None,
    size: Annotated[
        str, typer.Option("--size", help="nano, micro, mini, small or gpt2: sets the next five.")
    ] = DEFAULTS.size,
    layers: Annotated[int | None, typer.Option("--layers", min=1, help="Depth.")] = None,
    heads: Annotated[int | None, typer.Option("--heads", min=1, help="Attention heads.")] = None,
    dim: Annotated[int | None, typer.Option("--dim", min=2, help="Width.")] = None,
    block_size: Annotated[
        int | None, typer.Option("--block-size", min=2, help="Longest context, in tokens.")
    ] = None,
    batch_size: options.BatchSize = None,
    dropout: options.Dropout = DEFAULTS.dropout,
    optimizer: Annotated[
        Literal["muon", "adamw"],
        typer.Option("--optimizer", help="muon: Muon for the matrices of blocks, AdamW else."),
    ] = DEFAULTS.optimizer,
    lr: options.LearningRate = DEFAULTS.lr,
    weight_decay: options.WeightDecay = DEFAULTS.weight_decay,
    warmup: Annotated[
        float,
        typer.Option("--warmup", min=0.0, max=1.0, help="Share of the run with a rising rate."),
    ] = DEFAULTS.warmup,
    schedule: Annotated[
        Literal["linear", "cosine", "constant"],
        typer.Option("--schedule", help="How the learning rate falls after that, to 0 or not."),
    ] = DEFAULTS.schedule,
    grad_clip: Annotated[
        float, typer.Option("--grad-clip", min=0.0, help="Longest gradient; 0 for any.")
    ] = DEFAULTS.grad_clip,
    grad_accum: Annotated[
        int, typer.Option("--grad-accum", min=1, help="Batches to a step.")
    ] = DEFAULTS.grad_accum,
    max_iters: Annotated[
        int | None, typer.Option("--max-iters", min=1, help="Steps, when there is no --max-time.")
    ] = DEFAULTS.max_iters,
    max_time: options.MaxTime = None,
    eval_interval: Annotated[
        int | None,
        typer.Option(
            "--eval-interval", min=1, help="Steps between evaluations.", show_default="20 in all"
        ),
    ] = None,
    val_fraction: Annotated[
        float,
        typer.Option("--val-fraction", min=0.0, max=0.9, help="Last part of the text to hold out."),
    ] = DEFAULTS.val_fraction,
    sample_tokens: Annotated[
        int, typer.Option("--sample", min=0, help="Show so many tokens at each evaluation.")
    ] = 0,
    dtype: Annotated[
        Literal["float32", "bfloat16"], typer.Option("--dtype", help="Of the arithmetic.")
    ] = DEFAULTS.dtype,
    compile: Annotated[
        bool, typer.Option("--compile", help="Compile the model: pays in long runs.")
    ] = False,
    init: Annotated[
        str | None, typer.Option("--init", metavar="MODEL", help="Start from a model's weights.")
    ] = None,
    freeze: Annotated[
        int, typer.Option("--freeze", min=0, help="Lowest layers of --init to leave alone.")
    ] = DEFAULTS.freeze,
    seed: options.Seed = 1,
    device: options.Device = "auto",
    threads: options.Threads = 0,
    force: options.Force = False,
    resume: options.Resume = False,
    config: options.Config = None,
    encoding: options.Encoding = "utf-8",
    errors: options.Errors = "strict",
    quiet: options.Quiet = False,
) -> None:
    """Train a GPT on text.

    The last part of the text is held out; the loss on all of it is measured in the end. Under
    torchrun (torchrun --no-python nlpkit gpt train ...) the processes share the work: each step
    sees --batch-size windows of each.

    Examples:
      $ nlpkit gpt train sample_corpora/tales.txt -o tales.model --max-time 30s
      $ nlpkit gpt train sample_corpora/world.txt -o world.gpt --size nano --max-iters 100
      $ nlpkit gpt train sample_corpora/tales.txt -o more.model --init tales.model --max-iters 20
    """
    from nlpkit.lm.distributed import Processes
    from nlpkit.lm.gptmodel import KIND, GptModel
    from nlpkit.lm.gpttrain import new_model, prepare_training, stream_loss
    from nlpkit.lm.stream import split_stream, tokenize_stream
    from nlpkit.training import memory_advice

    processes = Processes.from_environment()
    notes = Notes(quiet or not processes.is_first)
    if freeze and init is None:
        raise UsageError("--freeze needs --init")
    given: dict[str, Any] = {
        "layers": layers,
        "heads": heads,
        "dim": dim,
        "block_size": block_size,
        "batch_size": batch_size,
        "dropout": dropout,
        "optimizer": optimizer,
        "lr": lr,
        "weight_decay": weight_decay,
        "warmup": warmup,
        "schedule": schedule,
        "grad_clip": grad_clip,
        "grad_accum": grad_accum,
        "max_iters": max_iters,
        "max_time": max_time,
        "eval_interval": eval_interval,
        "val_fraction": val_fraction,
        "dtype": dtype,
        "freeze": freeze,
    }
    given = {name: value for name, value in given.items() if value is not None}
    settings = GptSettings(size=size, compile=compile, seed=seed, **given).resolve()
    if processes.is_first:
        modeldir.check_new(output, force=force)
    chosen = processes.join(prepare_torch(device, threads, notes))
    start = None if init is None else GptModel.load(init)
    blocks = textio.read_blocks(options.resolve_inputs(text), encoding=encoding, errors=errors)
    folder = os.path.dirname(os.path.abspath(output))
    codec, ids = tokenize_stream(
        blocks, tokenizer or "char", folder, errors, start.codec if start else None
    )
    if start is not None:
        model = start.model.requires_grad_(True)
        if any(name in given for name in ("layers", "heads", "dim", "block_size")):
            raise UsageError("--init brings its own --layers, --heads, --dim and --block-size")
    else:
        with memory_advice():
            model = new_model(settings, len(codec))
    model = model.to(chosen)
    training, validation = split_stream(ids, model.settings.block_size, settings.val_fraction)
    notes.say(
        f"{len(training):,} tokens to learn from, {len(validation):,} held out, "
        f"{len(codec):,} kinds; {model.count_parameters():,} parameters"
    )
    trainer = prepare_training(model, training, validation, settings, processes)
    gpt = GptModel(model, codec)
    data = modeldir.data_hash([ids.tobytes()])
    run = {**vars(settings), "processes": processes.count}
    checkpoint = modeldir.checkpoint_path(output)
    if resume:
        trainer.load(checkpoint, run, data)

    def show_sample(progress: Progress) -> None:
        if sample_tokens and progress.heldout is not None:
            notes.say(f"--- step {progress.step}\n{_sample_text(gpt, sample_tokens, seed)}")

    if processes.is_first:
        draw_training(
            trainer,
            notes,
            checkpoint=checkpoint,
            settings=run,
            data_hash=data,
            on_progress=show_sample,
        )
    else:
        for _ in trainer.fit():
            pass
        trainer.keep_best()
    if processes.is_first:
        loss = stream_loss(model, validation)
        values = {name: value for name, value in vars(settings).items() if value is not None}
        for internal in ("muon_lr", "freeze"):
            values.pop(internal)
        architecture = model.settings.to_dict()
        record = modeldir.ModelConfig(
            kind=KIND,
            settings={**values, "architecture": architecture},
            seed=seed,
            data_hash=data,
            metrics={"heldout_loss": loss},
        )
        with modeldir.create(output, record, force=force) as target:
            gpt.save(target)
            modeldir.write_metrics(target, trainer.counters.records)
        notes.say(f"held-out loss {loss:.4f} nats per token; wrote {output}")
    processes.leave()


def _sample_text(gpt: GptModel, tokens: int, seed: int) -> str:
    from nlpkit.lm.sampling import SamplingSettings

    steps = gpt.continue_prompts([""], tokens, SamplingSettings(temperature=0.8), seed)
    return "".join(new for step in steps for _, new in step)


@app.command(cls=Command)
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
        int, typer.Option("--max-tokens", "-n", min=1, help="Tokens to write.")
    ] = 200,
    samples: Annotated[int, typer.Option("--samples", min=1, help="Texts for each prompt.")] = 1,
    temperature: options.Temperature = 0.8,
    top_k: options.TopK = 0,
    top_p: options.TopP = 1.0,
    min_p: Annotated[
        float,
        typer.Option("--min-p", help="Draw only from tokens this share as likely as the first."),
    ] = 0.0,
    repetition_penalty: Annotated[
        float, typer.Option("--repetition-penalty", help="Above 1: tokens that were there, rarer.")
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
        typer.Option("--format", "-f", help="text: prompt and text; jsonl: an object a text."),
    ] = None,
    json: options.Json = False,
    stats: Annotated[bool, typer.Option("--stats", help="Say how fast it was, on stderr.")] = False,
    quantize: Annotated[
        Literal["none", "int8"], typer.Option("--quantize", help="Weights of 8 bits: faster.")
    ] = "none",
    seed: options.Seed = 1,
    device: options.Device = "cpu",
    threads: options.Threads = 0,
) -> None:
    """Let a model write.

    Prompts on standard input, one a line, are continued together. Beyond its block size a model
    forgets the older half of its context. Keys of --json: prompt, text, tokens, logprobs (natural
    logarithms, by token), finish (length or stop).

    Examples:
      $ nlpkit gpt train sample_corpora/tales.txt -o tales.model --max-time 30s
      $ nlpkit gpt sample tales.model "Once upon a time" -n 100
      $ nlpkit gpt sample tales.model "The " --samples 3 --stop . --temperature 0.5 --json
      $ printf 'One day\\nAt night\\n' | nlpkit gpt sample tales.model - -n 40
    """
    import torch

    from nlpkit.lm.gptmodel import GptModel
    from nlpkit.lm.sampling import SamplingSettings
    from nlpkit.training import memory_advice, pick_device

    torch.set_num_threads(options.resolve_jobs(threads))
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
    gpt = GptModel.load(model, pick_device(device))
    if quantize == "int8":
        gpt.quantize()
    else:
        gpt.speed_up()
    as_json = options.pick_format(format, json, "text") == "jsonl"
    rows = [text for text in prompts for _ in range(samples)]
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    live = len(rows) == 1 and not as_json and (on_terminal if stream is None else stream)
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


@app.command(cls=Command)
def score(
    model: options.Model,
    inputs: options.Inputs = None,
    lines: Annotated[bool, typer.Option("--lines", help="Score each line on its own.")] = False,
    stride: Annotated[
        int | None,
        typer.Option(
            "--stride", min=1, help="Tokens from window to window.", show_default="half a block"
        ),
    ] = None,
    json: options.Json = False,
    device: options.Device = "cpu",
    threads: options.Threads = 0,
    encoding: options.Encoding = "utf-8",
    errors: options.Errors = "strict",
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

    from nlpkit.lm.gptmodel import GptModel
    from nlpkit.training import pick_device

    torch.set_num_threads(options.resolve_jobs(threads))
    gpt = GptModel.load(model, pick_device(device))
    blocks = textio.read_blocks(options.resolve_inputs(inputs), encoding=encoding, errors=errors)
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


@app.command("import", cls=Command)
def import_(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A Hugging Face GPT-2 folder, or a ckpt.pt.")
    ],
    output: options.NewModel = ...,  # type: ignore[assignment]
    tokenizer: Annotated[
        str | None,
        typer.Option("--tokenizer", metavar="PATH", help="A tokenizer.json or GPT-2 folder."),
    ] = None,
    meta: Annotated[
        str | None,
        typer.Option(
            "--characters", metavar="FILE", help="The training text of a character model."
        ),
    ] = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Take over a GPT-2 of Hugging Face's form, or a checkpoint of nanoGPT.

    A folder has config.json, *.safetensors, and tokenizer.json or vocab.json + merges.txt. A
    nanoGPT checkpoint knows no tokeniser: name one, or give the text whose characters it learned.

    Examples:
      $ nlpkit gpt import gpt2/ -o gpt2.model
      $ nlpkit gpt import out/ckpt.pt --characters input.txt -o shakespeare.model
    """
    from nlpkit.lm.gpt2 import import_gpt2, import_nanogpt
    from nlpkit.lm.gptmodel import KIND

    modeldir.check_new(output, force=force)
    if Path(source).is_dir():
        gpt = import_gpt2(source, tokenizer)
    else:
        characters = None
        if meta is not None:
            characters = "".join(block.text() for block in textio.read_blocks([meta]))
        gpt = import_nanogpt(source, tokenizer, characters)
    record = modeldir.ModelConfig(
        kind=KIND, settings={"architecture": gpt.model.settings.to_dict()}
    )
    with modeldir.create(output, record, force=force) as folder:
        gpt.save(folder)
    Notes(quiet).say(f"{gpt.model.count_parameters():,} parameters; wrote {output}")


@app.command(cls=Command)
def export(
    model: options.Model,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="The folder to write.")
    ],
    to: Annotated[Literal["hf"], typer.Option("--to", help="hf: Hugging Face's form.")] = "hf",
    quiet: options.Quiet = False,
) -> None:
    """Write a GPT-2 model as a folder that transformers loads.

    Only models of GPT-2's kind fit that form: those that came in by nlpkit gpt import, trained
    further or not.

    Examples:
      $ nlpkit gpt export gpt2.model --to hf -o gpt2-again/
    """
    from nlpkit.lm.gpt2 import export_gpt2
    from nlpkit.lm.gptmodel import GptModel

    export_gpt2(GptModel.load(model), output)
    Notes(quiet).say(f"wrote {output}")


@app.command(cls=Command)
def attention(
    model: options.Model,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to read.")],
    layer: Annotated[
        int | None, typer.Option("--layer", min=1, help="Only this layer, from 1.")
    ] = None,
    head: Annotated[
        int | None, typer.Option("--head", min=1, help="Only this head, from 1.")
    ] = None,
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="FILE", help="Draw it to a picture.")
    ] = None,
) -> None:
    """Show what each token looks at: attention weights, by layer and head, as JSON lines.

    Keys: layer, head, tokens, weights (a row for each token: what it looks at, from the first to
    itself, adds up to 1).

    Examples:
      $ nlpkit gpt train sample_corpora/tales.txt -o tales.model --max-time 30s
      $ nlpkit gpt attention tales.model "Once upon a time" --layer 1 --head 2
      $ nlpkit gpt attention tales.model "Once upon a time" --plot attention.png > weights.jsonl
    """
    from nlpkit.lm.attention import attention_records, draw_attention
    from nlpkit.lm.gptmodel import GptModel
    from nlpkit.pictures import check_picture

    if plot is not None:
        check_picture(plot)
    records = attention_records(GptModel.load(model), text, layer, head)
    if plot is not None:
        draw_attention(records, plot)
    with open_output("-") as out:
        for record in records:
            out.write_json(record)
