"""The encoder's kernels for feature lists: Arrow memory → framed tf.SequenceExamples, as TensorFlow serializes them.

    SequenceExample  0a │size│ Features   12 │size│ FeatureLists      the context is what an Example holds
    FeatureLists     (0a │size│ entry)*                               one a present feature list, sorted by key
    entry            0a │size│ key   12 │size│ FeatureList
    FeatureList      (0a │size│ Feature)*                             one per step

The sizes of a row's feature lists are computed first, and written before what they count.
"""

import numpy as np

from tfr_assets.records.kernels.column_table import (
    BYTES,
    KEY,
    KEY_SIZE,
    KIND,
    LINE,
    bytes_at,
    field,
    is_present,
    steps_of_row,
    values_of_row,
)
from tfr_assets.records.kernels.encode import (
    FOOTER,
    HEADER,
    MAX_RECORD,
    content_size,
    emit_feature,
    put_crcs,
    put_features,
)
from tfr_assets.records.kernels.jit import called, inlined, kernel, load_i64, store_i64, store_u8
from tfr_assets.records.kernels.protobuf import put_size, put_wide, varint_size


@called
def _list_size(line, row):
    """Bytes of a row's FeatureList."""
    first, last = steps_of_row(line, row)
    total = np.int64(0)
    for step in range(first, last):
        start, stop = values_of_row(line, step)
        content = content_size(line, start, stop)
        feature = 1 + varint_size(content) + content
        total += 1 + varint_size(feature) + feature
    return total


@inlined
def _entry_size(line, size):
    """Bytes of an entry, without its own tag and size, whose FeatureList has `size`."""
    return field(line, KEY_SIZE) + 1 + varint_size(size) + size


@called
def _emit_list(line, row, size, address):
    """Writes the entry of a row's feature list, of `size` bytes."""
    store_u8(address, np.uint8(0x0A))
    address = put_size(address + 1, _entry_size(line, size))
    address = put_wide(address, field(line, KEY), field(line, KEY_SIZE))
    store_u8(address, np.uint8(0x12))
    address = put_size(address + 1, size)
    first, last = steps_of_row(line, row)
    for step in range(first, last):
        start, stop = values_of_row(line, step)
        content = content_size(line, start, stop)
        store_u8(address, np.uint8(0x0A))
        address = put_size(address + 1, 1 + varint_size(content) + content)
        address = emit_feature(line, start, stop, content, address)
    return address


@called
def _emit_lists(table, columns, row, scratch, address):
    """Writes the FeatureLists of a row; `scratch` has room for an int64 a column."""
    total = np.int64(0)
    for index in range(columns):
        line = table + index * LINE
        if is_present(line, row):
            size = _list_size(line, row)
            entry = _entry_size(line, size)
            total += 1 + varint_size(entry) + entry
            store_i64(scratch + index * 8, size)
    store_u8(address, np.uint8(0x12))
    address = put_size(address + 1, total)
    for index in range(columns):
        line = table + index * LINE
        if is_present(line, row):
            address = _emit_list(line, row, load_i64(scratch + index * 8), address)
    return address


@kernel("int64(int64, int64, int64, int64)")
def bound_lists(table, columns, first, rows):
    """Returns a number of bytes that the feature lists of rows [first, first + rows) do not exceed."""
    total = rows * 12
    for line in range(table, table + columns * LINE, LINE):
        step, last = steps_of_row(line, first)[0], steps_of_row(line, first + rows)[0]
        start, stop = values_of_row(line, step)[0], values_of_row(line, last)[0]
        total += rows * (field(line, KEY_SIZE) + 34)  # tags and sizes, ten bytes each at the most
        total += (last - step) * 34
        if field(line, KIND) == BYTES:
            total += (stop - start) * 11 + bytes_at(line, stop)[0] - bytes_at(line, start)[0]
        else:
            total += (stop - start) * 10
    return total


@kernel("int64(int64, int64, int64, int64, int64, int64, int64, int64, int64)")
def emit_sequences(context, columns, table, lists, scratch, first, rows, sizes, target):
    """Writes the frames of rows [first, first + rows).

    Args:
        context: Address of a line for each column of the context, sorted by key.
        columns: Number of these lines.
        table: Address of a line for each feature list, sorted by key.
        lists: Number of these lines.
        scratch: Address of `lists` int64s to work in.
        first: First row.
        rows: Number of rows.
        sizes: Address of `rows` int64s, which receive the frames' sizes.
        target: Address of the output, with room for `bound` + `bound_lists` bytes and PADDING.

    Returns:
        The sum of the sizes, or `-1 - i` where row `first + i` is too large for a protobuf.
    """
    frame = target
    width = np.int64(2)
    for i in range(rows):
        record = frame + HEADER
        address, width = put_features(context, columns, first + i, record, width)
        stop = _emit_lists(table, lists, first + i, scratch, address)
        if stop - record > MAX_RECORD:
            return -1 - i
        store_i64(frame, stop - record)
        frame = stop + FOOTER
        store_i64(sizes + i * 8, frame - record + HEADER)
    put_crcs(sizes, rows, target)
    return frame - target
