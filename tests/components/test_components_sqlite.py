"""The storage that keeps its connections: Dagster's own files, also after a kill, and while others read them."""

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from textwrap import dedent

import dagster as dg
import pytest
import yaml
from dagster._core.events.log import EventLogEntry

from tests.waiting import wait_for

ROOT = Path(__file__).parents[2]
KEPT = {"module": "tfr_assets.components.runs.sqlite", "class": "KeptSqliteStorage"}
_WRITE = """
    import os, signal, sys
    import dagster as dg
    from tests.components.test_components_sqlite import entry
    instance = dg.DagsterInstance.from_config({home!r})
    for number in range({count}):
        instance.event_log_storage.store_event(entry({run!r}, number))
    if {kill}:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def entry(run_id: str, number: int) -> EventLogEntry:
    return EventLogEntry(
        error_info=None,
        level=20,
        user_message=f"event {number}",
        run_id=run_id,
        timestamp=float(number),
        job_name="job",
    )


def make_home(folder: Path, kept: bool) -> dg.DagsterInstance:
    base = {"base_dir": str(folder / "storage")}
    storage = {"custom": {**KEPT, "config": base}} if kept else {"sqlite": base}
    (folder / "dagster.yaml").write_text(yaml.safe_dump({"storage": storage, "telemetry": {"enabled": False}}))
    return dg.DagsterInstance.from_config(str(folder))


def write_elsewhere(home: Path, run_id: str, count: int, kill: bool) -> "subprocess.Popen[bytes]":
    script = dedent(_WRITE.format(home=str(home), run=run_id, count=count, kill=kill))
    return subprocess.Popen([sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": str(ROOT)})


def messages(instance: dg.DagsterInstance, run_id: str) -> list[str]:
    return [log.user_message for log in instance.all_logs(run_id)]


def test_what_a_killed_process_wrote_is_there_for_either_storage(tmp_path: Path) -> None:
    run_id = str(uuid.uuid4())
    with make_home(tmp_path, kept=True) as instance:
        instance.event_log_storage.store_event(entry(run_id, 100))  # both have the file open
        assert write_elsewhere(tmp_path, run_id, 50, kill=True).wait(120) == -signal.SIGKILL
        expected = ["event 100", *(f"event {number}" for number in range(50))]
        assert sorted(messages(instance, run_id)) == sorted(expected)
        with make_home(tmp_path, kept=False) as plain:
            plain.event_log_storage.store_event(entry(run_id, 200))
            assert sorted(messages(plain, run_id)) == sorted([*expected, "event 200"])
        assert "event 200" in messages(instance, run_id)


def test_processes_write_at_once_from_the_first_moment_of_an_instance_on(tmp_path: Path) -> None:
    run_id = str(uuid.uuid4())
    make_home(tmp_path, kept=True).dispose()
    for path in (tmp_path / "storage").rglob("*.db*"):
        path.unlink()
    writers = [write_elsewhere(tmp_path, run_id, 20, kill=False) for _ in range(3)]
    assert [writer.wait(200) for writer in writers] == [0, 0, 0]
    with make_home(tmp_path, kept=True) as instance:
        assert len(messages(instance, run_id)) == 60


def test_the_ui_sees_each_event_as_it_comes(tmp_path: Path) -> None:
    run_id, seen = str(uuid.uuid4()), list[str]()
    with make_home(tmp_path, kept=True) as instance:
        instance.event_log_storage.store_event(entry(run_id, 0))
        instance.watch_event_logs(run_id, None, lambda event, _: seen.append(event.user_message))
        for number in (1, 2):
            write_elsewhere(tmp_path, run_id, 1, kill=False).wait(120)
            wait_for(lambda number=number: len(seen) > number, 60, lambda: str(seen))  # type: ignore[misc]


@pytest.mark.parametrize("kept", [True, False])
def test_wiped_runs_are_gone_for_a_process_that_had_them_open(kept: bool, tmp_path: Path) -> None:
    run_id = str(uuid.uuid4())
    with make_home(tmp_path, kept=True) as instance, make_home(tmp_path, kept=kept) as other:
        instance.event_log_storage.store_event(entry(run_id, 0))
        assert messages(instance, run_id) == ["event 0"]
        other.wipe()
        assert messages(instance, run_id) == []
        instance.event_log_storage.store_event(entry(run_id, 1))
        assert messages(other, run_id) == ["event 1"]
