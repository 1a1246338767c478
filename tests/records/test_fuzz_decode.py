"""Mutated records against guard pages: no read beyond them, no crash, and no other value than TensorFlow finds.

The records are put right before a page that cannot be read, with the 64 bytes between that readers may touch. It runs
in a process of its own, since a read beyond would end it. TFR_TORTURE_SECONDS makes it run longer, TFR_TORTURE_SEED
repeats a run.

What is valid is protobuf's word (`tf.train.Example.FromString`): `tf.io.parse_example` drops in silence all but the
first part of a list in parts. Where either refuses a record, or they differ, being refused here is fine: the decoder is
stricter with lists of two kinds in a feature, and with lengths that contradict each other, which TensorFlow shifts into
the next record.
"""

import ctypes
import mmap
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from tests.records.reference import frames, message, varint
from tests.records.streams import Memory
from tfr_assets.records.arrow.arrays import Ragged, Strings, to_arrow
from tfr_assets.records.arrow.ragged import put_together
from tfr_assets.records.examples.decoder import Decoder
from tfr_assets.records.examples.wire import decode_record
from tfr_assets.records.frames.scan import scan_stream
from tfr_assets.records.kernels.jit import PADDING
from tfr_assets.records.kernels.validate import FeatureChecker
from tfr_assets.records.schema.derive import derive_spec
from tfr_assets.records.schema.feature_options import FeatureOptions

SECONDS = 4.0
ROOM = 1 << 16
SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("f", pa.float32()),
        ("t", pa.binary()),
        ("maybe", pa.int64()),
        ("list", pa.list_(pa.int64())),
        ("floats", pa.list_(pa.float32())),
        ("words", pa.list_(pa.binary())),
        ("pair", pa.list_(pa.float32(), 2)),
        ("x", pa.list_(pa.list_(pa.int64()))),
        ("deep", pa.list_(pa.list_(pa.list_(pa.float32())))),
    ]
)
OPTIONAL = ("maybe", "list", "words")
SPEC = derive_spec(SCHEMA, {name: 0 for name in SCHEMA.names if name not in OPTIONAL}, FeatureOptions())
TAGS = {"bytes": 0x0A, "float32": 0x12, "int64": 0x1A}
NUMBERS = [0, 1, 2, 3, 127, 128, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
FIELDS = [
    b"\x08\x01", b"\x09" + bytes(8), b"\x0d" + bytes(4), b"\x0b\x0c", b"\x0a\x00", b"\x12\x00", b"\x1a\x00",
    b"\x0a\x02\x0a\x00", b"\x00\x00", b"\xff" * 11, b"\x80" * 9 + b"\x01", b"\x7a\x03xyz",
    message(0x1A, message(0x0A, b"\x05")),
]  # fmt: skip


class Guarded:
    """Memory that ends where a page begins that cannot be read, with another such page before it."""

    def __init__(self) -> None:
        page = mmap.PAGESIZE
        self._map = mmap.mmap(-1, ROOM + 2 * page)
        self.bytes = np.frombuffer(self._map, np.uint8)[page : page + ROOM]
        start, libc = self.bytes.ctypes.data, ctypes.CDLL(None, use_errno=True)
        for at in (start - page, start + ROOM):
            assert libc.mprotect(ctypes.c_void_p(at), ctypes.c_size_t(page), 0) == 0

    def put(self, payloads: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
        """Returns the payloads in memory, with as little behind them as a kernel may count on, and their frames."""
        content = b"".join(payloads)
        buffer = self.bytes[ROOM - PADDING - len(content) : ROOM - PADDING]
        buffer[:] = np.frombuffer(content, np.uint8)
        self.bytes[ROOM - PADDING :] = 0xAA
        sizes = np.array([len(payload) for payload in payloads], np.int64)
        return buffer, np.stack([np.cumsum(sizes) - sizes, sizes, np.arange(len(sizes))], 1)


def values_of(dice: random.Random, kind: str) -> bytes:
    count = dice.choice([0, 1, 1, 2, 3, 40])
    if kind == "bytes":
        return b"".join(message(0x0A, dice.randbytes(dice.choice([0, 1, 5, 31, 33, 130]))) for _ in range(count))
    if kind == "float32":
        return message(0x0A, dice.randbytes(4 * count))
    return message(0x0A, *(varint(dice.choice([*NUMBERS, dice.getrandbits(64)])) for _ in range(count)))


def good(dice: random.Random) -> list[bytes]:
    """The entries of a record that fits the spec."""
    inner = [dice.choice([0, 1, 2, 5]) for _ in range(dice.choice([0, 1, 3]))]
    outer = [dice.choice([0, 1, 2]) for _ in range(dice.choice([0, 1, 3]))]
    middle = [dice.choice([0, 1, 2]) for _ in range(sum(outer))]
    fixed = {
        "n": message(0x0A, varint(dice.choice(NUMBERS))),
        "f": message(0x0A, dice.randbytes(4)),
        "t": message(0x0A, dice.randbytes(dice.choice([0, 3, 40, 200]))),
        "maybe": message(0x0A, varint(dice.choice(NUMBERS))),
        "pair": message(0x0A, dice.randbytes(8)),
        "x/ragged_row_lengths_0": message(0x0A, *map(varint, inner)),
        "x/ragged_flat_values": message(0x0A, *(varint(dice.choice(NUMBERS)) for _ in range(sum(inner)))),
        "deep/ragged_row_lengths_0": message(0x0A, *map(varint, outer)),
        "deep/ragged_row_lengths_1": message(0x0A, *map(varint, middle)),
        "deep/ragged_flat_values": message(0x0A, dice.randbytes(4 * sum(middle))),
    }
    return [
        message(
            0x0A,
            message(0x0A, each.name.encode()),
            message(0x12, message(TAGS[each.kind.value], fixed.get(each.name) or values_of(dice, each.kind.value))),
        )
        for each in SPEC.features
        if each.name not in OPTIONAL or dice.random() < 0.7
    ]


def mutated(dice: random.Random) -> bytes:
    """A record with something wrong, odd, or nothing at all."""
    entries = good(dice)
    match dice.randrange(6):
        case 0:
            dice.shuffle(entries)
        case 1:
            entries.insert(dice.randrange(len(entries)), dice.choice(entries))
        case 2:
            entries[dice.randrange(len(entries))] = dice.choice(good(dice))
        case 3:
            at = dice.randrange(len(entries))
            tag, size = entries[at][:1], len(entries[at])
            entries[at] = tag + varint(dice.choice([*NUMBERS, size - 3, size - 1])) + entries[at][2:]
    record = bytearray(message(0x0A, *entries) if dice.random() < 0.9 else b"".join(message(0x0A, e) for e in entries))
    for _ in range(dice.choice([0, 0, 1, 1, 2, 5])):
        at = dice.randrange(len(record) + 1)
        match dice.randrange(6):
            case 0 if at < len(record):
                record[at] ^= 1 << dice.randrange(8)
            case 1:
                del record[at:]
            case 2:
                record[at:at] = dice.choice(FIELDS)
            case 3:
                record[at : at + dice.randrange(3)] = varint(dice.choice(NUMBERS))
            case 4:
                del record[at : at + dice.randrange(1, 12)]
            case 5:
                record[at : at + 1] = dice.randbytes(dice.randrange(3))
    return bytes(record)


def rows_of(column: Any) -> list[Any]:
    """Values of each row as they are in the record: floats as their bits."""
    if isinstance(column, Ragged):
        return [rows_of(column.values[a:b]) for a, b in zip(column.offsets[:-1], column.offsets[1:], strict=True)]
    if isinstance(column, Strings):
        return column.to_numpy().tolist()
    return [bits(each) if column.dtype == np.float32 else each.tolist() for each in column]


def bits(values: Any) -> Any:
    """Floats as integers; NaN of any kind is one, since Python's floats do not keep its bits."""
    found = np.array(values, np.float32)
    return np.where(np.isnan(found), -1, found.view(np.uint32).astype(np.int64)).tolist()


def by_tensorflow(train: Any, payload: bytes) -> dict[str, list[Any]] | None:
    """Values by feature, as protobuf has them; None where it refuses the record."""
    try:
        parsed = train.Example.FromString(payload)
    except Exception:
        return None
    found = {}
    for name, feature in parsed.features.feature.items():
        if which := feature.WhichOneof("kind"):
            values = list(getattr(feature, which).value)
            found[name] = bits(values) if which == "float_list" else values
    return found


def drops_entries(train: Any, payload: bytes) -> bool:
    """Whether Python's protobuf leaves out entries of Features: those with a field that is neither key nor value."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    unknown = UnknownFieldSet(train.Example.FromString(payload).features)
    return any(field.field_number == 1 for field in unknown)


def expected(found: dict[str, list[Any]]) -> dict[str, Any]:
    """What the decoder gives of a record."""
    absent: dict[str, Any] = {"t": b"", "f": -1}
    row: dict[str, Any] = {}
    for each in SPEC.features:
        values = found.get(each.name, [])
        row[each.name] = values if each.is_ragged or each.shape else values[0] if values else absent[each.name]
    return row


def batch(dice: random.Random, guarded: Guarded, train: Any) -> tuple[int, int]:
    """Decodes some records; returns how many there were, and how many of them were intact."""
    payloads = [mutated(dice) for _ in range(dice.choice([1, 3, 20]))]
    theirs = [by_tensorflow(train, payload) for payload in payloads]
    buffer, places = guarded.put(payloads)
    decoder = Decoder(SPEC, {each.name for each in SPEC.features})
    decoder.start(len(payloads))
    bad = {problem.index for problem in decoder.add(buffer, places)}
    checker = FeatureChecker(SPEC, len(payloads))
    checker.visit(buffer, places, 0)
    refused = {record for record, _, _ in checker.problems}
    kept = [i for i in range(len(payloads)) if i not in bad]
    if bad:
        assert decoder.rows == 0
        assert decoder.add(buffer, np.ascontiguousarray(places[kept])) == []
    columns = decoder.finish()
    for name, column in put_together(SPEC, columns).items():
        array = to_arrow(column)
        array.validate(full=True)
        assert len(array.to_pylist()) == len(kept), name
    found = {name: rows_of(column) for name, column in columns.items()}
    for row, i in enumerate(kept):
        context = f"record {payloads[i].hex()}"
        assert theirs[i] is not None or not valid_text(payloads[i]), context
        if theirs[i] is not None:
            assert not drops_entries(train, payloads[i]), context
            for name, value in expected(theirs[i] or {}).items():
                assert found[name][row] == value, f"{name} of {context}: {found[name][row]} is {value}"
    for i, payload in enumerate(payloads):
        assert i in refused or i not in bad, f"the check accepts, but the decoder refuses {payload.hex()}"
        assert i in refused or theirs[i] is not None, f"the check accepts, but protobuf refuses {payload.hex()}"
        assert i in refused or not drops_entries(train, payload), f"the check accepts {payload.hex()}"
        decode_record(payload)
    scan_stream(Memory(frames(payloads[:3])), "memory", FeatureChecker(SPEC).visit)
    return len(payloads), len(kept)


def valid_text(payload: bytes) -> bool:
    """Whether all keys are UTF-8: where one is not, Python's protobuf refuses what `tf.io.parse_example` reads."""
    return not any(byte >= 0x80 for byte in payload.replace(b"\xff", b"")) and b"\xff" not in payload


def seeds() -> Iterator[int]:
    first = int(os.environ.get("TFR_TORTURE_SEED") or random.SystemRandom().getrandbits(32))
    while True:
        yield first
        first += 1


def main() -> None:
    """Runs as long as it shall; the last seed that was printed is that of a failure."""
    import tensorflow as tf

    until = time.monotonic() + float(os.environ.get("TFR_TORTURE_SECONDS") or SECONDS)
    guarded, records, intact = Guarded(), 0, 0
    for seed in seeds():
        print(f"TFR_TORTURE_SEED={seed}", flush=True)
        count, kept = batch(random.Random(seed), guarded, tf.train)
        records, intact = records + count, intact + kept
        if time.monotonic() > until:
            break
    print(f"{records} records, {intact} of them intact")


def test_mutated_records_neither_crash_nor_give_other_values_than_tensorflow() -> None:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    command = [sys.executable, "-m", "tests.records.test_fuzz_decode"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    last = "\n".join(done.stdout.splitlines()[-2:])
    assert done.returncode == 0, f"{last}\nexit code {done.returncode}\n{done.stderr[-3000:]}"
    print(last)
    assert "records," in last


if __name__ == "__main__":
    main()
