import decimal

import pyarrow as pa
import pytest

from tfr_assets.sources.inventory.content_hash import RowsHash


def fingerprint(table: pa.Table, batch_rows: int | None = None) -> str:
    digest = RowsHash(table.schema)
    for batch in table.to_batches(batch_rows):
        digest.update(batch)
    return digest.hexdigest()


ARRAYS = {
    "int": pa.array([1, None, 3, 4]),
    "bool": pa.array([True, None, False, True]),
    "float": pa.array([1.5, float("nan"), None, 0.0], pa.float32()),
    "string": pa.array(["x", None, "", "yz"]),
    "binary": pa.array([b"x", None, b"", b"yz"], pa.large_binary()),
    "fixed": pa.array([b"xx", None, b"yy", b"zz"], pa.binary(2)),
    "decimal": pa.array([decimal.Decimal("1.5"), None, None, None]),
    "null": pa.nulls(4),
    "list": pa.array([[1, None], None, [], [2]]),
    "lists": pa.array([[["a"], []], None, [], [None]]),
    "fixed list": pa.array([[1, 2], None, [3, None], [4, 5]], pa.list_(pa.int8(), 2)),
    "struct": pa.array([{"x": 1, "y": "a"}, None, {"x": None, "y": "b"}, {"x": 4, "y": None}]),
    "map": pa.array([[("a", 1)], None, [], [("b", None)]], pa.map_(pa.string(), pa.int8())),
    "timestamp": pa.array([1, None, 2, 3], pa.timestamp("us")),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_batches_make_no_difference_but_values_do(kind: str) -> None:
    table = pa.table({"a": ARRAYS[kind]})
    whole = fingerprint(table)
    assert {fingerprint(table, rows) for rows in (1, 2, 3, 4)} == {whole}
    assert fingerprint(pa.table({"b": ARRAYS[kind]})) != whole
    assert fingerprint(pa.concat_tables([table, table.slice(0, 1)])) != whole
    if kind != "null":
        swapped = table.take(pa.array([1, 0, 2, 3]))
        assert fingerprint(swapped) != whole


def test_what_lies_at_nulls_makes_no_difference() -> None:
    clean = pa.table({"a": pa.array([1, None])})
    valid, values = clean["a"].chunk(0).buffers()
    dirty = pa.Array.from_buffers(pa.int64(), 2, [valid, pa.py_buffer(bytes(values)[:8] + b"\xff" * 8)])
    assert fingerprint(clean) == fingerprint(pa.table({"a": dirty}))


def test_neighbours_are_not_mixed_up() -> None:
    assert fingerprint(pa.table({"a": ["ab", "c"]})) != fingerprint(pa.table({"a": ["a", "bc"]}))
    assert fingerprint(pa.table({"a": [[1], [2, 3]]})) != fingerprint(pa.table({"a": [[1, 2], [3]]}))
    assert fingerprint(pa.table({"a": [1], "b": [2]})) != fingerprint(pa.table({"a": [2], "b": [1]}))
