"""Threads that work ahead of the caller, in order, and no further than there is room for results."""

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")
Task = Callable[[Callable[[T], None]], None]
"""Does its work and hands each result to the function that it is given, which waits while there is no room."""


class _Stopped(BaseException):
    """Ends a task whose results are not wanted any more."""


class _Results(Generic[T]):
    """What one task gave and the caller has not taken yet."""

    def __init__(self) -> None:
        self.ready: deque[T] = deque()
        self.done = False
        self.error: BaseException | None = None


class Ahead(Generic[T]):
    """Iterates over the results of tasks: all of the first, then all of the second, … while threads work on the next.

    Args:
        tasks: Asked for the next task by one thread at a time, when there is room for its results.
        workers: Number of threads.
        depth: Results of one task that wait at the most.
    """

    def __init__(self, tasks: Iterator[Task[T]], workers: int, depth: int = 2) -> None:
        self._tasks, self._depth = tasks, depth
        self._changed = threading.Condition()
        self._begun: deque[_Results[T]] = deque()
        self._most, self._process = workers + 1, os.getpid()
        self._exhausted = self._stopped = False
        self._taking = threading.Lock()
        self._threads = [threading.Thread(target=self._work, name="tfr-decode", daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()
        atexit.register(self.close)  # Python's threads stop afterwards: waiting for them would take for ever

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        with self._changed:
            while True:
                results = self._begun[0] if self._begun else None
                if results and results.ready:
                    self._changed.notify_all()
                    return results.ready.popleft()
                if results and results.error:
                    break
                if results and results.done:
                    self._begun.popleft()
                    self._changed.notify_all()
                elif self._stopped or (not results and self._exhausted):
                    break
                else:
                    self._changed.wait()
        self.close()
        if results and results.error:
            raise results.error
        raise StopIteration

    def close(self) -> None:
        """Stops the threads and waits for them; what they have not delivered is dropped."""
        if self._process != os.getpid():
            return  # forked, where there are no threads, but perhaps a lock that one of them held
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        if self._threads:  # else it was closed before, perhaps at exit, when modules may be gone already
            atexit.unregister(self.close)
        self._threads = []

    def _work(self) -> None:
        while (begun := self._begin()) is not None:
            task, results = begun
            try:
                if task:
                    task(lambda result, results=results: self._put(results, result))  # type: ignore[misc]
            except _Stopped:
                return
            except BaseException as error:
                results.error = error
            with self._changed:
                results.done = True
                self._changed.notify_all()

    def _begin(self) -> tuple[Task[T] | None, _Results[T]] | None:
        with self._taking:  # so that tasks begin in their order
            with self._changed:
                self._changed.wait_for(lambda: self._stopped or len(self._begun) < self._most)
                if self._stopped or self._exhausted:
                    return None
                results: _Results[T] = _Results()
            try:
                task = next(self._tasks, None)
            except Exception as error:
                results.error, task = error, None
            with self._changed:
                self._exhausted = task is None
                self._changed.notify_all()
                if task is None and results.error is None:
                    return None
                self._begun.append(results)
                return task, results

    def _put(self, results: _Results[T], result: T) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or len(results.ready) < self._depth)
            if self._stopped:
                raise _Stopped
            results.ready.append(result)
            self._changed.notify_all()
