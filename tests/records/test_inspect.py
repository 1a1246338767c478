"""Any TFRecord file can be looked into, whoever wrote it and whatever it holds."""

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfr_assets.records.examples.inspect import inspect_file
from tfr_assets.records.examples.wire import decode_record
from tfr_assets.records.examples.writer import write_file
from tfr_assets.records.frames.scan import FaultKind
from tfr_assets.records.schema.derive import derive_spec

from .encoding import encoded
from .reference import examples, flipped, frames, message, write
from .streams import as_frames
from .tables import Table, single, tables


@examples(150)
@given(table=tables())
def test_decoding_gives_the_values_that_were_encoded(table: Table) -> None:
    payloads = encoded(derive_spec(table.batch.schema, {}), table.batch)
    for payload, row in zip(payloads, table.rows, strict=True):
        found = decode_record(payload)
        assert found is not None and set(found) == set(row)
        for name, (kind, values) in row.items():
            assert found[name][0] == kind
            if kind == "float32":
                pairs = zip(found[name][1], map(single, values), strict=True)
                assert all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in pairs)  # type: ignore[arg-type]
            else:
                assert found[name][1] == values


@examples(300)
@given(payload=st.binary(max_size=60))
def test_random_bytes_are_decoded_or_refused(payload: bytes) -> None:
    found = decode_record(payload)
    assert found is None or all(kind in ("bytes", "float32", "int64") for kind, _ in found.values())


def test_bytes_that_are_no_example_are_refused() -> None:
    for payload in (b"\xff", b"\x0a\x05abc", b"text of a log", b"\x80" * 12, message(0x0A, b"\x0a\x01")):
        assert decode_record(payload) is None
    assert decode_record(b"") == decode_record(b"\x0a\x00") == {}


def test_messages_of_another_kind_are_no_examples() -> None:
    feature = message(0x0A, message(0x0A, b"a"))
    entry = message(0x0A, b"t"), message(0x12, feature)
    assert decode_record(message(0x0A, message(0x0A, *entry))) == {"t": ("bytes", [b"a"])}
    for payload in (
        message(0x1A, b"x"),  # fields that neither tf.Example nor tf.SequenceExample has, on every level
        message(0x0A, message(0x0A, *entry)) + message(0x1A, b"x"),
        message(0x0A, message(0x12, *entry)),
        message(0x0A, message(0x0A, *entry, message(0x1A, b"x"))),
        message(0x0A, message(0x0A, entry[0], message(0x12, message(0x22, b"x"), feature))),
        message(0x0A, message(0x0A, entry[0], message(0x12, message(0x0A, message(0x12, b"a"))))),
        b"\x08\x05",  # numbers, where messages must be
        message(0x0A, b"\x08\x05"),
    ):
        assert decode_record(payload) is None, payload


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_a_file_is_described(compression: str, tmp_path: Path) -> None:
    numbers = message(0x0A, message(0x0A, b"n"), message(0x12, message(0x1A, message(0x0A, b"\x01\x02"))))
    texts = message(0x0A, message(0x0A, b"t"), message(0x12, message(0x0A, message(0x0A, b"a"))))
    payloads = [message(0x0A, numbers, texts), message(0x0A, texts), b"\xff" * 50, b""]
    write_file(tmp_path / "file", [as_frames(payloads)], compression)
    found = inspect_file(tmp_path / "file", first=3)
    assert (found.compression, found.records, found.bytes) == (compression, 4, (tmp_path / "file").stat().st_size)
    assert (found.payload_bytes, found.smallest, found.largest) == (sum(map(len, payloads)), 0, 50)
    assert (found.sampled, found.not_examples, found.fault_count) == (4, 1, 0)
    seen = {name: (dict(f.kinds), f.present, f.smallest, f.largest) for name, f in found.features.items()}
    assert seen == {"n": ({"int64": 1}, 1, 2, 2), "t": ({"bytes": 2}, 2, 1, 1)}
    assert found.first == [{"n": ("int64", [1, 2]), "t": ("bytes", [b"a"])}, {"t": ("bytes", [b"a"])}, b"\xff" * 50]


def test_a_damaged_file_is_described_with_its_faults(tmp_path: Path) -> None:
    found = inspect_file(write(tmp_path / "file", flipped(frames([b"", b"one", b""]), 8 * 28)))
    assert (found.records, found.fault_count) == (2, 1)
    assert [(fault.kind, fault.record) for fault in found.faults] == [(FaultKind.DATA_CRC, 1)]


def test_an_empty_file_is_described(tmp_path: Path) -> None:
    found = inspect_file(write(tmp_path / "file", b""))
    assert (found.records, found.smallest, found.largest, found.first, found.features) == (0, 0, 0, [], {})


def test_only_the_first_records_are_decoded(tmp_path: Path) -> None:
    write_file(tmp_path / "file", [as_frames([b""] * 5000)])
    found = inspect_file(tmp_path / "file", first=2)
    assert (found.records, found.sampled, len(found.first)) == (5000, 1000, 2)


def test_a_file_of_sequence_examples_is_described(tf: Any, tmp_path: Path) -> None:
    def ints(*values: int) -> Any:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    records = [
        tf.train.SequenceExample(
            context=tf.train.Features(feature={"n": ints(1)}),
            feature_lists=tf.train.FeatureLists(feature_list={"x": tf.train.FeatureList(feature=steps)}),
        ).SerializeToString()
        for steps in ([ints(1), ints(2, 3), ints()], [])
    ]
    write_file(tmp_path / "file", [as_frames(records)])
    found = inspect_file(tmp_path / "file")
    assert found.first == [
        {"n": ("int64", [1]), "x": ("steps of int64", [[1], [2, 3], []])},
        {"n": ("int64", [1]), "x": ("steps", [])},
    ]
    assert (found.not_examples, found.features["x"].smallest, found.features["x"].largest) == (0, 0, 3)
