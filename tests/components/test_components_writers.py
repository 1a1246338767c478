"""The assets `writers` and `writer_report`: real writes are measured, and the report tells which to use when."""

import json
import re
from collections.abc import Callable

import dagster as dg
import pytest
from PIL import Image

from tfr_assets.bench.writers.measured import MEASURED, SEED
from tfr_assets.bench.writers.options import WriterTrials
from tfr_assets.components.assets.readers import POOL
from tfr_assets.components.config.component import TFRecordDataset
from tfr_assets.errors import ConfigError
from tfr_assets.option_groups import validate

from .conftest import SHARDS
from .project import Project, Ran

FEW = ["serial", "sharded_threads", SEED]


@pytest.fixture(scope="module")
def measured(project: Project, make_dataset: Callable[..., str]) -> tuple[str, Ran]:
    """A dataset whose writers were measured in one run; look, do not touch."""
    writers = {"rows": 600, "workers": [1, 2], "repeats": 2, "only": FEW}
    name = make_dataset("raced", bench={"writers": writers, "readers": {}})
    assert project.run(f"Plan_shards_{name}").ok
    return name, project.run(f"Bench_writers_{name}", FEW)


def test_every_writer_is_a_partition_that_tells_of_speed_memory_and_the_plain_write(measured: tuple[str, Ran]) -> None:
    _, ran = measured
    assert ran.ok, ran.problems()
    found = ran.materialized("writers")
    assert set(found) == set(FEW)
    for each in found.values():
        assert each["dagster/row_count"] == 600
        for figure in ("records_per_second", "mb_per_second", "cpu_seconds", "share_of_plain_write", "seconds"):
            assert each[figure] > 0
        assert each["peak_memory_bytes"] > 20e6
        assert each["dagster/size_bytes"] > 10_000
    assert found["serial"]["workers"] == 1
    assert found["sharded_threads"]["measured"].startswith("| workers | 1 | 2 |\n")


def test_the_report_has_table_pictures_and_plain_words_also_as_files(
    project: Project, measured: tuple[str, Ran]
) -> None:
    name, ran = measured
    report = ran.materialized("writer_report")[None]
    assert report["missing"] == "none"
    assert report["table"].count("\n| ") - 1 == 1 + 2 + 1
    assert "- Measured with the first 600 of 1,000 rows." in report["use"]
    assert re.search(f"[Ff]astest(, |: )`({'|'.join(FEW)})`", report["use"])  # whether clearly, the machine decides
    folder = project.layout(name).writers
    assert {path.name for path in folder.iterdir()} == {
        *(f"{writer}.json" for writer in FEW), "report.json", "writers.png", "workers.png",
    }  # fmt: skip
    document = json.loads((folder / "report.json").read_text())
    assert [(each["writer"], each["workers"]) for each in document["measured"]] == [
        ("serial", 1), ("sharded_threads", 1), ("sharded_threads", 2),
        ("seed", 1),
    ]  # fmt: skip
    for picture in ("writers", "workers"):
        Image.open(folder / f"{picture}.png").verify()
        assert report[picture].startswith(f"![{picture}](data:image/png;base64,")


def test_nothing_of_what_was_written_is_left(project: Project, measured: tuple[str, Ran]) -> None:
    name, _ = measured
    assert {path.name for path in project.layout(name).folder.iterdir()} == {".lock", "raw", "writers"}


def test_the_report_takes_what_there_is_and_tells_what_is_missing(
    project: Project, make_dataset: Callable[..., str]
) -> None:
    options = {"rows": 100, "workers": [1], "repeats": 1, "only": ["serial", "locked"]}
    name = make_dataset("half", bench={"writers": options})
    assert project.run(f"Plan_shards_{name}").ok
    report, writers = [dg.AssetKey([name, "writer_report"])], [dg.AssetKey([name, "writers"])]
    nothing = project.run("__ASSET_JOB", assets=report)
    assert nothing.ok, nothing.problems()
    assert nothing.materialized("writer_report")[None]["missing"] == "serial, locked"
    assert project.run("__ASSET_JOB", assets=writers, tags={"dagster/partition": "locked"}).ok
    some = project.run("__ASSET_JOB", assets=report).materialized("writer_report")[None]
    assert some["missing"] == "serial" and re.search("[Ff]astest(, |: )`locked`", some["use"])
    project.dataset(name, shards=SHARDS, compression="gzip", bench={"writers": options})
    other = project.run("__ASSET_JOB", assets=report).materialized("writer_report")[None]
    assert other["missing"] == "serial, locked"  # what was measured holds for other files


def test_writers_are_measured_one_at_a_time_and_not_while_readers_are(
    project: Project, measured: tuple[str, Ran]
) -> None:
    assets = project.repository().assets_defs_by_key
    pools = {assets[dg.AssetKey([measured[0], part])].op.pool for part in ("writers", "readers")}
    assert pools == {POOL}


def test_a_refresh_measures_no_writers(refreshed: tuple[str, Ran]) -> None:
    _, ran = refreshed
    assert ran.materialized("writers") == ran.materialized("writer_report") == {}


def test_without_raw_the_message_says_so(project: Project, make_dataset: Callable[..., str]) -> None:
    name = make_dataset("early", bench={"writers": {"only": ["serial"]}})
    ran = project.run(f"Bench_writers_{name}", ["serial"])
    assert "Materialize raw first" in ran.problems()[f"{name}__writers"]


def test_the_writers_are_those_that_there_are() -> None:
    from tfr_assets.writing.writers.registry import WRITERS

    assert set(MEASURED) == {*WRITERS, "serial", "locked", SEED}


@pytest.mark.parametrize(
    ("writers", "message"),
    [
        ([1], "writers: expected a mapping with rows, workers, repeats or only; found [1]"),
        ({"row": 1}, "writers.row: not a setting (did you mean 'rows'?)"),
        ({"rows": 0}, "writers.rows: expected a whole number from 1 up; found 0"),
        ({"workers": 2}, "writers.workers: expected a list of whole numbers, such as [1, 2, 4]; found 2"),
        ({"workers": [2, "x"]}, "writers.workers[1]: expected a whole number from 1 up; found 'x'"),
        ({"repeats": True}, "writers.repeats: expected a whole number from 1 up; found True"),
        ({"only": ["lock"]}, "writers.only: there is no writer 'lock'; did you mean 'locked'?"),
        ({"only": []}, "writers.only: expected names that differ, at least one; found []"),
    ],
)
def test_settings_that_cannot_be_meant_so(writers: object, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validate(WriterTrials, writers, "writers")
    assert message in str(caught.value)


def test_settings_reach_the_dataset() -> None:
    attributes = {"source": "x.parquet", "bench": {"writers": {"workers": [4, 1], "repeats": 5, "only": ["locked"]}}}
    made: TFRecordDataset = TFRecordDataset.from_attributes_dict(attributes=attributes)
    trials = made.bench.writers
    assert trials == WriterTrials(workers=(4, 1), repeats=5, only=("locked",))
    assert trials.workers_of("locked") == (1, 4)
    assert trials.workers_of("serial") == (1,)
