"""The digest of a sequence of records: 64 bits over each record's length and CRC, in order.

    digest = Σ mix(length, crc) · B^(records after it)   mod 2^64

Writing and verifying have both numbers at hand, so it costs nothing, and the digest of a concatenation follows from the
parts (`combine`): a merge knows what it must get before it copies. It guards against damage and mix-ups, not against
forgers.
"""

import numpy as np

from tfr_assets.records.kernels.jit import address_of, inlined, kernel, load_i64, load_u32

_BASE = 0x9E3779B97F4A7C15  # odd, so that no factor is ever lost mod 2^64
_MASK = 2**64 - 1


@inlined
def fold(digest, length, masked_crc):
    """Appends one record to a digest; the mixing is splitmix64's finalizer."""
    z = (np.uint64(length) << np.uint64(32)) ^ np.uint64(masked_crc)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.uint64(digest * np.uint64(_BASE) + (z ^ (z >> np.uint64(31))))


@kernel("uint64(uint64, int64, int64, int64)")
def _fold_frames(digest, data, sizes, count):
    for i in range(count):
        size = load_i64(sizes + i * 8)
        digest = fold(digest, size - 16, load_u32(data + size - 4))
        data += size
    return digest


def digest_frames(digest: int, data: memoryview, sizes: np.ndarray) -> int:
    """Appends whole frames to a digest.

    Args:
        digest: What came before; 0 for nothing.
        data: Consecutive frames.
        sizes: int64 of shape (records,): their sizes.
    """
    frames = np.frombuffer(data, np.uint8)
    return int(_fold_frames(np.uint64(digest), address_of(frames), address_of(sizes), sizes.size))


def combine(first: int, second: int, records_of_second: int) -> int:
    """Returns the digest of a concatenation from its parts' digests."""
    return (first * pow(_BASE, records_of_second, 2**64) + second) & _MASK


def second_part(whole: int, first: int, records_of_second: int) -> int:
    """Returns the digest of the second part of a concatenation from those of the whole and of the first part."""
    return (whole - combine(first, 0, records_of_second)) & _MASK


def to_text(digest: int) -> str:
    """Returns a digest as a manifest holds it: 16 hex digits."""
    return f"{digest:016x}"


def lost_record(whole: int, before: int, rest: int, after: int) -> tuple[int, int]:
    """Returns length and masked CRC of the one record that is lacking.

    Args:
        whole: Digest over all records.
        before: Digest over those before the lost one.
        rest: Digest over all but the lost one.
        after: Number of records after it.
    """
    behind = pow(_BASE, after, 2**64)
    z = (whole - rest - before * (_BASE - 1) * behind) * pow(behind, -1, 2**64) & _MASK
    z = _undo_shift(z, 31) * pow(0x94D049BB133111EB, -1, 2**64) & _MASK
    z = _undo_shift(z, 27) * pow(0xBF58476D1CE4E5B9, -1, 2**64) & _MASK
    z = _undo_shift(z, 30)
    return z >> 32, z & 0xFFFFFFFF


def _undo_shift(mixed: int, bits: int) -> int:
    """Returns z of `z ^ (z >> bits)`."""
    z = mixed
    for _ in range(64 // bits):
        z = mixed ^ (z >> bits)
    return z
