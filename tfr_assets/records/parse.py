"""Checks tf.Examples against a feature spec without TensorFlow and without decoding values.

As a protobuf parser does, it accepts entries in any order, packed and unpacked numbers, and skips unknown fields. It
then asks for what a spec promises: no feature but the known ones, each at most once and of its kind, the required ones
there, and as many values as the shape says.
"""

import math

import numpy as np

from tfr_assets.records.features import Feature, FeatureSpec, Kind
from tfr_assets.records.jit import address_of, called, inlined, kernel, load_i64, load_u8, store_i64, store_u8

# fields of a feature's line
KEY, KEY_SIZE, TAG, COUNT, MULTIPLE, REQUIRED, _FIELDS = range(7)
_LINE = _FIELDS * 8
_PROBLEMS = {
    1: "is no tf.Example",
    2: "has a feature that the spec does not know",
    3: "has feature {name!r} of another kind than {kind}",
    4: "has feature {name!r} with a number of values that does not fit its shape {shape}",
    5: "lacks feature {name!r}",
    6: "has feature {name!r} twice",
}
_OK, _MALFORMED, _UNKNOWN, _OTHER_KIND, _OTHER_COUNT, _MISSING, _TWICE = range(7)
_TAGS = {Kind.BYTES: 0x0A, Kind.FLOAT32: 0x12, Kind.INT64: 0x1A}


@inlined
def _varint(address, stop):
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
def _field(address, stop):
    """Tag, start and stop of the field at `address`; stop is 0 where it is malformed."""
    tag, at = _varint(address, stop)
    if at == 0 or tag < 8 or tag > 0xFFFFFFFF:  # field numbers start with 1
        return tag, at, np.int64(0)
    wire = tag & 7
    if wire == 0:
        end = _varint(at, stop)[1]
        return tag, at, end
    if wire == 2:
        size, at = _varint(at, stop)
        if at == 0 or size < 0 or size > stop - at:
            return tag, at, np.int64(0)
        return tag, at, at + size
    size = 8 if wire == 1 else 4
    if (wire != 1 and wire != 5) or stop - at < size:
        return tag, at, np.int64(0)
    return tag, at, at + size


@inlined
def _count_varints(address, stop):
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


@called
def _count_values(kind_tag, address, stop):
    """Number of values of a BytesList, FloatList or Int64List, or -1 where it is malformed."""
    count = np.int64(0)
    while address < stop:
        tag, start, end = _field(address, stop)
        if end == 0:
            return np.int64(-1)
        if tag == 0x0A:
            if kind_tag == 0x0A:
                count += 1
            elif kind_tag == 0x12:
                if (end - start) % 4:
                    return np.int64(-1)
                count += (end - start) // 4
            else:
                packed = _count_varints(start, end)
                if packed < 0:
                    return np.int64(-1)
                count += packed
        elif (kind_tag == 0x12 and tag == 0x0D) or (kind_tag == 0x1A and tag == 0x08):
            count += 1
        address = end
    return count


@inlined
def _is_key(line, start, size):
    if load_i64(line + KEY_SIZE * 8) != size:
        return False
    key = load_i64(line + KEY * 8)
    for k in range(size):
        if load_u8(key + k) != load_u8(start + k):
            return False
    return True


@called
def _find(table, features, expected, start, size):
    """Index of the feature with this key, the expected one tried first; -1 if there is none."""
    if expected < features and _is_key(table + expected * _LINE, start, size):
        return expected
    for index in range(features):
        if _is_key(table + index * _LINE, start, size):
            return index
    return np.int64(-1)


@called
def _check_entry(table, features, expected, seen, start, stop):
    """Problem and feature index of one entry of Features."""
    key_start = key_stop = value_start = value_stop = np.int64(0)
    while start < stop:
        tag, at, end = _field(start, stop)
        if end == 0:
            return _MALFORMED, np.int64(-1)
        if tag == 0x0A:
            key_start, key_stop = at, end
        elif tag == 0x12:
            value_start, value_stop = at, end
        start = end
    index = _find(table, features, expected, key_start, key_stop - key_start)
    if index < 0:
        return _UNKNOWN, index
    if load_u8(seen + index):
        return _TWICE, index
    line = table + index * _LINE
    while value_start < value_stop:
        tag, at, end = _field(value_start, value_stop)
        if end == 0:
            return _MALFORMED, index
        if tag == 0x0A or tag == 0x12 or tag == 0x1A:
            if tag != load_i64(line + TAG * 8):
                return _OTHER_KIND, index
            count = _count_values(tag, at, end)
            if count < 0:
                return _MALFORMED, index
            wanted, multiple = load_i64(line + COUNT * 8), load_i64(line + MULTIPLE * 8)
            if (wanted >= 0 and count != wanted) or count % multiple:
                return _OTHER_COUNT, index
            store_u8(seen + index, np.uint8(1))
        value_start = end
    return _OK, index


@called
def _check_example(table, features, seen, start, stop):
    for index in range(features):
        store_u8(seen + index, np.uint8(0))
    expected = np.int64(0)
    while start < stop:
        tag, at, end = _field(start, stop)
        if end == 0:
            return _MALFORMED, np.int64(-1)
        if tag == 0x0A:
            entry = at
            while entry < end:
                entry_tag, entry_at, entry_end = _field(entry, end)
                if entry_end == 0:
                    return _MALFORMED, np.int64(-1)
                if entry_tag == 0x0A:
                    problem, index = _check_entry(table, features, expected, seen, entry_at, entry_end)
                    if problem:
                        return problem, index
                    expected = index + 1
                entry = entry_end
        start = end
    for index in range(features):
        if load_i64(table + index * _LINE + REQUIRED * 8) and not load_u8(seen + index):
            return _MISSING, np.int64(index)
    return _OK, np.int64(-1)


@kernel("int64(int64, int64, int64, int64, int64, int64, int64, int64)")
def _check(table, features, seen, buffer, frames, count, problems, max_problems):
    """Writes triples (index in `frames`, problem, feature) to `problems`; returns the number of all that there are."""
    found = np.int64(0)
    for i in range(count):
        start = buffer + load_i64(frames + i * 24)
        problem, index = _check_example(table, features, seen, start, start + load_i64(frames + i * 24 + 8))
        if problem:
            if found < max_problems:
                store_i64(problems + found * 24, i)
                store_i64(problems + found * 24 + 8, problem)
                store_i64(problems + found * 24 + 16, index)
            found += 1
    return found


class FeatureChecker:
    """Checks the records that a scan visits.

    Attributes:
        problems: Record index, offset of its payload in the stream, and description of the first that do not fit.
        count: Number of all that do not.
    """

    def __init__(self, spec: FeatureSpec, max_problems: int = 100) -> None:
        self._spec = spec
        self._keys = [np.frombuffer(f.name.encode() + b"\0", np.uint8) for f in spec.features]
        self._table = np.array(
            [_line(f, key) for f, key in zip(spec.features, self._keys, strict=True)], np.int64
        ).reshape(-1, _FIELDS)
        self._seen = np.zeros(len(spec.features) + 1, np.uint8)
        self._raw = np.empty((max_problems, 3), np.int64)
        self.problems: list[tuple[int, int, str]] = []
        self.count = 0

    def visit(self, buffer: np.ndarray, frames: np.ndarray, offset: int) -> None:
        """Checks the payloads of some frames; see `records.scan.FrameVisitor`."""
        found = _check(
            address_of(self._table), len(self._table), address_of(self._seen),
            address_of(buffer), address_of(frames), len(frames),
            address_of(self._raw), len(self._raw),
        )  # fmt: skip
        self.count += found
        room = len(self._raw) - len(self.problems)
        for i, problem, index in self._raw[: min(found, room)].tolist():
            start, _, record = frames[i].tolist()
            self.problems.append((record, offset + start, self._describe(problem, index)))

    def _describe(self, problem: int, index: int) -> str:
        if index < 0:
            return _PROBLEMS[problem]
        feature = self._spec.features[index]
        return _PROBLEMS[problem].format(name=feature.name, kind=feature.kind.value, shape=list(feature.shape))


def _line(feature: Feature, key: np.ndarray) -> list[int]:
    varying = None in feature.shape
    return [
        address_of(key),
        key.size - 1,
        _TAGS[feature.kind],
        -1 if varying else math.prod(size for size in feature.shape if size is not None),
        max(1, math.prod(size for size in feature.shape if size is not None)) if varying else 1,
        int(not feature.optional),
    ]
