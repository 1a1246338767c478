"""What a measurement says, and when it refuses to say anything. How fast is no test's business."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
import tensorflow as tf

from tfr_assets.errors import ConfigError, DamagedFile
from tfr_assets.layout import Layout
from tfr_assets.reading import pipelines
from tfr_assets.reading.files import RecordFiles
from tfr_assets.reading.locate import locate
from tfr_assets.reading.measure import measure_reader
from tfr_assets.reading.pipelines import ReadOptions


def test_a_measurement_counts_and_adds_up(numbers: Layout) -> None:
    measured = measure_reader("sample", batch_size=4, repeats=2, root=numbers.folder.parent)
    assert (measured.reader, measured.records, measured.batch_size, measured.repeats) == ("vectorized", 10, 4, 2)
    assert measured.bytes == locate(numbers.folder).bytes
    assert 0 < measured.first_batch_seconds <= measured.seconds + measured.spread
    assert measured.records_per_second == pytest.approx(10 / measured.seconds)
    assert measured.mb_per_second == pytest.approx(measured.bytes / measured.seconds / 1e6)
    assert measured.cpu_seconds > 0
    assert measured.peak_memory_bytes > 50e6  # TensorFlow alone is more


def test_it_takes_located_files(numbers: Layout) -> None:
    assert measure_reader(locate(numbers.folder, "merged"), repeats=1).records == 10


def test_it_is_saved_as_json(numbers: Layout) -> None:
    measured = measure_reader(numbers.folder, repeats=1)
    path = measured.save(numbers)
    assert path == numbers.readers / "vectorized.json"
    assert json.loads(path.read_text()) == measured.to_json()


def test_no_records_are_no_error(written: Callable[..., Layout]) -> None:
    assert measure_reader(written(pa.table({"x": pa.array([], pa.int64())})).folder, repeats=1).records == 0


@pytest.mark.parametrize("change", ["lose", "repeat"])
def test_a_reader_of_other_records_is_refused(numbers: Layout, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    def wrong(files: RecordFiles, options: ReadOptions) -> tf.data.Dataset:
        batches = pipelines.vectorized(files, options)
        return batches.take(1) if change == "lose" else batches.repeat(2)

    monkeypatch.setitem(pipelines.READERS, "wrong", wrong)
    came = 4 if change == "lose" else 20
    with pytest.raises(DamagedFile, match=rf"reader 'wrong' .*: {came} records came, the manifests say 10"):
        measure_reader(numbers.folder, "wrong", batch_size=4)


def test_damage_is_an_error_that_tells_what_to_do(numbers: Layout) -> None:
    path = numbers.shard_path("train-00001-of-00003")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedFile, match=rf"reader 'vectorized' failed .*`tfr verify {numbers.shards}` names file"):
        measure_reader(numbers.folder, repeats=1)


def test_settings_are_checked(numbers: Layout, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="repeats=0 must be at least 1"):
        measure_reader(numbers.folder, repeats=0)
    with pytest.raises(ConfigError, match="no reader 'fast'"):
        measure_reader(numbers.folder, "fast")
    with pytest.raises(ConfigError, match="no dataset"):
        measure_reader("nothing", root=tmp_path)
