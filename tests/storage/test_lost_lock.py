"""A run whose lock another machine took over, while it is at work: it makes nothing more visible, and says so."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.components.project import Project, Ran, start_run
from tests.storage.conftest import client
from tests.storage.servers import Answer, Between
from tests.storage.test_data_in_store import KEYS, ROWS, SHARDS, contents, ids, make_project, rows
from tests.waiting import wait_for
from tfr_assets.components.runs.executor import build_executor, celery_workers
from tfr_assets.components.runs.while_held import HELD_APART
from tfr_assets.errors import WriteError
from tfr_assets.storage.objects.folder import ObjectFolder
from tfr_assets.storage.objects.guard import check_held, only_while_held
from tfr_assets.storage.objects.lease import LEASE

__all__ = ["make_project"]  # a fixture

OTHER = json.dumps({"host": "elsewhere", "process": 7, "is": "another-machine 7 1", "run": "another"}).encode()
NAME = "sales-train.tfrecord-00001-of-00003"


def says(url: str, why: str = "process 7 on elsewhere took it") -> str:
    return f"{url}/.lock: the lock was lost, since {why}; nothing more was made visible. Run again"


def run_through(project: Project, when_writing: Callable[[], object] = lambda: None) -> Ran:
    """Runs the refresh in a process of its own; does something when all of its steps are about to write a shard."""
    orders = [project.fault(key, "wait") for key in KEYS]
    process = start_run(project, "Refresh_sales", KEYS)
    for order in orders:
        wait_for(Path(f"{order}.waiting").exists, 200)
    when_writing()
    for order in orders:
        order.unlink()
    process.wait(200)
    (run,) = project.instance.get_runs(limit=1)
    return project.ran(run.run_id)


def with_sales(project: Project) -> Project:
    project.table("sales", rows())
    project.dataset("sales", shards=SHARDS)
    return project


@pytest.fixture(autouse=True)
def a_worker_for_each_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFR_WORKERS", str(SHARDS))


def test_steps_in_threads_of_one_process_look_until_each_has_ended(bucket: str) -> None:
    folder = ObjectFolder(f"{bucket}/sales")
    folder.put(".lock", OTHER)
    first, second = (only_while_held(folder.url, ".lock", "mine") for _ in range(2))
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    with pytest.raises(WriteError, match="the lock was lost"):
        check_held(f"{folder.url}/shards")
    second.__exit__(None, None, None)
    check_held(f"{folder.url}/shards")


@pytest.mark.parametrize("is_gone", [False, True], ids=["taken", "taken and released"])
def test_a_run_that_lost_its_lock_in_its_shards_makes_nothing_more_visible(
    bucket: str, make_project: Callable[..., Project], is_gone: bool
) -> None:
    project, folder = with_sales(make_project("there", bucket)), ObjectFolder(f"{bucket}/sales")
    before: dict[str, bytes] = {}

    def lose() -> None:
        folder.delete([".lock"]) if is_gone else folder.put(".lock", OTHER)
        before.update(contents(folder.url))

    ran = run_through(project, lose)
    assert not ran.ok and not ran.materialized("shards") and not ran.materialized("merged")
    why = "it is there no more" if is_gone else "process 7 on elsewhere took it"
    assert set(ran.problems().values()) == {says(folder.url, why)}
    assert contents(folder.url) == before
    folder.delete([".lock"])
    again = project.refresh("sales", SHARDS)
    assert again.ok, again.problems()
    assert ids(folder.url) == list(range(ROWS))


def test_a_run_that_notices_by_itself_ends_with_its_steps(
    one_bucket: str, make_project: Callable[..., Project]
) -> None:
    project, folder = with_sales(make_project("there", one_bucket)), ObjectFolder(f"{one_bucket}/sales")

    def lose() -> None:
        folder.put(".lock", OTHER)
        time.sleep(LEASE / 2)  # the run renews its lock meanwhile

    ran = run_through(project, lose)
    assert not ran.ok and not ran.materialized("shards")
    (failed,) = [event for event in ran.events if event.event_type_value == "PIPELINE_FAILURE"]
    error = failed.job_failure_data.error
    assert error and "the lock was lost, since another process took it; nothing more was made" in error.message
    assert folder.get(".lock") == OTHER and not any(name.startswith("shards/") for name in contents(folder.url))


@pytest.mark.parametrize(
    ("sent", "unseen"),
    [(f"shards/{NAME}", f"shards/manifest/{NAME}.json"), ("merged/sales-train.tfrecord", "merged/manifest/")],
    ids=["shard", "merged"],
)
def test_a_lock_that_is_lost_while_a_file_is_sent_keeps_its_manifest_away(
    between: Between, make_project: Callable[..., Project], sent: str, unseen: str
) -> None:
    url = f"s3://losing-{os.getpid()}-{sent.partition('/')[0]}"
    behind = client(between.endpoint)
    behind.create_bucket(Bucket=url.removeprefix("s3://"))
    project = with_sales(make_project("there", url))

    def answer(method: str, path: str, query: str) -> Answer:
        ends = "uploadId" in query if method == "POST" else method == "PUT" and not query
        if ends and path.endswith(f"sales/{sent}"):  # what makes it visible
            behind.put_object(Bucket=url.removeprefix("s3://"), Key="sales/.lock", Body=OTHER)
        return None

    between.answer = answer
    ran = run_through(project)
    assert not ran.ok
    assert says(f"{url}/sales") in ran.problems().values()
    there = contents(f"{url}/sales")
    assert sent in there and not any(name.startswith(unseen) for name in there)
    assert there[".lock"] == OTHER


def test_a_run_that_lost_its_lock_while_it_checks_leaves_the_page_as_it_is(
    between: Between, make_project: Callable[..., Project]
) -> None:
    name = f"checking-{os.getpid()}"
    behind = client(between.endpoint)
    behind.create_bucket(Bucket=name)
    project, folder = with_sales(make_project("there", f"s3://{name}")), ObjectFolder(f"s3://{name}/sales")
    assert project.refresh("sales", SHARDS).ok
    before = contents(folder.url)

    def answer(method: str, path: str, query: str) -> Answer:
        if method == "GET" and path.endswith(".tfrecord"):  # a check reads the merged file
            behind.put_object(Bucket=name, Key="sales/.lock", Body=OTHER)
        return None

    between.answer = answer
    ran = project.run("Verify_sales")
    assert contents(folder.url) == before | {".lock": OTHER}
    said = [log.user_message for log in project.instance.all_logs(ran.run.run_id)]
    assert any(f"report.html is not up to date: {says(folder.url)}" in message for message in said)


def test_steps_look_for_the_lock_where_runs_are_held_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TFR_EXECUTOR", raising=False)
    assert {build_executor().name, celery_workers.name} <= HELD_APART
    for name in ("k8s", "ray"):
        pytest.importorskip(f"dagster_{name}", reason=f"needs the extra {name}")
        monkeypatch.setenv("TFR_EXECUTOR", name)
        assert build_executor().name in HELD_APART
