"""Datasets of what Python generates, which let the interpreter end.

At its end, Python stops every thread that asks for the interpreter, also one of TensorFlow's in the middle of a
generator, and TensorFlow waits for that thread for ever. So before, all generators come to their end: whatever they
wait for ends by `atexit` as well, and they give nothing more.
"""

import atexit
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any, cast

import tensorflow as tf

_LONGEST = 10.0  # seconds
_QUIET = 0.2  # seconds since TensorFlow was last in a generator, in which it has surely come back from it

_inside: "set[_Generator]" = set()  # generators that a thread is in
_last = -_QUIET  # when a thread came back from one
_ended = False


def generated(generate: Callable[..., Iterator[Any]], signature: Any, arguments: Any = None) -> tf.data.Dataset:
    """Returns `tf.data.Dataset.from_generator`'s dataset.

    Args:
        generate: A generator function, called for each iterator.
        signature: What it gives.
        arguments: Tensors that it is called with.
    """

    def begin(*given: Any) -> _Generator:
        return _Generator(cast(Generator[Any, None, None], generate(*given)))

    return tf.data.Dataset.from_generator(begin, output_signature=signature, args=arguments)


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
            self._items.close()  # here, rather than when nobody has it any more
            raise StopIteration
        finally:
            _last = time.monotonic()
            _inside.discard(self)


@atexit.register  # when modules are imported, so that what generators wait for, which registers later, ends before
def _end() -> None:
    global _ended
    _ended = True
    until = time.monotonic() + _LONGEST
    while (_inside or time.monotonic() < _last + _QUIET) and time.monotonic() < until:
        time.sleep(0.01)
