"""Records of an object store come by number: those of the local files, and of one version, by few requests."""

import os
import pickle
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfr_assets
from tests.storage.servers import Between
from tfr_assets.errors import ConfigError, DamagedFile, OutOfRange, SourceError, StaleError
from tfr_assets.reading.access.dataset import Dataset
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.storage.objects.folder import ObjectFolder

ROWS = 3000
TABLE = pa.table({"id": pa.array(range(ROWS), pa.int64()), "text": [f"text {i} " * 50 for i in range(ROWS)]})
NAMES = [f"rows-train.tfrecord-{number:05d}-of-00003" for number in range(3)]


@pytest.fixture
def url(bucket: str) -> str:
    tfr_assets.write(TABLE, f"{bucket}/rows", shards=3)
    return f"{bucket}/rows"


def ids(batches: Any) -> list[int]:
    return [int(i) for batch in batches for i in batch["id"]]


def test_any_record_comes_by_number(url: str, tmp_path: Path) -> None:
    tfr_assets.write(TABLE, tmp_path / "rows", shards=3)
    here, there = tfr_assets.open(tmp_path / "rows"), tfr_assets.open(url)
    assert (len(there), there.schema, there.splits, there.fingerprint) == (
        ROWS, here.schema, ["train"], here.fingerprint,
    )  # fmt: skip
    asked = [2999, 5, 5, 1000, 999, -1, 0]
    assert there.take(asked, into="arrow") == here.take(asked, into="arrow")
    assert there[1234] == here[1234] and there[-3:] == here[-3:]
    assert [each["id"] for each in there] == list(range(ROWS))
    with pytest.raises(OutOfRange):
        there[ROWS]
    assert [report.ok for report in there.verify()] == [True] * 3
    assert [report.path for report in there.verify()] == [f"{url}/{name}" for name in NAMES]


def test_a_file_that_cannot_be_read_is_a_fault_of_its_own(
    between: Between, one_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfr_assets.storage.objects.store._RETRIES", 0)
    url = f"{one_bucket}/rows"
    tfr_assets.write(TABLE, url, shards=3)
    opened = tfr_assets.open(url)
    ObjectFolder(url).delete([NAMES[0]])
    between.answer = lambda method, path, _: (403, "AccessDenied") if path.endswith(NAMES[2]) else None
    missing, whole, forbidden = opened.verify()
    assert str(missing.faults[0]) == f"{url}/{NAMES[0]}: file is missing" and whole.ok
    assert str(forbidden.faults[0]).startswith(f"{url}/{NAMES[2]}: file cannot be read (no permission (403")


@pytest.mark.parametrize("shuffle", [False, 100, "blocks", "global"])
def test_batches_are_those_of_the_local_files(url: str, tmp_path: Path, shuffle: Any) -> None:
    tfr_assets.write(TABLE, tmp_path / "rows", shards=3)
    here, there = (tfr_assets.open(at).batches(190, shuffle=shuffle, seed=3) for at in (tmp_path / "rows", url))
    first = ids([next(there) for _ in range(4)])
    state = there.state()
    assert first == ids([next(here) for _ in range(4)])
    again = tfr_assets.open(url).batches(190, shuffle=shuffle, seed=3)
    again.restore(state)
    assert ids(again) == ids(here) == ids(there)
    assert ids(tfr_assets.batches(url, 190, shuffle="global")) == ids(
        tfr_assets.open(url).batches(190, shuffle="global")
    )


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_compressed_files(bucket: str, compression: str) -> None:
    tfr_assets.write(TABLE, f"{bucket}/rows", shards=2, compression=compression)
    opened = tfr_assets.open(f"{bucket}/rows")
    assert opened.take([2999, 7, 1500])["id"].tolist() == [2999, 7, 1500]


def test_what_is_fetched_is_about_what_is_asked_for(between: Between, one_bucket: str) -> None:
    many = pa.table({"id": range(40_000), "text": ["x" * 800] * 40_000})
    tfr_assets.write(many, f"{one_bucket}/one.tfrecord")
    opened = tfr_assets.open(f"{one_bucket}/one.tfrecord")
    opened[0]
    between.requests.clear()
    assert opened.take([39_999, 3, 20_000, 20_400])["id"].tolist() == [39_999, 3, 20_000, 20_400]
    assert len(between.requests) == 3
    between.requests.clear()
    assert opened.take(np.arange(40_000), columns=["id"])["id"].tolist() == list(range(40_000))
    assert len(between.requests) < 15  # of 4 MB


def test_pickled_it_is_opened_again(url: str) -> None:
    opened = tfr_assets.open(url, columns=["id"])
    assert opened[17] == {"id": 17}
    assert pickle.loads(pickle.dumps(opened))[18] == {"id": 18}
    mixture = tfr_assets.mix({url: 1.0}, seed=1)
    assert ids(pickle.loads(pickle.dumps(mixture)).batches(100)) == ids(mixture.batches(100))
    with get_context("spawn").Pool(2) as pool:
        assert pool.map(opened.__getitem__, range(5)) == [{"id": i} for i in range(5)]
    tfr_assets.write(TABLE.slice(0, 2000), url, shards=3)
    with pytest.raises(StaleError, match="are not the files of the pickled dataset"):
        pickle.loads(pickle.dumps(opened))


_inherited: list[Dataset] = []  # by processes that are forked


def _record(number: int) -> object:
    return _inherited[0][number]


def test_a_forked_process_says_that_it_cannot(url: str) -> None:
    _inherited[:] = [tfr_assets.open(url, columns=["id"])]
    assert _record(17) == {"id": 17}
    with get_context("fork").Pool(1) as pool, pytest.raises(ConfigError, match="start processes by 'spawn'"):
        pool.apply_async(_record, [5]).get(60)


@pytest.mark.parametrize("touched", [False, True])
def test_another_version_is_noticed(url: str, touched: bool) -> None:
    opened = tfr_assets.open(url)
    if touched:
        assert opened[5]["id"] == 5
    tfr_assets.write(TABLE.slice(1), url, shards=3)
    with pytest.raises(SourceError if touched else StaleError, match=r"was replaced"):
        opened[5]
    assert tfr_assets.open(url)[5]["id"] == 6


def test_damage_is_named_or_left_out(url: str) -> None:
    folder = ObjectFolder(url)
    manifest = Manifest.from_json(folder.get(f"manifest/{NAMES[1]}.json") or b"", NAMES[1])
    assert manifest
    content = bytearray(folder.get(NAMES[1]) or b"")
    content[len(content) // 2] ^= 1
    folder.put(NAMES[1], bytes(content))
    opened = tfr_assets.open(url)
    with pytest.raises(DamagedFile, match=rf"{url}/{NAMES[1]}: record \d+ at byte \d+: .* CRC is wrong"):
        list(opened.batches(500))
    found, missing = opened.take(range(ROWS), on_error="skip")
    assert len(missing) == 1 and sorted([*found["id"].tolist(), *missing.tolist()]) == list(range(ROWS))
    folder.put(NAMES[1], bytes(content[:-1]))
    with pytest.raises(DamagedFile, match=rf"{NAMES[1]}: {len(content) - 1} bytes, its manifest says {len(content)}"):
        tfr_assets.open(url)[1500]


def test_without_an_index_the_file_is_looked_through(url: str) -> None:
    folder = ObjectFolder(url)
    folder.delete([f"index/{NAMES[1]}.idx"])
    assert tfr_assets.open(url).take([1500, 2])["id"].tolist() == [1500, 2]


def test_nothing_is_there(bucket: str) -> None:
    with pytest.raises(ConfigError, match="no manifest was found there"):
        tfr_assets.open(f"{bucket}/nothing")
    assert os.environ["AWS_REGION"]
