"""Frames of a known feature spec → columns: what each feature becomes, and the memory that it is decoded into."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfr_assets.errors import ConfigError
from tfr_assets.records.arrow.arrays import Column, Ragged, Strings, TensorStrings
from tfr_assets.records.arrow.buffers import Pool
from tfr_assets.records.kernels.decode import decode
from tfr_assets.records.kernels.jit import PADDING, address_of
from tfr_assets.records.kernels.locate import (
    BLOCK,
    DATA,
    DATA_NEED,
    DATA_ROOM,
    DATA_USED,
    FIELDS,
    NO_MEMORY,
    ROWS,
    STEPS,
    STEPS_NEED,
    STEPS_ROOM,
    STEPS_USED,
    STRIDE,
    VALUES,
    VALUES_NEED,
    VALUES_ROOM,
    VALUES_USED,
    head_patterns,
)
from tfr_assets.records.kernels.row_lengths import check_lengths, counted_by
from tfr_assets.records.kernels.tensor_strings import StringSlots
from tfr_assets.records.kernels.validate import describe_problem
from tfr_assets.records.schema.features import SERIALIZED, Feature, FeatureSpec, Kind

_TAGS = {Kind.BYTES: 0x0A, Kind.FLOAT32: 0x12, Kind.INT64: 0x1A}
_WORD, _BYTE = np.dtype(np.int64), np.dtype(np.uint8)
_USED = [STEPS_USED, VALUES_USED, DATA_USED]
_NOTHING, _NO_SLOTS = np.empty(0, np.uint8), StringSlots(0)
_MOST_GUESSED = (32 << 20) - PADDING  # bytes of strings: what the first records let one expect may be wrong
_STORED: dict[Kind, np.dtype] = {Kind.FLOAT32: np.dtype(np.float32), Kind.INT64: _WORD}


@dataclass(frozen=True)
class Problem:
    """A record that does not fit the spec.

    Attributes:
        index: Its index among the frames that were given.
        text: What is wrong, such as `lacks feature 'x'`.
    """

    index: int
    text: str


class _Target:
    """The memory of one feature's column.

    Attributes:
        line: Its line of the table, a view.
    """

    def __init__(self, feature: Feature, line: np.ndarray, wanted: bool, nulls: bool, tensor_strings: bool) -> None:
        self.feature, self.line = feature, line
        self._key = np.frombuffer(feature.name.encode() + bytes(8), np.uint8)
        self._head = head_patterns(feature.name.encode(), _TAGS[feature.kind])
        self._fill = np.frombuffer(_fill_bytes(feature) + bytes(PADDING), np.uint8)
        self._steps_vary = feature.sequence and None in feature.value_shape
        self._ragged = feature.is_ragged or (nulls and _is_nullable_string(feature))
        single = feature.kind is Kind.BYTES and feature.size == 1 and not (self._ragged or feature.sequence)
        self._makes_strings = tensor_strings and single
        varying = None in feature.value_shape
        fill_size = -1
        if not self._ragged and feature.optional:
            fill_size = self._fill.size - PADDING if feature.kind is Kind.BYTES else 0
        fill = address_of(self._fill) if feature.kind is Kind.BYTES else int(self._fill[:8].view(np.int64)[0])
        self._stored = np.dtype(np.int64) if feature.kind is Kind.BYTES else _STORED[feature.kind]
        line[:ROWS] = [
            address_of(self._key), self._key.size - 8, address_of(self._head), _TAGS[feature.kind], wanted,
            not feature.optional,
            -1 if varying else feature.size, max(1, feature.size) if varying else 1, fill, fill_size, feature.sequence,
        ]  # fmt: skip
        self._per_row = 1.0 if varying else float(feature.size)
        self._bytes_per_row, self._steps_per_row = 16.0, 1.0
        self.let_go()

    def let_go(self) -> None:
        """Releases the buffers: whoever has the columns owns them."""
        self.values = self.data = self.rows = self.steps = _NOTHING
        self.slots = _NO_SLOTS

    def start(self, rows: int, pool: Pool) -> None:
        """Takes memory for so many rows."""
        if self._makes_strings:
            self._place_slots(StringSlots(rows))
            self.line[VALUES_USED] = 0
            return
        values, data = int(self._per_row * rows), 0
        if self.feature.kind is Kind.BYTES:
            data = int(self._bytes_per_row * rows)
        self.values = pool.empty(values + 1, self._stored)
        self.data = pool.empty(data + PADDING if self.feature.kind is Kind.BYTES else 0, _BYTE)
        self.rows = pool.empty(rows + 1 if self._ragged else 0, _WORD)
        self.steps = pool.empty(int(self._steps_per_row * rows) + 1 if self._steps_vary else 0, _WORD)
        for starts in (self.values, self.rows, self.steps):
            starts[:1] = 0
        self.line[VALUES_USED] = self.line[DATA_USED] = self.line[STEPS_USED] = 0
        self._place()

    def grow(self, share: float, pool: Pool) -> None:
        """Makes room for what the next block may need, and for the rest, if it is like what came so far.

        Args:
            share: Of all rows, those that there are with the next block.
            pool: Where strings get their memory: they may be most of what is read, and growing often would cost more
                than reading them.
        """
        used, need, room = (int(self.line[field]) for field in (VALUES_USED, VALUES_NEED, VALUES_ROOM))
        if self._makes_strings:
            if used + need > room:
                self._place_slots(self.slots.grow(max(used + need, 2 * room)))
            return
        if used + need > room:
            self.values = _grown(self.values, used + 1, max(used + need, 2 * room) + 1)
        used, need, room = (int(self.line[field]) for field in (DATA_USED, DATA_NEED, DATA_ROOM))
        if used + need > room:
            likely = int((used + need) / share * 1.1) if room < _MOST_GUESSED else 2 * room
            data = pool.empty(max(used + need, min(likely, max(_MOST_GUESSED, 2 * room))) + PADDING, _BYTE)
            data[:used] = self.data[:used]
            self.data = data
        used, need, room = (int(self.line[field]) for field in (STEPS_USED, STEPS_NEED, STEPS_ROOM))
        if self._steps_vary and used + need > room:
            self.steps = _grown(self.steps, used + 1, max(used + need, 2 * room) + 1)
        self._place()

    def _place_slots(self, slots: StringSlots) -> None:
        self.slots = slots
        self.line[VALUES], self.line[VALUES_ROOM] = slots.address, slots.count

    def _place(self) -> None:
        self.line[ROWS] = address_of(self.rows) if self._ragged else 0
        self.line[STEPS] = address_of(self.steps) if self._steps_vary else 0
        self.line[VALUES], self.line[DATA] = address_of(self.values), address_of(self.data)
        self.line[VALUES_ROOM], self.line[DATA_ROOM] = self.values.size - 1, self.data.size - PADDING
        self.line[STEPS_ROOM] = self.steps.size - 1

    def finish(self, rows: int) -> Column | TensorStrings:
        """Returns the column of all rows decoded since `start`."""
        inner = tuple(size or 0 for size in self.feature.value_shape)
        if self._makes_strings:
            return TensorStrings(self.slots.places(rows), (self.slots,), inner)
        used, size, steps = (int(self.line[field]) for field in (VALUES_USED, DATA_USED, STEPS_USED))
        if rows:  # the next rows will be much like these
            self._per_row = max(self._per_row, used / rows * 1.1)
            self._bytes_per_row = size / rows * 1.1 + 16
            self._steps_per_row = steps / rows * 1.1 + 1
        flat: Column
        if self._ragged and None in self.feature.value_shape:
            inner = inner[1:]
        if self.feature.kind is Kind.BYTES:
            flat = Strings(self.values[: used + 1], self.data[:size], inner)
        else:
            flat = self.values[:used].astype(self.feature.number_type, copy=False)
            flat = flat.reshape(used // max(1, math.prod(inner)) if self._ragged else rows, *inner)
        if not self._ragged:
            return flat
        offsets = self.rows[: rows + 1]
        if self._steps_vary:
            return Ragged(offsets, Ragged(_units(self.steps[: steps + 1], inner), flat))
        return Ragged(offsets if self.feature.sequence else _units(offsets, inner), flat)


class Decoder:
    """Decodes frames into columns, so many rows at a time. One thread at a time may use it.

    Args:
        spec: All features of the records.
        names: The features to decode; the others are skipped.
        nulls: Whether absent strings are distinguished from empty ones: columns of single strings that may be absent
            have no value there or one, as those of integers always do.
        tensor_strings: Whether columns of single strings are `TensorStrings`; not of those that are distinguished so.

    Raises:
        ConfigError: A feature has no values by its shape.
    """

    def __init__(
        self, spec: FeatureSpec, names: Collection[str], nulls: bool = False, tensor_strings: bool = False
    ) -> None:
        for feature in spec.features:
            if feature.name in names and 0 in feature.value_shape:
                raise ConfigError(
                    f"feature {feature.name!r} has no values by its shape {list(feature.value_shape)} and is not "
                    "decoded here; use reader='vectorized'"
                )
        self._spec, self._sequence = spec, int(spec.sequence)
        self._table = np.zeros((len(spec.features), FIELDS), np.int64)
        lines = zip(spec.features, self._table, strict=True)
        self._targets = [
            _Target(feature, line, feature.name in names, nulls, tensor_strings) for feature, line in lines
        ]
        self._wanted = [target for target in self._targets if target.feature.name in names]
        pairs = [(self._targets[outer], self._targets[inner], outer) for outer, inner in counted_by(spec).items()]
        self._lengths = [
            (outer, inner, index)
            for outer, inner, index in pairs
            if outer.feature.is_row_lengths and outer.feature.name in names and inner.feature.name in names
        ]
        self._spans = np.empty((len(spec.features) + 1) * STRIDE, np.uint8)
        self._spare, self._bad = np.empty(0, np.uint8), np.empty(0, np.int64)
        self._pool = Pool()
        self.rows = self.room = 0

    def clear(self) -> None:
        """Drops all rows and releases the buffers; there is no room until `start`."""
        self.rows = self.room = 0
        for target in self._wanted:
            target.let_go()

    def start(self, rows: int) -> None:
        """Begins new columns with room for `rows` rows."""
        self.rows, self.room = 0, rows
        for target in self._wanted:
            target.start(rows, self._pool)

    def add(self, buffer: np.ndarray, frames: np.ndarray) -> list[Problem]:
        """Decodes records after those that are there, unless one of them does not fit the spec.

        Args:
            buffer: uint8, readable 32 bytes beyond the end of the last frame.
            frames: Contiguous int64 of shape (n, 3): start in the buffer, payload size and index of each record.

        Returns:
            The records that do not fit, one problem each; then nothing was added.

        Raises:
            MemoryError: There is none for what is added.
        """
        count = len(frames)
        before = self._table[:, _USED]
        if self._bad.size < count:
            self._bad = np.empty(count, np.int64)
        if self._spare.size < buffer.size + PADDING:
            self._spare = np.empty(buffer.size + PADDING, np.uint8)
        done = 0
        while done < count:
            done += decode(
                address_of(self._table), len(self._table), self._sequence, address_of(buffer),
                address_of(frames) + 24 * done, count - done, self.rows + done, address_of(self._spans),
                address_of(self._spare), address_of(self._bad) + 8 * done,
            )  # fmt: skip
            if done < count:
                share = min(1.0, (self.rows + min(done + BLOCK, count)) / self.room)
                try:
                    for target in self._wanted:
                        target.grow(share, self._pool)
                except MemoryError:
                    self._take_back(before)
                    raise
        for outer, inner, index in self._lengths:
            check_lengths(
                address_of(outer.values), address_of(outer.rows), address_of(inner.rows), inner.feature.size,
                self.rows, count, index, address_of(self._bad),
            )  # fmt: skip
        if self._bad[:count].any():
            self._take_back(before)
            if (self._bad[:count] & 0xFF == NO_MEMORY).any():
                raise MemoryError
            at = np.flatnonzero(self._bad[:count])
            return [
                Problem(i, self._describe(code)) for i, code in zip(at.tolist(), self._bad[at].tolist(), strict=True)
            ]
        self.rows += count
        return []

    def _take_back(self, used: np.ndarray) -> None:
        """Removes what was decoded after `rows`."""
        self._table[:, _USED] = used
        for target in self._wanted:
            target.slots.release(self.rows)

    def finish(self) -> dict[str, Any]:
        """Returns the columns since `start`, `Column` or `TensorStrings`, by feature name, and releases them."""
        columns = {target.feature.name: target.finish(self.rows) for target in self._wanted}
        self.clear()
        return columns

    def _describe(self, code: int) -> str:
        return describe_problem(self._spec, code & 0xFF, code >> 8)


def _units(offsets: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Returns offsets among values as offsets among arrays of a shape."""
    return offsets // math.prod(shape) if math.prod(shape) > 1 else offsets


def _is_nullable_string(feature: Feature) -> bool:
    is_string = feature.kind is Kind.BYTES and not feature.shape and feature.part != SERIALIZED
    return is_string and feature.optional and feature.fill is None


def _fill_bytes(feature: Feature) -> bytes:
    if feature.kind is Kind.BYTES:
        return b"" if feature.fill is None or feature.part == SERIALIZED else str(feature.fill).encode()
    if feature.kind is Kind.FLOAT32:
        return np.float32(math.nan if feature.fill is None else feature.fill).tobytes() + bytes(4)
    return np.int64(feature.fill or 0).tobytes()


def _grown(array: np.ndarray, used: int, size: int) -> np.ndarray:
    grown = np.empty(size, array.dtype)
    grown[:used] = array[:used]
    return grown
