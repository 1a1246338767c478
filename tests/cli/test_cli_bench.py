"""`tfr bench readers`, as a person at a terminal calls it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tests.reading.datasets import write_dataset
from tests.waiting import wait_for
from tfr_assets.layout import Layout

ONLY = ["--only", "naive", "--only", "vectorized", "--repeats", "1"]


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    table = pa.table({"x": pa.array(range(500), pa.int64())})
    return write_dataset(table, tmp_path_factory.mktemp("data"), "flights")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tfr_assets.cli", "bench", "readers", *arguments]


def environment(layout: Layout) -> dict[str, str]:
    return {**os.environ, "TFR_DATA": str(layout.folder.parent)}


def bench(layout: Layout, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command(*arguments), env=environment(layout), capture_output=True, text=True, check=False)


def test_a_table_is_printed_and_the_measurements_are_kept(layout: Layout) -> None:
    done = bench(layout, "flights", "--only", "columnar", *ONLY)
    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line.split()}
    assert {"reader", "naive", "vectorized"} <= set(lines)
    assert lines["naive"].split()[-1] == "all"
    best = json.loads((layout.readers / "recommendation.json").read_text())["reader"]
    assert f"recommended: {best}, " in done.stdout
    assert best == "columnar" or "the default" not in done.stdout  # on a busy machine even a short pass is long enough


def test_other_settings_are_printed_and_not_kept(layout: Layout) -> None:
    before = {path: path.read_bytes() for path in layout.readers.rglob("*.json")}
    done = bench(layout, "flights", *ONLY, "--batch-size", "50", "--step-ms", "1", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert set(document["readers"]) == {"naive", "vectorized"}
    assert document["readers"]["naive"]["records_read"] == 500
    assert document["readers"]["naive"]["batch_size"] == 50
    assert document["failures"] == {}
    assert {path: path.read_bytes() for path in layout.readers.rglob("*.json")} == before


def test_storage_far_away_is_pretended(layout: Layout) -> None:
    before = {path: path.read_bytes() for path in layout.readers.rglob("*.json")}
    done = bench(layout, "flights", "--latency-ms", "5", "--mb-per-s", "10", *ONLY)
    assert done.returncode == 0, done.stderr
    assert "flights over HTTP, 5 ms to the first byte, 10 MB/s a connection" in done.stdout
    assert "\nvectorized " in done.stdout
    assert "recommended" not in done.stdout  # for what is not where it was pretended to be
    assert {path: path.read_bytes() for path in layout.readers.rglob("*.json")} == before


def test_a_reader_that_fails_is_named_and_the_exit_code_tells(layout: Layout) -> None:
    layout.merged_path().unlink()
    done = bench(layout, "flights", "--only", "merged", "--only", "vectorized", "--repeats", "1")
    assert done.returncode == 1
    assert "failed merged: there is no merged file" in done.stderr
    assert "\nvectorized " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["flihgts"], "there is no dataset 'flihgts'; did you mean 'flights'?"),
        (["flights", "--only", "navie"], "there is no reader 'navie'; did you mean 'naive'?"),
        (["flights", "--batch-size", "0"], "readers.batch_size: expected a whole number from 1 up"),
        (["flights", "--mb-per-s", "0"], "bandwidth: expected MB a second, more than 0"),
    ],
)
def test_wrong_usage_is_one_message(layout: Layout, arguments: list[str], says: str) -> None:
    done = bench(layout, *arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_an_interrupted_measurement_leaves_no_process_behind(layout: Layout) -> None:
    process = subprocess.Popen(
        command("flights", "--only", "naive", "--step-ms", "60000"),
        env=environment(layout), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    wait_for(lambda: len(processes_below(process.pid)) >= 2)  # the one that forks, and the one that measures
    found = processes_below(process.pid)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in found))


def processes_below(pid: int) -> list[int]:
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = dict(map(int, line.split()) for line in listed.splitlines())  # type: ignore[arg-type]
    below = [child for child, parent in parents.items() if parent == pid]
    return below + [each for child in below for each in processes_below(child)]
