"""The encoder's kernels: columns of Arrow memory → framed tf.Examples, byte for byte as TensorFlow serializes them.

    frame    u64 length · u32 crc · Example · u32 crc
    Example  0a │size│ Features
    Features (0a │size│ entry)*                      one a present feature, sorted by key
    entry    0a │size│ key   12 │size│ Feature
    Feature  0a BytesList / 12 FloatList / 1a Int64List, each │size│ content
    content  bytes: (0a │size│ value)*   floats: 0a │size│ f32*   ints: 0a │size│ varint*   (packed; nothing where
    empty)

Every size is a minimal varint and stands before what it counts. Inside a feature it is computed first; the size of
Features is guessed to be as wide as the record's before, and what follows is moved in the rare case that it is not.
Stores are up to 32 bytes wide and run over into what is written later.

One call does a whole batch: a column is one line of a table (`records.kernels.column_table`).
"""

import numpy as np

from tfr_assets.records.kernels.column_table import (
    BYTES,
    FLOAT,
    INT,
    KEY,
    KEY_SIZE,
    KIND,
    LINE,
    ONE_BYTES,
    ONE_FLOAT,
    ONE_FLOAT64,
    ONE_INT,
    ONE_INT64,
    PATH,
    TEMPLATE_STEP,
    TEMPLATES,
    VALUES,
    VALUES_END,
    bytes_at,
    field,
    float_at,
    int_at,
    is_present,
    values_of_row,
)
from tfr_assets.records.kernels.crc32c import masked_crc_at, masked_crcs_at
from tfr_assets.records.kernels.jit import (
    called,
    inlined,
    kernel,
    load_f64,
    load_i64,
    move_bytes,
    store_f32,
    store_i64,
    store_u8,
    store_u32,
    store_u64,
)
from tfr_assets.records.kernels.protobuf import put_bytes, put_size, put_varint, put_wide, varint_size

HEADER, FOOTER = 12, 4
MAX_RECORD = 2**31 - 1  # protobuf's own limit


@called
def packed_size(line, start, stop):
    """Bytes of the packed values alone, for ints and floats."""
    if field(line, KIND) == FLOAT:
        return (stop - start) * 4
    size = np.int64(0)
    for index in range(start, stop):
        size += varint_size(int_at(line, index))
    return size


@called
def content_size(line, start, stop):
    """Bytes of a BytesList, FloatList or Int64List."""
    if field(line, KIND) == BYTES:
        size = np.int64(0)
        for index in range(start, stop):
            length = bytes_at(line, index)[1]
            size += 1 + varint_size(length) + length
        return size
    if start == stop:
        return np.int64(0)
    size = packed_size(line, start, stop)
    return 1 + varint_size(size) + size


@inlined
def entry_size(line, content):
    """Bytes of an entry of Features, without its own tag and size, and bytes of its Feature."""
    feature = 1 + varint_size(content) + content
    return field(line, KEY_SIZE) + 1 + varint_size(feature) + feature, feature


@called
def emit_feature(line, start, stop, content, address):
    """Writes a Feature: a list of the values [start, stop), whose `content_size` is known."""
    kind = field(line, KIND)
    store_u8(address, np.uint8(0x1A if kind == INT else 0x12 if kind == FLOAT else 0x0A))
    address = put_size(address + 1, content)
    if kind == BYTES:
        for index in range(start, stop):
            source, size = bytes_at(line, index)
            store_u8(address, np.uint8(0x0A))
            address = put_size(address + 1, size)
            address = put_bytes(address, source, size, field(line, VALUES_END))
        return address
    if start == stop:
        return address
    store_u8(address, np.uint8(0x0A))
    address = put_size(address + 1, packed_size(line, start, stop))
    for index in range(start, stop):
        if kind == FLOAT:
            store_f32(address, float_at(line, index))
            address += 4
        else:
            address = put_size(address, int_at(line, index))
    return address


@called
def emit_any(line, row, address):
    """Writes the entry of one present feature, of any kind and length."""
    start, stop = values_of_row(line, row)
    content = content_size(line, start, stop)
    entry, feature = entry_size(line, content)
    store_u8(address, np.uint8(0x0A))
    address = put_size(address + 1, entry)
    address = put_wide(address, field(line, KEY), field(line, KEY_SIZE))
    store_u8(address, np.uint8(0x12))
    address = put_size(address + 1, feature)
    return emit_feature(line, start, stop, content, address)


@inlined
def emit_int(line, value, address):
    """Writes the entry of a single integer: a template and the value."""
    size = varint_size(value)
    template = field(line, TEMPLATES) + size * field(line, TEMPLATE_STEP)
    address = put_wide(address, template + 8, load_i64(template))
    return put_varint(address, value, size)


@inlined
def emit_float(line, value, address):
    """Writes the entry of a single float: a template and the value."""
    template = field(line, TEMPLATES) + 4 * field(line, TEMPLATE_STEP)
    address = put_wide(address, template + 8, load_i64(template))
    store_f32(address, value)
    return address + 4


@inlined
def emit_bytes(line, row, address):
    """Writes the entry of a single string: where it is short, every size is one byte."""
    source, size = bytes_at(line, row)
    key = field(line, KEY_SIZE)
    if size + key + 6 > 127:
        return emit_any(line, row, address)
    store_u64(address, np.uint64(0x0A | (size + key + 6) << 8))
    address = put_wide(address + 2, field(line, KEY), key)
    sizes = (size + 4) << 8 | (size + 2) << 24 | size << 40
    store_u64(address, np.uint64(0x0A000A0012 | sizes))
    return put_bytes(address + 6, source, size, field(line, VALUES_END))


@inlined
def emit_features(table, columns, row, address):
    """Writes the entries of all present features of a row."""
    for line in range(table, table + columns * LINE, LINE):
        if is_present(line, row):
            path = field(line, PATH)
            if path == ONE_INT64:
                address = emit_int(line, load_i64(field(line, VALUES) + row * 8), address)
            elif path == ONE_FLOAT64:
                address = emit_float(line, np.float32(load_f64(field(line, VALUES) + row * 8)), address)
            elif path == ONE_BYTES:
                address = emit_bytes(line, row, address)
            elif path == ONE_INT:
                address = emit_int(line, int_at(line, row), address)
            elif path == ONE_FLOAT:
                address = emit_float(line, float_at(line, row), address)
            else:
                address = emit_any(line, row, address)
    return address


@called
def put_crcs(sizes, rows, target):
    """Computes both CRCs of consecutive frames, of four at a time."""
    a = target
    for i in range(0, rows - rows % 4, 4):
        b = a + load_i64(sizes + i * 8)
        c = b + load_i64(sizes + i * 8 + 8)
        d = c + load_i64(sizes + i * 8 + 16)
        stop = d + load_i64(sizes + i * 8 + 24)
        crc_a, crc_b, crc_c, crc_d = masked_crcs_at(a, 8, b, 8, c, 8, d, 8)
        store_u32(a + 8, crc_a)
        store_u32(b + 8, crc_b)
        store_u32(c + 8, crc_c)
        store_u32(d + 8, crc_d)
        crc_a, crc_b, crc_c, crc_d = masked_crcs_at(
            a + HEADER, b - a - 16, b + HEADER, c - b - 16, c + HEADER, d - c - 16, d + HEADER, stop - d - 16
        )
        store_u32(b - FOOTER, crc_a)
        store_u32(c - FOOTER, crc_b)
        store_u32(d - FOOTER, crc_c)
        store_u32(stop - FOOTER, crc_d)
        a = stop
    for i in range(rows - rows % 4, rows):
        stop = a + load_i64(sizes + i * 8)
        store_u32(a + 8, masked_crc_at(a, 8))
        store_u32(stop - FOOTER, masked_crc_at(a + HEADER, stop - a - 16))
        a = stop


@kernel("int64(int64, int64, int64, int64)")
def bound(table, columns, first, rows):
    """Returns a number of bytes that the frames of rows [first, first + rows) do not exceed."""
    total = rows * (HEADER + 12 + FOOTER)
    for line in range(table, table + columns * LINE, LINE):
        start = values_of_row(line, first)[0]
        stop = values_of_row(line, first + rows)[0]
        total += rows * (field(line, KEY_SIZE) + 64)  # tags and sizes, ten bytes each at the most
        if field(line, KIND) == BYTES:
            total += (stop - start) * 11
            total += bytes_at(line, stop)[0] - bytes_at(line, start)[0]
        else:
            total += (stop - start) * 10
    return total


@inlined
def put_features(table, columns, row, address, width):
    """Writes the Features of a row, which is all of an Example.

    Args:
        table: Address of a line per column, sorted by key.
        columns: Number of lines.
        row: The row.
        address: Where to write.
        width: A guess of how many bytes the size takes.

    Returns:
        The address after it, and the width that it was.
    """
    body = address + 1 + width
    stop = emit_features(table, columns, row, body)
    size = stop - body
    if varint_size(size) != width:
        width = varint_size(size)
        move_bytes(address + 1 + width, body, size)
    for k in range(width):  # exactly: what follows is already there
        store_u8(address + 1 + k, np.uint8((size >> (7 * k)) & 127 | (128 if k + 1 < width else 0)))
    store_u8(address, np.uint8(0x0A))
    return address + 1 + width + size, width


@kernel("int64(int64, int64, int64, int64, int64, int64)")
def emit(table, columns, first, rows, sizes, target):
    """Writes the frames of rows [first, first + rows).

    Args:
        table: Address of a line per column, sorted by key.
        columns: Number of lines.
        first: First row.
        rows: Number of rows.
        sizes: Address of `rows` int64s, which receive the frames' sizes.
        target: Address of the output, with room for `bound` bytes and PADDING.

    Returns:
        The sum of the sizes, or `-1 - i` where row `first + i` is too large for a protobuf.
    """
    frame = target
    width = np.int64(2)
    for i in range(rows):
        example = frame + HEADER
        stop, width = put_features(table, columns, first + i, example, width)
        if stop - example > MAX_RECORD:
            return -1 - i
        store_i64(frame, stop - example)
        frame = stop + FOOTER
        store_i64(sizes + i * 8, frame - example + HEADER)
    put_crcs(sizes, rows, target)
    return frame - target
