"""Rows of columns in NumPy's memory → outputs of a TensorFlow op: the layout of what is handed over, and the kernel.

The kernel is a C function as tensorflow/c/kernels.h asks for it, compiled by numba. It runs in TensorFlow's threads,
without the GIL, writes into memory of TensorFlow's own allocator, and makes no Python object, also not of strings.

What is handed over is a table of int64, given by its address:

    done, problem, twice,                             addresses: of a byte per batch; of a message, or 0; of the message
                                                      for a batch that is asked for again
    ragged, offsets × ragged,                         a column: its ragged levels, from the outside in, then what
    type, size, data, stop, offsets, inner, dim × inner,   a row holds: its type, bytes of a value, where …
    …                                                 the next column

A batch is `(table, number, first row, last row + 1)`. Each ragged level is one output, its row splits; each column's
values are one more. Strings that TensorFlow takes have no offsets, and their addresses as data; a batch is taken once.
"""

from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numba import types

from tfr_assets.records.arrow.arrays import Column, Ragged, Strings, TensorStrings
from tfr_assets.records.examples.tensor_proto import STRING, dtype_number
from tfr_assets.records.kernels.jit import (
    address_of,
    called,
    copy_32,
    copy_bytes,
    finish_stores,
    inlined,
    load_i64,
    load_u8,
    stack_block,
    store_i64,
    store_u8,
)
from tfr_assets.records.kernels.tensor_strings import SHORT, STRING_SIZE, put_long_string, take_strings

_INT64 = dtype_number("int64")
_INVALID_ARGUMENT, _RESOURCE_EXHAUSTED = 3, 8  # of tensorflow/c/tf_status.h
_TWICE = np.frombuffer(b"a batch was asked for twice\0", np.uint8)
_NO_ROOM = int.from_bytes(b"no room\0", "little")

_word, _int = types.int64, types.int32
SYMBOLS = {
    "TF_NewStatus": _word(),
    "TF_DeleteStatus": types.void(_word),
    "TF_SetStatus": types.void(_word, _int, _word),
    "TF_GetCode": _int(_word),
    "TF_GetInput": types.void(_word, _int, _word, _word),
    "TF_NumOutputs": _int(_word),
    "TF_AllocateOutput": _word(_word, _int, _int, _word, _int, _word, _word),
    "TF_TensorData": _word(_word),
    "TF_DeleteTensor": types.void(_word),
    "TF_OpKernelContext_Failure": types.void(_word, _word),
}
"""What the kernel calls of TensorFlow."""

_new_status, _delete_status, _set_status, _code, _input, _outputs, _allocate, _data, _delete, _fail = (
    types.ExternalFunction(name, signature) for name, signature in SYMBOLS.items()
)
_tables: "WeakValueDictionary[int, HandedOver]" = WeakValueDictionary()


class HandedOver:
    """Some rows, until TensorFlow has copied or taken all of them.

    Args:
        columns: Of equally many rows.
        data_types: What TensorFlow calls the type of each column's values, by its number.
        batch_size: Rows of a batch.
        problem: Fails the op with this message instead.

    Attributes:
        columns: The columns.
        problem: As given.
        batches: int64 of shape (n, 4): what the op takes, a row a batch.
    """

    def __init__(
        self, columns: Sequence[Column | TensorStrings], data_types: Sequence[int], batch_size: int, problem: str = ""
    ) -> None:
        rows = len(columns[0]) if columns else 1
        starts = np.arange(0, rows, batch_size)
        self._done = np.zeros(len(starts), np.uint8)
        self._problem = np.frombuffer(problem.encode() + b"\0", np.uint8)
        self.problem = problem
        self.columns: tuple[Any, ...] = tuple(columns)
        self._held: list[Column | TensorStrings] = [*columns]
        words = [address_of(self._done), address_of(self._problem) if problem else 0, address_of(_TWICE)]
        for column, data_type in zip(columns, data_types, strict=True):
            words += self._words(column, data_type)
        self._table = np.array(words, np.int64)
        table = np.full(len(starts), address_of(self._table))
        _tables[address_of(self._table)] = self
        self.batches = np.stack([table, np.arange(len(starts)), starts, np.minimum(starts + batch_size, rows)], 1)

    def _words(self, column: Column | TensorStrings, data_type: int) -> list[int]:
        levels = []
        while isinstance(column, Ragged):
            levels.append(self._keep(column.offsets))
            column = column.values
        if isinstance(column, Strings):
            size, offsets, data, inner = STRING_SIZE, self._keep(column.offsets), column.data, column.inner
        elif isinstance(column, TensorStrings):
            size, offsets, data, inner = STRING_SIZE, 0, column.places, column.inner
        else:
            size, offsets, data, inner = column.itemsize, 0, column, column.shape[1:]
        start = self._keep(data)
        return [len(levels), *levels, data_type, size, start, start + data.nbytes, offsets, len(inner), *inner]

    def _keep(self, array: np.ndarray) -> int:
        self._held.append(array := np.ascontiguousarray(array))
        return address_of(array)

    @staticmethod
    def at(table: int) -> "HandedOver":
        """Returns what is handed over by a table, given by its address."""
        return _tables[table]

    def fetch(self, number: int) -> None:
        """Says that a batch was copied, as the kernel does."""
        self._done[number] = 1

    @property
    def fetched(self) -> bool:
        """Whether TensorFlow has copied all batches, so that this may go."""
        return bool(self._done.all())


def hand_over(_kernel: int, context: int) -> None:
    """The kernel: `compute_func` of TF_NewKernelBuilder."""
    scratch = stack_block()  # type: ignore[call-arg, var-annotated]  # as numba calls intrinsics
    status = _new_status()
    _input(context, np.int32(0), scratch, status)
    given = load_i64(scratch)
    batch = _data(given)
    table, number, start, stop = load_i64(batch), load_i64(batch + 8), load_i64(batch + 16), load_i64(batch + 24)
    _delete(given)
    if load_i64(table + 8):
        _set_status(status, np.int32(_INVALID_ARGUMENT), load_i64(table + 8))
    elif load_u8(load_i64(table) + number):
        _set_status(status, np.int32(_INVALID_ARGUMENT), load_i64(table + 16))
    word, output, outputs = table + 24, np.int32(0), _outputs(context)
    while output < outputs and _code(status) == 0:
        word, output = _column(context, output, word, start, stop, scratch, status)
    if _code(status) != 0:
        _fail(context, status)
    finish_stores()
    store_u8(load_i64(table) + number, np.uint8(1))
    _delete_status(status)


@called
def _column(context, output, word, start, stop, dimensions, status):
    """Makes the outputs of one column; returns the next column's words and outputs."""
    ragged = load_i64(word)
    for level in range(ragged):
        offsets = load_i64(word + 8 + level * 8)
        store_i64(dimensions, stop - start + 1)
        size = (stop - start + 1) * 8
        tensor = _allocate(context, output, np.int32(_INT64), dimensions, np.int32(1), size, status)
        if tensor == 0:
            return word, output
        target, first = _data(tensor), load_i64(offsets + start * 8)
        for row in range(stop - start + 1):
            store_i64(target + row * 8, load_i64(offsets + (start + row) * 8) - first)
        _delete(tensor)
        start, stop, output = first, load_i64(offsets + stop * 8), np.int32(output + 1)
    word += 8 + ragged * 8
    data_type, size, data, end = load_i64(word), load_i64(word + 8), load_i64(word + 16), load_i64(word + 24)
    offsets, inner = load_i64(word + 32), load_i64(word + 40)
    word += 48
    store_i64(dimensions, stop - start)
    values = np.int64(1)  # of a row
    for axis in range(inner):
        store_i64(dimensions + 8 + axis * 8, load_i64(word))
        values *= load_i64(word)
        word += 8
    count = (stop - start) * values
    tensor = _allocate(
        context, output, np.int32(data_type), dimensions, np.int32(inner + 1), count * size, status
    )  # fmt: skip
    if tensor == 0:
        return word, output
    target = _data(tensor)
    if data_type != STRING:
        copy_bytes(target, data + start * values * size, count * size)
    elif offsets == 0:
        take_strings(data + start * values * 8, count, target)
    elif not _put_strings(offsets + start * values * 8, count, data, end, target):
        store_i64(dimensions, _NO_ROOM)  # a message that needs no memory
        _set_status(status, np.int32(_RESOURCE_EXHAUSTED), dimensions)
    _delete(tensor)
    return word, np.int32(output + 1)


@inlined
def _put_strings(offsets, count, data, stop, target):
    """Makes TF_TStrings in memory that holds empty ones; returns whether memory was enough."""
    start = load_i64(offsets)
    for i in range(count):
        end = load_i64(offsets + i * 8 + 8)
        size, source = end - start, data + start
        if size <= SHORT:
            if i + 1 < count and source + 32 <= stop:  # runs over into the next string, which is not there yet
                copy_32(target + 1, source)
            else:
                copy_bytes(target + 1, source, size)
            store_u8(target, np.uint8(size << 2))
            store_u8(target + 1 + size, np.uint8(0))
        elif not put_long_string(target, source, size):
            return False
        start = end
        target += STRING_SIZE
    return True
