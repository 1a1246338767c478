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

A column is one line of a table of int64s, so that one call does a whole batch; the constants below name its fields.
"""

import numpy as np

from tfr_assets.records.crc32c import masked_crc_at, masked_crcs_at
from tfr_assets.records.jit import (
    called,
    copy_32,
    copy_bytes,
    inlined,
    kernel,
    leading_zeros,
    load_f32,
    load_f64,
    load_i8,
    load_i16,
    load_i32,
    load_i64,
    load_u8,
    load_u16,
    load_u32,
    move_bytes,
    store_f32,
    store_i64,
    store_u8,
    store_u32,
    store_u64,
)

HEADER, FOOTER = 12, 4
MAX_EXAMPLE = 2**31 - 1  # protobuf's own limit

# fields of a column's line
(
    KIND,  # INT, FLOAT or BYTES
    PATH,  # how a row's entry is written: ANY for lists, otherwise by the shortest path for its kind and width
    VALUES,  # address of the first value: numbers, or (BYTES) of the bytes
    VALUES_END,  # address after the last byte that may be read (BYTES)
    WIDTH,  # bytes a number; 0: bits
    UNSIGNED,  # 1: u8 … u32
    VALUE_BIT,  # index of the first value's bit, where WIDTH is 0
    VALIDITY,  # address of the bitmap, 0: no nulls
    VALIDITY_BIT,  # index of row 0's bit
    OFFSETS,  # address of the list offsets, 0: lists of STRIDE values each
    OFFSETS_WIDTH,  # 4 or 8
    STRIDE,  # values a row, or values an offset unit
    STARTS,  # BYTES: address of the offsets of values, 0: values of WIDTH bytes each
    STARTS_WIDTH,  # 4 or 8
    KEY,  # address of the key's field: 0a │size│ key
    KEY_SIZE,
    TEMPLATES,  # address of 11 templates of TEMPLATE_STEP bytes: u64 size, then all of an entry but its value
    TEMPLATE_STEP,  # templates[n]: an int of n varint bytes; templates[4]: a float
    FIELDS,
) = range(19)
LINE = FIELDS * 8  # bytes a line
INT, FLOAT, BYTES = range(3)
ANY, ONE_INT64, ONE_FLOAT64, ONE_BYTES, ONE_INT, ONE_FLOAT = range(6)


@inlined
def field(line, name):
    """A field of the line at address `line`."""
    return load_i64(line + name * 8)


@inlined
def varint_size(value):
    """Bytes of a minimal varint: 1 for zero, 10 for anything negative."""
    bits = np.int64(63) - np.int64(leading_zeros(np.uint64(value) | np.uint64(1)))
    return (bits * 9 + 73) >> 6


@inlined
def put_varint(address, value, size):
    """Writes a varint whose size is known, without branching on its value; may run over by eight bytes."""
    x = np.uint64(value)
    if size > 8:
        for _ in range(size - 1):
            store_u8(address, np.uint8(x | np.uint64(128)))
            x >>= np.uint64(7)
            address += 1
        store_u8(address, np.uint8(x))
        return address + 1
    # spread 56 bits over eight bytes: halves, quarters, eighths
    x = (x & np.uint64(0x000000000FFFFFFF)) | ((x & np.uint64(0x00FFFFFFF0000000)) << np.uint64(4))
    x = (x & np.uint64(0x00003FFF00003FFF)) | ((x & np.uint64(0x0FFFC0000FFFC000)) << np.uint64(2))
    x = (x & np.uint64(0x007F007F007F007F)) | ((x & np.uint64(0x3F803F803F803F80)) << np.uint64(1))
    more = (np.uint64(1) << np.uint64(8 * (size - 1))) - np.uint64(1)
    store_u64(address, x | (more & np.uint64(0x0080808080808080)))
    return address + size


@inlined
def put_size(address, size):
    """Writes the size of what follows."""
    return put_varint(address, size, varint_size(size))


@inlined
def bit_at(address, index):
    """Bit `index` of an Arrow bitmap."""
    return (np.int64(load_u8(address + (index >> 3))) >> (index & 7)) & 1


@inlined
def int_at(line, index):
    """Value `index` of an integer or bool column."""
    width = field(line, WIDTH)
    if width == 8:
        return load_i64(field(line, VALUES) + index * 8)
    if width == 0:
        return bit_at(field(line, VALUES), field(line, VALUE_BIT) + index)
    if field(line, UNSIGNED):
        if width == 4:
            return np.int64(load_u32(field(line, VALUES) + index * 4))
        if width == 2:
            return np.int64(load_u16(field(line, VALUES) + index * 2))
        return np.int64(load_u8(field(line, VALUES) + index))
    if width == 4:
        return np.int64(load_i32(field(line, VALUES) + index * 4))
    if width == 2:
        return np.int64(load_i16(field(line, VALUES) + index * 2))
    return np.int64(load_i8(field(line, VALUES) + index))


@inlined
def float_at(line, index):
    """Value `index` of a float column, as float32."""
    if field(line, WIDTH) == 8:
        return np.float32(load_f64(field(line, VALUES) + index * 8))
    return load_f32(field(line, VALUES) + index * 4)


@inlined
def offset_at(address, width, index):
    """Offset `index` of an Arrow offsets buffer."""
    if width == 4:
        return np.int64(load_i32(address + index * 4))
    return load_i64(address + index * 8)


@inlined
def values_of_row(line, row):
    """First value of a row, and the one after its last."""
    if field(line, OFFSETS) == 0:
        return row * field(line, STRIDE), (row + 1) * field(line, STRIDE)
    start = offset_at(field(line, OFFSETS), field(line, OFFSETS_WIDTH), row)
    stop = offset_at(field(line, OFFSETS), field(line, OFFSETS_WIDTH), row + 1)
    return start * field(line, STRIDE), stop * field(line, STRIDE)


@inlined
def bytes_at(line, index):
    """Address of bytes value `index`, and its size."""
    if field(line, STARTS) == 0:
        return field(line, VALUES) + index * field(line, WIDTH), field(line, WIDTH)
    start = offset_at(field(line, STARTS), field(line, STARTS_WIDTH), index)
    return field(line, VALUES) + start, offset_at(field(line, STARTS), field(line, STARTS_WIDTH), index + 1) - start


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


@inlined
def is_present(line, row):
    """Whether a row has a value, that is no null."""
    return field(line, VALIDITY) == 0 or bit_at(field(line, VALIDITY), field(line, VALIDITY_BIT) + row) == 1


@inlined
def put_wide(target, source, size):
    """Copies a short padded buffer, 32 bytes at a time; may run over on both sides."""
    copy_32(target, source)
    done = 32
    while done < size:
        copy_32(target + done, source + done)
        done += 32
    return target + size


@inlined
def put_bytes(target, source, size, source_end):
    """Copies a value: short ones 32 bytes at a time, unless that would read beyond the source's end."""
    if size <= 128 and source + size + 32 <= source_end:
        put_wide(target, source, size)
    else:
        copy_bytes(target, source, size)
    return target + size


@called
def emit_any(line, row, address):
    """Writes the entry of one present feature, of any kind and length."""
    kind = field(line, KIND)
    start, stop = values_of_row(line, row)
    content = content_size(line, start, stop)
    entry, feature = entry_size(line, content)
    store_u8(address, np.uint8(0x0A))
    address = put_size(address + 1, entry)
    address = put_wide(address, field(line, KEY), field(line, KEY_SIZE))
    store_u8(address, np.uint8(0x12))
    address = put_size(address + 1, feature)
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


@kernel("int64(int64, int64, int64, int64, int64, int64)")
def emit(table, columns, first, rows, sizes, target):
    """Writes the frames of rows [first, first + rows).

    Args:
        table: Address of a line a column, sorted by key.
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
        body = example + 1 + width
        stop = emit_features(table, columns, first + i, body)
        size = stop - body
        if varint_size(size) != width:
            width = varint_size(size)
            move_bytes(example + 1 + width, body, size)
        total = 1 + width + size
        if total > MAX_EXAMPLE:
            return -1 - i
        for k in range(width):  # exactly: what follows is already there
            store_u8(example + 1 + k, np.uint8((size >> (7 * k)) & 127 | (128 if k + 1 < width else 0)))
        store_u8(example, np.uint8(0x0A))
        store_i64(frame, total)
        store_i64(sizes + i * 8, HEADER + total + FOOTER)
        frame = example + total + FOOTER
    put_crcs(sizes, rows, target)
    return frame - target
