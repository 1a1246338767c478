"""The TFRecord format once more, slow and obvious: the compiled kernels are compared with it.

Imports nothing of the package.
"""

import os
import struct
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from hypothesis import HealthCheck, settings

TABLE = []
for _entry in range(256):
    for _ in range(8):
        _entry = (_entry >> 1) ^ 0x82F63B78 if _entry & 1 else _entry >> 1
    TABLE.append(_entry)

FOO_BAR = "AwAAAAAAAACwmUkOZm9vYYq+/gMAAAAAAAAAsJlJDmJhckYA5cg="  # base64 of a file that holds "foo" and "bar"


def examples(count: int) -> settings:
    """Settings of a property test: the same examples every time, or TFR_EXAMPLES times as many at random."""
    factor = int(os.environ.get("TFR_EXAMPLES", "0"))
    return settings(
        max_examples=count * max(1, factor),
        derandomize=not factor,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
    )


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def masked(crc: int) -> int:
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def header(length: int) -> bytes:
    size = struct.pack("<Q", length)
    return size + struct.pack("<I", masked(crc32c(size)))


def frame(payload: bytes) -> bytes:
    return header(len(payload)) + payload + struct.pack("<I", masked(crc32c(payload)))


def frames(payloads: Sequence[bytes]) -> bytes:
    return b"".join(map(frame, payloads))


def offsets(payloads: Sequence[bytes]) -> list[int]:
    """Where each frame starts, and where the last one ends."""
    return [0, *accumulate(len(payload) + 16 for payload in payloads)]


def payloads_of(stream: bytes) -> list[bytes]:
    """The payloads of whole frames; fails on anything else."""
    found, position = [], 0
    while position < len(stream):
        length = struct.unpack_from("<Q", stream, position)[0]
        payload = stream[position + 12 : position + 12 + length]
        whole = stream[position : position + length + 16]
        # a large CRC would take seconds here; tests of large records let TensorFlow read them
        assert whole == frame(payload) if length < 100_000 else whole[:12] == header(length)
        found.append(payload)
        position += length + 16
    return found


def flipped(data: bytes, bit: int) -> bytes:
    """`data` with one bit flipped."""
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << (bit % 8)
    return bytes(changed)


def varint(value: int) -> bytes:
    out = bytearray()
    value &= 2**64 - 1
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def message(tag: int, *parts: bytes) -> bytes:
    """A length-delimited protobuf field."""
    content = b"".join(parts)
    return bytes([tag]) + varint(len(content)) + content


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path
