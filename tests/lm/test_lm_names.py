"""Names: data without leaks, batches by number, constraints that hold, reports that add up."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import regex
from hypothesis import given
from hypothesis import settings as given_settings
from hypothesis import strategies as st

from nlpkit import modeldir
from nlpkit.errors import NlpkitError
from nlpkit.generate.sampling import SamplingSettings
from nlpkit.models.settings import MODEL_NAMES
from nlpkit.tasks.names import pattern as namepattern
from nlpkit.tasks.names.data import Alphabet, Name, NameBatches, parse_names, split_names
from nlpkit.tasks.names.model import NamesModel
from nlpkit.tasks.names.pattern import NamePattern, fewest_characters
from nlpkit.tasks.names.report import compare, nearest_name
from nlpkit.tasks.names.sample import Constraints, sample_names
from nlpkit.tasks.names.settings import NamesSettings
from nlpkit.tasks.names.train import NamesRun
from nlpkit.text.characters import Characters
from nlpkit.training.batches import pack

STEMS = ["Mar", "Mas", "Val", "Alz", "Ber", "Con", "Dol", "Fer"]
ENDS = ["ia", "ina", "ó", "a", "et", "ís d'", "vidrera, riera de"]
NAMES = [Name(stem + end) for stem in STEMS for end in ENDS]
LABELLED = [
    *(Name(stem + "o", "m") for stem in STEMS for _ in range(3)),
    *(Name(stem + "a", "f") for stem in STEMS),
]


@pytest.fixture(scope="module")
def ngram() -> NamesModel:
    run = NamesRun(NAMES, NamesSettings(model="ngram"), heldout=NAMES[:5])
    assert run.trainer is None
    return run.named


def sample(named: NamesModel, count: int, seed: int = 1, **limits: object) -> list[str]:
    constraints = Constraints(**limits)  # type: ignore[arg-type]
    return [name.text for name in sample_names(named, count, constraints, seed)]


# --- data ---------------------------------------------------------------------------------------


def test_split_is_seeded_and_nothing_leaks() -> None:
    names = [*NAMES, *NAMES[:20]]
    train, heldout = split_names(names, seed=1, size=10)
    assert len(heldout) == 10
    assert not set(train) & set(heldout)
    assert sorted([*train, *heldout]) == sorted(set(NAMES))
    assert split_names(names, seed=1, size=10) == (train, heldout)
    assert split_names(names, seed=2, size=10) != (train, heldout)


@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("xyz")), min_size=1),
    st.integers(0, 9),
)
def test_a_name_of_several_labels_is_on_one_side(pairs: list[tuple[str, str]], seed: int) -> None:
    names = [Name(*pair) for pair in pairs]
    texts = {name.text for name in names}
    if len(texts) < 3:
        return
    for size in (1, 2):
        train, heldout = split_names(names, seed=seed, size=size)
        assert sorted([*train, *heldout]) == sorted(set(names))
        assert len({name.text for name in heldout}) == size
        assert not {name.text for name in train} & {name.text for name in heldout}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "no names"),
        (["", "  "], "no names"),
        (["a\tb\tc"], "line 1: more than one tab"),
        (["x", "\tm"], "line 2: a label without a name"),
    ],
)
def test_bad_lists_are_one_line(lines: list[str], message: str) -> None:
    with pytest.raises(NlpkitError, match=message):
        parse_names(lines)


def test_one_name_is_too_few() -> None:
    with pytest.raises(NlpkitError, match="too few to hold 1 out"):
        split_names([Name("Anna"), Name("Anna")], seed=1)


def test_labels_for_some_names_only_are_refused() -> None:
    with pytest.raises(NlpkitError, match="1 of 2 names have no label"):
        Alphabet.from_names([Name("Anna", "f"), Name("Bob")])


@given(st.lists(st.integers(1, 20), min_size=1, max_size=60))
def test_packing_loses_nothing_and_fits(lengths: list[int]) -> None:
    rows = pack(lengths, 20)
    assert sorted(itertools.chain.from_iterable(rows)) == list(range(len(lengths)))
    assert all(sum(lengths[i] for i in row) <= 20 for row in rows)


@pytest.mark.parametrize("packed", [True, False])
def test_an_epoch_holds_every_name_once(packed: bool) -> None:
    alphabet = Alphabet.from_names(NAMES)
    batches = NameBatches(NAMES, alphabet, batch_size=4, packed=packed, seed=3)
    found: list[str] = []
    for number in range(batches.per_epoch, 2 * batches.per_epoch):
        idx, targets = batches[number]
        again = batches[number]
        assert np.array_equal(idx, again[0])
        for row, goals in zip(idx, targets, strict=True):
            counted = goals >= 0
            joined = row[counted].tolist()
            begins = [i for i, value in enumerate(joined) if value < alphabet.starts]
            for start, end in itertools.pairwise([*begins, len(joined)]):
                found.append(alphabet.decode(joined[start:end]))
                assert goals[counted][end - 1] == 0
    assert sorted(found) == sorted(name.text for name in NAMES)


def test_unknown_characters_are_named_with_the_nearest() -> None:
    table = Characters("aeSz")
    for unknown, nearest in (("é", "e"), ("s", "S"), ("Ä", "a"), ("y", "z")):
        with pytest.raises(NlpkitError, match=f"never seen {unknown!r}.*{nearest!r}"):
            table.encode(f"a{unknown}")


# --- training and files -------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_every_model_learns_names_and_comes_back_from_its_folder(name: str, tmp_path: Path) -> None:
    settings = NamesSettings(  # type: ignore[call-arg]
        model=name, dim=16, layers=1, heads=2, epochs=25, batch_size=4, lr=0.03
    )
    run = NamesRun(NAMES, settings, heldout=NAMES)
    named, trainer = run.named, run.trainer
    uniform = np.log(len(named.alphabet))
    if trainer is not None:
        assert named.loss(NAMES) > 0.7 * uniform
        list(trainer.fit())
        trainer.keep_best()
    assert named.loss(NAMES) < 0.8 * uniform
    named.save(tmp_path / "m")
    loaded = NamesModel.load(tmp_path / "m")
    assert loaded.nats(NAMES) == pytest.approx(named.nats(NAMES), abs=1e-4)
    assert loaded.trained_on == NAMES
    assert sample(loaded, 5) == sample(named, 5)


def test_alphabet_and_model_of_different_sizes_are_refused(
    ngram: NamesModel, tmp_path: Path
) -> None:
    with modeldir.create(tmp_path / "m", ngram.config) as folder:
        ngram.write(folder)
        (folder / "alphabet.json").write_text('{"characters": "abc", "labels": []}')
    with pytest.raises(NlpkitError, match="alphabet has 4 ids, the model"):
        NamesModel.load(tmp_path / "m")


def test_scores_add_up(ngram: NamesModel) -> None:
    whole, opened = ngram.nats([NAMES[0]])[0], ngram.open_nats([NAMES[0]])[0]
    assert 0 < opened < whole
    with pytest.raises(NlpkitError, match="a name of 99 characters"):
        ngram.nats([Name("a" * 99)])


# --- constraints --------------------------------------------------------------------------------


def test_samples_are_seeded(ngram: NamesModel) -> None:
    assert sample(ngram, 10, seed=1) == sample(ngram, 10, seed=1)
    assert sample(ngram, 10, seed=1) != sample(ngram, 10, seed=2)


@pytest.mark.parametrize(
    "limits",
    [
        {"prefix": "Mar"},
        {"suffix": "ina"},
        {"contains": "lz"},
        {"prefix": "Al", "suffix": "ó"},
        {"contains": "er", "suffix": "a", "max_length": 7},
        {"min_length": 6, "max_length": 8},
    ],
)
def test_constraints_hold(ngram: NamesModel, limits: dict[str, object]) -> None:
    for text in sample(ngram, 12, **limits):
        assert text.startswith(str(limits.get("prefix", "")))
        assert text.endswith(str(limits.get("suffix", "")))
        assert str(limits.get("contains", "")) in text
        assert int(str(limits.get("min_length", 1))) <= len(text)
        assert len(text) <= int(str(limits.get("max_length", 99)))


def test_pattern_matches_the_whole_name(ngram: NamesModel) -> None:
    for text in sample(ngram, 10, pattern="[MV].*[aó]"):
        assert text[0] in "MV"
        assert text[-1] in "aó"


def test_unique_and_novel(ngram: NamesModel) -> None:
    drawn = sample(ngram, 8, unique=True, novel=True, sampling=SamplingSettings(temperature=1.5))
    assert len(set(drawn)) == 8
    assert not set(drawn) & {name.text for name in NAMES}


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"pattern": "M.*M", "tries": 50}, "only 0 of 3 names met the constraints in 50 tries"),
        ({"pattern": "("}, "`pattern`"),
        ({"pattern": "Q.*"}, "asks for characters that the model has never seen"),
        ({"pattern": r".*\d"}, "asks for characters that the model has never seen"),
        ({"pattern": ".{60,}"}, "asks for 60 characters or more.* more than 31"),
        ({"pattern": "a{4}", "max_length": 3}, "asks for 4 characters or more.* more than 3"),
        ({"pattern": r"(?i)q+"}, "no name of this model can match"),
        ({"pattern": r"(?=b)a"}, "no name of this model can match"),
        ({"pattern": "(?<=M)(a|a)+", "prefix": "Ma"}, "begin with 'Ma' and match"),
        ({"min_length": 9, "max_length": 4}, "9 characters or more and 4 or fewer"),
        ({"prefix": "x" * 200}, "no name can have 200"),
        ({"prefix": "Ma", "pattern": "V.*"}, "no name of this model can begin with 'Ma' and match"),
        ({"prefix": "Ж"}, "never seen 'Ж'"),
        ({"label": "m"}, "no label 'm'"),
        ({"max_length": 1, "suffix": "ina"}, "3 characters or more and 1 or fewer"),
    ],
)
def test_impossible_constraints_are_one_line(
    ngram: NamesModel, limits: dict[str, object], message: str
) -> None:
    with pytest.raises(NlpkitError, match=message):
        sample(ngram, 3, **limits)


def test_a_hopeless_pattern_is_found_out_without_many_tries(ngram: NamesModel) -> None:
    """Each beginning that leads nowhere is ruled out: after a few tries nothing is left to try."""
    with pytest.raises(NlpkitError, match="no name of this model can match"):
        sample(ngram, 3, pattern="(?!x)M[aeo](?!.)r", tries=10**9)


def test_a_pattern_that_is_matched_for_ever_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namepattern, "_SECONDS", 0.01)
    pattern = NamePattern("(a|aa)+(?=b)c", ["a", "b", "c"], longest=40)
    with pytest.raises(NlpkitError, match="takes too long to match"):
        pattern.matches("a" * 40)


_ATOMS = st.sampled_from(["a", "b", "c", ".", "[^a]", "[b-d]", r"\d", r"\w", r"\D", "[ac]"])
_PATTERNS = st.recursive(
    _ATOMS,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map("".join)
        | st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})")
        | st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}"])).map(
            lambda pair: f"({pair[0]}){pair[1]}"
        )
    ),
    max_leaves=5,
)


@given(_PATTERNS)
def test_the_fewest_characters_of_a_pattern_are_those_of_its_shortest_match(pattern: str) -> None:
    compiled = regex.compile(pattern)
    lengths = (
        length
        for length in range(5)
        for letters in itertools.product("ab", repeat=length)
        if compiled.fullmatch("".join(letters))
    )
    shortest = next(lengths, None)
    fewest = fewest_characters(pattern, "ab")
    assert fewest == shortest if shortest is not None else fewest > 4


def test_labels_condition_the_names() -> None:
    named = NamesRun(LABELLED, NamesSettings(model="ngram"), heldout=LABELLED).train()
    drawn = {label: sample(named, 200, label=label) for label in "mf"}
    for end, label, other in (("o", "m", "f"), ("a", "f", "m")):
        right, wrong = (sum(n.endswith(end) for n in drawn[one]) for one in (label, other))
        assert right > wrong + 40
    mixed = list(sample_names(named, 40, Constraints(), seed=1))
    assert {name.label for name in mixed} == {"m", "f"}


# --- report -------------------------------------------------------------------------------------


def edit_distance(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(previous[j] + 1, row[-1] + 1, previous[j - 1] + (x != y)))
    return row[-1]


@given_settings(deadline=None)  # the first call imports a library
@given(st.text("abc", min_size=1, max_size=6), st.lists(st.text("abc", min_size=1), min_size=1))
def test_nearest_name_has_the_smallest_edit_distance(text: str, names: list[str]) -> None:
    nearest, distance = nearest_name(text, names)
    assert distance == min(edit_distance(text, name) for name in names)
    assert edit_distance(text, nearest) == distance


def test_report_compares_samples_with_the_data() -> None:
    record = compare(["Anna", "Ann", "Ann"], ["Anna", "Bo"])
    assert record["known"] == pytest.approx(1 / 3)
    assert record["lengths"]["3"] == [pytest.approx(2 / 3), 0.0]
    assert sum(pair[0] for pair in record["letters"].values()) == pytest.approx(1)
