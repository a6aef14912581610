"""Files of tagged sentences, read whole (to train) or as a stream (to predict)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from nlpkit import textio
from nlpkit.errors import NlpkitError
from nlpkit.tasks.tag.layouts import SAMPLE_LINES, LayoutChoice, choose_layout, detect_layout
from nlpkit.tasks.tag.records import LAYOUT, are_records, read_record_sentences
from nlpkit.text.conll import Layout, Sentence, SentenceReader, read_lines, read_sentences
from nlpkit.text.records import refuse_spacy
from nlpkit.textio import TextBlock


def read_tagged(
    paths: list[str], choice: LayoutChoice, *, encoding: str = "utf-8", errors: str = "strict"
) -> tuple[list[Sentence], Layout]:
    """All tagged sentences of files of one layout, or of JSON lines."""
    refuse_spacy(paths)
    blocks = textio.read_blocks(paths, encoding=encoding, errors=errors)
    # two, for the last line of a short file without an end comes by itself
    first = list(itertools.islice(blocks, 2))
    if not first:
        names = ", ".join(map(textio.source_name, paths))
        raise NlpkitError(f"{names}: nothing in it", hint="a file of tagged sentences")
    if choice.input is None and are_records(first, errors):
        sentences = read_record_sentences(
            itertools.chain(first, blocks),
            key=choice.column,
            tag_names=choice.tag_names,
            errors=errors,
        )
        return sentences, LAYOUT
    layout = choose_layout(sample(first, errors), choice, first[0].source)
    lines = read_lines(itertools.chain(first, blocks), errors)
    return list(read_sentences(lines, layout)), layout


def tagged_sentences(
    sentences: Iterable[Sequence[tuple[str, str]]],
) -> tuple[list[Sentence], Layout]:
    """Sentences as lists of (token, tag) pairs, as if they had come from a file of two columns.

    >>> tagged_sentences([[("Time", "NOUN"), ("flies", "VERB")]])[0][0].tags
    ['NOUN', 'VERB']
    """
    found, line = [], 1
    for number, pairs in enumerate(sentences, 1):
        source = f"sentence {number}"
        for pair in pairs:
            if len(pair) != 2 or isinstance(pair, str) or not all(map(_is_field, pair)):
                raise NlpkitError(f"{source}: {pair!r} is not a pair of a token and its tag")
        lines = [f"{token}\t{tag}\n" for token, tag in pairs]
        tokens, tags = ([pair[column] for pair in pairs] for column in (0, 1))
        rows = list(range(len(lines)))
        found.append(Sentence([*lines, "\n"], rows, tokens, tags, source, line))
        line += len(lines) + 1
    return found, Layout("columns", tag_column=1, columns=2)


def _is_field(value: object) -> bool:
    return isinstance(value, str) and bool(value) and not set("\t\n\r") & set(value)


def sample(blocks: Iterable[TextBlock], errors: str = "strict") -> list[str]:
    """The first lines of some blocks, to tell what they are."""
    return [line for block in blocks for line in block.lines(errors)][:SAMPLE_LINES]


def until_content(blocks: Iterator[TextBlock]) -> list[TextBlock]:
    """Blocks up to the first with more than blank lines in it: all of them when there is none."""
    found = []
    for block in blocks:
        found.append(block)
        if block.data.strip():
            break
    return found


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
    blocks: Iterable[TextBlock], layout: Layout, errors: str = "strict"
) -> Iterator[list[Sentence]]:
    """For each block the sentences that it completes; tags need not be there."""
    reader = SentenceReader(layout, tagged=False)
    for block in blocks:
        yield list(reader.feed(read_lines([block], errors)))
    yield list(reader.close())
