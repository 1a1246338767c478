"""Celery's workers that share no folder with each other or with the launcher: a database, a broker and a store do."""

import io
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from PIL import Image

from tests.storage.conftest import configured, one_bucket, one_endpoint
from tests.storage.test_data_in_store import compared, contents, local_files
from tests.waiting import wait_for
from tfr_assets.layout import shard_keys
from tfr_assets.storage.objects.folder import ObjectFolder

from .conftest import numbers
from .postgres import WHY_NOT, postgres, program
from .project import OVERRIDES, Project, environment, kill_group
from .test_components_celery import Redis
from .test_components_postgres import block

__all__ = ["configured", "one_bucket", "one_endpoint"]  # fixtures
for package in ("dagster_celery", "dagster_postgres"):
    pytest.importorskip(package, reason=f"needs {package}, of the extras celery and postgres")
pytestmark = [
    pytest.mark.skipif(not shutil.which("redis-server"), reason="needs redis-server"),
    pytest.mark.skipif(not program("initdb"), reason=WHY_NOT),
]
SHARDS = 3
_LAUNCH = """
import sys
import dagster as dg
from dagster._core.definitions.reconstruct import ReconstructableRepository
from tfr_assets.components.assets.jobs import all_partitions
if __name__ == "__main__":
    module, root, job, *keys = sys.argv[1:]
    repository = ReconstructableRepository.for_module(module, "defs", root)
    with dg.DagsterInstance.get() as instance:
        result = dg.execute_job(repository.get_reconstructable_job(job), instance=instance, tags=all_partitions(keys))
        raise SystemExit(0 if result.success else 1)
"""


class Machine:
    """What a machine has for itself: a home of Dagster, a spool, a folder for what is temporary."""

    def __init__(self, folder: Path, shared: dict[str, str]) -> None:
        self.folder = folder
        self.home = folder / "home"
        (folder / "tmp").mkdir(parents=True)
        self.home.mkdir()
        (self.home / "dagster.yaml").write_text(yaml.safe_dump({**OVERRIDES, **block()}))
        own = {"DAGSTER_HOME": str(self.home), "TFR_SPOOL": str(folder / "spool"), "TMPDIR": str(folder / "tmp")}
        self.environment = {**shared, **own}

    def start(self, *command: str) -> "subprocess.Popen[bytes]":
        with self.log.open("ab") as log:
            command = (sys.executable, *command)
            return subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def steps_printed(self) -> set[Path]:
        """Files of what steps have printed here."""
        return set(self.home.rglob("compute_logs/*"))


@pytest.fixture
def shared(tmp_path: Path, one_bucket: str) -> Iterator[dict[str, str]]:
    """What the environments of all machines have in common: where database, broker and store are."""
    (tmp_path / "redis").mkdir()
    redis = Redis(tmp_path / "redis")
    try:
        with postgres() as database:
            address = {"TFR_EXECUTOR": "celery", "TFR_CELERY_BROKER": redis.url}
            yield {**database, **address, "TFR_TEST_DATA": f"{one_bucket}/lake"}
    finally:
        redis.stop()


@pytest.fixture
def raw(one_bucket: str) -> str:
    """Raw data in the store: a table, and images of two classes."""
    raw = ObjectFolder(f"{one_bucket}/raw")
    sink = pa.BufferOutputStream()
    pq.write_table(numbers(300), sink, row_group_size=64)
    raw.put("sales.parquet", sink.getvalue().to_pybytes())
    for number in range(12):
        picture = io.BytesIO()
        Image.fromarray(np.full((8, 8, 3), 20 * number, np.uint8)).save(picture, "png")
        raw.put(f"photos/{'cats' if number % 2 else 'dogs'}/{number}.png", picture.getvalue())
    return raw.url


@contextmanager
def workers_of(machines: Sequence[Machine]) -> Iterator[None]:
    """Runs a worker on each."""
    app = ("celery", "-A", "tfr_assets.components.runs.celery.app", "worker", "-Q", "dagster", "--concurrency", "1")
    running = [each.start("-m", *app, "--loglevel", "INFO", "-n", f"{each.folder.name}@%h") for each in machines]
    try:
        for machine in machines:
            wait_for(lambda log=machine.log: b" ready." in log.read_bytes(), 200)
        yield
    finally:
        for process in running:
            kill_group(process)


def launch(machine: Machine, project: Project, name: str) -> int:
    (project.root / "launch.py").write_text(_LAUNCH)
    arguments = (f"{project.package}.definitions", str(project.root), f"Refresh_{name}", *shard_keys("train", SHARDS))
    return machine.start(str(project.root / "launch.py"), *arguments).wait(400)


def test_machines_that_share_no_folder_make_what_one_makes(
    one_bucket: str, shared: dict[str, str], raw: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root := tmp_path / "project").mkdir()
    monkeypatch.syspath_prepend(str(root))
    project = Project(root)
    project.dataset("sales", source=f"{raw}/sales.parquet", shards=SHARDS)
    project.dataset("photos", source={"images": f"{raw}/photos/"}, shards=SHARDS)
    machines = [Machine(tmp_path / name, {**environment(project), **shared}) for name in ("launcher", "one", "two")]
    launcher, *workers = machines
    assert launcher.start("-m", "dagster", "instance", "info").wait(200) == 0  # makes Dagster's tables, once
    with workers_of(workers):
        for name in ("sales", "photos"):
            assert launch(launcher, project, name) == 0, launcher.log.read_text()
    for machine in workers:
        assert machine.steps_printed(), machine.log.read_text()
    assert not launcher.steps_printed()
    monkeypatch.delenv("TFR_EXECUTOR", raising=False)
    for name in ("sales", "photos"):
        assert project.refresh(name, SHARDS).ok  # on one machine, in folders
        assert compared(contents(f"{one_bucket}/lake/{name}")) == compared(local_files(project, name))


def test_a_worker_with_another_database_says_so(
    shared: dict[str, str], raw: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root := tmp_path / "project").mkdir()
    monkeypatch.syspath_prepend(str(root))
    project = Project(root)
    project.dataset("sales", source=f"{raw}/sales.parquet", shards=SHARDS)
    launcher, worker = (Machine(tmp_path / name, {**environment(project), **shared}) for name in ("launcher", "lost"))
    (worker.home / "dagster.yaml").write_text(yaml.safe_dump(OVERRIDES))
    with workers_of([worker]):
        assert launch(launcher, project, "sales") == 1
    says = f"{worker.home} of the worker lost@"
    assert says in launcher.log.read_text() and "its dagster.yaml must name the database" in launcher.log.read_text()
