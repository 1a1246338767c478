"""Feature lists are decoded as TensorFlow decodes them, of any valid tf.SequenceExample; anything else is a problem."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfr_assets.records.arrow.arrays import Column, Ragged, Strings
from tfr_assets.records.examples.decoder import Decoder
from tfr_assets.records.schema.derive import derive_spec
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.records.schema.features import Feature, FeatureSpec, Kind

from .decoding import decode_payloads, flat_rows
from .encoding import encoded
from .reference import examples, message
from .tables import single
from .test_decode import TAGS, expected, odd_fields, odd_lists
from .test_sequence import Sequences, sequences, spec_of


def steps_of(column: Column) -> list[list[list[Any]]]:
    """The values of each step of each row."""
    assert isinstance(column, Ragged)
    steps = flat_rows(column.values)
    return [steps[start:stop] for start, stop in zip(column.offsets[:-1], column.offsets[1:], strict=True)]


@examples(150)
@given(drawn=sequences(), room=st.sampled_from([None, 1, 3]))
def test_what_the_encoder_writes_comes_back(drawn: Sequences, room: int | None) -> None:
    spec = spec_of(drawn.batch, *drawn.names)
    columns, problems = decode_payloads(spec, encoded(spec, drawn.batch))
    assert problems == []
    for feature in spec.features:
        column = columns[feature.name]
        assert len(column) == drawn.batch.num_rows
        if not feature.sequence:
            np.testing.assert_equal(flat_rows(column), [expected(feature, row) for row in drawn.contexts])
            continue
        lists = [row.get(feature.name, (feature.kind.value, []))[1] for row in drawn.lists]
        if feature.kind is Kind.FLOAT32:
            lists = [[[single(value) for value in step] for step in steps] for steps in lists]
        np.testing.assert_equal(steps_of(column), lists)
        assert isinstance(column, Ragged)
        values = column.values.values if None in feature.value_shape else column.values  # type: ignore[union-attr]
        if not isinstance(values, Strings):
            assert isinstance(values, np.ndarray)
            assert values.dtype == np.dtype(feature.number_type)


def test_many_rows_and_steps_and_columns_that_are_left_out() -> None:
    rows = [[[n] * (step % 3) for step in range(n % 70)] for n in range(1_500)]
    texts = [["t" * (n % 40)] * (n % 5) for n in range(len(rows))]
    batch = pa.record_batch({"b": rows, "a": range(len(rows)), "c": texts})
    spec = derive_spec(batch.schema, {"a": 0}, FeatureOptions(sequence=("b", "c")))
    payloads = encoded(spec, batch)
    for names in [{"a", "b", "c"}, {"b"}, {"c"}, {"a"}]:
        columns, problems = decode_payloads(spec, payloads, names)
        assert problems == [] and set(columns) == names
        if "b" in names:
            assert steps_of(columns["b"]) == rows
        if "c" in names:
            assert steps_of(columns["c"]) == [[[text.encode()] for text in row] for row in texts]
        if "a" in names:
            assert flat_rows(columns["a"]) == [[n] for n in range(len(rows))]


FEATURES = [
    Feature("a", Kind.INT64, (None,), "a", "list<item: int64>", True, sequence=True),
    Feature("b", Kind.FLOAT32, (None, None), "b", "list<item: list<item: float>>", True, sequence=True),
    Feature("c", Kind.BYTES, (None, None), "c", "list<item: list<item: binary>>", True, sequence=True),
    Feature("d", Kind.FLOAT32, (None, 3), "d", "list<item: fixed_size_list<item: float>[3]>", True, sequence=True),
    Feature("e", Kind.INT64, (None, None, 2), "e", "list<list<fixed_size_list<item: int64>[2]>>", True, sequence=True),
    Feature("n", Kind.INT64, (), "n", "int64", True, fill=-1),
    Feature("z", Kind.BYTES, (None,), "z", "list<item: binary>", True),
]
SPEC = FeatureSpec(tuple(FEATURES))
_unknown = st.sampled_from([b"", b"", b"", message(0x7A, b"xyz"), b"\x50\x01", b"\x51" + bytes(8), b"\x55" + bytes(4)])
_VALUES = {
    Kind.INT64: st.integers(-(2**63), 2**63 - 1) | st.integers(0, 300),
    Kind.FLOAT32: st.floats(width=32),
    Kind.BYTES: st.binary(max_size=150),
}


@st.composite
def odd_values(draw: st.DrawFn, feature: Feature) -> bytes:
    """A Feature's fields: its list, which may lie in parts."""
    count = feature.size if None not in feature.value_shape else draw(st.integers(0, 9)) * feature.size
    values = draw(st.lists(_VALUES[feature.kind], min_size=count, max_size=count))
    cut = draw(st.integers(0, count))
    pieces = [values[:cut], values[cut:]] if draw(st.booleans()) else [values]
    lists = [draw(odd_fields(TAGS[feature.kind.value], draw(odd_lists(feature.kind, piece)))) for piece in pieces]
    return b"".join([draw(_unknown), *lists, draw(_unknown)])


@st.composite
def odd_entries(draw: st.DrawFn, feature: Feature) -> bytes:
    """An entry of one of the two maps, in any order and in parts."""
    key = draw(odd_fields(0x0A, feature.name.encode()))
    if not feature.sequence:
        return key + draw(odd_fields(0x12, draw(odd_values(feature))))
    steps = [draw(odd_fields(0x0A, draw(odd_values(feature)))) for _ in range(draw(st.integers(0, 4)))]
    steps.insert(draw(st.integers(0, len(steps))), draw(_unknown))
    cut = draw(st.integers(0, len(steps)))
    pieces = [steps[:cut], steps[cut:]] if draw(st.booleans()) else [steps]
    parts = [key, *(draw(odd_fields(0x12, b"".join(some))) for some in pieces)]
    if draw(st.integers(0, 9)) == 0:
        parts = [key]
    return b"".join(draw(st.permutations(parts)) if draw(st.booleans()) else parts)


@st.composite
def odd_records(draw: st.DrawFn) -> bytes:
    """A tf.SequenceExample with entries in any order, some twice, some unknown, its two maps perhaps in parts."""
    parts = []
    for tag, sequence in ((0x0A, False), (0x12, True)):
        chosen = draw(st.lists(st.sampled_from([f for f in FEATURES if f.sequence is sequence]), max_size=6))
        entries = [draw(odd_fields(0x0A, draw(odd_entries(feature)))) for feature in chosen]
        entries.insert(draw(st.integers(0, len(entries))), message(0x0A, message(0x0A, b"other"), message(0x12, b"")))
        if draw(st.booleans()):  # a key of the other map
            five = message(0x1A, message(0x0A, b"\x05"))
            other = (message(0x0A, b"n"), message(0x0A, five)) if sequence else (message(0x0A, b"a"), five)
            entries.insert(0, message(0x0A, other[0], message(0x12, other[1])))
        cut = draw(st.integers(0, len(entries)))
        parts += [draw(odd_fields(tag, b"".join(some))) for some in (entries[:cut], entries[cut:])]
    return b"".join(draw(st.permutations([draw(_unknown), *parts])))


@examples(200)
@given(payloads=st.lists(odd_records(), min_size=1, max_size=4))
def test_any_valid_protobuf_is_decoded_as_tensorflow_does(tf: Any, payloads: list[bytes]) -> None:
    columns, problems = decode_payloads(SPEC, payloads)
    assert problems == []
    for row, payload in enumerate(payloads):
        record = tf.train.SequenceExample.FromString(payload)
        for feature in FEATURES:
            if feature.sequence:
                steps = record.feature_lists.feature_list[feature.name].feature
                np.testing.assert_equal(steps_of(columns[feature.name])[row], [values_of(step) for step in steps])
            else:
                values = values_of(record.context.feature[feature.name])
                wanted = values or ([-1] if feature.name == "n" else [])
                np.testing.assert_equal(flat_rows(columns[feature.name])[row], wanted)


def values_of(feature: Any) -> list[Any]:
    kind = feature.WhichOneof("kind")
    return list(getattr(feature, kind).value) if kind else []


def record(*steps: bytes, name: str = "x") -> bytes:
    return message(0x12, message(0x0A, message(0x0A, name.encode()), message(0x12, *steps)))


def step(tag: int, content: bytes) -> bytes:
    return message(0x0A, message(tag, content))


_X = Feature("x", Kind.INT64, (None, 2), "x", "list<item: fixed_size_list<item: int64>[2]>", False, sequence=True)
GOOD = record(step(0x1A, message(0x0A, b"\x05\x06")))


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (b"\xff", "is no tf.SequenceExample"),
        (b"\x12\x05ab", "is no tf.SequenceExample"),
        (b"", "lacks feature 'x'"),
        (message(0x0A, message(0x0A, message(0x0A, b"x"), message(0x12, b""))), "lacks feature 'x'"),
        (record(step(0x12, message(0x0A, bytes(8)))), "has feature 'x' of another kind than int64"),
        (record(step(0x1A, message(0x0A, b"\x05"))), "with a number of values that does not fit its shape [2]"),
        (record(step(0x1A, message(0x0A, b"\x05\x06\x07\x08"))), "with a number of values that does not fit"),
        (record(message(0x0A)), "has feature list 'x' with a step that holds no list"),
        (record(step(0x1A, message(0x0A, b"\x85"))), "is no tf.SequenceExample"),
        (record(b"\x0a\x7f\x00"), "is no tf.SequenceExample"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_a_problem_and_nothing_is_added(payload: bytes, text: str) -> None:
    columns, problems = decode_payloads(FeatureSpec((_X,)), [GOOD, payload, GOOD])
    ((index, found),) = [(problem.index, problem.text) for problem in problems]
    assert (index, len(columns["x"])) == (1, 0)
    assert text in found


def test_a_problem_takes_back_the_steps_before_it() -> None:
    decoder = Decoder(FeatureSpec((FEATURES[1],)), {"b"})
    decoder.start(4)
    floats = [step(0x12, message(0x0A, np.float32(n).tobytes())) for n in range(3)]
    good, bad = record(*floats, name="b"), record(*floats, step(0x1A, message(0x0A, b"\x01")), name="b")
    content = [good, bad, good]
    buffer = np.frombuffer(b"".join(content) + bytes(64), np.uint8)
    bounds = np.cumsum([0, *map(len, content)])
    frames = np.stack([bounds[:-1], np.diff(bounds), np.arange(3)], 1)
    assert [problem.index for problem in decoder.add(buffer, frames)] == [1]
    assert decoder.add(buffer, np.ascontiguousarray(frames[[0, 2]])) == []
    assert steps_of(decoder.finish()["b"]) == [[[0.0], [1.0], [2.0]]] * 2
