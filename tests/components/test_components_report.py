"""The page `report.html`: all of a dataset, legible without Dagster, a network or scripts."""

import sqlite3
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from PIL import Image

from tfr_assets.components.attributes import Look
from tfr_assets.components.metadata.html import facts, page, paragraph, table, text
from tfr_assets.components.metadata.report import build_report, write_report
from tfr_assets.layout import shard_keys
from tfr_assets.sources import Source
from tfr_assets.writing.dataset import Dataset

from .conftest import SHARDS, numbers
from .project import OVERRIDES, Project, Ran

KEYS = shard_keys("train", SHARDS)


class Seen(HTMLParser):
    """What a browser would find on a page; raises if tags are not closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text, self._open = "", list[str]()
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "hr", "br"):
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + " "


def self_contained(seen: Seen) -> bool:
    linked = [
        value or "" for _, attributes in seen.tags for name, value in attributes.items() if name in ("src", "href")
    ]
    tags = {tag for tag, _ in seen.tags}
    return tags.isdisjoint({"script", "link", "iframe"}) and all(each.startswith(("data:", "#")) for each in linked)


def test_a_refresh_leaves_a_page_with_all_of_it(project: Project, refreshed: tuple[str, Ran]) -> None:
    name, ran = refreshed
    path = project.layout(name).report
    seen = Seen(path.read_text())
    assert self_contained(seen)
    for part in ("Numbers.", "1,000 records", "250", "4 of 4", "crc", "current", "passed", "word 3", KEYS[3]):
        assert part in seen.text, part
    assert "failed" not in seen.text
    for asset in ("raw", "shards", "merged"):
        (metadata, *_) = ran.materialized(asset).values()
        assert metadata["report"] == str(path)
    assert not list(path.parent.glob(".*.tmp"))


def test_damage_is_on_the_page_until_it_is_repaired(project: Project, make_dataset: Callable[..., str]) -> None:
    name = make_dataset("torn")
    assert project.refresh(name, SHARDS).ok
    path = project.layout(name).report
    project.layout(name).shard_path(KEYS[1]).unlink()
    assert not project.run(f"Verify_{name}").ok
    seen = Seen(path.read_text())
    assert "3 of 4" in seen.text and "What failed" in seen.text and "file is missing" in seen.text
    assert "3 of 4 files are there" in seen.text
    assert project.refresh(name, SHARDS).ok
    assert "What failed" not in path.read_text()


def test_the_repair_of_one_shard_is_on_the_page(project: Project, make_dataset: Callable[..., str]) -> None:
    name = make_dataset("mended")
    assert project.refresh(name, SHARDS).ok
    path = project.layout(name).report
    project.layout(name).shard_path(KEYS[1]).unlink()
    assert not project.run(f"Verify_{name}").ok
    assert "What failed" in path.read_text()
    repair = project.run(f"Refresh_{name}", [KEYS[1]], assets=[dg.AssetKey([name, "shards"])])  # as the UI launches it
    assert repair.ok and not repair.materialized("merged")
    assert "What failed" not in path.read_text() and "4 of 4 files are there" in Seen(path.read_text()).text


def test_a_failed_refresh_is_on_the_page_until_one_succeeds(project: Project, make_dataset: Callable[..., str]) -> None:
    name = make_dataset("halted", description="Halted numbers.")
    assert project.refresh(name, SHARDS).ok
    path = project.layout(name).report
    spiked = numbers()
    ids = spiked["id"].to_pylist()
    ids[600] = 2**63  # beyond int64, in the third shard
    project.table(name, spiked.set_column(0, "id", pa.array(ids, pa.uint64())))
    failed = project.refresh(name, SHARDS)
    assert list(failed.problems()) == ["write_shard[train_00002_of_00004]"]
    seen = Seen(path.read_text())
    assert f"Run {failed.run.run_id[:8]} failed at {KEYS[2]}: " in seen.text and "'id'" in seen.text
    assert "Halted numbers." in seen.text and "Writes" not in seen.text
    project.table(name, numbers())
    assert project.refresh(name, SHARDS).ok
    assert "failed" not in Seen(path.read_text()).text


def test_a_step_whose_process_was_killed_is_on_the_page(project: Project, make_dataset: Callable[..., str]) -> None:
    name = make_dataset("killed")
    assert project.refresh(name, SHARDS).ok
    layout = project.layout(name)
    for path in (layout.shard_path(KEYS[1]), layout.shard_path(KEYS[2])):
        path.unlink()
    project.fault(KEYS[1], "kill")
    failed = project.refresh(name, SHARDS)
    assert list(failed.problems()) == ["write_shard[train_00001_of_00004]"]
    seen = Seen(layout.report.read_text())
    assert f"Run {failed.run.run_id[:8]} failed at write_shard[train_00001_of_00004]: " in seen.text
    assert "was killed" in seen.text and "3 of 4 files are there" in seen.text  # it was written when the run was over
    assert project.refresh(name, SHARDS).ok
    assert "failed" not in Seen(layout.report.read_text()).text


def test_a_failed_merge_is_on_the_page(project: Project, make_dataset: Callable[..., str]) -> None:
    name = make_dataset("unmerged")
    assert project.refresh(name, SHARDS).ok
    project.layout(name).shard_path(KEYS[1]).unlink()
    failed = project.run("__ASSET_JOB", assets=[dg.AssetKey([name, "merged"])])
    assert not failed.ok
    seen = Seen(project.layout(name).report.read_text())
    assert f"Run {failed.run.run_id[:8]} failed at merged: " in seen.text and f"{KEYS[1]}: missing" in seen.text


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    (tmp_path / "home").mkdir()
    with dg.DagsterInstance.local_temp(str(tmp_path / "home"), overrides=OVERRIDES) as made:
        yield made


def look(tmp_path: Path, shards: int = 4) -> Look:
    return Look(Dataset("sample", Source(path="raw.parquet"), shards, root=tmp_path))


def test_files_that_are_missing_are_called_so_and_very_many_are_cut(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    html = build_report(look(tmp_path, 500), instance, {})
    assert Seen(html).text.count(" missing ") == 200 + 1  # one of them the merged file
    assert "failed" not in Seen(html).text and "… and 300 more" in html and "0 of 500 files are there" in html


def test_metadata_of_an_earlier_version_are_shown_as_far_as_they_go(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    for part, metadata in (("merged", {"dagster/row_count": 5}), ("reader_report", {"recommended": "columnar"})):
        instance.report_runless_asset_event(dg.AssetMaterialization(["sample", part], metadata=metadata))
    seen = Seen(build_report(look(tmp_path), instance, {}))
    assert "Recommended: columnar " in seen.text


def test_a_database_that_refuses_fails_no_step(
    tmp_path: Path, instance: dg.DagsterInstance, capfd: pytest.CaptureFixture[str]
) -> None:
    with sqlite3.connect(tmp_path / "home" / "history" / "runs" / "index.db") as database:
        database.execute("ALTER TABLE asset_check_executions RENAME TO gone")
    database.close()
    write_report(look(tmp_path), dg.build_op_context(instance=instance))
    said = capfd.readouterr().err
    assert "report.html is not up to date" in said and "no such table: asset_check_executions" in said
    assert "SELECT" not in said


def test_pictures_of_the_data_are_on_the_page(project: Project) -> None:
    folder = project.root / "raw" / "photos"
    for label in ("red", "blue"):
        (folder / label).mkdir(parents=True)
        for number in range(3):
            Image.new("RGB", (40, 30), label).save(folder / label / f"{number}.png")
    project.dataset("photos", source={"images": str(folder)}, shards=1)
    assert project.refresh("photos", 1).ok
    seen = Seen(project.layout("photos").report.read_text())
    pictures = [attributes["src"] or "" for tag, attributes in seen.tags if tag == "img"]
    assert len(pictures) == 2 and all(each.startswith("data:image/png;base64,") for each in pictures)
    assert self_contained(seen)


def test_a_page_that_cannot_be_written_fails_no_run(
    project: Project, make_dataset: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    name = make_dataset("barred")
    project.layout(name).report.mkdir(parents=True)  # not even root can put a file there
    ran = project.refresh(name, SHARDS)
    assert ran.ok
    logged = [log.user_message for log in project.instance.all_logs(ran.run.run_id)]
    assert any("report.html is not up to date" in message for message in logged)


def test_what_data_says_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    link = "[a](javascript:alert(1)) ![b](https://example.org/x.png)"
    seen = Seen(
        page(
            evil,
            paragraph(evil),
            [
                (evil, table([evil], [[evil], ["1,000"]]) + facts([(evil, evil), ("number", 1000)])),
                ("text", text(f"{evil}\n\n{link}\n\n| {evil} |\n| --- |\n| {evil} |")),
            ],
        )
    )
    tags = {tag for tag, _ in seen.tags}
    assert "script" not in tags
    assert not any("javascript:" in (value or "") for _, attributes in seen.tags for value in attributes.values())
    policy = next(a["content"] for tag, a in seen.tags if tag == "meta" and "http-equiv" in a)
    assert policy and policy.startswith("default-src 'none'")  # so that no picture is fetched from anywhere
