"""The merged file: what all shards hold, made only of shards that are what they must be."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tfr_assets.errors import DamagedFile, StaleError
from tfr_assets.layout import index_path, manifest_path
from tfr_assets.records.frames.examine import examine, is_intact
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.writing.dataset import Dataset
from tfr_assets.writing.merged import Merged, merge_shards
from tfr_assets.writing.raw import materialize_raw

from ..records.encoding import encode
from ..records.reference import payloads_of
from .conftest import ROWS, MakeDataset, files, table, write_all_shards


def merge(dataset: Dataset, progress: Callable[[int], None] | None = None) -> Merged:
    (merged,) = merge_shards(dataset, progress).values()
    return merged


def test_any_number_of_shards_merges_to_the_same_bytes(make: MakeDataset) -> None:
    found = []
    for shards in (1, 4, 16, 200):
        dataset = make(shards=shards, name=f"of_{shards}")
        write_all_shards(dataset)
        merged = merge(dataset)
        assert merged.written and merged.path.name == f"of_{shards}-train.tfrecord"
        assert merged.copied_bytes == merged.path.stat().st_size == merged.manifest.bytes
        found.append((merged.path.read_bytes(), index_path(merged.path).read_bytes(), merged.manifest.digest))
    assert found[1:] == found[:-1]
    assert payloads_of(found[0][0]) == encode(*table().to_batches())


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_a_merged_file_is_verified_and_described(compression: str, make: MakeDataset) -> None:
    dataset = make(compression=compression)
    plan, _ = write_all_shards(dataset)
    steps: list[int] = []
    merged = merge(dataset, steps.append)
    assert Manifest.load(merged.path) == merged.manifest
    assert (merged.manifest.records, merged.manifest.compression, merged.manifest.features) == (
        ROWS,
        compression,
        plan.features,
    )
    assert examine(merged.path, merged.manifest, plan.features).ok
    assert sum(steps) == sum(dataset.layout.shard_path(shard).stat().st_size for shard in plan.shards)
    assert set(merged.manifest.made_from["shards"]) == {dataset.layout.shard_path(shard).name for shard in plan.shards}


def test_merging_again_copies_nothing(make: MakeDataset) -> None:
    write_all_shards(make())
    first = merge(make())
    stat = first.path.stat()
    again = merge(make())
    assert (again.written, again.copied_bytes, again.manifest) == (False, 0, first.manifest)
    assert (first.path.stat().st_ino, first.path.stat().st_mtime_ns) == (stat.st_ino, stat.st_mtime_ns)


@pytest.mark.parametrize(
    "changes",
    [{"compression": "zlib"}, {"features": FeatureOptions(drop=("t",))}, {"shards": 3}],
    ids=lambda c: next(iter(c)),
)
def test_other_shards_are_merged_anew(changes: dict[str, Any], make: MakeDataset) -> None:
    write_all_shards(make())
    merge(make())
    write_all_shards(make(**changes))
    merged = merge(make(**changes))
    assert merged.written and is_intact(merged.path, merged.manifest)
    assert not merge(make(**changes)).written


@pytest.mark.parametrize("part", ["file", "index", "manifest"])
def test_a_damaged_merged_file_is_written_again(part: str, make: MakeDataset) -> None:
    write_all_shards(make())
    path = merge(make()).path
    before = files(path.parent)
    damaged = {"file": path, "index": index_path(path), "manifest": manifest_path(path)}[part]
    damaged.write_bytes(damaged.read_bytes()[:-2])
    assert merge(make()).written
    assert files(path.parent) == before


def refusal(make: MakeDataset, error: type[Exception], **changes: Any) -> str:
    """What merging says; and that it left the merged file alone."""
    folder = make().layout.merged
    before = files(folder)
    with pytest.raises(error) as caught:
        merge(make(**changes))
    assert files(folder) == before
    return str(caught.value)


def test_missing_shards_are_named(make: MakeDataset) -> None:
    plan, written = write_all_shards(make())
    assert merge(make()).written
    written[1].path.unlink()
    manifest_path(written[3].path).unlink()
    message = refusal(make, StaleError)
    assert "'sample'" in message and "materialize these shards again" in message
    assert "train-00001-of-00004: missing" in message and "train-00003-of-00004: missing" in message
    assert plan.shards[0].key not in message and plan.shards[2].key not in message


def test_a_merge_before_any_shard_is_refused(make: MakeDataset) -> None:
    assert "Materialize raw" in refusal(make, StaleError)
    materialize_raw(make())
    assert refusal(make, StaleError).count("missing") == 4
    assert "… and 10 more" in refusal(make, StaleError, shards=30)


def test_shards_of_other_settings_are_named_with_what_differs(make: MakeDataset, raw: Path) -> None:
    write_all_shards(make())
    merge(make())
    message = refusal(make, StaleError, compression="gzip")
    assert message.count("made from another compression") == 4
    assert "another features and cast" in refusal(make, StaleError, features=FeatureOptions(cast={"n": "float32"}))
    assert "another features" in refusal(make, StaleError, features=FeatureOptions(drop=("n",)))
    assert refusal(make, StaleError, shards=3).count("missing") == 3
    pq.write_table(table(first=5), raw)
    materialize_raw(make())
    assert "another inventory" in refusal(make, StaleError)


def test_damaged_shards_are_named_with_record_and_offset(make: MakeDataset) -> None:
    _, written = write_all_shards(make())
    merge(make())
    path = written[2].path
    content = bytearray(path.read_bytes())
    content[12] ^= 1
    path.write_bytes(content)
    message = refusal(make, DamagedFile)
    assert "train-00002-of-00004" in message and "record 0 at byte 12: data CRC is wrong" in message
    write_all_shards(make())
    assert not merge(make()).written  # the merged file was sound all the time


def test_a_shard_without_its_index_is_named_and_can_be_mended(make: MakeDataset) -> None:
    _, written = write_all_shards(make())
    for damage in (b"", b"0 20\n", None):
        if damage is None:
            index_path(written[1].path).unlink()
        else:
            index_path(written[1].path).write_bytes(damage)
        assert "index" in refusal(make, DamagedFile)
        write_all_shards(make())
    assert merge(make()).written


def test_fewer_rows_than_shards_merge_to_all_rows(make: MakeDataset, raw: Path) -> None:
    pq.write_table(table(3), raw)
    for compression in ("none", "gzip", "zlib"):
        dataset = make(shards=7, compression=compression)
        write_all_shards(dataset)
        merged = merge(dataset)
        assert merged.manifest.records == 3 and is_intact(merged.path, merged.manifest)


def test_no_rows_at_all_merge_to_none(make: MakeDataset, raw: Path) -> None:
    pq.write_table(table(0), raw)
    dataset = make()
    write_all_shards(dataset)
    merged = merge(dataset)
    assert (merged.manifest.records, merged.manifest.bytes) == (0, 0)
    assert merge(dataset).written is False
