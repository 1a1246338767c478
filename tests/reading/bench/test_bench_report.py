"""The report of real measurements, its timelines, and the recommendation that `tfr_assets.read` follows."""

import csv
import io
import json
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from PIL import Image

import tfr_assets
from tests.reading.datasets import write_dataset
from tfr_assets.bench.readers.measurement import Measurement, Spread
from tfr_assets.bench.readers.recommend import recommend
from tfr_assets.bench.readers.report import Report, make_report
from tfr_assets.bench.readers.timeline import FILES, RECORDS, Timeline
from tfr_assets.errors import StaleError
from tfr_assets.layout import Layout
from tfr_assets.reading.hardware import Hardware
from tfr_assets.reading.locate.files import locate
from tfr_assets.reading.recommendation import recommended_reader
from tfr_assets.storage.sealed import seal, unseal

LANES = ("open", "read", "map", "train")


def measurement(reader: str, speed: float, **changes: object) -> Measurement:
    values = Measurement(
        reader=reader, batch_size=1024, step_ms=0, decode_ms=0, epochs=2, repeats=3, records=100, records_read=100,
        bytes=1000, cold=Spread(speed / 2, speed / 2, speed / 2), warm=Spread(speed, speed * 0.9, speed * 1.1),
        first_batch_cold=0.2, first_batch_warm=0.1, cpu_seconds=1.0, busy_cores=1.0, peak_memory_bytes=10**8,
        descriptors=9, plain_cold=1e6, plain_warm=1e7, hardware=Hardware.here(), data_version="v", measured_at="2026",
    )  # fmt: skip
    return replace(values, **changes)  # type: ignore[arg-type]


def measured(**speeds: float) -> dict[str, Measurement]:
    return {reader: measurement(reader, speed) for reader, speed in speeds.items()}


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    table = pa.table({"x": pa.array(range(200), pa.int64()), "word": [f"word {i}" for i in range(200)]})
    made = write_dataset(table, tmp_path_factory.mktemp("data"), shards=4)
    for each in measured(naive=10.0, columnar=200.0, vectorized=300.0, interleave=400.0).values():
        each.save(made.readers)
    measurement("prefetch", 20.0, data_version="old", measured_at="2025").save(made.readers)
    return made


@pytest.fixture(scope="module")
def report(layout: Layout) -> Report:
    readers = ("naive", "prefetch", "columnar", "vectorized", "interleave", "bounded")
    return make_report(layout.readers, locate(layout.folder), readers)


@pytest.fixture(scope="module")
def saved(report: Report, layout: Layout) -> dict[str, Path]:
    return report.save(layout.readers)


def test_it_compares_what_is_alike_and_tells_what_is_missing(report: Report) -> None:
    assert set(report.measurements) == {"naive", "columnar", "vectorized", "interleave"}
    assert report.missing["bounded"] == "not measured yet"
    assert "other data" in report.missing["prefetch"]


def test_there_must_be_something_to_compare(layout: Layout, tmp_path: Path) -> None:
    with pytest.raises(StaleError, match=f"no reader was measured yet: {tmp_path} holds no measurement"):
        make_report(tmp_path, locate(layout.folder), ("naive",))


def test_every_picture_lies_beside_the_data(saved: dict[str, Path], layout: Layout) -> None:
    timelines = ["naive", "prefetch", "interleave", "parallel_map", "cache_memory", "vectorized"]
    assert list(saved) == ["speed", "cycle_length", "batch_size", *(f"timeline_{name}" for name in timelines)]
    for path in saved.values():
        assert path.parent == layout.readers
        assert path.stat().st_size < 100_000
        with Image.open(path) as picture:
            picture.verify()


def test_the_table_is_a_csv_file_the_fastest_first(saved: dict[str, Path], layout: Layout) -> None:
    rows = list(csv.DictReader(io.StringIO((layout.readers / "table.csv").read_text())))
    assert [row["reader"] for row in rows] == ["interleave", "vectorized", "columnar", "naive"]
    assert [float(row["records_per_second"]) for row in rows] == [400.0, 300.0, 200.0, 10.0]
    assert float(rows[0]["share_of_limit"]) == pytest.approx(400 * 1000 / 100 / 1e7)


def test_everything_is_json_too(saved: dict[str, Path], layout: Layout) -> None:
    document = json.loads((layout.readers / "report.json").read_text())
    assert document["recommendation"]["reader"] == "vectorized"
    assert set(document["curves"]) == {"cycle_length", "batch_size"}
    assert [value for value, _ in document["curves"]["cycle_length"]["interleave"]] == [1, 2, 4]  # there are 4 files
    assert all(speed > 0 for _, speed in document["curves"]["batch_size"]["vectorized"])


def timeline_of(report: Report, reader: str) -> Timeline:
    return next(each for each in report.timelines if each.reader == reader)


def test_naive_does_one_thing_after_another(report: Report) -> None:
    spans = sorted(span for lane in timeline_of(report, "naive").lanes.values() for span in lane)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


def test_spans_are_of_two_epochs_over_the_first_records(report: Report) -> None:
    records, batches = FILES * RECORDS, FILES * RECORDS // 8
    for each in report.timelines:
        epochs = 1 if each.reader == "cache_memory" else 2  # what is cached is opened, read and mapped once
        opened, read, mapped, trained = (len(each.lanes[lane]) for lane in LANES)
        assert (opened, read, trained) == (FILES * epochs, records * epochs, batches * 2), each.reader
        assert mapped == (batches if each.reader == "vectorized" else records) * epochs, each.reader
        assert all(0 <= start <= end for lane in each.lanes.values() for start, end in lane)


def test_a_cached_second_epoch_only_trains(report: Report) -> None:
    cached = timeline_of(report, "cache_memory")
    assert max(end for lane in LANES[:3] for _, end in cached.lanes[lane]) <= cached.second_epoch


def test_prefetching_works_while_training_does(report: Report) -> None:
    lanes = timeline_of(report, "prefetch").lanes
    assert any(start < trained and train < end for start, end in lanes["map"] for train, trained in lanes["train"])


def test_the_fastest_is_recommended_and_used(saved: dict[str, Path], layout: Layout) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert recommended_reader(layout.folder) == "vectorized"
        assert recommended_reader(layout.shards) == "vectorized"


def test_another_machine_is_warned_about(layout: Layout, saved: dict[str, Path]) -> None:
    path = layout.readers / "recommendation.json"
    content = path.read_bytes()
    values = unseal(content)
    assert values
    try:
        path.write_bytes(seal(values | {"hardware": values["hardware"] | {"cores": 1000}}))
        with pytest.warns(UserWarning, match=r"reader 'vectorized' was the fastest on .*`tfr bench readers sample`"):
            assert recommended_reader(layout.folder) == "vectorized"
        with pytest.warns(UserWarning, match="was the fastest on") as told:
            tfr_assets.read(layout.folder)
        assert told[0].filename == __file__  # the line that reads, not one of the library
    finally:
        path.write_bytes(content)


@pytest.mark.parametrize("content", ["", "{}", '{"reader": "warp", "hardware": {}}'])
def test_what_is_no_recommendation_is_none(tmp_path: Path, content: str) -> None:
    assert recommended_reader(tmp_path) is None
    (tmp_path / "readers").mkdir()
    (tmp_path / "readers" / "recommendation.json").write_text(content)
    assert recommended_reader(tmp_path) is None


def test_what_is_faster_but_does_not_suit_everybody_is_told_of() -> None:
    best = recommend(measured(naive=1, vectorized=10, columnar=30, cache_memory=90, interleave=20), "columnar")
    assert best and best.reader == "columnar"
    assert set(best.not_recommended) == {"cache_memory"}
    assert best.why == "the fastest with 30 records/s, 3.00 times vectorized (10)"


def test_spreads_that_overlap_are_told_of() -> None:
    best = recommend(measured(vectorized=10, columnar=10.5), "columnar")
    assert best and "their spreads overlap, so either will do" in best.why


def test_of_a_pass_that_takes_no_time_nothing_is_concluded() -> None:
    best = recommend(measured(columnar=2_000, vectorized=3_000, merged=4_000), "columnar")
    assert best and best.reader == "columnar"
    assert "takes 50 ms, too little to tell" in best.why
    assert "too little data" in best.not_recommended["vectorized"] and "merged file" in best.not_recommended["merged"]


def test_a_reader_that_lost_a_record_is_not_recommended() -> None:
    both = measured(columnar=10) | {"vectorized": measurement("vectorized", 30, records_read=99)}
    best = recommend(both, "columnar")
    assert best and best.reader == "columnar"
    assert best.not_recommended == {"vectorized": "it did not read every record"}


@pytest.mark.parametrize("few", [{}, {"naive": 5.0}, {"interleave": 5.0, "naive": 3.0}])
def test_nothing_is_recommended_that_might_be_slower_than_the_default(few: dict[str, float]) -> None:
    assert recommend(measured(**few), "vectorized") is None


def test_an_old_recommendation_goes_when_there_is_none(layout: Layout, report: Report, tmp_path: Path) -> None:
    report.save(tmp_path)
    assert (tmp_path / "recommendation.json").is_file()
    replace(report, recommendation=None).save(tmp_path)
    assert not (tmp_path / "recommendation.json").exists()
