"""CRC32C, the Castagnoli checksum (RFC 3720, polynomial 0x1EDC6F41, reflected), and TFRecord's mask of it.

Two kernels give the same result: one made of the CPU's own instruction, and a table of eight bytes per step ("slicing
by 8") for CPUs without. `TFR_CRC32C=portable` in the environment chooses the table, for tests and comparisons.
"""

import numpy as np

from tfr_assets.records.kernels.jit import (
    PORTABLE,
    address_of,
    called,
    crc_u8,
    crc_u64,
    inlined,
    kernel,
    load_u8,
    load_u32,
    load_u64,
)

MASK_DELTA = 0xA282EAD8
_REFLECTED_POLYNOMIAL = 0x82F63B78


def _tables() -> np.ndarray:
    """Returns eight tables of 256 entries; table k advances a byte over k more zero bytes."""
    tables = np.zeros((8, 256), np.uint32)
    entries = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        entries = np.where(entries & 1, (entries >> 1) ^ np.uint32(_REFLECTED_POLYNOMIAL), entries >> 1)
    tables[0] = entries
    for k in range(1, 8):
        tables[k] = (tables[k - 1] >> 8) ^ tables[0][tables[k - 1] & 0xFF]
    return tables


_TABLES = _tables()


@called
def _more_by_table(before, address, size):
    """CRC32C of what has the CRC32C `before` and of `size` bytes at `address` after it: eight look-ups for eight."""
    crc = np.uint32(before ^ np.uint32(0xFFFFFFFF))
    stop = address + size
    while address + 8 <= stop:
        low = crc ^ load_u32(address)
        high = load_u32(address + 4)
        crc = (
            _TABLES[7, low & 0xFF] ^ _TABLES[6, (low >> 8) & 0xFF]
            ^ _TABLES[5, (low >> 16) & 0xFF] ^ _TABLES[4, low >> 24]
            ^ _TABLES[3, high & 0xFF] ^ _TABLES[2, (high >> 8) & 0xFF]
            ^ _TABLES[1, (high >> 16) & 0xFF] ^ _TABLES[0, high >> 24]
        )  # fmt: skip
        address += 8
    while address < stop:
        crc = (crc >> np.uint32(8)) ^ _TABLES[0, (crc ^ load_u8(address)) & 0xFF]
        address += 1
    return np.uint32(crc ^ np.uint32(0xFFFFFFFF))


@called
def crc_by_table(address, size):
    """CRC32C of `size` bytes at `address`."""
    return _more_by_table(np.uint32(0), address, size)


@inlined
def _finish(crc, address, stop):
    """Folds the bytes from `address` to `stop` into the state of the instruction, and inverts it."""
    while address + 8 <= stop:
        crc = crc_u64(crc, load_u64(address))
        address += 8
    while address < stop:
        crc = crc_u8(crc, load_u8(address))
        address += 1
    return np.uint32(crc ^ np.uint64(0xFFFFFFFF))


@called
def crc_by_instruction(address, size):
    """CRC32C of `size` bytes at `address` with the CPU's instruction, eight bytes each."""
    crc = np.uint64(0xFFFFFFFF)
    stop = address + size
    while address + 32 <= stop:
        crc = crc_u64(crc, load_u64(address))
        crc = crc_u64(crc, load_u64(address + 8))
        crc = crc_u64(crc, load_u64(address + 16))
        crc = crc_u64(crc, load_u64(address + 24))
        address += 32
    return _finish(crc, address, stop)


@called
def _more_by_instruction(before, address, size):
    """Does what `_more_by_table` does, eight bytes with one instruction."""
    return _finish(np.uint64(before ^ np.uint32(0xFFFFFFFF)), address, address + size)


@inlined
def _four_by_instruction(a, a_size, b, b_size, c, c_size, d, d_size):
    crc_a = crc_b = crc_c = crc_d = np.uint64(0xFFFFFFFF)
    common = min(min(a_size, b_size), min(c_size, d_size)) & ~7
    done = np.int64(0)
    while done < common:
        crc_a = crc_u64(crc_a, load_u64(a + done))
        crc_b = crc_u64(crc_b, load_u64(b + done))
        crc_c = crc_u64(crc_c, load_u64(c + done))
        crc_d = crc_u64(crc_d, load_u64(d + done))
        done += 8
    return (
        _finish(crc_a, a + done, a + a_size),
        _finish(crc_b, b + done, b + b_size),
        _finish(crc_c, c + done, c + c_size),
        _finish(crc_d, d + done, d + d_size),
    )


@inlined
def _four_by_table(a, a_size, b, b_size, c, c_size, d, d_size):
    return crc_by_table(a, a_size), crc_by_table(b, b_size), crc_by_table(c, c_size), crc_by_table(d, d_size)


crc_at = crc_by_table if PORTABLE else crc_by_instruction
_more = _more_by_table if PORTABLE else _more_by_instruction
_crcs_at = _four_by_table if PORTABLE else _four_by_instruction


@inlined
def masked(crc):
    """A CRC as it stands in a file: rotated right by 15 bits, plus a constant."""
    rotated = (crc >> np.uint32(15)) | (crc << np.uint32(17))
    return np.uint32(rotated + np.uint32(MASK_DELTA))


@inlined
def masked_crc_at(address, size):
    """The masked CRC of `size` bytes at `address`."""
    return masked(crc_at(address, size))


@inlined
def masked_crcs_at(a, a_size, b, b_size, c, c_size, d, d_size):
    """The masked CRCs of four stretches of memory.

    The instruction gives its result three cycles after it starts but can start every cycle, so that four at once cost
    hardly more than one, if they are of about the same size.
    """
    crc_a, crc_b, crc_c, crc_d = _crcs_at(a, a_size, b, b_size, c, c_size, d, d_size)
    return masked(crc_a), masked(crc_b), masked(crc_c), masked(crc_d)


@kernel("uint32(uint32, int64, int64)")
def _crc(before, address, size):
    return _more(before, address, size)


@kernel("uint32(int64, int64)")
def _masked_crc(address, size):
    return masked_crc_at(address, size)


@kernel("void(int64, int64[::1], uint32[::1])")
def _crcs(address, offsets, crcs):
    count = crcs.size
    for index in range(0, count - 3, 4):
        a, b, c, d, end = (
            offsets[index], offsets[index + 1], offsets[index + 2], offsets[index + 3], offsets[index + 4]
        )  # fmt: skip
        crcs[index], crcs[index + 1], crcs[index + 2], crcs[index + 3] = _crcs_at(
            address + a, b - a, address + b, c - b, address + c, d - c, address + d, end - d
        )
    for index in range(count - count % 4, count):
        crcs[index] = crc_at(address + offsets[index], offsets[index + 1] - offsets[index])


def crc32c_each(data: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Returns the CRC32C of each stretch of memory between two offsets: uint32 of shape (n,).

    Args:
        data: uint8.
        offsets: int64 of shape (n + 1,), ascending, the last at most the size of `data`.
    """
    crcs = np.empty(offsets.size - 1, np.uint32)
    _crcs(address_of(data), offsets, crcs)
    return crcs


def crc32c(data: bytes | bytearray | memoryview | np.ndarray, before: int = 0) -> int:
    """Returns the CRC32C of `data`, or of what has the CRC32C `before` and of `data` after it."""
    view = np.frombuffer(data, np.uint8)
    return int(_crc(np.uint32(before), address_of(view), view.size))


def masked_crc32c(data: bytes | bytearray | memoryview | np.ndarray) -> int:
    """Returns the CRC32C of `data`, masked as TFRecord stores it."""
    view = np.frombuffer(data, np.uint8)
    return int(_masked_crc(address_of(view), view.size))
