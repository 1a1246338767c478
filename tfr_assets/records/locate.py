"""Finds the features in tf.Examples: where each value list lies, without looking at the values.

A writer puts the same keys in the same order into every record, so that the next key is nearly always known. Where it
is not, it is looked for among all of them: any valid protobuf is understood, entries in any order and twice (the last
one counts), lists in several parts, unknown fields, sizes that are longer than they need be.
"""

import numpy as np

from tfr_assets.records.fields import field_at
from tfr_assets.records.jit import called, copy_bytes, inlined, load_i64, load_u8, load_u64, store_i64

# fields of a feature's line
(
    KEY,  # address of the key, readable up to a multiple of eight bytes
    KEY_SIZE,
    TAG,  # of its kind's list in a Feature
    WANTED,  # 0: the feature is passed over
    REQUIRED,
    COUNT,  # values of every record; -1: it varies
    MULTIPLE,  # of which the number of values must be one
    FILL,  # bits of the number that stands for absent values, or address of the bytes
    FILL_SIZE,  # bytes of it; -1: nothing stands for them
    ROWS,  # address of where each record's values start (int64); 0: COUNT values each
    VALUES,  # address of the numbers, or of where each string starts (int64)
    DATA,  # address of the strings' bytes
    VALUES_ROOM,  # how many values fit
    DATA_ROOM,
    VALUES_USED,
    DATA_USED,
    VALUES_NEED,  # how many must be free for the next block
    DATA_NEED,
    FIELDS,
) = range(19)
LINE = FIELDS * 8

BLOCK = 256
"""Records at a time: what lies between finding and decoding stays in the second-level cache."""
STRIDE = BLOCK * 16 + 64
"""Bytes of a feature's spans, pairs of address and size; no power of two, which caches serve badly."""

OK, MALFORMED, OTHER_KIND, OTHER_COUNT, MISSING = 0, 1, 3, 4, 5  # as `records.parse` counts them


@inlined
def line_field(line, name):
    """A field of the line at address `line`."""
    return load_i64(line + name * 8)


@inlined
def _has_key(line, start, size):
    """Whether a feature has this key. Reads up to seven bytes beyond both."""
    if line_field(line, KEY_SIZE) != size:
        return False
    key = line_field(line, KEY)
    while size >= 8:
        if load_u64(key) != load_u64(start):
            return False
        key += 8
        start += 8
        size -= 8
    return size == 0 or (load_u64(key) ^ load_u64(start)) << np.uint64(64 - 8 * size) == 0


@called
def _find(table, features, first, start, size):
    """Index of the feature with this key, looked for from `first` on; -1 if there is none."""
    for k in range(features):
        index = first + k if first + k < features else first + k - features
        if _has_key(table + index * LINE, start, size):
            return index
    return np.int64(-1)


@called
def _list_of(tag, start, stop, list_start, list_size, spare):
    """Reads a Feature, or the next part of one.

    Returns:
        Problem; address and size of its list, 0 where it has none; the first spare byte.
    """
    while start < stop:
        found, at, end = field_at(start, stop)
        if end == 0:
            return MALFORMED, list_start, list_size, spare
        if found == 0x0A or found == 0x12 or found == 0x1A:
            if found != tag:
                return OTHER_KIND, list_start, list_size, spare
            if list_start == 0 or list_size == 0:
                list_start, list_size = at, end - at
            else:  # behind each other, two parts are what protobuf takes for one
                if list_start + list_size != spare:
                    copy_bytes(spare, list_start, list_size)
                    list_start = spare
                    spare += list_size
                copy_bytes(spare, at, end - at)
                spare += end - at
                list_size = spare - list_start
        start = end
    return OK, list_start, list_size, spare


@called
def _entry(table, features, expected, spans, start, stop, spare):
    """Reads any valid entry.

    Returns:
        Problem; index of the feature, -1 where nobody asked for it; the first spare byte.
    """
    key_start = key_size = np.int64(0)
    at = start
    while at < stop:
        tag, content, end = field_at(at, stop)
        if end == 0:
            return MALFORMED, np.int64(-1), spare
        if tag == 0x0A:
            key_start, key_size = content, end - content
        at = end
    index = _find(table, features, expected, key_start, key_size)
    if index < 0 or not line_field(table + index * LINE, WANTED):
        return OK, index, spare
    list_start = list_size = np.int64(0)
    at = start
    while at < stop:
        tag, content, end = field_at(at, stop)
        if tag == 0x12:
            problem, list_start, list_size, spare = _list_of(
                line_field(table + index * LINE, TAG), content, end, list_start, list_size, spare
            )
            if problem:
                return problem, index, spare
        at = end
    store_i64(spans + index * STRIDE, list_start)
    store_i64(spans + index * STRIDE + 8, list_size)
    return OK, index, spare


@inlined
def _features(table, features, spans, start, stop, spare):
    """Reads a Features message; returns problem, feature and the first spare byte."""
    expected = np.int64(0)
    while start < stop:
        if expected >= features:
            expected = np.int64(0)
        line = table + expected * LINE
        key_size = line_field(line, KEY_SIZE)
        if stop - start >= key_size + 8:
            # 0a │size│ 0a │size│ key 12 │size│ kind │size│ list, all sizes below 128 and all of them consistent
            head = load_u64(start)
            size = np.int64(head >> np.uint64(8)) & 0xFF
            ahead = load_u64(start + 4 + key_size)
            list_size = size - key_size - 6
            if (
                head & np.uint64(0xFFFF80FF) == np.uint64(0x0A000A) | np.uint64(key_size) << np.uint64(24)
                and key_size < 128
                and list_size >= 0
                and start + 2 + size <= stop
                and ahead & np.uint64(0xFFFFFFFF)
                == np.uint64(0x12 | (list_size + 2) << 8 | line_field(line, TAG) << 16 | list_size << 24)
                and _has_key(line, start + 4, key_size)
            ):
                store_i64(spans + expected * STRIDE, start + 8 + key_size)
                store_i64(spans + expected * STRIDE + 8, list_size)
                start += size + 2
                expected += 1
                continue
        tag, at, end = field_at(start, stop)
        if end == 0:
            return MALFORMED, np.int64(-1), spare
        if tag == 0x0A:
            problem, index, spare = _entry(table, features, expected, spans, at, end, spare)
            if problem:
                return problem, index, spare
            expected = index + 1 if index >= 0 else expected
        start = end
    return OK, np.int64(-1), spare


@called
def locate(table, features, spans, start, stop, spare):
    """Finds the features of a record.

    Args:
        table: Address of a line a feature.
        features: Number of lines.
        spans: Address of the record's spans: for each feature STRIDE bytes further, address and size of its list. The
            address is 0 where the record lacks the feature. What was passed over may be found or not.
        start: Address of the tf.Example; up to 32 bytes behind its end must be readable.
        stop: Its end.
        spare: Room for lists that lie in parts, of the record's size at least.

    Returns:
        Problem, feature (-1: the record itself) and the first spare byte.
    """
    for index in range(features):
        store_i64(spans + index * STRIDE, 0)
    while start < stop:
        tag, at, end = field_at(start, stop)
        if end == 0:
            return MALFORMED, np.int64(-1), spare
        if tag == 0x0A:
            problem, index, spare = _features(table, features, spans, at, end, spare)
            if problem:
                return problem, index, spare
        start = end
    for index in range(features):
        line = table + index * LINE
        if line_field(line, REQUIRED) and line_field(line, WANTED) and load_i64(spans + index * STRIDE) == 0:
            return MISSING, np.int64(index), spare
    return OK, np.int64(-1), spare


@inlined
def is_short(start, size):
    """Whether a list is one field of less than 128 bytes and nothing else: a string, or packed numbers."""
    return 2 <= size < 130 and load_u8(start) == 0x0A and np.int64(load_u8(start + 1)) == size - 2
