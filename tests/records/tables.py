"""Tables of every supported type for property tests, each with the features that its rows must become.

Values are drawn as what a tf.train.Feature shall hold (ints for dates, bytes for strings), and Arrow arrays are built
from them, so that what is expected never passes through the code under test.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

Values = list[Any]
Row = dict[str, tuple[str, Values]]  # by feature name: kind, values; a feature that is absent is not in it


@dataclass(frozen=True)
class Sort:
    """A sort of column."""

    name: str
    kind: str
    shape: tuple[int | None, ...]
    value: st.SearchStrategy  # one row's value, never None
    build: Callable[[Sequence[Any]], pa.Array]  # values or None
    feature: Callable[[Any], Values]
    entries: Callable[[Any], Row] | None = None  # of a sort that becomes several features: these, by "/part" or ""

    def row(self, path: str, value: Any) -> Row:
        """What one row's value becomes."""
        if self.entries is None:
            return {path: (self.kind, self.feature(value))}
        return {path + part: entry for part, entry in self.entries(value).items()}


def _scalar(name: str, kind: str, value: st.SearchStrategy, build: Callable, text: Callable = lambda v: v) -> Sort:
    return Sort(name, kind, (), value, build, lambda v: [text(v)])


def _integers(low: int, high: int) -> st.SearchStrategy:
    edges = [v for n in range(0, 64) for v in (2**n - 1, 2**n, -(2**n), -(2**n) - 1)]
    return st.one_of(st.sampled_from([v for v in [low, high, *edges] if low <= v <= high]), st.integers(low, high))


def _build(data_type: pa.DataType) -> Callable[[Sequence[Any]], pa.Array]:
    return lambda values: pa.array(values, data_type)


def _viewed(data_type: pa.DataType) -> Callable[[Sequence[Any]], pa.Array]:
    """Builds a temporal array from its physical integers."""
    storage = pa.int32() if data_type.bit_width == 32 else pa.int64()
    return lambda values: pa.array(values, storage).view(data_type)


def _half(bits: int) -> float:
    """Any of the float16 numbers; hypothesis' own draw of them discards too many."""
    is_nan = bits & 0x7C00 == 0x7C00 and bits & 0x3FF  # Python makes a signaling one quiet, Arrow does not
    return float(np.uint16(bits | 0x200 if is_nan else bits).view(np.float16))


def _float16(values: Sequence[float | None]) -> pa.Array:
    halves = np.array([0 if v is None else v for v in values], np.float16)
    return pa.array(halves, pa.float16(), mask=np.array([v is None for v in values], bool))


def _float32(values: Sequence[float | None]) -> pa.Array:
    with np.errstate(all="ignore"):
        singles = np.array([0 if v is None else v for v in values], np.float32)
    return pa.array(singles, pa.float32(), mask=np.array([v is None for v in values], bool))


def _extension(data_type: pa.BaseExtensionType) -> Callable[[Sequence[Any]], pa.Array]:
    return lambda values: pa.ExtensionArray.from_storage(data_type, pa.array(values, data_type.storage_type))


def _dictionary(index: pa.DataType, value: pa.DataType) -> Callable[[Sequence[Any]], pa.Array]:
    """Builds a dictionary array with an entry that is never used, and nulls as indices or as entries."""

    def build(values: Sequence[Any]) -> pa.Array:
        unused = b"unused" if pa.types.is_binary(value) else "unused" if pa.types.is_string(value) else 77
        entries = [unused, None, *dict.fromkeys(v for v in values if v is not None)]
        found = [(1 if row % 2 else None) if v is None else entries.index(v, 2) for row, v in enumerate(values)]
        return pa.DictionaryArray.from_arrays(pa.array(found, index), pa.array(entries, value))

    return build


def _decimals(data_type: pa.DataType) -> st.SearchStrategy:
    limit = 10**data_type.precision - 1
    return st.one_of(st.sampled_from([0, 1, -1, 9, limit, -limit]), st.integers(-limit, limit)).map(
        lambda unscaled: Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -data_type.scale))
    )


_LENGTHS = [0, 1, 7, 8, 9, 55, 63, 64, 65, 111, 112, 113, 120, 121, 122, 127, 128, 129, 255, 300]
_text = st.one_of(
    st.text(max_size=12), st.builds(lambda c, n: c * n, st.sampled_from("aé字😀"), st.sampled_from(_LENGTHS))
)
_binary = st.one_of(
    st.binary(max_size=12), st.builds(lambda b, n: b * n, st.sampled_from([b"\0", b"\xff"]), st.sampled_from(_LENGTHS))
)
_float64 = st.one_of(
    st.floats(),
    st.sampled_from(
        [1e300, -1e300, 3.4028235677973366e38, 3.4028234e38, 1e-46, -0.0, 1.4e-45, float("inf"), float("-inf")]
    ),
)


def _leaves() -> list[Sort]:
    sorts = [_scalar("bool", "int64", st.booleans(), _build(pa.bool_()), int)]
    for bits in (8, 16, 32, 64):
        signed, unsigned = getattr(pa, f"int{bits}")(), getattr(pa, f"uint{bits}")()
        sorts.append(_scalar(str(signed), "int64", _integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1), _build(signed)))
        sorts.append(_scalar(str(unsigned), "int64", _integers(0, min(2**bits, 2**63) - 1), _build(unsigned)))
    sorts += [
        _scalar("float16", "float32", st.integers(0, 2**16 - 1).map(_half), _float16),
        _scalar("float32", "float32", st.floats(width=32), _float32),
        _scalar("float64", "float32", _float64, _build(pa.float64())),
    ]
    for data_type in (pa.string(), pa.large_string(), pa.string_view()):
        sorts.append(_scalar(str(data_type), "bytes", _text, _build(data_type), str.encode))
    for data_type in (pa.binary(), pa.large_binary(), pa.binary_view()):
        sorts.append(_scalar(str(data_type), "bytes", _binary, _build(data_type)))
    for size in (0, 1, 7, 16, 130):
        values = st.one_of(st.binary(min_size=size, max_size=size), st.just(b"\x80" * size))
        sorts.append(_scalar(f"binary({size})", "bytes", values, _build(pa.binary(size))))
    for data_type in (
        *(pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
        *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
        *(pa.timestamp("us", zone) for zone in ("UTC", "Europe/Berlin")),
        *(pa.duration(unit) for unit in ("s", "ns")),
    ):
        limit = 2 ** (data_type.bit_width - 1)
        sorts.append(_scalar(str(data_type), "int64", _integers(-limit, limit - 1), _viewed(data_type)))
    for data_type in (pa.decimal128(5, 2), pa.decimal128(38, 10), pa.decimal128(7, -2), pa.decimal256(76, 38)):
        sorts.append(
            _scalar(str(data_type), "bytes", _decimals(data_type), _build(data_type), lambda v: str(v).encode())
        )
    small = _integers(-128, 127)
    sorts += [
        _scalar("dictionary of string", "bytes", _text, _dictionary(pa.int16(), pa.string()), str.encode),
        _scalar("dictionary of binary", "bytes", _binary, _dictionary(pa.uint16(), pa.binary())),
        _scalar("dictionary of int", "int64", small.filter(lambda v: v != 77), _dictionary(pa.int64(), pa.int8())),
        _scalar("uuid", "bytes", st.binary(min_size=16, max_size=16), _extension(pa.uuid())),
        _scalar("bool8", "int64", st.integers(0, 1), _extension(pa.bool8())),
        _scalar("json", "bytes", st.just('{"a": 1}'), _extension(pa.json_()), str.encode),
    ]
    return sorts


def _flat(of: Sort) -> Callable[[Any], Values]:
    return lambda value: [v for item in value for v in of.feature(item)]


def _under_null(rows: Sequence[Any], junk: Any) -> tuple[list[Any], pa.Array]:
    """Rows with something under each null, as Arrow allows, and the mask that hides it."""
    return [junk if row is None else row for row in rows], pa.array([row is None for row in rows], pa.bool_())


def ragged(of: Sort, large: bool = False) -> Sort:
    cls = pa.LargeListArray if large else pa.ListArray

    def build(rows: Sequence[Any]) -> pa.Array:
        junk = next((row for row in rows if row), [])
        filled, mask = _under_null(rows, junk)
        starts = pa.array(np.cumsum([0, *map(len, filled)]), pa.int64() if large else pa.int32())
        return cls.from_arrays(starts, of.build([v for row in filled for v in row]), mask=mask)

    name = f"{'large ' if large else ''}list of {of.name}"
    return Sort(name, of.kind, (None, *of.shape), st.lists(of.value, max_size=4), build, _flat(of))


def viewed(of: Sort, large: bool = False) -> Sort:
    """List views, whose values lie in another order than the rows, with gaps."""
    cls, integer = (pa.LargeListViewArray, pa.int64()) if large else (pa.ListViewArray, pa.int32())

    def build(rows: Sequence[Any]) -> pa.Array:
        junk = next((row for row in rows if row), [])
        filled, mask = _under_null(rows, junk)
        values: list[Any] = []
        starts = [0] * len(rows)
        for index in reversed(range(len(rows))):
            starts[index] = len(values)
            values += [*filled[index], *junk]
        sizes = pa.array([len(row) for row in filled], integer)
        return cls.from_arrays(pa.array(starts, integer), sizes, of.build(values), mask=mask)

    name = f"{'large ' if large else ''}list view of {of.name}"
    return Sort(name, of.kind, (None, *of.shape), st.lists(of.value, max_size=4), build, _flat(of))


def fixed(of: Sort, size: int) -> Sort:
    def build(rows: Sequence[Any]) -> pa.Array:
        if not any(rows):  # nothing that could lie under a null
            return pa.array(rows, pa.list_(of.build([]).type, size))
        filled, mask = _under_null(rows, next(row for row in rows if row))
        values = of.build([v for row in filled for v in row])
        return pa.FixedSizeListArray.from_arrays(values, size, mask=mask)

    value = st.lists(of.value, min_size=size, max_size=size)
    return Sort(f"{size} of {of.name}", of.kind, (size, *of.shape), value, build, _flat(of))


def tensor(shape: tuple[int, ...]) -> Sort:
    count = int(np.prod(shape))

    def build(rows: Sequence[Any]) -> pa.Array:
        return pa.ExtensionArray.from_storage(
            pa.fixed_shape_tensor(pa.int32(), shape), pa.array(rows, pa.list_(pa.int32(), count))
        )

    value = st.lists(_integers(-(2**31), 2**31 - 1), min_size=count, max_size=count)
    return Sort(f"tensor {shape}", "int64", shape, value, build, list)


LEAVES = _leaves()
_BY_NAME = {sort.name: sort for sort in LEAVES}


def _lists() -> list[Sort]:
    sorts = [ragged(leaf) for leaf in LEAVES]
    for name in (
        "bool",
        "int64",
        "uint64",
        "float64",
        "string",
        "binary(7)",
        "decimal128(5, 2)",
        "dictionary of string",
    ):
        leaf = _BY_NAME[name]
        sorts += [
            ragged(leaf, large=True), viewed(leaf), viewed(leaf, large=True), fixed(leaf, 3), fixed(fixed(leaf, 2), 3),
            ragged(fixed(leaf, 2)), ragged(fixed(fixed(leaf, 2), 2), large=True), viewed(fixed(leaf, 2)),
        ]  # fmt: skip
    return [*sorts, fixed(_BY_NAME["string_view"], 2), tensor((2, 3)), tensor((4,))]


LISTS = _lists()


def nested(outer: Sort, depth: int) -> Sort:
    """A sort of lists of varying lengths at `depth` levels: several features, as TensorFlow Datasets has them."""

    def entries(value: list) -> Row:
        lengths: list[list[int]] = [[] for _ in range(depth - 1)]

        def walk(lists: list, level: int) -> None:
            if level < depth - 1:
                for inner in lists:
                    lengths[level].append(len(inner))
                    walk(inner, level + 1)

        walk(value, 0)
        found: Row = {f"/ragged_row_lengths_{level}": ("int64", counts) for level, counts in enumerate(lengths)}
        return {"/ragged_flat_values": (outer.kind, outer.feature(value))} | found

    return replace(outer, shape=(None, *outer.shape[depth:]), entries=entries)


def shaped(of: Sort, rank: int | None = None) -> Sort:
    """Tensors of varying shape, and of `rank` or a varying one: a struct of flat values and shapes."""
    ranks = st.integers(0, 3) if rank is None else st.just(rank)
    shapes = ranks.flatmap(lambda n: st.lists(st.integers(0, 3), min_size=n, max_size=n))
    value = shapes.flatmap(
        lambda shape: st.tuples(st.just(shape), st.lists(of.value, min_size=prod(shape), max_size=prod(shape)))
    )

    def build(rows: Sequence[Any]) -> pa.Array:
        filled, mask = _under_null(rows, next((row for row in rows if row), ([0] * (rank or 0), [])))
        starts = pa.array(np.cumsum([0, *(len(values) for _, values in filled)]), pa.int32())
        data = pa.ListArray.from_arrays(starts, of.build([v for _, values in filled for v in values]))
        sizes = pa.array(
            [shape for shape, _ in filled], pa.list_(pa.int32()) if rank is None else pa.list_(pa.int64(), rank)
        )
        return pa.StructArray.from_arrays([data, sizes], ["data", "shape"], mask=mask)

    def entries(value: Any) -> Row:
        shape, values = value
        return {"": (of.kind, [v for item in values for v in of.feature(item)]), "/shape": ("int64", shape)}

    return Sort(f"tensor of {of.name}, rank {rank}", of.kind, (None,), value, build, list, entries)


def structs(outer: Callable[[Sort], Sort], fields: dict[str, Sort]) -> Sort:
    """Lists of structs: a list a field."""
    value = st.fixed_dictionaries({name: of.value for name, of in fields.items()})

    def build_structs(rows: Sequence[Any]) -> pa.Array:
        children = [of.build([row[name] for row in rows]) for name, of in fields.items()]
        return pa.StructArray.from_arrays(children, list(fields))

    def entries(value: Any) -> Row:
        found: Row = {}
        for name, of in fields.items():
            inner = [item[name] for item in value]
            found |= (nested(outer(of), 2) if None in of.shape else outer(of)).row(f"/{name}", inner)
        return found

    one = Sort(f"struct of {', '.join(f.name for f in fields.values())}", "", (), value, build_structs, list)
    return replace(outer(one), entries=entries)


def _several() -> list[Sort]:
    leaves = [_BY_NAME[n] for n in ("bool", "uint8", "int64", "float64", "string", "large_binary", "binary(7)")]
    decimal, dictionary = _BY_NAME["decimal128(5, 2)"], _BY_NAME["dictionary of string"]
    int8, text = _BY_NAME["int8"], _BY_NAME["string"]
    return [
        *(nested(ragged(ragged(leaf)), 2) for leaf in (*leaves, decimal, dictionary)),
        nested(ragged(ragged(int8, large=True), large=True), 2), nested(viewed(ragged(int8)), 2),
        nested(ragged(viewed(text)), 2), nested(viewed(viewed(int8), large=True), 2),
        nested(fixed(ragged(int8), 2), 2), nested(ragged(fixed(ragged(text), 2)), 3),
        nested(ragged(ragged(fixed(int8, 2))), 2), nested(ragged(ragged(ragged(int8))), 3),
        nested(ragged(ragged(ragged(fixed(text, 1)))), 3),
        *(shaped(leaf) for leaf in leaves), shaped(decimal, 2), shaped(int8, 1), shaped(dictionary, 3),
        structs(ragged, {"a": int8, "b c": text}), structs(lambda of: fixed(of, 2), {"a": int8, "b": fixed(text, 2)}),
        structs(viewed, {"a": ragged(int8), "b": dictionary}),
    ]  # fmt: skip


SEVERAL = _several()
SORTS = LEAVES + LISTS + SEVERAL


@dataclass(frozen=True)
class Table:
    """Rows as Arrow has them, and as tf.Examples have them."""

    batch: pa.RecordBatch
    rows: list[Row]


@dataclass(frozen=True)
class _Struct:
    fields: dict[str, "Sort | _Struct"]


_names = st.one_of(
    st.sampled_from(["a", "b", "ab", "Z", "é", "字", "😀", "\uffee", "a b", "\0", "ÿ"]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/"), min_size=1, max_size=5),
    st.builds(lambda c, n: c * n, st.sampled_from("kö"), st.integers(60, 140)),
)


def _nodes(depth: int) -> st.SearchStrategy:
    leaf = st.sampled_from(LEAVES) | st.sampled_from(LISTS) | st.sampled_from(SEVERAL)
    if not depth:
        return leaf
    struct = st.dictionaries(_names, _nodes(depth - 1), min_size=1, max_size=3).map(_Struct)
    return st.one_of(leaf, leaf, struct)


def _grow(draw: st.DrawFn, node: "Sort | _Struct", path: str, present: list[bool], rows: list[Row]) -> pa.Array:
    """Draws a column. `present` tells which rows are in no null struct; where not, there is a value all the same."""
    has = [draw(st.integers(0, 3)) > 0 for _ in present]
    visible = [a and b for a, b in zip(present, has, strict=True)]
    if isinstance(node, Sort):
        values = [draw(node.value) if there else None for there in has]
        for row, there, value in zip(rows, visible, values, strict=True):
            if there:
                row |= node.row(path, value)
        return node.build(values)
    children = [_grow(draw, child, f"{path}/{name}", visible, rows) for name, child in node.fields.items()]
    mask = pa.array([not there for there in has], pa.bool_())
    fields = [pa.field(name, child.type) for name, child in zip(node.fields, children, strict=True)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


@st.composite
def tables(draw: st.DrawFn, columns: dict[str, Sort] | None = None, max_rows: int = 8) -> Table:
    """Draws a table of any columns, or of the given ones, sliced out of a larger one."""
    nodes = columns or draw(st.dictionaries(_names, _nodes(2), min_size=1, max_size=5))
    before, count, behind = draw(st.integers(0, 9)), draw(st.integers(0, max_rows)), draw(st.integers(0, 2))
    rows: list[Row] = [{} for _ in range(before + count + behind)]
    arrays = [_grow(draw, node, name, [True] * len(rows), rows) for name, node in nodes.items()]
    schema = pa.schema([pa.field(name, array.type) for name, array in zip(nodes, arrays, strict=True)])
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    return Table(batch.slice(before, count), rows[before : before + count])


def single(value: float) -> float:
    """A Python float as float32, for comparisons."""
    with np.errstate(all="ignore"):
        return struct.unpack("<f", np.float32(value).tobytes())[0]
