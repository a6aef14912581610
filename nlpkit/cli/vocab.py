"""``nlpkit vocab``: build, merge and look at vocabularies."""

from __future__ import annotations

import math
from typing import Any

from nlpkit import settings as limits
from nlpkit import textplot
from nlpkit.cli import options
from nlpkit.cli.flags import argument, flag
from nlpkit.cli.frame import new_app
from nlpkit.cli.output import (
    Notes,
    Section,
    check_output,
    facts,
    open_output,
    percent,
    rows_format,
    write_report,
)
from nlpkit.errors import NlpkitError
from nlpkit.text.counting import count_tokens
from nlpkit.text.pipeline import Tokens
from nlpkit.text.records import Reading, token_keys
from nlpkit.text.vocab import PAD, SPECIALS, UNK, Vocab

app = new_app("Vocabularies: build, merge, stats.")


@app.command()
def build(
    *,
    reading: Reading,
    inputs: options.Inputs = None,
    tokenizing: options.Tokenizing,
    min_count: int = flag(1, "Leave out tokens seen fewer times.", min=1, max=limits.MANY),
    max_size: int | None = flag(
        None, "Keep so many entries at most, special tokens included.", min=1, max=limits.MANY
    ),
    special: options.Special = None,
    no_specials: bool = flag(False, f"Leave out {PAD} and {UNK}."),
    output: options.Output = "-",
    jobs: options.Jobs = 1,
) -> None:
    """Count tokens into a vocabulary: token<TAB>count, one entry per line, its id the line from 0.

    Special tokens come first (<pad> is 0, <unk> is 1, then those of --special), then the rest by
    count, ties by token. Tokens are what stands between spaces; name a --tokenizer for raw text.

    Examples:
      $ nlpkit vocab build sample_corpora/world.txt -o world.vocab --min-count 5
      $ nlpkit vocab build -t word --lower sample_corpora/tales.txt --max-size 1000 | head
      $ nlpkit tokenize sample_corpora/tales.txt | nlpkit vocab build --special "<bos>" | head -5
    """
    settings = tokenizing.settings
    Tokens(settings)
    check_output(output)
    blocks = options.read_plain(inputs, reading, token_keys(settings))
    jobs = options.resolve_jobs(jobs)
    counts = count_tokens(blocks, settings, errors=reading.errors, jobs=jobs)
    if not counts:
        raise NlpkitError("no tokens to count", hint="text with at least one token")
    specials = [*([] if no_specials else SPECIALS), *(special or [])]
    for token in specials:
        if not token or token != token.strip() or len(token.split()) != 1:
            raise NlpkitError(f"a special token is one word without spaces, not {token!r}")
    vocab = Vocab.from_counts(counts, specials=specials, min_count=min_count, max_size=max_size)
    with open_output(output) as out:
        out.write(vocab.dumps())
    kept, total = sum(vocab.counts), sum(counts.values())
    Notes().say(
        f"{len(vocab):,} entries of {len(counts):,} types cover "
        f"{100 * kept / total:.1f}% of {total:,} tokens"
    )


@app.command()
def merge(
    vocabs: list[str] = argument(..., "Two or more vocabulary files.", metavar="VOCAB"),
    output: options.Output = "-",
) -> None:
    """Add vocabularies up, as if their texts had been counted together.

    Count each shard with --min-count 1 (the default): what one shard leaves out is gone. Limits go
    to the merged one: nlpkit vocab merge A B | awk -F'\\t' '$2 == 0 || $2 >= 5'.

    Examples:
      $ nlpkit vocab build sample_corpora/world.txt -o world.vocab
      $ nlpkit tokenize sample_corpora/tales.txt | nlpkit vocab build -o tales.vocab
      $ nlpkit vocab merge world.vocab tales.vocab | head
    """
    first, *others = [Vocab.load(path) for path in vocabs]
    with open_output(output) as out:
        out.write(first.merge(*others).dumps())


@app.command()
def stats(
    *,
    reading: Reading,
    vocab: str = argument(..., "A vocabulary file.", metavar="VOCAB"),
    heldout: str | None = flag(
        None, "Report the share of unknown tokens of this text.", metavar="FILE"
    ),
    tokenizing: options.Tokenizing,
    plot: str | None = flag(None, "Draw the Zipf curve to a .png or .svg.", metavar="FILE"),
    format: options.RowsFormat = None,
) -> None:
    """Show how a vocabulary covers its text: types, tokens, hapaxes, coverage, Zipf's curve.

    --tokenizer and --lower say how the --heldout text becomes tokens. The curve is drawn in the
    terminal too: count by rank, both on log scales.

    Examples:
      $ nlpkit vocab build sample_corpora/world.txt -o world.vocab
      $ nlpkit vocab stats world.vocab
      $ nlpkit vocab stats world.vocab --heldout sample_corpora/tales.txt -t word --lower
      $ nlpkit vocab stats world.vocab --plot zipf.svg --json
    """
    loaded = Vocab.load(vocab)
    counts = [count for count in loaded.counts if count]
    if not counts:
        raise NlpkitError(f"{vocab}: no token with a count in it")
    record = vocab_record(loaded)
    if heldout is not None:
        settings = tokenizing.settings
        blocks = options.read_plain([heldout], reading, token_keys(settings))
        seen = count_tokens(blocks, settings, errors=reading.errors)
        total = sum(seen.values())
        unknown = sum(count for token, count in seen.items() if token not in loaded)
        record["heldout_tokens"] = total
        record["heldout_unknown"] = unknown
        record["heldout_unknown_rate"] = unknown / total if total else 0.0
    if plot is not None:
        draw_zipf(counts, plot)
    chosen = rows_format(format)
    with open_output("-") as out:
        write_report(out, [_facts(record)], record, chosen)
        if chosen == "table":
            label = "log10 of count by log10 of rank"
            out.write("\n" + textplot.plot(*_log_curve(counts), label=label) + "\n")


def vocab_record(vocab: Vocab) -> dict[str, Any]:
    """The numbers of ``vocab stats``."""
    counts = sorted((count for count in vocab.counts if count), reverse=True)
    total = sum(counts)
    coverage: dict[str, float] = {}
    size, done = 10, 0
    for rank, count in enumerate(counts, 1):
        done += count
        if rank == size or rank == len(counts):
            coverage[str(rank)] = done / total
            size *= 10
    return {
        "entries": len(vocab),
        "specials": vocab.specials,
        "types": len(counts),
        "tokens": total,
        "hapaxes": sum(count == 1 for count in counts),
        "coverage": coverage,
    }


def _facts(record: dict[str, Any]) -> Section:
    specials = " ".join(record["specials"])
    rows: list[tuple[Any, ...]] = [
        ("entries", record["entries"], f"of them special: {specials}"),
        ("types", record["types"]),
        ("tokens", record["tokens"]),
        (
            "hapaxes",
            record["hapaxes"],
            f"{percent(record['hapaxes'] / record['types'], 1)} of types",
        ),
    ]
    for size, covered in record["coverage"].items():
        rows.append((f"top {size}", percent(covered), "of tokens"))
    if "heldout_tokens" in record:
        held_out = f"of {record['heldout_tokens']} held-out tokens"
        rows.append(("unknown", percent(record["heldout_unknown_rate"]), held_out))
    return facts(*rows)


def _log_curve(counts: list[int]) -> tuple[list[float], list[float]]:
    ordered = sorted(counts, reverse=True)
    return (
        [math.log10(rank) for rank in range(1, len(ordered) + 1)],
        [math.log10(count) for count in ordered],
    )


def draw_zipf(counts: list[int], path: str) -> None:
    """Count by rank on log scales, with the line of slope -1 that Zipf's law predicts."""
    from nlpkit.plots import figure, save_figure

    ordered = sorted(counts, reverse=True)
    ranks = range(1, len(ordered) + 1)
    drawn, axes = figure()
    axes.loglog(ranks, ordered, ".", markersize=3, label="this vocabulary")
    axes.loglog(ranks, [ordered[0] / rank for rank in ranks], "--", label="1 / rank")
    axes.set_xlabel("rank")
    axes.set_ylabel("count")
    axes.legend()
    save_figure(drawn, path)
