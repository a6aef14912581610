"""What a translator makes of its sources: how long answers get, and what unknown words become."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import torch
from small_translators import small_model

from nlpkit.errors import NlpkitError
from nlpkit.generate.beam import Hypothesis
from nlpkit.models.seq2seq_settings import END, UNKNOWN
from nlpkit.openmp import CoreSharing
from nlpkit.tasks.translate.codecs import make_codec
from nlpkit.tasks.translate.data import Pair
from nlpkit.tasks.translate.model import Translator
from nlpkit.tasks.translate.settings import PredictSettings, TranslateSettings
from nlpkit.tasks.translate.terms import Term
from nlpkit.tasks.translate.train import TranslateRun

LONGEST = 30  # tokens of the small models


def endless(kind: str, **changes: object) -> Translator:
    """A translator that never ends an answer by itself."""
    model = small_model(kind, output_bias=True, **changes)
    source, target = make_codec(["a b c d e f g h"], "word"), make_codec(["s t u v w x y"], "word")
    with torch.no_grad():
        assert model.head_bias is not None
        model.head_bias.zero_()[END] = -1e3
    return Translator(model, source, target)


@pytest.mark.parametrize(
    ("kind", "words", "share", "most"),
    [
        ("lstm", 3, 2.0, 18),  # 2 x 4 tokens, the end counted, and 10
        ("lstm", 3, 100.0, LONGEST),
        ("lstm", 60, 100.0, 71),  # a longer source may have an answer of its length
        ("lstm", 300, 100.0, 8 * LONGEST),  # but not one of any length
        ("transformer", 3, 100.0, LONGEST),
        ("transformer", 60, 2.0, LONGEST),
    ],
)
def test_an_answer_has_an_end_whatever_is_asked_for(
    kind: str, words: int, share: float, most: int
) -> None:
    text = " ".join("abcdefgh"[n % 8] for n in range(words))
    for settings in (
        PredictSettings(beams=1, max_length=share),
        PredictSettings(beams=2, max_length=share),
        PredictSettings(sampling=True, max_length=share),
    ):
        [[answer]] = endless(kind).predict([text], settings)
        assert len(answer.ids) == most - 1  # and the end


def test_an_unknown_word_becomes_the_one_that_is_looked_at() -> None:
    random = Random(4)
    letters = "bcdfgklmnprstvz"

    def name() -> str:
        return "".join(random.choice(letters) + random.choice("aeiou") for _ in range(4))

    frames = [
        ("{} sleeps", "{} dorm"),
        ("the cat sees {}", "el gat veu {}"),
        ("hello {}", "hola {}"),
    ]
    pairs = []
    for number in range(240):
        source, target = frames[number % 3]
        one = name()
        pairs.append(Pair(source.format(one), target.format(one)))
    settings = TranslateSettings(
        tokenizer="whitespace",
        vocab_size=13,  # the words of the frames, no name
        dim=32,
        epochs=12,
        batch_tokens=200,
        dtype="float32",
    )
    run = TranslateRun(pairs, settings)
    for _ in run.steps():
        pass
    translator = run.finish()
    texts = ["zorbalu sleeps", "the cat sees mikado", "hello Wozzeck"]
    assert translator.translate(texts, copy_unknown=True) == [
        "zorbalu dorm",
        "el gat veu mikado",
        "hola Wozzeck",
    ]
    assert "zorbalu" not in translator.translate(texts)[0]  # and not if it is not asked for


@pytest.mark.parametrize("asked", [{"copy_unknown": True}, {"coverage": 0.2}], ids=str)
def test_what_needs_attention_is_refused_without_it(asked: dict[str, Any]) -> None:
    settings = PredictSettings(max_length=1.0, **asked)
    with pytest.raises(NlpkitError, match=f"`{next(iter(asked))}` needs attention"):
        endless("gru", attention="none").predict(["a b"], settings)
    for kind in ("gru", "transformer"):
        assert endless(kind).predict(["a b"], settings)


def test_a_term_whose_subwords_are_never_written_is_spelled() -> None:
    codec = make_codec(["dog dog dog", "d o g s"], "bpe")
    written = [END, UNKNOWN, *sorted(set(codec.encode("d o g s")))]
    vocab, count = len(codec), len(written)
    model = small_model(
        "transformer", source_vocab=vocab, target_vocab=vocab, joint=True, outputs=count
    )
    assert model.written_ids is not None
    model.written_ids.copy_(torch.tensor(written))
    translator, settings = Translator(model, codec, codec), PredictSettings(beams=5)
    assert not {*codec.encode(" dog")} & {*written}
    [[answer]] = translator.predict(["a b"], settings, terms=[Term("b", "dog")])
    assert " dog" in f" {answer.text}"
    with pytest.raises(NlpkitError, match=r"cannot write 'cat': .* does not spell 'cat'"):
        translator.predict(["a b"], settings, terms=[Term("b", "cat")])


def test_threads_give_way_to_a_busy_machine_in_every_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[CoreSharing] = []
    monkeypatch.setattr(CoreSharing, "check", lambda cores: looks.append(cores))
    endless("gru").predict(["a b", "c", "d e f"], PredictSettings(batch_size=1))
    assert len(looks) == 3


def test_what_letters_say_three_times_is_no_loop() -> None:
    source, target = make_codec(["fufu"], "char"), make_codec(["f u"], "whitespace")
    model = small_model("gru", source_vocab=len(source), target_vocab=len(target))
    translator = Translator(model, source, target)
    found = Hypothesis(0.0, 0.0, target.encode("f u f u f u"))
    assert translator._answer("fufufu", found, PredictSettings()).cut == 0
    assert translator._answer("fu", found, PredictSettings()).text == "f u"


def test_a_line_of_many_megabytes_is_cut_before_it_is_taken_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    translator = endless("transformer")
    start = " ".join("abcdefgh"[n % 8] for n in range(100))
    rows = translator.encode_sources([start])
    seen: list[int] = []
    encode = translator.source.encode
    monkeypatch.setattr(
        translator.source, "encode", lambda text: seen.append(len(text)) or encode(text)
    )
    assert translator.encode_sources([start + " h" * 1_000_000]) == rows
    assert seen == [LONGEST * 1_000]
    assert translator.too_long == 2
