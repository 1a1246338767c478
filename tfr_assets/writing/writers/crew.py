"""Threads that work together on one call: they hand things over, and stop together when one of them fails.

Nothing here waits for ever: whoever waits is woken when another thread fails, or when the caller is interrupted.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class StoppedError(Exception):
    """Another thread of the crew failed; it ends the one that gets it, and is never seen outside."""


class Crew:
    """A context that starts threads and waits for them; it raises what the first of them to fail raised."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.stopped = False
        self._error: BaseException | None = None
        self._threads: list[threading.Thread] = []

    def start(self, work: Callable[..., object], *arguments: Any) -> None:
        """Runs `work` in a thread of its own."""
        thread = threading.Thread(target=self._run, args=(work, *arguments), name=f"tfr-{work.__name__.strip('_')}")
        self._threads.append(thread)
        thread.start()

    def stop(self) -> None:
        """Wakes and ends all threads."""
        with self.changed:
            self.stopped = True
            self.changed.notify_all()

    def watched(self, items: Iterable[T]) -> Iterator[T]:
        """Yields the items, until the crew stops.

        Raises:
            StoppedError: It did.
        """
        for item in items:
            if self.stopped:
                raise StoppedError
            yield item

    def _run(self, work: Callable[..., object], *arguments: Any) -> None:
        try:
            work(*arguments)
        except StoppedError:
            return
        except BaseException as error:  # raised again in the caller's thread
            self._error = self._error or error
            self.stop()

    def __enter__(self) -> "Crew":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._join()
        finally:
            self.stop()
            while any(thread.is_alive() for thread in self._threads):
                with suppress(KeyboardInterrupt):  # they are ending already, and remove what is unfinished
                    self._join()
        if self._error is not None and (error is None or kind is StoppedError):
            raise self._error

    def _join(self) -> None:
        for thread in self._threads:
            thread.join()


class Channel(Generic[T]):
    """A bounded queue between threads of a crew.

    Iterating gives the items that were put, to one thread each, until the channel is closed and empty.
    """

    def __init__(self, crew: Crew, limit: int, producers: int = 1) -> None:
        """Prepares a channel.

        Args:
            crew: Whose threads use it.
            limit: Most items that may wait.
            producers: How many threads put, and `close` when they are done.
        """
        self._crew, self._limit, self._producers = crew, limit, producers
        self._waiting: deque[T] = deque()

    def put(self, item: T) -> None:
        """Appends an item, as soon as there is room.

        Raises:
            StoppedError: The crew stopped.
        """
        with self._crew.changed:
            self._wait(lambda: self._fits(item))
            self._add(item)
            self._crew.changed.notify_all()

    def close(self) -> None:
        """Tells that one of those who put is done."""
        with self._crew.changed:
            self._producers -= 1
            self._crew.changed.notify_all()

    def __iter__(self) -> Iterator[T]:
        while True:
            with self._crew.changed:
                self._wait(lambda: self._is_ready() or not self._producers)
                if not self._is_ready():
                    return
                item = self._take()
                self._crew.changed.notify_all()
            yield item

    def _wait(self, ready: Callable[[], bool]) -> None:
        self._crew.changed.wait_for(lambda: self._crew.stopped or ready())
        if self._crew.stopped:
            raise StoppedError

    def _fits(self, item: T) -> bool:
        return len(self._waiting) < self._limit

    def _add(self, item: T) -> None:
        self._waiting.append(item)

    def _is_ready(self) -> bool:
        return bool(self._waiting)

    def _take(self) -> T:
        return self._waiting.popleft()


class OrderedChannel(Channel[tuple[int, T]]):
    """A bounded queue of numbered items that come out in the order of their numbers, from 0, without a gap.

    An item that is `limit` ahead of the next to come out waits to be put, so that the next one never finds it full.
    """

    def __init__(self, crew: Crew, limit: int, producers: int = 1) -> None:
        super().__init__(crew, limit, producers)
        self._numbered: dict[int, T] = {}
        self._next = 0

    def _fits(self, item: tuple[int, T]) -> bool:
        return item[0] < self._next + self._limit

    def _add(self, item: tuple[int, T]) -> None:
        self._numbered[item[0]] = item[1]

    def _is_ready(self) -> bool:
        return self._next in self._numbered

    def _take(self) -> tuple[int, T]:
        self._next += 1
        return self._next - 1, self._numbered.pop(self._next - 1)
