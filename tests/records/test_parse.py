"""Records are checked against the feature spec as a protobuf parser would read them; nothing makes the check crash."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfr_assets.records.examples.writer import write_file
from tfr_assets.records.frames.examine import examine
from tfr_assets.records.frames.scan import FaultKind, scan_stream
from tfr_assets.records.kernels.validate import FeatureChecker
from tfr_assets.records.schema.derive import derive_spec
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.records.schema.features import FeatureSpec

from .encoding import encoded
from .reference import examples, frames, message, offsets, varint, write
from .streams import Memory, as_frames
from .tables import Row, Table, tables

SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("f", pa.float32()),
        ("t", pa.string()),
        ("maybe", pa.int8()),
        ("list", pa.list_(pa.int16())),
        ("pairs", pa.list_(pa.list_(pa.float32(), 2))),
        ("grid", pa.list_(pa.list_(pa.string(), 3), 2)),
    ]
)
SPEC = derive_spec(SCHEMA, {name: 0 for name in SCHEMA.names if name != "maybe"})
GOOD: Row = {
    "n": ("int64", [-1]),
    "f": ("float32", [0.5]),
    "t": ("bytes", [b""]),
    "maybe": ("int64", [3]),
    "list": ("int64", []),
    "pairs": ("float32", [1.0, 2.0, 3.0, 4.0]),
    "grid": ("bytes", [b"x"] * 6),
}
TAGS = {"bytes": 0x0A, "float32": 0x12, "int64": 0x1A}


def feature(kind: str, values: list[Any]) -> bytes:
    if kind == "bytes":
        content = b"".join(message(0x0A, value) for value in values)
    elif kind == "float32":
        content = message(0x0A, np.array(values, "<f4").tobytes())
    else:
        content = message(0x0A, *map(varint, values))
    return message(TAGS[kind], content)


def entry(name: str, kind: str, values: list[Any]) -> bytes:
    return message(0x0A, message(0x0A, name.encode()), message(0x12, feature(kind, values)))


def example(row: Row, *more: bytes) -> bytes:
    return message(0x0A, *(entry(name, *value) for name, value in row.items()), *more)


def check(payloads: list[bytes], spec: FeatureSpec = SPEC, max_problems: int = 100) -> FeatureChecker:
    checker = FeatureChecker(spec, max_problems)
    scan_stream(Memory(frames(payloads)), "memory", checker.visit)
    return checker


def problem(payload: bytes, spec: FeatureSpec = SPEC) -> str:
    """What is found wrong with a payload that stands between two good records."""
    payloads = [example(GOOD), payload, example(GOOD)]
    checker = check(payloads, spec)
    assert checker.count == 1
    record, offset, text = checker.problems[0]
    assert (record, offset) == (1, offsets(payloads)[1] + 12)
    return text


@examples(200)
@given(table=tables())
def test_all_that_the_encoder_writes_is_accepted(table: Table) -> None:
    nulls = {path: 0 for row in table.rows for path in row if all(path in other for other in table.rows)}
    spec = derive_spec(table.batch.schema, nulls)
    checker = check(encoded(spec, table.batch), spec)
    assert (checker.count, checker.problems) == (0, [])


def test_the_same_checks_run_over_a_file(tmp_path: Path) -> None:
    for compression in ("none", "gzip"):
        payloads = [example(GOOD), b"\xff", example({**GOOD, "n": ("bytes", [b"1"])}), example(GOOD)]
        write_file(tmp_path / "file", [as_frames(payloads)], compression)
        report = examine(tmp_path / "file", features=SPEC)
        assert (report.faults, report.records, report.feature_fault_count) == ((), 4, 2)
        assert [(f.kind, f.record, f.offset, f.detail) for f in report.feature_faults] == [
            (FaultKind.FEATURES, 1, offsets(payloads)[1] + 12, "is no tf.Example"),
            (FaultKind.FEATURES, 2, offsets(payloads)[2] + 12, "has feature 'n' of another kind than int64"),
        ]
        assert not report.ok
        assert examine(tmp_path / "file").ok


def test_damaged_records_are_not_checked_and_the_others_keep_their_numbers(tmp_path: Path) -> None:
    payloads = [example(GOOD), example(GOOD), b"\xff"]
    content = bytearray(frames(payloads))
    content[12] ^= 1
    report = examine(write(tmp_path / "file", bytes(content)), features=SPEC)
    assert [(fault.kind, fault.record) for fault in report.faults] == [(FaultKind.DATA_CRC, 0)]
    assert [fault.record for fault in report.feature_faults] == [2]


def test_entries_in_any_order_are_accepted(serialize: Callable[[Row], bytes], tf: Any) -> None:
    backwards = dict(reversed(GOOD.items()))
    assert check([example(GOOD), example(backwards), serialize(GOOD)]).count == 0
    assert tf.train.Example.FromString(example(backwards)) == tf.train.Example.FromString(serialize(GOOD))


def test_other_encodings_of_the_same_values_are_accepted(tf: Any, serialize: Callable[[Row], bytes]) -> None:
    """Unpacked numbers, long varints, features and lists in parts, unknown fields."""
    unpacked_int = message(0x1A, b"\x08" + varint(-1))
    unpacked_float = message(0x12, b"\x0d" + np.float32(0.5).tobytes())
    in_parts = message(0x12, message(0x0A, np.array([1, 2, 3], "<f4").tobytes()), b"\x0d" + np.float32(4).tobytes())
    long_varint = message(0x1A, message(0x0A, b"\x83\x80\x80\x00"))
    unknown = message(0x22, b"?") + b"\x28\x07" + b"\x31" + bytes(8) + b"\x3d" + bytes(4)
    values = {"n": unpacked_int, "f": unpacked_float, "pairs": in_parts, "maybe": long_varint}
    others = {name: feature(*GOOD[name]) for name in GOOD if name not in values}
    parts = [
        message(0x0A, message(0x12, value, unknown), message(0x0A, name.encode()))  # the key comes last
        for name, value in {**values, **others}.items()
    ]
    payload = message(0x0A, *parts[:3], unknown) + unknown + message(0x0A, *parts[3:])
    assert tf.train.Example.FromString(payload).SerializeToString(deterministic=True) != payload
    assert check([payload]).count == 0
    parsed = tf.train.Example.FromString(payload)
    for name, (kind, expected) in GOOD.items():
        found = getattr(parsed.features.feature[name], {"float32": "float_list"}.get(kind, f"{kind}_list")).value
        assert list(found) == expected


def test_bytes_that_are_no_example() -> None:
    good = example(GOOD)
    for payload in (
        b"\xff",
        b"\x0a",
        b"\x0a\x05abc",
        good[:-1],
        good + b"\x0a",
        b"\x0a\x02\x0a\x05",
        b"plain text",
        b"\x80" * 11,
    ):
        assert problem(payload) == "is no tf.Example"
    for inner in (b"\x0a\x05\x01", b"\x0a\x01\x80", b"\x0a\x0b" + b"\x80" * 10 + b"\x01", b"\x08", b"\x0b", b"\x0f"):
        broken = message(0x0A, message(0x0A, message(0x0A, b"n"), message(0x12, message(0x1A, inner))))
        assert problem(broken) == "is no tf.Example"
    for field in (b"\x00\x00", b"\x02\x00", b"\x80\x80\x80\x80\x10\x00"):  # number 0, and a number beyond 32 bits
        assert problem(good + field) == problem(field + good) == "is no tf.Example"
    odd_float = message(0x0A, message(0x0A, message(0x0A, b"f"), message(0x12, message(0x12, message(0x0A, b"123")))))
    assert problem(odd_float) == "is no tf.Example"


def test_a_feature_that_the_spec_does_not_know() -> None:
    assert problem(example({**GOOD, "new": ("int64", [1])})) == "has a feature that the spec does not know"
    assert problem(example({**GOOD, "": ("int64", [1])})) == "has a feature that the spec does not know"
    assert problem(example({**GOOD, "nn": ("int64", [1])})) == "has a feature that the spec does not know"


@pytest.mark.parametrize("name", list(GOOD))
@pytest.mark.parametrize("kind", list(TAGS))
def test_a_feature_of_another_kind(name: str, kind: str) -> None:
    right, values = GOOD[name]
    if kind != right:
        wrong = {"bytes": [b"1"] * len(values), "float32": [1.0] * len(values), "int64": [1] * len(values)}[kind]
        assert problem(example({**GOOD, name: (kind, wrong)})) == f"has feature {name!r} of another kind than {right}"
    else:
        assert check([example(GOOD)]).count == 0


@pytest.mark.parametrize(
    ("name", "count", "shape"),
    [
        ("n", 0, "[]"), ("n", 2, "[]"), ("maybe", 0, "[]"), ("t", 3, "[]"), ("f", 0, "[]"),
        ("pairs", 1, "[None, 2]"), ("pairs", 3, "[None, 2]"),
        ("grid", 0, "[2, 3]"), ("grid", 5, "[2, 3]"), ("grid", 7, "[2, 3]"),
    ],
)  # fmt: skip
def test_a_number_of_values_that_does_not_fit_the_shape(name: str, count: int, shape: str) -> None:
    kind = GOOD[name][0]
    values = [{"bytes": b"1", "float32": 1.0, "int64": -1}[kind]] * count
    expected = f"has feature {name!r} with a number of values that does not fit its shape {shape}"
    assert problem(example({**GOOD, name: (kind, values)})) == expected


@pytest.mark.parametrize("count", [0, 1, 2, 127, 128, 5000])
def test_lists_of_varying_length_may_have_any_that_their_inner_shape_allows(count: int) -> None:
    row: Row = {**GOOD, "list": ("int64", [-1, 5] * count), "pairs": ("float32", [0.0] * 2 * count)}
    assert check([example(row)]).count == 0


@pytest.mark.parametrize("name", list(GOOD))
def test_a_required_feature_that_is_not_there(name: str) -> None:
    without: Row = {other: value for other, value in GOOD.items() if other != name}
    unset = example(without, message(0x0A, message(0x0A, name.encode()), message(0x12)))  # a Feature of no kind
    bare = example(without, message(0x0A, message(0x0A, name.encode())))
    for payload in (example(without), unset, bare):
        if name == "maybe":
            assert check([payload]).count == 0
        else:
            assert problem(payload) == f"lacks feature {name!r}"


def test_an_empty_record_lacks_the_first_required_feature() -> None:
    assert problem(b"") == problem(b"\x0a\x00") == "lacks feature 'f'"


def test_a_feature_that_is_there_twice() -> None:
    assert problem(example(GOOD, entry("n", "int64", [1]))) == "has feature 'n' twice"
    assert problem(example(GOOD, entry("maybe", "int64", [1]))) == "has feature 'maybe' twice"


def test_what_one_record_has_does_not_count_for_the_next() -> None:
    short: Row = {name: value for name, value in GOOD.items() if name != "n"}
    checker = check([example(GOOD), example(short), example(GOOD), example(short), example(GOOD)])
    assert [record for record, _, _ in checker.problems] == [1, 3]


def test_the_first_problems_are_kept_and_all_are_counted() -> None:
    payloads = [example(GOOD) if n % 3 else b"\xff" for n in range(1000)]
    checker = check(payloads, max_problems=7)
    assert checker.count == 334
    assert [record for record, _, _ in checker.problems] == [0, 3, 6, 9, 12, 15, 18]
    everywhere = check([b"\xff" * 100] * 30_000)  # many calls of the scan
    assert everywhere.count == 30_000 and len(everywhere.problems) == 100
    assert [record for record, _, _ in everywhere.problems] == list(range(100))


def test_names_are_compared_whole() -> None:
    spec = derive_spec(pa.schema([("a", pa.int8()), ("aé", pa.int8()), ("a" * 300, pa.int8())]), {})
    for name in ("a", "aé", "a" * 300):
        assert check([example({name: ("int64", [1])})], spec).count == 0
    for name in ("aa", "a\u0301", "a" * 299, "a" * 301, "A"):
        assert check([example({name: ("int64", [1])})], spec).count == 1


def test_a_tensor_without_elements_has_no_values() -> None:
    spec = derive_spec(pa.schema([("x", pa.fixed_shape_tensor(pa.int8(), [2, 0]))]), {})
    assert check([example({"x": ("int64", [])})], spec).count == 0
    assert check([example({"x": ("int64", [1])})], spec).count == 1


def test_renamed_features_are_checked_under_their_new_names() -> None:
    spec = derive_spec(pa.schema([("a", pa.int8()), ("b", pa.int8())]), {"a": 0}, FeatureOptions(rename={"a": "z"}))
    assert check([example({"z": ("int64", [1])})], spec).count == 0
    assert check([example({"a": ("int64", [1])})], spec).problems[0][2] == "has a feature that the spec does not know"


@examples(400)
@given(payload=st.binary(max_size=60))
def test_random_bytes_are_reported(payload: bytes) -> None:
    checker = check([payload])
    assert checker.count == 1 and len(checker.problems) == 1  # at the least, required features are missing


@examples(1500)
@given(data=st.data())
def test_what_protobuf_refuses_is_reported(data: st.DataObject, tf: Any) -> None:
    """Good records with bytes changed, put in and cut out."""
    payload = bytearray(example(GOOD))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(payload)))
        payload[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=2))
    found = check([bytes(payload)]).count
    try:
        parsed = tf.train.Example.FromString(bytes(payload))
    except Exception:
        assert found == 1, bytes(payload)
        return
    if found == 0:  # then what is there is what the spec promises
        for each in SPEC.features:
            if each.name in parsed.features.feature:
                assert parsed.features.feature[each.name].WhichOneof("kind") in (
                    None, {"float32": "float_list"}.get(each.kind.value, f"{each.kind.value}_list"),
                )  # fmt: skip
        assert set(parsed.features.feature) <= {each.name for each in SPEC.features}
