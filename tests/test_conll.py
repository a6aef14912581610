"""Tagged sentences in and out: nothing but the tag may change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlpkit.errors import NlpkitError
from nlpkit.tasks.tag.layouts import LayoutChoice, choose_layout, detect_layout
from nlpkit.text import conll
from nlpkit.text.conll import CONLLU, Layout, Sentence
from nlpkit.textio import TextBlock

TRICKY = (
    "# newdoc id = a\n"
    "# text = Don't go _ home\n"
    "1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tDo\tdo\tAUX\tVB\tMood=Imp|Person=2\t3\taux\t3:aux\t_\n"
    "2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t3:advmod\t_\n"
    "3\tgo\tgo\tVERB\tVB\t_\t0\troot\t0:root\tNER=O|SpaceAfter=No\n"
    "4\t_\t_\tPUNCT\t_\t_\t3\tpunct\t3:punct\t_\n"
    "5\tNew York\tNew York\tPROPN\tNNP\t_\t3\tobl\t_\tNER=B-LOC\n"
    "8.1\tgone\t_\tVERB\t_\t_\t_\t_\t0:root\tCopyOf=3\n"
    "\n"
    "\n"
    "# a comment alone\n"
    "1\tYes\tyes\tINTJ\tUH\t_\t0\troot\t_\t_\r\n"
    "\r\n"
    "# the last line has no end\n"
    "1\tNo\tno\tINTJ\tUH\t_\t0\troot\t_\t_"
)


def read(text: str, layout: Layout, tagged: bool = True) -> list[Sentence]:
    lines = conll.read_lines([TextBlock(text.encode(), "f", 1)])
    return list(conll.read_sentences(lines, layout, tagged=tagged))


def rewrite(text: str, layout: Layout) -> str:
    return "".join(conll.with_tags(s, s.tags, layout) for s in read(text, layout))


def test_conllu_comes_back_byte_for_byte() -> None:
    assert rewrite(TRICKY, CONLLU) == TRICKY


def test_conllu_ranges_and_empty_nodes_are_no_tokens() -> None:
    sentences = read(TRICKY, CONLLU)
    assert [s.tokens for s in sentences] == [["Do", "n't", "go", "_", "New York"], ["Yes"], ["No"]]
    assert sentences[0].tags == ["AUX", "PART", "VERB", "PUNCT", "PROPN"]
    assert sentences[0].spaces_after == [True, True, False, True, True]


def test_only_the_tag_column_changes() -> None:
    sentence = read(TRICKY, CONLLU)[0]
    text = conll.with_tags(sentence, ["X"] * 5, CONLLU)
    changed = [
        (before.split("\t"), after.split("\t"))
        for before, after in zip("".join(sentence.lines).split("\n"), text.split("\n"), strict=True)
        if before != after
    ]
    assert len(changed) == 5
    for before, after in changed:
        assert [i for i in range(10) if before[i] != after[i]] == [3]


def test_a_key_of_a_column_is_a_tag() -> None:
    layout = Layout("conllu", 1, 9, 10, key="NER")
    sentence = read(TRICKY, layout)[0]
    assert sentence.tags == ["_", "_", "O", "_", "B-LOC"]
    assert rewrite(TRICKY, layout) == TRICKY
    text = conll.with_tags(sentence, ["O", "_", "B-X", "_", "O"], layout)
    assert "\tNER=B-X|SpaceAfter=No\n" in text
    assert "3:aux\tNER=O\n" in text


field = st.text(
    st.characters(blacklist_categories=("Cs", "Zs", "Cc"), blacklist_characters="\u2028\u2029"),
    min_size=1,
    max_size=6,
)


@given(st.lists(st.lists(st.tuples(field, field), min_size=1, max_size=4), min_size=1, max_size=4))
def test_columns_round_trip(rows: list[list[tuple[str, str]]]) -> None:
    rows = [[(f"w{word}", tag) for word, tag in row] for row in rows]
    text = "\n".join("".join(f"{word}\t_\t{tag}\n" for word, tag in row) for row in rows)
    layout = Layout("columns", 0, 2, 3)
    sentences = read(text, layout)
    assert [list(zip(s.tokens, s.tags, strict=True)) for s in sentences] == rows
    assert rewrite(text, layout) == text


def test_spaces_between_columns_stay_as_they_are() -> None:
    text = "EU   NNP  B-ORG\nrejects\tVBZ O\n\n"
    layout = Layout("columns", 0, 1, 3, tabs=False)
    sentence = read(text, layout)[0]
    assert sentence.tags == ["NNP", "VBZ"]
    assert conll.with_tags(sentence, ["A", "B"], layout) == "EU   A  B-ORG\nrejects\tB O\n\n"


def test_one_line_with_spaces_in_a_file_of_tabs_is_read() -> None:
    assert read("EU\tNNP\tB-ORG\nrejects VBZ O\n", Layout("columns", 0, 2, 3))[0].tags == [
        "B-ORG",
        "O",
    ]


def test_docstart_is_no_sentence() -> None:
    text = "-DOCSTART- -X- O O\n\nEU NNP B-NP B-ORG\n\n"
    layout = detect_layout(text.split("\n"))
    assert layout is not None
    assert [s.tokens for s in read(text, layout)] == [["EU"]]
    assert rewrite(text, layout) == text


def test_a_missing_tag_column_is_added() -> None:
    layout = Layout("columns", 0, 1, 2)
    sentence = read("EU\nrejects\n\n", layout, tagged=False)[0]
    assert sentence.tags == []
    assert conll.with_tags(sentence, ["A", "B"], layout) == "EU\tA\nrejects\tB\n\n"


def test_hashtags_are_tokens_and_comments_are_not() -> None:
    text = "# id = 7\n#tag\tO\nso\tO\n\n"
    assert read(text, Layout("columns", 0, 1, 2))[0].tokens == ["#tag", "so"]


def test_too_few_columns_name_file_and_line() -> None:
    with pytest.raises(NlpkitError, match="f: line 2: expected 10 columns between tabs, found 3"):
        read(TRICKY.split("1-2")[0].split("# text")[0] + "1\tDo\tAUX\n", CONLLU)
    with pytest.raises(NlpkitError, match="line 1: expected word/TAG, found 'dog'"):
        read("the/DET dog\n", Layout("slash"))
    with pytest.raises(NlpkitError, match="3 characters and 2 tags"):
        read("ACG\tNC\n", Layout("pairs"))
    with pytest.raises(NlpkitError, match="the token is empty"):
        read("\tO\n", Layout("columns", 0, 1, 2))


def test_slash_lines() -> None:
    text = "and/or/CC 1/2/CD\n\n./.\n"
    sentences = read(text, Layout("slash"))
    assert [s.tokens for s in sentences] == [["and/or", "1/2"], [], ["."]]
    assert rewrite(text, Layout("slash")) == text


def test_strings_with_tags() -> None:
    text = "ACGT\tNNCC\nAC\tone two\n"
    sentences = read(text, Layout("pairs"))
    assert [s.tags for s in sentences] == [["N", "N", "C", "C"], ["one", "two"]]
    assert rewrite(text, Layout("pairs")) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TRICKY, ("conllu", 1)),
        ("EU NNP B-NP B-ORG\nrejects VBZ B-VP O\n", ("columns", 0)),
        ("1\tOslo\tB-LOC\t-\tann\n2\twaits\tO\t-\t-\n", ("columns", 1)),
        ("a\tO\nb\tB-X\n", ("columns", 0)),
        ("The/DET dog/NOUN\n", ("slash", 0)),
        ("AGCCCC\tNNNCCC\nAG\tNN\n", ("pairs", 0)),
        ("The dog barks.\nThe cat sleeps.\n", None),
        ("", None),
    ],
)
def test_the_layout_is_found_out(text: str, expected: tuple[str, int] | None) -> None:
    found = detect_layout(text.split("\n"))
    assert (found and (found.format, found.token_column)) == expected


def test_the_tag_column_is_found_out_or_named() -> None:
    lines = ["1\tOslo\tB-LOC\t-\tann", "2\twaits\tO\t-\t-"]
    assert choose_layout(lines, LayoutChoice(), "f").tag_column == 2
    assert choose_layout(lines, LayoutChoice(tag_column=5, token_column=1), "f").tag_column == 4
    assert choose_layout(TRICKY.split("\n"), LayoutChoice(column="xpos"), "f").tag_column == 4
    with pytest.raises(NlpkitError, match="no such CoNLL-U column"):
        choose_layout(TRICKY.split("\n"), LayoutChoice(column="pos"), "f")
    with pytest.raises(NlpkitError, match="no tagged sentences"):
        choose_layout(["Just some text here."], LayoutChoice(), "f")


def test_sentences_come_as_soon_as_they_end() -> None:
    reader = conll.SentenceReader(Layout("columns", 0, 1, 2))
    assert list(reader.feed([("a\tO\n", "f", 1)])) == []
    assert [s.tokens for s in reader.feed([("\n", "f", 2)])] == [["a"]]
    assert list(reader.close()) == []


fields = st.text(st.characters(exclude_characters="\t\n\r", exclude_categories=["Cs"]), min_size=1)


@given(st.lists(st.tuples(fields, fields), min_size=1, max_size=6))
def test_any_tokens_and_tags_come_back_from_columns(pairs: list[tuple[str, str]]) -> None:
    # a line of two columns that begins with # is a token, for comments have no tab
    kept = [(word, tag) for word, tag in pairs if word != "-DOCSTART-" and (word + tag).strip()]
    layout = Layout("columns", 0, 1, 2)
    lines = [(f"{word}\t_\n", "f", number) for number, (word, _) in enumerate(kept, 1)]
    read = list(conll.read_sentences(lines, layout))
    assert [word for sentence in read for word in sentence.tokens] == [word for word, _ in kept]
    places = iter([tag for _, tag in kept])
    text = "".join(
        conll.with_tags(each, [next(places) for _ in each.tokens], layout) for each in read
    )
    again = conll.read_sentences([(line + "\n", "f", 1) for line in text.split("\n")[:-1]], layout)
    assert [pair for each in again for pair in zip(each.tokens, each.tags, strict=True)] == kept


def test_columns_by_name_are_read_and_written_and_nothing_else_changes() -> None:
    sentence = read(TRICKY, CONLLU)[0]
    heads, labels = (conll.column_of(sentence, name, CONLLU) for name in ("head", "deprel"))
    assert heads == ["3", "3", "0", "3", "3"]
    assert labels == ["aux", "advmod", "root", "punct", "obl"]
    assert conll.column_of(sentence, "feats:Person", CONLLU) == ["2", "_", "_", "_", "_"]
    same = conll.with_columns(sentence, {"head": heads, "deprel": labels}, CONLLU)
    assert same == "".join(sentence.lines)
    text = conll.with_columns(sentence, {"head": ["0"] * 5, "7": ["9"] * 5}, CONLLU)
    changed = read(text, CONLLU)[0]
    assert conll.column_of(changed, "head", CONLLU) == ["9"] * 5
    assert conll.column_of(changed, "deprel", CONLLU) == labels


def test_a_column_that_is_not_there_is_named() -> None:
    sentence = read(TRICKY, CONLLU)[0]
    with pytest.raises(NlpkitError, match="no such CoNLL-U column: heads"):
        conll.column_of(sentence, "heads", CONLLU)
    with pytest.raises(NlpkitError, match="no such CoNLL-U column: 11"):
        conll.column_of(sentence, "11", CONLLU)
    words = Layout("columns", 0, 1, 2)
    with pytest.raises(NlpkitError, match="f: line 1: no column 3, there are 2"):
        conll.column_of(read("a\tX\n", words)[0], "3", words)
    with pytest.raises(NlpkitError, match="no such column: tag"):
        conll.column_of(read("a\tX\n", words)[0], "tag", words)
