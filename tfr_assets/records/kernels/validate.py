"""Checks tf.Examples and tf.SequenceExamples against a feature spec without TensorFlow and without decoding values.

As a protobuf parser does, it accepts entries in any order, packed and unpacked numbers, and skips unknown fields; not
those beside the key and value of an entry, for which TensorFlow refuses the record, and Python drops the entry. It then
asks for what a spec promises: no feature but the known ones, each at most once and of its kind, the required ones
there, in the context or as a feature list, and as many values as the shape says, in every step. Row lengths of ragged
columns must add up to what they divide, level by level, and sizes of a tensor must give its number of values: the sums
and products stay at a limit instead of wrapping around.
"""

import numpy as np

from tfr_assets.records.kernels.jit import address_of, called, inlined, kernel, load_i64, load_u8, store_i64
from tfr_assets.records.kernels.protobuf import count_varints, field_at, varint_at
from tfr_assets.records.kernels.row_lengths import counted_by
from tfr_assets.records.schema.features import Feature, FeatureSpec, Kind

# fields of a feature's line
(
    KEY,
    KEY_SIZE,
    TAG,
    COUNT,  # values of every record; -1: it varies
    MULTIPLE,  # of which the number of values must be one
    REQUIRED,
    SEQUENCE,
    INNER,  # of row lengths and sizes: index of the feature whose number of values they give; -1: not one of these
    IS_SUM,  # whether they give it by their sum; otherwise by their product
    _FIELDS,
) = range(10)
_LINE = _FIELDS * 8

# what is kept of each feature of the record that is checked: whether it is there, its number of values, and the sum or
# product of these
_SEEN, _VALUES, _TOTAL, _STATE = range(4)
_MOST = 1 << 61  # sums and products end here: more than any record has values
_INVALID = -1  # the total of values of which one is negative
_PROBLEMS = {
    1: "is no {message}",
    2: "has a feature that the spec does not know",
    3: "has feature {name!r} of another kind than {kind}",
    4: "has feature {name!r} with a number of values that does not fit its shape {shape}",
    5: "lacks feature {name!r}",
    6: "has feature {name!r} twice",
    7: "has feature list {name!r} with a step that holds no list",
    8: "has lists in {base!r} whose lengths do not add up to its number of values: feature {name!r}",
    9: "has feature {name!r} whose sizes do not give the number of values of {base!r}",
}
_OK, _MALFORMED, _UNKNOWN, _OTHER_KIND, _OTHER_COUNT, _MISSING, _TWICE, _EMPTY_STEP, _LENGTHS, _SIZES = range(10)
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


@inlined
def _with(total, value, is_sum):
    """The sum or product of what came before and one more value; never negative but for _INVALID."""
    if total < 0 or value < 0:
        return np.int64(_INVALID)
    value = min(value, np.int64(_MOST))
    if is_sum:
        return min(total + value, np.int64(_MOST))
    if value and total > _MOST // value:
        return np.int64(_MOST)
    return total * value


@called
def _total(line, total, address, stop):
    """The sum or product of the values of an Int64List that is known to be valid, and of what came before."""
    is_sum = load_i64(line + IS_SUM * 8)
    while address < stop:
        tag, at, end = field_at(address, stop)
        if tag == 0x0A or tag == 0x08:
            while at < end:
                value, at = varint_at(at, end)
                total = _with(total, value, is_sum)
        address = end
    return total


@called
def _read_feature(line, start, stop, found, count, total):
    """Adds a Feature, or a part of one, to what is known: problem, whether it holds a list, values, and their total."""
    while start < stop:
        tag, at, end = field_at(start, stop)
        if end == 0:
            return _MALFORMED, found, count, total
        if tag == 0x0A or tag == 0x12 or tag == 0x1A:
            if tag != load_i64(line + TAG * 8):
                return _OTHER_KIND, found, count, total
            values = count_values(tag, at, end)
            if values < 0:
                return _MALFORMED, found, count, total
            found = True
            count += values
            if load_i64(line + INNER * 8) >= 0:
                total = _total(line, total, at, end)
        start = end
    return _OK, found, count, total


@inlined
def _has_shape(line, count):
    """Whether a feature's shape allows so many values."""
    wanted = load_i64(line + COUNT * 8)
    return (wanted < 0 or count == wanted) and count % load_i64(line + MULTIPLE * 8) == 0


@called
def _check_steps(line, start, stop):
    """Problem of a FeatureList: every step is a Feature that holds a list."""
    while start < stop:
        tag, at, end = field_at(start, stop)
        if end == 0:
            return _MALFORMED
        if tag == 0x0A:
            problem, found, count, _ = _read_feature(line, at, end, False, np.int64(0), np.int64(0))
            if problem:
                return problem
            if not found:
                return _EMPTY_STEP
            if not _has_shape(line, count):
                return _OTHER_COUNT
        start = end
    return _OK


@called
def _check_values(line, state, start, stop):
    """Problem of an entry of Features, whose value may lie in parts; notes what the feature holds."""
    found, count, total = False, np.int64(0), np.int64(load_i64(line + IS_SUM * 8) == 0)
    while start < stop:
        tag, at, end = field_at(start, stop)
        if tag == 0x12:
            problem, found, count, total = _read_feature(line, at, end, found, count, total)
            if problem:
                return problem
        start = end
    if not found:
        return _OK
    store_i64(state + _SEEN * 8, 1)
    store_i64(state + _VALUES * 8, count)
    store_i64(state + _TOTAL * 8, total)
    return _OK if _has_shape(line, count) else _OTHER_COUNT


@called
def _check_lists(line, state, start, stop):
    """Problem of an entry of FeatureLists, whose value may lie in parts; without steps it is there, too."""
    store_i64(state + _SEEN * 8, 1)
    while start < stop:
        tag, at, end = field_at(start, stop)
        if tag == 0x12:
            problem = _check_steps(line, at, end)
            if problem:
                return problem
        start = end
    return _OK


@called
def _check_entry(table, features, sequence, expected, states, start, stop):
    """Problem and feature index of one entry: of Features, or (`sequence`) of FeatureLists."""
    key_start = key_stop = np.int64(0)
    at = start
    while at < stop:
        tag, content, end = field_at(at, stop)
        if end == 0:
            return _MALFORMED, np.int64(-1)
        if tag == 0x0A:
            key_start, key_stop = content, end
        elif tag != 0x12:  # parsers of protobuf disagree on an entry with another field: whether it is one
            return _MALFORMED, np.int64(-1)
        at = end
    index = _find(table, features, expected, key_start, key_stop - key_start)
    if index < 0 or load_i64(table + index * _LINE + SEQUENCE * 8) != sequence:
        return _UNKNOWN, np.int64(-1)
    line, state = table + index * _LINE, states + index * _STATE * 8
    if load_i64(state + _SEEN * 8):
        return _TWICE, index
    if sequence:
        return _check_lists(line, state, start, stop), index
    return _check_values(line, state, start, stop), index


@called
def _check_entries(table, features, sequence, states, start, stop):
    """Problem and feature index of Features or FeatureLists: the first there is."""
    expected = np.int64(0)
    while start < stop:
        tag, at, end = field_at(start, stop)
        if end == 0:
            return _MALFORMED, np.int64(-1)
        if tag == 0x0A:
            problem, index = _check_entry(table, features, sequence, expected, states, at, end)
            if problem:
                return problem, index
            expected = index + 1
        start = end
    return _OK, np.int64(-1)


@called
def _check_totals(table, features, states):
    """Problem and feature index of row lengths and sizes that do not fit the number of values; 0 if all do."""
    for index in range(features):
        line, state = table + index * _LINE, states + index * _STATE * 8
        inner = load_i64(line + INNER * 8)
        if inner < 0:
            continue
        other = states + inner * _STATE * 8
        rows = load_i64(other + _VALUES * 8) // load_i64(table + inner * _LINE + MULTIPLE * 8)
        fits = load_i64(state + _TOTAL * 8) == rows
        if load_i64(line + IS_SUM * 8):
            if not fits:  # what is absent counts as empty, as for readers
                return _LENGTHS, np.int64(index)
        elif not fits and load_i64(state + _SEEN * 8) and load_i64(other + _SEEN * 8):
            return _SIZES, np.int64(index)
    return _OK, np.int64(-1)


@called
def _check_record(table, features, sequence, states, start, stop):
    for field in range(features * _STATE):
        store_i64(states + field * 8, 0)
    while start < stop:
        tag, at, end = field_at(start, stop)
        if end == 0:
            return _MALFORMED, np.int64(-1)
        if tag == 0x0A or (sequence and tag == 0x12):
            problem, index = _check_entries(table, features, np.int64(tag == 0x12), states, at, end)
            if problem:
                return problem, index
        start = end
    for index in range(features):
        if load_i64(table + index * _LINE + REQUIRED * 8) and not load_i64(states + (index * _STATE + _SEEN) * 8):
            return _MISSING, np.int64(index)
    return _check_totals(table, features, states)


@kernel("int64(int64, int64, int64, int64, int64, int64, int64, int64, int64)")
def _check(table, features, sequence, states, buffer, frames, count, problems, max_problems):
    """Writes triples (index in `frames`, problem, feature) to `problems`; returns the number of all that there are."""
    found = np.int64(0)
    for i in range(count):
        start = buffer + load_i64(frames + i * 24)
        problem, index = _check_record(table, features, sequence, states, start, start + load_i64(frames + i * 24 + 8))
        if problem:
            if found < max_problems:
                store_i64(problems + found * 24, i)
                store_i64(problems + found * 24 + 8, problem)
                store_i64(problems + found * 24 + 16, index)
            found += 1
    return found


@kernel("int64(int64, int64, int64)")
def _count_values(kind_tag, address, stop):
    return count_values(kind_tag, address, stop)


def count_list_values(number: int, data: np.ndarray) -> int:
    """Returns the number of values of a BytesList (1), FloatList (2) or Int64List (3); -1: it is malformed."""
    address = address_of(data)
    return int(_count_values(number << 3 | 2, address, address + data.size))


class FeatureChecker:
    """Checks the records that a scan visits.

    Args:
        spec: What they must fit.
        max_problems: How many are described.
        feature_lists: Whether feature lists do not fit a spec without any; a parser of tf.Examples skips them.

    Attributes:
        problems: Record index, offset of its payload in the stream, and description of the first that do not fit.
        count: Number of all that do not.
    """

    def __init__(self, spec: FeatureSpec, max_problems: int = 100, feature_lists: bool = False) -> None:
        self._with_lists = int(spec.sequence or feature_lists)
        self._spec = spec
        self._keys = [np.frombuffer(f.name.encode() + b"\0", np.uint8) for f in spec.features]
        inner = counted_by(spec)
        self._table = np.array(
            [_line(f, key, inner.get(i, -1)) for i, (f, key) in enumerate(zip(spec.features, self._keys, strict=True))],
            np.int64,
        ).reshape(-1, _FIELDS)
        self._states = np.zeros((len(spec.features) + 1, _STATE), np.int64)
        self._raw = np.empty((max_problems, 3), np.int64)
        self.problems: list[tuple[int, int, str]] = []
        self.count = 0

    def visit(self, buffer: np.ndarray, frames: np.ndarray, offset: int) -> None:
        """Checks the payloads of some frames; see `records.frames.scan.FrameVisitor`."""
        found = _check(
            address_of(self._table), len(self._table), self._with_lists, address_of(self._states),
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
        name=feature.name,
        base=feature.base_name.removesuffix(f"/{feature.part}"),
        kind=feature.kind.value,
        shape=list(feature.value_shape),
        message=spec.message,
    )


def _line(feature: Feature, key: np.ndarray, inner: int) -> list[int]:
    varying = None in feature.value_shape
    return [
        address_of(key),
        key.size - 1,
        _TAGS[feature.kind],
        -1 if varying else feature.size,
        max(1, feature.size) if varying else 1,
        int(not feature.optional),
        int(feature.sequence),
        inner,
        int(feature.is_row_lengths),
    ]
