"""``nlpkit names inspect``."""

from __future__ import annotations

from nlpkit.cli import lm_inspect, options
from nlpkit.cli.flags import argument, flag, with_settings


@with_settings(lm_inspect.Wanted)
def inspect(
    *,
    model: options.Model,
    name: str = argument(..., "A name to look at.", metavar="NAME"),
    label: str = flag("", "Its label, where the model has such.", show_default="none"),
    wanted: lm_inspect.Wanted,
) -> None:
    """Look inside a name model: what it expects at each letter, its gates, its attention.

    As nlpkit lm inspect, for a name: the end of the name is a token of its own.

    Examples:
      $ nlpkit names train sample_corpora/names-en.txt -o en.model --max-time 30s
      $ nlpkit names inspect en.model Maria
      $ nlpkit names inspect en.model Maria --show attention --plot maria.html
    """
    from nlpkit.tasks.names.data import END
    from nlpkit.tasks.names.model import NamesModel

    lm_inspect.check_plot(wanted.plot, wanted.show)
    named = NamesModel.load(model)
    alphabet = named.alphabet
    letters = alphabet.encode(name)

    def name_of(index: int) -> str:
        return alphabet.decode([index]) or "\n"

    lm_inspect.run_inspect(
        named.model,
        [*letters, END],
        [alphabet.start(label)],
        lambda indices: [name_of(index) for index in indices],
        name_of,
        wanted,
    )
