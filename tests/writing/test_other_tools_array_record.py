"""ArrayRecord files hold the shards' records, or do not come to be."""

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tfr_assets.errors import ConfigError, DamagedFile, WriteError
from tfr_assets.layout import manifest_path
from tfr_assets.writing.export.array_record import export_array_record
from tfr_assets.writing.shard import ShardWritten

from ..records.reference import frames, payloads_of
from .conftest import ROWS, MakeDataset, write_all_shards

pytest.importorskip("array_record", reason="the package `array_record` is not installed")


def read(path: Path) -> list[bytes]:
    """All records, as ArrayRecord's own reader gives them."""
    from array_record.python.array_record_module import ArrayRecordReader

    reader = ArrayRecordReader(str(path))
    return list(reader.read(0, reader.num_records())) if reader.num_records() else []


@pytest.fixture
def shards(make: MakeDataset) -> list[ShardWritten]:
    return write_all_shards(make())[1]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "exported" / "sample-train.array_record"


def payloads(shards: list[ShardWritten]) -> list[bytes]:
    return [payload for shard in shards for payload in payloads_of(shard.path.read_bytes())]


def test_all_records_in_order(shards: list[ShardWritten], target: Path) -> None:
    steps: list[int] = []
    assert export_array_record([shard.path for shard in shards], target, steps.append) == ROWS
    assert read(target) == payloads(shards)
    assert sum(steps) == ROWS
    assert [path.name for path in target.parent.iterdir()] == [target.name]


def test_grain_takes_them_by_number(shards: list[ShardWritten], target: Path) -> None:
    grain = pytest.importorskip("grain", reason="the package `grain` is not installed")
    export_array_record([shard.path for shard in shards], target)
    source: Any = grain.sources.ArrayRecordDataSource([str(target)])
    expected = payloads(shards)
    assert len(source) == ROWS
    assert [source[number] for number in (ROWS - 1, 0, 50)] == [expected[number] for number in (ROWS - 1, 0, 50)]
    shuffled = grain.MapDataset.source(source).shuffle(seed=1)
    assert sorted(shuffled[number] for number in range(len(shuffled))) == sorted(expected)


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_compressed_shards(make: MakeDataset, target: Path, compression: str) -> None:
    plain = payloads(write_all_shards(make(name="plain"))[1])
    written = write_all_shards(make(compression=compression))[1]
    export_array_record([shard.path for shard in written], target)
    assert read(target) == plain


@pytest.mark.parametrize("records", [[], [b""], [b"", b"x" * 3_000_000, b"y"]])
def test_files_of_any_origin(tmp_path: Path, target: Path, records: list[bytes]) -> None:
    (tmp_path / "any").write_bytes(frames(records))
    assert export_array_record([tmp_path / "any"], target) == len(records)
    assert read(target) == records


def test_nothing_is_written_of_damaged_shards(shards: list[ShardWritten], target: Path) -> None:
    paths = [shard.path for shard in shards]
    export_array_record(paths[:1], target)
    before = target.read_bytes()
    data = bytearray(paths[1].read_bytes())
    data[len(data) // 2] ^= 1
    paths[1].write_bytes(data)
    with pytest.raises(DamagedFile, match=r"sample-train.tfrecord-00001-of-00004: record \d+ at byte \d+: "):
        export_array_record(paths, target)
    cut = frames(payloads_of(paths[2].read_bytes())[:-1])
    paths[2].write_bytes(cut)
    with pytest.raises(DamagedFile, match=f"{shards[2].manifest.records - 1} records, its manifest says"):
        export_array_record(paths[2:], target)
    manifest_path(paths[2]).unlink()
    assert export_array_record(paths[2:3], target.with_name("other")) == shards[2].manifest.records - 1
    paths[3].unlink()
    with pytest.raises(DamagedFile, match="No such file"):
        export_array_record(paths[3:], target)
    assert target.read_bytes() == before
    assert {path.name for path in target.parent.iterdir()} == {target.name, "other"}


def _export_into_little_room(path: str, target: str) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    try:
        export_array_record([Path(path)], Path(target))
    except WriteError as error:
        print(error)


def test_a_full_disk_is_told_of_and_leaves_nothing(tmp_path: Path, target: Path) -> None:
    (tmp_path / "big").write_bytes(frames([os.urandom(1 << 20) for _ in range(3)]))
    code = "import sys; from tests.writing.test_other_tools_array_record import _export_into_little_room as export"
    command = [sys.executable, "-c", f"{code}; export(*sys.argv[1:])", str(tmp_path / "big"), str(target)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.stdout.startswith(f"cannot write {target}: ") and "File too large" in done.stdout
    assert list(target.parent.iterdir()) == []


def test_without_the_package(shards: list[ShardWritten], target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "array_record.python.array_record_module", None)
    with pytest.raises(ConfigError, match="pip install array-record"):
        export_array_record([shards[0].path], target)
    assert not target.parent.exists()


def test_a_file_whose_manifest_vouches_for_nothing_is_refused(shards: list[ShardWritten], target: Path) -> None:
    path = shards[1].path
    content = manifest_path(path).read_bytes()
    for wrong in (content[:-2], content.replace(b'"records"', b'"recordz"'), b""):
        manifest_path(path).write_bytes(wrong)
        with pytest.raises(DamagedFile, match=f"cannot export {path}: its manifest is invalid: it is damaged"):
            export_array_record([shard.path for shard in shards], target)
    assert not target.exists()
    manifest_path(path).unlink()  # a file may be anyone's
    assert export_array_record([path], target) == shards[1].manifest.records
