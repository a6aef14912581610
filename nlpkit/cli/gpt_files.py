"""``nlpkit gpt import``, ``export`` and ``attention``: what goes into and out of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from nlpkit import modeldir, textio
from nlpkit import settings as limits
from nlpkit.cli import inspect_output, options
from nlpkit.cli.flags import argument, flag
from nlpkit.cli.output import Notes, open_output


def import_(
    source: str = argument(..., "A Hugging Face GPT-2 folder, or a ckpt.pt.", metavar="SOURCE"),
    output: options.NewModel = ...,  # type: ignore[assignment]
    tokenizer: str | None = flag(None, "A tokenizer.json or GPT-2 folder.", metavar="PATH"),
    meta: str | None = flag(
        None, "The training text of a character model.", "--characters", metavar="FILE"
    ),
    force: options.Force = False,
) -> None:
    """Take over a GPT-2 of Hugging Face's form, or a checkpoint of nanoGPT.

    A folder has config.json, *.safetensors, and tokenizer.json or vocab.json + merges.txt. A
    nanoGPT checkpoint knows no tokeniser: name one, or give the text whose characters it learned.
    A configuration that asks for other arithmetic than GPT-2's is honoured or refused.

    Examples:
      $ nlpkit gpt import gpt2/ -o gpt2.model
      $ nlpkit gpt import out/ckpt.pt --characters input.txt -o shakespeare.model
    """
    from nlpkit.pretrained.gpt2 import import_gpt2, import_nanogpt

    modeldir.check_new(output, force=force)
    if Path(source).is_dir():
        gpt = import_gpt2(source, tokenizer)
    else:
        characters = None
        if meta is not None:
            characters = "".join(block.text() for block in textio.read_blocks([meta]))
        gpt = import_nanogpt(source, tokenizer, characters)
    gpt.save(output, force=force)
    Notes().say(f"{gpt.model.count_parameters():,} parameters; wrote {output}")


def export(
    model: options.Model,
    output: str = flag(..., "The folder to write.", "--output", "-o", metavar="DIR"),
    to: Literal["hf"] = flag("hf", "hf: Hugging Face's form."),
) -> None:
    """Write a GPT-2 model as a folder that transformers loads.

    Only models of GPT-2's kind and of subwords fit that form: those from nlpkit gpt train
    --recipe gpt2 -t tokenizer.json, and those from nlpkit gpt import, trained further or not. The
    recipe modern does not fit, whatever its --size.

    Examples:
      $ nlpkit bpe train sample_corpora/tales.txt -o tales.json --vocab-size 500
      $ nlpkit gpt train sample_corpora/tales.txt -o tales.gpt2 --recipe gpt2 -t tales.json
      $ nlpkit gpt export tales.gpt2 --to hf -o tales-hf/
    """
    from nlpkit.pretrained.gpt2 import export_gpt2
    from nlpkit.pretrained.hugging_face import check_export
    from nlpkit.tasks.lm.model import GptModel

    check_export(output)
    export_gpt2(GptModel.load(model), output)
    Notes().say(f"wrote {output}")


def attention(
    model: options.Model,
    text: str = argument(..., "What to read.", metavar="TEXT"),
    layer: int | None = flag(None, "Only this layer, from 1.", min=1, max=limits.DEEPEST),
    head: int | None = flag(None, "Only this head, from 1.", min=1, max=limits.DEEPEST),
    plot: str | None = flag(None, "Draw it: .png, .svg, .pdf or .html.", metavar="FILE"),
    format: inspect_output.MapFormat = None,
) -> None:
    """Show what each token looks at: attention weights, by layer and head.

    On a terminal a heat map of characters, else JSON lines. Keys: layer, head, tokens, weights (a
    row for each token: what it looks at, from the first to itself, adds up to 1).

    Examples:
      $ nlpkit gpt train sample_corpora/tales.txt -o tales.model --max-time 30s
      $ nlpkit gpt attention tales.model "Once upon a time" --layer 1 --head 2
      $ nlpkit gpt attention tales.model "Once upon a time" --plot attention.png > weights.jsonl
    """
    from nlpkit.plots import check_picture
    from nlpkit.tasks.lm.attention import attention_records
    from nlpkit.tasks.lm.model import GptModel

    chosen = inspect_output.shown_as(format)
    if plot is not None:
        check_picture(plot)
    records = attention_records(GptModel.load(model), text, layer, head)
    with open_output("-") as out:
        inspect_output.write_attention(out, records, plot, chosen)
