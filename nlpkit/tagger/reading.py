"""Files of tagged sentences, read whole (to train) or as a stream (to predict)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nlpkit import textio
from nlpkit.conll import Layout, Sentence, SentenceReader, read_lines, read_sentences
from nlpkit.errors import NlpkitError
from nlpkit.tagger.layouts import SAMPLE_LINES, LayoutChoice, choose_layout, detect_layout
from nlpkit.textio import Block


def read_tagged(
    paths: list[str], choice: LayoutChoice, *, encoding: str = "utf-8", errors: str = "strict"
) -> tuple[list[Sentence], Layout]:
    """All tagged sentences of files of one layout."""
    blocks = textio.read_blocks(paths, encoding=encoding, errors=errors)
    first = next(blocks, None)
    if first is None:
        names = ", ".join(map(textio.source_name, paths))
        raise NlpkitError(f"{names}: nothing in it", hint="a file of tagged sentences")
    layout = choose_layout(sample(first, errors), choice, first.source)
    lines = read_lines(_again(first, blocks), errors)
    return list(read_sentences(lines, layout)), layout


def sample(block: Block, errors: str = "strict") -> list[str]:
    """The first lines of a block, to tell what it is."""
    return block.lines(errors)[:SAMPLE_LINES]


def _again(first: Block, blocks: Iterable[Block]) -> Iterator[Block]:
    yield first
    yield from blocks


def looks_tagged(lines: list[str], layout: Layout) -> bool:
    """Whether input for prediction comes in columns (or in the lines that training took)."""
    found = detect_layout(lines)
    if found is not None and found.format == "conllu":
        return True
    if layout.format == "columns":
        content = [line for line in lines if line.strip() and not line.startswith("#")]
        tabbed = bool(content) and all("\t" in line for line in content)
        return tabbed or (found is not None and found.format == "columns")
    return found is not None and found.format == layout.format


def stream_sentences(
    blocks: Iterable[Block], layout: Layout, errors: str = "strict"
) -> Iterator[list[Sentence]]:
    """For each block the sentences that it completes; tags need not be there."""
    reader = SentenceReader(layout, tagged=False)
    for block in blocks:
        yield list(reader.feed(read_lines([block], errors)))
    yield list(reader.close())
