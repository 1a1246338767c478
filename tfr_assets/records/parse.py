"""Checks tf.Examples and tf.SequenceExamples against a feature spec without TensorFlow and without decoding values.

As a protobuf parser does, it accepts entries in any order, packed and unpacked numbers, and skips unknown fields. It
then asks for what a spec promises: no feature but the known ones, each at most once and of its kind, the required ones
there, in the context or as a feature list, and as many values as the shape says, in every step.
"""

import numpy as np

from tfr_assets.records.features import Feature, FeatureSpec, Kind
from tfr_assets.records.fields import count_varints, field_at
from tfr_assets.records.jit import address_of, called, inlined, kernel, load_i64, load_u8, store_i64, store_u8

# fields of a feature's line
KEY, KEY_SIZE, TAG, COUNT, MULTIPLE, REQUIRED, SEQUENCE, _FIELDS = range(8)
_LINE = _FIELDS * 8
_PROBLEMS = {
    1: "is no {message}",
    2: "has a feature that the spec does not know",
    3: "has feature {name!r} of another kind than {kind}",
    4: "has feature {name!r} with a number of values that does not fit its shape {shape}",
    5: "lacks feature {name!r}",
    6: "has feature {name!r} twice",
    7: "has feature list {name!r} with a step that holds no list",
}
_OK, _MALFORMED, _UNKNOWN, _OTHER_KIND, _OTHER_COUNT, _MISSING, _TWICE, _EMPTY_STEP = range(8)
_TAGS = {Kind.BYTES: 0x0A, Kind.FLOAT32: 0x12, Kind.INT64: 0x1A}


@called
def count_values(kind_tag, address, stop):
    """Number of values of a BytesList, FloatList or Int64List, or -1 where it is malformed."""
    count = np.int64(0)
    while address < stop:
        tag, start, end = field_at(address, stop)
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
                packed = count_varints(start, end)
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
def _check_feature(line, start, stop):
    """Problem of a Feature, and whether it holds a list at all."""
    found = False
    while start < stop:
        tag, at, end = field_at(start, stop)
        if end == 0:
            return _MALFORMED, found
        if tag == 0x0A or tag == 0x12 or tag == 0x1A:
            if tag != load_i64(line + TAG * 8):
                return _OTHER_KIND, found
            count = count_values(tag, at, end)
            if count < 0:
                return _MALFORMED, found
            wanted, multiple = load_i64(line + COUNT * 8), load_i64(line + MULTIPLE * 8)
            if (wanted >= 0 and count != wanted) or count % multiple:
                return _OTHER_COUNT, found
            found = True
        start = end
    return _OK, found


@called
def _check_steps(line, start, stop):
    """Problem of a FeatureList: every step is a Feature that holds a list."""
    while start < stop:
        tag, at, end = field_at(start, stop)
        if end == 0:
            return _MALFORMED
        if tag == 0x0A:
            problem, found = _check_feature(line, at, end)
            if problem:
                return problem
            if not found:
                return _EMPTY_STEP
        start = end
    return _OK


@called
def _check_entry(table, features, sequence, expected, seen, start, stop):
    """Problem and feature index of one entry: of Features, or (`sequence`) of FeatureLists."""
    key_start = key_stop = value_start = value_stop = np.int64(0)
    while start < stop:
        tag, at, end = field_at(start, stop)
        if end == 0:
            return _MALFORMED, np.int64(-1)
        if tag == 0x0A:
            key_start, key_stop = at, end
        elif tag == 0x12:
            value_start, value_stop = at, end
        start = end
    index = _find(table, features, expected, key_start, key_stop - key_start)
    if index < 0 or load_i64(table + index * _LINE + SEQUENCE * 8) != sequence:
        return _UNKNOWN, np.int64(-1)
    if load_u8(seen + index):
        return _TWICE, index
    line = table + index * _LINE
    if sequence:
        problem, there = _check_steps(line, value_start, value_stop), True  # without steps it is there, too
    else:
        problem, there = _check_feature(line, value_start, value_stop)
    if there:
        store_u8(seen + index, np.uint8(1))
    return problem, index


@called
def _check_entries(table, features, sequence, seen, start, stop):
    """Problem and feature index of Features or FeatureLists: the first there is."""
    expected = np.int64(0)
    while start < stop:
        tag, at, end = field_at(start, stop)
        if end == 0:
            return _MALFORMED, np.int64(-1)
        if tag == 0x0A:
            problem, index = _check_entry(table, features, sequence, expected, seen, at, end)
            if problem:
                return problem, index
            expected = index + 1
        start = end
    return _OK, np.int64(-1)


@called
def _check_record(table, features, sequence, seen, start, stop):
    for index in range(features):
        store_u8(seen + index, np.uint8(0))
    while start < stop:
        tag, at, end = field_at(start, stop)
        if end == 0:
            return _MALFORMED, np.int64(-1)
        if tag == 0x0A or (sequence and tag == 0x12):
            problem, index = _check_entries(table, features, np.int64(tag == 0x12), seen, at, end)
            if problem:
                return problem, index
        start = end
    for index in range(features):
        if load_i64(table + index * _LINE + REQUIRED * 8) and not load_u8(seen + index):
            return _MISSING, np.int64(index)
    return _OK, np.int64(-1)


@kernel("int64(int64, int64, int64, int64, int64, int64, int64, int64, int64)")
def _check(table, features, sequence, seen, buffer, frames, count, problems, max_problems):
    """Writes triples (index in `frames`, problem, feature) to `problems`; returns the number of all that there are."""
    found = np.int64(0)
    for i in range(count):
        start = buffer + load_i64(frames + i * 24)
        problem, index = _check_record(table, features, sequence, seen, start, start + load_i64(frames + i * 24 + 8))
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
            address_of(self._table), len(self._table), int(self._spec.sequence), address_of(self._seen),
            address_of(buffer), address_of(frames), len(frames),
            address_of(self._raw), len(self._raw),
        )  # fmt: skip
        self.count += found
        room = len(self._raw) - len(self.problems)
        for i, problem, index in self._raw[: min(found, room)].tolist():
            start, _, record = frames[i].tolist()
            self.problems.append((record, offset + start, describe_problem(self._spec, problem, index)))


def describe_problem(spec: FeatureSpec, problem: int, index: int) -> str:
    """Returns a kernel's finding in words: the problem with the feature of that index, or (-1) with the record."""
    if index < 0:
        return _PROBLEMS[problem].format(message=spec.message)
    feature = spec.features[index]
    return _PROBLEMS[problem].format(
        name=feature.name, kind=feature.kind.value, shape=list(feature.value_shape), message=spec.message
    )


def _line(feature: Feature, key: np.ndarray) -> list[int]:
    varying = None in feature.value_shape
    return [
        address_of(key),
        key.size - 1,
        _TAGS[feature.kind],
        -1 if varying else feature.size,
        max(1, feature.size) if varying else 1,
        int(not feature.optional),
        int(feature.sequence),
    ]
