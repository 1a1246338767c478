"""Decoding payloads that lie in memory, and columns as lists per row."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from tfr_assets.records.arrow.arrays import Column, Strings
from tfr_assets.records.examples.decoder import Decoder, Problem
from tfr_assets.records.frames.scan import scan_stream
from tfr_assets.records.schema.features import FeatureSpec

from .reference import frames
from .streams import Memory

Rows = dict[str, list[list[Any]]]


def decode_payloads(
    spec: FeatureSpec, payloads: Sequence[bytes], names: Collection[str] | None = None, room: int | None = None
) -> tuple[dict[str, Column], list[Problem]]:
    """The columns of all payloads, and the problems found."""
    decoder = Decoder(spec, {feature.name for feature in spec.features} if names is None else names)
    decoder.start(len(payloads) if room is None else room)
    problems: list[Problem] = []
    scan = scan_stream(Memory(frames(payloads)), "memory", lambda b, f, _: problems.extend(decoder.add(b, f)))
    assert not scan.faults
    return decoder.finish(), problems


def flat_rows(column: Column) -> list[list[Any]]:
    """All values of each row, without its shape."""
    if isinstance(column, Strings):
        return [row.reshape(-1).tolist() for row in column.to_numpy()[:, None]]
    if isinstance(column, np.ndarray):
        return [row.reshape(-1).tolist() for row in column]
    return [np.asarray(row).reshape(-1).tolist() for row in column.to_numpy()]
