"""A shard is written once, whole, and again only when something that decides over its bytes has changed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tfr_assets.errors import SchemaError, SourceChanged, StaleError, WriteError
from tfr_assets.layout import feature_spec_path, index_path, manifest_path
from tfr_assets.records.frames.examine import examine
from tfr_assets.records.frames.index import read_index
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.records.schema.features import FeatureSpec
from tfr_assets.sources import Source
from tfr_assets.writing import shard as shard_module
from tfr_assets.writing.plan import plan_shards
from tfr_assets.writing.raw import materialize_raw
from tfr_assets.writing.shard import finish_shards, write_shard

from ..records.encoding import encode
from ..records.reference import frames, payloads_of
from .conftest import ROWS, MakeDataset, files, table, write_all_shards


def all_payloads() -> list[bytes]:
    return encode(*table().to_batches())


def test_shards_hold_all_rows_in_order(make: MakeDataset) -> None:
    plan, written = write_all_shards(make())
    assert [shard.path.name for shard in written] == [f"sample-train.tfrecord-0000{n}-of-00004" for n in range(4)]
    assert all(shard.written for shard in written)
    found = [payload for shard in written for payload in payloads_of(shard.path.read_bytes())]
    assert found == all_payloads()
    for shard, result in zip(plan.shards, written, strict=True):
        assert result.manifest == Manifest.load(result.path)
        assert result.manifest.records == shard.rows == len(read_index(index_path(result.path)))
        assert result.manifest.features == plan.features
        assert examine(result.path, result.manifest, plan.features).ok
        assert result.seconds > 0 and result.peak_memory_bytes > 0


def test_nothing_but_shards_matches_the_shards_pattern(make: MakeDataset) -> None:
    plan, written = write_all_shards(make())
    folder = plan.dataset.layout.shards
    assert sorted(folder.glob("sample-train.tfrecord-*")) == [shard.path for shard in written]
    names = {path.name for path in folder.iterdir()}
    described = {"feature_spec.json", "features.json", "dataset_info.json"}
    assert names == {*(shard.path.name for shard in written), "index", "manifest"} | described


def test_progress_adds_up_to_the_rows(make: MakeDataset) -> None:
    dataset = make(shards=1)
    materialize_raw(dataset)
    plan = plan_shards(dataset)
    steps: list[int] = []
    write_shard(plan, plan.shards[0], steps.append)
    assert sum(steps) == ROWS
    write_shard(plan, plan.shards[0], steps.append)
    assert sum(steps) == ROWS  # it was there already


def test_more_shards_than_rows_leave_some_empty(make: MakeDataset, raw: Path) -> None:
    pq.write_table(table(3), raw)
    for compression in ("none", "gzip"):
        _, written = write_all_shards(make(shards=5, compression=compression))
        assert sorted(shard.manifest.records for shard in written) == [0, 0, 1, 1, 1]
        assert all(examine(shard.path, shard.manifest).ok for shard in written)


def test_a_column_whose_name_holds_a_slash_is_read_as_itself(make: MakeDataset, raw: Path) -> None:
    struct = pa.array([{"d": 1}, None], pa.struct([("d", pa.int8())]))
    data = pa.table({"a/b": [1, 2], "a": [3, 4], "b/c": struct, "b": [5, 6]})
    pq.write_table(data, raw)
    plan, written = write_all_shards(make(shards=1))
    assert [feature.name for feature in plan.features.features] == ["a/b", "a", "b/c/d", "b"]
    assert payloads_of(written[0].path.read_bytes()) == encode(*data.to_batches())
    assert write_all_shards(make(shards=1, features=FeatureOptions(drop=("a", "a/b", "b"))))[1][0].manifest.records == 2


def test_a_shard_that_matches_is_not_written_again(make: MakeDataset) -> None:
    dataset = make()
    write_all_shards(dataset)
    before = {path: path.stat() for path in dataset.layout.shards.rglob("*") if path.is_file()}
    _, again = write_all_shards(make())
    assert not any(shard.written for shard in again)
    for path, stat in before.items():
        if path.name != "feature_spec.json":
            assert (path.stat().st_mtime_ns, path.stat().st_ino) == (stat.st_mtime_ns, stat.st_ino)


@pytest.mark.parametrize(
    "changes",
    [
        {"compression": "gzip"},
        {"features": FeatureOptions(drop=("t",))},
        {"features": FeatureOptions(cast={"n": "float32"})},
        {"features": FeatureOptions(fill={"t": "?"})},
    ],
    ids=lambda changes: next(iter(changes.values())).__repr__()[:60],
)
def test_changed_settings_write_every_shard_again(changes: dict[str, Any], make: MakeDataset) -> None:
    write_all_shards(make())
    plan, again = write_all_shards(make(**changes))
    assert all(shard.written for shard in again)
    assert all(examine(shard.path, shard.manifest, plan.features).ok for shard in again)
    assert not any(shard.written for shard in write_all_shards(make(**changes))[1])


def test_changed_rows_write_every_shard_again(make: MakeDataset, raw: Path) -> None:
    write_all_shards(make())
    changed = table().set_column(0, "n", pa.array([*range(ROWS - 1), 7], pa.int32()))
    pq.write_table(changed, raw, row_group_size=10)
    _, again = write_all_shards(make())
    assert all(shard.written for shard in again)
    assert [p for shard in again for p in payloads_of(shard.path.read_bytes())] == encode(*changed.to_batches())


def test_a_copy_of_the_same_rows_elsewhere_writes_nothing_again(make: MakeDataset, raw: Path, tmp_path: Path) -> None:
    write_all_shards(make())
    moved = raw.rename(tmp_path / "moved.parquet")
    _, again = write_all_shards(make(source=Source(path=str(moved))))
    assert not any(shard.written for shard in again)


Damage = Callable[[Path], object]
DAMAGES: dict[str, Damage] = {
    "a flipped bit": lambda path: path.write_bytes(path.read_bytes()[:-9] + b"\x00" + path.read_bytes()[-8:]),
    "a missing tail": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "a missing record": lambda path: path.write_bytes(frames(payloads_of(path.read_bytes())[:-1])),
    "other records": lambda path: path.write_bytes(frames(payloads_of(path.read_bytes())[::-1])),
    "something behind": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "no file": lambda path: path.unlink(),
    "an empty file": lambda path: path.write_bytes(b""),
    "no index": lambda path: index_path(path).unlink(),
    "a damaged index": lambda path: index_path(path).write_bytes(index_path(path).read_bytes()[:-1]),
    "no manifest": lambda path: manifest_path(path).unlink(),
    "a damaged manifest": lambda path: manifest_path(path).write_text("{"),
    "another manifest": lambda path: manifest_path(path).write_bytes(
        manifest_path(path.with_name("sample-train.tfrecord-00000-of-00004")).read_bytes()
    ),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_shard_is_written_again_and_the_others_are_not(damage: Damage, make: MakeDataset) -> None:
    dataset = make()
    _, written = write_all_shards(dataset)
    before = files(dataset.layout.shards)
    damage(written[2].path)
    assert files(dataset.layout.shards) != before
    _, again = write_all_shards(dataset)
    assert [shard.written for shard in again] == [False, False, True, False]
    assert files(dataset.layout.shards) == before


def test_a_plan_of_an_older_inventory_is_stale(make: MakeDataset, raw: Path) -> None:
    dataset = make()
    write_all_shards(dataset)
    old = plan_shards(dataset)
    pq.write_table(table(50), raw)
    materialize_raw(dataset)
    before = files(dataset.layout.shards)
    assert not write_shard(old, old.shards[0]).written  # what it asks for is still there
    written_at = old.dataset.layout.shard_path(old.shards[1])
    manifest_path(written_at).unlink()
    with pytest.raises(StaleError, match=r"'sample' was materialized again while shard train-00001-of-00004 waited"):
        write_shard(old, old.shards[1])
    assert written_at.read_bytes() == before[written_at.name]


def test_raw_data_that_changed_since_the_inventory_is_refused(make: MakeDataset, raw: Path) -> None:
    dataset = make()
    materialize_raw(dataset)
    plan = plan_shards(dataset)
    write_shard(plan, plan.shards[0])
    before = files(dataset.layout.shards)
    pq.write_table(table(first=1), raw, row_group_size=10)
    with pytest.raises(SourceChanged, match=r"raw\.parquet"):
        write_shard(plan, plan.shards[1])
    assert files(dataset.layout.shards) == before


def test_a_value_that_no_feature_can_hold_leaves_the_old_shard(make: MakeDataset, raw: Path) -> None:
    numbers = pa.array(range(ROWS), pa.uint64())
    pq.write_table(pa.table({"n": numbers}), raw)
    dataset = make()
    write_all_shards(dataset)
    before = files(dataset.layout.shards)
    pq.write_table(pa.table({"n": pa.concat_arrays([numbers[:60], pa.array([2**63], pa.uint64()), numbers[61:]])}), raw)
    materialize_raw(dataset)
    plan = plan_shards(dataset)
    with pytest.raises(SchemaError, match=r"column 'n' of type uint64 holds 9223372036854775808, at or after row 51"):
        write_shard(plan, plan.shards[2])
    assert files(dataset.layout.shards) == before


def test_a_folder_that_cannot_be_made_is_a_write_error(make: MakeDataset) -> None:
    dataset = make()
    materialize_raw(dataset)
    plan = plan_shards(dataset)
    dataset.layout.shards.write_text("in the way")
    with pytest.raises(WriteError, match="shards"):
        write_shard(plan, plan.shards[0])


def test_the_feature_spec_lies_beside_the_shards(make: MakeDataset) -> None:
    plan, _ = write_all_shards(make())
    saved = json.loads(feature_spec_path(plan.dataset.layout.shards).read_text())
    assert FeatureSpec.from_json(saved["features"]) == plan.features
    assert saved["files"] == [f"sample-train.tfrecord-{n:05d}-of-00004" for n in range(4)]


def test_shards_of_another_number_are_removed_once_all_new_ones_are_there(make: MakeDataset) -> None:
    write_all_shards(make(shards=4))
    dataset = make(shards=2)
    plan = plan_shards(dataset)
    folder = dataset.layout.shards
    write_shard(plan, plan.shards[0])
    finish_shards(plan)
    assert len(list(folder.glob("*-of-00004"))) == 4  # the new ones are not complete
    write_shard(plan, plan.shards[1])
    finish_shards(plan)
    two = {f"sample-train.tfrecord-{n:05d}-of-00002" for n in range(2)}
    assert {path.name for path in folder.glob("sample-*")} == two
    assert {path.name for path in (folder / "index").iterdir()} == {f"{name}.idx" for name in two}
    assert {path.name for path in (folder / "manifest").iterdir()} == {f"{name}.json" for name in two}


def test_what_an_earlier_run_left_goes_and_files_of_others_stay(make: MakeDataset) -> None:
    write_all_shards(make(shards=4))
    folder = make().layout.shards
    left = {
        "sample-train.tfrecord-00002-of-00009": b"renamed when the process was killed, before its manifest was written",
        "sample-test.tfrecord-00000-of-00004": b"another split",
    }
    foreign = {
        "sample-train.tfrecord-notes.txt": b"notes",
        "other-train.tfrecord-00000-of-00004": b"another dataset",
        "sample2-train.tfrecord-00000-of-00004": b"another dataset",
        "sample-train.tfrecord-00000-of-00004.bak": b"a copy",
    }
    for name, content in (left | foreign).items():
        (folder / name).write_bytes(content)
    manifest_path(folder / "sample-test.tfrecord-00000-of-00004").write_text("{}")
    manifest_path(folder / "other-train.tfrecord-00000-of-00004").write_text("{}")
    index_path(folder / "sample-train.tfrecord-00001-of-00007").write_text("0 20\n")
    (folder / ".sample-train.tfrecord-00000-of-00009.abcd1234.tmp").write_text("of a killed process")
    (folder / "manifest" / ".sample-train.tfrecord-00000-of-00009.json.abcd1234.tmp").write_text("{")
    write_all_shards(make(shards=2))
    for name, content in foreign.items():
        assert (folder / name).read_bytes() == content
    assert manifest_path(folder / "other-train.tfrecord-00000-of-00004").exists()
    two = {f"sample-train.tfrecord-0000{n}-of-00002" for n in range(2)}
    assert {path.name for path in folder.glob("*sample-*")} == two | {
        name for name in foreign if name.startswith("sample-")
    }
    assert {path.name for path in (folder / "index").iterdir()} == {f"{name}.idx" for name in two}
    assert {path.name for path in (folder / "manifest").glob("[.s]*")} == {f"{name}.json" for name in two}


def test_the_loser_of_two_plans_at_once_says_so(make: MakeDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes refresh a dataset with different numbers of shards, and both come to their end at once."""
    write_all_shards(make(shards=2))
    four = make(shards=4)
    plan = plan_shards(four)
    for shard in plan.shards:
        write_shard(plan, shard)
    two = plan_shards(make(shards=2))
    save = shard_module.save_feature_spec

    def meanwhile(*arguments: Any) -> None:
        monkeypatch.setattr(shard_module, "save_feature_spec", save)
        finish_shards(two)
        save(*arguments)

    monkeypatch.setattr(shard_module, "save_feature_spec", meanwhile)
    with pytest.raises(StaleError, match=r"another run of dataset 'sample', which plans another number of shards"):
        finish_shards(plan)


def test_shards_are_finished_when_the_last_missing_file_is_there(make: MakeDataset) -> None:
    dataset = make(shards=3)
    write_all_shards(dataset)
    plan = plan_shards(dataset)
    first, _, last = plan.shards
    for shard in (first, last):  # their manifests stay
        dataset.layout.shard_path(shard).unlink()
    assert write_shard(plan, first).written and finish_shards(plan) is None
    assert not (dataset.layout.shards / "dataset_info.json").exists()
    assert write_shard(plan, last).written and finish_shards(plan) is None
    assert (dataset.layout.shards / "dataset_info.json").exists()
