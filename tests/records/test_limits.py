"""Long records: none is read beyond a limit, lengths that lie take no memory, what has no room is one clear error."""

import gzip
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfr_assets.records.examples.inspect import inspect_file
from tfr_assets.records.examples.writer import write_file
from tfr_assets.records.frames.compression import CompressedInput
from tfr_assets.records.frames.examine import examine
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.frames.scan import FaultKind, scan_stream
from tfr_assets.records.kernels.crc32c import masked_crc32c
from tfr_assets.units import MAX_RECORD_BYTES

from .reference import examples, flipped, frames, header, offsets, write
from .streams import Memory, Seen, as_frames

MB = 1 << 20


def large_frame(size: int) -> bytes:
    """The frame of a record of zeros: quick, also where it is large."""
    payload = bytes(size)
    return header(size) + payload + struct.pack("<I", masked_crc32c(payload))


@examples(150)
@given(
    payloads=st.lists(st.binary(max_size=60), max_size=8),
    limit=st.integers(1, 60),
    piece=st.integers(1, 40),
    sized=st.booleans(),
)
def test_records_beyond_the_limit_are_passed_over_and_named(
    payloads: list[bytes], limit: int, piece: int, sized: bool
) -> None:
    seen, starts = Seen(), offsets(payloads)
    found = scan_stream(Memory(frames(payloads), piece, sized), "memory", seen, max_record_bytes=limit)
    numbered = list(enumerate(zip(starts, payloads, strict=False)))
    assert seen.records == [(i, at, payload) for i, (at, payload) in numbered if len(payload) <= limit]
    assert [(fault.kind, fault.record, fault.offset) for fault in found.faults] == [
        (FaultKind.TOO_LONG, i, at) for i, (at, payload) in numbered if len(payload) > limit
    ]
    assert found.stream_bytes == starts[-1]


def test_the_fault_says_what_the_limit_is_and_how_to_raise_it(tmp_path: Path) -> None:
    path = write(tmp_path / "file", frames([b"a", b"b" * 100, b"c"]))
    report = examine(path, max_record_bytes=99)
    assert [str(fault) for fault in report.faults] == [
        f"{path}: record 1 at byte 17: record is too long to be read (header says 100 bytes, the limit is 99; if there "
        "are such records, raise it with max_record_bytes=, or --max-record-bytes of the command line)"
    ]
    assert (report.records, report.fault_count) == (2, 1)
    assert examine(path, max_record_bytes=100).ok
    assert inspect_file(path, max_record_bytes=99).fault_count == 1
    assert inspect_file(path).records == 3


def test_damage_behind_a_long_record_is_found() -> None:
    content = frames([b"a" * 3000, b"b", b"c"])
    for sized in (True, False):
        for size, kinds in ((3016 + 14, ["TOO_LONG", "TRUNCATED_RECORD"]), (3000, ["TRUNCATED_RECORD"])):
            found = scan_stream(Memory(content[:size], 100, sized), "memory", max_record_bytes=50)
            assert [fault.kind.name for fault in found.faults] == kinds
        found = scan_stream(Memory(flipped(content, 8 * (3016 + 12)), 100, sized), "memory", max_record_bytes=50)
        assert [(f.kind.name, f.record) for f in found.faults] == [("TOO_LONG", 0), ("DATA_CRC", 1)]
        assert found.records == 1


def test_the_manifest_of_a_file_with_long_records_raises_the_limit(tmp_path: Path) -> None:
    manifest = write_file(tmp_path / "file", [as_frames([b"x" * 50])])
    assert manifest.max_record_bytes == MAX_RECORD_BYTES
    large = Manifest("file", 2, 0, MAX_RECORD_BYTES + 5, "none", "", None)
    assert large.max_record_bytes == MAX_RECORD_BYTES + 5


def peak_of(script: str, *arguments: object, limit: int = 0) -> tuple[str, int]:
    """Output of a process, and by how many bytes its memory's peak grew; it may take `limit` more, if that is given."""
    text = f"""
import resource, sys
from pathlib import Path
import numpy as np, pyarrow as pa
import tfr_assets
from tfr_assets.errors import TfrError
from tfr_assets.reading.locate.files import locate
from tfr_assets.reading.native import decoded_batches
from tfr_assets.records.frames.examine import examine
from tfr_assets.writing import write as writing
from tfr_assets.bench.writers import locked, serial
from tfr_assets.bench.writers.measured import MEASURED
from tfr_assets.writing.writers import sharded_threads, single_writer_queue
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
pages = lambda: int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
before = peak()
if {limit}:
    resource.setrlimit(resource.RLIMIT_AS, (pages() + {limit},) * 2)
{script}
print(peak() - before)
"""
    command = [sys.executable, "-c", text, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    output, _, peak = done.stdout.rstrip().rpartition("\n")
    return output, int(peak)


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_a_small_compressed_file_takes_no_large_memory(tmp_path: Path, compression: str) -> None:
    """A header that promises 2 GB and is followed by 400 MB of zeros; the file has 400 kB."""
    packer = zlib.compressobj(1, wbits=31 if compression == "gzip" else 15)
    content = packer.compress(header((2 << 30) - 100)) + b"".join(packer.compress(bytes(MB)) for _ in range(400))
    path = write(tmp_path / "file", content + packer.flush())
    script = "print(*examine(Path(sys.argv[1])).faults, sep='\\n')"
    output, peak = peak_of(script, path)
    assert "record 0 at byte 0: record is too long to be read" in output
    assert peak < 60 * MB


def test_a_length_that_lies_takes_memory_only_as_bytes_come(tmp_path: Path) -> None:
    path = write(tmp_path / "file", gzip.compress(frames([b"a"]) + header(200 * MB) + bytes(5 * MB)))
    output, peak = peak_of("print(*examine(Path(sys.argv[1])).faults, sep='\\n')", path)
    assert "record 1 at byte 17: truncated record" in output
    assert peak < 60 * MB


def test_decompressing_into_a_large_buffer_goes_piece_by_piece(tmp_path: Path) -> None:
    path = write(tmp_path / "file", gzip.compress(bytes(30 * MB)))
    with path.open("rb") as file:
        stream, target = CompressedInput(file.fileno(), "gzip"), np.empty(30 * MB, np.uint8)
        assert 0 < stream.read_into(target.data) <= MB


SIZE = 150 * MB


def test_records_that_memory_has_no_room_for_are_passed_over_and_named(tmp_path: Path) -> None:
    path = write(tmp_path / "file", frames([b"a"]) + large_frame(SIZE) + frames([b"c"]))
    script = "r = examine(Path(sys.argv[1])); print(r.records, *r.faults, sep='\\n')"
    output, _ = peak_of(script, path, limit=100 * MB)
    assert output.splitlines()[0] == "2"
    assert (
        f"{path}: record 1 at byte 17: record is too long to be read (there is no memory for its {SIZE} bytes" in output
    )


READ = """
try:
    for batch in tfr_assets.batches(sys.argv[1], workers=1):
        print(len(batch["x"]))
except TfrError as error:
    print(type(error).__name__, error)
"""


TENSOR_STRINGS = READ.replace(
    "tfr_assets.batches(sys.argv[1], workers=1)",
    "decoded_batches.Batches(locate(sys.argv[1]), ('x',), 1, None, workers=1, at_once=True, tensor_strings=True)",
)


@pytest.mark.parametrize("read", [READ, TENSOR_STRINGS], ids=["batches", "strings that TensorFlow takes"])
@pytest.mark.parametrize(
    ("limit", "problem"), [(100, "record 1 at byte"), (380, "no memory for the values of records 1 to 1")]
)
def test_reading_what_memory_has_no_room_for_is_one_error(tmp_path: Path, limit: int, problem: str, read: str) -> None:
    import pyarrow as pa

    import tfr_assets

    path = tmp_path / "some.tfrecord"
    tfr_assets.write(pa.table({"x": pa.array([b"a", bytes(SIZE), b"c"], pa.large_binary())}), path)
    output, _ = peak_of(read, path, limit=limit * MB)
    assert str(path) in output and problem in output
    assert "bytes (157.3 MB)" in output
    assert peak_of(read, path)[0].split()[-1] in ("3", "1")


WRITE = """
from tfr_assets.records.examples.encoder import ExampleEncoder
kind = sys.argv[3]
rows = {"x": [b"a", np.zeros(SIZE, np.uint8).tobytes(), b"c"]}
data = iter(rows["x"]) if kind == "serialized" else pa.table(rows, pa.schema([("x", pa.large_binary())]))
resource.setrlimit(resource.RLIMIT_AS, (pages() + 100 * 2**20,) * 2)
try:
    tfr_assets.write(data, sys.argv[1], writer=MEASURED[sys.argv[2]], workers=2)
except TfrError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("writer", ["serial", "sharded_threads", "single_writer_queue", "locked"])
def test_writing_what_memory_has_no_room_for_is_one_error_and_leaves_nothing(tmp_path: Path, writer: str) -> None:
    path = tmp_path / "some.tfrecord"
    output, _ = peak_of(WRITE.replace("SIZE", str(SIZE)), path, writer, "table")
    assert output.startswith("WriteError") and f"cannot write {path}: there is no memory for" in output, output
    assert "row 1, a record of up to 157" in output
    assert not [each for each in tmp_path.rglob("*") if each.is_file()]


def test_writing_serialized_records_without_memory_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "some.tfrecord"
    output, _ = peak_of(WRITE.replace("SIZE", str(SIZE)), path, "serial", "serialized")
    assert output.startswith("WriteError") and str(path) in output, output
