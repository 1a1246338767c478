"""gzip and zlib files: read whoever wrote them, and never trusted beyond their checksums."""

import gzip
import random
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfr_assets.records.examples.encoder import Frames
from tfr_assets.records.examples.writer import write_file
from tfr_assets.records.frames.compression import detect_compression
from tfr_assets.records.frames.examine import FileReport, examine
from tfr_assets.records.frames.scan import FaultKind
from tfr_assets.records.kernels.crc32c import masked_crc32c
from tfr_assets.records.kernels.digest import digest_frames, to_text

from .reference import examples, flipped, frames, header, payloads_of, write
from .streams import as_frames

PAYLOADS = [b"foo", b"", b"0123456789" * 30, b"bar"]
STREAM = frames(PAYLOADS)
PACKERS = {"gzip": lambda data: gzip.compress(data, mtime=0), "zlib": zlib.compress}
TENSORFLOWS = {"none": "", "gzip": "GZIP", "zlib": "ZLIB"}
_DIGEST = to_text(digest_frames(0, as_frames(PAYLOADS).data, as_frames(PAYLOADS).sizes))
# bits of a gzip header that change nothing: "is text", time, level, system
_MEANINGLESS = {3 * 8, *range(4 * 8, 10 * 8)}


def kinds(report: FileReport) -> list[str]:
    return [fault.kind.name for fault in report.faults]


def intact(report: FileReport) -> bool:
    """Whether a file holds PAYLOADS, all of them and nothing else, without any fault."""
    return report.ok and report.digest == _DIGEST and report.records == len(PAYLOADS)


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_files_of_pythons_own_modules_are_read(compression: str, tmp_path: Path) -> None:
    for level in range(10):
        packed = gzip.compress(STREAM, level) if compression == "gzip" else zlib.compress(STREAM, level)
        report = examine(write(tmp_path / "file", packed))
        assert intact(report) and report.compression == compression
        assert (report.bytes, report.payload_bytes) == (len(packed), sum(map(len, PAYLOADS)))
    with gzip.open(tmp_path / "named.gz", "wb") as file:  # a header with a name and a time
        file.write(STREAM)
    assert intact(examine(tmp_path / "named.gz"))


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_tensorflow_and_we_read_each_others_files(compression: str, tf: Any, tmp_path: Path) -> None:
    payloads = [*PAYLOADS, random.Random(1).randbytes(700_000), b"end"]
    kind = TENSORFLOWS[compression]
    with tf.io.TFRecordWriter(str(tmp_path / "theirs"), kind) as writer:
        for payload in payloads:
            writer.write(payload)
    manifest = write_file(tmp_path / "ours", [as_frames(payloads[:2]), as_frames(payloads[2:])], compression)
    theirs, ours = examine(tmp_path / "theirs"), examine(tmp_path / "ours", manifest)
    assert theirs.ok and ours.ok and theirs.digest == ours.digest == manifest.digest
    assert theirs.compression == ours.compression == compression
    found = [r.numpy() for r in tf.data.TFRecordDataset(str(tmp_path / "ours"), kind)]
    assert found == payloads


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_equal_records_give_equal_compressed_files(compression: str, tmp_path: Path) -> None:
    write_file(tmp_path / "a", [as_frames(PAYLOADS)], compression)
    write_file(tmp_path / "b", [as_frames([payload]) for payload in PAYLOADS], compression)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    unpacked = zlib.decompress((tmp_path / "a").read_bytes(), 31 if compression == "gzip" else 15)
    assert payloads_of(unpacked) == PAYLOADS


def test_a_gzip_file_may_have_many_members(tf: Any, tmp_path: Path) -> None:
    cut = 37  # inside a record
    for parts in ([STREAM[:cut], STREAM[cut:]], [STREAM, b""], [bytes([byte]) for byte in STREAM]):
        path = write(tmp_path / "file", b"".join(map(PACKERS["gzip"], parts)))
        assert intact(examine(path))
        assert [r.numpy() for r in tf.data.TFRecordDataset(str(path), "GZIP")] == PAYLOADS


def test_data_behind_an_empty_gzip_member_is_found(tf: Any, tmp_path: Path) -> None:
    empty = PACKERS["gzip"](b"")
    for before, records in ((b"", 0), (PACKERS["gzip"](STREAM), len(PAYLOADS))):
        path = write(tmp_path / "file", before + empty + PACKERS["gzip"](STREAM))
        report = examine(path)
        assert kinds(report) == ["DAMAGED_STREAM"]
        assert (report.records, report.faults[0].offset) == (records, len(before + empty))
        assert len(list(tf.data.TFRecordDataset(str(path), "GZIP"))) == records  # in silence


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_every_truncation_is_found(compression: str, tmp_path: Path) -> None:
    packed = PACKERS[compression](STREAM)
    for size in range(1, len(packed)):
        report = examine(write(tmp_path / "file", packed[:size]))
        assert not report.ok, size
        if size > 2:
            assert kinds(report) == ["TRUNCATED_STREAM"]
            assert (report.faults[0].record, report.faults[0].offset) == (report.records, size)
        if len(packed) - size <= 4:  # the records are all there, and TensorFlow says nothing
            assert report.records == len(PAYLOADS)


def test_every_truncation_of_many_members_is_found_but_between_them(tmp_path: Path) -> None:
    members = [PACKERS["gzip"](frames([payload])) for payload in PAYLOADS]
    packed = b"".join(members)
    whole = {sum(map(len, members[:n])): n for n in range(len(members) + 1)}
    for size in range(len(packed) + 1):
        report = examine(write(tmp_path / "file", packed[:size]))
        assert report.ok == (size in whole)
        if size in whole:
            assert report.records == whole[size]


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_every_flipped_bit_is_found_or_has_no_meaning(compression: str, tmp_path: Path) -> None:
    packed = PACKERS[compression](STREAM)
    header = _MEANINGLESS if compression == "gzip" else set()
    trailer = 8 * (len(packed) - (8 if compression == "gzip" else 4))
    padding = set(range(trailer - 7, trailer))  # bits between the end of the data and the next whole byte
    without_meaning = set()
    for bit in range(len(packed) * 8):
        report = examine(write(tmp_path / "file", flipped(packed, bit)))
        if report.ok:
            assert intact(report), bit
            without_meaning.add(bit)
    assert header <= without_meaning <= header | padding


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_a_wrong_checksum_behind_all_records_is_found(compression: str, tf: Any, tmp_path: Path) -> None:
    """TensorFlow has read the last record by then, and does not look."""
    payloads = [random.Random(n).randbytes(50_000) for n in range(20)]
    packed = bytearray(PACKERS[compression](frames(payloads)))
    packed[-6 if compression == "gzip" else -1] ^= 1
    report = examine(write(tmp_path / "file", bytes(packed)))
    assert kinds(report) == ["DAMAGED_STREAM"]
    assert report.faults[0].record >= report.records


def test_data_behind_a_zlib_stream_is_found(tf: Any, tmp_path: Path) -> None:
    packed = zlib.compress(STREAM)
    for behind in (zlib.compress(STREAM), b"\0", gzip.compress(b"")):
        path = write(tmp_path / "file", packed + behind)
        report = examine(path)
        assert kinds(report) == ["DAMAGED_STREAM"]
        assert (report.records, report.faults[0].offset) == (len(PAYLOADS), len(packed))
        assert [r.numpy() for r in tf.data.TFRecordDataset(str(path), "ZLIB")] == PAYLOADS  # in silence


def test_data_behind_a_gzip_stream_that_is_no_member_is_found(tmp_path: Path) -> None:
    packed = gzip.compress(STREAM)
    for behind in (b"\0", bytes(512), STREAM, zlib.compress(STREAM), b"\x1f", b"\x1f\x8b\x07"):
        report = examine(write(tmp_path / "file", packed + behind))
        assert report.records == len(PAYLOADS) and len(report.faults) == 1
        assert report.faults[0].kind in (FaultKind.DAMAGED_STREAM, FaultKind.TRUNCATED_STREAM)
        assert len(packed) <= report.faults[0].offset <= len(packed + behind)


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_faults_of_records_are_found_inside_a_sound_stream(compression: str, tmp_path: Path) -> None:
    cases = [
        (flipped(STREAM, 8 * 13), ("DATA_CRC", 0, 12), 3),
        (flipped(STREAM, 8 * 19), ("LENGTH_CRC", 1, 19), 3),
        (STREAM[:-1], ("TRUNCATED_RECORD", 3, 19 + 16 + 316), 3),
        (STREAM + b"\0" * 11, ("TRUNCATED_HEADER", 4, len(STREAM)), 4),
        (STREAM[:19] + header(10**11) + STREAM[19:], ("TRUNCATED_RECORD", 1, 19), 4),
        (STREAM + header(2**40), ("TRUNCATED_RECORD", 4, len(STREAM)), 4),
        (STREAM[:19] + header(10**9) + STREAM[19:], ("TRUNCATED_RECORD", 1, 19), 4),
    ]
    for stream, expected, records in cases:
        report = examine(write(tmp_path / "file", PACKERS[compression](stream)))
        assert [(fault.kind.name, fault.record, fault.offset) for fault in report.faults] == [expected]
        assert report.records == records


def test_the_wrong_compression_is_found_through_the_manifest(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for ours in ("none", "gzip", "zlib"):
        manifest = write_file(path, [as_frames(PAYLOADS)], ours)
        for theirs in ("none", "gzip", "zlib"):
            write_file(tmp_path / "other", [as_frames(PAYLOADS)], theirs)
            report = examine(tmp_path / "other", manifest)
            assert kinds(report) == ([] if ours == theirs else ["COMPRESSION", "SIZE"])


def test_magic_bytes_tell_the_compression() -> None:
    assert detect_compression(gzip.compress(b"")[:12]) == "gzip"
    for level in range(10):
        assert detect_compression(zlib.compress(STREAM, level)[:12]) == "zlib"
        assert detect_compression(zlib.compress(b"", level)[:12]) == "zlib"
    for head in (b"", b"\x1f", b"BZh9", b"\x28\xb5\x2f\xfd", b"PK\3\4" + bytes(8), STREAM[:12], STREAM[:5]):
        assert detect_compression(head) == "none"


def test_a_valid_header_is_plain_whatever_it_looks_like() -> None:
    for length in (0x8B1F, 0x088B1F, 0x9C78, 0x0178, 0xDA78):
        assert detect_compression(header(length)) == "none"


def test_a_damaged_header_that_looks_like_zlib_is_still_plain(tmp_path: Path) -> None:
    payload = bytes(0x0178)
    report = examine(write(tmp_path / "file", flipped(frames([payload, b"next"]), 8 * 9)))
    assert [(f.kind, f.record, f.offset) for f in report.faults] == [(FaultKind.LENGTH_CRC, 0, 0)]
    assert report.records == 1


@pytest.mark.parametrize("magic", [b"\x1f\x8b\x08\x00", b"\x78\x9c", b"\x78\x01"], ids=["gzip", "zlib", "zlib fast"])
def test_random_bytes_behind_a_magic_number_are_a_fault(magic: bytes, tmp_path: Path) -> None:
    for seed in range(50):
        content = magic + random.Random(seed).randbytes(seed * 3)
        report = examine(write(tmp_path / "file", content))
        assert not report.ok and report.records == 0


@examples(100)
@given(content=st.binary(min_size=1, max_size=200))
def test_a_file_of_random_bytes_is_a_fault(content: bytes, tmp_path: Path) -> None:
    report = examine(write(tmp_path / "file", content))
    assert not report.ok and report.records == 0


def test_a_large_compressed_file_is_read_through_small_windows(tmp_path: Path) -> None:
    payloads = [bytes([n % 256]) * (n * 997 % 400_000) for n in range(120)]  # packs a thousandfold
    for compression in ("gzip", "zlib"):
        manifest = write_file(tmp_path / "file", [as_frames([b"a"]), _fast(payloads)], compression)
        report = examine(tmp_path / "file", manifest)
        assert report.ok and report.records == 121


def _fast(payloads: list[bytes]) -> Frames:
    """Frames of large payloads, whose CRCs the reference would take too long for."""
    stream = b"".join(header(len(p)) + p + struct.pack("<I", masked_crc32c(p)) for p in payloads)
    return Frames(memoryview(stream), np.array([len(p) + 16 for p in payloads], np.int64))
