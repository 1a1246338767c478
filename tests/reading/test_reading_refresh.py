"""Readers beside a process that refreshes the dataset again and again: all of one version, or an error; never a mix."""

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

import tfr_assets
from tests.waiting import wait_for
from tfr_assets.errors import TfrError
from tfr_assets.layout import Layout, index_path
from tfr_assets.reading.locate.files import locate
from tfr_assets.reading.readers.options import ReadOptions
from tfr_assets.reading.registry import READERS
from tfr_assets.records.frames.index import read_index

from .test_reading_queue import children
from .versions import FIRST, SHARDS, shards_of, version_of, write_version

ROWS = 2000
SECONDS = 2.5  # of reading, a reader
_REFRESH = """
import sys, time
from pathlib import Path
from tests.reading.versions import write_version
version = 1
while True:
    write_version(Path(sys.argv[1]), version % 9, 2000, 300)
    version += 1
    time.sleep(0.15)
"""


def ids(batches: Any) -> list[int]:
    return [int(i) for batch in batches for i in batch["id"]]


@pytest.fixture(scope="module")
def refreshed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Layout]:
    """A dataset that another process refreshes, about as often as it can be read."""
    root = tmp_path_factory.mktemp("refreshed")
    layout = write_version(root, 0, ROWS, 300)
    folder = Path(tfr_assets.__file__).parent.parent
    with subprocess.Popen([sys.executable, "-c", _REFRESH, str(root)], cwd=folder) as process:
        try:
            opened = ids(tfr_assets.batches(layout.merged))[0]
            wait_for(lambda: _first_id(layout) != opened)
            yield layout
        finally:
            process.kill()


def _first_id(layout: Layout) -> int | None:
    try:
        return ids(tfr_assets.batches(layout.merged))[0]
    except TfrError:
        return None


@pytest.mark.parametrize("reader", ["batches", "skipping", "naive", "vectorized", "columnar", "file_queue"])
def test_every_read_is_of_one_version_or_an_error(refreshed: Layout, reader: str) -> None:
    draw = random.Random(reader)
    outcomes: Counter[str] = Counter()
    until = time.monotonic() + SECONDS
    while time.monotonic() < until or not outcomes:
        time.sleep(draw.uniform(0, 0.1))
        try:
            if reader in ("batches", "skipping"):
                on_error = "skip" if reader == "skipping" else "raise"
                found = ids(tfr_assets.batches(refreshed.folder, 100, files="shards", on_error=on_error))  # type: ignore[arg-type]
            else:
                found = ids(tfr_assets.read(refreshed.folder, 100, files="shards", reader=reader))
        except (TfrError, tf.errors.InvalidArgumentError):
            outcomes["error"] += 1
        else:
            outcomes[f"version {version_of(found, ROWS)}"] += 1


@pytest.mark.parametrize("when", ["before", "amid"])
@pytest.mark.parametrize("change", ["replaced", "deleted", "damaged"])
def test_file_queue_never_mixes_when_a_file_changes(tmp_path: Path, change: str, when: str) -> None:
    rows = 20_000
    layout = write_version(tmp_path, 0, rows, 100)
    dataset = tfr_assets.read(layout.folder, 64, reader="file_queue")
    last, found = shards_of(layout)[-1], []
    if when == "before":
        _change(last, change)
    iterator = iter(dataset)
    try:
        found = ids([next(iterator)])
        if when == "amid":
            _change(last, change)
        for batch in iterator:
            found += ids([batch])
    except tf.errors.InvalidArgumentError as error:
        assert f"-0000{SHARDS - 1}-of-0000{SHARDS}" in str(error)
        assert all(FIRST <= i < 2 * FIRST for i in found)
        assert len(set(found)) == len(found)
    else:
        assert when == "amid"
        assert version_of(found, rows) == 0  # it was open, or read, already


def _change(path: Path, change: str) -> None:
    if change == "replaced":
        other = path.with_name(path.name.replace("00003-of", "00002-of"))
        path.unlink()
        path.hardlink_to(other)
    elif change == "deleted":
        path.unlink()
    else:
        content = bytearray(path.read_bytes())
        content[int(read_index(index_path(path))[5, 0]) + 20] ^= 1
        path.write_bytes(content)


@pytest.mark.parametrize("change", ["replaced", "deleted", "damaged"])
def test_data_service_gives_nothing_more_once_a_file_has_changed(tmp_path: Path, change: str) -> None:
    layout = write_version(tmp_path, 0, 20_000, 1000)
    iterator = iter(READERS["data_service"](locate(layout.folder), ReadOptions(50, on_error="raise")))
    found = ids([next(iterator)])
    _change(shards_of(layout)[-1], change)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"-00003-of-00004 is not the file .* it was replaced"):
        for batch in iterator:
            found += ids([batch])
    assert all(FIRST <= i < 2 * FIRST for i in found) and len(set(found)) == len(found)


def test_data_service_gives_no_batch_of_another_version(tmp_path: Path) -> None:
    rows = 20_000
    layout = write_version(tmp_path, 0, rows, 1000)
    before = children()
    served = READERS["data_service"](locate(layout.folder), ReadOptions(50, on_error="raise"))
    iterator = iter(served)
    found = ids([next(iterator)])
    write_version(tmp_path, 1, rows, 1000)
    with pytest.raises(tf.errors.InvalidArgumentError, match="it was replaced, for example by a refresh"):
        for batch in iterator:
            found += ids([batch])
    assert all(FIRST <= i < 2 * FIRST for i in found)
    del iterator
    with pytest.raises(tf.errors.InvalidArgumentError, match="it was replaced, for example by a refresh"):
        ids(served)
    del served
    wait_for(lambda: children() <= before)
