"""Datasets of what Python generates: soon made, and they let the interpreter end.

`tf.data.Dataset.from_generator` traces five functions for every dataset, and runs a dataset in a dataset. Here three
functions are traced once a process, which find the generator by its number.

At its end, Python stops every thread that asks for the interpreter, also one of TensorFlow's in the middle of a
generator, and TensorFlow waits for that thread for ever. So before, all generators come to their end: whatever they
wait for ends by `atexit` as well, and they give nothing more.
"""

import atexit
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cache
from itertools import count
from typing import Any, cast

import numpy as np
import tensorflow as tf

_LONGEST = 10.0  # seconds
_ELEMENTS, _ALIGNMENT = 129, 64  # of a tensor that TensorFlow takes as it is
_QUIET = 0.2  # seconds since TensorFlow was last in a generator, in which it has surely come back from it

_numbers = count()
_functions: dict[int, Callable[..., Iterator[Any]]] = {}  # of datasets that are alive
_running: "dict[int, _Generator]" = {}
_inside: "set[_Generator]" = set()  # generators that a thread is in
_last = -_QUIET  # when a thread came back from one
_ended = False


@tf.autograph.experimental.do_not_convert  # it may be called in a function that TensorFlow traces
def from_generator(
    generate: Callable[..., Iterator[Any]], signature: Any, arguments: Sequence[tf.Tensor] = ()
) -> tf.data.Dataset:
    """Returns what `tf.data.Dataset.from_generator` does.

    Args:
        generate: A generator function, called for each iterator.
        signature: What it gives: a TensorSpec, or a tuple of them.
        arguments: Tensors that it is called with.
    """
    specs = tuple(tf.nest.flatten(signature))
    with tf.init_scope():  # not a part of the function that happens to be traced
        given = [_number_of(generate), *arguments]
        begin, give, end = _trace(tuple(tensor.dtype for tensor in given), tuple(spec.dtype for spec in specs))
    variant = tf.raw_ops.GeneratorDataset(
        init_func_other_args=given, init_func=begin,
        next_func_other_args=[], next_func=give,
        finalize_func_other_args=[], finalize_func=end,
        output_types=[spec.dtype for spec in specs], output_shapes=[spec.shape for spec in specs],
    )  # fmt: skip
    return tf.data.experimental.from_variant(variant, signature)


def _number_of(generate: Callable[..., Iterator[Any]]) -> tf.Tensor:
    """Returns the number of a function, which is kept for as long as TensorFlow has this very tensor.

    What lives as long as a dataset is no object of Python's: another dataset, or a function, may hold it in C++. So the
    tensor's memory is an array of Python's, whose end tells. It is as long as it is because functions that capture a
    tensor of up to 128 elements copy it.
    """
    number = next(_numbers)
    memory = np.zeros(_ELEMENTS * 8 + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    array = memory[start : start + _ELEMENTS * 8].view(np.int64)
    array[:] = number
    _functions[number] = generate
    weakref.finalize(array, _functions.pop, number).atexit = False
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())


@cache
def _trace(given: tuple[tf.DType, ...], gives: tuple[tf.DType, ...]) -> tuple[Any, Any, Any]:
    """Returns what TensorFlow calls when an iterator begins, for its next element, and when it is gone."""

    def traced(function: Callable[..., Any], types: Sequence[tf.DType], results: Sequence[tf.DType]) -> Any:
        calls = tf.function(lambda *tensors: tf.numpy_function(function, tensors, results), autograph=False)
        return calls.get_concrete_function(*(tf.TensorSpec(None, dtype) for dtype in types))

    number = (tf.int64,)
    return traced(_begin, given, number), traced(_next, number, gives), traced(_end, number, number)


def until_exit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function for TensorFlow's threads that lets the interpreter end, too."""

    def call(*arguments: Any) -> Any:
        return next(_Generator(function(*arguments) for _ in range(1)))

    return call


def _begin(number: np.ndarray, *arguments: np.ndarray) -> np.int64:
    run = next(_numbers)
    _running[run] = _Generator(cast(Generator[Any, None, None], _functions[int(number[0])](*arguments)))
    return np.int64(run)


def _next(run: np.int64) -> Any:
    return next(_running[int(run)])


def _end(run: np.int64) -> np.int64:
    del _running[int(run)]
    return run


class _Generator:
    """A generator that can be asked to end."""

    def __init__(self, items: Generator[Any, None, None]) -> None:
        self._items = items

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        global _last
        _inside.add(self)
        try:
            if not _ended:
                return next(self._items)
            self._items.close()  # here, rather than when it is collected
            raise StopIteration
        finally:
            _last = time.monotonic()
            _inside.discard(self)

    def close(self) -> None:
        """Ends it where it is. It must not be running."""
        self._items.close()


@atexit.register  # when modules are imported, so that what generators wait for, which registers later, ends before
def _end_all() -> None:
    global _ended
    _ended = True
    until = time.monotonic() + _LONGEST
    while (_inside or time.monotonic() < _last + _QUIET) and time.monotonic() < until:
        time.sleep(0.01)
    for generator in set(_running.values()) - _inside:
        generator.close()  # while what it needs to end in order is still there
