"""``nlpkit lm import`` and ``nlpkit lm export``: n-gram models as ARPA files."""

from __future__ import annotations

from nlpkit import modeldir, textio
from nlpkit.cli import options
from nlpkit.cli.flags import argument
from nlpkit.cli.output import Notes, check_output, open_output
from nlpkit.errors import NlpkitError


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
