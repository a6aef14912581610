"""Text in and out: compressed files, encodings, line ends, blocks, and files that appear whole."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import os
import stat
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from nlpkit import textio
from nlpkit.errors import NlpkitError

COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}
# what str.splitlines takes for a line end and we do not
NOT_LINE_ENDS = ["\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\r"]


def write(folder: Path, data: bytes, name: str = "text.txt") -> str:
    path = folder / name
    path.write_bytes(data)
    return str(path)


# --- reading ------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", COMPRESSORS)
def test_compressed_files_are_opened_by_their_name(tmp_path: Path, ending: str) -> None:
    path = write(tmp_path, COMPRESSORS[ending]("naïve\ncafé\n".encode()), "text.txt" + ending)
    assert list(textio.read_lines(path)) == ["naïve", "café"]


@pytest.mark.parametrize("ending", COMPRESSORS)
def test_two_archives_one_behind_the_other_are_read_to_the_end(tmp_path: Path, ending: str) -> None:
    compress = COMPRESSORS[ending]
    path = write(tmp_path, compress(b"one\n") + compress(b"two\n"), "text" + ending)
    assert list(textio.read_lines(path)) == ["one", "two"]


@pytest.mark.parametrize("ending", COMPRESSORS)
@pytest.mark.parametrize("damage", ["cut", "foreign"])
def test_a_broken_archive_is_an_error_that_names_the_file(
    tmp_path: Path, ending: str, damage: str
) -> None:
    whole = COMPRESSORS[ending](os.urandom(5000))
    data = whole[: len(whole) // 2] if damage == "cut" else b"this is no archive at all"
    path = write(tmp_path, data, "text" + ending)
    with pytest.raises(NlpkitError, match=r"cannot decompress .*text") as error:
        list(textio.read_lines(path, errors="ignore"))
    assert "\n" not in str(error.value)


def test_a_missing_file_and_a_directory_are_errors_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(NlpkitError, match=r"no such file: .*nowhere") as error:
        list(textio.read_lines(str(tmp_path / "nowhere")))
    assert error.value.hint
    with pytest.raises(NlpkitError, match="is a directory") as error:
        list(textio.read_lines(str(tmp_path)))
    assert error.value.hint


def test_a_byte_order_mark_is_dropped_at_the_start_only(tmp_path: Path) -> None:
    path = write(tmp_path, codecs.BOM_UTF8 + b"a\n" + codecs.BOM_UTF8 + b"b\n")
    assert list(textio.read_lines(path)) == ["a", "\ufeffb"]
    assert list(textio.read_lines(path, encoding="UTF8")) == ["a", "\ufeffb"]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_a_byte_order_mark_may_arrive_in_pieces(tmp_path: Path, size: int) -> None:
    path = write(tmp_path, codecs.BOM_UTF8 + b"a\nb")
    blocks = textio.read_blocks([path], block_size=size)
    assert b"".join(block.data for block in blocks) == b"a\nb"


@pytest.mark.parametrize("data", [b"\xef", b"\xef\xbb", b"\xef\xbb\xbf"])
def test_a_file_of_a_whole_or_half_byte_order_mark_is_read(tmp_path: Path, data: bytes) -> None:
    assert len(list(textio.read_lines(write(tmp_path, data), errors="replace"))) == (len(data) < 3)


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp1252"]
)
def test_other_encodings_become_the_same_lines(tmp_path: Path, encoding: str) -> None:
    text = "naïve café\nÀ bientôt\r\nfin"
    path = write(tmp_path, text.encode(encoding))
    # a character and a line end may fall on the border of two reads
    for size in (1, 3, 1 << 20):
        blocks = list(textio.read_blocks([path], encoding=encoding, block_size=size))
        lines = [line for block in blocks for line in block.lines()]
        assert lines == ["naïve café", "À bientôt", "fin"]
        assert [block.first_line for block in blocks] == sorted(
            block.first_line for block in blocks
        )


def test_utf16_with_characters_beyond_the_first_plane(tmp_path: Path) -> None:
    path = write(tmp_path, "😀 a\n👩‍👩‍👧\n".encode("utf-16"))
    assert list(textio.read_lines(path, encoding="utf-16")) == ["😀 a", "👩‍👩‍👧"]


def test_an_unknown_encoding_is_an_error_before_anything_is_read() -> None:
    for name in ("utf-9", "rot13", "hex", "\0"):
        with pytest.raises(NlpkitError, match="unknown encoding"):
            list(textio.read_lines("not-even-there", encoding=name))


def test_bytes_that_are_not_utf8_are_named_by_file_line_and_byte(tmp_path: Path) -> None:
    path = write(tmp_path, b"fine\nalso fine\nna\xefve\n")
    with pytest.raises(NlpkitError) as error:
        list(textio.read_lines(path))
    assert f"{path}: line 3, byte 3: 0xef is not valid UTF-8" in error.value.message
    assert "`errors` replace" in error.value.hint
    assert "`encoding`" in error.value.hint


def test_the_line_of_a_bad_byte_counts_over_blocks_and_starts_anew_in_each_file(
    tmp_path: Path,
) -> None:
    first = write(tmp_path, b"a\n" * 100, "first")
    second = write(tmp_path, b"b\n" * 50 + b"\xc3(", "second")
    blocks = textio.read_blocks([first, second], block_size=7)
    with pytest.raises(NlpkitError, match="second: line 51, byte 1: 0xc3"):
        [block.text() for block in blocks]


def test_bad_utf16_is_named_by_line_and_byte(tmp_path: Path) -> None:
    path = write(tmp_path, "a\nb\n".encode("utf-16-le") + b"\x00\xdc\x00\x00")
    with pytest.raises(NlpkitError, match="line 3, byte 9 of the file: not valid utf-16-le"):
        list(textio.read_lines(path, encoding="utf-16-le"))
    assert list(textio.read_lines(path, encoding="utf-16-le", errors="replace"))[:2] == ["a", "b"]


def test_the_place_of_a_bad_byte_is_right_wherever_reads_fall(tmp_path: Path) -> None:
    path = write(tmp_path, "\ufeffaé\n\n".encode("utf-16-be") + b"\xdc\x00\x00\x00")
    for size in range(1, 9):
        blocks = textio.read_blocks([path], encoding="utf-16", block_size=size)
        with pytest.raises(NlpkitError, match="line 3, byte 11 of the file"):
            list(blocks)


def test_utf16_that_does_not_say_its_byte_order_is_an_error_with_a_hint(tmp_path: Path) -> None:
    path = write(tmp_path, b"abcd")
    with pytest.raises(NlpkitError, match="BOM") as error:
        list(textio.read_lines(path, encoding="utf-16"))
    assert "utf-16-le" in error.value.hint


@pytest.mark.parametrize(("errors", "expected"), [("replace", "a\ufffdb"), ("ignore", "ab")])
def test_bad_bytes_are_replaced_or_left_out_when_asked(
    tmp_path: Path, errors: str, expected: str
) -> None:
    assert list(textio.read_lines(write(tmp_path, b"a\xffb\n"), errors=errors)) == [expected]


@pytest.mark.parametrize("mark", NOT_LINE_ENDS)
def test_only_newline_and_carriage_return_newline_end_a_line(tmp_path: Path, mark: str) -> None:
    path = write(tmp_path, f"one{mark}still one\r\ntwo\n".encode())
    assert list(textio.read_lines(path)) == [f"one{mark}still one", "two"]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"\r\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\n", ["a", ""]),
        (b"\n\na", ["", "", "a"]),
        (b"a\r\nb\nc\r\n", ["a", "b", "c"]),
        (b"a\r\r\nb", ["a\r", "b"]),
        (b"nul\x00byte\n", ["nul\x00byte"]),
    ],
)
def test_line_ends(tmp_path: Path, data: bytes, lines: list[str]) -> None:
    assert list(textio.read_lines(write(tmp_path, data))) == lines
    assert textio.split_lines(data.decode()) == lines


lines_of_text = st.lists(
    st.text(alphabet=st.sampled_from(["a", "é", "😀", " ", "\r", "\u2028", "\x85", "\t"]))
)


@given(lines_of_text, st.booleans(), st.integers(1, 12))
@settings(max_examples=150, deadline=None)
def test_blocks_of_any_size_hold_the_same_bytes_and_whole_lines(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], ended: bool, size: int
) -> None:
    text = "\n".join(lines) + ("\n" if ended else "")
    path = write(tmp_path_factory.getbasetemp(), text.encode(), "blocks.txt")
    blocks = list(textio.read_blocks([path], block_size=size))
    assert b"".join(block.data for block in blocks) == text.encode()
    assert all(block.data.endswith(b"\n") for block in blocks[:-1])
    assert [line for block in blocks for line in block.lines()] == textio.split_lines(text)
    before = 1
    for block in blocks:
        assert block.first_line == before
        before += block.data.count(b"\n")


def test_a_line_longer_than_many_blocks_comes_whole(tmp_path: Path) -> None:
    long = "x" * 5_000_000
    path = write(tmp_path, f"short\n{long}\nend".encode())
    assert list(textio.read_lines(path)) == ["short", long, "end"]


def test_sources_are_never_glued_together(tmp_path: Path) -> None:
    paths = [write(tmp_path, b"no end", "a"), write(tmp_path, b"b\n", "b")]
    assert list(textio.read_lines(paths)) == ["no end", "b"]


def test_reading_is_lazy(tmp_path: Path) -> None:
    paths = [write(tmp_path, b"a\n"), str(tmp_path / "missing")]
    blocks = textio.read_blocks(paths)
    assert next(blocks).lines() == ["a"]
    with pytest.raises(NlpkitError, match="no such file"):
        next(blocks)


# --- writing ------------------------------------------------------------------------------------


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_a_file_appears_only_when_all_is_written(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with textio.atomic_writer(str(path)) as out:
        out.write(b"half")
        out.flush()
        assert not path.exists()
        out.write(b" and half")
    assert path.read_bytes() == b"half and half"
    assert names(tmp_path) == ["out.txt"]


def fail_halfway(path: Path, kind: type[BaseException]) -> None:
    with textio.atomic_writer(str(path)) as out:
        out.write(b"half")
        raise kind("stop")


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, NlpkitError])
def test_a_failure_leaves_no_file(tmp_path: Path, kind: type[BaseException]) -> None:
    with pytest.raises(kind):
        fail_halfway(tmp_path / "out.txt", kind)
    assert names(tmp_path) == []


def test_a_failure_leaves_the_old_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_bytes(b"old")
    with pytest.raises(ValueError):
        fail_halfway(path, ValueError)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["out.txt"]


def test_an_error_of_the_disk_names_the_file_and_leaves_nothing(tmp_path: Path) -> None:
    full = OSError(28, "No space left on device")
    with (
        mock.patch("os.fsync", side_effect=full),
        pytest.raises(NlpkitError, match=r"cannot write .*out\.txt: No space left"),
    ):
        textio.write_text(str(tmp_path / "out.txt"), "text")
    assert names(tmp_path) == []


def test_a_replaced_file_keeps_its_mode_and_a_new_one_follows_the_umask(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_bytes(b"")
    old.chmod(0o640)
    textio.write_text(str(old), "new")
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    before = os.umask(0o027)
    try:
        textio.write_text(str(tmp_path / "new"), "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_a_link_is_followed_not_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    textio.write_text(str(link), "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_device_is_written_to_not_replaced() -> None:
    textio.write_text("/dev/null", "text")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_device_is_an_error_that_names_it() -> None:
    with pytest.raises(NlpkitError, match="cannot write /dev/full: No space left"):
        textio.write_text("/dev/full", "text")


def test_places_that_cannot_be_written_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(NlpkitError, match="is a directory"):
        textio.check_writable(str(tmp_path))
    with pytest.raises(NlpkitError, match=r"no such folder: .*missing") as error:
        textio.check_writable(str(tmp_path / "missing" / "out.txt"))
    assert "mkdir -p" in error.value.hint
    with (
        mock.patch("os.access", return_value=False),
        pytest.raises(NlpkitError, match="permission denied"),
    ):
        textio.check_writable(str(tmp_path / "out.txt"))
    with pytest.raises(NlpkitError, match="File name too long"):
        textio.check_writable(str(tmp_path / ("x" * 300)))
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(NlpkitError, match="Too many levels"):
        textio.check_writable(str(tmp_path / "loop"))
    (tmp_path / "dangling").symlink_to("missing/out.txt")
    with pytest.raises(NlpkitError, match="no such folder"):
        textio.check_writable(str(tmp_path / "dangling"))


def test_arrays_are_written_by_the_ending_of_the_name(tmp_path: Path) -> None:
    import numpy as np

    ids, mask = np.arange(6).reshape(2, 3), np.ones((2, 3), dtype=bool)
    textio.write_array(str(tmp_path / "a.npy"), ids=ids, mask=mask)
    assert (np.load(tmp_path / "a.npy", allow_pickle=False) == ids).all()
    textio.write_array(str(tmp_path / "a.npz"), ids=ids, mask=mask)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as arrays:
        assert sorted(arrays) == ["ids", "mask"]
        assert arrays["mask"].all()


def test_an_array_of_objects_is_never_pickled(tmp_path: Path) -> None:
    import numpy as np

    with pytest.raises(ValueError):
        textio.write_array(str(tmp_path / "a.npy"), rows=np.array([[1], [1, 2]], dtype=object))
    assert names(tmp_path) == []


def test_arrays_by_name_hold_no_more_than_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numpy as np

    real = np.savez_compressed

    def as_in_numpy_1(file: object, *args: object, **kwds: object) -> None:
        assert "allow_pickle" not in kwds, "numpy 1.26 takes any name for an array's"
        real(file, *args, **kwds)

    monkeypatch.setattr(np, "savez_compressed", as_in_numpy_1)
    textio.write_array(str(tmp_path / "a.npz"), ids=np.arange(3))
    with pytest.raises(ValueError, match="Python objects"):
        textio.write_array(str(tmp_path / "b.npz"), ids=np.array([{}], dtype=object))
    assert names(tmp_path) == ["a.npz"]


def test_no_temporary_folder_at_all_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nowhere"])
    with (
        pytest.raises(NlpkitError, match=r"anywhere: No usable temporary directory.*TMPDIR"),
        textio.temporary_files(),
    ):
        tempfile.mkdtemp()
