"""``nlpkit elmo``: train, embed, import."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from nlpkit import modeldir, textio
from nlpkit.cli import options
from nlpkit.cli.flags import argument, flag
from nlpkit.cli.frame import new_app
from nlpkit.cli.output import Notes, is_array, open_output, vector_lines
from nlpkit.cli.progress_training import check_place, draw_run, prepare_torch
from nlpkit.errors import UsageError
from nlpkit.tasks.elmo.settings import ElmoSettings
from nlpkit.text.pipeline import Tokens, TokenSettings, read_tokens
from nlpkit.text.records import TOKEN_KEYS, Reading, with_record

if TYPE_CHECKING:
    from nlpkit.models.elmo_model import ElmoModel, Floats

app = new_app("Word vectors in context by ELMo: train, embed, import.")


@app.command()
def train(
    *,
    text: options.Inputs = None,
    output: options.NewModel,
    tokenizing: options.Tokenizing,
    settings: ElmoSettings,
    flags: options.Training,
    reading: Reading,
) -> None:
    """Train an ELMo on text, one sentence per line.

    Words are what stands between spaces; name a --tokenizer for raw text. A forward and a backward
    language model read the characters of each word and predict the next one by an adaptive softmax.
    The loss is the mean of both directions, in nats per word.

    Examples:
      $ nlpkit elmo train sample_corpora/world.txt -o elmo.model --dim 64 --hidden 128 --epochs 2
      $ nlpkit elmo train sample_corpora/tales.txt -o tales.elmo -t word --max-time 60s
    """
    from nlpkit.device import memory_advice
    from nlpkit.tasks.elmo.train import ElmoRun, Sentences

    notes = check_place(output, flags)
    chosen = prepare_torch(flags, notes)
    blocks = options.read_plain(text, reading, TOKEN_KEYS)
    sentences = Sentences.read(
        line for rows in read_tokens(blocks, tokenizing.settings, reading.errors) for line in rows
    )
    with memory_advice():
        run = ElmoRun(sentences, settings, chosen)
    draw_run(run, output, notes, resume=flags.resume, force=flags.force)


@app.command()
def embed(
    *,
    model: options.Model,
    inputs: options.Inputs = None,
    layer: str | None = flag(
        None,
        "All layers, their mean, the top one, or layer N; 0 is the words by themselves.",
        metavar="all|mean|top|N",
        show_default="all",
    ),
    mix: str | None = flag(None, "The layers, each times its number, summed.", metavar="A,B,..."),
    tokenizing: options.Tokenizing,
    output: options.ArrayOutput = "-",
    format: options.VectorFormat = None,
    batch_tokens: int = flag(4096, "Words to a batch.", min=1, max=1_048_576),
    device: options.UseDevice = "auto",
    threads: options.Threads = 0,
    reading: Reading,
) -> None:
    """Give the vectors of words in their sentences, one sentence per line.

    JSON lines have the keys tokens and vectors: a row for each word, or with all layers a list of
    rows for each layer. An .npy file holds the rows of all words one after the other, with all
    layers as (layer, word, number); an .npz file has them as vectors, and lengths, the words of
    each line. Nothing is remembered from one line to the next, and batches do not matter.

    Examples:
      $ nlpkit elmo train sample_corpora/world.txt -o elmo.model --dim 64 --hidden 128 --epochs 2
      $ echo "Paris is the capital of France ." | nlpkit elmo embed elmo.model --layer top
      $ nlpkit elmo embed elmo.model sample_corpora/world.txt --mix 0.2,0.3,0.5 -o world.npz
    """
    from nlpkit.device import memory_advice, pick_device
    from nlpkit.models.elmo_model import ElmoModel

    if layer is not None and mix is not None:
        raise UsageError("--layer and --mix contradict each other")
    if format == "text" and layer in (None, "all") and mix is None:
        raise UsageError("--format text shows one vector of a word: --layer top, or --mix")
    array = is_array(output, format)
    paths = options.resolve_inputs(inputs)
    options.use_threads(threads)
    elmo = ElmoModel.load(model, pick_device(device))
    shares = _parse_mix(mix)
    tokens = tokenizing.settings
    lines = options.read_line_blocks(paths, reading, TOKEN_KEYS)
    with memory_advice("a smaller --batch-tokens"):
        found = _embedded(elmo, lines, tokens, layer or "all", shares, batch_tokens)
        if array:
            _write_arrays(output, found)
            return
        with open_output(output) as out:
            for line, words, vectors in found:
                if format == "text":
                    out.write(vector_lines(words, vectors.tolist()))
                else:
                    record = {"tokens": words, "vectors": vectors.tolist()}
                    out.write_json(with_record(line, record))
                out.flush()


def _embedded(
    elmo: ElmoModel,
    blocks: Iterable[list[str]],
    tokens: TokenSettings,
    layer: str,
    shares: list[float] | None,
    batch_tokens: int,
) -> Iterator[tuple[str, list[str], Floats]]:
    """Each line with its words and their vectors."""
    from nlpkit.models.elmo_model import mix_layers

    pipeline = Tokens(tokens)
    whole = layer == "all" and shares is None
    for lines in blocks:
        rows = [pipeline.shown(line) for line in lines]
        embedded = elmo.embed(rows, batch_tokens=batch_tokens)
        for line, words, layers in zip(lines, rows, embedded, strict=True):
            yield line, words, layers if whole else mix_layers(layers, layer, shares)


def _write_arrays(output: str, found: Iterator[tuple[str, list[str], Floats]]) -> None:
    import numpy as np

    parts, lengths = [], []
    for _, words, vectors in found:
        parts.append(vectors)
        lengths.append(len(words))
    joined = np.concatenate(parts, axis=-2) if parts else np.zeros((0, 0), np.float32)
    arrays: dict[str, Any] = {"vectors": joined}
    if output.endswith(".npz"):
        arrays["lengths"] = np.array(lengths, np.int64)
    textio.write_array(output, **arrays)


def _parse_mix(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--mix takes numbers between commas, not {text!r}") from None


@app.command()
def import_(
    source: str = argument(
        ..., "AllenNLP's options.json, or the folder with both.", metavar="SOURCE"
    ),
    weights: str | None = argument(None, "Its weights, an .hdf5 file.", metavar="WEIGHTS"),
    output: options.NewModel = ...,  # type: ignore[assignment]
    force: options.Force = False,
) -> None:
    """Take over an ELMo of AllenNLP: options.json and weights in HDF5.

    Needs the package h5py: pip install "nlpkit[elmo]". The vectors are those that AllenNLP gives
    without state; AllenNLP itself goes on from the batch before, so its vectors of a sentence
    depend on what it has read.

    Examples:
      $ nlpkit elmo import elmo_options.json elmo_weights.hdf5 -o elmo.model
      $ nlpkit elmo import allennlp-elmo/ -o elmo.model
    """
    from nlpkit.pretrained.elmo import find_files, import_elmo

    modeldir.check_new(output, force=force)
    if weights is None:
        if not os.path.isdir(source):
            raise UsageError("give the options and the weights, or a folder that has both")
        source, weights = find_files(source)
    elmo = import_elmo(source, weights)
    elmo.save(output, force=force)
    sizes = elmo.model.settings
    Notes().say(f"{sizes.layers} layers, {elmo.model.width} numbers in a vector; wrote {output}")
