"""A program's data of any form → Arrow batches of one schema."""

from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa

from tfr_assets.errors import SourceError
from tfr_assets.sources.tables.callables import as_tables, batches_of, items_of, tables_of
from tfr_assets.sources.tables.dict_rows import describe_value
from tfr_assets.sources.tables.python_values import Form, as_arrow, as_numpy, is_array_like, native
from tfr_assets.sources.tables.schemas import empty_batch
from tfr_assets.writing.writers.payloads import PAYLOADS

_NAME = "data"  # what messages call it
_BATCH_RECORDS, _BATCH_BYTES = 4_096, 4 << 20  # of records that are serialized already
_ACCEPTED = (
    "an Arrow table, batch, reader or dataset, a DataFrame of pandas or polars, a dict of columns, or an iterable of "
    "such tables, of dicts (one per row), of messages such as tf.train.Example, or bytes"
)
_BYTES = bytes | bytearray | memoryview


def is_table(data: object) -> bool:
    """Whether all rows are there, and in columns."""
    return isinstance(data, pa.Table | pa.RecordBatch) or type(data).__module__.split(".")[0] == "pandas"


def as_batches(data: Any, forms: Mapping[str, Form]) -> tuple[bool, Iterator[pa.RecordBatch]]:
    """Returns whether data consists of records that are serialized already, and its batches, the first without rows.

    Args:
        data: See `tfr_assets.writing.write.write`.
        forms: By column of dicts, how to hold arrays whose shapes turn out to vary only after the first rows.

    Raises:
        SourceError: It is of no known form. Iterating raises it too, where that is seen only later.
    """
    if isinstance(data, Mapping):
        data = _from_columns(data)
    if (tables := as_tables(_NAME, data)) is not None:
        return False, batches_of(_NAME, tables)
    if isinstance(data, str | _BYTES) or not isinstance(data, Iterable):
        raise SourceError(f"{_NAME}: is {describe_value(data)}; give {_ACCEPTED}")
    items = items_of(_NAME, data)
    head = list(islice(items, 1))
    items = chain(head, items)
    if head and _is_record(head[0]):
        return True, _of_payloads(items)
    if head and isinstance(head[0], str | int | float | None):
        raise SourceError(f"{_NAME}: item 0 is {describe_value(head[0])}; give {_ACCEPTED}")
    return False, batches_of(_NAME, tables_of(_NAME, items, forms))


def _is_record(item: object) -> bool:
    return isinstance(item, _BYTES) or hasattr(item, "SerializeToString")


def _of_payloads(items: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    yield empty_batch(PAYLOADS, _NAME)
    waiting: list[bytes] = []
    size = 0
    for index, item in enumerate(items):
        waiting.append(_payload(item, index))
        size += len(waiting[-1])
        if len(waiting) == _BATCH_RECORDS or size >= _BATCH_BYTES:
            yield pa.record_batch([waiting], PAYLOADS)
            waiting, size = [], 0
    yield pa.record_batch([waiting], PAYLOADS)


def _payload(item: Any, index: int) -> bytes:
    if not _is_record(item):
        raise SourceError(
            f"{_NAME}: item {index} is a value of type {type(item).__name__}, but those before it are records: bytes, "
            "or messages such as tf.train.Example. All must be such"
        )
    return bytes(item) if isinstance(item, _BYTES) else item.SerializeToString(deterministic=True)


def _from_columns(columns: Mapping[str, Any]) -> pa.Table:
    arrays = {}
    for name, values in columns.items():
        _check_is_column(name, values)
        try:
            arrays[name] = _column(values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise SourceError(f"{_NAME}: column {name!r} cannot become Arrow: {error}") from error
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise SourceError(f"{_NAME}: columns are of different lengths: {lengths}")
    return pa.table(arrays)


def _check_is_column(name: object, values: Any) -> None:
    """Refuses objects that iterate over something else than a column's values: keys, letters, an order by chance."""
    if isinstance(values, Mapping | Set | str | _BYTES):
        raise SourceError(
            f"{_NAME}: column {name!r} is {describe_value(values)}. Give a list or array of its values; for rows, "
            "give a list of dicts, one per row"
        )
    if hasattr(values, "column_names") or (hasattr(values, "columns") and not isinstance(values, np.ndarray)):
        raise SourceError(
            f"{_NAME}: {name!r} is a table ({type(values).__name__}), not a column. Write each table by itself, "
            f"such as `write(data[{name!r}], …, shards=…, split={name!r})`"
        )


def _column(values: Any) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if type(values).__module__.split(".")[0] == "pandas":
        return pa.Array.from_pandas(values)
    if hasattr(values, "__arrow_c_stream__"):  # such as a Series of polars
        return pa.chunked_array(values)
    if hasattr(values, "__arrow_c_array__"):
        return pa.array(values)
    values = as_numpy(values)
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return pa.array(native(values))
    items = list(values)
    return as_arrow([as_numpy(item) for item in items] if any(map(is_array_like, set(map(type, items)))) else items)
