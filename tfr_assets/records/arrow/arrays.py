"""Columns as NumPy holds them, also where NumPy has no type of its own: strings of bytes, and rows of varying length.

Both are laid out as Arrow has them, so that becoming Arrow arrays copies nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from reprlib import Repr
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa


_short = Repr()  # of a column that is printed


@dataclass(frozen=True, repr=False)
class Strings:
    """Strings of bytes, one after another.

    Attributes:
        offsets: int64 of shape (n + 1,): where each string starts in `data`, and where the last one ends.
        data: uint8: all bytes.
        inner: Shape of a row; `()` where each row is one string.
    """

    offsets: np.ndarray
    data: np.ndarray
    inner: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows, and the shape of each."""
        return (len(self), *self.inner)

    def __len__(self) -> int:
        return (len(self.offsets) - 1) // max(1, prod(self.inner))

    def __repr__(self) -> str:
        """Returns the number of rows, and the first of them, shortened."""
        return _preview(self)

    def __getitem__(self, rows: slice) -> "Strings":
        """Returns some consecutive rows, as a view."""
        start, stop, _ = rows.indices(len(self))
        size = prod(self.inner)
        return Strings(self.offsets[start * size : stop * size + 1], self.data, self.inner)

    def to_numpy(self) -> np.ndarray:
        """Returns an array of Python's bytes, of `shape`; slow, because each becomes an object."""
        first = int(self.offsets[0])
        data, ends = self.data[first : self.offsets[-1]].tobytes(), (self.offsets - first).tolist()
        found = np.empty(len(ends) - 1, object)
        found[:] = [data[start:stop] for start, stop in pairwise(ends)]
        return found.reshape(self.shape)

    def to_arrow(self) -> "pa.Array":
        """Returns a large_binary array, or fixed-size lists of them, without copying."""
        import pyarrow as pa

        buffers = [None, pa.py_buffer(np.ascontiguousarray(self.offsets)), pa.py_buffer(self.data)]
        return _fixed_size_lists(pa.Array.from_buffers(pa.large_binary(), len(self.offsets) - 1, buffers), self.inner)


@dataclass(frozen=True)
class TensorStrings:
    """Strings as TensorFlow has them in memory, for it to take: `records.kernels.tensor_strings`.

    Attributes:
        places: int64 of shape (n,): the address of each. What TensorFlow has taken is empty afterwards.
        owners: What frees the others.
        inner: Shape of a row; `()` where each row is one string.
    """

    places: np.ndarray
    owners: tuple[object, ...]
    inner: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.places) // max(1, prod(self.inner))

    def __getitem__(self, rows: slice) -> "TensorStrings":
        """Returns some consecutive rows: the same strings, not copies."""
        start, stop, _ = rows.indices(len(self))
        size = prod(self.inner)
        return TensorStrings(self.places[start * size : stop * size], self.owners, self.inner)


@dataclass(frozen=True, repr=False)
class Ragged:
    """Rows of varying length.

    Attributes:
        offsets: int64 of shape (n + 1,): where each row starts in `values`, and where the last one ends.
        values: What the rows hold, along its first axis.
    """

    offsets: np.ndarray
    values: "Column"

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        """Returns the number of rows, and the first of them, shortened."""
        return _preview(self)

    def __getitem__(self, rows: slice) -> "Ragged":
        """Returns some consecutive rows, as a view."""
        start, stop, _ = rows.indices(len(self))
        return Ragged(self.offsets[start : stop + 1], self.values)

    def trim(self) -> "Ragged":
        """Returns the same rows, with all of `values` in some row and the first offset 0."""
        first, last = int(self.offsets[0]), int(self.offsets[-1])
        values = self.values[first:last]
        return Ragged(self.offsets - first if first else self.offsets, _trim(values))

    def to_numpy(self) -> np.ndarray:
        """Returns an array of arrays, one per row."""
        values = self.values if isinstance(self.values, np.ndarray) else self.values.to_numpy()
        found = np.empty(len(self), object)
        for row, (start, stop) in enumerate(pairwise(self.offsets.tolist())):
            found[row] = values[start:stop]
        return found

    def to_arrow(self) -> "pa.Array":
        """Returns a large_list array; without copying, except for bools."""
        import pyarrow as pa

        return pa.LargeListArray.from_arrays(pa.array(self.offsets), to_arrow(self.values))


Column: TypeAlias = np.ndarray | Strings | Ragged
"""A column of a batch: numbers of shape (rows, …), strings, or rows of varying length of any of the three."""


def _preview(column: Strings | Ragged) -> str:
    first = _short.repr(to_arrow(column[: _short.maxlist + 1]).to_pylist())
    return f"{type(column).__name__} of {len(column):,} rows: {first}"


def _trim(column: Any) -> Any:
    return column.trim() if isinstance(column, Ragged) else column


def to_arrow(column: Column) -> "pa.Array":
    """Returns a column as Arrow; without copying, except for bools. Inner sizes become fixed-size lists."""
    import pyarrow as pa

    if not isinstance(column, np.ndarray):
        return column.to_arrow()
    return _fixed_size_lists(pa.array(np.ascontiguousarray(column).reshape(-1)), column.shape[1:], len(column))


def _fixed_size_lists(flat: "pa.Array", inner: tuple[int, ...], rows: int | None = None) -> "pa.Array":
    import pyarrow as pa

    for size in reversed(inner):
        if size == 0:  # from_arrays cannot tell how many rows there are
            return pa.array([[]] * (rows or 0), pa.list_(flat.type, 0))
        flat = pa.FixedSizeListArray.from_arrays(flat, size)
    return flat


def concatenate(parts: Sequence[Any]) -> Any:
    """Returns the rows of several columns of one kind, one after another, as a column of that kind."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    if isinstance(first, TensorStrings):
        owners = tuple(owner for part in parts for owner in part.owners)
        return TensorStrings(np.concatenate([part.places for part in parts]), owners, first.inner)
    if isinstance(first, Strings):
        data = np.concatenate([part.data[part.offsets[0] : part.offsets[-1]] for part in parts])
        return Strings(_concatenate_offsets(parts), data, first.inner)
    rows = [part.trim() for part in parts]
    return Ragged(_concatenate_offsets(rows), concatenate([part.values for part in rows]))


def _concatenate_offsets(parts: Sequence[Any]) -> np.ndarray:
    lengths = np.concatenate([[0], *(np.diff(part.offsets) for part in parts)])
    return np.cumsum(lengths, dtype=np.int64)
