"""Stopped anywhere and continued, on any number of workers: what was left comes, once each, in the order it had."""

import gc
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfr_assets
from tests.records.reference import examples
from tfr_assets.errors import ConfigError, StaleError
from tfr_assets.layout import Layout
from tfr_assets.reading.access.dataset import Dataset
from tfr_assets.reading.access.epochs import ResumableBatches
from tfr_assets.reading.access.left import Positions, left_of, share_of_left
from tfr_assets.reading.access.options import BatchOptions
from tfr_assets.reading.access.order import Order, order_of
from tfr_assets.records.frames.skipped import Skipped

from .datasets import write_dataset
from .test_access import flip
from .test_reading_columnar import table

Written = Callable[..., Layout]
ROOT = Path(tfr_assets.__file__).parent.parent
ROWS = 61
SHUFFLES: list[Any] = [False, "global", "blocks", 7]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    rows = pa.table({"id": pa.array(range(ROWS), pa.int64())})
    return tfr_assets.open(write_dataset(rows, tmp_path_factory.mktemp("resume")).folder)


def ids(batches: Any) -> list[int]:
    return [int(i) for batch in batches for i in batch["id"]]


def some(batches: ResumableBatches, count: int) -> list[int]:
    return ids(islice(batches, count))


@given(
    size=st.integers(0, 200),
    steps=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 60)), max_size=5),
    workers=st.integers(1, 9),
)
@examples(300)
def test_what_is_left_is_shared_once(size: int, steps: list[tuple[int, int]], workers: int) -> None:
    taken: list[int] = []
    history: list[list[int]] = []
    for count, records in steps:
        left = left_of(size, history)
        shares = [share_of_left(left, (i, count), None) for i in range(count)]
        taken += [p for share in shares for p in share.part(0, records).to_numpy().tolist()]
        history.append([count, records])
    left = left_of(size, history)
    assert sorted(taken + left.to_numpy().tolist()) == list(range(size))
    shares = [share_of_left(left, (i, workers), None) for i in range(workers)]
    assert [p for share in shares for p in share.to_numpy().tolist()] == left.to_numpy().tolist()
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    for even, expected in (("drop", len(left) // workers), ("pad", -(-len(left) // workers))):
        assert {len(share_of_left(left, (i, workers), even)) for i in range(workers)} == {expected}


@given(spans=st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), max_size=5), size=st.integers(1, 7))
@examples(100)
def test_positions_are_cut_in_their_order(spans: list[tuple[int, int]], size: int) -> None:
    positions = Positions(tuple((start, start + length) for start, length in spans))
    assert [p for part in positions.cut(size) for p in part.to_numpy().tolist()] == positions.to_numpy().tolist()
    assert all(len(part) == size for part in list(positions.cut(size))[:-1])


@given(
    shuffle=st.sampled_from(SHUFFLES), batch_size=st.integers(1, 20), native=st.booleans(), rest=st.integers(1, 4),
    steps=st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4), min_size=1, max_size=3),
)  # fmt: skip
@examples(60)
def test_the_rest_of_an_epoch_comes_once_whatever_each_worker_took(
    opened: Dataset, shuffle: Any, batch_size: int, native: bool, rest: int, steps: list[list[int]]
) -> None:
    state, found = None, []
    for counts in steps:
        states = []
        for worker, count in enumerate(counts):
            with iterator(opened, native, batch_size, shuffle, (worker, len(counts)), state) as batches:
                found += some(batches, count)
                states.append(json.loads(json.dumps(batches.state())))
        state = states
    for worker in range(rest):
        found += ids(iterator(opened, native, batch_size, shuffle, (worker, rest), state))
    assert sorted(found) == list(range(ROWS))


@given(
    shuffle=st.sampled_from(SHUFFLES), batch_size=st.integers(1, 9), native=st.booleans(), rest=st.integers(1, 4),
    steps=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 9)), min_size=1, max_size=3),
)  # fmt: skip
@examples(60)
def test_one_state_is_enough_for_workers_in_step(
    opened: Dataset, shuffle: Any, batch_size: int, native: bool, rest: int, steps: list[tuple[int, int]]
) -> None:
    state, found = None, []
    for workers, count in steps:
        states = []
        for worker in range(workers):
            with iterator(opened, native, batch_size, shuffle, (worker, workers), state, even="drop") as batches:
                found += some(batches, count)
                states.append(batches.state())
        assert states == [states[0]] * workers
        state = states[0]
    for worker in range(rest):
        found += ids(iterator(opened, native, batch_size, shuffle, (worker, rest), state))
    assert sorted(found) == list(range(ROWS))


def iterator(
    opened: Dataset, native: bool, batch_size: int, shuffle: Any, shard: tuple[int, int], state: Any, even: Any = None
) -> ResumableBatches:
    if native:
        found = tfr_assets.batches(opened._files, batch_size, shuffle=shuffle, shard=shard, seed=9, even=even)
    else:
        found = opened.batches(batch_size, shuffle=shuffle, shard=shard, seed=9, even=even)
    if state:
        found.restore(state)
    return found


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_one_worker_goes_on_as_if_it_had_not_stopped(opened: Dataset, native: bool, shuffle: Any) -> None:
    whole = ids(_epochs(opened, native, shuffle))
    assert len(whole) == 3 * ROWS
    for stop in range(28):
        first = _epochs(opened, native, shuffle)
        before = some(first, stop)
        state = first.state()
        assert len(json.dumps(state)) < 300
        assert before + ids(first) == whole
        again = _epochs(opened, native, shuffle)
        some(again, 5)  # wherever it was
        again.restore(state)
        assert before + ids(again) == whole


def _epochs(opened: Dataset, native: bool, shuffle: Any) -> ResumableBatches:
    if native:
        return tfr_assets.batches(opened._files, 7, shuffle=shuffle, epochs=3, seed=2)
    return opened.batches(7, shuffle=shuffle, epochs=3, seed=2)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_a_state_is_the_same_however_the_data_was_opened(opened: Dataset, native: bool, shuffle: Any) -> None:
    whole = ids(iterator(opened, native, 10, shuffle, (0, 1), None))
    first = iterator(opened, native, 10, shuffle, (0, 1), None)
    before = some(first, 3)
    assert before + ids(iterator(opened, not native, 10, shuffle, (0, 1), first.state())) == whole


@pytest.mark.parametrize("native", [False, True])
def test_a_state_brings_its_seed(opened: Dataset, native: bool) -> None:
    first = iterator(opened, native, 10, "global", (0, 1), None)
    next(first)
    again = tfr_assets.batches(opened._files, 10, shuffle="global") if native else opened.batches(10, shuffle="global")
    again.restore(first.state())
    assert ids(again) == ids(first)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("workers", [1, 2, 3, 7, 61, 70])
@pytest.mark.parametrize("batch_size", [1, 4, 100])
def test_even_shares_have_as_many_batches(opened: Dataset, native: bool, workers: int, batch_size: int) -> None:
    shares = {
        even: [ids(iterator(opened, native, batch_size, "global", (i, workers), None, even)) for i in range(workers)]
        for even in ("pad", "drop", None)
    }
    exact = [*chain(*shares[None])]
    assert sorted(exact) == list(range(ROWS))
    assert {len(share) for share in shares["drop"]} == {ROWS // workers}
    assert {len(share) for share in shares["pad"]} == {-(-ROWS // workers)}
    assert set(chain(*shares["drop"])) <= set(exact) == set(chain(*shares["pad"]))
    assert len(set(chain(*shares["drop"]))) == len([*chain(*shares["drop"])])


def test_a_state_of_other_data_or_order_is_refused(opened: Dataset, written: Written) -> None:
    batches = opened.batches(5, shuffle="global")
    next(batches)
    state = batches.state()
    other = tfr_assets.open(written(table(61)).folder)
    with pytest.raises(StaleError, match=f"other data .*{opened.fingerprint}, this is {other.fingerprint}"):
        other.batches(5, shuffle="global").restore(state)
    for shuffle in (False, "blocks", 5):
        with pytest.raises(ConfigError, match=f"of shuffle='global', this iterator has shuffle={shuffle!r}"):
            opened.batches(5, shuffle=shuffle).restore(state)
    before = ids(opened.batches(5))
    kept = opened.batches(5)
    with pytest.raises(ConfigError):
        kept.restore(state)
    assert ids(kept) == before  # refused, and left as it was


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"format": 2}, "the state is of format 2, this version reads format 1"),
        ({"format": None}, "of format None"),
        ({"epoch": -1}, "the state is damaged"),
        ({"epoch": "1"}, "the state is damaged"),
        ({"taken": [[0, 5]]}, "the state is damaged"),
        ({"taken": [[2, [5]]]}, "the state is damaged"),
        ({"taken": "x"}, "the state is damaged"),
        ({"taken": []}, "the state is damaged"),
        ({"taken": [[2, [3, 2]]]}, "the state is damaged"),
        ({"taken": [[1, [[3]]]]}, "the state is damaged"),
        ({"taken": [[True, True]]}, "the state is damaged"),
        ({"taken": [[1, 3.0]]}, "the state is damaged"),
        ({"later": 5}, "the state is damaged"),
        ({"later": [5]}, "the state is damaged"),
        ({"later": [[[1, [[]]]]]}, "the state is damaged"),
        ({"stands_for_all": "x"}, "the state is damaged"),
        ({"shuffle": [1]}, "the state is damaged"),
        ({"fingerprint": [1]}, "the state is damaged"),
        ({"seed": [1]}, "the state is damaged"),
        ({"more": 1}, "the state is damaged.*more"),
    ],
)
def test_what_is_no_state_is_refused(opened: Dataset, wrong: dict[str, Any], message: str) -> None:
    state = opened.batches(5).state()
    with pytest.raises(ConfigError, match=message):
        opened.batches(5).restore({**state, **wrong})
    with pytest.raises(ConfigError, match=message):
        opened.batches(5).restore([{**state, **wrong}] * 2)


@pytest.mark.parametrize("wrong", [None, "x", 5, {}, [], [{}]])
def test_anything_else_is_no_state(opened: Dataset, wrong: Any) -> None:
    with pytest.raises(ConfigError, match="state"):
        opened.batches(5).restore(wrong)


def test_states_that_do_not_belong_together_are_refused(opened: Dataset) -> None:
    def state(shard: tuple[int, int], steps: int, epochs: int = 2) -> dict[str, Any]:
        with opened.batches(30, shard=shard, epochs=epochs) as batches:
            some(batches, steps)
            return batches.state()

    with pytest.raises(ConfigError, match="there are 2 states, but 3 workers"):
        opened.batches(30).restore([state((0, 3), 1), state((1, 3), 1)])
    other = {**state((1, 2), 1), "seed": 1}
    with pytest.raises(ConfigError, match="not of the same batches of the same data"):
        opened.batches(30).restore([state((0, 2), 1), other])
    far = {**state((1, 2), 1), "epoch": 5000}
    with pytest.raises(ConfigError, match=r"5000 epochs apart.*even='drop'"):
        opened.batches(30).restore([state((0, 2), 1), far])
    elsewhere = {**state((1, 2), 1), "taken": [[2, 3], [2, 30]]}
    with pytest.raises(ConfigError, match="did not begin at the same place"):
        opened.batches(30).restore([state((0, 2), 1), elsewhere])


@given(
    batch_size=st.integers(1, 40), native=st.booleans(), rest=st.integers(1, 4),
    steps=st.lists(st.lists(st.integers(0, 7), min_size=1, max_size=4), min_size=1, max_size=3),
)  # fmt: skip
@examples(60)
def test_no_record_is_lost_or_repeated_when_workers_are_in_different_epochs(
    opened: Dataset, batch_size: int, native: bool, rest: int, steps: list[list[int]]
) -> None:
    def some_epochs(worker: int, workers: int, state: Any) -> ResumableBatches:
        shard, get = (worker, workers), partial(tfr_assets.batches, opened._files) if native else opened.batches
        batches = get(batch_size, shuffle="global", epochs=5, shard=shard)
        if state:
            batches.restore(json.loads(json.dumps(state)))
        return batches

    states: list[dict[str, Any]] = []
    found: list[int] = []
    for counts in steps:
        iterators = [some_epochs(worker, len(counts), states) for worker in range(len(counts))]
        for batches, count in zip(iterators, counts, strict=True):
            found += some(batches, count)
        states = [batches.state() for batches in iterators]
        for batches in iterators:
            batches.close()
    for worker in range(rest):
        found += ids(some_epochs(worker, rest, states))
    assert Counter(found) == dict.fromkeys(range(ROWS), 5)


@given(
    rows=st.integers(1, 40), batch_size=st.integers(1, 20), workers=st.integers(1, 4), steps=st.integers(0, 12),
    epochs=st.integers(1, 3), even=st.sampled_from([None, "drop"]), drop=st.booleans(),
)  # fmt: skip
@examples(100)
def test_one_state_stands_for_all_only_where_it_can(
    rows: int, batch_size: int, workers: int, steps: int, epochs: int, even: Any, drop: bool
) -> None:
    """Passes are imitated by lists of positions: what is tested is where each worker is."""

    class Imitation(list[list[int]]):
        skipped = Skipped()

        def __init__(self, _order: Order, _epoch: int, share: Positions) -> None:
            batches = [part.to_numpy().tolist() for part in share.cut(batch_size)]
            super().__init__(each for each in batches if not drop or len(each) == batch_size)

        def close(self) -> None:
            pass

    def imitated(worker: int, workers: int, drop: bool = drop) -> ResumableBatches:
        options = BatchOptions(batch_size, epochs=epochs, shard=(worker, workers), even=even, drop_remainder=drop)
        return ResumableBatches("x", order_of(rows, 0, False, 0), options, Imitation)  # type: ignore[arg-type]

    def positions(batches: Any) -> list[int]:
        return [i for batch in batches for i in batch]

    iterators = [imitated(worker, workers) for worker in range(workers)]
    before = positions(chain.from_iterable(islice(batches, steps) for batches in iterators))
    all_states = [batches.state() for batches in iterators]
    rests = []
    for state in [*all_states, all_states]:
        again = imitated(0, 1)
        try:
            again.restore(state)
        except ConfigError as error:
            assert "of one of" in str(error) and even is None
            continue
        rests.append(sorted(positions(again)))
    assert all(rest == rests[-1] for rest in rests)
    if even is None and not drop:
        assert Counter(before + rests[-1]) == dict.fromkeys(range(rows), epochs)


def test_a_share_without_a_batch_ends(opened: Dataset, tmp_path: Path) -> None:
    tfr_assets.write({"id": [1]}, tmp_path / "x.tfrecord")
    one = tfr_assets.open(tmp_path / "x.tfrecord")
    for shuffle in (False, "global"):
        assert list(one.batches(4, shard=(0, 2), epochs=None, shuffle=shuffle)) == []
        assert list(tfr_assets.batches(tmp_path / "x.tfrecord", 4, shard=(0, 2), epochs=None, shuffle=shuffle)) == []
    assert list(opened.batches(64, epochs=None, drop_remainder=True)) == []
    first = opened.batches(40, epochs=None)
    next(first)
    again = opened.batches(40, epochs=None, drop_remainder=True)
    again.restore(first.state())
    assert len(ids(islice(again, 3))) == 120  # the next epoch has batches


@pytest.mark.parametrize("native", [False, True])
def test_dropping_an_iterator_ends_its_threads_and_closes_its_files(written: Written, native: bool) -> None:
    folder = written(table(60), compression="gzip").folder

    def there() -> tuple[int, int]:
        return sum(each.name == "tfr-decode" for each in threading.enumerate()), len([*Path("/proc/self/fd").iterdir()])

    before = there()
    gc.disable()
    try:
        batches = tfr_assets.batches(folder, 1) if native else tfr_assets.open(folder).batches(1, shuffle="global")
        next(batches)
        assert there()[0] > before[0]
        del batches
        assert there() == before
    finally:
        gc.enable()


def test_states_do_not_grow_by_what_says_nothing(opened: Dataset) -> None:
    state: Any = None
    for _ in range(5):
        states = []
        for worker in range(3):
            batches = opened.batches(5, shard=(worker, 3))
            if state:
                batches.restore(state)
            states.append(batches.state())
        state = states
    assert state[0]["taken"] == [[3, 0]]


def _next_of(batches: ResumableBatches) -> str:
    try:
        return str(next(batches))
    except ConfigError as error:
        return str(error)


def test_a_started_iterator_is_not_continued_in_a_fork(opened: Dataset) -> None:
    batches = opened.batches(5)
    next(batches)
    read, write = os.pipe()
    if not (child := os.fork()):
        os.write(write, _next_of(batches).encode()[:1000])
        batches.close()  # waits for nothing
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    assert b"started before the process was forked" in os.read(read, 1000)
    os.close(read)
    assert ids(batches) == list(range(5, ROWS))


def test_skipped_records_do_not_move_the_place(written: Written) -> None:
    layout = written(table(60))
    flip(layout.shard_path("train-00001-of-00003"), 14)
    opened = tfr_assets.open(layout.folder, files="shards")
    first = opened.batches(10, on_error="skip")
    before = some(first, 3)
    again = opened.batches(10, on_error="skip")
    again.restore(first.state())
    with pytest.warns(UserWarning, match="left out"):
        assert before + ids(again) == [i for i in range(60) if i != 34]
    first.close()
    lost = tfr_assets.batches(layout.folder, 10, files="shards", on_error="skip")
    for _ in range(8):
        with pytest.raises(ConfigError, match=r"use tfr_assets.open\(…\).batches\(on_error='skip'\)"):
            lost.state()
        some(lost, 1)
    lost.close()
    for even in ("pad", "drop"):
        with pytest.raises(ConfigError, match=rf"even='{even}' does not hold .*use tfr_assets.open"):
            tfr_assets.batches(layout.folder, 10, on_error="skip", even=even)  # type: ignore[arg-type]


def test_another_process_goes_on_where_one_was_killed(written: Written, tmp_path: Path) -> None:
    folder = written(table(200)).folder
    script = f"""
import json, os, signal, sys
from pathlib import Path
import tfr_assets
batches = tfr_assets.open({str(folder)!r}, columns=["id"]).batches(10, shuffle="global", epochs=2)
state = Path({str(tmp_path / "state.json")!r})
if state.exists():
    batches.restore(json.loads(state.read_text()))
for step, batch in enumerate(batches):
    with Path({str(tmp_path / "seen")!r}).open("a") as seen:
        seen.write("".join(f"{{i}}\\n" for i in batch["id"]))
    state.write_text(json.dumps(batches.state()))
    if step == 8:
        os.kill(os.getpid(), signal.SIGKILL)
"""
    codes = []
    while not codes or codes[-1]:
        assert len(codes) < 6
        codes.append(subprocess.run([sys.executable, "-c", script], check=False, cwd=ROOT, timeout=120).returncode)
    assert codes == [-signal.SIGKILL] * 4 + [0]
    unbroken = ids(tfr_assets.open(folder).batches(10, shuffle="global", epochs=2))
    assert [int(line) for line in (tmp_path / "seen").read_text().split()] == unbroken
