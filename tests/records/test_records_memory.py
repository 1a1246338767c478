"""Memory for columns: nobody's array changes while it is held, and memory is used again when it is not."""

import gc
import threading
import tracemalloc
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.records.reference import examples
from tfr_assets.records.arrow.buffers import Pool

BYTE, WORD = np.dtype(np.uint8), np.dtype(np.int64)


@examples(60)
@given(
    steps=st.lists(st.tuples(st.integers(0, 9_000_000), st.sampled_from([BYTE, WORD]), st.integers(0, 5)), max_size=30)
)
def test_an_array_is_nobody_elses_while_a_view_of_it_is_held(steps: list[tuple[int, np.dtype, int]]) -> None:
    pool = Pool()
    held: list[tuple[np.ndarray, int]] = []
    for number, (size, dtype, dropped) in enumerate(steps):
        array = pool.empty(size // dtype.itemsize, dtype)
        assert array.shape == (size // dtype.itemsize,)
        assert array.dtype == dtype
        assert not array.size or array.__array_interface__["data"][0] % dtype.itemsize == 0
        ends = array[:: max(1, array.size - 1)]  # a view only, of the first value and the last
        ends[:] = number
        held.append((ends, number))
        del array
        if dropped < len(held):
            del held[dropped]
        for view, value in held:
            assert (view == value).all()


def test_memory_is_used_again() -> None:
    pool = Pool()
    places = set()
    for size in range(100_000, 100_050):
        array = pool.empty(size, BYTE)
        places.add(array.__array_interface__["data"][0])
        del array
    assert len(places) == 1


def test_what_is_kept_of_many_sizes_does_not_add_up() -> None:
    pool = Pool()
    tracemalloc.start()
    try:
        for size in range(5 << 20, 30 << 20, 1 << 20):
            array = pool.empty(size, BYTE)
            del array
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 2 * (30 << 20)


def test_arrays_dropped_by_other_threads_come_back() -> None:
    pool, places = Pool(), set()
    for _ in range(20):
        arrays = [pool.empty(100_000, BYTE) for _ in range(3)]
        places |= {array.__array_interface__["data"][0] for array in arrays}
        thread = threading.Thread(target=arrays.clear)
        thread.start()
        thread.join()
    assert len(places) == 3


def test_threads_that_ask_at_once_get_arrays_of_their_own() -> None:
    pool, wrong = Pool(), []

    def work(mark: int) -> None:
        for _ in range(300):
            arrays = [pool.empty(size, BYTE) for size in (40_000, 100_000, 5 << 20)]
            for array in arrays:
                array[[0, -1]] = mark
            wrong.extend(array for array in arrays if (array[[0, -1]] != mark).any())

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_array_outlives_its_pool_and_memory_goes_with_the_last() -> None:
    pool = Pool()
    array = pool.empty(100_000, BYTE)
    array[:] = 7
    slab = weakref.ref(pool._slab)
    del pool
    gc.collect()
    assert (array == 7).all()
    assert slab() is not None
    del array
    gc.collect()
    assert slab() is None


@pytest.mark.parametrize("size", [100_000, 14_000_000])
def test_memory_is_another_pools_when_nobody_holds_a_part_of_it(size: int) -> None:
    def place(array: np.ndarray) -> int:
        return array.__array_interface__["data"][0]

    first, other = Pool(), Pool()
    array = first.empty(size, BYTE)
    used = place(array)
    del first
    gc.collect()
    assert place(other.empty(size, BYTE)) != used
    del array
    gc.collect()
    assert place(Pool().empty(size, BYTE)) == used


@pytest.mark.parametrize("size", [1 << 20, 3 << 20, 14 << 20])
def test_no_more_than_48_mib_are_kept(size: int) -> None:
    tracemalloc.start()
    try:
        pools = [Pool() for _ in range(20)]  # some may take what was kept before
        arrays = [pool.empty(size, BYTE) for pool in pools]
        del pools, arrays
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 49 << 20


def test_what_is_too_large_to_be_kept_leaves_the_rest() -> None:
    array = Pool().empty(3 << 20, BYTE)
    place = array.__array_interface__["data"][0]
    del array
    large = Pool().empty(60 << 20, BYTE)
    del large
    again = [Pool().empty(3 << 20, BYTE) for _ in range(20)]
    assert place in {array.__array_interface__["data"][0] for array in again}


@pytest.mark.parametrize("dtype", [BYTE, WORD])
def test_nothing_is_an_array_too(dtype: np.dtype) -> None:
    assert Pool().empty(0, dtype).shape == (0,)
