"""`TFR_DATA=s3://…`: a project whose data lies in an object store, on a machine that may forget everything else."""

import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.csv
import pytest

import tfr_assets
from tests.components.project import Project, environment, kill_group, start_run
from tests.storage.conftest import client
from tests.storage.servers import SECRET, Between
from tests.storage.test_write_to_store import contents
from tests.waiting import wait_for
from tfr_assets.layout import Layout, shard_keys
from tfr_assets.storage.objects.folder import ObjectFolder
from tfr_assets.storage.run_lock import hold_folder
from tfr_assets.urls import mirror_of
from tfr_assets.writing.appended import append_slice, appended_files

ROWS, SHARDS = 300, 3
KEYS = shard_keys("train", SHARDS)
FORGET = "spool"


@pytest.fixture
def make_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Project]:
    monkeypatch.setenv("TFR_SPOOL", str(tmp_path / FORGET))

    def make(name: str, data: str = "") -> Project:
        (root := tmp_path / name).mkdir()
        monkeypatch.syspath_prepend(str(root))
        return Project(root, data=data)

    return make


def rows(first: int = 0, count: int = ROWS) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"row {n}" for n in ids]})


def ids(url: str) -> list[int]:
    return [n for batch in tfr_assets.batches(url, 100) for n in batch["id"].tolist()]


def forget(project: Project) -> None:
    """Leaves nothing on this machine of what lies in the store."""
    shutil.rmtree(project.root.parent / FORGET, ignore_errors=True)


def local_files(project: Project, name: str) -> dict[str, bytes]:
    folder = project.layout(name).folder
    files = (path for path in folder.rglob("*") if path.is_file() and "/." not in f"/{path.relative_to(folder)}")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def compared(files: dict[str, bytes]) -> dict[str, bytes]:
    """What must be the same wherever it is made: all but the page, and what names paths."""
    return {name: files[name] for name in files if name not in ("report.html", "raw/inventory.json")}


def test_a_refresh_makes_what_it_makes_on_a_disk(bucket: str, make_project: Callable[..., Project]) -> None:
    local, stored = make_project("here"), make_project("there", f"{bucket}/lake")
    for project in (local, stored):
        project.table("sales", rows())
        project.dataset("sales", shards=SHARDS)
        ran = project.refresh("sales", SHARDS)
        assert ran.ok, ran.problems()
    found = contents(f"{bucket}/lake/sales")
    assert compared(found) == compared(local_files(local, "sales"))
    assert found.keys() == local_files(local, "sales").keys()
    shown = ran.materialized("shards")[KEYS[0]]
    assert shown["dagster/uri"] == f"{bucket}/lake/sales/shards/sales-train.tfrecord-00000-of-00003"
    assert {key for key, each in ran.evaluations("shards").items() if not each.passed} == set()
    assert ids(f"{bucket}/lake/sales") == list(range(ROWS))
    kept = [path for path in stored.root.parent.rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in path.read_bytes() for path in kept)


def test_how_often_a_run_lists_the_store_does_not_depend_on_the_number_of_shards(
    between: Between, make_project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFR_WORKERS", "1")
    url = f"s3://listed-{os.getpid()}"
    client(between.endpoint).create_bucket(Bucket=url.removeprefix("s3://"))
    project = make_project("there", url)
    listings = {}
    for name, shards in (("few", 2), ("many", 8)):
        project.table(name, rows())
        project.dataset(name, shards=shards)
        assert project.refresh(name, shards).ok
        asked = [path for method, path in between.requests if method == "GET" and "list-type=2" in path]
        listings[name] = [path for path in asked if f"prefix={name}%2F" in path]
    assert len(listings["few"]) == len(listings["many"]) == 6
    assert {path.rpartition("prefix=")[2] for path in listings["many"]} == {"many%2F"}  # no step lists for a shard


def test_the_store_alone_is_needed(bucket: str, make_project: Callable[..., Project]) -> None:
    project = make_project("there", bucket)
    project.table("sales", rows())
    project.dataset("sales", shards=SHARDS)
    assert project.refresh("sales", SHARDS).ok
    before = contents(f"{bucket}/sales")
    forget(project)
    again = project.refresh("sales", SHARDS)
    assert again.ok, again.problems()
    assert not any(shown["written"] for shown in again.materialized("shards").values())
    assert not again.materialized("merged")[None]["written"]
    assert compared(contents(f"{bucket}/sales")) == compared(before)
    forget(project)
    verified = project.run("Verify_sales")
    assert verified.ok, verified.problems()


def test_what_stands_in_takes_no_room(one_bucket: str, make_project: Callable[..., Project]) -> None:
    project = make_project("there", one_bucket)
    project.table("sales", pa.table({"id": range(200_000)}))
    project.dataset("sales", shards=1)
    assert project.refresh("sales", 1).ok
    layout = project.layout("sales")
    for path in (layout.shard_path("train-00000-of-00001"), layout.merged_path()):
        assert (
            path.stat().st_size
            == ObjectFolder(f"{one_bucket}/sales").stat(path.relative_to(layout.folder).as_posix()).size
            > 4_000_000
        )
        assert path.stat().st_blocks * 512 < 100_000


@pytest.mark.parametrize("lost", ["shards/sales-train.tfrecord-00001-of-00003", "shards/manifest/{}.json", "damaged"])
def test_what_the_bucket_lost_is_noticed_and_written_again(
    bucket: str, make_project: Callable[..., Project], lost: str
) -> None:
    project = make_project("there", bucket)
    project.table("sales", rows())
    project.dataset("sales", shards=SHARDS)
    assert project.refresh("sales", SHARDS).ok
    folder, name = ObjectFolder(f"{bucket}/sales"), "sales-train.tfrecord-00001-of-00003"
    before = contents(folder.url)
    if lost == "damaged":
        whole = folder.get(f"shards/{name}") or b""
        folder.put(f"shards/{name}", whole[:100] + b"?" + whole[101:])
    else:
        folder.delete([lost.format(name)])
    verified = project.run("Verify_sales")
    assert not verified.ok and KEYS[1] in verified.problems()["sales_verify"]
    again = project.refresh("sales", SHARDS)
    assert again.ok, again.problems()
    assert [key for key, shown in again.materialized("shards").items() if shown["written"]] == [KEYS[1]]
    assert compared(contents(folder.url)) == compared(before)


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_landed_rows_and_splits(one_bucket: str, make_project: Callable[..., Project], compression: str) -> None:
    url = f"{one_bucket}/deep/er"
    local, stored = make_project("here"), make_project("there", url)
    for project in (local, stored):
        pa.csv.write_csv(rows(), project.root / "raw" / "sales.csv")
        splits = {"train": 0.8, "test": 0.2}
        project.dataset("sales", source="raw/sales.csv", shards=2, splits=splits, compression=compression)
        keys = [*shard_keys("train", 2), *shard_keys("test", 2)]
        ran = project.run("Refresh_sales", keys)
        assert ran.ok, ran.problems()
        if project is stored:
            forget(project)
            ObjectFolder(f"{url}/sales").delete(["shards/manifest/sales-test.tfrecord-00001-of-00002.json"])
            again = project.run("Refresh_sales", keys)
            assert again.ok, again.problems()
            written = {key for key, shown in again.materialized("shards").items() if shown["written"]}
            assert written == {"test-00001-of-00002"}
    assert compared(contents(f"{url}/sales")) == compared(local_files(local, "sales"))


def test_a_refresh_of_other_rows_replaces_all(bucket: str, make_project: Callable[..., Project]) -> None:
    project = make_project("there", bucket)
    for first, shards in ((0, 3), (1000, 2)):
        pa.csv.write_csv(rows(first), project.root / "raw" / "sales.csv")
        project.dataset("sales", source="raw/sales.csv", shards=shards)
        ran = project.refresh("sales", shards)
        assert ran.ok, ran.problems()
    assert ids(f"{bucket}/sales") == list(range(1000, 1000 + ROWS))
    names = contents(f"{bucket}/sales")
    assert not any("-of-00003" in name for name in names)
    assert len({name.split("/")[1] for name in names if name.startswith("raw/landed-")}) == 1
    assert all(report.ok for report in tfr_assets.verify(f"{bucket}/sales"))


def test_a_killed_run_leaves_what_the_next_one_completes(bucket: str, make_project: Callable[..., Project]) -> None:
    project = make_project("there", bucket)
    project.table("sales", rows())
    project.dataset("sales", shards=SHARDS)
    order = project.fault(KEYS[1], "wait")
    process = start_run(project, "Refresh_sales", KEYS)
    wait_for(Path(f"{order}.waiting").exists, 200)
    folder = ObjectFolder(f"{bucket}/sales")
    upload = client(os.environ["AWS_ENDPOINT_URL"]).create_multipart_upload(
        Bucket=bucket.removeprefix("s3://"), Key=f"sales/shards/sales-train.tfrecord-{KEYS[1][6:]}"
    )
    assert upload["UploadId"] and folder.get(".lock")
    kill_group(process)
    order.unlink()
    forget(project)
    ran = project.refresh("sales", SHARDS)
    assert ran.ok, ran.problems()
    assert ids(folder.url) == list(range(ROWS))
    left = client(os.environ["AWS_ENDPOINT_URL"]).list_multipart_uploads(Bucket=bucket.removeprefix("s3://"))
    assert not left.get("Uploads")
    assert folder.get(".lock") is None
    assert all(report.ok for report in tfr_assets.verify(folder.url))


def test_a_step_that_is_killed_fails_alone(one_bucket: str, make_project: Callable[..., Project]) -> None:
    project = make_project("there", one_bucket)
    project.table("sales", rows())
    project.dataset("sales", shards=SHARDS)
    project.fault(KEYS[1], "kill")
    ran = project.refresh("sales", SHARDS)
    assert not ran.ok and set(ran.materialized("shards")) == {KEYS[0], KEYS[2]}
    again = project.refresh("sales", SHARDS)
    assert again.ok, again.problems()
    assert [key for key, shown in again.materialized("shards").items() if shown["written"]] == [KEYS[1]]


def test_runs_of_two_machines_are_held_apart(
    one_bucket: str, make_project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = make_project("here", one_bucket)
    here.table("sales", rows())
    here.dataset("sales", shards=SHARDS)
    order = here.fault(KEYS[0], "wait")
    process = start_run(here, "Refresh_sales", KEYS)
    wait_for(Path(f"{order}.waiting").exists, 200)
    there = make_project("there", one_bucket)
    there.table("sales", rows())
    there.dataset("sales", shards=SHARDS)
    monkeypatch.setenv("TFR_SPOOL", str(here.root.parent / "other"))
    second = start_run(there, "Refresh_sales", KEYS)

    def waits() -> bool:
        runs = there.instance.get_runs()
        events = there.instance.all_logs(runs[0].run_id) if runs else []
        return any("waiting for process" in entry.message for entry in events)

    wait_for(waits, 200)
    assert not any(e.dagster_event.is_step_start for e in there.instance.all_logs(there.instance.get_runs()[0].run_id))
    order.unlink()
    assert process.wait(200) == second.wait(200) == 0
    (run,) = there.instance.get_runs()
    assert not any(shown["written"] for shown in there.ran(run.run_id).materialized("shards").values())
    assert ids(f"{one_bucket}/sales") == list(range(ROWS))


@pytest.fixture
def command(make_project: Callable[..., Project], one_bucket: str) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Runs `tfr` in a project, which gets the dataset `sales`, whose data lies in a bucket."""
    project = make_project("there", f"{one_bucket}/lake")
    project.table("sales", rows())
    project.dataset("sales", shards=SHARDS)
    settings = {"DAGSTER_HOME": str(project.root / "instance"), "DAGSTER_DISABLE_TELEMETRY": "1"}

    def run(*arguments: str, **env: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "tfr_assets.cli", *arguments],
            cwd=project.root, env={**os.environ, **environment(project), **settings, **env},
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    return run


def test_commands_take_the_names_of_datasets(
    command: Callable[..., "subprocess.CompletedProcess[str]"], one_bucket: str, tmp_path: Path
) -> None:
    url = f"{one_bucket}/lake/sales"
    listed = command("list", "--json")
    assert '"shards_written": 0' in listed.stdout, listed.stderr
    ran = command("run", "sales", "--json")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (outcome,) = json.loads(ran.stdout)
    paths = {made["asset"]: made["path"] for made in outcome["made"]}
    assert (paths["shards"], paths["merged"]) == (f"{url}/shards", f"{url}/merged/sales-train.tfrecord")
    assert outcome["report"] == f"{url}/report.html"
    spool = str(tmp_path / FORGET)
    commands = (
        ["list"], ["verify", "sales"], ["inspect", "sales"], ["plan", "sales"],
        ["export", "sales", "sales.array_record"],
        ["bench", "readers", "sales", "--only", "columnar", "--repeats", "1"],
    )  # fmt: skip
    for arguments in commands:
        shutil.rmtree(spool)
        done = command(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        assert spool not in done.stdout + done.stderr and SECRET not in done.stdout + done.stderr
    files = f"{url}/shards/sales-train.tfrecord-00000-of-00003"
    for before, after, same in (("sales", url, True), (url, "sales", True), (files, url, False), (url, files, False)):
        compared = command("diff", before, after, "--json")
        assert compared.returncode == (0 if same else 1), compared.stderr
        assert json.loads(compared.stdout)["splits"][0]["kept"] == (ROWS if same else ROWS // SHARDS)
    listed = command("list", "--json")
    assert '"shards_written": 3' in listed.stdout and f'"folder": "{url}"' in listed.stdout
    ObjectFolder(url).delete(["shards/sales-train.tfrecord-00001-of-00003"])
    verified = command("verify", "sales")
    assert verified.returncode == 1 and f"{url}/shards/sales-train.tfrecord-00001-of-00003" in verified.stdout
    refused = command("publish", "sales", f"{one_bucket}/elsewhere")
    assert refused.returncode == 2 and f"{url} lies in an object store already" in refused.stderr


def test_the_project_says_where_its_data_lies(
    make_project: Callable[..., Project], one_bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project("there")
    project.table("sales", rows())
    project.dataset("sales", shards=SHARDS)
    (project.root / project.package / "definitions.py").unlink()
    with (project.root / "pyproject.toml").open("a") as settings:
        settings.write(f"\n[tool.tfr-assets]\ndata = '{one_bucket}/lake'\n")
    said = {"DAGSTER_HOME": str(project.root / "instance"), "DAGSTER_DISABLE_TELEMETRY": "1", "TFR_DATA": ""}
    command = [sys.executable, "-m", "tfr_assets.cli", "--project", str(project.root), "run", "sales"]
    env = environment(project) | said
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (project.root / "data").exists() and not (tmp_path / "data").exists()
    assert not any(name.startswith(".steps/") for name in contents(f"{one_bucket}/lake"))
    forget(project)
    monkeypatch.delenv("TFR_DATA", raising=False)
    monkeypatch.setenv("TFR_PROJECT", str(project.root))
    assert ids("sales") == list(range(ROWS))


def test_functions_take_the_names_of_datasets(
    one_bucket: str, make_project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project("there", one_bucket)
    project.table("sales", rows())
    project.dataset("sales", shards=SHARDS)
    assert project.refresh("sales", SHARDS).ok
    forget(project)
    monkeypatch.setenv("TFR_DATA", one_bucket)
    monkeypatch.chdir(tmp := project.root.parent)
    assert ids("sales") == list(range(ROWS))
    assert tfr_assets.open("sales").take([ROWS - 1, 0])["id"].tolist() == [ROWS - 1, 0]
    assert [n for batch in tfr_assets.read("sales", batch_size=100) for n in batch["id"].numpy()] == list(range(ROWS))
    for what in ("sales", f"{one_bucket}/sales"):
        for reader in ("merged", "resumable"):
            read = tfr_assets.read(what, batch_size=100, reader=reader)
            assert [n for batch in read for n in batch["id"].numpy()] == list(range(ROWS))
    assert [report.ok for report in tfr_assets.verify("sales")] == [True] * (SHARDS + 1)
    with pytest.raises(tfr_assets.ConfigError, match=f"there is no dataset 'other' in {one_bucket}"):
        tfr_assets.batches("other", 10)
    assert not (tmp / "data").exists()


def test_what_cannot_be_reached_is_said_in_a_sentence(
    command: Callable[..., "subprocess.CompletedProcess[str]"], one_bucket: str
) -> None:
    said = {
        f"{one_bucket}x/lake": f"there is no bucket {one_bucket}x; make it, or correct the URL",
        "ftp://host/lake": "TFR_DATA: ftp://host/lake: must be a URL that begins with s3://, gs://, az://",
        f"s3://me:{SECRET}@bucket/x": "TFR_DATA: s3://…@bucket: a URL must hold no credentials",
        "s3://": "TFR_DATA: s3://: names no bucket",
    }
    for data, says in said.items():
        for arguments in (["list"], ["run", "sales"], ["verify", "sales"]):
            done = command(*arguments, TFR_DATA=data, TFR_TEST_DATA=data)
            assert done.returncode in (1, 2), (data, arguments)
            assert says in done.stdout + done.stderr and "Traceback" not in done.stdout + done.stderr, done.stderr
            assert SECRET not in done.stdout + done.stderr


def test_slices(one_bucket: str, make_project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch) -> None:
    local, stored = make_project("here"), make_project("there", one_bucket)
    for project in (local, stored):
        for number, key in enumerate(("eu", "us")):
            (folder := project.root / "raw" / key).mkdir()
            pa.csv.write_csv(rows(1000 * number), folder / "sales.csv")
        project.dataset("sales", source="raw/{slice}/*.csv", slices={"values": ["eu", "us"]}, shards=2)
        for key in ("eu", "us"):
            if project is stored:
                forget(project)
            ran = project.run("Refresh_sales", tags={"dagster/partition": key})
            assert ran.ok, ran.problems()
    url = f"{one_bucket}/sales"
    assert compared_slices(contents(url)) == compared_slices(local_files(local, "sales"))
    monkeypatch.setenv("TFR_DATA", one_bucket)
    monkeypatch.chdir(stored.root.parent)
    assert ids("sales") == [*range(ROWS), *range(1000, 1000 + ROWS)]
    us = [n for batch in tfr_assets.batches("sales", 100, slices="us") for n in batch["id"].tolist()]
    assert us == list(range(1000, 1000 + ROWS))


_HOLD = """
import sys
from pathlib import Path
from tests.waiting import wait_for
from tfr_assets.storage.atomic import write_atomically
from tfr_assets.storage.run_lock import hold_folder
from tfr_assets.urls import mirror_of

folder, said = mirror_of(sys.argv[1]), Path(sys.argv[2])
with hold_folder(folder):
    (said / "holds").touch()
    wait_for((said / "end").exists, 60)
    write_atomically(folder / "news.json", b"{}")
"""


def test_machines_that_settle_something_together_wait_for_each_other(
    one_bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, other = f"{one_bucket}/sales/slices", os.environ | {"TFR_SPOOL": str(tmp_path / "other")}
    monkeypatch.setenv("TFR_SPOOL", str(tmp_path / FORGET))
    folder = mirror_of(url)
    process = subprocess.Popen([sys.executable, "-c", _HOLD, url, str(tmp_path)], env=other)
    wait_for((tmp_path / "holds").exists)
    threading.Timer(2, (tmp_path / "end").touch).start()  # longer than it takes to find that nobody holds it
    with hold_folder(folder):
        assert (tmp_path / "end").exists()
        assert (folder / "news.json").read_bytes() == b"{}"
    assert process.wait(60) == 0


def test_a_file_gets_into_one_slice_whichever_machine_appends_it(
    one_bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for machine, key in (("here", "000001"), ("there", None)):
        monkeypatch.setenv("TFR_SPOOL", str(tmp_path / machine))
        layout = Layout.of("sales", mirror_of(one_bucket))
        assert append_slice(layout, ["raw/1.csv", "raw/2.csv"]) == key
    assert append_slice(layout, ["raw/2.csv", "raw/3.csv"]) == "000002"
    assert appended_files(layout.of_slice("000002")) == ("raw/3.csv",)


def compared_slices(files: dict[str, bytes]) -> dict[str, bytes]:
    """As `compared`; the state of raw files tells their times."""
    of_machine = ("report.html", "raw/inventory.json", "raw/state.json")
    return {name: content for name, content in files.items() if not name.endswith(of_machine)}


def test_the_planned_number_of_shards_is_that_of_the_store(
    one_bucket: str, make_project: Callable[..., Project]
) -> None:
    project = make_project("there", one_bucket)
    project.table("sales", rows())
    project.dataset("sales", shards="auto")
    for _ in range(2):
        ran = project.run("Refresh_sales", ["train"])
        assert ran.ok, ran.problems()
        assert ids(f"{one_bucket}/sales") == list(range(ROWS))
        forget(project)


def test_another_machine_writes_the_shards_of_rows_that_were_landed_here(
    one_bucket: str, make_project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = make_project("here", one_bucket)
    pa.csv.write_csv(rows(), here.root / "raw" / "sales.csv")
    here.dataset("sales", source=str(here.root / "raw" / "sales.csv"), shards=SHARDS)
    assert here.run("Plan_shards_sales").ok
    assert not any("sales/shards" in name for name in contents(one_bucket))
    monkeypatch.setenv("TFR_SPOOL", str(here.root.parent / "other"))
    there = make_project("there", one_bucket)
    there.dataset("sales", source=str(here.root / "raw" / "sales.csv"), shards=SHARDS)
    ran = there.run("Refresh_sales", KEYS, assets=[dg.AssetKey(["sales", "shards"])])
    assert ran.ok, ran.problems()
    assert ids(f"{one_bucket}/sales") == list(range(ROWS))


def test_a_store_that_fails_now_and_then_delays_the_run(between: Between, make_project: Callable[..., Project]) -> None:
    url = f"s3://flaky-{os.getpid()}"
    client(between.endpoint).create_bucket(Bucket=url.removeprefix("s3://"))
    project = make_project("there", url)
    pa.csv.write_csv(rows(), project.root / "raw" / "sales.csv")
    project.dataset("sales", source="raw/sales.csv", shards=SHARDS)
    count = itertools.count(1)
    between.answer = lambda method, path, query: (503, "SlowDown") if next(count) % 7 == 0 else None
    between.lose = lambda method, path, query: 0.5 if next(count) % 11 == 0 and method == "GET" else None
    ran = project.refresh("sales", SHARDS)
    assert ran.ok, ran.problems()
    assert next(count) > 100
    assert ids(f"{url}/sales") == list(range(ROWS))


@pytest.mark.parametrize(("status", "code", "says"), [(400, "ExpiredToken", "expired"), (403, "AccessDenied", "permi")])
def test_a_store_that_refuses_in_the_middle_is_said_once_and_the_next_run_completes(
    between: Between, make_project: Callable[..., Project], status: int, code: str, says: str
) -> None:
    url = f"s3://refusing-{os.getpid()}-{status}"
    client(between.endpoint).create_bucket(Bucket=url.removeprefix("s3://"))
    project = make_project("there", url)
    project.table("sales", rows())
    project.dataset("sales", shards=SHARDS)
    name = "sales-train.tfrecord-00001-of-00003"
    between.answer = lambda method, path, query: (
        (status, code) if method in ("PUT", "POST") and path.endswith(f"shards/{name}") else None
    )
    ran = project.refresh("sales", SHARDS)
    assert not ran.ok and set(ran.materialized("shards")) == {KEYS[0], KEYS[2]}
    (said,) = ran.problems().values()
    assert says in said and f"{url}/sales/shards/{name}" in said and "Traceback" not in said and SECRET not in said
    between.answer = lambda method, path, query: None
    again = project.refresh("sales", SHARDS)
    assert again.ok, again.problems()
    assert ids(f"{url}/sales") == list(range(ROWS))


def test_sensors_and_schedules_look_at_the_store(one_bucket: str, make_project: Callable[..., Project]) -> None:
    project = make_project("there", one_bucket)
    project.table("sales", rows())
    project.dataset("sales", shards=SHARDS, schedule="0 6 * * *")

    def look(cursor: str | None = None) -> tuple[str | None, str]:
        sensor = project.repository().get_sensor_def("sales_current")
        with dg.build_sensor_context(instance=project.instance, cursor=cursor) as context:
            ticked = sensor.evaluate_tick(context)
        return ticked.cursor, ticked.skip_message or ""

    def requested() -> list[dg.RunRequest]:
        with dg.build_schedule_context(instance=project.instance) as context:
            return list(
                project.repository().get_schedule_def("sales_schedule").evaluate_tick(context).run_requests or []
            )

    assert look() == (None, "nothing was materialized yet")
    (request,) = requested()
    ran = project.run("Refresh_sales", KEYS, tags=dict(request.tags))
    assert ran.ok, ran.problems()
    forget(project)
    assert requested() == []
    cursor, said = look()
    assert said == "All 3 shards are those of the current settings and raw data"
    ObjectFolder(f"{one_bucket}/sales").delete(["shards/sales-train.tfrecord-00001-of-00003"])
    cursor, said = look(cursor)
    assert said.startswith("Of 3 shards, 1 missing: train-00001-of-00003")
    assert len(requested()) == 1
