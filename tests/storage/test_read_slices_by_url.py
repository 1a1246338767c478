"""Slices of a dataset at the URL of an object store are read, and exported, as those at a path are."""

import pickle
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfr_assets
from tests.reading.datasets import write_dataset
from tests.storage.servers import Between
from tests.storage.test_list_store import Command, tfr
from tests.storage.test_write_to_store import contents
from tfr_assets.errors import ConfigError, StaleError
from tfr_assets.layout import Layout
from tfr_assets.sources import Slices, save_slices
from tfr_assets.storage.objects.folder import ObjectFolder

__all__ = ["tfr"]  # a fixture

EU, US = list(range(10)), list(range(100, 120))


@pytest.fixture
def places(one_bucket: str, tmp_path: Path) -> dict[str, str]:
    """The same dataset of slices at a URL, and at a path."""
    whole = Layout.of("parts", tmp_path / "data")
    for key, numbers in {"eu": EU, "us": US}.items():
        made = write_dataset(pa.table({"id": numbers}), tmp_path / "made", "parts", shards=1, inventory=key)
        (slice_ := whole.of_slice(key)).folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made.folder, slice_.folder)
    save_slices(whole.slices, Slices(values=["eu", "us", "asia"]))
    there = ObjectFolder(f"{one_bucket}/lake/parts")
    for path in filter(Path.is_file, whole.folder.rglob("*")):
        there.put(path.relative_to(whole.folder).as_posix(), path.read_bytes())
    return {"url": there.url, "path": str(whole.folder)}


def ids(records: Iterable[dict[str, Any]]) -> list[int]:
    return [int(record["id"]) for record in records]


@pytest.mark.parametrize("kind", ["url", "path"])
@pytest.mark.parametrize(
    ("slices", "expected"),
    [(None, EU + US), ("us", US), (["us", "eu"], EU + US), (("eu", "us"), EU + US), ("last", US)],
)
def test_slices_of_what_lies_anywhere_are_read(
    places: dict[str, str], kind: str, slices: Any, expected: list[int]
) -> None:
    place = places[kind]
    missing: Any = "allow" if slices == "last" else "raise"  # the last one, asia, was not made
    if slices == "last":
        with pytest.raises(StaleError, match="of dataset 'parts', 1 of 1 slices are not there: asia"):
            tfr_assets.open(place, slices=slices)
        slices = ["us", "asia"]
    with tfr_assets.open(place, slices=slices, missing_slices=missing) as opened:
        assert ids(opened) == expected
        assert pickle.loads(pickle.dumps(opened)).fingerprint == opened.fingerprint
        assert [report.ok for report in opened.verify()] == [True] * len(opened.manifests)
    for act in (tfr_assets.batches, tfr_assets.read):
        found = act(place, 7, slices=slices, missing_slices=missing)
        assert [int(each) for batch in found for each in np.asarray(batch["id"])] == expected
    merged = tfr_assets.open(f"{place}/", files="merged", slices=slices, missing_slices=missing)
    assert ids(merged) == expected and all("/merged/" in path for path in merged._files.paths)


@pytest.mark.parametrize("kind", ["url", "path"])
def test_the_last_slice_is_read(places: dict[str, str], kind: str) -> None:
    place, slices = places[kind], Slices(values=["eu", "us"])
    if kind == "url":
        save_slices(Path(places["path"]) / "slices", slices)
        ObjectFolder(place).put("slices/slices.json", (Path(places["path"]) / "slices" / "slices.json").read_bytes())
    else:
        save_slices(Path(place) / "slices", slices)
    assert ids(tfr_assets.open(place, slices="last")) == US


@pytest.mark.parametrize("kind", ["url", "path"])
def test_slices_of_which_none_was_made_mix_with_nothing(places: dict[str, str], kind: str, tmp_path: Path) -> None:
    made = write_dataset(pa.table({"id": EU}), tmp_path / "whole", "parts", shards=1)
    if kind == "url":
        folder = ObjectFolder(places["url"])
        folder.delete([key for key in folder.walk() if key != "slices/slices.json"])
        for path in filter(Path.is_file, made.folder.rglob("*")):
            folder.put(path.relative_to(made.folder).as_posix(), path.read_bytes())
    else:
        for each in ("eu", "us"):
            shutil.rmtree(Path(places["path"]) / "slices" / each)
        shutil.copytree(made.folder, places["path"], dirs_exist_ok=True)
    with pytest.raises(StaleError, match="none of these slices of dataset 'parts' is there"):
        tfr_assets.open(places[kind])


def test_a_slice_that_is_being_written_is_left_out_or_read_merged(places: dict[str, str]) -> None:
    folder = ObjectFolder(places["url"])
    folder.delete(["slices/us/shards/manifest/parts-train.tfrecord-00000-of-00001.json"])
    folder.put("slices/us/shards/manifest/parts-train.tfrecord-00000-of-00002.json", b"{}")
    assert ids(tfr_assets.open(folder.url)) == EU + US  # its merged file
    with pytest.raises(StaleError, match="slices/us/shards is not complete"):
        tfr_assets.open(folder.url, files="shards")
    folder.delete([f"slices/us/{key}" for key in ObjectFolder(f"{folder.url}/slices/us").walk()])
    folder.put("slices/us/raw/inventory.json", b"{}")
    with pytest.warns(UserWarning, match="'parts': left out, because being written, or lost: us. `tfr run parts"):
        assert ids(tfr_assets.open(folder.url)) == EU


def test_what_has_no_slices_there_is_refused(places: dict[str, str], one_bucket: str) -> None:
    url = places["url"]
    for act in (tfr_assets.open, tfr_assets.batches, tfr_assets.read):
        with pytest.raises(ConfigError, match=f"slices='us': {url}/slices/us is no dataset with slices; leave it out"):
            act(f"{url}/slices/us", slices="us")
        with pytest.raises(ConfigError, match="give the URL of the folder of one slice"):
            act("https://example.org/parts", slices="us")
        with pytest.raises(ConfigError, match="'mars'"):
            act(url, slices="mars")
    assert ids(tfr_assets.open(f"{url}/slices/us")) == US
    tfr_assets.write(pa.table({"id": [1]}), f"{one_bucket}/other", shards=1)
    whole = ObjectFolder(url)
    for key, content in contents(f"{one_bucket}/other").items():
        whole.put(f"shards/{key}", content)
    for slices in (None, "us"):
        says = f"{url} holds both slices and files of the whole dataset, in shards: .* remove {url}/slices; if it has"
        with pytest.raises(StaleError, match=says):
            tfr_assets.open(url, slices=slices)


def test_slices_there_are_found_by_few_requests(between: Between, places: dict[str, str]) -> None:
    between.requests.clear()
    tfr_assets.open(places["url"], slices="us")
    listed = [path for _, path in between.requests if "list-type=2" in path]
    assert len(listed) <= 7 and len(between.requests) <= 9


@pytest.mark.parametrize("kind", ["url", "path"])
def test_slices_of_what_lies_anywhere_are_exported(
    places: dict[str, str], tfr: Command, tmp_path: Path, kind: str
) -> None:
    pytest.importorskip("array_record", reason="needs array_record, of the extra 'dev'")
    from array_record.python.array_record_module import ArrayRecordReader

    place = places[kind]
    for chosen, records in ((["--slices", "us"], 20), (["--slices", "eu,us"], 30), ([], 30)):
        target = tmp_path / f"{records}{len(chosen)}.array_record"
        done = tfr("export", place, str(target), *chosen)
        assert done.returncode == 0, done.stderr
        assert f"{records} records" in done.stdout
        assert ArrayRecordReader(str(target)).num_records() == records
    refused = tfr("export", place, "x.array_record", "--slices", "asia")
    says = "of dataset 'parts', 1 of 1 slices are not there: asia"
    assert refused.returncode in (1, 2) and says in " ".join(refused.stderr.split())


def test_slices_there_are_compared_with_those_here(places: dict[str, str], tfr: Command) -> None:
    same = tfr("diff", places["path"], places["url"])
    assert same.returncode == 0, same.stdout + same.stderr
