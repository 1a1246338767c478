"""What features a record has, of which kinds and how long, without decoding values."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tfr_assets.records.examples.wire import KINDS, entries_of, fields_of, messages_of
from tfr_assets.records.kernels.validate import count_list_values


@dataclass(frozen=True)
class Measured:
    """A feature, or a feature list, of a record.

    Attributes:
        is_list: Whether it is a feature list.
        kinds: What its values are; empty: it holds nothing at all.
        counts: Numbers of its values, or of those of each step.
    """

    is_list: bool
    kinds: frozenset[str]
    counts: tuple[int, ...]


def measure_record(payload: np.ndarray) -> list[tuple[str, Measured]] | None:
    """Returns the features of a record by name; None where it is neither tf.Example nor tf.SequenceExample.

    Args:
        payload: The record: bytes of a buffer that goes on behind it as kernels need.
    """
    data = memoryview(payload)  # type: ignore[arg-type]
    try:
        context = entries_of(data, 1, lambda parts: _measured(False, [parts]))
        lists = entries_of(data, 2, lambda parts: _measured(True, [[step] for step in _steps(parts)]))
    except (ValueError, IndexError, KeyError):
        return None
    return [*context.items(), *lists.items()]


def _steps(parts: list[memoryview]) -> Iterator[memoryview]:
    for part in parts:
        yield from messages_of(part, 1, 1)


def _measured(is_list: bool, features: list[list[memoryview]]) -> Measured:
    found = [[(number, list_) for part in parts for number, list_ in fields_of(part)] for parts in features]
    kinds = frozenset(KINDS[number] for fields in found for number, _ in fields)
    counts = tuple(sum(_count(number, list_) for number, list_ in fields) for fields in found)
    return Measured(is_list, kinds, counts)


def _count(number: int, values: memoryview | int) -> int:
    if isinstance(values, int):
        raise ValueError("a list is not a number")  # noqa: TRY004 - the data's type, not the caller's
    count = count_list_values(number, np.frombuffer(values, np.uint8)) if len(values) else 0
    if count < 0:
        raise ValueError("a list is malformed")
    return count
