"""Other packages that read TFRecord files are measured where they are installed, and named where they are not."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

from tfr_assets.bench.readers import peers
from tfr_assets.bench.readers.peers import PEERS, measure_peers
from tfr_assets.layout import Layout
from tfr_assets.packages import is_installed
from tfr_assets.reading.locate.files import locate
from tfr_assets.records.schema.feature_options import FeatureOptions

Written = Callable[..., Layout]
TABLE = pa.table({"n": range(200), "t": ["x"] * 200, "s": [[1, 2]] * 200})


@pytest.mark.parametrize("package", PEERS)
def test_a_package_gives_every_record_once(written: Written, package: str) -> None:
    if not is_installed(package):
        pytest.skip(f"the package {package!r} is not installed")
    code = (
        "import sys; from tfr_assets.bench.readers.peers import PEERS; "
        "print(sum(PEERS[sys.argv[1]].counts(sys.argv[2:]))); PEERS[sys.argv[1]].end()"
    )  # by itself: TensorFlow and `tfrecord` cannot be imported into one process
    command = [sys.executable, "-c", code, package, *locate(written(TABLE).shards).paths]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "200\n"


def test_what_is_installed_is_measured_and_the_rest_named(written: Written) -> None:
    found = measure_peers(locate(written(TABLE).shards))
    assert found
    there = {name for name in PEERS if is_installed(name)}
    assert found.theirs.keys() == there and {*found.absent} == {*PEERS} - there
    assert not found.failures and all(rate > 0 for rate in found.theirs.values()) and (found.ours > 0 or not there)
    assert found.rows()[0][0] == "tfr_assets.batches" and len(found.rows()) == 1 + len(there)


def test_one_that_fails_is_told(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_installed("tfrecord"):
        pytest.skip("the package 'tfrecord' is not installed")
    monkeypatch.setattr(peers, "is_installed", lambda name: name == "tfrecord")
    files = locate(written(TABLE).shards)
    found = measure_peers(replace(files, paths=(*files.paths, f"{files.paths[0]}-gone")))
    assert found and not found.theirs and found.ours > 0
    assert "No such file" in found.failures["tfrecord"] and "-gone" in found.failures["tfrecord"]


def test_without_any_of_them_all_are_absent(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "is_installed", lambda name: False)
    found = measure_peers(locate(written(TABLE).shards))
    assert found and found.absent == tuple(PEERS) and not found.theirs


def test_files_that_none_of_them_reads_are_not_measured(written: Written) -> None:
    assert measure_peers(locate(written(TABLE, compression="gzip").shards)) is None
    layout = written(TABLE, name="lists", options=FeatureOptions(sequence=("s",)))
    assert measure_peers(locate(layout.shards)) is None
