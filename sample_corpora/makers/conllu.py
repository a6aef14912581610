"""Tokens with their tags, and sentences of them as CoNLL-U.

Word, lemma, the two part-of-speech columns and, in MISC, the entity tag (`NER=B-PER`) and
`SpaceAfter=No` are filled in. There are no features and no syntax.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

NO_SPACE_BEFORE = {".", ",", "?", "!", ";", ":", "%", ")"}
NO_SPACE_AFTER = {"$", "("}
SENTENCE_BEGINS_AFTER = {".", ":"}


@dataclass(frozen=True)
class Token:
    """One syntactic word. `joined`: it is written together with the word before it (do + n't)."""

    form: str
    upos: str
    xpos: str
    lemma: str
    entity: str = "O"
    joined: bool = False


def with_capitals(tokens: list[Token]) -> list[Token]:
    """Begin the sentence, and what is said in quotes, with a capital; write I as it is written."""
    result = []
    begins = True
    for token in tokens:
        form = token.form
        if begins or form == "i":
            form = form[0].upper() + form[1:]
        if form != '"':
            begins = form in SENTENCE_BEGINS_AFTER
        result.append(replace(token, form=form))
    return result


def spaces_after(tokens: list[Token]) -> list[bool]:
    """For each token, whether a space follows it in running text."""
    spaces = []
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        opens = token.xpos == "``" or token.form in NO_SPACE_AFTER
        closes = following is not None and (
            following.joined or following.xpos == "''" or following.form in NO_SPACE_BEFORE
        )
        spaces.append(following is not None and not opens and not closes)
    return spaces


def text_of(tokens: list[Token]) -> str:
    pairs = zip(tokens, spaces_after(tokens), strict=True)
    return "".join(token.form + " " * space for token, space in pairs)


def sentence_lines(name: str, tokens: list[Token]) -> Iterator[str]:
    """The lines of one sentence, the blank line at its end included."""
    yield f"# sent_id = {name}"
    yield f"# text = {text_of(tokens)}"
    spaces = spaces_after(tokens)
    # The last token ends the text; it is the next sentence that follows, after a space.
    spaces[-1] = True
    for position, token in enumerate(tokens):
        end = position + 1
        while end < len(tokens) and tokens[end].joined:
            end += 1
        if end > position + 1 and not token.joined:
            form = "".join(part.form for part in tokens[position:end])
            misc = "_" if spaces[end - 1] else "SpaceAfter=No"
            yield "\t".join([f"{position + 1}-{end}", form, *["_"] * 7, misc])
        inside_range = token.joined or end > position + 1
        misc = f"NER={token.entity}"
        if not spaces[position] and not inside_range:
            misc += "|SpaceAfter=No"
        fields = [str(position + 1), token.form, token.lemma, token.upos, token.xpos]
        yield "\t".join([*fields, *["_"] * 4, misc])
    yield ""
