"""The decoder's kernel: framed records → columns, block by block: find all features, then decode column by column.

Numbers are stored as a record has them, int64 and float32; strings as bytes and where each starts, or as TensorFlow has
them.
"""

import numpy as np

from tfr_assets.records.kernels.jit import (
    called,
    copy_32,
    copy_bytes,
    inlined,
    kernel,
    load_f32,
    load_i64,
    load_u8,
    load_u64,
    store_f32,
    store_i64,
    store_u32,
)
from tfr_assets.records.kernels.locate import (
    BLOCK,
    COUNT,
    DATA,
    DATA_NEED,
    DATA_ROOM,
    DATA_USED,
    EMPTY_STEP,
    FILL,
    FILL_SIZE,
    LINE,
    MALFORMED,
    MULTIPLE,
    NO_MEMORY,
    OTHER_COUNT,
    OTHER_KIND,
    ROWS,
    SEQUENCE,
    STEPS,
    STEPS_NEED,
    STEPS_ROOM,
    STEPS_USED,
    STRIDE,
    TAG,
    VALUES,
    VALUES_NEED,
    VALUES_ROOM,
    VALUES_USED,
    WANTED,
    is_short,
    line_field,
    locate_block,
)
from tfr_assets.records.kernels.protobuf import field_at, varint_at
from tfr_assets.records.kernels.tensor_strings import STRING_SIZE, put_string
from tfr_assets.records.kernels.validate import count_values

BYTES_TAG, FLOAT_TAG, INT_TAG = 0x0A, 0x12, 0x1A
_HIGH = np.uint64(0x8080808080808080)


@inlined
def _short_varint(address, size):
    """Value of a varint that should be `size` bytes long, at most eight, and whether it is."""
    word = load_u64(address) & (np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - 8 * size))
    fits = word & _HIGH == _HIGH & ((np.uint64(1) << np.uint64(8 * size - 8)) - np.uint64(1))
    word &= ~_HIGH
    word = (word & np.uint64(0x007F007F007F007F)) | ((word & np.uint64(0x7F007F007F007F00)) >> np.uint64(1))
    word = (word & np.uint64(0x00003FFF00003FFF)) | ((word & np.uint64(0x3FFF00003FFF0000)) >> np.uint64(2))
    word = (word & np.uint64(0x000000000FFFFFFF)) | ((word & np.uint64(0x0FFFFFFF00000000)) >> np.uint64(4))
    return np.int64(word), fits


@inlined
def _put_string(line, index, start, size):
    """Appends a string as value `index`; where each starts is kept by where the one before ends."""
    used = load_i64(line + DATA_USED * 8)
    target = line_field(line, DATA) + used
    if size <= 32:
        copy_32(target, start)
    else:
        copy_bytes(target, start, size)
    store_i64(line + DATA_USED * 8, used + size)
    store_i64(line_field(line, VALUES) + index * 8 + 8, used + size)


@called
def _put_ints(target, start, stop):
    while start < stop:
        byte = load_u8(start)
        if byte < 128:
            value, start = np.int64(byte), start + 1
        else:
            value, start = varint_at(start, stop)
        store_i64(target, value)
        target += 8
    return target


@called
def _put_list(line, tag, index, start, stop):
    """Decodes a list whose fields are known to be valid, from value `index` on."""
    target = line_field(line, VALUES) + index * (4 if tag == FLOAT_TAG else 8)
    while start < stop:
        found, at, end = field_at(start, stop)
        if found == 0x0A and tag == BYTES_TAG:
            _put_string(line, index, at, end - at)
            index += 1
        elif found == 0x0A and tag == FLOAT_TAG:
            copy_bytes(target, at, end - at)
            target += end - at
        elif found == 0x0A or (found == 0x08 and tag == INT_TAG):
            target = _put_ints(target, at if found == 0x0A else start + _tag_size(start), end)
        elif found == 0x0D and tag == FLOAT_TAG:
            store_f32(target, load_f32(at))
            target += 4
        start = end


@inlined
def _tag_size(address):
    size = np.int64(1)
    while load_u8(address) >= 128:
        address += 1
        size += 1
    return size


@called
def _fill(line, tag, index, count):
    """Puts what stands for absent values."""
    values, fill = line_field(line, VALUES), line_field(line, FILL)
    for k in range(index, index + count):
        if tag == BYTES_TAG:
            _put_string(line, k, fill, line_field(line, FILL_SIZE))
        elif tag == FLOAT_TAG:
            store_u32(values + k * 4, np.uint32(fill))
        else:
            store_i64(values + k * 8, fill)


@called
def _decode_any(line, tag, index, start, size):
    """Decodes any valid list from value `index` on; returns problem and number of values."""
    wanted = line_field(line, COUNT)
    count = count_values(tag, start, start + size)
    if count < 0:
        return MALFORMED, max(wanted, np.int64(0))
    if (wanted >= 0 and count != wanted) or count % line_field(line, MULTIPLE):
        return OTHER_COUNT, max(wanted, np.int64(0))
    _put_list(line, tag, index, start, start + size)
    return 0, count


@called
def _decode_row(line, tag, index, start, size):
    """Decodes a feature of one record, whatever its list holds; returns problem and number of values."""
    if start == 0:
        count = line_field(line, COUNT) if line_field(line, FILL_SIZE) >= 0 else np.int64(0)
        _fill(line, tag, index, count)
        return 0, count
    return _decode_any(line, tag, index, start, size)


@inlined
def _note(bad, feature, problem):
    """Notes a record's problem, unless it has one already."""
    if problem and load_i64(bad) == 0:
        store_i64(bad, problem | feature << 8)


@inlined
def _decode_floats(line, feature, spans, rows, bad):
    """Decodes one float of each record; arguments as those of `_decode_column`."""
    index = line_field(line, VALUES_USED)
    target = line_field(line, VALUES) + index * 4
    for i in range(rows):
        start, size = load_i64(spans + i * 16), load_i64(spans + i * 16 + 8)
        if size == 6 and is_short(start, size):
            store_f32(target + i * 4, load_f32(start + 2))
        else:
            _note(bad + i * 8, feature, _decode_row(line, FLOAT_TAG, index + i, start, size)[0])
    return index + rows


@inlined
def _decode_ints(line, feature, spans, rows, bad):
    """Decodes one integer of each record."""
    index = line_field(line, VALUES_USED)
    target = line_field(line, VALUES) + index * 8
    for i in range(rows):
        start, size = load_i64(spans + i * 16), load_i64(spans + i * 16 + 8)
        fits = False
        if 2 < size <= 10 and is_short(start, size):
            value, fits = _short_varint(start + 2, size - 2)
            store_i64(target + i * 8, value)
        if not fits:
            _note(bad + i * 8, feature, _decode_row(line, INT_TAG, index + i, start, size)[0])
    return index + rows


@inlined
def _decode_strings(line, feature, spans, rows, bad):
    """Decodes one string of each record."""
    index = line_field(line, VALUES_USED)
    for i in range(rows):
        start, size = load_i64(spans + i * 16), load_i64(spans + i * 16 + 8)
        if 2 <= size < 130 and is_short(start, size):
            _put_string(line, index + i, start + 2, size - 2)
        else:
            _note(bad + i * 8, feature, _decode_row(line, BYTES_TAG, index + i, start, size)[0])
    return index + rows


@called
def _only_string(start, stop):
    """Address and size of the one string of a list; instead of an address, a negative problem."""
    count = count_values(BYTES_TAG, start, stop)
    if count != 1:
        return np.int64(-MALFORMED if count < 0 else -OTHER_COUNT), np.int64(0)
    found, at, end = field_at(start, stop)
    while found != 0x0A:
        found, at, end = field_at(end, stop)
    return at, end - at


@inlined
def _decode_tensor_strings(line, feature, spans, rows, bad):
    """Decodes one string of each record, as TensorFlow has it."""
    index = line_field(line, VALUES_USED)
    target = line_field(line, VALUES) + index * STRING_SIZE
    for i in range(rows):
        start, size = load_i64(spans + i * 16), load_i64(spans + i * 16 + 8)
        if 2 <= size < 130 and is_short(start, size):
            start, size = start + 2, size - 2
        elif start:
            start, size = _only_string(start, start + size)
        elif line_field(line, FILL_SIZE) > 0:
            start, size = line_field(line, FILL), line_field(line, FILL_SIZE)
        if start <= 0:  # nothing stands for it, or this record has a problem
            _note(bad + i * 8, feature, -start)
            store_i64(target, 0)
        elif not put_string(target, start, size):
            _note(bad + i * 8, feature, np.int64(NO_MEMORY))
        target += STRING_SIZE
    return index + rows


@inlined
def _decode_lists(line, feature, spans, rows, row, bad):
    """Decodes a list of each record."""
    tag, starts, index = line_field(line, TAG), line_field(line, ROWS), line_field(line, VALUES_USED)
    for i in range(rows):
        start, size = load_i64(spans + i * 16), load_i64(spans + i * 16 + 8)
        problem, count = _decode_row(line, tag, index, start, size)
        _note(bad + i * 8, feature, problem)
        index += count
        if starts:
            store_i64(starts + (row + i) * 8 + 8, index)
    return index


@called
def _put_step(line, tag, index, start, stop):
    """Decodes a step, a Feature whose list may lie in parts, from value `index` on; returns problem and values."""
    total, found = np.int64(0), False
    while start < stop:
        field, at, end = field_at(start, stop)
        if end == 0:
            return MALFORMED, total
        if field == 0x0A or field == 0x12 or field == 0x1A:
            if field != tag:
                return OTHER_KIND, total
            count = count_values(tag, at, end)
            if count < 0:
                return MALFORMED, total
            _put_list(line, tag, index + total, at, end)
            total += count
            found = True
        start = end
    if not found:
        return EMPTY_STEP, total
    wanted = line_field(line, COUNT)
    if (wanted >= 0 and total != wanted) or total % line_field(line, MULTIPLE):
        return OTHER_COUNT, total
    return 0, total


@called
def _put_steps(line, tag, index, start, stop):
    """Decodes a FeatureList from value `index` on; returns problem and number of values."""
    steps, first = line_field(line, STEPS), index
    used = line_field(line, STEPS_USED)
    while start < stop:
        field, at, end = field_at(start, stop)
        if end == 0:
            return MALFORMED, np.int64(0)
        if field == 0x0A:
            problem, count = _put_step(line, tag, index, at, end)
            if problem:
                return problem, np.int64(0)
            index += count
            used += 1
            if steps:
                store_i64(steps + used * 8, index)
        start = end
    store_i64(line + STEPS_USED * 8, used)
    return 0, index - first


@inlined
def _decode_sequences(line, feature, spans, rows, row, bad):
    """Decodes a feature list of each record."""
    tag, starts, index = line_field(line, TAG), line_field(line, ROWS), line_field(line, VALUES_USED)
    for i in range(rows):
        start, size = load_i64(spans + i * 16), load_i64(spans + i * 16 + 8)
        problem, count = _put_steps(line, tag, index, start, start + size)
        _note(bad + i * 8, feature, problem)
        index += count
        store_i64(starts + (row + i) * 8 + 8, line_field(line, STEPS_USED))
    return index


@called
def _decode_column(line, feature, spans, rows, row, bad):
    """Decodes one feature of all records of a block.

    Args:
        line: Address of its line.
        feature: Its index.
        spans: Address of its spans.
        rows: Number of records.
        row: The column's row of the first of them.
        bad: Address of each record's problem, as `decode` has them.
    """
    tag = line_field(line, TAG)
    if line_field(line, SEQUENCE):
        used = _decode_sequences(line, feature, spans, rows, row, bad)
    elif line_field(line, COUNT) != 1 or line_field(line, ROWS):
        used = _decode_lists(line, feature, spans, rows, row, bad)
    elif tag == FLOAT_TAG:
        used = _decode_floats(line, feature, spans, rows, bad)
    elif tag == INT_TAG:
        used = _decode_ints(line, feature, spans, rows, bad)
    elif line_field(line, DATA) == 0:
        used = _decode_tensor_strings(line, feature, spans, rows, bad)
    else:
        used = _decode_strings(line, feature, spans, rows, bad)
    store_i64(line + VALUES_USED * 8, used)


@inlined
def _has_room(line, spans, rows):
    """Whether a column can take a block, whatever its lists hold; writes what it needs."""
    total, tag = np.int64(0), line_field(line, TAG)
    wanted = np.int64(-1) if line_field(line, SEQUENCE) else line_field(line, COUNT)
    if tag == BYTES_TAG or wanted < 0:
        for i in range(rows):
            total += load_i64(spans + i * 16 + 8)
    least = np.int64(4) if tag == FLOAT_TAG else np.int64(2) if tag == BYTES_TAG else np.int64(1)
    values = rows * wanted if wanted >= 0 else total // least
    data = np.int64(0)
    if tag == BYTES_TAG and line_field(line, DATA):
        data = total + max(line_field(line, FILL_SIZE), np.int64(0)) * rows * max(wanted, np.int64(0))
    steps = total // 2
    store_i64(line + STEPS_NEED * 8, steps)
    store_i64(line + VALUES_NEED * 8, values)
    store_i64(line + DATA_NEED * 8, data)
    return (
        (line_field(line, STEPS) == 0 or line_field(line, STEPS_USED) + steps <= line_field(line, STEPS_ROOM))
        and line_field(line, VALUES_USED) + values <= line_field(line, VALUES_ROOM)
        and line_field(line, DATA_USED) + data <= line_field(line, DATA_ROOM)
    )


@kernel("int64(int64, int64, int64, int64, int64, int64, int64, int64, int64, int64)")
def decode(table, features, sequence, buffer, frames, count, row, spans, spare, bad):
    """Decodes records after those that the columns hold.

    Args:
        table: Address of a line per feature.
        features: Number of lines.
        sequence: Whether records are tf.SequenceExamples.
        buffer: Address of bytes; 32 more than the frames take must be readable.
        frames: Address of triples of int64 a record, of which the first two are start in the buffer and size.
        count: Number of records.
        row: The columns' row of the first of them.
        spans: Address of STRIDE bytes per feature, and as many more.
        spare: Address of as many bytes as a block's records take, and 32 more.
        bad: Address of an int64 a record, which becomes 0, or problem | feature << 8.

    Returns:
        Number of records decoded: all, or those before a block for which a column lacks room; its line says how much.
    """
    done = np.int64(0)
    while done < count:
        rows = min(np.int64(BLOCK), count - done)
        locate_block(table, features, sequence, spans, buffer, frames + done * 24, rows, spare, bad + done * 8)
        has_room = True
        for index in range(features):
            line = table + index * LINE
            if line_field(line, WANTED):
                has_room &= _has_room(line, spans + index * STRIDE, rows)
        if not has_room:
            return done
        for index in range(features):
            line = table + index * LINE
            if line_field(line, WANTED):
                _decode_column(line, index, spans + index * STRIDE, rows, row + done, bad + done * 8)
        done += rows
    return done
