"""What is decoded is what was written, of any valid protobuf; anything else is a problem, never a wrong value."""

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfr_assets.errors import ConfigError
from tfr_assets.records.arrow.arrays import Ragged, Strings
from tfr_assets.records.examples.decoder import Decoder
from tfr_assets.records.frames.scan import scan_stream
from tfr_assets.records.kernels.validate import FeatureChecker
from tfr_assets.records.schema.derive import derive_spec
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.records.schema.features import Feature, FeatureSpec, Kind

from .decoding import decode_payloads, flat_rows
from .encoding import encoded
from .reference import examples, frames, message, varint
from .streams import Memory
from .tables import Row, Table, single, tables

TAGS = {"bytes": 0x0A, "float32": 0x12, "int64": 0x1A}


def spec_of(table: Table, **options: Any) -> FeatureSpec:
    nulls = {path: 0 for row in table.rows for path in row if all(path in other for other in table.rows)}
    return derive_spec(table.batch.schema, nulls, FeatureOptions(**options))


def expected(feature: Feature, row: Row) -> list[Any]:
    """The flat values of a row's feature, by the table of `reading.tensors.spec`."""
    if feature.name in row:
        kind, values = row[feature.name]
        return [single(value) for value in values] if kind == "float32" else list(values)
    if feature.is_ragged:
        return []
    absent = {Kind.FLOAT32: float("nan"), Kind.BYTES: b""}
    fill = feature.fill.encode() if isinstance(feature.fill, str) else feature.fill
    return [absent[feature.kind] if fill is None else fill] * feature.size


def check(spec: FeatureSpec, payloads: list[bytes], rows: list[Row], room: int | None = None) -> None:
    columns, problems = decode_payloads(spec, payloads, room=room)
    assert problems == []
    assert list(columns) == [feature.name for feature in spec.features]
    for feature in spec.features:
        column = columns[feature.name]
        assert len(column) == len(rows)
        np.testing.assert_equal(flat_rows(column), [expected(feature, row) for row in rows], feature.name)
        values = column.values if isinstance(column, Ragged) else column
        if not isinstance(values, Strings):
            assert isinstance(values, np.ndarray)
            assert values.dtype == np.dtype(feature.number_type)


@examples(150)
@given(table=tables())
def test_what_the_encoder_writes_comes_back(table: Table) -> None:
    spec = spec_of(table)
    check(spec, encoded(spec, table.batch), table.rows)


@pytest.mark.parametrize("key_size", [1, 7, 8, 24, 25, 56, 57, 88, 89, 120, 121, 122, 127, 128, 300])
def test_keys_and_lists_of_any_size(tf: Any, key_size: int) -> None:
    key = "k" * key_size
    edge = 127 - 6 - key_size  # bytes of a list from which on an entry's size takes two
    sizes = [n for n in {0, 1, 2, 3, 30, edge - 3, edge - 2, edge - 1, edge, 125, 126, 127, 128, 129, 400} if n >= 0]
    rows: list[Row] = [{"a": ("int64", [n]), key: ("bytes", [bytes(range(n % 256)) * (n > 0)])} for n in sizes]
    train = tf.train
    payloads = [
        train.Example(
            features=train.Features(
                feature={
                    "a": train.Feature(int64_list=train.Int64List(value=row["a"][1])),
                    key: train.Feature(bytes_list=train.BytesList(value=row[key][1])),
                }
            )
        ).SerializeToString(deterministic=True)
        for row in rows
    ]
    check(FeatureSpec((Feature("a", Kind.INT64, (), "a", "int64", False), bytes_feature(key))), payloads, rows)


def bytes_feature(name: str) -> Feature:
    return Feature(name, Kind.BYTES, (), name, "binary", False)


@examples(20)
@given(data=st.data())
def test_records_of_any_make_may_follow_each_other(data: st.DataObject) -> None:
    count = data.draw(st.sampled_from([1, 5, 255, 256, 257, 600]))
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    spec = FeatureSpec((FEATURES[0], FEATURES[1], bytes_feature("n"), bytes_feature("o")))
    rows, payloads = [], []
    for number in range(count):
        lists = {
            "a": (0x1A, message(0x0A, varint(number))),
            "b": (0x12, message(0x0A, np.float32(number).tobytes())),
            "n": (0x0A, message(0x0A, b"n" * (number % 50))),
            "o": (0x0A, message(0x0A, str(number).encode())),
        }
        row: Row = {
            "a": ("int64", [number]), "b": ("float32", [number]), "n": ("bytes", [b"n" * (number % 50)]),
            "o": ("bytes", [str(number).encode()]),
        }  # fmt: skip
        order = list(lists)
        match generator.choice(4, p=[0.7, 0.1, 0.1, 0.1]):
            case 1:
                order.reverse()
            case 2:
                order.remove(absent := str(generator.choice(["a", "b"])))
                del row[absent]
            case 3:
                order.insert(int(generator.integers(0, 4)), str(generator.choice(order)))
        entries = [message(0x0A, message(0x0A, k.encode()) + message(0x12, message(*lists[k]))) for k in order]
        rows.append(row)
        payloads.append(message(0x0A, b"".join(entries)))
    check(spec, payloads, rows)


@examples(30)
@given(table=tables(), data=st.data())
def test_some_columns_are_as_all_are(table: Table, data: st.DataObject) -> None:
    spec = spec_of(table)
    names = data.draw(st.sets(st.sampled_from([f.name for f in spec.features]))) if spec.features else set()
    payloads = encoded(spec, table.batch)
    every, some = decode_payloads(spec, payloads)[0], decode_payloads(spec, payloads, names)[0]
    assert set(some) == names
    for name, column in some.items():
        np.testing.assert_equal(flat_rows(column), flat_rows(every[name]))


FEATURES = [
    Feature("a", Kind.INT64, (), "a", "int64", True),
    Feature("b", Kind.FLOAT32, (), "b", "float", True),
    Feature("c", Kind.BYTES, (), "c", "string", True, fill="né"),
    Feature("d", Kind.INT64, (None,), "d", "list<item: int64>", True),
    Feature("e", Kind.FLOAT32, (None,), "e", "list<item: float>", True),
    Feature("f", Kind.BYTES, (None,), "f", "list<item: binary>", True),
    Feature("g", Kind.INT64, (2,), "g", "fixed_size_list<item: int8>[2]", True, fill=-1),
    Feature("a key of more than eight bytes", Kind.BYTES, (3,), "h", "fixed_size_list<item: binary>[3]", True),
]
SPEC = FeatureSpec(tuple(sorted(FEATURES, key=lambda feature: feature.name.encode())))


def long_varint(value: int, extra: int) -> bytes:
    """A varint with bytes that it does not need."""
    out = bytearray(varint(value))
    for _ in range(min(extra, 10 - len(out))):
        out[-1] |= 128
        out.append(0)
    return bytes(out)


@st.composite
def odd_fields(draw: st.DrawFn, tag: int, content: bytes) -> bytes:
    """A length-delimited field, its tag and size perhaps longer than they need be."""
    extra = draw(st.sampled_from([0, 0, 0, 1, 2]))
    return long_varint(tag, extra if tag < 128 else 0) + long_varint(len(content), extra) + content


_unknown = st.sampled_from([b"", b"", b"", message(0x7A, b"xyz"), b"\x50\x01", b"\x51" + bytes(8), b"\x55" + bytes(4)])


@st.composite
def odd_lists(draw: st.DrawFn, kind: Kind, values: list[Any]) -> bytes:
    """A BytesList, FloatList or Int64List: packed, one by one, or in several parts."""
    out = draw(_unknown)
    while values:
        count = draw(st.integers(1, len(values)))
        some, values = values[:count], values[count:]
        if kind is Kind.BYTES:
            out += b"".join(draw(odd_fields(0x0A, value)) for value in some)
        elif draw(st.booleans()):
            one = [
                np.float32(v).tobytes() if kind is Kind.FLOAT32 else long_varint(v, draw(st.integers(0, 2)))
                for v in some
            ]
            out += draw(odd_fields(0x0A, b"".join(one)))
        elif kind is Kind.FLOAT32:
            out += b"".join(b"\x0d" + np.float32(v).tobytes() for v in some)
        else:
            out += b"".join(long_varint(0x08, draw(st.integers(0, 1))) + varint(v) for v in some)
        out += draw(_unknown)
    return out


@st.composite
def odd_entries(draw: st.DrawFn, feature: Feature) -> bytes:
    """An entry of the map, which may lie in any order and in parts."""
    count = feature.size if None not in feature.shape else draw(st.integers(0, 20))
    numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 300)
    value = {Kind.INT64: numbers, Kind.FLOAT32: st.floats(width=32), Kind.BYTES: st.binary(max_size=150)}[feature.kind]
    if feature.name == "g":
        value = st.integers(0, 127)
    values = draw(st.lists(value, min_size=count, max_size=count))
    cut = draw(st.sampled_from([None, None, count // 2]))
    pieces = [values] if cut is None else [values[:cut], values[cut:]]
    lists = [draw(odd_fields(TAGS[feature.kind.value], draw(odd_lists(feature.kind, piece)))) for piece in pieces]
    key = draw(odd_fields(0x0A, feature.name.encode()))
    if draw(st.booleans()):
        features = [draw(odd_fields(0x12, b"".join(lists) + draw(_unknown)))]
    else:
        features = [draw(odd_fields(0x12, one)) for one in lists]
    empty = draw(st.integers(0, 9)) == 0
    parts = [key, *([message(0x12)] if empty else features)]  # with an unknown field, Python's protobuf drops all of it
    return b"".join(draw(st.permutations(parts)) if draw(st.booleans()) else parts)


@st.composite
def odd_examples(draw: st.DrawFn) -> bytes:
    """A tf.Example with entries in any order, some twice, some unknown, its Features perhaps in two parts."""
    chosen = draw(st.lists(st.sampled_from(FEATURES), max_size=10))
    entries = [draw(odd_fields(0x0A, draw(odd_entries(feature)))) for feature in chosen]
    entries.insert(draw(st.integers(0, len(entries))), message(0x0A, message(0x0A, b"other"), message(0x12, b"")))
    cut = draw(st.integers(0, len(entries)))
    parts = [draw(odd_fields(0x0A, b"".join(some) + draw(_unknown))) for some in (entries[:cut], entries[cut:])]
    return b"".join([draw(_unknown), *parts])


@examples(150)
@given(payloads=st.lists(odd_examples(), min_size=1, max_size=4))
def test_any_valid_protobuf_is_decoded_as_tensorflow_does(tf: Any, payloads: list[bytes]) -> None:
    rows: list[Row] = []
    for payload in payloads:
        row: Row = {}
        for name, feature in tf.train.Example.FromString(payload).features.feature.items():
            if (which := feature.WhichOneof("kind")) is not None:
                kind = {"bytes_list": "bytes", "float_list": "float32", "int64_list": "int64"}[which]
                row[name] = (kind, list(getattr(feature, which).value))
        rows.append(row)
    check(SPEC, payloads, rows)


def feature(kind: str, *values: bytes) -> bytes:
    return message(0x12, message(TAGS[kind], *values))


def example(*entries: tuple[str, bytes]) -> bytes:
    return message(0x0A, *(message(0x0A, message(0x0A, name.encode()), value) for name, value in entries))


REQUIRED = FeatureSpec(
    (
        Feature("n", Kind.INT64, (), "n", "int64", False),
        Feature("p", Kind.FLOAT32, (None, 2), "p", "list<item: float>", True),
    )
)
GOOD = example(("n", feature("int64", message(0x0A, b"\x05"))))


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (b"\xff", "is no tf.Example"),
        (b"\x0a\x05ab", "is no tf.Example"),
        (b"", "lacks feature 'n'"),
        (example(("n", message(0x12))), "lacks feature 'n'"),
        (example(("n", feature("float32", message(0x0A, bytes(4))))), "has feature 'n' of another kind than int64"),
        (example(("n", feature("int64", message(0x0A, b"\x05\x06")))), "values that does not fit its shape []"),
        (example(("n", feature("int64"))), "number of values that does not fit its shape []"),
        (example(("n", feature("int64", message(0x0A, b"\x85")))), "is no tf.Example"),
        (example(("n", feature("int64", message(0x0A, b"\xff" * 10 + b"\x01")))), "is no tf.Example"),
        (GOOD + example(("p", feature("float32", message(0x0A, bytes(12))))), "does not fit its shape [None, 2]"),
        (GOOD + example(("p", feature("float32", message(0x0A, bytes(7))))), "is no tf.Example"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_a_problem_and_nothing_is_added(payload: bytes, text: str) -> None:
    columns, problems = decode_payloads(REQUIRED, [GOOD, payload, GOOD])
    ((index, found),) = [(problem.index, problem.text) for problem in problems]
    assert (index, len(columns["n"])) == (1, 0)
    assert text in found


@pytest.mark.parametrize("field", [message(0x7A, b"xyz"), b"\x50\x01", b"\x08\x01", b"\x51" + bytes(8)])
def test_an_entry_with_a_field_beside_key_and_value_is_refused_as_tensorflow_does(tf: Any, field: bytes) -> None:
    key, value = message(0x0A, b"n"), feature("int64", message(0x0A, b"\x05"))
    for payload in (message(0x0A, message(0x0A, *parts)) for parts in permutations([key, value, field])):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.io.parse_example([payload], {"n": tf.io.FixedLenFeature([], tf.int64)})
        (problem,) = decode_payloads(REQUIRED, [payload])[1]
        assert "is no tf.Example" in problem.text
        checker = FeatureChecker(REQUIRED)
        scan_stream(Memory(frames([payload])), "memory", checker.visit)
        assert checker.problems


def test_every_bad_record_is_named_once() -> None:
    _, problems = decode_payloads(REQUIRED, [b"\xff", GOOD, b"", b"\xff"] * 300)
    assert [problem.index for problem in problems] == [i for i in range(1200) if i % 4 != 1]


def test_no_cut_or_flipped_payload_is_a_crash(serialize: Callable[[Row], bytes]) -> None:
    whole = example(*((f.name, feature(f.kind.value, message(0x0A, bytes(8)))) for f in FEATURES))
    cases = [whole[:size] for size in range(len(whole))]
    cases += [
        whole[:i] + bytes([whole[i] ^ bit]) + whole[i + 1 :] for i in range(len(whole)) for bit in (1, 0x80, 0xFF)
    ]
    for case in cases:
        columns, problems = decode_payloads(SPEC, [case])
        assert all(len(column) == 1 - len(problems) for column in columns.values())


def test_columns_grow_as_rows_come() -> None:
    table = pa.record_batch(
        {"l": pa.array([[k] * k for k in range(700)]), "t": pa.array(["x" * k for k in range(700)])}
    )
    spec = derive_spec(table.schema, {"l": 0, "t": 0})
    columns, problems = decode_payloads(spec, encoded(spec, table))
    assert problems == []
    assert flat_rows(columns["l"]) == table["l"].to_pylist()
    assert flat_rows(columns["t"]) == [[text.encode()] for text in table["t"].to_pylist()]


def test_columns_that_were_given_are_not_written_to() -> None:
    table = pa.record_batch({"n": pa.array(range(10)), "t": pa.array(map(str, range(10)))})
    spec = derive_spec(table.schema, {"n": 0, "t": 0})
    decoder = Decoder(spec, ["n", "t"])
    content = [np.frombuffer(b"".join(encoded(spec, table)) + bytes(64), np.uint8)]
    bounds = np.cumsum([0, *map(len, encoded(spec, table))])
    frames = np.stack([bounds[:-1], np.diff(bounds), np.arange(10)], 1)
    given_columns = []
    for some in (frames[:5], frames[5:]):
        decoder.start(5)
        assert decoder.add(content[0], np.ascontiguousarray(some)) == []
        given_columns.append(decoder.finish())
    assert [columns["n"].tolist() for columns in given_columns] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]  # type: ignore[union-attr]
    assert given_columns[0]["t"].to_numpy().tolist() == [b"0", b"1", b"2", b"3", b"4"]  # type: ignore[union-attr]


def test_a_shape_without_values_is_refused() -> None:
    spec = FeatureSpec((Feature("x", Kind.BYTES, (0,), "x", "fixed_size_list<item: string>[0]", False),))
    with pytest.raises(ConfigError, match=r"'x' has no values by its shape \[0\].*use reader='vectorized'"):
        Decoder(spec, ["x"])
    assert Decoder(spec, []).finish() == {}
