"""The page `report.html`: all of a dataset, legible without Dagster, a network or scripts."""

from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image

from tfr_assets.components.metadata.html import facts, page, paragraph, table, text
from tfr_assets.layout import shard_keys

from .conftest import SHARDS
from .project import Project, Ran

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
