"""Whatever is wrong in a dataset's folder is found by verifying it, and gone after the next run."""

import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tests.records.reference import flipped
from tests.sources.media_files import encoded, image
from tests.sources.media_files import write as write_files
from tfr_assets.cli.verify import verify_files
from tfr_assets.layout import Layout, index_path, manifest_path
from tfr_assets.reading.hardware import Hardware
from tfr_assets.reading.recommendation import Recommendation, recommended_reader
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.frames.scan import FaultKind
from tfr_assets.sources import Source, parse_source
from tfr_assets.writing import sizing
from tfr_assets.writing.audit import audit_folder
from tfr_assets.writing.dataset import Dataset
from tfr_assets.writing.merged import merge_shards
from tfr_assets.writing.plan import load_inventory
from tfr_assets.writing.raw import materialize_raw
from tfr_assets.writing.stored import audit_folders, find_record_files
from tfr_assets.writing.write import write

from .conftest import MakeDataset, files, write_all_shards


def run(dataset: Dataset) -> None:
    """Does what `tfr run` does with all that lies in a dataset's folder."""
    write_all_shards(dataset)
    sizing.save_planned(dataset.layout, sizing.split_sizes(dataset, load_inventory(dataset)))
    merge_shards(dataset)


def found_in(path: Path) -> str:
    """What `tfr verify` finds wrong."""
    reports = [*verify_files(find_record_files([path]), quiet=True), *audit_folders([path])[0]]
    return "\n".join(str(fault) for report in reports for fault in (*report.faults, *report.feature_faults))


@pytest.fixture
def dataset(make: MakeDataset, raw: Path) -> Dataset:
    """A dataset of which everything is there, a landing, a plan and a recommendation among it."""
    made = make(source=Source(path=str(raw), shuffle_seed=1), shards=3)
    run(made)
    Recommendation("columnar", "it is fast", {"columnar": 5.0}, {}, 1, Hardware.here(), "1", "now").save(
        made.layout.readers
    )
    assert found_in(made.layout.folder) == ""
    return made


def test_a_flipped_bit_anywhere_is_found_and_healed(dataset: Dataset) -> None:
    layout, generator = dataset.layout, random.Random(1)
    before = files(layout.folder)
    assert len(before) == (3 + 1) * 3 + 3 + 2 + 2 + 1
    for name, content in before.items():
        path = layout.folder / name
        for bit in generator.sample(range(8 * len(content)), 12):
            path.write_bytes(flipped(content, bit))
            assert Path(name).name in found_in(layout.folder), (name, bit)
        is_recommendation = path == layout.recommendation
        if is_recommendation:
            assert recommended_reader(layout.folder) is None
            assert "`tfr bench readers sample` writes another" in found_in(layout.folder)
        run(dataset)
        assert found_in(layout.folder) == "", name
        if is_recommendation:  # written by measuring only
            assert not path.exists()
            path.write_bytes(content)
        assert _lasting(files(layout.folder)) == _lasting(before)


def _lasting(content: dict[str, bytes]) -> dict[str, bytes]:
    """All but what tells when and where raw data was landed."""
    return {name: data for name, data in content.items() if not name.endswith(("inventory.json", "landing.json"))}


def test_a_file_cut_or_emptied_is_found(dataset: Dataset) -> None:
    for name, content in files(dataset.layout.folder).items():
        path = dataset.layout.folder / name
        for wrong in (b"", content[:-1], content + b"\n"):
            path.write_bytes(wrong)
            assert path.name in found_in(dataset.layout.folder), name
        path.write_bytes(content)


def parts(path: Path) -> list[Path]:
    return [path, index_path(path), manifest_path(path)]


def swap(layout: Layout) -> None:
    first, second = (layout.shard_path(f"train-0000{n}-of-00003") for n in (0, 1))
    for one, other in zip(parts(first)[:2], parts(second)[:2], strict=True):
        one.rename(one.parent / "x")
        other.rename(one)
        (one.parent / "x").rename(other)


def swap_all(layout: Layout) -> None:
    first, second = (layout.shard_path(f"train-0000{n}-of-00003") for n in (0, 1))
    swap(layout)
    for path, content in zip((first, second), [manifest_path(p).read_bytes() for p in (second, first)], strict=True):
        manifest_path(path).write_bytes(content)


def copy_over(layout: Layout) -> None:
    shutil.copy(layout.shard_path("train-00001-of-00003"), layout.shard_path("train-00000-of-00003"))


def copy_all_over(layout: Layout) -> None:
    pair = (layout.shard_path(f"train-0000{n}-of-00003") for n in (1, 0))
    for source, target in zip(*map(parts, pair), strict=True):
        shutil.copy(source, target)


def delete(layout: Layout) -> None:
    for part in parts(layout.shard_path("train-00000-of-00003")):
        part.unlink()


def delete_but_index(layout: Layout) -> None:
    path = layout.shard_path("train-00000-of-00003")
    path.unlink()
    manifest_path(path).unlink()


def delete_all(layout: Layout) -> None:
    for name in ("train-00000-of-00003", "train-00001-of-00003", "train-00002-of-00003"):
        for part in parts(layout.shard_path(name)):
            part.unlink()


def leave_without_manifest(layout: Layout) -> None:
    """As does a process that is killed between a shard's rename and its manifest."""
    shutil.copy(layout.shard_path("train-00000-of-00003"), layout.shard_path("train-00000-of-00007"))


def duplicate(layout: Layout) -> None:
    pair = (layout.shard_path(name) for name in ("train-00000-of-00003", "train-00003-of-00004"))
    for source, target in zip(*map(parts, pair), strict=True):
        shutil.copy(source, target)


def leave_index(layout: Layout) -> None:
    index_path(layout.shard_path("train-00000-of-00007")).write_text("0 20\n")


def drop_index(layout: Layout) -> None:
    index_path(layout.shard_path("train-00001-of-00003")).unlink()


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (swap, "-00000-of-00003"), (swap_all, "-00001-of-00003"), (copy_over, "-00000-of-00003"),
        (copy_all_over, "it is that of sample-train.tfrecord-00001-of-00003, so that the file was copied or renamed"),
        (delete, "-00000-of-00003: file is missing"), (delete_all, "-00002-of-00003"),
        (leave_without_manifest, "-00000-of-00007: no manifest describes"),
        (duplicate, "-00003-of-00004"),
        (leave_index, "-00000-of-00007.idx"), (drop_index, "-00001-of-00003.idx"),
        (leave_index, "does not belong here (the file that it is the index of is gone, and so is its manifest"),
        (delete_but_index, "-00000-of-00003: file is missing"),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)  # fmt: skip
def test_files_that_are_missing_mixed_up_or_left_over(
    damage: Callable[[Layout], None], named: str, dataset: Dataset
) -> None:
    layout = dataset.layout
    before = files(layout.folder)
    damage(layout)
    assert named in found_in(layout.folder)
    assert named in found_in(layout.shards)
    run(dataset)
    assert files(layout.folder) == before


@pytest.mark.parametrize("with_index", [True, False])
def test_any_file_that_is_gone_with_its_manifest_is_missed(with_index: bool, dataset: Dataset) -> None:
    layout = dataset.layout
    before = files(layout.folder)
    for path in (*layout.shards.glob("*.tfrecord*"), *layout.merged.glob("*.tfrecord*")):
        for part in parts(path) if with_index else (path, manifest_path(path)):
            part.unlink()
        assert f"{path}: file is missing" in found_in(layout.folder)
        run(dataset)
        assert found_in(layout.folder) == "" and files(layout.folder) == before


def test_any_file_that_is_gone_is_missed(dataset: Dataset) -> None:
    layout = dataset.layout
    before = files(layout.folder)
    for name in before.keys() - {
        "readers/recommendation.json",
        "raw/inventory.json",
        "raw/shards.json",
    }:  # see the plan
        (layout.folder / name).unlink()
        assert found_in(layout.folder), name
        run(dataset)
        assert found_in(layout.folder) == "", name
        assert _lasting(files(layout.folder)) == _lasting(before)


def test_a_dataset_that_was_never_merged_misses_nothing(make: MakeDataset) -> None:
    made = make()
    write_all_shards(made)
    assert found_in(made.layout.folder) == ""


def test_faults_are_called_by_what_they_are(dataset: Dataset) -> None:
    layout = dataset.layout
    duplicate(layout)
    leave_index(layout)
    path = layout.shard_path("train-00003-of-00004")
    manifest = Manifest.load(layout.shard_path("train-00002-of-00003"))
    assert manifest
    replace(manifest, file=path.name).save(path)
    other = layout.shard_path("train-00001-of-00003")
    manifest = Manifest.load(other)
    assert manifest
    replace(manifest, made_from={**manifest.made_from, "cast": {"n": "int8"}}).save(other)
    kinds = {(Path(fault.path).name, fault.kind) for fault in audit_folder(layout.shards).faults}
    assert kinds == {
        (path.name, FaultKind.EXTRA),
        ("sample-train.tfrecord-00000-of-00007.idx", FaultKind.EXTRA),
        (other.name, FaultKind.MIXED),
        *((f"sample-train.tfrecord-0000{n}-of-00004", FaultKind.MISSING) for n in range(3)),
    }


@pytest.mark.parametrize("name", ["other", "sample (copy)", "a(b", "sam.le"])
def test_a_copy_of_a_dataset_under_another_name_is_whole(name: str, dataset: Dataset, tmp_path: Path) -> None:
    copy = tmp_path / name
    shutil.copytree(dataset.layout.folder, copy)
    assert found_in(copy) == ""
    stranger = copy / "shards" / "samXle-train.tfrecord-00000-of-00001"
    stranger.write_bytes(b"")
    reports, notes = audit_folders([copy])
    assert reports == [] and [note.path for note in notes] == [str(stranger)]
    index_path(copy / "merged" / "sample-train.tfrecord").unlink()
    assert "sample-train.tfrecord.idx" in found_in(copy)


@pytest.mark.parametrize("name", ["sample.bak", "sample (copy)"])
def test_a_copy_without_shards_under_a_name_that_is_no_datasets_is_a_fault(
    name: str, make: MakeDataset, tmp_path: Path
) -> None:
    made = make()
    materialize_raw(made)
    copy = tmp_path / name
    shutil.copytree(made.layout.folder, copy)
    assert f"{copy}: " in found_in(copy) and "no file in it tells the dataset's name" in found_in(copy)
    shutil.move(copy, tmp_path / "sample_bak")
    assert found_in(tmp_path / "sample_bak") == ""


def test_files_for_other_tools_are_those_of_the_shards_that_are_there(make: MakeDataset, tmp_path: Path) -> None:
    folder = write_files(tmp_path / "images", {f"{n}.png": encoded(image(seed=n), "PNG") for n in range(3)})
    made = make(source=parse_source({"images": {"path": str(folder), "labels": "none"}}), shards=1)
    write_all_shards(made)
    layout = made.layout
    assert found_in(layout.folder) == ""
    write_files(folder, {"4.jpeg": encoded(image(height=8))})  # of another format and size
    materialize_raw(made)
    assert found_in(layout.folder) == ""
    write_all_shards(made)
    described = layout.shards / "features.json"
    described.write_bytes(described.read_bytes() + b" ")
    assert "features.json: not what was written (it does not describe" in found_in(layout.folder)


def test_what_is_not_ours_is_named_and_stays(dataset: Dataset) -> None:
    path = dataset.layout.shards / "mine.tfrecord"
    path.write_bytes(b"")
    assert [str(path) in str(note) for note in audit_folders([dataset.layout.folder])[1]] == [True]
    run(dataset)
    assert path.exists() and found_in(dataset.layout.folder) == ""


def test_what_a_killed_process_left_is_named_and_removed(dataset: Dataset) -> None:
    folder = dataset.layout.shards
    for left in (
        folder / ".sample-train.tfrecord-00000-of-00009.abcd1234.tmp",
        folder / "index" / ".sample-train.tfrecord-00000-of-00009.idx.abcd1234.tmp",
    ):
        left.write_bytes(b"half")
        assert any(str(left) in str(note) for note in audit_folders([dataset.layout.folder])[1])
        run(dataset)
        assert not left.exists()


def test_splits_that_were_written_one_after_another_are_all_whole(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    for split in ("train", "test"):
        write(pa.table({"x": [1, 2, 3]}), folder, shards=2, split=split)
    assert audit_folder(folder).faults == ()
    path = folder / "data-test.tfrecord-00001-of-00002"
    for gone in (path, manifest_path(path), index_path(path)):
        gone.unlink()
    assert [Path(fault.path).name for fault in audit_folder(folder).faults] == [path.name]
