"""Damage in mid-epoch: named with file, record and byte, or skipped and reported."""

import re
import warnings
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
import tensorflow as tf

import tfr_assets
from tfr_assets.errors import DamagedFile
from tfr_assets.layout import Layout, index_path
from tfr_assets.reading.locate.files import locate
from tfr_assets.reading.readers.options import ReadOptions
from tfr_assets.reading.registry import READERS
from tfr_assets.records.frames.index import read_index

Written = Callable[..., Layout]
TABLE = pa.table({"id": pa.array(range(30), pa.int64()), "text": [f"text {i}" for i in range(30)]})
READER_NAMES = [name for name in READERS if name not in ("merged", "data_service")]


def shard(layout: Layout, index: int) -> Path:
    return layout.shard_path(f"train-{index:05d}-of-00003")


def flip(path: Path, record: int, at: int) -> int:
    """Flips a bit of a record's frame and returns where the frame's part with the fault begins."""
    offset = int(read_index(index_path(path))[record, 0])
    content = bytearray(path.read_bytes())
    content[offset + at] ^= 4
    path.write_bytes(content)
    return offset if at < 12 else offset + 12


def ids(dataset: tf.data.Dataset) -> list[int]:
    return [int(i) for batch in dataset for i in batch["id"]]


@pytest.mark.parametrize("reader", READER_NAMES)
def test_training_code_sees_file_record_and_byte(written: Written, reader: str) -> None:
    layout = written(TABLE)
    dataset = tfr_assets.read(layout.folder, 4, reader=reader)
    at = flip(shard(layout, 1), 3, 20)
    message = rf"-00001-of-00003: record 3 at byte {at}: data CRC is wrong"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message) as caught:
        ids(dataset)
    assert "Traceback" not in str(caught.value)
    assert f"`tfr verify {layout.shards}` lists all damage, and on_error=" in str(caught.value)


def test_a_length_that_would_crash_tensorflow_is_an_error(written: Written) -> None:
    from tfr_assets.records.kernels.crc32c import masked_crc32c

    layout = written(TABLE)
    header = (1 << 40).to_bytes(8, "little")
    content = bytearray(shard(layout, 0).read_bytes())
    content[:12] = header + masked_crc32c(header).to_bytes(4, "little")
    shard(layout, 0).write_bytes(content)
    with pytest.raises(tf.errors.InvalidArgumentError, match="record 0 at byte 0: truncated record"):
        ids(tfr_assets.read(layout.folder))


def test_a_file_cut_or_removed_after_opening_is_named(written: Written) -> None:
    layout = written(TABLE)
    dataset = tfr_assets.read(layout.folder, 4)
    offset, _ = read_index(index_path(shard(layout, 2)))[-1]
    with shard(layout, 2).open("r+b") as file:
        file.truncate(offset)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"-00002-of-00003: .* wrong number of records"):
        ids(dataset)
    shard(layout, 2).unlink()
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"-00002-of-00003: .* No such file"):
        ids(dataset)


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_damage_in_a_share_is_named_as_that_of_its_file(written: Written, compression: str) -> None:
    layout = written(TABLE, compression=compression)
    if compression == "none":
        flip(shard(layout, 1), 7, 20)
    else:
        content = bytearray(shard(layout, 1).read_bytes())
        content[-20] ^= 1
        shard(layout, 1).write_bytes(content)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"-00001-of-00003: record \d+ at byte \d+"):
        ids(tfr_assets.read(layout.folder, shard=(1, 2)))
    if compression == "none":
        assert ids(tfr_assets.read(layout.folder, shard=(0, 2))) == list(range(15))


@pytest.mark.parametrize("reader", [name for name in READER_NAMES if READERS[name].skips_damage])
def test_skipping_leaves_out_just_the_damaged_records_and_tells(written: Written, reader: str) -> None:
    layout = written(TABLE)
    places = [flip(shard(layout, 0), 2, 15), flip(shard(layout, 1), 5, 3)]
    dataset = tfr_assets.read(layout.folder, 4, reader=reader, on_error="skip")
    message = rf"(?s)left out 2 of 30 records.*:.*-0000[01]-of-00003: record . at byte ({places[0]}|{places[1]})"
    with pytest.warns(UserWarning, match=message):
        found = ids(dataset)
    assert sorted(found) == [i for i in range(30) if i not in (2, 15)]


def test_skipping_reads_what_is_left_of_a_cut_file(written: Written) -> None:
    layout = written(TABLE)
    with shard(layout, 1).open("r+b") as file:
        file.truncate(shard(layout, 1).stat().st_size - 3)
    with pytest.raises(DamagedFile):
        tfr_assets.read(layout.folder, files="shards")
    with pytest.warns(UserWarning, match="-00001-of-00003: record 9 .*truncated record"):
        assert ids(tfr_assets.read(layout.folder, files="shards", on_error="skip")) == [i for i in range(30) if i != 19]


def test_each_epoch_tells_of_its_own_damage_once(written: Written, recwarn: pytest.WarningsRecorder) -> None:
    layout = written(TABLE)
    flip(shard(layout, 0), 2, 15)
    dataset = tfr_assets.read(layout.folder, 4, on_error="skip")
    for _ in range(2):
        recwarn.clear()
        warnings.simplefilter("always")
        assert len(ids(dataset)) == 29
        told = [str(w.message) for w in recwarn if "damage" in str(w.message)]
        assert len(told) == 1
        assert re.search("left out 1 of 30", told[0])


def test_unchecked_leaves_it_to_tensorflow(written: Written) -> None:
    layout = written(TABLE)
    flip(shard(layout, 1), 3, 20)
    with pytest.raises(tf.errors.DataLossError):
        ids(READERS["vectorized"](locate(layout.folder), ReadOptions(4)))
