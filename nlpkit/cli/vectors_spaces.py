"""``nlpkit vectors align``, ``shift`` and ``bias``: two spaces side by side, and what one holds."""

from __future__ import annotations

from dataclasses import replace

from nlpkit import settings as limits
from nlpkit import textio
from nlpkit.cli import options
from nlpkit.cli import vectors_options as shared
from nlpkit.cli.flags import argument, flag
from nlpkit.cli.output import Notes, open_output, rows_format, write_rows
from nlpkit.errors import NlpkitError, UsageError, plural
from nlpkit.text.records import TOKEN_KEYS, Reading
from nlpkit.vectors.settings import AlignSettings


def align(
    *,
    first: str = argument(..., "The vectors that are turned.", metavar="A"),
    second: str = argument(..., "The vectors in whose space they end.", metavar="B"),
    output: shared.NewVectors,
    settings: AlignSettings,
    dictionary: str | None = flag(
        None,
        "Pairs of words, one of A and one of B a line.",
        metavar="FILE",
        show_default="words that both have",
    ),
    seed: options.Seed = AlignSettings.seed,
    to: shared.To = None,
    force: options.Force = False,
    format: options.RowsFormat = None,
) -> None:
    """Rotate vectors into the space of others, so that both can be asked together.

    The rotation is learned from pairs of words (orthogonal Procrustes) and tested on a held-out
    part of them: columns (keys of jsonl) pairs, held_out, and how often the right word of B is the
    nearest or among five, by cosine (cosine@1, cosine@5) and with hubs taken down (csls@1, csls@5).

    Examples:
      $ nlpkit vectors align world.model counts.model -o turned.model --force
      $ nlpkit vectors align german.vec english.vec --dictionary de-en.txt -o german-english.model
    """
    from nlpkit.vectors.align import align as turn
    from nlpkit.vectors.align import shared_words

    shown, notes = rows_format(format), Notes()
    shared.check_output(output, to, force)
    a, b = shared.open_vectors(first, notes), shared.open_vectors(second, notes)
    pairs = _read_dictionary(dictionary) if dictionary is not None else shared_words(a, b)
    turned, found = turn(a, b, pairs, replace(settings, seed=seed))
    if found.pairs < a.dim:
        notes.warn(
            f"{found.pairs:,} pairs for {a.dim:,} dimensions leave the rotation open where no pair "
            f"points: give {a.dim:,} or more"
        )
    columns = ["pairs", "held_out", *found.precision]
    row = [found.pairs, found.held_out, *found.precision.values()]
    with open_output("-") as out:  # before anything is written: it may be closed
        shared.save_vectors(turned, output, to, force, notes, source=first, aligned_to=second)
        write_rows(out, columns, [row], shown)


def _read_dictionary(path: str) -> list[tuple[str, str]]:
    pairs = []
    for number, line in enumerate(textio.read_lines(path), 1):
        fields = line.split("\t") if "\t" in line else line.split()
        if not fields:
            continue
        if len(fields) != 2:
            raise NlpkitError(
                f"{path}: line {number}: expected two words, found {len(fields)}",
                hint="word<TAB>word",
            )
        pairs.append((fields[0], fields[1]))
    if not pairs:
        raise NlpkitError(f"{path}: no pairs of words in it", hint="word<TAB>word a line")
    return pairs


def shift(
    first: str = argument(..., "Vectors of the one text or time.", metavar="A"),
    second: str = argument(..., "Vectors of the other.", metavar="B"),
    more_first: list[str] | None = flag(
        None, "A with another seed; may be repeated.", "--also-a", metavar="VECTORS"
    ),
    more_second: list[str] | None = flag(
        None, "B with another seed; may be repeated.", "--also-b", metavar="VECTORS"
    ),
    number: int = flag(20, "Words to show.", "--count", "--number", "-n", min=1, max=limits.MANY),
    neighbours: int = flag(
        AlignSettings.neighbours, "Neighbours to show of each.", min=1, max=1_000
    ),
    restrict: shared.Restrict = None,
    format: options.RowsFormat = None,
) -> None:
    """List the words that moved most between two spaces, with their neighbours in both.

    Columns (keys of jsonl): word, shift (1 - cosine after A is rotated onto B), low and high (over
    all pairs of runs), before and after (nearest words). Runs with other seeds, given by --also-a
    and --also-b, tell a change of meaning from one of chance.

    Examples:
      $ nlpkit vectors shift world.model counts.model -n 5 --restrict 200
      $ nlpkit vectors shift 1900.model 2000.model --also-a 1900b.model --also-b 2000b.model
    """
    from nlpkit.vectors.align import shifts

    shown, notes = rows_format(format), Notes()
    firsts = [shared.open_vectors(path, notes) for path in [first, *(more_first or [])]]
    seconds = [shared.open_vectors(path, notes) for path in [second, *(more_second or [])]]
    if len({vectors.dim for vectors in [*firsts, *seconds]}) > 1:
        raise NlpkitError("the vectors differ in length", hint="nlpkit vectors pca")
    chosen = AlignSettings(restrict=restrict, neighbours=neighbours)
    found = shifts(firsts, seconds, chosen, number)
    rows = [
        (one.word, one.shift, one.low, one.high, " ".join(one.before), " ".join(one.after))
        for one in found
    ]
    with open_output("-") as out:
        write_rows(out, ["word", "shift", "low", "high", "before", "after"], rows, shown)


def bias(
    model: shared.ModelOption,
    file: str | None = argument(
        None, "Tests: four lines of words each, ': name' lines between them.", metavar="FILE"
    ),
    seed: options.Seed = 1,
    format: options.RowsFormat = None,
) -> None:
    """Test what a set of vectors associates with what (WEAT).

    A test is four lines of words: two lists of targets (flowers, insects), then two of attributes
    (pleasant, unpleasant). Columns (keys of jsonl): test, effect (in standard deviations, above 0
    when the first targets go with the first attributes), p (one-sided, by permutation), known and
    words (how many of the words have a vector).

    Examples:
      $ printf 'king prince\\nqueen princess\\nman\\nwoman\\n' | nlpkit vectors bias -m world.model
    """
    from nlpkit.vectors.bias import weat

    shown = rows_format(format)
    vectors = shared.open_vectors(model, Notes())
    lines = [
        line
        for block in options.read_plain(file, Reading(), TOKEN_KEYS, tables=False)
        for line in block.lines("strict")
    ]
    rows = []
    for name, lists in _tests(lines, file or "standard input"):
        found = weat(vectors, (lists[0], lists[1]), (lists[2], lists[3]), seed=seed)
        rows.append((name, found.effect, found.p, found.known, found.words))
    with open_output("-") as out:
        write_rows(out, ["test", "effect", "p", "known", "words"], rows, shown)


def _tests(lines: list[str], name: str) -> list[tuple[str, list[list[str]]]]:
    tests: list[tuple[str, list[list[str]]]] = []
    for line in lines:
        if line.startswith(":"):
            tests.append((line[1:].strip(), []))
        elif line.strip():
            if not tests:
                tests.append(("1", []))
            tests[-1][1].append(line.replace(",", " ").split())
    if not tests:
        raise UsageError(f"{name}: no lists of words in it")
    for test, lists in tests:
        if len(lists) != 4:
            raise NlpkitError(
                f"{name}: test {test} has {plural(len(lists), 'list')} of words, not 4",
                hint="two lines of targets, then two of attributes",
            )
    return tests
