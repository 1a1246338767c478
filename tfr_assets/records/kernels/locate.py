"""Finds the features in tf.Examples and tf.SequenceExamples: where each list lies, without looking at the values.

A writer puts the same keys in the same order into every record, so that the next key is nearly always known. Where it
is not, it is looked for among all of them: any valid protobuf is understood, entries in any order and twice (the last
one counts), lists in several parts, unknown fields (but beside the key and value of an entry), sizes that are longer
than they need be.

`validate` walks records by itself: it must look at every field, also at those that are skipped here.
"""

import numpy as np

from tfr_assets.records.kernels.jit import (
    called,
    copy_bytes,
    fits_32,
    inlined,
    load_i64,
    load_u8,
    load_u16,
    load_u64,
    store_i64,
)
from tfr_assets.records.kernels.protobuf import field_at

# fields of a feature's line
(
    KEY,  # address of the key, readable up to a multiple of eight bytes
    KEY_SIZE,
    HEAD,  # address of what stands before a list, in `head_pattern`s
    TAG,  # of its kind's list in a Feature
    WANTED,  # 0: the feature is skipped
    REQUIRED,
    COUNT,  # values of every record; -1: it varies
    MULTIPLE,  # of which the number of values must be one
    FILL,  # bits of the number that stands for absent values, or address of the bytes
    FILL_SIZE,  # bytes of it; -1: nothing stands for them
    SEQUENCE,  # 1: a feature list; COUNT and MULTIPLE are then of a step, and what follows of steps
    ROWS,  # address of where each record's values, or steps, start (int64); 0: COUNT values each
    STEPS,  # feature lists: address of where each step's values start (int64); 0: COUNT values each
    VALUES,  # address of the numbers, of where each string starts (int64), or of the strings that TensorFlow takes
    DATA,  # address of the strings' bytes; 0 where TensorFlow takes them
    STEPS_ROOM,  # how many steps fit
    VALUES_ROOM,
    DATA_ROOM,
    STEPS_USED,
    VALUES_USED,
    DATA_USED,
    STEPS_NEED,  # how many must be free for the next block
    VALUES_NEED,
    DATA_NEED,
    FIELDS,
) = range(25)
LINE = FIELDS * 8

BLOCK = 256
"""Records at a time: what lies between finding and decoding stays in the second-level cache."""
STRIDE = BLOCK * 16 + 64
"""Bytes of a feature's spans, pairs of address and size; no power of two, which caches serve badly."""

# as `records.kernels.validate` counts them
OK, MALFORMED, OTHER_KIND, OTHER_COUNT, MISSING, EMPTY_STEP = 0, 1, 3, 4, 5, 7
NO_MEMORY = 255  # the decoder's own


def head_patterns(key: bytes, tag: int) -> np.ndarray:
    """Returns what a feature with one list of less than 128 bytes begins with, as `jit.fits_32` takes it.

        0a │size + key + 6│ 0a │key│ key … 12 │size + 2│ kind │size│ list

    Returns:
        uint8 of shape (n, 3, 32), for n times 32 bytes. It fits nothing if the key is too long for such a head.
    """
    head = np.frombuffer(bytes([0x0A, 0, 0x0A, len(key) & 127]) + key + bytes([0x12, 2, tag, 0]), np.uint8)
    rows = -(-head.size // 32)
    patterns = np.zeros((3, rows * 32), np.uint8)
    patterns[0, : head.size], patterns[2, : head.size] = head, 255
    patterns[0, 1] = len(key) + 6 & 127
    patterns[1, [1, head.size - 3, head.size - 1]] = 255
    return np.ascontiguousarray(patterns.reshape(3, rows, 32).swapaxes(0, 1))


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


@inlined
def _has_head(line, start, size, list_size):
    """Whether `size` bytes are what stands before a list of a feature. Reads up to 31 bytes beyond them."""
    head = line_field(line, HEAD)
    while fits_32(start, head, list_size):
        size -= 32
        if size <= 0:
            return True
        start += 32
        head += 96
    return False


@inlined
def _short_list(line, start, stop):
    """Size of the list of a feature's entry at `start`, if all sizes before it take one byte each; otherwise -1."""
    head_size = line_field(line, KEY_SIZE) + 8
    if stop - start < head_size:
        return np.int64(-1)
    list_size = np.int64(load_u8(start + head_size - 1))
    size = head_size + list_size
    if size < 130 and size <= stop - start and _has_head(line, start, head_size, list_size):
        return list_size
    return np.int64(-1)


@inlined
def _put_span(span, start, size):
    store_i64(span, start)
    store_i64(span + 8, size)


@called
def _find(table, features, first, start, size):
    """Index of the feature with this key, looked for from `first` on; -1 if there is none."""
    for k in range(features):
        index = first + k if first + k < features else first + k - features
        if _has_key(table + index * LINE, start, size):
            return index
    return np.int64(-1)


@inlined
def _joined(start, size, at, end, spare):
    """Address and size of a list with one more part, and the first spare byte: behind each other, parts are one."""
    if start == 0 or size == 0:
        return at, end - at, spare
    if start + size != spare:
        copy_bytes(spare, start, size)
        start = spare
        spare += size
    copy_bytes(spare, at, end - at)
    spare += end - at
    return start, spare - start, spare


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
            list_start, list_size, spare = _joined(list_start, list_size, at, end, spare)
        start = end
    return OK, list_start, list_size, spare


@called
def _entry(table, features, sequence, expected, spans, start, stop, spare):
    """Reads any valid entry: of Features, or (`sequence`) of FeatureLists.

    Returns:
        Problem; index of the feature, -1 where it was not asked for; the first spare byte.
    """
    key_start = key_size = np.int64(0)
    at = start
    while at < stop:
        tag, content, end = field_at(at, stop)
        if end == 0:
            return MALFORMED, np.int64(-1), spare
        if tag == 0x0A:
            key_start, key_size = content, end - content
        elif tag != 0x12:  # parsers of protobuf disagree on an entry with another field: whether it is one
            return MALFORMED, np.int64(-1), spare
        at = end
    index = _find(table, features, expected, key_start, key_size)
    if index >= 0 and line_field(table + index * LINE, SEQUENCE) != sequence:
        return OK, np.int64(-1), spare
    if index < 0 or not line_field(table + index * LINE, WANTED):
        return OK, index, spare
    list_start, list_size = start if sequence else np.int64(0), np.int64(0)  # without steps, a list is there, too
    at = start
    while at < stop:
        tag, content, end = field_at(at, stop)
        if tag == 0x12 and sequence:
            list_start, list_size, spare = _joined(list_start, list_size, content, end, spare)
        elif tag == 0x12:
            problem, list_start, list_size, spare = _list_of(
                line_field(table + index * LINE, TAG), content, end, list_start, list_size, spare
            )
            if problem:
                return problem, index, spare
        at = end
    _put_span(spans + index * STRIDE, list_start, list_size)
    return OK, index, spare


@inlined
def _features(table, features, sequence, spans, start, stop, spare):
    """Reads a Features message, or (`sequence`) FeatureLists; returns problem, feature and the first spare byte."""
    expected = np.int64(0)
    while start < stop:
        if expected >= features:
            expected = np.int64(0)
        line = table + expected * LINE
        is_short = not sequence and not line_field(line, SEQUENCE)
        list_size = _short_list(line, start, stop) if is_short else np.int64(-1)
        if list_size >= 0:
            at = start + line_field(line, KEY_SIZE) + 8
            _put_span(spans + expected * STRIDE, at, list_size)
            start = at + list_size
            expected += 1
            continue
        tag, at, end = field_at(start, stop)
        if end == 0:
            return MALFORMED, np.int64(-1), spare
        if tag == 0x0A:
            problem, index, spare = _entry(table, features, sequence, expected, spans, at, end, spare)
            if problem:
                return problem, index, spare
            expected = index + 1 if index >= 0 else expected
        start = end
    return OK, np.int64(-1), spare


@called
def locate(table, features, sequence, spans, start, stop, spare):
    """Finds the features of a record.

    Args:
        table: Address of a line per feature.
        features: Number of lines.
        sequence: Whether records are tf.SequenceExamples; of tf.Examples, the field of feature lists is an unknown one.
        spans: Address of the record's spans: for each feature STRIDE bytes further, address and size of its list. They
            are 0 where the record lacks the feature. What was skipped may be found or not.
        start: Address of the record; up to 32 bytes after its end must be readable.
        stop: Its end.
        spare: Room for lists that lie in parts, of the record's size at least.

    Returns:
        Problem, feature (-1: the record itself) and the first spare byte.
    """
    for index in range(features):
        _put_span(spans + index * STRIDE, 0, 0)
    while start < stop:
        tag, at, end = field_at(start, stop)
        if end == 0:
            return MALFORMED, np.int64(-1), spare
        if tag == 0x0A or (sequence and tag == 0x12):
            lists = np.int64(tag == 0x12)
            problem, index, spare = _features(table, features, lists, spans, at, end, spare)
            if problem:
                return problem, index, spare
        start = end
    for index in range(features):
        line = table + index * LINE
        if line_field(line, REQUIRED) and line_field(line, WANTED) and load_i64(spans + index * STRIDE) == 0:
            return MISSING, np.int64(index), spare
    return OK, np.int64(-1), spare


@called
def locate_block(table, features, sequence, spans, buffer, frames, rows, spare, bad):
    """Finds the features of a block of records: feature by feature, in the order that most records have them in.

    So nothing waits for what was found just before: one record's sizes say nothing of where another's features lie.
    Records that are otherwise, such as in another order, and tf.SequenceExamples are looked at one by one.

    Args:
        table: Address of a line per feature.
        features: Number of lines.
        sequence: As for `locate`.
        spans: Address of what happens to each feature, STRIDE bytes: pairs as `locate` has them, one per record. As
            many bytes after the last one's are used, too.
        buffer: Address of bytes; 32 more than the frames take must be readable.
        frames: Address of triples of int64 a record, of which the first two are start in the buffer and size.
        rows: Number of records, BLOCK at the most.
        spare: Room for as many bytes as the records take.
        bad: Address of an int64 a record, which becomes 0, or problem | feature << 8; nothing of that record is found.
    """
    places = spans + features * STRIDE  # where each record is read on, and its end
    for i in range(rows):
        start = buffer + load_i64(frames + i * 24)
        stop = start + load_i64(frames + i * 24 + 8)
        tag, at, end = field_at(start, stop)
        store_i64(places + i * 16, at if tag == 0x0A and end == stop and not sequence else np.int64(0))
        store_i64(places + i * 16 + 8, stop)
    for index in range(features):
        line = table + index * LINE
        head_size = line_field(line, KEY_SIZE) + 8
        absent = np.int64(0) if line_field(line, REQUIRED) and line_field(line, WANTED) else np.int64(-1)
        for i in range(rows):
            place = places + i * 16
            span = spans + index * STRIDE + i * 16
            at = load_i64(place)
            list_size = _short_list(line, at, load_i64(place + 8)) if at else np.int64(-1)
            if list_size >= 0:
                _put_span(span, at + head_size, list_size)
                store_i64(place, at + head_size + list_size)
            else:
                _put_span(span, 0, 0)
                store_i64(place, at & absent)
    for i in range(rows):
        problem, feature = np.int64(0), np.int64(0)
        stop = load_i64(places + i * 16 + 8)
        if load_i64(places + i * 16) != stop:
            start = buffer + load_i64(frames + i * 24)
            problem, feature, spare = locate(table, features, sequence, spans + i * 16, start, stop, spare)
            if problem:
                for index in range(features):
                    _put_span(spans + index * STRIDE + i * 16, 0, 0)
        store_i64(bad + i * 8, problem | feature << 8 if problem else 0)


@inlined
def is_short(start, size):
    """Whether a list of 2 to 129 bytes is one field and nothing else: a string, or packed numbers."""
    return np.int64(load_u16(start)) == 0x0A | (size - 2) << 8
