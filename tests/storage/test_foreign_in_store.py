"""TFRecord files of other origin in an object store are read as they are, once, and noticed when they change."""

import pickle
from pathlib import Path
from typing import Any

import pytest

import tfr_assets
from tests.reading.test_foreign import OTHERS, RECORDS, given_values, values, write_foreign
from tests.storage.servers import Between
from tfr_assets.errors import ConfigError, DamagedFile, SourceError, StaleError
from tfr_assets.storage.objects.folder import ObjectFolder

pytestmark = pytest.mark.usefixtures("cache")
NAMES = [f"part-{part}.tfrecord" for part in range(4)]


def put(url: str, tmp_path: Path, records: list[Any], compression: str = "") -> None:
    folder, _, name = url.rpartition("/")
    ObjectFolder(folder).put(name, write_foreign(tmp_path / "x", records, compression).read_bytes())


@pytest.fixture
def url(bucket: str, tmp_path: Path) -> str:
    for part, name in enumerate(NAMES):
        put(f"{bucket}/foreign/{name}", tmp_path, RECORDS[part * 25 : part * 25 + 25])
    return f"{bucket}/foreign"


def ids(batches: Any) -> list[int]:
    return [int(i) for batch in batches for i in batch["id"]]


def test_a_folder_is_read_as_it_is(url: str, tmp_path: Path) -> None:
    there = tfr_assets.open(url)
    assert [values(record) for record in there] == [given_values(record) for record in RECORDS]
    assert sorted(ObjectFolder(url).walk()) == NAMES
    assert ids(tfr_assets.batches(url, 9)) == list(range(100))
    for reader in (None, "columnar", "vectorized", "resumable", "file_queue"):
        assert sorted(ids(tfr_assets.read(url, 8, reader=reader))) == list(range(100))
    shares = [ids(tfr_assets.batches(url, 8, shard=(n, 3))) for n in range(3)]
    assert [i for share in shares for i in share] == list(range(100))
    first = there.batches(9, shuffle="global", seed=2)
    taken = [next(first) for _ in range(4)]
    again = tfr_assets.batches(url, 9, shuffle="global", seed=2)
    again.restore(first.state())
    assert sorted(ids(taken) + ids(again)) == list(range(100))
    assert values(pickle.loads(pickle.dumps(there))[42]) == given_values(RECORDS[42])
    assert [report.ok for report in there.verify()] == [True] * 4
    with pytest.raises(ConfigError, match="nothing is written beside files by URL"):
        tfr_assets.adopt(url)


@pytest.mark.parametrize("name", ["one.tfrecord", "one.tfrecord.gz", "any name"])
def test_one_file(bucket: str, tmp_path: Path, name: str) -> None:
    put(f"{bucket}/{name}", tmp_path, RECORDS, "GZIP" if name.endswith(".gz") else "")
    assert values(tfr_assets.open(f"{bucket}/{name}")[77]) == given_values(RECORDS[77])
    assert ids(tfr_assets.batches(f"{bucket}/{name}")) == list(range(100))


def test_what_was_found_is_kept_until_an_object_changes(
    between: Between, one_bucket: str, tmp_path: Path, cache: Path
) -> None:
    url = f"{one_bucket}/one.tfrecord"
    put(url, tmp_path, RECORDS)
    tfr_assets.open(url)
    between.requests.clear()
    opened, touched = tfr_assets.open(url), tfr_assets.open(url)
    assert "GET" not in {method for method, path in between.requests if path.endswith("one.tfrecord")}
    assert touched[7]["id"] == 7
    put(url, tmp_path, OTHERS)  # as many bytes
    with pytest.raises(StaleError, match="was replaced"):
        opened[7]
    with pytest.raises(SourceError, match="was replaced"):
        touched[7]
    assert tfr_assets.open(url)[7]["id"] == 1007
    batches = tfr_assets.batches(url)
    for records in (RECORDS, OTHERS[:30], [*RECORDS, *RECORDS]):
        put(url, tmp_path, records)
        with pytest.raises(StaleError, match="was replaced"):
            ids(batches)
        batches = tfr_assets.batches(url)
    assert len(list(cache.glob("*.json"))) == 1


def test_what_cannot_be_read_is_refused(url: str, tmp_path: Path, cache: Path) -> None:
    folder = ObjectFolder(url)
    whole = folder.get(NAMES[3]) or b""
    folder.put(NAMES[3], whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
    for act in (tfr_assets.open, tfr_assets.batches, tfr_assets.read):
        with pytest.raises(DamagedFile, match=rf"{url}/{NAMES[3]}: record 0 at byte \d+: data CRC is wrong"):
            act(url)
    folder.put(NAMES[3], whole[:-3])
    with pytest.raises(DamagedFile, match=r"record 24 .*truncated"):
        tfr_assets.open(url)
    assert not list(cache.glob("*.json"))
    folder.put(NAMES[3], whole)
    opened = tfr_assets.open(url)
    folder.delete([NAMES[3]])
    with pytest.raises(SourceError, match="is not there"):
        opened[99]
    assert opened[0]["id"] == 0
    folder.put("feature_spec.json", b"{}")
    tfr_assets.write([{"a": 1}], tmp_path / "ours", shards=2)
    folder.put("feature_spec.json", (tmp_path / "ours" / "feature_spec.json").read_bytes())
    with pytest.raises(StaleError, match="and none of their manifests"):
        tfr_assets.open(url)


def test_a_cache_that_cannot_be_written(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TFR_SPOOL", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="is read to its end whenever it is opened"):
        assert len(tfr_assets.open(url)) == 100
    assert len(tfr_assets.open(url, cache=tmp_path / "cache")) == 100 and list((tmp_path / "cache").iterdir())
