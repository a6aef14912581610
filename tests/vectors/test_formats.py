"""Files in and out: round trips, what other tools write, and files that are not what they say."""

import contextlib
import gzip
import random
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from model_files import without_manifest

from nlpkit.errors import NlpkitError
from nlpkit.vectors import textformat
from nlpkit.vectors.formats import format_of_name, load, save
from nlpkit.vectors.settings import VectorFormat
from nlpkit.vectors.store import Vectors

from .test_fasttext import model as fasttext_model

ODD_WORDS = [
    "</s>",
    "new york",
    "non\u00a0breaking",
    "🙂",
    "<b>",
    "-1",
    "\u2028",
    "\x85",
    "é",
    "a\tb",
]
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


def sample(words: list[str] = ODD_WORDS, dim: int = 3) -> Vectors:
    matrix = np.random.default_rng(1).standard_normal((len(words), dim)).astype(np.float32)
    return Vectors(words, matrix)


def write(tmp_path: Path, data: bytes, name: str = "vectors") -> str:
    path = tmp_path / name
    path.write_bytes(data)
    return str(path)


def same(left: Vectors, right: Vectors) -> bool:
    equal = np.array_equal(left.matrix.view(np.uint32), right.matrix.view(np.uint32))
    return list(left.words) == list(right.words) and equal


# --- round trips --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "format", [each for each in VectorFormat if each is not VectorFormat.BINARY]
)
def test_odd_words_and_exact_numbers_survive(tmp_path: Path, format: VectorFormat) -> None:
    save(sample(), str(tmp_path / "v"), format)
    assert same(load(str(tmp_path / "v")), sample())


def test_binary_survives_bit_for_bit(tmp_path: Path) -> None:
    words = [word for word in ODD_WORDS if " " not in word]
    vectors = sample(words)
    vectors.matrix[0] = [-0.0, 1e-45, 3.4e38]
    save(vectors, str(tmp_path / "v"), VectorFormat.BINARY)
    assert same(load(str(tmp_path / "v")), vectors)


def test_binary_refuses_a_word_with_a_space_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(NlpkitError, match="'new york'"):
        save(sample(), str(tmp_path / "v"), VectorFormat.BINARY)
    assert list(tmp_path.iterdir()) == []


@settings(deadline=None)
@given(matrix=arrays(np.float32, st.tuples(st.integers(1, 6), st.integers(1, 4)), elements=FLOATS))
def test_any_finite_float32_survives_as_text(
    tmp_path_factory: pytest.TempPathFactory, matrix: np.ndarray
) -> None:
    path = str(tmp_path_factory.mktemp("t") / "v.txt")
    vectors = Vectors([f"w{i}" for i in range(len(matrix))], matrix)
    save(vectors, path, VectorFormat.WORD2VEC)
    assert same(load(path), vectors)


def test_counts_survive_in_a_folder(tmp_path: Path) -> None:
    vectors = Vectors.from_rows(
        ["b", "a"], np.eye(2, dtype=np.float32), name="x", counts=np.array([5, 2])
    )
    save(vectors, str(tmp_path / "m"))
    assert load(str(tmp_path / "m")).words.counts.tolist() == [5, 2]


@pytest.mark.parametrize("word", ["two\nlines", ""])
def test_a_word_no_format_can_hold_is_refused(tmp_path: Path, word: str) -> None:
    with pytest.raises(NlpkitError, match="no format can hold"):
        save(sample([word]), str(tmp_path / "v"))


def test_an_existing_file_is_kept_unless_forced(tmp_path: Path) -> None:
    path = write(tmp_path, b"precious", "v.txt")
    with pytest.raises(NlpkitError, match="exists already"):
        save(sample(), path)
    save(sample(), path, force=True)
    assert same(load(path), sample())


def test_names_suggest_formats() -> None:
    names = ["a.txt", "glove.50d.txt", "a.vec", "a.bin", "a", "a.model"]
    found = [format_of_name(name).value for name in names]
    assert found == ["word2vec", "glove", "fasttext", "binary", "folder", "folder"]


# --- what other tools write ---------------------------------------------------------------------

C_TEXT = b"2 3\n</s> 0.500000 -0.250000 0.125000 \nthe 1.000000 2.000000 -3.000000 \n"
GENSIM_TEXT = b"2 3\n</s> 0.5 -0.25 0.125\nthe 1.0 2.0 -3.0\n"
GLOVE = b"</s> .5 -0.25 1.25e-1\nthe 1 2 -3"
WINDOWS = GENSIM_TEXT.replace(b"\n", b"\r\n")
ROWS = (struct.pack("<3f", 0.5, -0.25, 0.125), struct.pack("<3f", 1, 2, -3))
C_BINARY = b"2 3\n</s> " + ROWS[0] + b"\nthe " + ROWS[1] + b"\n"
GENSIM_BINARY = b"2 3\n</s> " + ROWS[0] + b"the " + ROWS[1]


@pytest.mark.parametrize("data", [C_TEXT, GENSIM_TEXT, GLOVE, WINDOWS, C_BINARY, GENSIM_BINARY])
@pytest.mark.parametrize("compressed", [False, True])
def test_every_dialect_reads_the_same(tmp_path: Path, data: bytes, compressed: bool) -> None:
    path = write(tmp_path, gzip.compress(data), "v.gz") if compressed else write(tmp_path, data)
    vectors = load(path)
    assert list(vectors.words) == ["</s>", "the"]
    assert vectors.matrix.tolist() == [[0.5, -0.25, 0.125], [1, 2, -3]]


def test_a_binary_vector_may_begin_with_the_byte_of_a_newline(tmp_path: Path) -> None:
    row = b"\n\n\n\n \n\0\n"
    vectors = load(write(tmp_path, b"1 2\na " + row))
    assert vectors.matrix.tobytes() == row


def test_a_number_of_twenty_digits_is_rounded_as_python_does(tmp_path: Path) -> None:
    texts = [
        "0.12345678901234567890",
        "1e-40",
        "123456789012345678901234567890",
        "-1.5E+3",
        "+2",
        "5.",
    ]
    vectors = load(write(tmp_path, f"word {' '.join(texts)}\n".encode()))
    assert vectors.matrix[0].tolist() == [float(np.float32(float(text))) for text in texts]


def test_glove_rows_with_spaces_do_not_mislead_the_width(tmp_path: Path) -> None:
    vectors = load(write(tmp_path, b". . . 1 2\nat name@domain.com 3 4\nthe 5 6\nof 7 8\nto 9 0\n"))
    assert list(vectors.words) == [". . .", "at name@domain.com", "the", "of", "to"]
    assert vectors.dim == 2


@pytest.mark.parametrize("data", [b"\x80\x04\x95rest of a pickle", b"\x80\x02}"])
def test_a_gensim_pickle_is_refused_with_a_way_out(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(NlpkitError, match=r"pickle.*save_word2vec_format"):
        load(write(tmp_path, data, "v.kv"))


# --- files that are not what they say -----------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"3 2\na 1.5 2.5\nb 1.5 2.5\n", "promises 3 words, the file has 2"),
        (b"1 3\na 1 2 3\nb 1 2 3\n", "promises 1 word, the file has 2"),
        (b"500000 1000\na 1 2 3\n" + b"x" * 1000, "do not fit in 1,0"),
        (b"2 2\na " + b"\0" * 8 + b"b " + b"\0" * 5, "do not fit"),
        (b"2 2\na " + b"\0" * 8 + b"bbbb " + b"\0" * 7, "cut short after 1 of 2 words"),
        (b"1 2\na " + b"\0" * 8 + b"b " + b"\0" * 8, "there is more after"),
        (b"0 3\n", "0 words of 3 numbers"),
        (b"a 1 2\nb 1\nc 1 2\n", "line 2: expected a word and 2 numbers, found 1"),
        (b"2 2\na 1 2\nb 1 two\n", "line 3: b'two' is not a number"),
        (b"a 1 2\n\nb 1 2\n", "line 2: expected a word"),
        (b"2 3\na 1 2\nb 1.5 2.5 3.5\n", "line 2: expected a word and 3 numbers, found 2"),
        (b"2 2\na 1 x\nb 1 2.5\n", "line 2: b'x' is not a number"),
        (b"a 1 2\n 1 2\nb 1 2\n", "line 2: the word is missing"),
        (b"a 1 2\nb nan 2\n", "the vector of 'b' holds a number that is not finite"),
        (b"a 1 2\nb -inf 2\n", "the vector of 'b'"),
        (b"a 1 2\nb 1e39 2\n", "the vector of 'b'"),
        (b"1 2\na " + struct.pack("<2f", 1, float("nan")), "the vector of 'a'"),
        (b"a 1 2\n\xff\xfe 1 2\n", r"line 2: the word b'\\xff\\xfe' is not valid UTF-8"),
        (b"1 1\n\xff " + b"\0" * 4, "entry 1: the word"),
        (b"just some text\nin lines\n", "does not hold word vectors"),
        (b"\x93NUMPY\x01\x00", "a numpy array without words"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_bad_file_is_refused_with_its_reason(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(NlpkitError, match=message):
        load(write(tmp_path, data))


def test_repeated_words_are_dropped_and_counted(tmp_path: Path) -> None:
    vectors = load(write(tmp_path, b"a 1 2\nb 3 4\na 5 6\nb 7 8\na 9 9\n"))
    assert list(vectors.words) == ["a", "b"]
    assert vectors.matrix.tolist() == [[1, 2], [3, 4]]
    assert vectors.duplicates == 3


def test_bad_utf8_can_be_replaced(tmp_path: Path) -> None:
    assert list(load(write(tmp_path, b"a\xff 1 2\nb 1 2\n"), errors="replace").words) == [
        "a\ufffd",
        "b",
    ]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(NlpkitError, match="no such file"):
        load(str(tmp_path / "nowhere.txt"))


@pytest.mark.parametrize(
    ("file", "data", "message"),
    [
        ("vectors.npy", b"not an array", "vectors.npy is damaged"),
        ("vectors.npy", None, "has no vectors.npy"),
        ("vocab.tsv", b"only\t1\n", "rows for 1 words"),
        ("norms.npy", b"not an array", "norms.npy is damaged"),
        (
            "config.json",
            b'{"kind": "gpt", "format_version": 1}',
            "has no weights.safetensors",
        ),
    ],
)
def test_a_damaged_folder_is_refused(
    tmp_path: Path, file: str, data: bytes | None, message: str
) -> None:
    model = tmp_path / "m"
    save(sample(), str(model))
    without_manifest(model)
    (model / file).unlink()
    if data is not None:
        (model / file).write_bytes(data)
    with pytest.raises(NlpkitError, match=message):
        load(str(model))


def test_a_folder_without_norms_gives_the_same_neighbours(tmp_path: Path) -> None:
    save(sample(), str(tmp_path / "m"))
    with_norms = load(str(tmp_path / "m"))
    near = with_norms.nearest_to(with_norms.matrix, 3)
    (without_manifest(tmp_path / "m") / "norms.npy").unlink()
    without = load(str(tmp_path / "m"))
    assert without.nearest_to(without.matrix, 3) == near


def test_a_cut_matrix_is_refused(tmp_path: Path) -> None:
    save(sample(), str(tmp_path / "m"))
    file = tmp_path / "m" / "vectors.npy"
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(NlpkitError, match="damaged"):
        load(str(tmp_path / "m"))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("good", [C_TEXT, GLOVE, C_BINARY, GENSIM_BINARY, fasttext_model()])
def test_a_damaged_file_is_read_or_refused_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, good: bytes, compiled: bool
) -> None:
    if compiled:
        monkeypatch.setattr(textformat, "KERNEL_FROM_BYTES", 0)
    generator = random.Random(len(good))
    for _ in range(60):
        data = bytearray(good)
        for _ in range(generator.randint(1, 4)):
            place = generator.randrange(len(data))
            change = bytes(generator.choices(b"\0\n\r -.09en\x80\xff", k=generator.randint(0, 3)))
            data[place : place + generator.randint(0, 3)] = change
        with contextlib.suppress(NlpkitError):
            vectors = load(write(tmp_path, bytes(data[: generator.randint(1, 2 * len(data))])))
            vectors.nearest_to(vectors.matrix[:1], 1)


# --- the compiled reader ------------------------------------------------------------------------

NUMBERS = st.one_of(
    FLOATS.map(repr),
    FLOATS.map(lambda x: f"{x:.6f}"),
    FLOATS.map(lambda x: f"{x:.9g}"),
    st.floats(allow_nan=False, allow_infinity=False, max_value=3e38, min_value=-3e38).map(repr),
    st.sampled_from(["1", "-0", "+.5", "5.", "1e5", "1E-05", "0.1234567890123456789", "1e-50"]),
)
SPACED_WORDS = st.text("ab é", min_size=1).filter(lambda w: w.strip(" "))


@pytest.fixture
def always_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(textformat, "KERNEL_FROM_BYTES", 0)
    monkeypatch.setattr(textformat, "BLOCK_BYTES", 64)


@settings(deadline=None)  # the first example compiles
@given(
    rows=st.lists(st.tuples(SPACED_WORDS, NUMBERS, NUMBERS), min_size=1, max_size=20),
    end=st.sampled_from(["\n", " \n", "\r\n"]),
)
def test_the_compiled_reader_agrees_with_python_to_the_last_bit(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]], end: str
) -> None:
    text = f"{len(rows)} 2{end}" + "".join(f"{w} {x} {y}{end}" for w, x, y in rows)
    path = write(tmp_path_factory.mktemp("t"), text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(textformat, "BLOCK_BYTES", 64)
        plain = load(path)
        patch.setattr(textformat, "KERNEL_FROM_BYTES", 0)
        assert same(load(path), plain)
    expected = dict(reversed([(w, (x, y)) for w, x, y in rows]))
    for word, row in zip(plain.words, plain.matrix, strict=True):
        assert row.tolist() == [float(np.float32(float(text))) for text in expected[word]]


@pytest.mark.usefixtures("always_compiled")
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a 1 2\n" * 30 + b"b nan 2\n", "the vector of 'b'"),
        (b"a 1 2\nb 1e39 2\n", "the vector of 'b'"),
        (b"a 1 2\n" * 30 + b"b 1\n", "line 31: expected a word and 2 numbers"),
        (b"a 1 2\nb 1  2\nc 1 2\n", "line 2: b'' is not a number"),
        (b"a 1 2\nb 1 2x\nc 1 2\n", "line 2: b'2x' is not a number"),
        (b"a 1 2\nb 1 -\nc 1 2\n", "line 2: b'-' is not a number"),
        (b"a 1 2\nb 1 2e\nc 1 2\n", "line 2: b'2e' is not a number"),
    ],
)
def test_the_compiled_reader_names_bad_rows(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(NlpkitError, match=message):
        load(write(tmp_path, data))
