"""Threads that work together on one call: they hand things over, and stop together when one of them fails.

Nothing here waits for ever: a waiting thread is woken when another thread fails, or when the caller is interrupted.
"""

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class StoppedError(Exception):
    """Another thread of the group failed; it ends the one that gets it, and is never seen outside."""


class ThreadGroup:
    """A context that starts threads and waits for them; it raises what the first of them to fail raised."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.stopped = False
        self._conditions: list[threading.Condition] = []
        self._error: BaseException | None = None
        self._threads: list[threading.Thread] = []
        self._ended: list[threading.Event] = []  # of each; `join` takes a thread for ended when it is interrupted

    def start(self, work: Callable[..., object], *arguments: Any) -> None:
        """Runs `work` in a thread of its own.

        Raises:
            RuntimeError: The system has no other thread.
        """
        ended = threading.Event()
        name = f"tfr-{work.__name__.strip('_')}"
        thread = threading.Thread(target=self._run, args=(ended, work, *arguments), name=name)
        self._ended.append(ended)
        try:
            thread.start()
        except RuntimeError:
            ended.set()
            raise
        self._threads.append(thread)

    def stop(self) -> None:
        """Wakes and ends all threads."""
        with self.lock:
            self.stopped = True
            for condition in self._conditions:
                condition.notify_all()

    def condition(self) -> threading.Condition:
        """Returns what threads can wait for, with the group's lock; they are woken when it stops."""
        self._conditions.append(threading.Condition(self.lock))
        return self._conditions[-1]

    def watched(self, items: Iterable[T]) -> Iterator[T]:
        """Yields the items, until the group stops.

        Raises:
            StoppedError: It did.
        """
        for item in items:
            if self.stopped:
                raise StoppedError
            yield item

    def _run(self, ended: threading.Event, work: Callable[..., object], *arguments: Any) -> None:
        try:
            work(*arguments)
        except StoppedError:
            return
        except BaseException as error:  # raised again in the caller's thread
            self._error = self._error or error
            self.stop()
        finally:
            ended.set()

    def __enter__(self) -> "ThreadGroup":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._join()
        finally:
            self.stop()
            while self._is_at_work():
                with suppress(KeyboardInterrupt):  # they are ending already, and remove what is unfinished
                    self._join()
        if self._error is not None and (error is None or kind is StoppedError):
            raise self._error

    def _is_at_work(self) -> bool:
        return not all(ended.is_set() for ended in self._ended) or any(thread.is_alive() for thread in self._threads)

    def _join(self) -> None:
        for ended in self._ended:
            ended.wait()
        for thread in self._threads:
            thread.join()


class Channel(Generic[T]):
    """A bounded queue between threads of a group.

    Iterating gives the items that were put, to one thread each, until the channel is closed and empty.
    """

    def __init__(
        self, group: ThreadGroup, limit: int, producers: int = 1, weight: Callable[[T], int] = lambda _: 1
    ) -> None:
        """Prepares a channel.

        Args:
            group: Whose threads use it.
            limit: Weight of waiting items from which on no other may join them; 1: there is one at the most.
            producers: How many threads put, and `close` when they are done.
            weight: Of an item, such as its bytes; otherwise items are counted.
        """
        self._group, self._limit, self._producers, self._weight = group, limit, producers, weight
        self._waiting: deque[T] = deque()
        self._load = 0
        self._room, self._ready = group.condition(), group.condition()

    def put(self, item: T) -> None:
        """Appends an item, as soon as there is room.

        Raises:
            StoppedError: The group stopped.
        """
        with self._group.lock:
            self._wait(self._room, lambda: self._fits(item))
            self._add(item)
            self._load += self._weight(item)
            if self._is_ready():
                self._ready.notify()

    def finish(self, number: int) -> None:
        """Tells that there is no other item of a number. Only where items come in order does that matter."""

    def close(self) -> None:
        """Tells that one of those who put is done."""
        with self._group.lock:
            self._producers -= 1
            self._ready.notify_all()

    def __iter__(self) -> Iterator[T]:
        while True:
            with self._group.lock:
                self._wait(self._ready, lambda: self._is_ready() or not self._producers)
                if not self._is_ready():
                    return
                item = self._take()
                self._load -= self._weight(item)
                if 2 * self._load <= self._limit or not self._is_ready():  # to wake one for every item costs more
                    self._room.notify_all()
            yield item

    def _wait(self, condition: threading.Condition, until: Callable[[], bool]) -> None:
        condition.wait_for(lambda: self._group.stopped or until())
        if self._group.stopped:
            raise StoppedError

    def _fits(self, item: T) -> bool:
        return self._load < self._limit

    def _add(self, item: T) -> None:
        self._waiting.append(item)

    def _is_ready(self) -> bool:
        return bool(self._waiting)

    def _take(self) -> T:
        return self._waiting.popleft()


class OrderedChannel(Channel[tuple[int, T]]):
    """A bounded queue of numbered items that come out in the order of their numbers, from 0, without a gap.

    There may be several of one number, put by one thread; they come out as that thread puts them, until it tells that
    it is done with the number. One that is the next to come out never finds the queue full.
    """

    _numbered: dict[int, deque[T]]

    def __init__(
        self, group: ThreadGroup, limit: int, producers: int = 1, weight: Callable[[tuple[int, T]], int] = lambda _: 1
    ) -> None:
        """See `Channel`."""
        super().__init__(group, limit, producers, weight)
        self._numbered = defaultdict(deque)
        self._finished: set[int] = set()
        self._next = 0

    def finish(self, number: int) -> None:
        """See `Channel`."""
        with self._group.lock:
            self._finished.add(number)
            self._go_on()
            self._room.notify_all()
            self._ready.notify_all()

    def _fits(self, item: tuple[int, T]) -> bool:
        return self._load < self._limit or (item[0] == self._next and not self._is_ready())

    def _add(self, item: tuple[int, T]) -> None:
        self._numbered[item[0]].append(item[1])

    def _is_ready(self) -> bool:
        return bool(self._numbered[self._next])

    def _take(self) -> tuple[int, T]:
        item = self._next, self._numbered[self._next].popleft()
        self._go_on()
        return item

    def _go_on(self) -> None:
        while self._next in self._finished and not self._numbered[self._next]:
            del self._numbered[self._next]
            self._finished.remove(self._next)
            self._next += 1
