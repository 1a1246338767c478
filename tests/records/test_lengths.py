"""Lengths of lists in lists, read from a file: they fit together, or the record is named; nothing wraps or shifts."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfr_assets.errors import SchemaError
from tfr_assets.records.arrow.arrays import to_arrow
from tfr_assets.records.arrow.ragged import put_together
from tfr_assets.records.frames.scan import scan_stream
from tfr_assets.records.kernels.validate import FeatureChecker
from tfr_assets.records.schema.derive import derive_spec
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.records.schema.features import FeatureSpec

from .decoding import decode_payloads
from .encoding import encode
from .reference import examples, frames, message, varint
from .streams import Memory

LARGEST = 2**63 - 1
TWO = pa.list_(pa.list_(pa.int64()))
THREE = pa.list_(TWO)
PAIRS = pa.list_(pa.list_(pa.list_(pa.int64(), 2)))


def spec_of(data_type: pa.DataType, optional: bool = False) -> FeatureSpec:
    return derive_spec(pa.schema([("x", data_type)]), {} if optional else {"x": 0})


def ints(name: str, values: list[int], packed: bool = True) -> bytes:
    content = b"".join(b"\x08" + varint(v) for v in values)
    if packed and values:
        content = message(0x0A, *map(varint, values))
    return message(0x0A, message(0x0A, name.encode()), message(0x12, message(0x1A, content)))


def record(values: list[int], *levels: list[int], packed: bool = True) -> bytes:
    entries = [ints("x/ragged_flat_values", values, packed)]
    entries += [ints(f"x/ragged_row_lengths_{n}", lengths, packed) for n, lengths in enumerate(levels)]
    return message(0x0A, *entries)


def fits(counted: int, *levels: list[int]) -> bool:
    """Whether each level's lengths divide the next level, in Python's integers."""
    counts = [*map(len, levels[1:]), counted]
    return all(min(level, default=0) >= 0 and sum(level) == n for level, n in zip(levels, counts, strict=True))


def checked(spec: FeatureSpec, payloads: list[bytes]) -> list[tuple[int, str]]:
    checker = FeatureChecker(spec)
    scan_stream(Memory(frames(payloads)), "memory", checker.visit)
    assert checker.count == len(checker.problems)
    return [(record, text) for record, _, text in checker.problems]


BAD = [
    (TWO, ([1, 2, 3], [LARGEST, LARGEST, 5]), 0),  # wraps around to 3
    (TWO, ([1, 2, 3], [2**62] * 4 + [3]), 0),
    (TWO, ([1, 2, 3], [1, 3]), 0),
    (TWO, ([1, 2, 3], [-1, 4]), 0),
    (TWO, ([1, 2, 3], [4, -1]), 0),
    (TWO, ([1, 2, 3], [1]), 0),
    (TWO, ([1, 2, 3], []), 0),
    (TWO, ([], [1]), 0),
    (TWO, ([], [-1, 1]), 0),
    (TWO, ([], [-(2**63), -(2**63)]), 0),
    (PAIRS, ([1, 2, 3, 4], [3]), 0),
    (PAIRS, ([1, 2, 3, 4], [2**62, 2**62, 2**62, 2**62, 2]), 0),
    (THREE, ([1, 2, 3], [2], [1, 2, 0]), 0),
    (THREE, ([1, 2, 3], [2], [1, 3]), 1),
    (THREE, ([1, 2, 3], [3], [LARGEST, LARGEST, 5]), 1),
    (THREE, ([1, 2, 3], [LARGEST, LARGEST, 5], [1, 1, 1]), 0),
    (THREE, ([1, 2, 3], [-1, 4], [1, 1, 1]), 0),
]  # fmt: skip


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize(("data_type", "parts", "level"), BAD, ids=str)
def test_lengths_that_do_not_fit_are_named_with_record_and_feature(
    data_type: pa.DataType, parts: tuple[list[int], ...], level: int, packed: bool
) -> None:
    spec = spec_of(data_type)
    assert not fits(len(parts[0]) // spec.features[0].size, *parts[1:])
    good = encode(pa.record_batch({"x": pa.array([[], []], data_type)}))[0]
    text = (
        f"has lists in 'x' whose lengths do not add up to its number of values: feature 'x/ragged_row_lengths_{level}'"
    )
    payloads = [good, record(*parts, packed=packed), good]
    assert checked(spec, payloads) == [(1, text)]
    _, problems = decode_payloads(spec, payloads)
    assert [(problem.index, problem.text) for problem in problems] == [(1, text)]


def test_lengths_in_the_context_of_a_sequence_example_are_checked() -> None:
    schema = pa.schema([("s", pa.list_(pa.int64())), ("x", TWO)])
    spec = derive_spec(schema, {"s": 0, "x": 0}, FeatureOptions(sequence=("s",)))
    step = message(0x0A, message(0x1A, message(0x0A, b"\x05")))
    lists = message(0x12, message(0x0A, message(0x0A, b"s"), message(0x12, step)))
    payloads = [record([1, 2, 3], lengths) + lists for lengths in ([1, 2], [LARGEST, LARGEST, 5], [1, 3])]
    assert [(number, "'x/ragged_row_lengths_0'" in text) for number, text in checked(spec, payloads)] == [
        (1, True),
        (2, True),
    ]


small = st.integers(-1, 4)
large = small | st.sampled_from([LARGEST, 2**62, 2**61, 2**32, 2**31, -(2**63)])


@st.composite
def parts(draw: st.DrawFn, levels: int, numbers: st.SearchStrategy[int]) -> tuple[list[int], ...]:
    """Values and lengths, level by level; they often fit."""
    lengths = [draw(st.lists(numbers, max_size=4))]
    for _ in range(levels):
        count = sum(lengths[-1])
        if 0 <= count <= 12 and min(lengths[-1], default=0) >= 0 and draw(st.integers(0, 3)):
            lengths.append(draw(st.lists(numbers, min_size=count, max_size=count)))
        else:
            lengths.append(draw(st.lists(numbers, max_size=6)))
    return [*range(len(lengths[-1]))], *lengths[:-1]


@pytest.mark.parametrize("levels", [1, 2, 3])
@examples(150)
@given(data=st.data())
def test_decoder_and_check_accept_just_what_fits(levels: int, data: st.DataObject) -> None:
    data_type = TWO
    for _ in range(levels - 1):
        data_type = pa.list_(data_type)
    spec, rows = spec_of(data_type), data.draw(st.lists(parts(levels, large), max_size=4))
    payloads = [record(*row) for row in rows]
    bad = [i for i, row in enumerate(rows) if not fits(len(row[0]), *row[1:])]
    assert [number for number, _ in checked(spec, payloads)] == bad
    assert [problem.index for problem in decode_payloads(spec, payloads)[1]] == bad
    columns, problems = decode_payloads(spec, [payload for i, payload in enumerate(payloads) if i not in bad])
    assert problems == []
    array = to_arrow(put_together(spec, columns)["x"])
    array.validate(full=True)
    assert encode(pa.record_batch({"x": array})) == [payload for i, payload in enumerate(payloads) if i not in bad]


@examples(40)
@given(row=parts(2, small))
def test_of_single_records_just_what_tensorflow_accepts_when_it_validates(row: tuple[list[int], ...], tf: Any) -> None:
    """Without `validate`, TensorFlow checks nothing; with it, sums of a batch: records may shift into each other."""
    lengths = [tf.io.RaggedFeature.RowLengths(f"x/ragged_row_lengths_{n}") for n in range(2)]
    feature = tf.io.RaggedFeature(tf.int64, "x/ragged_flat_values", lengths, tf.int64, validate=True)
    columns, problems = decode_payloads(spec_of(THREE), [record(*row)])
    try:
        theirs = tf.io.parse_example([record(*row)], {"x": feature})["x"].to_list()
    except tf.errors.InvalidArgumentError:
        assert problems
    else:
        assert problems == []
        assert theirs == to_arrow(put_together(spec_of(THREE), columns)["x"]).to_pylist()


def test_an_absent_part_counts_as_empty() -> None:
    spec = spec_of(TWO, optional=True)
    good = [b"", message(0x0A, ints("x/ragged_row_lengths_0", [0, 0])), record([], [])]
    assert checked(spec, good) == []
    columns, problems = decode_payloads(spec, good)
    assert problems == []
    assert to_arrow(put_together(spec, columns)["x"]).to_pylist() == [[], [[], []], []]
    bad = [message(0x0A, ints("x/ragged_row_lengths_0", [1])), message(0x0A, ints("x/ragged_flat_values", [1]))]
    assert [number for number, _ in checked(spec, bad)] == [0, 1]
    assert [problem.index for problem in decode_payloads(spec, bad)[1]] == [0, 1]


def test_sizes_of_a_tensor_give_its_number_of_values() -> None:
    schema = pa.schema([("x", pa.list_(pa.list_(pa.int64())))])
    spec = derive_spec(schema, {"x": 0}, FeatureOptions(tensor={"x": "packed"}))

    def tensor(values: int, sizes: list[int]) -> bytes:
        return message(0x0A, ints("x", [7] * values), ints("x/shape", sizes))

    assert checked(spec, [tensor(6, [2, 3]), tensor(0, [2**40, 0]), tensor(0, [0, 2**62])]) == []
    bad = [tensor(6, [3, 3]), tensor(6, [-2, -3]), tensor(0, [2**32, 2**32]), tensor(1, [LARGEST, LARGEST])]
    text = "has feature 'x/shape' whose sizes do not give the number of values of 'x'"
    assert checked(spec, bad) == [(number, text) for number in range(len(bad))]


def test_sizes_of_a_tensor_do_not_wrap_around_when_written() -> None:
    data_type = pa.struct([("data", pa.list_(pa.int64())), ("shape", pa.list_(pa.int64()))])
    batch = pa.record_batch({"x": pa.array([{"data": [], "shape": [2**32, 2**32]}], data_type)})
    with pytest.raises(SchemaError, match="has 0 values in row 0"):
        encode(batch)


def test_what_the_encoder_writes_of_lists_of_any_depth_fits() -> None:
    generator = np.random.default_rng(7)
    rows = [
        [[[*range(n)] for n in generator.integers(0, 4, k)] for k in generator.integers(0, 4, m)]
        for m in generator.integers(0, 5, 900)
    ]
    batch = pa.record_batch({"x": pa.array(rows, THREE)})
    assert checked(spec_of(THREE), encode(batch)) == []
