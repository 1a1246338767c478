"""`tfr_assets.mix`: exact shares, the same in every run, continued anywhere; an end that is said."""

import pickle
import shutil
from collections import Counter
from fractions import Fraction
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfr_assets
from tests.records.reference import examples
from tfr_assets.errors import ConfigError, SchemaError, StaleError
from tfr_assets.reading.access.mixture import MixedOrder, Mixture, quotas_of
from tfr_assets.reading.access.order import order_of

SIZES = {"a": 70, "b": 33}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mixture")
    for number, (name, rows) in enumerate(SIZES.items()):
        ids = pa.array([1000 * number + i for i in range(rows)], pa.int64())
        maybe = pa.array([None if number and i % 3 == 0 else f"{i}" for i in range(rows)])
        tfr_assets.write(pa.table({"id": ids, "name": maybe}), folder / f"{name}.tfrecord")
    return folder


def mixture(folder: Path, weights: dict[str, float], **options: Any) -> Mixture:
    return tfr_assets.mix({folder / f"{name}.tfrecord": weight for name, weight in weights.items()}, **options)


def ids(batches: Any) -> list[int]:
    return [int(i) for batch in batches for i in batch["id"]]


def test_shares_are_exact_in_every_round(folder: Path) -> None:
    mixed = mixture(folder, {"a": 0.7, "b": 0.3})
    assert list(mixed.quotas.values()) == [7, 3]
    found = ids(mixed.batches(16))
    assert len(found) == len(mixed) == 100
    assert len(set(found)) == 100
    rounds = [Counter(i // 1000 for i in found[start : start + 10]) for start in range(0, 100, 10)]
    assert rounds == [Counter({0: 7, 1: 3})] * 10
    assert len({tuple(i // 1000 for i in found[start : start + 10]) for start in range(0, 100, 10)}) > 1
    assert found == ids(mixture(folder, {"a": 0.7, "b": 0.3}).batches(50)) != sorted(found)
    assert found != ids(mixture(folder, {"a": 0.7, "b": 0.3}, seed=1).batches(50))


@pytest.mark.parametrize("shuffle", [False, "global", "blocks", 10])
def test_until_all_every_record_comes(folder: Path, shuffle: Any) -> None:
    mixed = mixture(folder, {"a": 0.5, "b": 0.5}, until="all", shuffle=shuffle)
    counts = Counter(ids(mixed.batches(9)))
    assert sum(counts.values()) == len(mixed) == 140
    assert {counts[i] for i in range(70)} == {1}
    assert {counts[1000 + i] for i in range(33)} == {2, 3}


def test_epochs_take_other_records_of_the_longer_one(folder: Path) -> None:
    mixed = mixture(folder, {"a": 1, "b": 2})
    first, second = np.array_split(ids(mixed.batches(10, epochs=2)), 2)
    assert len(first) == len(mixed) == 48
    assert set(first) != set(second)
    repeated = mixture(folder, {"a": 1, "b": 1}, until="all")
    found = ids(repeated.batches(10, epochs=2))
    passes = [[i for i in found if i >= 1000][start : start + 33] for start in range(0, 132, 33)]
    assert len({tuple(each) for each in passes}) == 4


def test_batches_are_decoded_alike_whatever_may_be_absent(folder: Path) -> None:
    records = [r for batch in mixture(folder, {"a": 1, "b": 1}).batches(into="records") for r in batch]
    for record in records:
        number = record["id"] % 1000
        assert record["name"] == (None if record["id"] >= 1000 and number % 3 == 0 else str(number))


@given(
    sizes=st.lists(st.integers(1, 300), min_size=1, max_size=4), data=st.data(), epoch=st.integers(0, 2),
    until=st.sampled_from(["first", "all"]), shuffle=st.sampled_from([False, "global", 7]),
)  # fmt: skip
@examples(80)
def test_any_mixture_is_a_function_of_the_position(
    sizes: list[int], data: Any, epoch: int, until: str, shuffle: Any
) -> None:
    weights = data.draw(st.lists(st.integers(1, 9), min_size=len(sizes), max_size=len(sizes)))
    quotas = quotas_of(weights)
    rounds = [-(-s // q) if until == "all" else s // q for s, q in zip(sizes, quotas, strict=True)]
    total = (max(rounds) if until == "all" else min(rounds)) * sum(quotas)
    order = MixedOrder(total, 0, 0, 5, tuple(order_of(size, 0, shuffle, 0) for size in sizes), quotas)
    found = order.records(epoch, np.arange(total))
    assert np.array_equal(order.records(epoch, np.arange(total // 2, total)), found[total // 2 :])
    bounds = np.cumsum([0, *sizes])
    for number, quota in enumerate(quotas):
        own = found[(found >= bounds[number]) & (found < bounds[number + 1])] - bounds[number]
        assert len(own) == total // sum(quotas) * quota
        counts = np.bincount(own, minlength=sizes[number])
        if until == "first":
            assert counts.max(initial=0) <= 1
        else:
            assert counts.min() >= 1
            assert counts.max() - counts.min() <= 1


@given(weights=st.lists(st.floats(0.01, 100), min_size=1, max_size=5))
@examples(100)
def test_quotas_are_what_weights_say(weights: list[float]) -> None:
    try:
        quotas = np.array(quotas_of(weights))
    except ConfigError:
        assert min(weights) / sum(weights) < 0.05
        return
    shares = np.array(weights) / sum(weights)
    assert abs(quotas / quotas.sum() / shares - 1).max() <= 1.001e-3


@pytest.mark.parametrize("until", ["first", "all"])
def test_a_mixture_goes_on_anywhere_on_any_workers(folder: Path, until: Any) -> None:
    weights = {"a": 2.0, "b": 1.0}
    whole = ids(mixture(folder, weights, until=until).batches(8))
    first = mixture(folder, weights, until=until).batches(8)
    before = ids(islice(first, 4))
    rest = []
    for worker in range(3):
        again = mixture(folder, weights, until=until).batches(8, shard=(worker, 3))
        again.restore(first.state())
        rest.append(ids(again))
    assert [*before, *chain(*rest)] == whole
    with pytest.raises(StaleError, match="of other data"):
        mixture(folder, {"a": 1, "b": 1}, until=until).batches(8).restore(first.state())


def test_a_pickled_mixture_is_the_same_or_refused(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    mixed = mixture(tmp_path / "copy", {"a": 2, "b": 1}, until="all", seed=3, columns=["id"])
    pickled = pickle.dumps(mixed)
    again = pickle.loads(pickled)
    assert (again.quotas, again.fingerprint) == (mixed.quotas, mixed.fingerprint)
    batches = again.batches(8)
    some = ids(islice(batches, 2))
    rest = mixed.batches(8)
    rest.restore(batches.state())
    assert some + ids(rest) == ids(mixed.batches(8))
    tfr_assets.write({"id": [1], "name": ["x"]}, tmp_path / "copy" / "b.tfrecord")
    with pytest.raises(StaleError, match="are not the datasets of the pickled mixture"):
        pickle.loads(pickled)


def test_weights_are_any_real_numbers(folder: Path) -> None:
    for half in (0.5, np.float32(0.5), np.int64(1), Fraction(1, 2)):
        assert list(mixture(folder, {"a": half, "b": half}).quotas.values()) == [1, 1]  # type: ignore[dict-item]
    for wrong in (10**400, 1e308, "1", None, [1]):
        with pytest.raises(ConfigError, match="must be positive numbers"):
            mixture(folder, {"a": wrong, "b": wrong})  # type: ignore[dict-item]
    path = folder / "a.tfrecord"
    with pytest.raises(ConfigError, match=r"a.tfrecord' is given twice"):
        tfr_assets.mix({path: 1, str(path): 1})


def test_what_cannot_be_mixed_is_said(folder: Path, tmp_path: Path) -> None:
    for weights in ({"a": 0}, {"a": -1, "b": 2}, {"a": float("nan")}, {}, {"a": float("inf")}, {"a": "x"}):
        with pytest.raises(ConfigError, match="must be positive numbers"):
            mixture(folder, weights)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="give a dict"):
        tfr_assets.mix(["a"])  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="rounder ones"):
        mixture(folder, {"a": 1, "b": 1e-7})
    with pytest.raises(ConfigError, match=r"a round of 101 records takes .*, more than there are; use until='all'"):
        mixture(folder, {"a": 100, "b": 1})
    with pytest.raises(ConfigError, match="until='last': use 'first' or 'all'"):
        mixture(folder, {"a": 1}, until="last")
    tfr_assets.write({"id": [1.5], "name": ["x"]}, tmp_path / "other.tfrecord")
    with pytest.raises(SchemaError, match=r"feature 'id' is int64 of shape .* double of shape .* `tfr diff` lists"):
        tfr_assets.mix({folder / "a.tfrecord": 1, tmp_path / "other.tfrecord": 1})
    tfr_assets.write({"id": [1]}, tmp_path / "less.tfrecord")
    with pytest.raises(SchemaError, match=r"feature 'name' is string of shape .*, absent in the other"):
        tfr_assets.mix({folder / "a.tfrecord": 1, tmp_path / "less.tfrecord": 1})
