"""Which files are read, and what is said where there is nothing to read."""

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfr_assets
from tfr_assets.errors import ConfigError, DamagedFile, StaleError
from tfr_assets.layout import Layout, index_path, manifest_path
from tfr_assets.reading.locate.files import locate
from tfr_assets.records.examples.writer import write_file
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.schema.features import FeatureSpec

from .datasets import write_dataset

TABLE = pa.table({"x": pa.array(range(10), pa.int64())})


def remove(path: Path) -> None:
    for part in (path, manifest_path(path), index_path(path)):
        part.unlink()


def remake(path: Path, **changes: object) -> None:
    """Rewrites a file's manifest with other values."""
    manifest = Manifest.load(path)
    assert manifest
    dataclasses.replace(manifest, **changes).save(path)  # type: ignore[arg-type]


def test_a_name_gives_its_shards_in_order(numbers: Layout) -> None:
    found = locate("sample", root=numbers.folder.parent)
    assert found.paths == tuple(str(numbers.shard_path(f"train-{i:05d}-of-00003")) for i in range(3))
    assert (found.compression, found.records) == ("none", 10)
    assert found.bytes == sum(Path(path).stat().st_size for path in found.paths)
    assert [feature.name for feature in found.features.features] == ["x"]


def test_the_root_comes_from_the_environment(numbers: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFR_DATA", str(numbers.folder.parent))
    assert locate("sample").records == 10


def test_paths_of_every_sort(numbers: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    shards, merged = locate(numbers.folder).paths, (str(numbers.merged_path()),)
    assert len(shards) == 3
    assert locate(str(numbers.folder), "merged").paths == merged
    assert locate(numbers.shards).paths == shards
    assert locate(numbers.merged).paths == merged
    assert locate(shards[1]).paths == (shards[1],)
    assert locate(merged[0]).records == 10
    monkeypatch.chdir(numbers.folder.parent)
    assert locate("./sample").records == 10


def test_files_beside_the_shards_are_not_read(numbers: Layout) -> None:
    (numbers.shards / "sample-train.tfrecord-00000-of-00003.tmp").write_bytes(b"half a shard")
    (numbers.shards / "sample-train.tfrecord-00003-of-00004").write_bytes(b"no manifest describes it")
    assert len(locate(numbers.folder).paths) == 3


def test_merged_is_taken_while_shards_are_missing(numbers: Layout) -> None:
    remove(numbers.shard_path("train-00001-of-00003"))
    assert locate(numbers.folder).paths == (str(numbers.merged_path()),)
    with pytest.raises(StaleError, match="is not complete"):
        locate(numbers.folder, "shards")


def test_a_complete_set_is_taken_beside_an_incomplete_one(numbers: Layout) -> None:
    write_dataset(TABLE, numbers.folder.parent, shards=4)
    remove(numbers.shard_path("train-00002-of-00004"))
    assert len(locate(numbers.folder, "shards").paths) == 3


def test_two_complete_sets_are_refused(numbers: Layout) -> None:
    write_dataset(TABLE, numbers.folder.parent, shards=4)
    with pytest.raises(StaleError, match=r"several sets; `tfr run sample`(?s:.*)00003: 3 files(?s:.*)00004: 4 files"):
        locate(numbers.folder, "shards")


def test_unknown_names_get_the_closest(numbers: Layout) -> None:
    with pytest.raises(ConfigError, match=r"no dataset 'smaple' in .*; did you mean 'sample'\?"):
        locate("smaple", root=numbers.folder.parent)
    with pytest.raises(ConfigError, match=r"no dataset 'other' in .*; there are .*sample"):
        locate("other", root=numbers.folder.parent)
    with pytest.raises(ConfigError, match="letters, digits and underscores"):
        locate("my-data")


def test_a_name_that_is_a_path_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"no dataset 'here' in .*write './here'"):
        locate("here", root=tmp_path / "data")


def test_a_dataset_without_files_is_told_how_to_get_them(numbers: Layout) -> None:
    root = numbers.folder.parent
    (root / "empty" / "raw").mkdir(parents=True)
    for what in ("empty", root / "empty"):
        with pytest.raises(StaleError, match=r"'empty' has no TFRecord files in .* yet; run `tfr run empty` first"):
            locate(what, root=root)
    with pytest.raises(StaleError, match="'flights' has no TFRecord files"):
        locate("flights", root=root)  # defined by the project, never run here
    remove(numbers.merged_path())
    with pytest.raises(StaleError, match=r"'sample' has no merged file in .*; run `tfr run sample` first"):
        locate("sample", "merged", root)


def test_missing_shards_are_named(numbers: Layout) -> None:
    remove(numbers.merged_path())
    remove(numbers.shard_path("train-00000-of-00003"))
    numbers.shard_path("train-00001-of-00003").unlink()
    manifest_path(numbers.shard_path("train-00002-of-00003")).unlink()
    with pytest.raises(StaleError, match="is not complete; `tfr run sample` writes what is missing") as caught:
        locate(numbers.folder)
    assert str(caught.value).splitlines()[1:] == [
        "  sample-train.tfrecord-00000-of-00003: missing",
        "  sample-train.tfrecord-00001-of-00003: missing",
        "  sample-train.tfrecord-00002-of-00003: has no manifest",
    ]


def test_long_lists_are_cut(tmp_path: Path) -> None:
    layout = write_dataset(TABLE, tmp_path, shards=30)
    remove(layout.merged_path())
    for index in range(25):
        remove(layout.shard_path(f"train-{index:05d}-of-00030"))
    with pytest.raises(StaleError, match=r"… and 5 more$"):
        locate(layout.folder)


def test_a_file_without_manifest_is_refused(numbers: Layout) -> None:
    path = numbers.merged_path()
    manifest_path(path).write_text("{")
    with pytest.raises(StaleError, match=r"sample-train.tfrecord: there is no readable manifest .*TFRecordDataset"):
        locate(path)
    manifest_path(path).unlink()
    with pytest.raises(StaleError, match=r"sample-train.tfrecord: there is no readable manifest"):
        locate(path)


def test_a_folder_of_foreign_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.tfrecord").write_bytes(b"")
    with pytest.raises(StaleError, match=r"is not a dataset, and no manifest in .*`tfr adopt "):
        locate(tmp_path)


def test_a_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no file or folder .*nowhere"):
        locate(tmp_path / "nowhere")


def test_another_size_than_the_manifests_is_refused(numbers: Layout) -> None:
    path = numbers.shard_path("train-00001-of-00003")
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(b"x")
    message = rf"`tfr verify {numbers.shards}`(?s:.*)-00001-of-00003: {size + 1} bytes, its manifest says {size}$"
    with pytest.raises(DamagedFile, match=message):
        locate(numbers.folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"compression": "gzip"}, "another compression"),
        ({"made_from": {"inventory": "two", "rows": [3, 6]}}, "another inventory"),
        ({"made_from": {}}, "another inventory"),
    ],
)
def test_files_of_several_versions_are_refused(numbers: Layout, changes: dict[str, object], message: str) -> None:
    remake(numbers.shard_path("train-00001-of-00003"), **changes)
    with pytest.raises(StaleError, match=rf"`tfr run sample`(?s:.*)-00001-of-00003: {message}$"):
        locate(numbers.folder)


def test_files_of_several_specs_are_refused(numbers: Layout) -> None:
    path = numbers.shard_path("train-00002-of-00003")
    manifest = Manifest.load(path)
    assert manifest and manifest.features
    first, *others = manifest.features.features
    changed = dataclasses.replace(first, optional=True), dataclasses.replace(first, arrow_type="int32")
    for features, said in (
        ((changed[0], *others), "'x' is int64 of shape (), absent in some records, there int64 of shape ()"),
        ((changed[1], *others), "'x' is int32 of shape (), there int64 of shape ()"),
        ((dataclasses.replace(first, name="a"), first), "'a' is int64 of shape (), there absent"),
        (others, "'x' is absent, there int64 of shape ()"),
    ):
        remake(path, features=FeatureSpec(tuple(features)))
        with pytest.raises(StaleError, match=rf"-00002-of-00003: another features: {re.escape(said)}$"):
            locate(numbers.folder)


def test_records_of_whose_features_nothing_is_known_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.tfrecord"
    write_file(path, [])
    with pytest.raises(ConfigError, match=r"serialized already, .*; read them with tf.data.TFRecordDataset"):
        locate(path)


def test_what_no_command_wrote_is_not_written_again_by_one(tmp_path: Path) -> None:
    folder = tmp_path / "some"
    tfr_assets.write(TABLE, folder, shards=2)
    with pytest.raises(ConfigError, match="'merged' reads a dataset by its name, folder or URL"):
        tfr_assets.read(folder, reader="merged")
    (folder / "some-train.tfrecord-00001-of-00002").unlink()
    with pytest.raises(StaleError, match=r"is not complete; `tfr_assets\.write` writes what is missing, or"):
        locate(folder)


def test_files_is_checked(numbers: Layout) -> None:
    with pytest.raises(ConfigError, match=r"files='all': use 'shards', 'merged' or None"):
        locate(numbers.folder, "all")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"files='merged' chooses among a dataset's, but .*shards is already chosen"):
        locate(numbers.shards, "merged")


def test_files_of_no_records_are_found(written: Callable[..., Layout]) -> None:
    assert locate(written(TABLE.slice(0, 0)).folder).records == 0


@pytest.mark.parametrize("what", [None, 5, b"flights"])
def test_what_is_no_name_is_refused(what: Any) -> None:
    with pytest.raises(ConfigError, match="must be the name of a dataset, a path or a URL"):
        locate(what)
