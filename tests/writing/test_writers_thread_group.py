"""Threads that work together: what one hands over another gets, and nobody waits for ever."""

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.records.reference import examples
from tfr_assets.writing.writers.thread_group import Channel, OrderedChannel, StoppedError, ThreadGroup

pytestmark = pytest.mark.usefixtures("nothing_is_left_running")


def collect(channel: Channel[int], found: list[int]) -> None:
    for item in channel:
        found.append(item)


@examples(30)
@given(items=st.integers(0, 50), limit=st.integers(1, 5), consumers=st.integers(1, 4), producers=st.integers(1, 4))
def test_every_item_is_handed_over_once(items: int, limit: int, consumers: int, producers: int) -> None:
    def produce(channel: Channel[int], first: int) -> None:
        for item in range(first, items, producers):
            channel.put(item)
        channel.close()

    found: list[int] = []
    with ThreadGroup() as group:
        channel: Channel[int] = Channel(group, limit, producers)
        for _ in range(consumers):
            group.start(collect, channel, found)
        for first in range(producers):
            group.start(produce, channel, first)
    assert sorted(found) == list(range(items))


@examples(30)
@given(order=st.permutations(range(12)), limit=st.integers(1, 4))
def test_numbered_items_come_out_in_order(order: list[int], limit: int) -> None:
    found: list[tuple[int, int]] = []
    with ThreadGroup() as group:
        channel: OrderedChannel[int] = OrderedChannel(group, limit, producers=len(order))
        group.start(collect, channel, found)

        def put(number: int) -> None:
            for part in range(number % 3):
                channel.put((number, part))
            channel.finish(number)
            channel.close()

        for number in order:
            group.start(put, number)
    assert found == [(number, part) for number in range(12) for part in range(number % 3)]


def test_one_who_puts_waits_for_room() -> None:
    with ThreadGroup() as group:
        channel: Channel[int] = Channel(group, 2)
        put: list[int] = []

        def produce() -> None:
            for item in range(5):
                channel.put(item)
                put.append(item)
            channel.close()

        group.start(produce)
        items = iter(channel)
        for taken in range(5):
            assert next(items) == taken
            assert len(put) <= taken + 1 + 2
        assert list(items) == []
        time.sleep(0.01)
    assert put == list(range(5))


def test_what_waits_is_bounded_by_weight_and_the_next_in_order_never_waits() -> None:
    with ThreadGroup() as group:
        channel: OrderedChannel[int] = OrderedChannel(group, 10, weight=lambda numbered: numbered[1])
        put: list[tuple[int, int]] = []

        def produce() -> None:
            for item in [(1, 4), (1, 4), (1, 4), (0, 100), (0, 7)]:
                channel.put(item)
                put.append(item)
            for number in (1, 0):
                channel.finish(number)
            channel.close()

        group.start(produce)
        items = iter(channel)
        assert next(items) == (0, 100)  # though those that wait weigh more than 10
        assert put[:3] == [(1, 4)] * 3
        assert list(items) == [(0, 7), (1, 4), (1, 4), (1, 4)]


def test_an_error_of_a_thread_ends_all_others_and_is_raised() -> None:
    ended = []

    def wait_for(channel: Channel[int]) -> None:
        try:
            list(channel)
        except StoppedError:
            ended.append("empty")
            raise

    def fill(channel: Channel[int]) -> None:
        try:
            while True:
                channel.put(0)
        except StoppedError:
            ended.append("full")
            raise

    def fail() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"), ThreadGroup() as group:
        group.start(wait_for, Channel(group, 1))
        group.start(fill, Channel(group, 1))
        group.start(fail)
    assert sorted(ended) == ["empty", "full"]


def test_the_callers_error_ends_all_threads() -> None:
    with pytest.raises(KeyError), ThreadGroup() as group:
        group.start(list, Channel(group, 1))
        raise KeyError("mine")


def test_an_interrupt_while_threads_are_waited_for_ends_them_first() -> None:
    ended = []

    def work() -> None:
        time.sleep(0.2)  # the caller waits by now
        os.kill(os.getpid(), signal.SIGINT)
        while not group.stopped:
            time.sleep(0.01)
        time.sleep(0.2)  # as long as a file needs to be removed
        ended.append(True)

    with pytest.raises(KeyboardInterrupt), ThreadGroup() as group:
        group.start(work)
    assert ended


def test_the_caller_who_is_stopped_gets_the_error_that_stopped_it() -> None:
    def fail() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"), ThreadGroup() as group:
        channel: Channel[int] = Channel(group, 1)
        group.start(fail)
        while True:
            channel.put(0)


def test_an_endless_iteration_is_ended() -> None:
    started = threading.Event()

    def forever() -> Iterator[int]:
        while True:
            started.set()
            yield 0

    def consume(group: ThreadGroup) -> None:
        for _ in group.watched(forever()):
            pass

    with pytest.raises(KeyError), ThreadGroup() as group:
        group.start(consume, group)
        started.wait()
        raise KeyError("mine")
