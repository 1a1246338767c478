"""Lines of text, with Python's codecs and its splitting of text as the oracle."""

import bz2
import gzip
import io
import lzma
from collections.abc import Callable
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.sources.kind_records import inventory_of, records, records_of
from tfr_assets.errors import SourceChanged, SourceError
from tfr_assets.sources import Splits
from tfr_assets.sources.media.text import decoding as text_decoding
from tfr_assets.sources.media.text import lines as text_lines
from tfr_assets.storage.raw_files import RawFile

ENCODINGS = (
    "utf-8",
    "utf-8-sig",
    "utf-16",
    "utf-16-le",
    "utf-32",
    "latin-1",
    "cp1252",
    "shift_jis",
    "gb18030",
    "utf-7",
)
TEXTS = st.text(
    st.one_of(st.sampled_from("\n\n\r a\ufeffé日😀"), st.characters(exclude_categories=["Cs"])), max_size=60
)


def read(data: bytes, encoding: str = "utf-8", skip: Callable[[int, str], None] | None = None) -> list[tuple[int, str]]:
    found = list(text_lines.read_lines(io.BytesIO(data), "a.txt", encoding, skip))
    return [pair for numbers, texts in found for pair in zip(numbers.tolist(), texts.to_pylist(), strict=True)]


def lines(text: str) -> list[tuple[int, str]]:
    """Returns what `read` should."""
    said = enumerate(text.removeprefix("\ufeff").split("\n"), 1)
    *whole, (last, rest) = ((number, line) for number, line in said)
    ended = [(number, line.removesuffix("\r")) for number, line in whole]
    return [(number, line) for number, line in [*ended, (last, rest.removesuffix("\r"))] if line]


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS, encoding=st.sampled_from(ENCODINGS), chunk=st.integers(1, 9))
def test_lines_are_what_python_splits(text: str, encoding: str, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_decoding, "_CHUNK", chunk)
    try:
        data = text.encode(encoding)
        assume(data.decode(encoding) == text)
    except UnicodeError:
        assume(False)
    assert read(data, encoding) == lines(text)


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parts=st.lists(st.sampled_from([b"a", b"\n", "é".encode(), "😀".encode(), b"\xff", b"\xed\xa0\x80", b"\xc3"])),
    marked=st.booleans(),
    chunk=st.integers(1, 9),
)
def test_bytes_that_are_not_utf8_are_named_or_left_out(
    parts: list[bytes], marked: bool, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_decoding, "_CHUNK", chunk)
    data = b"\xef\xbb\xbf" * marked + b"".join(parts)
    skipped: list[int] = []
    good, bad = [], []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        try:
            good += [(number, line.decode())] if line else []
        except UnicodeDecodeError:
            bad.append(number)
    assert read(data, skip=lambda line, reason: skipped.append(line)) == good
    assert skipped == bad
    if bad:
        line = data.split(b"\n")[bad[0] - 1]
        before = sum(len(part) + 1 for part in data.split(b"\n")[: bad[0] - 1])
        with pytest.raises(UnicodeDecodeError) as told:
            line.decode()
        where = (
            rf"a\.txt: line {bad[0]}: byte {before + told.value.start} \(0x{line[told.value.start]:02x}\) is not utf-8"
        )
        with pytest.raises(SourceError, match=where):
            read(data)


@pytest.mark.parametrize("chunk", [1, 2, 3, 1000])
@pytest.mark.parametrize(
    ("encoding", "data", "byte", "rest"),
    [
        ("utf-16-le", "ab\ncd\ne".encode("utf-16-le")[:6] + b"\x00\xdcc\x00\n\x00e\x00", 6, [(1, "ab"), (3, "e")]),
        ("utf-16", "ab\nc".encode("utf-16") + b"\x00", 10, [(1, "ab")]),
        ("cp1252", b"ab\nc\x81\ne", 4, [(1, "ab"), (3, "e")]),
        ("shift_jis", "日\n".encode("shift_jis") + b"\x81\x20\ne", 3, [(1, "日"), (3, "e")]),
        ("ascii", b"a\n\xe9\n", 2, [(1, "a")]),
    ],
)
def test_other_encodings_name_the_byte_or_leave_the_line_out(
    encoding: str, data: bytes, byte: int, rest: list, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_decoding, "_CHUNK", chunk)
    with pytest.raises(UnicodeDecodeError) as told:
        data.decode(encoding)
    assert told.value.start == byte
    with pytest.raises(SourceError, match=rf"a\.txt: byte {byte} \(0x.*\) is not {encoding} text.*on_error: skip"):
        read(data, encoding)
    skipped: list[tuple[int, str]] = []
    assert read(data, encoding, lambda *said: skipped.append(said)) == rest
    assert skipped == [(2, f"is not {encoding} text")]


def test_a_file_that_is_no_text_is_guessed_at() -> None:
    with pytest.raises(
        SourceError, match=r"a\.txt: line 1: is not text\. This looks like gzip: its name should end in"
    ):
        read(gzip.compress(b"hello"))
    with pytest.raises(SourceError, match=r"byte 0 \(0xff\).*such as `encoding: latin-1`"):
        read("hello".encode("utf-16"))


def test_a_line_without_end_is_not_read_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_lines, "_LONGEST_LINE", 10)
    monkeypatch.setattr(text_decoding, "_CHUNK", 4)
    assert read(b"123456789\n1234567890\n") == [(1, "123456789"), (2, "1234567890")]
    stream = io.BytesIO(b"x\n" + b"0" * 1000)
    with pytest.raises(SourceError, match=r"a\.txt: a line is longer than"):
        list(text_lines.read_lines(stream, "a.txt", "utf-8"))
    assert stream.tell() < 30


def test_no_more_is_read_than_is_handed_on() -> None:
    stream = io.BytesIO(b"some line of text\n" * 2_000_000)
    found = text_lines.read_lines(stream, "a.txt", "utf-8")
    _, first = next(found)
    assert first.nbytes < 16 << 20
    assert stream.tell() <= 2 * text_decoding._CHUNK
    assert len(first) + sum(len(texts) for _, texts in found) == 2_000_000


PACKED = {
    ".txt": bytes,
    ".txt.gz": gzip.compress,
    ".txt.bz2": bz2.compress,
    ".TXT.xz": lzma.compress,
    ".txt.zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}


@pytest.mark.parametrize("ending", PACKED)
def test_a_file_has_a_record_a_line_also_where_it_is_compressed(ending: str, tmp_path: Path) -> None:
    (raw := tmp_path / "raw").mkdir()
    file = raw / f"a{ending}"
    file.write_bytes(PACKED[ending]("ä\r\n\nb".encode()))
    expected = [{"text": text, "text/filename": f"a{ending}"} for text in ("ä", "b")]
    assert records({"text": str(file)}, tmp_path) == expected
    assert records({"text": {"path": str(raw), "per": "line"}}, tmp_path) == expected


def test_a_file_is_called_by_any_name_but_a_folder_is_looked_through(tmp_path: Path) -> None:
    (raw := tmp_path / "raw").mkdir()
    said = {"text": {"path": str(raw), "per": "line"}}
    with pytest.raises(SourceError, match=r"no text is there: looked for files ending in \.txt, .*; there is no file"):
        inventory_of(said, tmp_path)
    (raw / "data").write_text("a\nb\n")
    assert len(records({"text": str(raw / "data")}, tmp_path)) == 2
    with pytest.raises(SourceError, match=r"; those that are there end in nothing\."):
        inventory_of(said, tmp_path)


def test_rows_are_called_by_file_and_line_and_come_in_natural_order(tmp_path: Path) -> None:
    (tmp_path / "raw" / "sub").mkdir(parents=True)
    (tmp_path / "raw" / "10.txt").write_text("c\n\nd")
    (tmp_path / "raw" / "2.txt").write_text("b")
    (tmp_path / "raw" / "sub" / "1.md").write_text("e\n")
    (tmp_path / "raw" / "notes.pdf").write_text("no")
    inventory = inventory_of({"text": {"path": str(tmp_path / "raw"), "per": "line", "labels": "none"}}, tmp_path)
    listing = pa.Table.from_batches(
        pa.parquet.ParquetFile(inventory.landed[0].path).iter_batches(), inventory.listing
    ).to_pydict()
    assert listing[".file"] == ["2.txt:1", "10.txt:1", "10.txt:3", "sub/1.md:1"]
    assert records_of(inventory)["text"].to_pylist() == ["b", "c", "d", "e"]
    assert inventory.file_count == 3
    assert inventory.bytes == 7


def test_files_have_classes_and_splits(tmp_path: Path) -> None:
    for name in ("train/pos.txt", "test/pos.txt", "test/neg.txt"):
        (tmp_path / "raw" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "raw" / name).write_text(f"{name}\n{name}")
    said = {"text": {"path": str(tmp_path / "raw"), "per": "line", "labels": {"pattern": "(.*).txt"}}}
    inventory = inventory_of(said, tmp_path, Splits(folder=("train", "test")))
    assert inventory.splits == {"train": 2, "test": 4}
    assert inventory.classes == {"text/class/label": ("neg", "pos")}
    made = records_of(inventory).to_pydict()
    assert made["text/class/text"] == ["pos", "pos", "neg", "neg", "pos", "pos"]
    assert made["text/class/label"] == [1, 1, 0, 0, 1, 1]
    assert made["text/filename"][2] == "test/neg.txt"
    with pytest.raises(SourceError, match=r"raw/test/neg\.txt: is in none of the folders that are splits \(train\)"):
        inventory_of(said, tmp_path, Splits(folder=("train",)))
    with pytest.raises(SourceError, match=r"its class 'neg' is not one of `classes`"):
        records({"text": {**said["text"], "classes": ["pos"]}}, tmp_path)
    assert len(records({"text": {**said["text"], "classes": ["pos"], "on_error": "skip"}}, tmp_path)) == 4


def test_what_is_skipped_is_logged(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"good\nb\xe9d\ngood")
    with pytest.raises(SourceError, match=r"a\.txt: line 2: byte 6 \(0xe9\) is not utf-8 text"):
        records({"text": str(tmp_path / "a.txt")}, tmp_path / "landing")
    inventory = inventory_of({"text": {"path": str(tmp_path / "a.txt"), "on_error": "skip"}}, tmp_path / "landing")
    assert inventory.rows == 2
    assert inventory.first_skipped == (("a.txt:2", "is not utf-8 text"),)


def test_a_damaged_or_changing_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(np.random.default_rng(0).bytes(9999).hex().encode())[:-5])
    with pytest.raises(SourceError, match=r"a\.txt\.gz: is damaged or cut short"):
        records({"text": str(tmp_path / "a.txt.gz")}, tmp_path / "landing")
    (tmp_path / "b.zip").write_bytes(b"PK")
    with pytest.raises(SourceError, match=r"b\.zip: is a zip\. Unpack it\."):
        records({"text": {"path": str(tmp_path / "b.zip"), "per": "line"}}, tmp_path / "landing")

    (tmp_path / "c.txt").write_text("a\n")
    open_really = RawFile.stream

    def meddle(file: RawFile) -> object:
        if file.path.endswith("c.txt"):
            (tmp_path / "c.txt").write_text("other\n")
        return open_really(file)

    monkeypatch.setattr(RawFile, "stream", meddle)
    with pytest.raises(SourceChanged, match=r"c\.txt: changed while it was read"):
        records({"text": str(tmp_path / "c.txt")}, tmp_path / "landing")


def test_urls(tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe({"/lines/sub/a.txt": b"a\nb", "/lines/b.txt": b"c"})
    try:
        one = records({"text": "memory://lines/b.txt"}, tmp_path)
        assert one == [{"text": "c", "text/filename": "b.txt"}]
        said = {"path": "memory://lines", "per": "line", "labels": "none"}
        every = records({"text": said}, tmp_path)
        assert [record["text/filename"] for record in every] == ["b.txt", "sub/a.txt", "sub/a.txt"]
    finally:
        memory.rm("/lines", recursive=True)
