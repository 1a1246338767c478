"""TFRecord files of other origin on web servers, of whatever abilities, are read as local ones are."""

import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfr_assets
from tfr_assets.errors import ConfigError, DamagedFile, SchemaError, SourceError, StaleError

from .test_foreign import OTHERS, RECORDS, given_values, values, write_foreign
from .web import Web, serving

pytestmark = pytest.mark.usefixtures("cache")
NAMES = [f"part-{part:05d}-of-00004.tfrecord" for part in range(4)]


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    for part, name in enumerate(NAMES):
        write_foreign(tmp_path / "in" / name, RECORDS[part * 25 : part * 25 + 25])
    with serving(tmp_path / "in") as found:
        yield found


@pytest.fixture
def file(web: Web, tmp_path: Path) -> Path:
    """The file at `one.tfrecord`."""
    return write_foreign(tmp_path / "in" / "one.tfrecord", RECORDS)


def ids(batches: Any) -> list[int]:
    return [int(i) for batch in batches for i in batch["id"]]


def test_a_folder_is_read_as_it_is(web: Web, tmp_path: Path) -> None:
    there, here = tfr_assets.open(web.url), tfr_assets.open(tmp_path / "in")
    assert (len(there), there.features, there.fingerprint) == (100, here.features, here.fingerprint)
    assert [values(record) for record in there] == [given_values(record) for record in RECORDS]
    assert there.take([99, 3, 3], into="bytes") == here.take([99, 3, 3], into="bytes")
    assert ids(tfr_assets.batches(web.url, 9)) == list(range(100))
    assert sorted(ids(tfr_assets.batches(web.url, 9, shuffle="global"))) == list(range(100))
    for reader in (None, "columnar", "vectorized", "resumable"):
        assert sorted(ids(tfr_assets.read(web.url, 8, reader=reader))) == list(range(100))
    shares = [ids(tfr_assets.batches(web.url, 8, shard=(n, 3))) for n in range(3)]
    assert [i for share in shares for i in share] == list(range(100))
    assert values(pickle.loads(pickle.dumps(there))[42]) == given_values(RECORDS[42])
    assert ids(pickle.loads(pickle.dumps(tfr_assets.mix({web.url: 1.0}))).batches(10))
    assert [report.ok for report in there.verify()] == [True] * 4


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("told", ["etags", "times", "nothing", "recent times"])
def test_any_server_will_do(web: Web, file: Path, ranges: bool, told: str, surveys: list[object]) -> None:
    web.ranges, web.etags, web.times = ranges, told == "etags", "times" in told
    if "times" in told:
        os.utime(file, (1e9, 1e9 if told == "times" else 4e9))  # a time to come is not over
    for _ in range(2):
        opened = tfr_assets.open(f"{web.url}/one.tfrecord")
        web.requests.clear()
        assert opened.take([5, 99, 5])["id"].tolist() == [5, 99, 5]
        whole = [wanted for _, wanted in web.requests if not wanted]
        assert bool(whole) == (not ranges or told in ("nothing", "recent times"))
    assert len(surveys) == (2 if told in ("nothing", "recent times") else 1)
    assert ids(tfr_assets.batches(f"{web.url}/one.tfrecord")) == list(range(100))


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_compressed_files(web: Web, tmp_path: Path, compression: str) -> None:
    write_foreign(tmp_path / "in" / "one.tfrecord.gz", RECORDS, compression)
    url = f"{web.url}/one.tfrecord.gz"
    assert values(tfr_assets.open(url)[99]) == given_values(RECORDS[99])
    assert ids(tfr_assets.batches(url)) == ids(tfr_assets.read(url)) == list(range(100))


@pytest.mark.parametrize("told", ["etags", "nothing"])
@pytest.mark.parametrize("others", [OTHERS, OTHERS[:50], [*OTHERS, *OTHERS]])
def test_a_file_that_is_replaced_after_it_was_opened_is_noticed(web: Web, file: Path, told: str, others: Any) -> None:
    web.etags = told == "etags"
    url = f"{web.url}/one.tfrecord"
    opened, touched = tfr_assets.open(url), tfr_assets.open(url)
    batches, dataset = tfr_assets.batches(url), tfr_assets.read(url, reader="columnar")
    assert touched[7]["id"] == 7
    write_foreign(file, others)
    with pytest.raises(StaleError if told == "etags" or len(others) > 60 else (StaleError, SourceError)):
        opened[7]
    with pytest.raises((StaleError, SourceError, DamagedFile)):
        ids(batches)
    with pytest.raises(Exception, match=r"replaced|bytes|cannot be read|are there|truncated"):
        ids(dataset)
    if told == "etags":
        with pytest.raises(SourceError, match="was replaced or removed while it was read"):
            touched[7]
    else:
        assert touched[7]["id"] == 7  # of the copy that it had fetched
    assert tfr_assets.open(url)[7]["id"] == 1007


def test_a_file_that_is_removed_after_it_was_opened_is_noticed(web: Web, file: Path) -> None:
    opened = tfr_assets.open(f"{web.url}/one.tfrecord")
    assert opened[7]["id"] == 7
    file.unlink()
    with pytest.raises(SourceError, match="was replaced or removed while it was read"):
        opened[50]


def test_a_file_that_is_replaced_between_two_openings_is_read_again(
    web: Web, file: Path, surveys: list[object], cache: Path
) -> None:
    url = f"{web.url}/one.tfrecord"
    for _ in range(2):
        assert tfr_assets.open(url)[7]["id"] == 7
    assert len(surveys) == 1
    write_foreign(file, OTHERS)  # as many bytes
    assert tfr_assets.open(url)[7]["id"] == 1007 and ids(tfr_assets.batches(url))[0] == 1000
    assert len(surveys) == 2 and len(list(cache.glob("*.json"))) == 1


def test_batches_go_on_elsewhere(web: Web, file: Path, tmp_path: Path) -> None:
    first = tfr_assets.batches(f"{web.url}/one.tfrecord", 9, shuffle="global", seed=2)
    taken = [next(first) for _ in range(4)]
    again = tfr_assets.open(file).batches(9, shuffle="global", seed=2)  # a local copy has the same fingerprint
    again.restore(first.state())
    assert sorted(ids(taken) + ids(again)) == list(range(100))


def test_what_cannot_be_read_is_refused(web: Web, file: Path, cache: Path) -> None:
    url, whole = f"{web.url}/one.tfrecord", file.read_bytes()
    file.write_bytes(whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
    for act in (tfr_assets.open, tfr_assets.batches, tfr_assets.read):
        with pytest.raises(DamagedFile, match=r"one.tfrecord: record 0 at byte \d+: data CRC is wrong"):
            act(url)
    file.write_bytes(whole[:-3])
    with pytest.raises(DamagedFile, match=r"record 99 .*truncated"):
        tfr_assets.open(url)
    write_foreign(file, [*RECORDS[:20], b"no example"])
    with pytest.raises(SchemaError, match=rf"{url}: record 20 is neither a tf.Example nor"):
        tfr_assets.open(url)
    assert not list(cache.glob("*.json"))
    with pytest.raises(ConfigError, match=r"nowhere.tfrecord: there is no TFRecord file"):
        tfr_assets.open(f"{web.url}/nowhere.tfrecord")
    write_foreign(file, RECORDS)
    web.sizes = web.ranges = False
    with pytest.raises(SourceError, match="does not say how large it is"):
        tfr_assets.open(url)


def test_a_server_that_forbids_what_is_not_there(web: Web, file: Path) -> None:
    web.forbids, web.lists = True, False
    assert len(tfr_assets.open(f"{web.url}/one.tfrecord")) == 100
    assert len(tfr_assets.batches(f"{web.url}/one.tfrecord", 100).__next__()["id"]) == 100
    with pytest.raises(SourceError, match="403"):
        tfr_assets.open(f"{web.url}/nowhere.tfrecord")


def test_folders_that_are_not_listed_or_not_for_certain_whole(web: Web, tmp_path: Path) -> None:
    shutil.copy(tmp_path / "in" / NAMES[0], tmp_path / "in" / "some-1.tfrecord")
    with pytest.raises(StaleError, match="neither a manifest nor their names tell whether the server lists all"):
        tfr_assets.open(web.url, split="some")
    (tmp_path / "in" / NAMES[2]).unlink()
    with pytest.raises(StaleError, match="3 of the 4 files that their names tell of"):
        tfr_assets.open(web.url, split="part")
    web.lists = False
    with pytest.raises(ConfigError, match="the server does not list, give the URL of one"):
        tfr_assets.open(web.url)


def test_a_damaged_record_is_named_when_it_is_asked_for(web: Web, file: Path, tmp_path: Path) -> None:
    web.etags, web.times = False, True
    os.utime(file, (1e9, 1e9))
    opened = tfr_assets.open(f"{web.url}/one.tfrecord")
    content = bytearray(file.read_bytes())
    content[-10] ^= 1
    file.write_bytes(content)
    os.utime(file, (1e9, 1e9))  # a disk that has lost a bit
    with pytest.raises(DamagedFile, match=r"one.tfrecord: record 99 at byte \d+: data CRC is wrong"):
        opened[99]
    assert opened[5]["id"] == 5


@pytest.mark.parametrize("failure", [500, 502, 503, 504, 429, "lost", "cut"])
def test_a_part_is_asked_for_again_after_a_momentary_failure(
    web: Web, file: Path, monkeypatch: pytest.MonkeyPatch, failure: Any
) -> None:
    monkeypatch.setattr("tfr_assets.storage.web._WAIT", 0.01)
    opened = tfr_assets.open(f"{web.url}/one.tfrecord")
    assert opened[7]["id"] == 7
    web.fails = [failure] * 3
    assert opened.take([5, 99, 5])["id"].tolist() == [5, 99, 5] and not web.fails
    web.fails = [failure] * 3
    assert ids(tfr_assets.open(f"{web.url}/one.tfrecord").batches(9)) == list(range(100)) and not web.fails


@pytest.mark.parametrize(
    ("failure", "says"),
    [
        (503, r"the server failed after 5 retries \(503 Service Unavailable\); run again when it is well"),
        ("lost", "the connection was lost after 5 retries .*; check the network, then run again"),
        ("cut", "the connection was lost after 5 retries .*; check the network, then run again"),
        (403, "cannot be opened: .*403"),
    ],
)
def test_a_failure_that_lasts_is_one_clear_error(
    web: Web, file: Path, monkeypatch: pytest.MonkeyPatch, failure: Any, says: str
) -> None:
    monkeypatch.setattr("tfr_assets.storage.web._WAIT", 0.01)
    opened = tfr_assets.open(f"{web.url}/one.tfrecord")
    assert opened[7]["id"] == 7
    web.requests.clear()
    web.fails = [failure] * 100
    with pytest.raises(SourceError, match=f"^{web.url}/one.tfrecord: {says}") as caught:
        opened[7]
    assert "\n" not in str(caught.value)
    asked = 100 - len(web.fails)  # aiohttp asks twice where a connection is lost that was used before
    assert asked == 1 if failure == 403 else 6 <= asked <= 12


def test_a_file_that_cannot_be_read_is_a_fault_of_its_own(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfr_assets.storage.web._WAIT", 0.01)
    opened = tfr_assets.open(web.url)
    web.fails = [503] * 6  # those of the first file
    first, *others = opened.verify()
    assert str(first.faults[0]) == (
        f"{web.url}/{NAMES[0]}: file cannot be read (the server failed after 5 retries (503 Service Unavailable); run "
        "again when it is well)"
    )
    assert not first.ok and [report.ok for report in others] == [True] * 3
    (tmp_path / "in" / NAMES[2]).unlink()
    reports = opened.verify()
    assert [report.ok for report in reports] == [True, True, False, True]
    assert "is not there" in str(reports[2].faults[0])


@pytest.mark.parametrize("what", ["one file", "folder"])
def test_a_manifest_that_a_server_does_not_give_for_a_moment_is_not_taken_for_none(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr("tfr_assets.storage.web._WAIT", 0.01)
    tfr_assets.write(pa.table({"n": pa.array([1, 2], pa.int16())}), tmp_path / "in" / "ours" / "n.tfrecord")
    url = f"{web.url}/ours/n.tfrecord" if what == "one file" else f"{web.url}/ours"
    asked = "/manifest/n.tfrecord.json" if what == "one file" else "/ours/manifest"
    for each in (asked, "/n.tfrecord"):
        web.breaks = {each: 3}
        assert next(iter(tfr_assets.open(url).batches(2)))["n"].dtype == np.int16 and web.breaks == {each: 0}
        web.breaks = {each: 1000}
        with pytest.raises(SourceError, match="the server failed after 5 retries"):
            tfr_assets.open(url)


@pytest.mark.parametrize("how", [400, 407, "garbage"])
@pytest.mark.parametrize("lists", [True, False])
def test_an_answer_that_says_nothing_of_a_manifest_is_not_taken_for_none(
    web: Web, tmp_path: Path, how: Any, lists: bool
) -> None:
    tfr_assets.write(pa.table({"n": pa.array([1, 2], pa.int16())}), tmp_path / "in" / "ours" / "n.tfrecord")
    web.lists, web.forbids = lists, not lists
    web.breaks, web.breaks_by = {"/manifest/n.tfrecord.json": 1}, how
    with pytest.raises(SourceError, match="cannot be opened: ClientResponseError"):
        tfr_assets.open(f"{web.url}/ours/n.tfrecord")
    assert next(iter(tfr_assets.open(f"{web.url}/ours/n.tfrecord").batches(2)))["n"].dtype == np.int16


def test_only_the_manifests_that_failed_are_asked_for_again(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfr_assets.storage.web._WAIT", 0.01)
    tfr_assets.write(pa.table({"n": range(20)}), tmp_path / "in" / "ours", shards=20)
    web.requests.clear()
    web.breaks = {f"-{number:05d}-of-00020.json": 4 for number in range(0, 20, 7)}
    assert len(tfr_assets.open(f"{web.url}/ours")) == 20 and not any(web.breaks.values())
    manifests = [path for path, _ in web.requests if "/manifest/" in path]
    assert len(manifests) == len(set(manifests)) == 20


def test_a_server_that_is_not_there_is_told_soon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    waits: list[float] = []
    monkeypatch.setattr("tfr_assets.storage.web.time.sleep", waits.append)
    with serving(tmp_path) as gone:
        url = gone.url
    with pytest.raises(SourceError, match=f"^{url}/.*x.tfrecord.*: the server cannot be reached"):
        tfr_assets.open(f"{url}/x.tfrecord")
    assert sum(waits) < 1


def test_the_command_says_what_to_do(web: Web, file: Path) -> None:
    command = [sys.executable, "-m", "tfr_assets.cli", "adopt", f"{web.url}/one.tfrecord"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "read as they are" in done.stderr
