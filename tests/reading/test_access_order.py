"""Orders are permutations, each epoch another, reached anywhere without a list; how well they shuffle is measured."""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfr_assets
from tests.records.reference import examples
from tfr_assets.errors import ConfigError
from tfr_assets.layout import Layout
from tfr_assets.reading.access.order import Order, order_of
from tfr_assets.reading.access.permutation import permuted

from .test_reading_columnar import table

Written = Callable[..., Layout]
SHUFFLES = ["global", "blocks", 1, 7, 10_000]


@given(size=st.integers(1, 2000), key=st.integers(0, 2**64 - 1), group=st.integers(0, 2**40))
@examples(200)
def test_a_permutation_takes_each_number_once(size: int, key: int, group: int) -> None:
    found = permuted(np.arange(size), size, group, key)
    assert np.array_equal(np.sort(found), np.arange(size))
    for place in {0, size // 2, size - 1}:
        assert permuted(np.array([place]), size, group, key).tolist() == [found[place]]


@given(size=st.integers(2**32, 2**62), key=st.integers(0, 2**64 - 1), first=st.integers(0, 2**32 - 5000))
@examples(50)
def test_huge_permutations_stay_within_their_size(size: int, key: int, first: int) -> None:
    found = permuted(np.arange(first, first + 5000), size, 0, key)
    assert len(np.unique(found)) == 5000
    assert found.min() >= 0
    assert found.max() < size


@given(
    size=st.integers(0, 3000), shuffle=st.sampled_from([False, True, *SHUFFLES]), seed=st.integers(-5, 2**70),
    epoch=st.integers(0, 3), payload=st.integers(0, 2**34),
)  # fmt: skip
@examples(200)
def test_every_order_gives_each_record_once(size: int, shuffle: Any, seed: int, epoch: int, payload: int) -> None:
    order = order_of(size, payload, shuffle, seed)
    found = order.records(epoch, np.arange(size))
    assert np.array_equal(np.sort(found), np.arange(size))
    assert np.array_equal(order.records(epoch, np.arange(size // 3, size)), found[size // 3 :])


@pytest.mark.parametrize("shuffle", ["global", "blocks", 100])
def test_epochs_and_seeds_are_orders_of_their_own(shuffle: Any) -> None:
    def records(seed: int, epoch: int) -> tuple[int, ...]:
        return tuple(Order(5000, shuffle, 50, seed).records(epoch, np.arange(5000)).tolist())

    assert len({records(seed, epoch) for seed in range(3) for epoch in range(3)}) == 9
    assert records(1, 2) == records(1, 2)


@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_all_orders_of_a_few_records_come_about_as_often(size: int) -> None:
    keys = 20_000
    found = permuted(np.tile(np.arange(size), keys), size, np.repeat(np.arange(keys), size), 5).reshape(keys, size)
    for place in range(size):  # at each place each record, so often within five standard deviations
        counts = np.bincount(found[:, place], minlength=size)
        assert abs(counts - keys / size).max() < 5 * np.sqrt(keys / size)


def test_a_global_shuffle_is_a_random_one() -> None:
    size = 100_000
    found = Order(size, "global", 1, 3).records(0, np.arange(size))
    assert abs(np.corrcoef(found, np.arange(size))[0, 1]) < 5 / np.sqrt(size)
    steps = np.diff(found)
    assert (abs(steps) == 1).sum() < 20  # two of a random order, on average
    assert abs((steps > 0).mean() - 0.5) < 5 / np.sqrt(12 * size)
    low = np.bincount(found[: size // 10] * 100 // size, minlength=100)
    assert ((low - 100) ** 2 / 100).sum() < 160  # chi-squared of 99 degrees of freedom: 1 in 10,000 lies above


def test_a_window_moves_no_record_further_than_itself() -> None:
    order = Order(5000, 100, 1, 3)
    found = order.records(0, np.arange(5000))
    for start in range(0, 5000, 100):
        window = found[start : start + 100]  # which may reach over the end
        assert 99 in (np.ptp(window), np.ptp((window + 2500) % 5000))


def test_blocks_are_shuffled_among_sixteen() -> None:
    order = Order(16 * 100 * 5, "blocks", 100, 3)
    found = order.records(1, np.arange(8000))
    together = [{int(record) // 100 for record in found[i : i + 1600]} for i in range(0, 8000, 1600)]
    assert all(16 <= len(blocks) <= 32 for blocks in together)  # blocks begin anywhere, so that each touches two
    assert abs(np.corrcoef(found, np.arange(8000))[0, 1]) < 0.6


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_batches_of_any_order_hold_each_record_once(written: Written, shuffle: Any) -> None:
    folder = written(table(100)).folder
    for batches in (
        tfr_assets.batches(folder, 9, shuffle=shuffle),
        tfr_assets.open(folder).batches(9, shuffle=shuffle),
    ):
        found = [batch["id"].tolist() for batch in batches]
        assert sorted(chain(*found)) == list(range(100))
        assert [len(ids) for ids in found] == [9] * 11 + [1]


def test_epochs_follow_each_other(written: Written) -> None:
    opened = tfr_assets.open(written(table(50)).folder)
    epochs = [batch["id"].tolist() for batch in opened.batches(50, shuffle="global", epochs=3, seed=4)]
    assert [sorted(ids) for ids in epochs] == [list(range(50))] * 3
    assert epochs[0] != epochs[1] != epochs[2]
    endless = opened.batches(50, shuffle="global", epochs=None, seed=4)
    assert [next(endless)["id"].tolist() for _ in range(3)] == epochs
    assert endless.epoch == 2
    endless.close()


def test_a_batch_can_be_any_kind(written: Written) -> None:
    opened = tfr_assets.open(written(table(30)).folder)
    (frame,) = opened.batches(30, into="pandas")
    (records,) = opened.batches(30, into="records")
    (arrow,) = opened.batches(30, into="arrow", columns=["name", "id"])
    assert frame["id"].tolist() == [record["id"] for record in records] == arrow["id"].to_pylist() == list(range(30))
    assert records[3]["name"] == arrow["name"][3].as_py()
    assert arrow.schema.names == ["name", "id"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"shuffle": "all"}, {"shuffle": -1}, {"shuffle": 1.5}, {"seed": 1.5}, {"seed": None}, {"epochs": 0},
        {"shuffle": 2**70}, {"shuffle": np.array([1, 2])}, {"shuffle": []}, {"seed": True}, {"batch_size": 1.0},
        {"batch_size": np.int64(0)}, {"shard": (0, 1.0)}, {"shard": np.array([0, 2])}, {"even": "pat"}, {"even": True},
        {"shard": (2, 2)}, {"on_error": "pass"}, {"workers": 0}, {"batch_size": 0},
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_is_refused_at_once(written: Written, wrong: dict[str, Any]) -> None:
    opened = tfr_assets.open(written(table(9)).folder)
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        opened.batches(**{"shuffle": "global", **wrong})
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        tfr_assets.batches(opened._files, **{"shuffle": "global", **wrong})


def test_numbers_may_be_those_of_numpy(written: Written) -> None:
    opened = tfr_assets.open(written(table(30)).folder)
    for get in (opened.batches, partial(tfr_assets.batches, opened._files)):
        for shuffle in (0, 7):
            plain = get(4, shuffle=shuffle, seed=3, shard=(1, 2), epochs=2)
            batches = get(
                np.int64(4), shuffle=np.int32(shuffle), seed=np.uint8(3), shard=(np.int64(1), np.int64(2)),
                epochs=np.int16(2), workers=np.int64(1),
            )  # fmt: skip
            assert [batch["id"].tolist() for batch in batches] == [batch["id"].tolist() for batch in plain]
            assert json.loads(json.dumps(batches.state())) == plain.state()
        assert len(list(get(30, shard=None))) == 1


def test_no_list_of_a_billion_records_is_kept() -> None:
    script = """
from pathlib import Path
import numpy as np
from tfr_assets.reading.access.order import order_of
def peak():  # in kB, of this program alone
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
before = peak()
order = order_of(10**9, 10**12, "global", 0)
for start in range(0, 10**9, 10**8):
    assert len(np.unique(order.records(0, np.arange(start, start + 4096)))) == 4096
assert peak() < 300_000, peak()
assert peak() - before < 20_000, (before, peak())
"""
    root = Path(tfr_assets.__file__).parent.parent
    subprocess.run([sys.executable, "-c", script], check=True, cwd=root, timeout=120)
