"""The sample corpora: reproducible from their facts, well-formed, and holding what is promised."""

import itertools
import re
import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parent.parent / "sample_corpora"
GENERATED = [
    "dates-test.tsv",
    "dates.tsv",
    "en-ca-test.tsv",
    "en-ca.tsv",
    "follows.tsv",
    "numbers-ca.tsv",
    "numbers-en.tsv",
    "prompts-test.jsonl",
    "prompts.jsonl",
    "questions.tsv",
    "reviews.tsv",
    "tagged-test.conllu",
    "tagged-train.conllu",
    "tales.txt",
    "world-analogies.txt",
    "world.txt",
]
WRITTEN = ["README.md", "metro.tsv", "names-ca.txt", "names-en.txt", "world-pairs.tsv"]
FIRST_TEN_REVIEWS = {
    "Never coming back!": "negative",
    "horrible service": "negative",
    "rude waitress": "negative",
    "cold food": "negative",
    "horrible food!": "negative",
    "poor work": "negative",
    "awesome": "positive",
    "awesome services!": "positive",
    "rocks": "positive",
    "couldn't have done better": "positive",
}
UPOS = set("ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X".split())
ENTITIES = {"O"} | {f"{place}-{kind}" for place in "BI" for kind in ("PER", "LOC", "ORG")}

Sentence = tuple[str, list[list[str]]]


def lines_of(name: str) -> list[str]:
    return (SAMPLES / name).read_text(encoding="utf-8").splitlines()


def sentences_of(name: str) -> list[Sentence]:
    """The text and the rows of columns of each sentence of a CoNLL-U file."""
    blocks = (SAMPLES / name).read_text(encoding="utf-8").removesuffix("\n\n").split("\n\n")
    sentences = []
    for block in blocks:
        identifier, text, *rows = block.split("\n")
        assert identifier.startswith("# sent_id = ")
        assert text.startswith("# text = ")
        sentences.append((text.removeprefix("# text = "), [row.split("\t") for row in rows]))
    return sentences


def words_of(sentence: Sentence) -> list[list[str]]:
    return [row for row in sentence[1] if "-" not in row[0]]


def test_the_script_gives_every_generated_file_again(tmp_path: Path) -> None:
    command = [sys.executable, str(SAMPLES / "make_corpora.py")]
    subprocess.run([*command, "-o", str(tmp_path)], check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == GENERATED
    for name in GENERATED:
        assert (tmp_path / name).read_bytes() == (SAMPLES / name).read_bytes(), name


def test_everything_together_is_below_four_megabytes() -> None:
    files = [path for path in SAMPLES.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert sum(path.stat().st_size for path in files) < 4_000_000


@pytest.mark.parametrize("name", GENERATED + WRITTEN)
def test_files_are_clean_utf8(name: str) -> None:
    text = (SAMPLES / name).read_bytes().decode("utf-8")
    assert text == unicodedata.normalize("NFC", text)
    assert text.endswith("\n")
    assert name.endswith(".jsonl") or not re.search(r"[\r{}]", text)  # of templates
    assert not re.search(r" \n" if name == "questions.tsv" else r"[ \t]\n", text)  # no answer
    if "-ca" not in name and name != "README.md":
        assert text.isascii()


def test_world_has_one_lower_case_sentence_a_line() -> None:
    lines = lines_of("world.txt")
    assert len(lines) == len(set(lines)) > 10_000
    for line in lines:
        assert re.fullmatch(r"[a-z]+( ([a-z]+|[,;]))* [.?]", line), line


def test_world_questions_use_words_that_are_frequent_enough() -> None:
    counts = Counter(word for line in lines_of("world.txt") for word in line.split())
    sections: dict[str, list[list[str]]] = {}
    for line in lines_of("world-analogies.txt"):
        if line.startswith(": "):
            questions = sections.setdefault(line[2:], [])
        else:
            questions.append(line.split(" "))
    assert {"country-capital", "country-currency", "man-woman", "verb-past"} <= set(sections)
    for section, questions in sections.items():
        assert len(questions) >= 40, section
        assert len(set(map(tuple, questions))) == len(questions)
        for question in questions:
            assert len(set(question)) == 4
            assert all(counts[word] >= 5 for word in question), question


def test_world_pairs_are_scored_words_of_world() -> None:
    counts = Counter(word for line in lines_of("world.txt") for word in line.split())
    rows = [line.split("\t") for line in lines_of("world-pairs.tsv") if not line.startswith("#")]
    assert len(rows) >= 60
    assert len({frozenset(row[:2]) for row in rows}) == len(rows)
    for first, second, score in rows:
        assert counts[first] >= 5, first
        assert counts[second] >= 5, second
        assert 0 <= float(score) <= 10


def plain(name: str) -> tuple[str, str]:
    letters = unicodedata.normalize("NFD", name)
    return "".join(c for c in letters if not unicodedata.combining(c)).casefold(), name


@pytest.mark.parametrize(
    ("name", "least", "pattern"),
    [
        ("names-en.txt", 2_000, r"[A-Z][a-z]+"),
        ("names-ca.txt", 900, r"[A-ZÀÈÉÍÒÓÚ][\w ',·-]+"),
    ],
)
def test_names_are_distinct_and_sorted(name: str, least: int, pattern: str) -> None:
    names = lines_of(name)
    assert len(set(names)) == len(names) >= least
    assert names == sorted(names, key=plain)
    for entry in names:
        assert re.fullmatch(pattern, entry), entry


def test_catalan_names_are_in_index_form() -> None:
    assert {"Alzinó, Mas d'", "Vallvidrera, riera de", "Hospitalet de Llobregat, l'"} <= set(
        lines_of("names-ca.txt")
    )


def test_tales_are_paragraphs_with_titles() -> None:
    text = (SAMPLES / "tales.txt").read_text(encoding="utf-8")
    assert len(text) >= 200_000
    paragraphs = text.removesuffix("\n").split("\n\n")
    titles = [paragraph for paragraph in paragraphs if paragraph.isupper()]
    assert len(titles) == len(set(titles)) > 200
    for paragraph in paragraphs:
        assert "\n" not in paragraph
        assert "  " not in paragraph
        assert paragraph.count('"') % 2 == 0, paragraph
        assert paragraph.isupper() or re.search(r'[.!?]"?$', paragraph), paragraph


def bare(text: str) -> str:
    return " ".join(re.findall(r"[a-z']+", text.lower()))


def test_reviews_are_balanced_and_never_in_both_splits() -> None:
    header, *lines = lines_of("reviews.tsv")
    rows = [line.split("\t") for line in lines]
    assert header == "split\tlabel\ttext"
    assert len(rows) >= 800
    assert len({bare(text) for _, _, text in rows}) == len(rows)
    counts = Counter((split, label) for split, label, _ in rows)
    assert set(counts) == set(itertools.product(("train", "test"), ("positive", "negative")))
    for split in ("train", "test"):
        assert counts[split, "positive"] == counts[split, "negative"] >= 100


def test_reviews_have_the_first_ten_for_training() -> None:
    rows = {text: (split, label) for split, label, text in map(split_row, lines_of("reviews.tsv"))}
    for text, label in FIRST_TEN_REVIEWS.items():
        assert rows[text] == ("train", label)


def split_row(line: str) -> list[str]:
    return line.split("\t")


def rebuilt_text(sentence: Sentence) -> Iterator[str]:
    """The pieces of the text, as the forms and `SpaceAfter=No` say."""
    covered_until = 0
    for row in sentence[1]:
        first, _, last = row[0].partition("-")
        if last:
            covered_until = int(last)
        elif int(first) <= covered_until:
            continue
        yield row[1]
        yield "" if "SpaceAfter=No" in row[9].split("|") else " "


@pytest.mark.parametrize(("name", "least"), [("train", 1_000), ("test", 200)])
def test_tagged_sentences_are_valid_conllu(name: str, least: int) -> None:
    sentences = sentences_of(f"tagged-{name}.conllu")
    assert len(sentences) >= least
    ranges = 0
    for sentence in sentences:
        text, rows = sentence
        assert all(len(row) == 10 and all(row) for row in rows), text
        words = words_of(sentence)
        assert [row[0] for row in words] == [str(n) for n in range(1, len(words) + 1)]
        assert {row[3] for row in words} <= UPOS
        assert all(row[4] != "_" and row[2] != "_" for row in words)
        assert all(row[5:9] == ["_"] * 4 for row in words)
        assert "".join(rebuilt_text(sentence)).rstrip() == text
        for row in rows:
            if "-" in row[0]:
                first, last = map(int, row[0].split("-"))
                assert row[1] == "".join(word[1] for word in words[first - 1 : last])
                assert row[2:9] == ["_"] * 7
                ranges += 1
    assert ranges >= 20


@pytest.mark.parametrize("name", ["train", "test"])
def test_tagged_entities_are_bio(name: str) -> None:
    kinds = Counter[str]()
    for sentence in sentences_of(f"tagged-{name}.conllu"):
        before = "O"
        for row in words_of(sentence):
            tag = row[9].split("|")[0].removeprefix("NER=")
            assert tag in ENTITIES
            if tag.startswith("I-"):
                assert before[1:] == tag[1:], sentence[0]
            kinds[tag] += 1
            before = tag
    assert all(kinds[tag] >= 5 for tag in ENTITIES)


def tags_of(word: str, sentences: list[Sentence]) -> Counter[tuple[str, str]]:
    return Counter(
        (row[3], row[9].split("|")[0])
        for sentence in sentences
        for row in words_of(sentence)
        if row[1] == word
    )


def test_no_tagged_test_sentence_is_in_train() -> None:
    train = [text for text, _ in sentences_of("tagged-train.conllu")]
    test = [text for text, _ in sentences_of("tagged-test.conllu")]
    assert len(set(train)) == len(train)
    assert len(set(test)) == len(test)
    assert not set(train) & set(test)


def test_tagged_test_has_words_unknown_to_train() -> None:
    train = {row[1] for sentence in sentences_of("tagged-train.conllu") for row in sentence[1]}
    test = [row[1] for sentence in sentences_of("tagged-test.conllu") for row in words_of(sentence)]
    assert 0.03 < sum(word not in train for word in test) / len(test) < 0.2


@pytest.mark.parametrize(
    ("word", "as_name", "otherwise"),
    [
        ("Teddy", ("PROPN", "NER=B-PER"), ("NOUN", "NER=O")),
        ("Apple", ("PROPN", "NER=B-ORG"), ("NOUN", "NER=O")),
        ("Paris", ("PROPN", "NER=B-PER"), ("PROPN", "NER=B-LOC")),
        ("Rich", ("PROPN", "NER=B-PER"), ("ADJ", "NER=O")),
    ],
)
def test_ambiguous_words_are_trained_with_both_readings(
    word: str, as_name: tuple[str, str], otherwise: tuple[str, str]
) -> None:
    tags = tags_of(word, sentences_of("tagged-train.conllu"))
    assert set(tags) == {as_name, otherwise}
    assert min(tags.values()) >= 2


def test_the_two_teddies_are_in_test_alone() -> None:
    wanted = {
        "He said Teddy Roosevelt was a great president.": ("PROPN", "NER=B-PER"),
        "He said Teddy bears are on sale.": ("NOUN", "NER=O"),
    }
    test = {sentence[0]: sentence for sentence in sentences_of("tagged-test.conllu")}
    train = {text for text, _ in sentences_of("tagged-train.conllu")}
    for text, tags in wanted.items():
        assert tags_of("Teddy", [test[text]]) == {tags: 1}
        assert text not in train


@pytest.mark.parametrize("name", ["dates", "en-ca"])
def test_no_source_of_a_test_file_is_trained_on(name: str) -> None:
    train, test = (
        {line.split("\t")[0] for line in lines_of(f"{name}{part}.tsv")} for part in ("", "-test")
    )
    assert len(test) >= 300
    assert not train & test


def test_numbers_are_written_as_both_languages_write_them() -> None:
    english = dict(line.split("\t") for line in lines_of("numbers-en.tsv"))
    catalan = dict(line.split("\t") for line in lines_of("numbers-ca.tsv"))
    assert english.keys() == catalan.keys()
    assert english["121"] == "one hundred and twenty-one"
    assert (catalan["21"], catalan["31"], catalan["101"]) == ("vint-i-un", "trenta-un", "cent un")


def test_catalan_articles_are_elided_and_joined() -> None:
    targets = [line.split("\t")[1] for line in lines_of("en-ca.tsv")]
    text = " ".join(targets)
    assert " l'àvia" in text
    assert " al jardí" in text
    assert not re.search(r"\b(a el|de el|a els|de els|el àn|la à)\b", text)
