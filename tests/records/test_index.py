"""The offset index tells where each frame lies, and is not believed when it cannot be one."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfr_assets.layout import index_path
from tfr_assets.records.examples.writer import write_file
from tfr_assets.records.frames.index import index_lines, is_as_written, read_index, read_sizes
from tfr_assets.records.frames.manifest import IndexChecksum
from tfr_assets.records.kernels.crc32c import crc32c

from .reference import examples, flipped, offsets, payloads_of, write
from .streams import as_frames


def lines(sizes: list[int], offset: int = 0) -> str:
    return bytes(index_lines(np.array(sizes, np.int64), offset)).decode()


@examples(200)
@given(sizes=st.lists(st.integers(16, 2**40), max_size=30), offset=st.integers(0, 2**60))
def test_a_line_is_offset_and_size(sizes: list[int], offset: int) -> None:
    expected = ""
    for size in sizes:
        expected += f"{offset} {size}\n"
        offset += size
    assert lines(sizes, offset - sum(sizes)) == expected


def index_fits(path: Path, records: int, payload_bytes: int) -> bool:
    try:
        return bool(list(read_sizes(path, records, payload_bytes))) or records == payload_bytes == 0
    except (FileNotFoundError, ValueError):
        return False


def test_numbers_of_every_length_are_written() -> None:
    for digits in range(1, 19):
        for number in (10 ** (digits - 1), 10**digits - 1):
            assert lines([number], number) == f"{number} {number}\n"
    assert lines([0], 0) == "0 0\n"


@examples(60)
@given(payloads=st.lists(st.binary(max_size=30), max_size=20), cut=st.integers(0, 20))
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_the_index_of_a_file_leads_to_its_records(
    payloads: list[bytes], cut: int, compression: str, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    write_file(path, [as_frames(payloads[:cut]), as_frames(payloads[cut:])], compression)
    index = read_index(index_path(path))
    assert index.dtype == np.int64 and index.shape == (len(payloads), 2)
    assert index[:, 0].tolist() == offsets(payloads)[:-1]
    assert index[:, 1].tolist() == [len(payload) + 16 for payload in payloads]
    if compression == "none":
        content = path.read_bytes()
        assert [payloads_of(content[at : at + size])[0] for at, size in reversed(index.tolist())] == payloads[::-1]


def test_a_missing_index() -> None:
    with pytest.raises(FileNotFoundError):
        read_index(Path("/nowhere/at/all.idx"))
    assert not index_fits(Path("/nowhere/at/all.idx"), 0, 0)


@pytest.mark.parametrize(
    "text",
    [
        "0 20", "0 20\n20 17", "\n", "0\n", "0 20 \n", "0 20 40\n", "0 20 40\n60\n", "a b\n", "0 20\nx 17\n",
        "0 20.5\n", "0 20\n\n", "-1 20\n", "1 20\n", "0 15\n", "0 20\n21 17\n", "0 20\n20 -17\n",
        "0 99999999999999999999999\n1 16\n", "0 20\r\n20 17\r\n3 3\r\n", "0 é\n",
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_is_no_index_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "file.idx"
    path.write_text(text, encoding="utf-8", newline="")
    with pytest.raises(ValueError):
        read_index(path)
    assert not index_fits(path, 2, 5)


def test_an_index_fits_one_file_only(tmp_path: Path) -> None:
    path = tmp_path / "file.idx"
    path.write_bytes(bytes(index_lines(np.array([20, 17], np.int64), 0)))
    assert index_fits(path, 2, 5)
    assert np.concatenate(list(read_sizes(path, 2, 5))).tolist() == [20, 17]
    for records, payload_bytes in ((1, 5), (3, 5), (2, 4), (2, 21), (0, 0)):
        assert not index_fits(path, records, payload_bytes)
        with pytest.raises(ValueError, match="another file's"):
            list(read_sizes(path, records, payload_bytes))
    path.write_bytes(b"")
    assert index_fits(path, 0, 0) and not index_fits(path, 1, 0)


def test_every_flipped_bit_of_an_index_is_found(tmp_path: Path) -> None:
    path = tmp_path / "file.idx"
    content = bytes(index_lines(np.array([20, 17, 1234, 16], np.int64), 0))
    for bit in range(len(content) * 8):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        assert not index_fits(path, 4, 20 + 17 + 1234 + 16 - 64), bytes(damaged)


@pytest.mark.parametrize("block", [1, 7, 50, 1 << 20])
def test_an_index_is_read_in_blocks_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr("tfr_assets.records.frames.index._BLOCK", block)
    sizes = np.array([16 + 7 * k * k for k in range(30)], np.int64)
    path = write(tmp_path / "index", bytes(index_lines(sizes, 0)))
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    assert read_index(path).tolist() == np.stack([starts, sizes], 1).tolist()
    write(path, path.read_bytes()[:-1])
    with pytest.raises(ValueError):
        read_index(path)


def test_another_index_than_was_written_is_not_believed(tmp_path: Path) -> None:
    manifest = write_file(tmp_path / "file", [as_frames([b"a", b"bc", b"def"])])
    path = index_path(tmp_path / "file")
    content = path.read_bytes()
    assert manifest.index == IndexChecksum(len(content), crc32c(content))
    assert read_index(path, manifest.index).tolist() == [[0, 17], [17, 18], [35, 19]]
    assert is_as_written(path, manifest.index) and not is_as_written(path, None)
    well_formed = [b"0 18\n18 17\n35 19\n", b"0 17\n17 20\n37 17\n"]
    for wrong in (*well_formed, b"", content[:-1], content + b"54 16\n", *map(flipped, [content] * 8, range(8))):
        path.write_bytes(wrong)
        assert not is_as_written(path, manifest.index)
        for read in (read_index, lambda path, checksum: list(read_sizes(path, 3, 6, checksum))):
            with pytest.raises(ValueError):
                read(path, manifest.index)
    path.unlink()
    assert not is_as_written(path, manifest.index)
    path.mkdir()
    assert not is_as_written(path, manifest.index)
