"""The assets readers and reader_report, and the checks between them, in real runs."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import dagster as dg
import pytest

from tests.components.conftest import ROWS, SHARDS
from tests.components.project import Project, Ran
from tfr_assets.bench.readers.measurement import Measurement, load, load_before
from tfr_assets.bench.readers.options import BenchOptions
from tfr_assets.components.assets.bench import Bench
from tfr_assets.components.assets.reader_checks import judge_reader
from tfr_assets.components.config.component import TFRecordDataset
from tfr_assets.reading import registry

READERS = ["naive", "vectorized", "columnar"]  # the last one is the default, without which none is recommended


@pytest.fixture(scope="module")
def name(project: Project, make_dataset: Callable[..., str]) -> str:
    made = make_dataset("read", bench={"readers": {"only": READERS, "repeats": 1, "batch_size": 100}})
    assert project.refresh(made, SHARDS).ok
    return made


@pytest.fixture(scope="module")
def ran(project: Project, name: str) -> Ran:
    return project.run(f"Bench_readers_{name}", READERS)


def test_all_readers_are_measured_in_one_run(project: Project, name: str, ran: Ran) -> None:
    assert ran.ok, ran.problems()
    materialized = ran.materialized("readers")
    assert set(materialized) == set(READERS)
    for reader, shown in materialized.items():
        assert shown["dagster/row_count"] == ROWS
        assert shown["batch_size"] == 100
        assert 0 < shown["records_per_second_low"] <= shown["records_per_second"] <= shown["records_per_second_high"]
        measured = load(project.layout(name).readers, str(reader))
        assert measured and round(measured.warm.median, 1) == shown["records_per_second"]
        assert all(len(f"{value}") <= 12 for value in shown.values() if isinstance(value, float))


def test_every_reader_is_checked(ran: Ran) -> None:
    evaluations = ran.evaluations("readers")
    checks = ("all_records", "open_files", "speed")
    assert set(evaluations) == {(reader, check) for reader in READERS for check in checks}
    assert all(each.passed for each in evaluations.values())
    assert all(
        each.severity is dg.AssetCheckSeverity.WARN for (_, check), each in evaluations.items() if check == "speed"
    )
    assert f"All {ROWS:,} records came" in str(evaluations["naive", "all_records"].description)


def test_the_report_shows_a_table_and_pictures_and_recommends(project: Project, name: str, ran: Ran) -> None:
    (shown,) = ran.materialized("reader_report").values()
    recommendation = json.loads((project.layout(name).readers / "recommendation.json").read_text())
    assert shown["recommended"] == recommendation["reader"] in READERS
    assert "| naive |" in shown["readers"] and "| vectorized |" in shown["readers"]
    pictures = ["speed", "batch_size", *(f"timeline_{reader}" for reader in ("naive", "prefetch", "vectorized"))]
    for picture in pictures:
        assert shown[picture].startswith("![")
        assert "data:image/png;base64," in shown[picture]
        assert (project.layout(name).readers / f"{picture}.png").is_file()


def test_one_reader_can_be_measured_alone(project: Project, name: str, ran: Ran) -> None:
    folder = project.layout(name).readers
    before = load(folder, "naive"), load(folder, "vectorized")
    again = project.run(f"Bench_readers_{name}", ["naive"], assets=[dg.AssetKey([name, "readers"])])
    assert again.ok, again.problems()
    assert set(again.materialized("readers")) == {"naive"}
    assert load(folder, "vectorized") == before[1]
    assert load_before(folder, "naive") == before[0]
    assert load(folder, "naive") != before[0]


def test_a_reader_that_fails_is_named_and_the_others_stay(project: Project, make_dataset: Callable[..., str]) -> None:
    name = make_dataset("no_merged", bench={"readers": {"only": ["merged", "vectorized"], "repeats": 1}})
    assert project.refresh(name, SHARDS).ok
    project.layout(name).merged_path().unlink()
    ran = project.run(f"Bench_readers_{name}", ["merged", "vectorized"])
    assert not ran.ok
    assert "1 of 2 readers failed\nmerged: there is no merged file" in ran.problems()[f"{name}__readers"]
    assert set(ran.materialized("readers")) == {"vectorized"}
    assert not ran.materialized("reader_report")


def test_settings_of_the_yaml_arrive() -> None:
    def made(**attributes: object) -> TFRecordDataset:
        return TFRecordDataset.from_attributes_dict(attributes={"source": "a.parquet", **attributes})

    assert made().bench == Bench()
    assert made(bench={"readers": {}}).bench == Bench(readers=BenchOptions())
    assert BenchOptions().readers == tuple(registry.READERS)
    settings = {"batch_size": 64, "epochs": 3, "repeats": 5, "only": READERS, "step_ms": 2, "decode_ms": 0.5}
    assert made(bench={"readers": settings}).bench.readers == BenchOptions(64, 3, 5, tuple(READERS), 2, 0.5)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([], "readers: expected a mapping with batch_size"),
        ({"batchsize": 1}, "readers.batchsize: not a setting (did you mean 'batch_size'?)"),
        ({"batch_size": 0}, "readers.batch_size: expected a whole number from 1 up"),
        ({"only": "naive"}, "readers.only: expected a list of texts, such as [vectorized, columnar]; found 'naive'"),
        ({"only": ["navie"]}, "readers.only: there is no reader 'navie'; did you mean 'naive'?"),
    ],
)
def test_a_wrong_setting_is_named_with_its_remedy(value: object, says: str) -> None:
    with pytest.raises(ValueError) as caught:
        TFRecordDataset.from_attributes_dict(attributes={"source": "a.parquet", "bench": {"readers": value}})
    assert f"bench.{says}" in str(caught.value)


@pytest.mark.parametrize("name", ["readers", "writers"])
def test_the_old_place_of_the_settings_names_the_new_one(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: stands below `bench` now; write bench: {{{name}: …}}"):
        TFRecordDataset.from_attributes_dict(attributes={"source": "a.parquet", name: {}})


@pytest.fixture(scope="module")
def measured(project: Project, name: str, ran: Ran) -> Measurement:
    found = load(project.layout(name).readers, "naive")
    assert found
    return found


def verdicts(latest: Measurement | None, before: Measurement | None = None) -> dict[str, tuple[bool, str]]:
    return {each.check.name: (each.passed, each.says) for each in judge_reader("naive", latest, before)}


def test_records_that_did_not_come_fail_a_check(measured: Measurement) -> None:
    passed, says = verdicts(replace(measured, records_read=ROWS - 1))["all_records"]
    assert not passed
    assert says == f"{ROWS - 1:,} records came, the manifests say {ROWS:,}"


@pytest.mark.parametrize(("reader", "ceiling"), [("naive", 256), ("bounded", 64)])
def test_a_reader_keeps_to_its_ceiling_of_descriptors(measured: Measurement, reader: str, ceiling: int) -> None:
    at = replace(measured, reader=reader)
    assert verdicts(replace(at, descriptors=ceiling))["open_files"][0]
    assert verdicts(replace(at, descriptors=ceiling + 1))["open_files"] == (
        False,
        f"{ceiling + 1} descriptors were open at most; the ceiling is {ceiling}",
    )


def test_a_regression_fails_a_check(measured: Measurement) -> None:
    twice = replace(measured.warm, median=2 * measured.warm.median, low=2 * measured.warm.low, high=9e9)
    twice = replace(twice, low=measured.warm.high * 1.5, median=max(twice.median, measured.warm.high * 1.6))
    passed, says = verdicts(measured, replace(measured, warm=twice))["speed"]
    assert not passed
    assert "% of the" in says
    assert verdicts(replace(measured, warm=twice), measured)["speed"][0]
    other = replace(measured, warm=twice, data_version="other")
    assert verdicts(measured, other)["speed"][0]
    assert "not measured before" in verdicts(measured)["speed"][1]


def test_what_was_not_measured_passes_no_check() -> None:
    assert verdicts(None) == dict.fromkeys(
        ("all_records", "open_files", "speed"), (False, "There is no measurement of naive")
    )


def test_the_definitions_need_nothing_heavy_for_it() -> None:
    script = "import sys, tfr_assets.components.config.component, tfr_assets.cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"tensorflow", "numba", "matplotlib", "PIL"} & set(loaded)
