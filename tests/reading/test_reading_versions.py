"""Whatever happens to the files: a reader gives what it opened, or an error; never another version's records."""

import shutil
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

import tfr_assets
from tfr_assets.errors import DamagedFile, StaleError
from tfr_assets.layout import Layout, index_path, manifest_path
from tfr_assets.reading.locate.files import locate
from tfr_assets.reading.locate.shares import plan_files
from tfr_assets.reading.native.verified_files import verified_path
from tfr_assets.reading.registry import READERS
from tfr_assets.records.frames import marks
from tfr_assets.records.frames.index import read_index

from .datasets import write_dataset
from .versions import shards_of, table, version_of, write_version

ROWS = 400
REPLACED = r"it was replaced, for example by a refresh\. Open the dataset again"
SOME = ["naive", "vectorized", "autotuned", "bounded", "file_queue", "columnar"]
CACHED = ["cache_memory", "cache_file"]


def ids(batches: Any) -> list[int]:
    return [int(i) for batch in batches for i in batch["id"]]


def rename_over(source: Path, target: Path) -> None:
    """Puts a copy in the place of a file, as a refresh does."""
    copy = target.with_name("copy")
    shutil.copyfile(source, copy)
    copy.rename(target)


def swap(one: Path, other: Path) -> None:
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


@pytest.fixture
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of some records each."""
    monkeypatch.setattr(marks, "SPAN", 1000)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return write_version(tmp_path, 0)


@pytest.mark.parametrize("reader", [name for name in READERS if name not in CACHED])
def test_an_epoch_after_a_refresh_is_refused(layout: Layout, reader: str) -> None:
    dataset = tfr_assets.read(layout.folder, 50, reader=reader)
    assert version_of(ids(dataset), ROWS) == 0
    write_version(layout.folder.parent, 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match=REPLACED) as caught:
        ids(dataset)
    assert "Traceback" not in str(caught.value)
    assert version_of(ids(tfr_assets.read(layout.folder, 50, reader="vectorized")), ROWS) == 1


@pytest.mark.parametrize("reader", CACHED)
@pytest.mark.parametrize("shuffle", [False, True])
def test_what_is_cached_is_all_of_the_version_that_was_opened(layout: Layout, reader: str, shuffle: bool) -> None:
    dataset = tfr_assets.read(layout.folder, 50, reader=reader, shuffle=shuffle)
    assert version_of(ids(dataset), ROWS) == 0
    write_version(layout.folder.parent, 1)
    assert version_of(ids(dataset), ROWS) == 0


@pytest.mark.parametrize("reader", CACHED)
def test_an_epoch_that_met_a_refresh_is_not_cached(layout: Layout, reader: str) -> None:
    dataset = tfr_assets.read(layout.folder, 50, reader=reader)
    rename_over(shards_of(layout)[0], shards_of(layout)[2])
    for _ in range(2):
        with pytest.raises(tf.errors.InvalidArgumentError, match=REPLACED):
            ids(dataset)


@pytest.mark.parametrize("reader", [name for name in READERS if name != "data_service"])
def test_a_refresh_in_mid_epoch_never_mixes_versions(tmp_path: Path, reader: str) -> None:
    rows = 4000
    layout = write_version(tmp_path, 0, rows, text=1000)
    dataset = tfr_assets.read(layout.folder, 20, reader=reader)
    iterator = iter(dataset)
    found = ids([next(iterator)])
    write_version(tmp_path, 1, rows, text=1000)
    try:
        found += ids(iterator)
    except tf.errors.InvalidArgumentError as error:
        assert "Open the dataset again" in str(error)
        assert all(i < 200_000 for i in found)
    else:
        assert version_of(found, rows) == 0


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_batches_of_a_refresh_in_mid_read_are_refused(tmp_path: Path, compression: str, on_error: Any) -> None:
    rows = 4000
    layout = write_version(tmp_path, 0, rows, text=1000, compression=compression)
    found: list[int] = []
    with tfr_assets.batches(layout.folder, 10, workers=1, on_error=on_error) as batches:
        found += ids([next(batches)])
        write_version(tmp_path, 1, rows, text=1000, compression=compression)
        with pytest.raises(StaleError, match=REPLACED):
            for batch in batches:
                found += ids([batch])
    assert found == [100_000 + i for i in range(len(found))]


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("reader", SOME)
@pytest.mark.parametrize("when", ["before", "after"])
def test_swapped_shards_are_refused(layout: Layout, reader: str, on_error: Any, when: str) -> None:
    shards = shards_of(layout)
    assert len({shard.stat().st_size for shard in shards}) == 1
    if when == "before":
        swap(shards[1], shards[2])
    dataset = tfr_assets.read(layout.folder, 50, reader=reader, on_error=on_error, files="shards")
    batches = tfr_assets.batches(layout.folder, 50, on_error=on_error, files="shards")
    if when == "after":
        swap(shards[1], shards[2])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"-0000[12]-of-00004 is not the file that its manifest"):
        ids(dataset)
    with pytest.raises(StaleError, match=r"-00001-of-00004 is not the file that its manifest"):
        ids(batches)


def test_a_part_of_swapped_shards_is_refused(short_segments: None, tmp_path: Path) -> None:
    layout = write_version(tmp_path, 0)
    shards = shards_of(layout)
    swap(shards[1], shards[2])
    for reader in ("vectorized", "columnar", "file_queue"):
        for share in range(3):
            with pytest.raises(tf.errors.InvalidArgumentError, match="is not the file that its manifest"):
                ids(tfr_assets.read(layout.shards, 50, reader=reader, shard=(share, 3)))


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("reader", SOME)
def test_a_shard_copied_over_another_is_refused(layout: Layout, reader: str, on_error: Any) -> None:
    first, _, third, _ = shards_of(layout)
    shutil.copyfile(first, third)
    with pytest.raises(tf.errors.InvalidArgumentError, match="-00002-of-00004 is not the file that its manifest"):
        ids(tfr_assets.read(layout.shards, 50, reader=reader, on_error=on_error))
    for place in (manifest_path, index_path):
        shutil.copyfile(place(first), place(third))
    with pytest.raises(StaleError, match="-00002-of-00004: there is no readable manifest"):
        tfr_assets.read(layout.shards, 50, reader=reader, on_error=on_error)


def test_the_merged_file_must_be_of_these_shards(layout: Layout) -> None:
    older = write_version(layout.folder.parent / "other", 1)
    for place in (Path, manifest_path, index_path):
        shutil.copyfile(place(older.merged_path()), place(layout.merged_path()))
    with pytest.raises(StaleError, match="holds other records than the shards; `tfr run sample` merges them again"):
        tfr_assets.read(layout.folder, reader="merged")


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("damage", [[30], [10, 11, 57]])
def test_what_is_damaged_and_replaced_is_not_read(tmp_path: Path, compression: str, damage: list[int]) -> None:
    layout = write_version(tmp_path, 0)
    first, second, *_ = shards_of(layout)
    content = bytearray(first.read_bytes())
    for record in damage:
        content[int(read_index(index_path(first))[record, 0]) + 3] ^= 1
    files = locate(layout.shards)
    first.write_bytes(content)
    with pytest.warns(UserWarning, match=f"left out {len(damage)} of 400 records"):
        found = ids(tfr_assets.batches(files, on_error="skip"))
    assert found == [100_000 + i for i in range(ROWS) if i not in damage]
    second.write_bytes(content)  # of records of the same sizes
    if len(damage) == 1:
        with pytest.raises(StaleError, match="-00001-of-00004 is not the file that its manifest"):
            ids(tfr_assets.batches(files, on_error="skip"))


def test_much_damage_without_an_index_is_not_passed_over(layout: Layout) -> None:
    first = shards_of(layout)[0]
    content = bytearray(first.read_bytes())
    content[20] ^= 1
    content[-20] ^= 1
    first.write_bytes(content)
    index_path(first).unlink()
    with pytest.raises(DamagedFile, match=r"no valid index confirms the others"):
        ids(tfr_assets.batches(layout.shards, on_error="skip"))


def flip(index: Path, other: Path) -> None:
    content = bytearray(index.read_bytes())
    at = content.index(b" ", len(content) // 2) + 1
    content[at] = ord("1") if content[at] != ord("1") else ord("2")
    index.write_bytes(content)


def shift(index: Path, other: Path) -> None:
    lines = [line.split() for line in index.read_text().splitlines()]
    index.write_text("".join(f"{int(offset) + 16} {size}\n" for offset, size in lines))


def take_others(index: Path, other: Path) -> None:
    shutil.copyfile(other, index)


def remove(index: Path, other: Path) -> None:
    index.unlink()


@pytest.mark.parametrize("change", [flip, shift, take_others, remove])
@pytest.mark.parametrize("span", [1000, 16 << 20])
def test_no_reader_depends_on_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path, Path], None], span: int
) -> None:
    monkeypatch.setattr(marks, "SPAN", span)
    source = table(0, 301)
    source = source.set_column(1, "text", [["x" * (i % 60) for i in range(301)]])
    layout = write_dataset(source, tmp_path, shards=3)
    indexes = sorted((layout.shards / "index").iterdir())
    change(indexes[0], indexes[1])
    change(indexes[2], indexes[1])
    right = source["id"].to_pylist()
    assert ids(tfr_assets.batches(layout.shards, 13)) == right
    for count in (2, 5):
        shares = (tfr_assets.batches(layout.shards, 13, shard=(i, count)) for i in range(count))
        assert list(chain(*map(ids, shares))) == right
    for reader in ("columnar", "vectorized"):
        read = (tfr_assets.read(layout.shards, 13, reader=reader, shard=(i, 2)) for i in range(2))
        assert list(chain(*map(ids, read))) == right


def test_damage_elsewhere_does_not_hinder_a_share(short_segments: None, tmp_path: Path) -> None:
    layout = write_version(tmp_path, 0)
    first = shards_of(layout)[0]
    content = bytearray(first.read_bytes())
    for at in (len(content) - 20, len(content) - 300):
        content[at] ^= 1
    first.write_bytes(content)
    assert ids(tfr_assets.batches(layout.shards, shard=(0, 8))) == [100_000 + i for i in range(50)]
    assert ids(tfr_assets.read(layout.shards, shard=(0, 8), reader="vectorized")) == [100_000 + i for i in range(50)]
    with pytest.raises(DamagedFile, match=r"-00000-of-00004: record 9\d at byte"):
        ids(tfr_assets.batches(layout.shards, shard=(1, 8)))


def test_what_was_verified_stays_what_is_read(layout: Layout) -> None:
    wanted = plan_files(locate(layout.shards))[0]
    first, second, *_ = shards_of(layout)
    content = first.read_bytes()
    with verified_path(wanted) as path:
        rename_over(second, first)
        assert Path(path).read_bytes() == content
    with pytest.raises(StaleError, match=REPLACED), verified_path(wanted):
        pass
    first.write_bytes(content)
    with pytest.raises(StaleError, match=REPLACED), verified_path(wanted):
        shutil.copyfile(second, first)  # into the very file


@pytest.mark.parametrize("reader", ["naive", "autotuned", "bounded", "vectorized"])
def test_no_file_stays_open_when_an_epoch_ends_early(layout: Layout, reader: str) -> None:
    def open_shards() -> list[str]:
        links = (link.readlink() for link in Path("/proc/self/fd").iterdir() if link.is_symlink())
        return [str(link) for link in links if str(layout.folder) in str(link)]

    dataset = tfr_assets.read(layout.folder, 10, reader=reader)
    for _ in range(3):
        iterator = iter(dataset)
        next(iterator)
        del iterator
    assert open_shards() == []
    ids(dataset)
    assert open_shards() == []
