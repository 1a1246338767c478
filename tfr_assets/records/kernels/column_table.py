"""The encoder's table: a column of Arrow memory as one line of int64s, and what kernels read through it.

The constants name the fields of a line. Where a column's row is a list, its values are found through its offsets; where
it is a feature list, the row's steps are found first, and each step is then as a row is elsewhere.
"""

import numpy as np

from tfr_assets.records.kernels.jit import (
    inlined,
    load_f32,
    load_f64,
    load_i8,
    load_i16,
    load_i32,
    load_i64,
    load_u8,
    load_u16,
    load_u32,
)

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
    STRIDE,  # values per row, or values per offset unit
    STARTS,  # BYTES: address of the offsets of values, 0: values of WIDTH bytes each
    STARTS_WIDTH,  # 4 or 8
    KEY,  # address of the key's field: 0a │size│ key
    KEY_SIZE,
    TEMPLATES,  # address of 11 templates of TEMPLATE_STEP bytes: u64 size, then all of an entry but its value
    TEMPLATE_STEP,  # templates[n]: an int of n varint bytes; templates[4]: a float
    STEPS,  # feature lists only: address of int64 offsets of steps; all that follows `row` is then by step
    FIELDS,
) = range(20)
LINE = FIELDS * 8  # bytes per line
INT, FLOAT, BYTES = range(3)
ANY, ONE_INT64, ONE_FLOAT64, ONE_BYTES, ONE_INT, ONE_FLOAT = range(6)


@inlined
def field(line, name):
    """A field of the line at address `line`."""
    return load_i64(line + name * 8)


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


@inlined
def is_present(line, row):
    """Whether a row has a value, that is no null."""
    return field(line, VALIDITY) == 0 or bit_at(field(line, VALIDITY), field(line, VALIDITY_BIT) + row) == 1


@inlined
def steps_of_row(line, row):
    """First step of a row of a feature list, and the one after its last."""
    return load_i64(field(line, STEPS) + row * 8), load_i64(field(line, STEPS) + (row + 1) * 8)
