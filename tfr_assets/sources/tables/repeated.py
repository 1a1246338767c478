"""Values that a file holds once and repeats: a dictionary of a few kB can become gigabytes of rows.

The file's size then does not show how large rows become; its dictionaries do, which are looked at first.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

MOST_ROWS = 16_384  # of a batch
_MOST_BYTES = 64 << 20  # of repeated values of a batch


def rows_that_fit(longest: float) -> int:
    """Returns the most rows of a batch, if each may have so many bytes of repeated values."""
    return max(1, min(MOST_ROWS, int(_MOST_BYTES / max(longest, 1))))


def longest_in_batch(batch: pa.RecordBatch) -> int:
    """Returns how many bytes of repeated values a row of an Arrow record batch may have."""
    return sum(map(_longest, batch.columns))


def _longest(array: pa.Array) -> int:
    """Returns the length of the longest value of a dictionary, however deep it lies in lists, maps and structs."""
    kind = array.type
    types = pa.types
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind) or types.is_map(kind)
    if pa.types.is_dictionary(kind):
        values = array.dictionary
        if pa.types.is_string_view(values.type) or pa.types.is_binary_view(values.type):
            values = values.cast(pa.large_binary())
        is_text = pa.types.is_large_string(values.type) or pa.types.is_string(values.type)
        if is_text or pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
            return pc.max(pc.binary_length(values)).as_py() or 0
        return 0
    if pa.types.is_struct(kind):
        return sum(_longest(array.field(index)) for index in range(kind.num_fields))
    if is_list:
        return _longest(array.values) * max(1, len(array.values) // max(len(array), 1))
    return 0


def most_rows_of_parquet(file: AbstractContextManager[Any], meta: pq.FileMetaData, **options: Any) -> int:
    """Returns the most rows of a batch of a Parquet file, so that its repeated values fit into memory.

    Args:
        file: What `pq.ParquetFile` opens; it is opened only where there may be such values.
        meta: The file's.
        options: Further arguments of `pq.ParquetFile`.
    """
    groups = [meta.row_group(index) for index in range(meta.num_row_groups)]
    suspects = [list(_suspects(group)) for group in groups]
    names = sorted({name for of_group in suspects for name in of_group})
    if not names:
        return MOST_ROWS
    longest = 0.0
    with file as opened, pq.ParquetFile(opened, read_dictionary=names, **options) as parquet:
        for index, (group, of_group) in enumerate(zip(groups, suspects, strict=True)):
            if of_group:
                longest = max(longest, _longest_in_group(parquet, index, group, of_group))
    return rows_that_fit(longest)


def _suspects(group: Any) -> Iterator[str]:
    """Yields the columns of a row group whose dictionaries are so large that one value could fill a batch."""
    for chunk in (group.column(index) for index in range(group.num_columns)):
        is_text = chunk.physical_type == "BYTE_ARRAY"
        is_large = chunk.total_uncompressed_size * min(MOST_ROWS, chunk.num_values) > _MOST_BYTES
        if is_text and is_large and any("DICTIONARY" in encoding for encoding in chunk.encodings):
            yield chunk.path_in_schema


def _longest_in_group(parquet: pq.ParquetFile, index: int, group: Any, names: Sequence[str]) -> float:
    """Returns how many bytes of repeated values a row of a row group may have."""
    chunks = (group.column(at) for at in range(group.num_columns))
    repeats = max(chunk.num_values / max(group.num_rows, 1) for chunk in chunks if chunk.path_in_schema in names)
    first = next(parquet.iter_batches(1, row_groups=[index], columns=names, use_threads=False), None)
    return 0 if first is None else sum(map(_longest, first.columns)) * max(1, repeats)
