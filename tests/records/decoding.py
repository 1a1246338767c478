"""Decoding payloads that lie in memory, and columns as lists per row."""

import ctypes
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from tfr_assets.records.arrow.arrays import Column, Strings, TensorStrings
from tfr_assets.records.examples.decoder import Decoder, Problem
from tfr_assets.records.frames.scan import scan_stream
from tfr_assets.records.schema.features import Feature, FeatureSpec, Kind

from .reference import frames, message
from .streams import Memory

STRING = FeatureSpec((Feature("s", Kind.BYTES, (), "s", "binary", False),))
Rows = dict[str, list[list[Any]]]


def decode_payloads(
    spec: FeatureSpec, payloads: Sequence[bytes], names: Collection[str] | None = None, room: int | None = None
) -> tuple[dict[str, Column], list[Problem]]:
    """The columns of all payloads, and the problems found; strings that TensorFlow takes are the same ones."""
    names = {feature.name for feature in spec.features} if names is None else names
    columns, problems = _decode(spec, payloads, names, room, tensor_strings=False)
    others, same_problems = _decode(spec, payloads, names, room, tensor_strings=True)
    assert problems == same_problems
    for name, column in columns.items():
        if isinstance(others[name], TensorStrings):
            assert isinstance(column, Strings)
            assert len(column) == len(others[name])
            assert column.to_numpy().reshape(-1).tolist() == values_of(others[name])
    return columns, problems


def _decode(
    spec: FeatureSpec, payloads: Sequence[bytes], names: Collection[str], room: int | None, tensor_strings: bool
) -> tuple[dict[str, Any], list[Problem]]:
    decoder = Decoder(spec, names, tensor_strings=tensor_strings)
    decoder.start(len(payloads) if room is None else room)
    problems: list[Problem] = []
    scan = scan_stream(Memory(frames(payloads)), "memory", lambda b, f, _: problems.extend(decoder.add(b, f)))
    assert not scan.faults
    return decoder.finish(), problems


def single(value: bytes) -> bytes:
    """The payload of a record of `STRING`."""
    entry = message(0x0A, message(0x0A, b"s"), message(0x12, message(0x0A, message(0x0A, value))))
    return message(0x0A, entry)


def add(decoder: Decoder, payloads: Sequence[bytes]) -> int:
    """Decodes payloads; returns the number of problems."""
    bounds = np.cumsum([0, *map(len, payloads)])
    frames = np.stack([bounds[:-1], np.diff(bounds), np.arange(len(payloads))], 1)
    return len(decoder.add(np.frombuffer(b"".join(payloads) + bytes(64), np.uint8), frames))


def tensor_strings(values: Sequence[bytes]) -> TensorStrings:
    """Strings for TensorFlow to take, once."""
    decoder = Decoder(STRING, {"s"}, tensor_strings=True)
    decoder.start(len(values))
    assert not add(decoder, [single(value) for value in values])
    column = decoder.finish()["s"]
    assert isinstance(column, TensorStrings)
    return column


def values_of(column: TensorStrings) -> list[bytes]:
    """The strings that TensorFlow would take: TF_TString of tensorflow/core/platform/ctstring_internal.h."""
    found = []
    for place in column.places.tolist():
        head, _, address = (ctypes.c_int64 * 3).from_address(place)
        size = (head & 0xFF if head & 3 == 0 else head) >> 2
        start = place + 1 if head & 3 == 0 else address
        assert ctypes.string_at(start + size, 1) == b"\0"
        found.append(ctypes.string_at(start, size))
    return found


def flat_rows(column: Column) -> list[list[Any]]:
    """All values of each row, without its shape."""
    if isinstance(column, Strings):
        return [row.reshape(-1).tolist() for row in column.to_numpy()[:, None]]
    if isinstance(column, np.ndarray):
        return [row.reshape(-1).tolist() for row in column]
    return [np.asarray(row).reshape(-1).tolist() for row in column.to_numpy()]
