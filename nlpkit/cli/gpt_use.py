"""``nlpkit gpt sample`` and ``nlpkit gpt score``: those of ``nlpkit lm`` with a GPT."""

from __future__ import annotations

from nlpkit.cli import lm_score, lm_use, options
from nlpkit.cli.flags import with_settings
from nlpkit.generate.settings import SamplingSettings
from nlpkit.tasks.lm.settings import WritingSettings
from nlpkit.text.records import Reading


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
    """Let a model write.

    Prompts on standard input, one per line, are continued together. Beyond its block size a model
    forgets the older half of its context. A text ends at --max-tokens, at --stop or where the model
    ends it (the end-of-text mark of subwords). Keys of --json: prompt, text, tokens, logprobs
    (natural logarithms, by token), finish (length or stop); with --beams score and logprob.

    Examples:
      $ nlpkit gpt train sample_corpora/tales.txt -o tales.model --max-time 30s
      $ nlpkit gpt sample tales.model "Once upon a time" -n 100
      $ nlpkit gpt sample tales.model "The " --samples 3 --stop . --temperature 0.5 --json
      $ printf 'One day\\nAt night\\n' | nlpkit gpt sample tales.model - -n 40
      $ nlpkit gpt sample tales.model "The king" -n 20 --beams 4 --samples 2 --json
    """
    lm_use.run_sample(model, request, use, reading, sampling, writing, gpt=True)


@with_settings(lm_score.Scoring, options.Use, Reading)
def score(
    *,
    model: options.Model,
    inputs: options.Inputs = None,
    scoring: lm_score.Scoring,
    use: options.Use,
    reading: Reading,
) -> None:
    """Say how well a model predicts text: perplexity, bits per token and byte.

    Every token is predicted from at least half a block of context where there is so much. Columns
    and keys: perplexity, bits_per_token, bits_per_byte, tokens, bytes, perplexity_per_word, words
    (between white space); with --lines also text.

    Examples:
      $ nlpkit gpt train sample_corpora/tales.txt -o tales.model --max-time 30s
      $ nlpkit gpt score tales.model sample_corpora/tales.txt
      $ printf 'Once upon a time.\\nxqz jjv\\n' | nlpkit gpt score tales.model --lines
      $ printf 'Once upon a time.\\n' | nlpkit gpt score tales.model --tokens
    """
    lm_score.run_score(model, inputs, scoring, use, reading, gpt=True)
