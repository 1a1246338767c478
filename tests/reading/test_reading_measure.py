"""What a measurement says, and when it refuses to say anything. How fast is no test's business."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
import tensorflow as tf

from tests.reading.datasets import write_dataset
from tfr_assets.bench.readers.measure import Measured, data_version, measure_readers, plain_reading
from tfr_assets.bench.readers.measurement import Measurement, load, load_before
from tfr_assets.bench.readers.options import BenchOptions
from tfr_assets.bench.readers.passes import read_passes
from tfr_assets.bench.readers.slow_server import Storage, slow_server, with_urls
from tfr_assets.errors import ConfigError, DamagedFile, StaleError
from tfr_assets.layout import Layout
from tfr_assets.reading import registry
from tfr_assets.reading.locate.files import locate
from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.reading.readers.options import ReadOptions

FOREVER = 1e9


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """Ten rows in three shards."""
    return write_dataset(pa.table({"x": pa.array(range(10), pa.int64())}), tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def told() -> list[tuple[str, int, int]]:
    return []


@pytest.fixture(scope="module")
def measured(layout: Layout, told: list[tuple[str, int, int]]) -> Measured:
    options = BenchOptions(batch_size=4, epochs=3, repeats=2, only=("vectorized", "naive"))
    return measure_readers(locate(layout.folder), options, lambda *step: told.append(step))


def test_a_measurement_counts_and_adds_up(measured: Measured, layout: Layout) -> None:
    assert list(measured.measurements) == ["vectorized", "naive"]
    assert not measured.failures
    files = locate(layout.folder)
    for reader, each in measured.measurements.items():
        assert (each.reader, each.records, each.records_read, each.bytes) == (reader, 10, 10, files.bytes)
        assert (each.batch_size, each.epochs, each.repeats) == (4, 3, 2)
        assert each.complete
        for speed in (each.cold, each.warm):
            assert 0 < speed.low <= speed.median <= speed.high
        assert each.seconds == pytest.approx(10 / each.warm.median)
        assert each.mb_per_second == pytest.approx(files.bytes / each.seconds / 1e6)
        assert each.share_of_limit == pytest.approx(each.mb_per_second * 1e6 / each.plain_warm)
        assert each.plain_cold > 0
        assert each.first_batch_cold > 0 and each.first_batch_warm > 0
        assert each.cpu_seconds > 0
        assert each.peak_memory_bytes > 100e6  # TensorFlow alone is more
        assert 0 < each.descriptors <= each.descriptor_ceiling


def test_readers_take_turns(measured: Measured, told: list[tuple[str, int, int]]) -> None:
    turn = ["plain reading", "vectorized", "naive"]
    assert [doing for doing, _, _ in told] == ["starting", *turn, *turn, ""]
    assert [done for _, done, _ in told] == [0, 0, 1, 2, 3, 4, 5, 6]


def test_it_is_kept_and_so_is_the_one_before(measured: Measured, tmp_path: Path) -> None:
    first = measured.measurements["naive"]
    first.save(tmp_path)
    assert load(tmp_path, "naive") == first
    assert load_before(tmp_path, "naive") is None
    second = replace(first, measured_at="later")
    second.save(tmp_path)
    assert (load(tmp_path, "naive"), load_before(tmp_path, "naive")) == (second, first)


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"format": 1}', b'{"format": 2, "reader": "naive"}'])
def test_what_is_no_measurement_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "naive.json").write_bytes(content)
    assert load(tmp_path, "naive") is None


def test_the_version_of_the_data_is_that_of_its_records(layout: Layout, tmp_path: Path) -> None:
    table = pa.table({"x": pa.array(range(10), pa.int64())})
    same = data_version(locate(write_dataset(table, tmp_path / "same").folder))
    assert same == data_version(locate(layout.folder))
    other = pa.table({"x": pa.array(range(1, 11), pa.int64())})
    assert data_version(locate(write_dataset(other, tmp_path / "other").folder)) != same


def test_a_reader_that_fails_takes_no_other_with_it(numbers: Layout) -> None:
    path = numbers.shard_path("train-00001-of-00003")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    options = BenchOptions(repeats=2, only=("vectorized", "merged"))
    measured = measure_readers(locate(numbers.folder), options)
    assert list(measured.measurements) == ["merged"]
    assert f"reader 'vectorized' failed on files in {numbers.shards}" in measured.failures["vectorized"]
    assert f"`tfr verify {numbers.shards}` names file, record and offset" in measured.failures["vectorized"]


def test_no_records_are_nothing_to_measure(written: Callable[..., Layout]) -> None:
    files = locate(written(pa.table({"x": pa.array([], pa.int64())})).folder)
    with pytest.raises(StaleError, match="there is no record in"):
        measure_readers(files)


@pytest.mark.parametrize("change", ["lose", "repeat"])
def test_a_reader_of_other_records_is_found_out(
    numbers: Layout, monkeypatch: pytest.MonkeyPatch, change: str, measured: Measured
) -> None:
    def wrong(files: RecordFiles, options: ReadOptions) -> tf.data.Dataset:
        batches = registry.READERS["vectorized"](files, options)
        return batches.take(1) if change == "lose" else batches.repeat(2)

    monkeypatch.setitem(registry.READERS, "naive", wrong)
    passes = read_passes(locate(numbers.folder), "naive", BenchOptions(batch_size=4), FOREVER)
    came = 4 if change == "lose" else 20
    assert [each.records for each in passes] == [came, came]
    assert not replace(measured.measurements["naive"], records_read=came).complete


def test_a_warm_pass_ends_when_its_time_is_over_and_a_first_one_does_not(numbers: Layout) -> None:
    passes = read_passes(locate(numbers.folder), "vectorized", BenchOptions(batch_size=4, epochs=3), 0.0)
    assert [(each.records, each.whole) for each in passes] == [(10, True), (4, False), (4, False)]


def test_files_are_read_over_the_network_just_the_same(numbers: Layout) -> None:
    near = locate(numbers.folder)
    with slow_server(numbers.folder, Storage(0, 1000)) as url:
        far = with_urls(near, numbers.folder, url)
        assert all(path.startswith(f"{url}/shards/sample-train.tfrecord-0000") for path in far.paths)
        passes = read_passes(far, "vectorized", BenchOptions(batch_size=4), FOREVER)
        assert [(each.records, each.whole) for each in passes] == [(10, True), (10, True)]
        assert plain_reading(far.paths)[0] > 0


def test_a_training_step_is_waited_for(numbers: Layout) -> None:
    files = locate(numbers.folder)
    passes = read_passes(files, "vectorized", BenchOptions(batch_size=4, step_ms=20), FOREVER)
    assert all(each.seconds >= 3 * 0.020 for each in passes)  # three batches


def test_what_parses_elsewhere_is_left_out_where_decoding_is_simulated() -> None:
    assert set(BenchOptions().readers) - set(BenchOptions(decode_ms=1).readers) == {"data_service"}


@pytest.mark.parametrize("reader", [name for name in ("naive", "vectorized", "columnar") if name in registry.READERS])
def test_simulated_decoding_costs_its_time_by_the_record(numbers: Layout, reader: str) -> None:
    files = locate(numbers.folder)
    passes = read_passes(files, reader, BenchOptions(batch_size=10, decode_ms=10), FOREVER)
    assert all(each.seconds >= 10 * 0.010 for each in passes)
    (_, again) = read_passes(files, reader, BenchOptions(batch_size=10), FOREVER)
    assert (again.records, again.whole) == (10, True)


def test_a_dataset_takes_its_temporary_files_with_it(numbers: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    made = numbers.folder / "temporary"
    made.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(made))
    assert read_passes(locate(numbers.folder), "cache_file", BenchOptions(), FOREVER)[1].records == 10
    assert list(made.glob("tfr-cache-*")) == []


def test_damage_is_an_error_that_tells_what_to_do(numbers: Layout) -> None:
    path = numbers.shard_path("train-00001-of-00003")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedFile, match=rf"reader 'vectorized' failed .*`tfr verify {numbers.shards}` names file"):
        read_passes(locate(numbers.folder), "vectorized", BenchOptions(), FOREVER)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"batch_size": 0}, "readers.batch_size: expected a whole number from 1 up, such as 1024; found 0"),
        ({"batch_size": True}, "readers.batch_size: expected a whole number"),
        ({"epochs": 1}, "readers.epochs: expected a whole number from 2 up"),
        ({"repeats": "3"}, "readers.repeats: expected a whole number from 1 up, such as 3; found '3'"),
        ({"only": ("vectorised",)}, "readers.only: there is no reader 'vectorised'; did you mean 'vectorized'?"),
        ({"only": ("x",)}, "readers.only: there is no reader 'x'; known are naive, prefetch"),
        ({"step_ms": -1}, "readers.step_ms: expected milliseconds from 0 to 60,000, such as 5; found -1"),
        (
            {"decode_ms": 1, "only": ("data_service",)},
            "readers.decode_ms: reader 'data_service' parses in other processes",
        ),
        ({"decode_ms": float("nan")}, "readers.decode_ms: expected milliseconds"),
    ],
)
def test_settings_are_checked(settings: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BenchOptions(**settings)  # type: ignore[arg-type]
    assert str(caught.value).startswith(says)


@pytest.mark.parametrize(
    ("warm", "slower"), [((70, 60, 75), True), ((70, 60, 95), False), ((85, 84, 86), False), ((130, 120, 140), False)]
)
def test_a_regression_is_clear_or_none(measured: Measured, warm: tuple[float, ...], slower: bool) -> None:
    def at(median: float, low: float, high: float) -> Measurement:
        each = measured.measurements["naive"]
        return replace(each, warm=replace(each.warm, median=median, low=low, high=high))

    assert at(*warm).slower_than(at(100, 90, 110)) is slower


@pytest.mark.parametrize("change", [{"batch_size": 5}, {"step_ms": 1.0}, {"data_version": "x"}, {"reader": "merged"}])
def test_only_what_is_alike_is_compared(measured: Measured, change: dict[str, object]) -> None:
    each = measured.measurements["naive"]
    assert each.comparable(replace(each, measured_at="later"))
    assert not each.comparable(replace(each, **change))  # type: ignore[arg-type]
    assert not each.comparable(replace(each, hardware=replace(each.hardware, cores=77)))
