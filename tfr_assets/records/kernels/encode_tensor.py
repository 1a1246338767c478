"""Tensors → TensorProtos, byte for byte as `tf.io.serialize_tensor` gives them; see `records.examples.tensor_proto`."""

import numpy as np
import pyarrow as pa

from tfr_assets.records.arrow.tensors import Tensors
from tfr_assets.records.kernels.column_table import (
    BYTES,
    KIND,
    VALUES,
    VALUES_END,
    WIDTH,
    bytes_at,
    field,
    is_present,
    values_of_row,
)
from tfr_assets.records.kernels.jit import (
    PADDING,
    address_of,
    called,
    copy_bytes,
    inlined,
    kernel,
    load_i64,
    store_i64,
    store_u8,
)
from tfr_assets.records.kernels.protobuf import put_bytes, put_size, varint_size


@inlined
def _dim_size(size):
    return np.int64(0) if size == 0 else 1 + varint_size(size)


@inlined
def _shape_size(shapes, starts, row):
    total = np.int64(0)
    for index in range(load_i64(starts + row * 8), load_i64(starts + row * 8 + 8)):
        total += 2 + _dim_size(load_i64(shapes + index * 8))
    return total


@called
def _values_size(line, row):
    """Bytes of a tensor's values with their tags and sizes."""
    start, stop = values_of_row(line, row)
    if field(line, KIND) != BYTES:
        size = (stop - start) * field(line, WIDTH)
        return 1 + varint_size(size) + size if size else np.int64(0)
    total = np.int64(0)
    for index in range(start, stop):
        size = bytes_at(line, index)[1]
        total += 1 + varint_size(size) + size
    return total


@kernel("int64(int64, int64, int64, int64, int64)")
def _measure(line, rows, shapes, starts, offsets):
    """Writes where each row's message starts, and where the last one ends; returns that."""
    total = np.int64(0)
    for row in range(rows):
        store_i64(offsets + row * 8, total)
        if is_present(line, row):
            shape = _shape_size(shapes, starts, row)
            total += 3 + varint_size(shape) + shape + _values_size(line, row)
    store_i64(offsets + rows * 8, total)
    return total


@called
def _write_values(line, row, address):
    start, stop = values_of_row(line, row)
    if field(line, KIND) != BYTES:
        size = (stop - start) * field(line, WIDTH)
        if size:
            store_u8(address, np.uint8(0x22))
            address = put_size(address + 1, size)
            copy_bytes(address, field(line, VALUES) + start * field(line, WIDTH), size)
        return
    for index in range(start, stop):
        source, size = bytes_at(line, index)
        store_u8(address, np.uint8(0x42))
        address = put_size(address + 1, size)
        address = put_bytes(address, source, size, field(line, VALUES_END))


@kernel("int64(int64, int64, int64, int64, int64, int64, int64)")
def _write(line, rows, shapes, starts, offsets, dtype, target):
    """Writes the messages in order: what one runs over, the next overwrites."""
    for row in range(rows):
        if is_present(line, row):
            address = target + load_i64(offsets + row * 8)
            store_u8(address, np.uint8(0x08))
            store_u8(address + 1, np.uint8(dtype))
            store_u8(address + 2, np.uint8(0x12))
            address = put_size(address + 3, _shape_size(shapes, starts, row))
            for index in range(load_i64(starts + row * 8), load_i64(starts + row * 8 + 8)):
                size = load_i64(shapes + index * 8)
                store_u8(address, np.uint8(0x12))
                store_u8(address + 1, np.uint8(_dim_size(size)))
                address += 2
                if size:
                    store_u8(address, np.uint8(0x08))
                    address = put_size(address + 1, size)
            _write_values(line, row, address)
    return 0


def serialized(line: list[int], tensors: Tensors, dtype: int) -> pa.LargeBinaryArray:
    """Returns each row's TensorProto, null where there is no tensor.

    Args:
        line: A line of the encoder's table for `tensors.values`, whose values have the type's own width.
        tensors: The tensors; the memory that the line points into is alive.
        dtype: TensorFlow's number for their type.
    """
    rows = len(tensors.values)
    offsets, at = np.empty(rows + 1, np.int64), np.array(line, np.int64)
    shape_at, starts_at = address_of(tensors.shapes), address_of(tensors.starts)
    total = _measure(address_of(at), rows, shape_at, starts_at, address_of(offsets))
    data = np.empty(total + PADDING, np.uint8)
    _write(address_of(at), rows, shape_at, starts_at, address_of(offsets), dtype, address_of(data))
    null = tensors.values.is_valid().buffers()[1] if tensors.values.null_count else None
    buffers = [null, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), rows, buffers)
