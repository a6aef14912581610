"""The parts of a translator: codecs, pairs, terms, loops, cleaning, scores, alignments."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlpkit.errors import NlpkitError
from nlpkit.metrics.text import TextStatistics, compare_texts, edit_distance
from nlpkit.models.seq2seq_settings import UNKNOWN
from nlpkit.tasks.translate.alignment import draw_alignment, heat_map, pharaoh
from nlpkit.tasks.translate.clean import CleanSettings, sort_out
from nlpkit.tasks.translate.codecs import SideCodec, make_codec
from nlpkit.tasks.translate.data import Columns, Pair, read_pairs, read_parallel
from nlpkit.tasks.translate.evaluate import scores_by_length
from nlpkit.tasks.translate.loops import cut_loops, repeats
from nlpkit.tasks.translate.start import embed_pairs
from nlpkit.tasks.translate.terms import Term, find_terms, read_terms
from nlpkit.text.codec import save_codec

TEXTS = ["the low tower\tN;SG", "lower and lower\tN;PL", "a new tower\tV|PST"]


@pytest.mark.parametrize("tokenizer", ["bpe", "char", "word", "whitespace"])
def test_a_codec_comes_back_from_its_folder(tokenizer: str, tmp_path: Path) -> None:
    codec = make_codec(TEXTS, tokenizer, 300)
    save_codec(codec, tmp_path, "source")
    again = SideCodec.read(tmp_path / "source")
    for text in TEXTS:
        ids = codec.encode(text)
        assert again.encode(text) == ids
        assert again.decode(ids) == text.partition("\t")[0]
        assert UNKNOWN not in ids
    assert [again.show(index) for index in again.encode("low\tN;PST")][-2:] == ["N", "PST"]


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t")))
def test_subwords_know_every_text(text: str) -> None:
    codec = CODEC
    assert codec.decode(codec.encode(text)) == text
    assert UNKNOWN not in codec.encode(text)


CODEC = make_codec(TEXTS, "bpe", 280)


def test_unknown_words_are_put_in_their_places() -> None:
    codec = make_codec(["a b c"], "word")
    ids = codec.encode("a x c y")
    assert ids.count(UNKNOWN) == 2
    assert codec.fill(ids, ["X", "Y"]) == "a X c Y"
    assert codec.decode(ids) == "a ⁇ c ⁇"


def test_pairs_of_all_forms(tmp_path: Path) -> None:
    tsv, jsonl = tmp_path / "pairs.tsv", tmp_path / "pairs.jsonl"
    tsv.write_text("a\tb\n\nc d\te\n\t\n")
    jsonl.write_text('{"source": "a", "target": "b"}\n{"source": ["c", "V;SG"], "target": "e"}\n')
    assert read_pairs(str(tsv)) == [Pair("a", "b"), Pair("c d", "e"), Pair("", "")]
    assert read_pairs(str(jsonl))[1] == Pair("c\tV;SG", "e")
    columns = tmp_path / "columns.tsv"
    columns.write_text("gehen\tging\tV;PST\n")
    found = read_pairs(str(columns), Columns.parse("1,3", 2))
    assert found == [Pair("gehen\tV;PST", "ging")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b\n", "found 1 column"),
        ("a\tb\tc\n", "found 3 columns"),
        ("", "no pairs"),
        ('{"source": "a"}\n', "no target"),
        ('{"source": \n', "not JSON"),
    ],
)
def test_what_is_no_pair_is_named(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "pairs"
    file.write_text(text)
    with pytest.raises(NlpkitError, match=message):
        read_pairs(str(file))


def test_unequal_files_are_named_both(tmp_path: Path) -> None:
    one, other = tmp_path / "one.en", tmp_path / "other.de"
    one.write_text("a\nb\n")
    other.write_text("a\n")
    with pytest.raises(NlpkitError, match=r"one\.en has 2 lines, .*other\.de has 1"):
        read_parallel(str(one), str(other))


def test_terms_are_whole_words(tmp_path: Path) -> None:
    file = tmp_path / "terms.tsv"
    file.write_text("dog\tHund\nhot dog\tHotdog\n")
    terms = read_terms(str(file))
    assert find_terms("A hot dog and a Dog.", terms) == [Term("hot dog", "Hotdog"), terms[0]]
    assert find_terms("Dogma", terms) == []
    file.write_text("dog\n")
    with pytest.raises(NlpkitError, match="line 1"):
        read_terms(str(file))


@pytest.mark.parametrize(
    ("source", "target", "text", "cut"),
    [
        ("I like salad", "Salat Salat Salat Salat", "Salat", 3),
        ("very very good", "sehr sehr gut", "sehr sehr gut", 0),
        ("a man", "ein Mann und ein Mann und ein Mann und geht", "ein Mann und geht", 6),
        ("no no no", "nein nein nein", "nein nein nein", 0),
        ("a salad", "ein Salatatatatatatat", "ein Salat", 6),
        ("ha ha ha ha ha ha", "hahahahahaha", "hahahahahaha", 0),
        ("a billion", "1000000000", "1000000000", 0),
        ("", "", "", 0),
    ],
)
def test_loops_are_cut_and_counted(source: str, target: str, text: str, cut: int) -> None:
    assert cut_loops(source, target) == (text, cut)


def test_a_long_line_of_one_word_is_searched_for_loops_in_linear_time() -> None:
    assert repeats(["ha"] * 100_000) == 100_000
    assert repeats("a b c".split() * 30_000 + ["d"]) == 30_000


def test_pairs_are_sorted_out_by_reason() -> None:
    pairs = [
        Pair("Good day", "Guten Tag"),
        Pair("good  day", "guten tag"),
        Pair("x", ""),
        Pair("Hello there", "hello there"),
        Pair("one two three four five six", "eins"),
        Pair("Good night", "Доброй ночи"),
        Pair("5.50", "5.50"),
        Pair("a b c", "d e f"),
    ]
    reasons = [reason for _, reason in sort_out(pairs, CleanSettings(max_words=9))]
    assert reasons == [
        None,
        "duplicate",
        "empty",
        "identical",
        "ratio",
        "script",
        None,
        None,
    ]


def test_texts_without_spaces_are_as_long_as_their_characters() -> None:
    pairs = [
        Pair("今日はとても天気がいいです。", "The weather is very nice today."),
        Pair("東京 タワー", "Tokyo tower"),  # no hiragana: Japanese all the same
        Pair("東京駅前中央郵便局", "Yes"),
    ]
    assert [reason for _, reason in sort_out(pairs)] == [None, None, "ratio"]


def test_a_script_that_no_letter_has_is_refused() -> None:
    assert [why for _, why in sort_out([Pair("a", "b")], CleanSettings(target_script="latin"))]
    with pytest.raises(NlpkitError, match="no letter is of a script named klingon"):
        list(sort_out([Pair("a", "b")], CleanSettings(target_script="klingon")))


def test_scores_are_those_of_sacrebleu() -> None:
    sacrebleu = pytest.importorskip("sacrebleu")
    answers = ["the cat sat on a mat", "a dog ran home now", "yes"]
    references = ["the cat sat on the mat", "a dog ran home", "no"]
    statistics = TextStatistics(answers, references, str.split)
    draws = statistics.draws(seed=1)
    found = {name: statistics.interval(name, draws) for name in statistics.NAMES}
    assert found["bleu"].score == pytest.approx(sacrebleu.corpus_bleu(answers, [references]).score)
    assert found["chrf"].score == pytest.approx(sacrebleu.corpus_chrf(answers, [references]).score)
    assert found["bleu"].low <= found["bleu"].score <= found["bleu"].high
    assert "tok:13a" in found["bleu"].signature
    assert found["edit_distance"].score == pytest.approx(1.0)
    assert found["token_error_rate"].score == pytest.approx(100 * 3 / 11)
    assert found["exact"].score == 0


def test_a_better_system_is_told_from_an_equal_one() -> None:
    pytest.importorskip("sacrebleu")
    references = [f"the number {n} is here now" for n in range(40)]
    good = TextStatistics(references, references, str.split)
    bad = TextStatistics(["the number is gone"] * 40, references, str.split)
    assert {one.name: one.p_value < 0.01 for one in compare_texts(good, bad)}["bleu"]
    assert all(one.p_value == 1 for one in compare_texts(good, good))


@given(st.text("abc", max_size=6), st.text("abc", max_size=6))
def test_edit_distance_is_a_distance(one: str, other: str) -> None:
    found = edit_distance(one, other)
    assert found == edit_distance(other, one)
    assert abs(len(one) - len(other)) <= found <= max(len(one), len(other))
    assert (found == 0) == (one == other)


def test_length_buckets_hold_all_pairs() -> None:
    pytest.importorskip("sacrebleu")
    pairs = [Pair("a " * (n % 13 + 1), "b") for n in range(50)]
    found = scores_by_length(pairs, ["b"] * 50, 4)
    assert sum(one.pairs for one in found) == 50
    assert [one.shortest for one in found] == sorted(one.shortest for one in found)


def test_embeddings_of_pairs_that_stand_together_are_alike() -> None:
    rows = [[n, n + 10, 20] for n in range(10)] * 3
    vectors = embed_pairs(rows, 21, 8)
    assert vectors is not None
    closest = [int((vectors[10:20] @ vectors[n]).argmax()) for n in range(10)]
    assert sum(n == found for n, found in enumerate(closest)) >= 8
    assert embed_pairs(rows, 50_000, 8) is None


WEIGHTS = [[0.9, 0.1, 0.0], [0.1, 0.2, 0.7], [0.0, 0.0, 1.0]]


def test_alignments_are_drawn(tmp_path: Path) -> None:
    shown = heat_map(["the", "cat", "</s>"], ["el", "gat", "</s>"], WEIGHTS)
    assert shown.splitlines()[-3].startswith("el   ██")
    assert pharaoh(WEIGHTS) == "0-0 1-1"
    page = tmp_path / "a.html"
    draw_alignment(["<b>", "c", "</s>"], ["x", "y", "</s>"], WEIGHTS, str(page))
    assert "&lt;b&gt;" in page.read_text()


def test_a_bottleneck_that_sees_all_evenly_is_no_empty_map() -> None:
    shown = heat_map(["a", "b", "c", "d", "e", "f"], ["x"], [[1 / 6] * 6]).splitlines()
    assert shown[-1] == "x ░░░░░░░░░░░░"
