"""Every damage to an uncompressed file is found, with its kind, record and offset, and what is intact is still read."""

import base64
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfr_assets.records.examples.writer import write_file
from tfr_assets.records.frames.examine import examine
from tfr_assets.records.frames.scan import FaultKind, scan_stream

from .reference import FOO_BAR, TABLE, crc32c, examples, flipped, frame, frames, header, masked, offsets, write
from .streams import Memory, as_frames, brief, scan

PAYLOADS = [b"foo", b"", b"0123456789" * 3, b"\0", b"bar"]
STARTS = offsets(PAYLOADS)
CONTENT = frames(PAYLOADS)
BUFFER = 1 << 20


def intact(but: int | None = None) -> list[tuple[int, int, bytes]]:
    """What a scan of CONTENT visits, but for one record."""
    return [(n, STARTS[n], payload) for n, payload in enumerate(PAYLOADS) if n != but]


def test_the_published_file_holds_foo_and_bar(tmp_path: Path) -> None:
    path = write(tmp_path / "file", base64.b64decode(FOO_BAR))
    report = examine(path)
    assert report.ok and report.faults == ()
    assert (report.records, report.payload_bytes, report.bytes, report.compression) == (2, 6, 38, "none")
    found, seen = scan(path.read_bytes())
    assert [payload for _, _, payload in seen.records] == [b"foo", b"bar"]
    assert found.stream_bytes == 38


def test_an_empty_file_has_no_records_and_no_fault(tmp_path: Path) -> None:
    report = examine(write(tmp_path / "file", b""))
    assert report.ok
    assert (report.records, report.digest) == (0, "0" * 16)


def test_every_truncation_is_found() -> None:
    for size in range(len(CONTENT)):
        record = next(n for n, stop in enumerate(STARTS[1:]) if size < stop)
        found, seen = scan(CONTENT[:size])
        assert seen.records == intact()[:record]
        assert found.records == record
        inside = size - STARTS[record]
        if inside == 0:
            assert brief(found) == []  # a whole file of fewer records: only the manifest can tell
        else:
            kind = "TRUNCATED_HEADER" if inside < 12 else "TRUNCATED_RECORD"
            assert brief(found) == [(kind, record, STARTS[record])]
            detail = f"{inside} of 12 bytes" if inside < 12 else f"{inside - 12} bytes are left"
            assert detail in found.faults[0].detail


def test_a_cut_on_a_record_boundary_is_found_through_the_manifest(tmp_path: Path) -> None:
    path = tmp_path / "file"
    manifest = write_file(path, [as_frames(PAYLOADS)])
    assert path.read_bytes() == CONTENT
    assert examine(path, manifest).ok
    for size in range(len(CONTENT)):
        path.write_bytes(CONTENT[:size])
        report = examine(path, manifest)
        kinds = [fault.kind for fault in report.faults]
        assert kinds[-2:] == [FaultKind.SIZE, FaultKind.COUNT]
        assert len(kinds) == (2 if size in STARTS else 3)


def test_every_flipped_bit_is_found_and_costs_one_record(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for bit in range(len(CONTENT) * 8):
        record = next(n for n, stop in enumerate(STARTS[1:]) if bit // 8 < stop)
        content = flipped(CONTENT, bit)
        found, seen = scan(content)
        assert seen.records == intact(but=record), bit
        assert found.records == len(PAYLOADS) - 1
        if bit // 8 - STARTS[record] < 12:
            assert brief(found) == [("LENGTH_CRC", record, STARTS[record])]
            resumed = f"next intact header at byte {STARTS[record + 1]}"
            assert (resumed in found.faults[0].detail) == (record + 1 < len(PAYLOADS))
        else:
            assert brief(found) == [("DATA_CRC", record, STARTS[record] + 12)]
        if bit % 8 == 3:  # nothing on the way from the file changes that
            assert [(f.kind.name, f.record, f.offset) for f in examine(write(path, content)).faults] == brief(found)


def test_a_fault_tells_both_crcs() -> None:
    content = bytearray(CONTENT)
    content[12] ^= 1
    stored = struct.unpack_from("<I", CONTENT, 15)[0]
    found, _ = scan(bytes(content))
    assert f"stored {stored:08x}, computed {masked(crc32c(bytes(content[12:15]))):08x}" == found.faults[0].detail
    assert str(found.faults[0]) == f"memory: record 0 at byte 12: data CRC is wrong ({found.faults[0].detail})"


def test_tensorflow_fails_on_the_flipped_bits_that_the_scan_reports(tf: Any, tmp_path: Path) -> None:
    content = frames([b"foo", b"ba"])
    paths = [str(write(tmp_path / str(bit), flipped(content, bit))) for bit in range(0, len(content) * 8, 3)]
    for path in paths:
        with pytest.raises(tf.errors.DataLossError):
            list(tf.data.TFRecordDataset(path))
        assert not examine(Path(path)).ok


def test_tensorflow_reads_the_cut_files_in_silence_that_the_scan_reports(tf: Any, tmp_path: Path) -> None:
    content = frames([b"foo", b"ba"])
    for size in range(len(content)):
        path = write(tmp_path / "file", content[:size])
        report = examine(path)
        try:
            records = [r.numpy() for r in tf.data.TFRecordDataset(str(path))]
        except tf.errors.DataLossError:
            assert not report.ok
        else:
            assert len(records) == report.records
            assert report.ok == (size in (0, 19))


@pytest.mark.parametrize("length", [10**11, 2**40, 2**62, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1, 2**64 - 16], ids=hex)
@pytest.mark.parametrize("sized", [True, False], ids=["plain", "decompressed"])
def test_an_absurd_length_with_a_valid_crc_costs_one_record(length: int, sized: bool) -> None:
    before, behind = frames([b"one", b"two"]), frames([b"four", b"five"])
    found, seen = scan(before + header(length) + b"data" + behind, sized=sized)
    assert brief(found) == [("TRUNCATED_RECORD", 2, len(before))]
    assert f"header says {length} bytes" in found.faults[0].detail
    assert f"next intact header at byte {len(before) + 16}" in found.faults[0].detail
    assert [(record, payload) for record, _, payload in seen.records] == [
        (0, b"one"),
        (1, b"two"),
        (3, b"four"),
        (4, b"five"),
    ]
    at_end, _ = scan(before + header(length), sized=sized)
    assert brief(at_end) == [("TRUNCATED_RECORD", 2, len(before))]
    assert at_end.records == 2


def test_one_absurd_length_behind_another_is_no_place_to_go_on() -> None:
    for sized in (True, False):
        found, seen = scan(frames([b"one"]) + header(2**40) + header(2**41) + frames([b"four"]), sized=sized)
        assert brief(found) == [("TRUNCATED_RECORD", 1, 19)]
        assert [(record, payload) for record, _, payload in seen.records] == [(0, b"one"), (2, b"four")]


def test_an_absurd_length_is_found_while_the_end_of_the_stream_is_not_known() -> None:
    behind = frame(b"x" * 1000) * 5000
    for length in (2**31 + 1, 10**11, 2**40, 2**63 + 1):
        found, seen = scan(frames([b"one"]) + header(length) + header(length + 1) + behind, sized=False)
        assert brief(found) == [("TRUNCATED_RECORD", 1, 19)]
        assert found.faults[0].detail.startswith(
            f"header says {length} bytes of data and 4 of CRC, which no compressed"
        )
        assert [record for record, _, _ in seen.records] == [0, *range(2, 5002)]


def test_a_length_one_byte_too_large_is_found() -> None:
    for sized in (True, False):
        content = frames([b"one"]) + header(4) + b"abc" + b"1234"
        found, _ = scan(content, sized=sized)
        assert brief(found) == [("TRUNCATED_RECORD", 1, 19)]
        assert "4 bytes of data and 4 of CRC, 7 bytes are left" in found.faults[0].detail


@pytest.mark.parametrize("garbage", [b"\0", b"\xff", b"\x05"], ids=["zeros", "ones", "small"])
def test_trailing_garbage_is_found(garbage: bytes, tmp_path: Path) -> None:
    for size in range(1, 21):
        report = examine(write(tmp_path / "file", CONTENT + garbage * size))
        kind = FaultKind.TRUNCATED_HEADER if size < 12 else FaultKind.LENGTH_CRC
        assert [(fault.kind, fault.record, fault.offset) for fault in report.faults] == [
            (kind, len(PAYLOADS), len(CONTENT))
        ]
        assert report.records == len(PAYLOADS)


def test_garbage_between_records_is_stepped_over() -> None:
    for size in (1, 11, 12, 13, 100, 3_000_000):
        found, seen = scan(frames(PAYLOADS[:2]) + b"\x99" * size + frames(PAYLOADS[2:]))
        assert brief(found) == [("LENGTH_CRC", 2, STARTS[2])]
        assert f"next intact header at byte {STARTS[2] + size}" in found.faults[0].detail
        assert [payload for _, _, payload in seen.records] == PAYLOADS


def test_a_header_inside_a_payload_is_no_record_while_frames_are_in_step() -> None:
    payload = b"x" + frame(b"inner") * 3
    found, seen = scan(frames([payload, b"last"]))
    assert found.faults == () and [p for _, _, p in seen.records] == [payload, b"last"]


def test_a_wrong_data_crc_does_not_lose_the_next_record() -> None:
    """The length is vouched for by its own CRC, so that the scan steps over the payload, whatever it holds."""
    payload = frame(b"inner")
    content = bytearray(frames([payload, b"last"]))
    content[-len(frame(b"last")) - 1] ^= 0xFF
    found, seen = scan(bytes(content))
    assert brief(found) == [("DATA_CRC", 0, 12)]
    assert seen.records == [(1, len(frame(payload)), b"last")]


@pytest.mark.parametrize("piece", [*range(1, 21), 511, BUFFER // 2 - 1, BUFFER // 2, BUFFER])
def test_the_size_of_reads_does_not_matter(piece: int) -> None:
    contents = [CONTENT, CONTENT[:-1], flipped(CONTENT, 13), flipped(CONTENT, 8 * STARTS[2] + 100), CONTENT + b"tail"]
    for content in contents:
        for sized in (True, False):
            whole, part = scan(content), scan(content, piece, sized)
            assert whole == part


@pytest.mark.parametrize("edge", [BUFFER // 2, BUFFER])
def test_records_straddle_the_buffer_at_every_alignment(edge: int) -> None:
    behind = [b"a", b"", b"bc" * 10, b"\xff"]
    payload = bytes(edge + 40)
    for shift in range(-40, 21):
        payloads = [payload[: edge + shift - 16], *behind]
        content = frames(behind)  # framing a megabyte in Python takes too long
        first = header(len(payloads[0])) + payloads[0] + struct.pack("<I", masked(_zeros_crc(len(payloads[0]))))
        for piece in (1 << 30, edge - 3):
            found, seen = scan(first + content, piece)
            assert (found.faults, found.records) == ((), 5), shift
            assert [p for _, _, p in seen.records[1:]] == behind
            assert [at for _, at, _ in seen.records] == offsets(payloads)[:-1]


def test_damage_beside_the_end_of_the_buffer_is_found_at_every_alignment() -> None:
    behind = [b"a", b"bc" * 10, b"\xff"]
    for shift in range(-30, 14, 2):
        size = BUFFER + shift - 16
        first = header(size) + bytes(size) + struct.pack("<I", masked(_zeros_crc(size)))
        content = bytearray(first + frames(behind))
        content[len(first) + 3] ^= 1
        found, seen = scan(bytes(content))
        assert brief(found) == [("LENGTH_CRC", 1, len(first))]
        assert [(n, p) for n, _, p in seen.records[1:]] == [(2, behind[1]), (3, behind[2])]


@pytest.mark.parametrize("edge", [BUFFER // 2, BUFFER])
def test_a_cut_header_beside_the_end_of_the_buffer_is_found_at_every_alignment(edge: int) -> None:
    for before in range(13):  # bytes of the cut header that still lie in the buffer
        whole = frame(bytes(edge - before - 16))
        for tail in range(max(before, 1), 12):
            found, seen = scan(whole + b"\7" * tail)
            assert len(seen.records) == found.records == 1
            assert brief(found) == [("TRUNCATED_HEADER", 1, len(whole))]
            assert f"{tail} of 12 bytes" in found.faults[0].detail


def test_a_record_of_five_megabytes(tf: Any, tmp_path: Path) -> None:
    payload = bytes(range(256)) * 20_000
    path = tmp_path / "file"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in (b"small", payload, b"small", payload[1:]):
            writer.write(record)
    content = path.read_bytes()
    for piece, sized in ((1 << 30, True), (300_001, True), (1 << 30, False), (77_777, False)):
        found, seen = scan(content, piece, sized)
        assert found.faults == ()
        assert [p for _, _, p in seen.records] == [b"small", payload, b"small", payload[1:]]
    damaged = bytearray(content)
    damaged[21 + 12 + 3_000_000] ^= 4
    found, seen = scan(bytes(damaged))
    assert brief(found) == [("DATA_CRC", 1, 21 + 12)]
    assert len(seen.records) == 3
    cut, _ = scan(content[: 21 + 3_000_000], sized=False)
    assert brief(cut) == [("TRUNCATED_RECORD", 1, 21)]


def test_a_hundred_thousand_records(tf: Any, tmp_path: Path) -> None:
    path = tmp_path / "file"
    payloads = [b"%d" % (n * n) for n in range(100_000)]
    with tf.io.TFRecordWriter(str(path)) as writer:
        for payload in payloads:
            writer.write(payload)
    found, seen = scan(path.read_bytes())
    assert (found.faults, found.records) == ((), 100_000)
    assert [p for _, _, p in seen.records] == payloads
    assert [n for n, _, _ in seen.records] == list(range(100_000))
    assert [at for _, at, _ in seen.records] == offsets(payloads)[:-1]
    assert found.payload_bytes == sum(map(len, payloads))


def test_many_faults_are_all_counted_and_the_first_are_kept() -> None:
    payloads = [b"%06d" % n for n in range(5000)]
    content = bytearray(frames(payloads))
    size = 16 + 6
    for n in range(0, 5000, 2):
        content[n * size + (12 if n % 4 else 0)] ^= 0x10  # data and headers in turn
    expected = [("DATA_CRC", n, n * size + 12) if n % 4 else ("LENGTH_CRC", n, n * size) for n in range(0, 5000, 2)]
    for limit in (1000, 1, 0, 1 << 20):
        found, seen = scan(bytes(content), max_faults=limit)
        assert found.fault_count == 2500
        assert brief(found) == expected[:limit]
        assert [record for record, _, _ in seen.records] == list(range(1, 5000, 2))
        for fault in found.faults:
            assert ("next intact header" in fault.detail) == (fault.kind is FaultKind.LENGTH_CRC)


def test_all_records_damaged() -> None:
    content = bytearray(frames([b"x"] * 3000))
    for n in range(3000):
        content[n * 17 + 12] ^= 1
    found, seen = scan(bytes(content))
    assert (found.records, found.fault_count, len(found.faults), found.digest) == (0, 3000, 1000, 0)
    assert seen.records == []


@examples(300)
@given(content=st.binary(max_size=300), piece=st.integers(1, 64), sized=st.booleans())
def test_random_bytes_are_no_records(content: bytes, piece: int, sized: bool) -> None:
    found, seen = scan(content, piece, sized)
    assert seen.records == []
    assert found.fault_count == len(found.faults) == bool(content)
    assert found.stream_bytes == len(content)


@examples(300)
@given(
    payloads=st.lists(st.binary(max_size=40), max_size=8),
    damage=st.lists(st.tuples(st.integers(0, 10**6), st.binary(max_size=6), st.integers(0, 20)), max_size=3),
)
def test_a_damaged_file_is_read_up_to_the_damage_and_nothing_is_invented(
    payloads: list[bytes], damage: list[tuple[int, bytes, int]]
) -> None:
    """Cuts out pieces and puts in others."""
    content = frames(payloads)
    for at, new, gone in damage:
        at %= len(content) + 1
        content = content[:at] + new + content[at + gone :]
    found, seen = scan(content)
    position = 0
    for _, offset, payload in seen.records:
        assert offset >= position and content[offset : offset + len(payload) + 16] == frame(payload)
        position = offset + len(payload) + 16
    assert found.fault_count or b"".join(frame(p) for _, _, p in seen.records) == content
    assert found.records == len(seen.records)
    if len(damage) == 1:
        at = damage[0][0] % (len(frames(payloads)) + 1)
        before = [payload for payload, stop in zip(payloads, offsets(payloads)[1:], strict=True) if stop <= at]
        assert [p for _, _, p in seen.records][: len(before)] == before


def test_progress_adds_up_to_the_stream() -> None:
    for content in (CONTENT, CONTENT[:-3], bytes(3_000_000), frames([bytes(100)] * 5000)):
        steps: list[int] = []
        found = scan_stream(Memory(content), "memory", progress=steps.append)
        assert sum(steps) == found.stream_bytes == len(content)


def test_a_missing_file_is_a_fault(tmp_path: Path) -> None:
    report = examine(tmp_path / "none")
    assert [fault.kind for fault in report.faults] == [FaultKind.MISSING]
    assert not report.ok and report.fault_count == 1 and str(tmp_path / "none") in str(report.faults[0])


def test_what_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    report = examine(tmp_path)  # a folder
    assert [fault.kind for fault in report.faults] == [FaultKind.UNREADABLE]
    assert "directory" in report.faults[0].detail


def test_a_file_against_anothers_manifest(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    manifest = write_file(ours, [as_frames([b"one", b"two"])])
    write_file(theirs, [as_frames([b"one", b"six"])])
    assert [fault.kind for fault in examine(theirs, manifest).faults] == [FaultKind.CONTENT]
    write_file(theirs, [as_frames([b"two", b"one"])])
    assert [fault.kind for fault in examine(theirs, manifest).faults] == [FaultKind.CONTENT]
    write_file(theirs, [as_frames([b"on", b"wtwo"])])
    assert [fault.kind for fault in examine(theirs, manifest).faults] == [FaultKind.CONTENT]
    write_file(theirs, [as_frames([b"onetwo"])])
    assert [fault.kind for fault in examine(theirs, manifest).faults] == [FaultKind.SIZE, FaultKind.COUNT]
    write_file(theirs, [as_frames([b"one", b"two"])], "gzip")
    assert [fault.kind for fault in examine(theirs, manifest).faults] == [FaultKind.COMPRESSION, FaultKind.SIZE]


_zero_states: dict[int, int] = {}


def _zeros_crc(size: int) -> int:
    """CRC32C of zeros, by the reference's table; remembers where it was, since sizes come in sequence."""
    nearest = max((n for n in _zero_states if n <= size), default=0)
    crc = _zero_states.get(nearest, 0xFFFFFFFF)
    for _ in range(size - nearest):
        crc = (crc >> 8) ^ TABLE[crc & 0xFF]
    _zero_states[size] = crc
    return crc ^ 0xFFFFFFFF
