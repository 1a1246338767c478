"""What protobuf messages are made of: varints, fields, sizes, bytes.

Reading never goes beyond a message's end; writing may run over by up to 32 bytes.
"""

import numpy as np

from tfr_assets.records.kernels.jit import copy_32, copy_bytes, inlined, leading_zeros, load_u8, store_u8, store_u64


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
