"""``nlpkit lm``: train, sample, score, next, import, export; others are in ``lm_analysis``."""

from __future__ import annotations

import os

from nlpkit import modeldir, textio
from nlpkit import settings as limits
from nlpkit.cli import lm_analysis, lm_score, lm_use, options
from nlpkit.cli.flags import argument, flag
from nlpkit.cli.frame import new_app
from nlpkit.cli.lm_use import Init, SampleTokens, start_run
from nlpkit.cli.output import Notes, check_output, open_output, rows_format, write_rows
from nlpkit.errors import NlpkitError
from nlpkit.generate.settings import SamplingSettings
from nlpkit.tasks.lm.settings import LmSettings, WritingSettings
from nlpkit.text.records import Reading
from nlpkit.text.vocab import on_one_line

app = new_app("Language models of text, n-grams to GPT: train, sample, score, ask, compare.")


@app.command()
def train(
    *,
    settings: LmSettings,
    text: options.Inputs = None,
    output: options.NewModel,
    tokenizer: str | None = flag(
        None,
        "Characters, bytes, words, or the subwords of a tokenizer.json.",
        "--tokenizer",
        "-t",
        metavar="char|byte|word|whitespace|PATH",
        show_default="char, or that of --init",
        rich_help_panel=limits.DATA,
    ),
    init: Init = None,
    sample_tokens: SampleTokens = 0,
    flags: options.Training,
    reading: Reading,
) -> None:
    """Train a language model on text: n-grams, an MLP, an RNN, LSTM, GRU or GPT.

    The last part of the text is held out; the loss on all of it is measured in the end. N-grams are
    counted in constant memory, by sorted runs in temporary files beside the model. Recurrent models
    carry their state over from block to block of the text (truncated back-propagation through
    time). Gradient norms by layer and by distance in time are written to the metrics, which
    info --json shows. Under torchrun the processes share the work.

    Examples:
      $ nlpkit lm train sample_corpora/tales.txt -o 3gram.model --model ngram --order 3 -t word
      $ nlpkit lm train sample_corpora/tales.txt -o lstm.model --model lstm --max-time 30s
      $ nlpkit lm train sample_corpora/tales.txt -o rnn.model --model rnn --dim 64 --max-iters 100
      $ nlpkit lm train sample_corpora/tales.txt -o mlp.model --model mlp --direct --max-iters 100
    """
    from nlpkit.tasks.lm.run import LmRun

    start_run(
        lambda where: LmRun(
            options.read_plain(text, reading),
            settings,
            tokenizer=tokenizer,
            init=init,
            folder=os.path.dirname(os.path.abspath(output)),
            errors=reading.errors,
            **where,
        ),
        output,
        flags,
        sample_tokens,
    )


@app.command(defaults={"temperature": 0.8})
def sample(
    sampling: SamplingSettings,
    writing: WritingSettings,
    model: options.Model,
    request: lm_use.Request,
    use: options.Use,
    reading: Reading,
) -> None:
    """Let any language model write.

    Prompts on standard input, one per line, are continued together. A text ends at --max-tokens, at
    --stop or where the model ends it (the end of a line, where it was trained on lines). Keys of
    --json: prompt, text, tokens, logprobs (natural logarithms, by token), finish (length or stop);
    with --beams score and logprob.

    Examples:
      $ nlpkit lm train sample_corpora/tales.txt -o lstm.model --model lstm --max-time 30s
      $ nlpkit lm sample lstm.model "Once upon a time" -n 100
      $ nlpkit lm sample lstm.model "The " -n 60 --typical-p 0.9 --presence-penalty 0.3
      $ nlpkit lm sample lstm.model "The king" -n 20 --beams 4 --samples 2 --json
    """
    lm_use.run_sample(model, request, use, reading, sampling, writing)


@app.command()
def score(
    *,
    model: options.Model,
    inputs: options.Inputs = None,
    scoring: lm_score.Scoring,
    use: options.Use,
    reading: Reading,
) -> None:
    """Say how well a model predicts text: perplexity by token and word, bits per byte.

    Perplexity per word and bits per byte can be compared between tokenisers. Text of any length is
    read in constant memory. Columns and keys: perplexity, bits_per_token, bits_per_byte, tokens,
    bytes, perplexity_per_word, words (between white space); for models of words also unknown and
    perplexity_of_known; with --lines also text. Keys of --tokens: token, logprob (natural
    logarithm).

    Examples:
      $ nlpkit lm train sample_corpora/tales.txt -o 3gram.model --model ngram --order 3 -t word
      $ nlpkit lm score 3gram.model sample_corpora/tales.txt
      $ printf 'Once upon a time.\\nking the saw\\n' | nlpkit lm score 3gram.model --lines
      $ printf 'Once upon a time.\\n' | nlpkit lm score 3gram.model --tokens
    """
    lm_score.run_score(model, inputs, scoring, use, reading)


@app.command()
def next_(
    *,
    model: options.Model,
    text: str | None = argument(
        None, "What comes before.", metavar="TEXT", show_default="one per line"
    ),
    count: int = flag(5, "Continuations to show.", "--count", "-n", "-k", min=1, max=10_000),
    words: bool = flag(False, "Whole words instead of single tokens."),
    format: options.RowsFormat = None,
    use: options.Use,
    reading: Reading,
) -> None:
    """Show the likeliest continuations of a text, with their probabilities.

    Without TEXT each line, or record with the key text, of standard input is one. With --words the
    likeliest ways to go on to the end of a word are searched for. Columns and keys: text, next,
    probability.

    Examples:
      $ nlpkit lm train sample_corpora/tales.txt -o 3gram.model --model ngram --order 3 -t word
      $ nlpkit lm next 3gram.model "Once upon a" -k 3
      $ printf 'the old\\nthe young\\n' | nlpkit lm next 3gram.model --json
    """
    from nlpkit.tasks.lm.ask import next_tokens, next_words
    from nlpkit.tasks.lm.model import TextModel

    chosen = rows_format(format)
    found = TextModel.load(model)
    options.place(found.model, use, found.work(count))
    texts = iter([text]) if text is not None else options.read_lines(None, reading)
    ask = next_words if words else next_tokens
    columns = ("text", "next", "probability")
    rows = (
        (one, new if chosen == "jsonl" else on_one_line(new), round(probability, 6))
        for one in texts
        for new, probability in ask(found, one, count)
    )
    with open_output("-") as out:
        write_rows(out, columns, rows, chosen)


for function in (lm_analysis.compare, lm_analysis.novelty, lm_analysis.inspect):
    app.command()(function)


@app.command()
def import_(
    arpa: str = argument(..., "An ARPA file, .gz and the like too.", metavar="ARPA"),
    output: options.NewModel = ...,  # type: ignore[assignment]
    force: options.Force = False,
) -> None:
    """Read an n-gram model from an ARPA file, as KenLM, SRILM and others write it.

    Words are taken as they stand between white space.

    Examples:
      $ nlpkit lm train sample_corpora/tales.txt -o 3gram.model --model ngram --order 3 -t word
      $ nlpkit lm export 3gram.model -o 3gram.arpa
      $ nlpkit lm import 3gram.arpa -o again.model
    """
    from nlpkit.pretrained.arpa_model import load_arpa

    modeldir.check_new(output, force=force)
    found = load_arpa(textio.read_lines([arpa]), textio.source_name(arpa))
    found.save(output, force=force)
    sizes = found.config.settings["levels"]
    Notes().say(f"{sizes[-1] - 1:,} n-grams, vocabulary of {len(found.codec):,}: {output}")


@app.command()
def export(
    model: options.Model,
    output: options.Output = "-",
) -> None:
    """Write an n-gram model as an ARPA file, which KenLM, SRILM and speech recognisers read.

    Examples:
      $ nlpkit lm train sample_corpora/tales.txt -o 3gram.model --model ngram --order 3 -t word
      $ nlpkit lm export 3gram.model -o 3gram.arpa
    """
    from nlpkit.models.ngram_text import NGramText
    from nlpkit.pretrained.arpa import write_arpa
    from nlpkit.pretrained.arpa_model import token_names
    from nlpkit.tasks.lm.model import TextModel

    check_output(output)
    found = TextModel.load(model)
    if not isinstance(found.model, NGramText):
        raise NlpkitError(f"{model} holds no n-grams", hint="a model of lm train --model ngram")
    with open_output(output) as out:
        for text in write_arpa(found.model.trie, token_names(found.codec)):
            out.write(text)
