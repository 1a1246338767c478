"""What a comparison of writers says: the figures decide, and words follow."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.writing.conftest import MakeDataset
from tfr_assets.bench.writers.comparison import Comparison, Trial, compare, try_writer
from tfr_assets.bench.writers.measurement import WriterMeasurement
from tfr_assets.bench.writers.options import WriterTrials
from tfr_assets.errors import SourceError, StaleError
from tfr_assets.writing.raw import materialize_raw

ONE = WriterMeasurement(
    writer="sharded_threads", workers=1, shards=2, records=1000, bytes=1_000_000, times=(1.0,), plain_times=(0.1,),
    early_times=(0.1,), cpu_seconds=1.0, peak_memory_bytes=200_000_000,
)  # fmt: skip


def measured(writer: str, seconds: float, workers: int = 1, plain: float = 0.1) -> WriterMeasurement:
    times = seconds * 0.9, seconds, seconds * 1.1
    return replace(
        ONE, writer=writer, workers=workers, times=times, plain_times=(2 * plain,) * 3, early_times=(plain,) * 3
    )


def advice(*trials: tuple[WriterMeasurement, ...], missing: tuple[str, ...] = ()) -> str:
    made = tuple(Trial(each[0].writer, 5000, "", each) for each in trials)
    return "\n".join(Comparison(made, missing).advice())


def test_the_disk_is_the_limit_where_a_plain_write_is_hardly_faster() -> None:
    said = advice((measured("sharded_threads", 1.0, 1, plain=0.5), measured("sharded_threads", 0.5, 2, plain=0.46)))
    assert "Measured with the first 1,000 of 5,000 rows." in said
    assert "Fastest: `sharded_threads` with 2 workers, 2,000 records/s (2 MB/s)." in said
    assert "The disk is the limit: a plain write of the same bytes takes 184% of its time, or 92% with the disk" in said


def test_the_processors_are_the_limit_where_workers_help() -> None:
    said = advice((measured("sharded_threads", 1.0), measured("sharded_threads", 0.5, 2)))
    assert "The disk is not the limit, the processors are: a plain write of the same bytes takes 40% of" in said
    assert "2 workers are 2.0 × as fast as 1" in said
    said = advice((measured("locked", 1.0), measured("locked", 0.95, 2)))
    assert "The disk is not the limit" in said and "1 or 2 workers is too close to tell." in said
    said = advice((measured("locked", 1.0), replace(measured("locked", 0.88, 2), times=(0.88, 0.88, 0.88))))
    assert "But more workers gain little: 2 workers are 1.1 × as fast as 1." in said


def test_what_cannot_be_told_apart_is_said() -> None:
    said = advice((measured("serial", 1.0),), (measured("locked", 1.05),), (measured("sharded_threads", 3.0),))
    assert "As fast as far as the spread tells: `locked`." in said


def test_order_is_given_up_only_for_clearly_more_speed() -> None:
    trials = (measured("single_writer_queue", 1.0),), (measured("serial", 2.0),)
    assert "For one file: `single_writer_queue`. `serial` reaches 50% of it; `locked` is too close to tell." in advice(
        *trials, (measured("locked", 0.9),)
    )
    assert "For one file: `locked`, which mixes the order of records." in advice(*trials, (measured("locked", 0.5),))


def test_what_takes_no_time_recommends_nothing() -> None:
    said = advice((measured("serial", 0.004),), (measured("locked", 0.009),), (measured("single_writer_queue", 0.01),))
    assert "The fastest, `serial`, takes 4.0 ms: too little to tell writers apart. Use the defaults" in said
    assert not [word for word in ("Fastest", "The disk is", "For one file") if word in said]


def test_ratios_are_of_one_turn_each() -> None:
    slow = replace(ONE, times=(1.0, 9.0, 2.0), plain_times=(0.5, 9.0, 1.0), early_times=(0.25, 1.0, 0.5))
    fast = replace(ONE, times=(0.5, 4.0, 1.0))
    assert (slow.seconds, slow.share_of_plain, slow.share_of_early) == (2.0, 0.5, 0.25)
    assert fast.speed_against(slow) == 2.0


def test_the_seeds_code_and_what_is_missing_are_named() -> None:
    said = advice((measured("serial", 0.1),), (measured("seed", 5.0),), missing=("locked",))
    assert "The code of most tutorials, `seed`: 200 records/s (0 MB/s); the fastest is 50 times so." in said
    assert said.endswith("Not measured, or with other rows or settings: locked.")
    assert advice(missing=("serial",)) == "Not measured, or with other rows or settings: serial."


def test_a_trial_is_of_the_datasets_rows_and_is_found_again(make: MakeDataset, tmp_path: Path) -> None:
    dataset, options = make(), WriterTrials(rows=50, workers=(1, 2), repeats=1, only=("locked", "serial"))
    with pytest.raises(StaleError):
        try_writer(dataset, "locked", options)
    materialize_raw(dataset)
    trial = try_writer(dataset, "locked", options)
    assert [(each.workers, each.records, each.shards) for each in trial.measured] == [(1, 50, None), (2, 50, None)]
    trial.save(dataset.layout)
    assert compare(dataset, options) == Comparison((trial,), ("serial",))
    assert compare(replace(dataset, compression="gzip"), options).missing == ("locked", "serial")
    (dataset.layout.writers / "locked.json").write_text("{}")
    assert compare(dataset, options).missing == ("locked", "serial")


def test_no_rows_cannot_be_measured(make: MakeDataset, raw: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(pq.read_table(raw).slice(0, 0), raw)
    dataset = make()
    materialize_raw(dataset)
    with pytest.raises(SourceError, match="has no rows, so that there is nothing to measure"):
        try_writer(dataset, "serial", WriterTrials())
