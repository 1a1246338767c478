"""Both CRC32C kernels against published vectors, each other and a table-driven reference."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfr_assets.records.kernels import crc32c as kernels
from tfr_assets.records.kernels.crc32c import crc32c, masked_crc32c
from tfr_assets.records.kernels.jit import address_of

from . import reference
from .reference import examples

Kernel = Callable[[int, int], int]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(reversed(range(32))), 0x113FDB5C),
        (b"123456789", 0xE3069283),
        (b"", 0),
    ],
)
def test_published_vectors(data: bytes, expected: int) -> None:
    assert crc32c(data) == reference.crc32c(data) == expected


@pytest.mark.parametrize(
    ("data", "expected"), [(b"foo", 0xFEBE8A61), (bytes(32), 0x0FD7FFFA), (b"\xff" * 32, 0xF909B029)]
)
def test_masked_vectors(data: bytes, expected: int) -> None:
    assert masked_crc32c(data) == reference.masked(reference.crc32c(data)) == expected


def test_any_buffer_is_taken() -> None:
    content = b"0123456789"
    for data in (content, bytearray(content), memoryview(content), np.frombuffer(content, np.uint8)):
        assert crc32c(data) == reference.crc32c(content)
        assert masked_crc32c(data) == reference.masked(reference.crc32c(content))


@pytest.mark.parametrize(
    "kernel", [kernels.crc_by_table, kernels.crc_by_instruction], ids=lambda kernel: kernel.__name__
)
def test_each_kernel_at_every_size_and_alignment(kernel: Kernel) -> None:
    _needs_instruction(kernel)
    buffer = np.random.default_rng(1).integers(0, 256, 256, np.uint8)
    for shift in range(16):
        for size in range(101):
            expected = reference.crc32c(buffer[shift : shift + size].tobytes())
            assert kernel(address_of(buffer) + shift, size) == expected, (shift, size)


@examples(100)
@given(data=st.binary(max_size=5000), shift=st.integers(0, 7))
def test_the_kernels_agree(data: bytes, shift: int) -> None:
    _needs_instruction(kernels.crc_by_instruction)
    buffer = np.frombuffer(bytes(shift) + data, np.uint8)
    address = address_of(buffer) + shift
    by_table = kernels.crc_by_table(address, len(data))
    assert by_table == kernels.crc_by_instruction(address, len(data)) == reference.crc32c(data)


@examples(100)
@given(data=st.binary(max_size=200), cut=st.integers(0, 200))
def test_the_checksum_goes_on_where_it_ended(data: bytes, cut: int) -> None:
    assert crc32c(data[cut:], crc32c(data[:cut])) == crc32c(data)
    address = address_of(buffer := np.frombuffer(data + b"!", np.uint8))
    cut = min(cut, len(data))
    for kernel in (kernels._more_by_table, kernels._more_by_instruction):
        _needs_instruction(kernel)
        assert kernel(np.uint32(crc32c(data[:cut])), address + cut, buffer.size - 1 - cut) == crc32c(data)


@pytest.mark.parametrize("name", ["_four_by_table", "_four_by_instruction"])
def test_four_at_once_are_four_single_ones(name: str) -> None:
    four = getattr(kernels, name)
    _needs_instruction(four)
    generator = np.random.default_rng(2)
    buffer = generator.integers(0, 256, 4000, np.uint8)
    for _ in range(300):
        starts, sizes = generator.integers(0, 3000, 4), generator.integers(0, generator.choice([1, 20, 900]), 4)
        parts = [(address_of(buffer) + int(start), int(size)) for start, size in zip(starts, sizes, strict=True)]
        found = four(*(number for part in parts for number in part))
        assert list(found) == [kernels.crc_by_table(*part) for part in parts]


def test_the_table_alone_writes_and_verifies_the_same_file(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "TFR_CRC32C": "portable",
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    script = """
import sys
from pathlib import Path
import pyarrow as pa
from tfr_assets.records.examples.encoder import ExampleEncoder
from tfr_assets.records.kernels.jit import PORTABLE
from tfr_assets.records.frames.examine import examine
from tfr_assets.records.schema.derive import derive_spec
from tfr_assets.records.examples.writer import write_file
from tfr_assets.records.kernels import crc32c
assert PORTABLE and crc32c.crc_at is crc32c.crc_by_table
folder = Path(sys.argv[1])
assert examine(folder / "theirs").ok
batch = pa.record_batch({"n": range(1000), "t": ["x" * (n % 300) for n in range(1000)]})
print(write_file(folder / "ours", ExampleEncoder(derive_spec(batch.schema, {})).encode(batch)).digest)
"""
    import pyarrow as pa

    from tfr_assets.records.examples.encoder import ExampleEncoder
    from tfr_assets.records.examples.writer import write_file
    from tfr_assets.records.schema.derive import derive_spec

    batch = pa.record_batch({"n": range(1000), "t": ["x" * (n % 300) for n in range(1000)]})
    manifest = write_file(tmp_path / "theirs", ExampleEncoder(derive_spec(batch.schema, {})).encode(batch))
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == manifest.digest
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


def _needs_instruction(kernel: Kernel) -> None:
    from tfr_assets.records.kernels.jit import _has_crc_instruction

    if "instruction" in kernel.__name__ and not _has_crc_instruction():
        pytest.skip("this CPU has no CRC32C instruction")
