"""Tasks as text: prompts and completions, one JSON object per line, and a loss on completions only.

    {"prompt": "Oslo lies in Norway.\\nQuestion: Where is Oslo?\\nAnswer:", "completion": " Norway"}

Both may have several lines. A model that was trained on examples ends what it writes with an
end-of-text token: that of its subwords, a character of its own (U+0004), or, where it goes on from
a model of characters that has never seen that one, a line end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from nlpkit import textio
from nlpkit.errors import NlpkitError
from nlpkit.schema import plain
from nlpkit.tasks.lm.stream import TargetBatches
from nlpkit.text.characters import Characters
from nlpkit.text.codec import Bytes, Codec
from nlpkit.text.records import RecordText
from nlpkit.text.word_codec import Words

_NAME = re.compile(r"\{([A-Za-z_]\w*)\}")  # of a key in a template
END = "\x04"  # end of transmission: no text has it
_HINT = '{"prompt": "...", "completion": "..."}'


@dataclass(frozen=True)
class Example:
    """A prompt and what should follow it; nothing where that is to be written."""

    prompt: str
    completion: str | None = None


def read_examples(
    lines: Iterable[str], source: str, *, answers: bool = True, template: str | None = None
) -> list[Example]:
    """Examples of JSON lines; blank lines are left out. Without ``answers`` prompts are enough.

    A ``template`` makes the prompt from all keys of an object: ``{context}\\n{question}``.

    >>> read_examples(['{"prompt": "1+1=", "completion": "2"}'], "-")
    [Example(prompt='1+1=', completion='2')]
    """
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{source}: line {number}"
        record = textio.parse_record(line, where, _HINT)
        found.append(_example(record, where, answers, template))
    if not found:
        raise NlpkitError(f"{source}: no examples", hint=f"one object per line: {_HINT}")
    return found


def _example(record: dict[str, Any], where: str, answers: bool, template: str | None) -> Example:
    prompt = record.get("prompt", None if answers else record.get("text"))
    completion = record.get("completion", record.get("answer"))
    if template is not None:
        prompt = fill_template(template, record, where)
    if not isinstance(prompt, str) or not prompt:
        what = "a completion without a prompt" if completion is not None else "no prompt"
        raise NlpkitError(f"{where}: {what}", hint=_HINT)
    if answers and not isinstance(completion, str):
        raise NlpkitError(f"{where}: a prompt without a completion", hint=_HINT)
    if not answers:
        prompt = RecordText.of(prompt, record)
    return Example(prompt, completion if isinstance(completion, str) else None)


def fill_template(template: str, record: dict[str, Any], where: str = "the record") -> str:
    """The prompt that a template makes of a record; names stand in braces.

    >>> fill_template("Q: {question}\\nA:", {"question": "Why?"})
    'Q: Why?\\nA:'
    """

    def value(found: re.Match[str]) -> str:
        if found[1] not in record:
            known = ", ".join(map(plain, record)) or "none"
            raise NlpkitError(f"{where}: the template asks for {found[1]}", hint=f"keys: {known}")
        return str(record[found[1]])

    return _NAME.sub(value, template)


def template_names(template: str) -> list[str]:
    """The keys that a template asks for.

    >>> template_names("Q: {question}\\nA:")
    ['question']
    """
    return _NAME.findall(template)


def end_token(codec: Codec) -> int:
    """The id that ends a completion."""
    own = codec.end_id
    if own is not None:
        return own
    if isinstance(codec, Words):
        return 0
    if isinstance(codec, Bytes):
        return ord(END)
    assert isinstance(codec, Characters)
    for character in (END, "\n"):
        if character in codec.ids:
            return codec.ids[character]
    raise NlpkitError("this model has no token to end an answer with", hint="another `init`")


def example_ids(examples: Sequence[Example], codec: Codec) -> list[tuple[list[int], list[int]]]:
    """The ids of each prompt, and of its completion with the end behind it."""
    end = end_token(codec)
    return [
        (codec.encode(one.prompt), [*codec.encode(one.completion or ""), end]) for one in examples
    ]


class ExampleBatches(TargetBatches):
    """Batches of examples of like length; targets of prompts are -1, which no loss counts."""

    def __init__(
        self,
        pairs: Sequence[tuple[list[int], list[int]]],
        *,
        batch_size: int,
        block_size: int,
        seed: int,
    ) -> None:
        inputs: list[list[int]] = []
        targets: list[list[int]] = []
        for prompt, completion in pairs:
            if len(completion) >= block_size:
                raise NlpkitError(
                    f"a completion of {len(completion)} tokens does not fit in a block of "
                    f"{block_size}",
                    hint="a larger `block_size`",
                )
            # the end of a prompt that is too long is what the answer hangs on
            kept = prompt[-(block_size + 1 - len(completion)) :]
            row = [*kept, *completion]
            inputs.append(row[:-1])
            targets.append([-1] * (len(kept) - 1) + completion)
        sizes = {"batch_size": batch_size, "block_size": block_size}
        super().__init__(inputs, targets, seed=seed, **sizes)


def examples_hash(examples: Iterable[Example]) -> bytes:
    """All examples as bytes, to tell data apart by."""
    return "\0".join(f"{one.prompt}\0{one.completion}" for one in examples).encode(
        "utf-8", "replace"
    )
