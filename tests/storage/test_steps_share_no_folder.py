"""Celery's workers with data in a store: what steps need travels through it, and each worker has a spool of its own."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

from tests.components.project import Project, start_run
from tests.components.test_components_celery import Redis, Workers
from tests.storage.test_data_in_store import KEYS, SHARDS, compared, contents, ids, local_files, rows

pytest.importorskip("dagster_celery", reason="needs the extra celery")
pytestmark = pytest.mark.skipif(not shutil.which("redis-server"), reason="needs redis-server")


@pytest.fixture
def redis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Redis]:
    (folder := tmp_path / "redis").mkdir()
    server = Redis(folder)
    monkeypatch.setenv("TFR_EXECUTOR", "celery")
    monkeypatch.setenv("TFR_CELERY_BROKER", server.url)
    yield server
    server.stop()


def test_workers_with_spools_of_their_own_make_what_one_machine_makes(
    one_bucket: str, redis: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {}
    for name, data in (("far", f"{one_bucket}/lake"), ("near", "")):
        (root := tmp_path / name).mkdir()
        monkeypatch.syspath_prepend(str(root))
        made[name] = Project(root, data=data)
        pa.csv.write_csv(rows(), root / "raw" / "sales.csv")
        made[name].dataset("sales", source="raw/sales.csv", shards=SHARDS)
    project = made["far"]
    workers = Workers(project)
    try:
        for name in ("one", "two"):
            monkeypatch.setenv("TFR_SPOOL", str(tmp_path / f"spool of {name}"))
            workers.start(name)
        monkeypatch.setenv("TFR_SPOOL", str(tmp_path / "spool of the launcher"))
        assert start_run(project, "Refresh_sales", KEYS).wait(400) == 0
    finally:
        workers.stop()
    (run,) = project.instance.get_runs()
    ran = project.ran(run.run_id)
    assert ran.ok, ran.problems()
    took = [event for event in ran.events if "in celery worker" in str(event.message)]
    hosts = {str(e.engine_event_data.metadata["Celery worker"].value).partition("@")[0] for e in took}
    assert hosts == {"one", "two"}
    assert not list((project.root / "instance" / "storage").glob(f"{run.run_id}/*write_shard*"))
    assert not list((project.root / "instance" / "storage").glob(f"{run.run_id}/*plan*"))
    assert not any(name.startswith(".steps/") for name in contents(f"{one_bucket}/lake"))
    assert {check.partition for check in ran.evaluations("shards").values() if check.passed} == set(KEYS)
    monkeypatch.delenv("TFR_EXECUTOR")
    assert made["near"].refresh("sales", SHARDS).ok
    assert compared(contents(f"{one_bucket}/lake/sales")) == compared(local_files(made["near"], "sales"))
    assert ids(f"{one_bucket}/lake/sales") == list(range(300))
