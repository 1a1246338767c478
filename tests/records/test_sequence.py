"""Records with feature lists are byte for byte TensorFlow's tf.SequenceExamples, and are checked and decoded so."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfr_assets.errors import SchemaError
from tfr_assets.records.examples.encoder import ExampleEncoder
from tfr_assets.records.examples.wire import decode_record
from tfr_assets.records.frames.scan import scan_stream
from tfr_assets.records.kernels.validate import FeatureChecker
from tfr_assets.records.schema.derive import derive_spec
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.records.schema.features import FeatureSpec

from .encoding import encode, encoded
from .reference import examples, frames, message, varint
from .streams import Memory
from .tables import LEAVES, Row, Sort, Values, fixed, ragged, single, tables, viewed

Lists = dict[str, tuple[str, list[Values]]]  # by feature list: kind, and the values of each step
_BY_NAME = {sort.name: sort for sort in LEAVES}


@dataclass(frozen=True)
class Steps:
    """A sort of list column as feature lists: for each row, the values of each step."""

    sort: Sort
    of: Sort

    def steps(self, value: Sequence[Any]) -> list[Values]:
        return [self.of.feature(item) for item in value]


def _steps() -> list[Steps]:
    found = [Steps(ragged(leaf), leaf) for leaf in LEAVES]
    for name in ("bool", "int64", "uint8", "float32", "float64", "string", "binary(7)", "dictionary of string"):
        leaf = _BY_NAME[name]
        for inner in (ragged(leaf), ragged(leaf, large=True), viewed(leaf), fixed(leaf, 3), fixed(fixed(leaf, 2), 2)):
            found += [Steps(outer(inner), inner) for outer in (ragged, viewed)]
        found += [Steps(ragged(ragged(fixed(leaf, 2))), ragged(fixed(leaf, 2))), Steps(viewed(leaf, large=True), leaf)]
        found += [Steps(fixed(leaf, 3), leaf), Steps(fixed(ragged(leaf), 2), ragged(leaf))]
    return found


STEPS = _steps()


@pytest.fixture(scope="session")
def serialize_sequence(tf: Any) -> Callable[[Row, Lists], bytes]:
    """Serializes a context and feature lists as TensorFlow does."""
    kinds = {
        "int64": lambda values: tf.train.Feature(int64_list=tf.train.Int64List(value=values)),
        "float32": lambda values: tf.train.Feature(float_list=tf.train.FloatList(value=values)),
        "bytes": lambda values: tf.train.Feature(bytes_list=tf.train.BytesList(value=values)),
    }

    def serialize(context: Row, lists: Lists) -> bytes:
        features = {name: kinds[kind](values) for name, (kind, values) in context.items()}
        steps = {
            name: tf.train.FeatureList(feature=[kinds[kind](values) for values in steps])
            for name, (kind, steps) in lists.items()
        }
        record = tf.train.SequenceExample(
            context=tf.train.Features(feature=features), feature_lists=tf.train.FeatureLists(feature_list=steps)
        )
        return record.SerializeToString(deterministic=True)

    return serialize


@dataclass(frozen=True)
class Sequences:
    """Rows as Arrow has them, and as tf.SequenceExamples have them."""

    batch: pa.RecordBatch
    names: tuple[str, ...]  # of the columns that are feature lists
    contexts: list[Row]
    lists: list[Lists]


@st.composite
def sequences(draw: st.DrawFn, columns: dict[str, Steps] | None = None) -> Sequences:
    """Draws a context of any columns, and feature lists of any or of the given ones; a slice of a larger table."""
    names = st.text("abé", min_size=1, max_size=3).map("list ".__add__)
    chosen = columns or draw(st.dictionaries(names, st.sampled_from(STEPS), min_size=1, max_size=3))
    context = draw(tables({"context": _BY_NAME["int8"]} if columns else None, max_rows=6))
    rows = context.batch.num_rows
    lists: list[Lists] = [{} for _ in range(rows)]
    batch = context.batch
    for name, steps in chosen.items():
        before, behind = draw(st.integers(0, 2)), draw(st.integers(0, 2))
        has = [draw(st.integers(0, 3)) > 0 for _ in range(before + rows + behind)]
        values = [draw(steps.sort.value) if there else None for there in has]
        for row, value in zip(lists, values[before : before + rows], strict=True):
            if value is not None:
                row[name] = (steps.sort.kind, steps.steps(value))
        column = steps.sort.build(values).slice(before, rows)
        batch = batch.append_column(name, column)
    return Sequences(batch, tuple(chosen), context.rows, lists)


def spec_of(batch: pa.RecordBatch, *names: str) -> FeatureSpec:
    return derive_spec(batch.schema, {}, FeatureOptions(sequence=names))


@pytest.mark.parametrize("steps", STEPS, ids=lambda steps: steps.sort.name)
@examples(6)
@given(data=st.data())
def test_a_feature_list_of_each_type_equals_tensorflow(
    steps: Steps, data: st.DataObject, serialize_sequence: Callable[[Row, Lists], bytes]
) -> None:
    drawn = data.draw(sequences({"x": steps}))
    feature = spec_of(drawn.batch, "x").features[1]
    assert (feature.kind.value, feature.sequence, feature.shape) == (steps.sort.kind, True, (None, *steps.of.shape))
    expected = [serialize_sequence(*row) for row in zip(drawn.contexts, drawn.lists, strict=True)]
    assert encode(drawn.batch, sequence=("x",)) == expected


@examples(200)
@given(drawn=sequences())
def test_any_records_equal_tensorflow_and_are_accepted_and_decoded(
    drawn: Sequences, serialize_sequence: Callable[[Row, Lists], bytes]
) -> None:
    spec = spec_of(drawn.batch, *drawn.names)
    payloads = encoded(spec, drawn.batch)
    rows = list(zip(drawn.contexts, drawn.lists, strict=True))
    assert payloads == [serialize_sequence(*row) for row in rows]
    assert check(payloads, spec) == []
    for payload, (context, lists) in zip(payloads, rows, strict=True):
        found = decode_record(payload)
        assert found is not None and set(found) == {*context, *lists}
        for name, (kind, steps) in lists.items():
            assert found[name][0] == (f"steps of {kind}" if steps else "steps")
            assert len(found[name][1]) == len(steps)
            for values, expected in zip(found[name][1], steps, strict=True):
                expected = list(map(single, expected)) if kind == "float32" else expected
                assert all(a == b or (a != a and b != b) for a, b in zip(values, expected, strict=True))


def test_a_list_of_structs_becomes_a_feature_list_a_field(serialize_sequence: Callable[[Row, Lists], bytes]) -> None:
    data_type = pa.list_(pa.struct([("at", pa.int32()), ("words", pa.list_(pa.string()))]))
    rows = [[{"at": 1, "words": ["a", "b"]}, {"at": -1, "words": []}], [], None]
    batch = pa.record_batch({"steps": pa.array(rows, data_type), "id": [7, 8, 9]})
    expected = [
        serialize_sequence(
            {"id": ("int64", [7])},
            {"steps/at": ("int64", [[1], [-1]]), "steps/words": ("bytes", [[b"a", b"b"], []])},
        ),
        serialize_sequence({"id": ("int64", [8])}, {"steps/at": ("int64", []), "steps/words": ("bytes", [])}),
        serialize_sequence({"id": ("int64", [9])}, {}),
    ]
    assert encode(batch, sequence=("steps",)) == expected
    assert encode(batch, sequence=("steps/at", "steps/words")) == expected


def test_casts_and_new_names_reach_feature_lists(serialize_sequence: Callable[[Row, Lists], bytes]) -> None:
    batch = pa.record_batch({"x": [["1", "2"], []]})
    found = encode(batch, sequence=("x",), cast={"x": "int64"}, rename={"x": "y"})
    assert found == [serialize_sequence({}, {"y": ("int64", steps)}) for steps in ([[1], [2]], [])]


@pytest.mark.parametrize("edge", [2**7, 2**14, 2**21])
def test_sizes_of_every_width_equal_tensorflow(edge: int, serialize_sequence: Callable[[Row, Lists], bytes]) -> None:
    values = [[b"\xab" * max(0, edge + d), b""] for d in range(-12, 3, 1 if edge < 2**21 else 7)]
    batch = pa.record_batch({"x": pa.array(values, pa.list_(pa.large_binary())), "n": list(range(len(values)))})
    expected = [
        serialize_sequence({"n": ("int64", [n])}, {"x": ("bytes", [[v] for v in row])}) for n, row in enumerate(values)
    ]
    assert encode(batch, sequence=("x",)) == expected


def test_many_rows_and_steps(serialize_sequence: Callable[[Row, Lists], bytes]) -> None:
    rows = [[[n] * (step % 3) for step in range(n % 7)] for n in range(6_000)]
    batch = pa.record_batch({"x": rows, "n": range(len(rows))})
    expected = [serialize_sequence({"n": ("int64", [n])}, {"x": ("int64", row)}) for n, row in enumerate(rows)]
    assert encode(batch, sequence=("x",)) == expected
    assert encode(*(batch.slice(start, 701) for start in range(0, 6_000, 701)), sequence=("x",)) == expected


@pytest.mark.parametrize("row", [[1, None], [[1], None], [[1, None]]], ids=str)
def test_a_null_step_or_value_is_refused(row: list) -> None:
    batch = pa.record_batch({"x": [None, row]})
    with pytest.raises(SchemaError, match=r"column 'x' holds a null inside a list, at or after row 5"):
        list(ExampleEncoder(spec_of(batch, "x")).encode(batch, 5))


def test_a_null_where_the_inventory_counted_none() -> None:
    batch = pa.record_batch({"x": [[1], None]})
    with pytest.raises(SchemaError, match=r"column 'x' has a null in row 1.*materialize raw again"):
        encode(batch, nulls={"x": 0}, sequence=("x",))


def test_uint64_beyond_int64_is_refused() -> None:
    batch = pa.record_batch({"x": pa.array([[1], [2**63]], pa.list_(pa.uint64()))})
    with pytest.raises(SchemaError, match=f"'x' of type uint64 holds {2**63}"):
        encode(batch, sequence=("x",))


# What a record may hold, by the spec

SPEC = derive_spec(
    pa.schema(
        [
            ("n", pa.int64()), ("one", pa.list_(pa.int32())), ("pairs", pa.list_(pa.list_(pa.float32(), 2))),
            ("maybe", pa.list_(pa.list_(pa.string()))),
        ]
    ),
    {"n": 0, "one": 0, "pairs": 0},
    FeatureOptions(sequence=("one", "pairs", "maybe")),
)  # fmt: skip
CONTEXT = message(0x0A, message(0x0A, message(0x0A, b"n"), message(0x12, message(0x1A, message(0x0A, b"\x07")))))


def ints(*values: int) -> bytes:
    return message(0x1A, message(0x0A, *map(varint, values)))


def floats(count: int) -> bytes:
    return message(0x12, message(0x0A, np.zeros(count, "<f4").tobytes()))


def entry(name: str, *steps: bytes) -> bytes:
    return message(0x0A, message(0x0A, name.encode()), message(0x12, *(message(0x0A, step) for step in steps)))


ONE, PAIRS = entry("one", ints(1), ints(2)), entry("pairs", floats(2))
MAYBE = entry("maybe", message(0x0A), message(0x0A, message(0x0A, b"a")))


def check(payloads: list[bytes], spec: FeatureSpec = SPEC) -> list[tuple[int, str]]:
    checker = FeatureChecker(spec)
    scan_stream(Memory(frames(payloads)), "memory", checker.visit)
    assert checker.count == len(checker.problems)
    return [(record, problem) for record, _, problem in checker.problems]


@pytest.mark.parametrize(
    "lists",
    [
        (ONE, PAIRS, MAYBE), (MAYBE, ONE, PAIRS), (PAIRS, ONE), (entry("one"), entry("pairs")),
        (message(0x0A, message(0x0A, b"one")), PAIRS),  # an entry without a value is an empty list
        (entry("one", b"\x1a\x02\x08\x01"), PAIRS),  # not packed
    ],
)  # fmt: skip
def test_what_a_spec_promises_is_accepted(lists: tuple[bytes, ...], tf: Any) -> None:
    payload = CONTEXT + message(0x12, *lists)
    tf.train.SequenceExample.FromString(payload)
    assert check([payload, message(0x12, *lists) + CONTEXT, CONTEXT + b"".join(message(0x12, e) for e in lists)]) == []


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        (CONTEXT + message(0x12, ONE), "lacks feature 'pairs'"),
        (CONTEXT, "lacks feature 'one'"),
        (message(0x12, ONE, PAIRS), "lacks feature 'n'"),
        (CONTEXT + message(0x12, ONE, ONE, PAIRS), "has feature 'one' twice"),
        (CONTEXT + message(0x12, ONE, PAIRS, entry("new")), "has a feature that the spec does not know"),
        (CONTEXT + message(0x12, ONE, PAIRS, entry("n")), "has a feature that the spec does not know"),
        (CONTEXT + message(0x0A, ONE) + message(0x12, PAIRS), "has a feature that the spec does not know"),
        (
            CONTEXT + message(0x12, entry("one", ints(1), ints(1, 2)), PAIRS),
            "has feature 'one' with a number of values that does not fit its shape []",
        ),
        (
            CONTEXT + message(0x12, ONE, entry("pairs", floats(2), floats(0))),
            "has feature 'pairs' with a number of values that does not fit its shape [2]",
        ),
        (CONTEXT + message(0x12, entry("one", floats(1)), PAIRS), "has feature 'one' of another kind than int64"),
        (
            CONTEXT + message(0x12, ONE, PAIRS, entry("maybe", b"")),
            "has feature list 'maybe' with a step that holds no list",
        ),
        (CONTEXT + message(0x12, ONE, PAIRS)[:-1], "is no tf.SequenceExample"),
        (CONTEXT + message(0x12, b"\x0a\x05ab", ONE, PAIRS), "is no tf.SequenceExample"),
        (CONTEXT + message(0x12, ONE, entry("pairs", b"\x12\x03\x0a\x01a")), "is no tf.SequenceExample"),
        (b"\xff", "is no tf.SequenceExample"),
    ],
)
def test_what_a_spec_does_not_promise_is_told(payload: bytes, problem: str) -> None:
    good = CONTEXT + message(0x12, ONE, PAIRS, MAYBE)
    assert check([good, payload, good]) == [(1, problem)]


def test_feature_lists_are_unknown_fields_to_a_spec_of_examples() -> None:
    spec = derive_spec(pa.schema([("n", pa.int64())]), {"n": 0})
    assert check([CONTEXT, CONTEXT + message(0x12, ONE)], spec) == []


@examples(600)
@given(data=st.data())
def test_what_protobuf_refuses_is_told(data: st.DataObject, tf: Any) -> None:
    payload = bytearray(CONTEXT + message(0x12, ONE, PAIRS, MAYBE))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(payload)))
        payload[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=2))
    decode_record(bytes(payload))
    try:
        tf.train.SequenceExample.FromString(bytes(payload))
    except Exception:
        assert len(check([bytes(payload)])) == 1, bytes(payload)
