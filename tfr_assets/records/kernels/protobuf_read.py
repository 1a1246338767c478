"""Reads what protobuf messages are made of, never beyond their end: varints and fields."""

import numpy as np

from tfr_assets.records.kernels.jit import inlined, load_u8


@inlined
def varint_at(address, stop):
    """Value of a varint and the address after it, which is 0 where it is malformed."""
    value, shift = np.uint64(0), np.uint64(0)
    while address < stop and shift < np.uint64(70):
        byte = load_u8(address)
        value |= np.uint64(byte & 127) << shift
        address += 1
        if byte < 128:
            return np.int64(value), address
        shift += np.uint64(7)
    return np.int64(0), np.int64(0)


@inlined
def field_at(address, stop):
    """Tag, start and stop of the field at `address`; stop is 0 where it is malformed."""
    tag, at = varint_at(address, stop)
    if at == 0 or tag < 8 or tag > 0xFFFFFFFF:  # field numbers start with 1
        return tag, at, np.int64(0)
    wire = tag & 7
    if wire == 0:
        end = varint_at(at, stop)[1]
        return tag, at, end
    if wire == 2:
        size, at = varint_at(at, stop)
        if at == 0 or size < 0 or size > stop - at:
            return tag, at, np.int64(0)
        return tag, at, at + size
    size = 8 if wire == 1 else 4
    if (wire != 1 and wire != 5) or stop - at < size:
        return tag, at, np.int64(0)
    return tag, at, at + size


@inlined
def count_varints(address, stop):
    """Number of packed varints, or -1 where one is malformed."""
    count, run = np.int64(0), np.int64(0)
    while address < stop:
        run += 1
        if load_u8(address) < 128:
            count += 1
            run = np.int64(0)
        elif run == 10:
            return np.int64(-1)
        address += 1
    return count if run == 0 else np.int64(-1)
