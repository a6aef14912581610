"""``nlpkit lm sample``, ``score`` and ``next``."""

from __future__ import annotations

from nlpkit.cli import lm_score, lm_use, options
from nlpkit.cli.flags import argument, flag, with_settings
from nlpkit.cli.output import open_output, rows_format, write_rows
from nlpkit.generate.settings import SamplingSettings
from nlpkit.tasks.lm.settings import WritingSettings
from nlpkit.text.records import Reading
from nlpkit.text.vocab import on_one_line


@with_settings(
    SamplingSettings, WritingSettings, lm_use.Request, options.Use, Reading, temperature=0.8
)
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


@with_settings(lm_score.Scoring, options.Use, Reading)
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


@with_settings(options.Use, Reading)
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
