"""`deploy/`: what is in it fits the schemas of Kubernetes, and what it starts does what it must."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import dagster as dg
import pytest
import yaml

from tests.waiting import wait_for
from tfr_assets.errors import ConfigError
from tfr_assets.layout import shard_keys

from .conftest import SHARDS, numbers
from .postgres import WHY_NOT, postgres, program
from .project import OVERRIDES, Project, environment
from .test_components_celery import Redis

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
KEYS = shard_keys("train", SHARDS)


def read(path: str) -> Any:
    return yaml.safe_load((DEPLOY / path).read_text())


def manifests() -> list[dict[str, Any]]:
    listed = read("k8s/kustomization.yaml")["resources"]
    return [each for name in listed for each in yaml.safe_load_all((DEPLOY / "k8s" / name).read_text())]


def values(tree: Any, key: str) -> Iterator[Any]:
    """All values of a key, wherever it is."""
    for name, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        if name == key:
            yield value
        yield from values(value, key)


def validate(resource: dict[str, Any]) -> None:
    validator = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate")
    validator.validate(resource, "1.32", strict=True)


def test_manifests_fit_the_schemas_of_kubernetes_and_each_other() -> None:
    made = manifests()
    for resource in made:
        validate(resource)
    assert len({(each["kind"], each["metadata"]["name"]) for each in made}) == len(made)
    names = {each["metadata"]["name"] for each in made if each["kind"] == "ConfigMap"}
    names |= {each["name"] for each in read("k8s/kustomization.yaml")["configMapGenerator"]}
    assert {each["name"] for each in values(made, "configMapRef")} <= names
    assert {each["name"] for each in values(made, "configMap")} <= names
    assert {each["name"] for each in values(made, "secretRef")} == {"tfr-postgres"}  # which the docs tell to make
    launcher = read("k8s/dagster.yaml")["run_launcher"]["config"]
    assert launcher["instance_config_map"] in names and set(launcher["env_config_maps"]) <= names
    assert launcher["service_account_name"] in {e["metadata"]["name"] for e in made if e["kind"] == "ServiceAccount"}
    claims = {each["metadata"]["name"] for each in made if each["kind"] == "PersistentVolumeClaim"}
    assert {each["claimName"] for each in values([made, launcher], "persistentVolumeClaim")} == claims


@pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl")
def test_kustomize_builds_all_of_it() -> None:
    built = subprocess.run(["kubectl", "kustomize", str(DEPLOY / "k8s")], check=True, capture_output=True, text=True)
    resources = list(yaml.safe_load_all(built.stdout))
    (instance,) = [each for each in resources if each["metadata"]["name"] == "tfr-dagster"]
    assert yaml.safe_load(instance["data"]["dagster.yaml"]) == read("k8s/dagster.yaml")
    for resource in resources:
        validate(resource)


@pytest.mark.parametrize("file", ["dagster.yaml", "k8s/dagster.yaml"])
def test_instances_differ_from_the_projects_own_where_they_must(file: str) -> None:
    own, there = yaml.safe_load((ROOT / "dagster.yaml").read_text()), read(file)
    other = {"storage", "local_artifact_storage", "compute_logs"} | ({"run_launcher"} if "k8s" in file else set())
    assert {key: value for key, value in there.items() if key not in other} == {
        key: value for key, value in own.items() if key not in other
    }
    (block,) = re.findall(r"```text\n(storage:\n.*?)```", (ROOT / "docs" / "operation.md").read_text(), re.DOTALL)
    assert there["storage"] == yaml.safe_load(block)["storage"]


class Api(BaseHTTPRequestHandler):
    """As much of Kubernetes' API as Dagster asks for when it starts a step, on a cluster where every job fails."""

    jobs: ClassVar[dict[str, Any]] = {}

    def do_POST(self) -> None:
        job = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/jobs"):
            self.jobs[job["metadata"]["name"]] = job
        self._answer(201, job)

    def do_GET(self) -> None:
        job = self.jobs.get(self.path.partition("?")[0].removesuffix("/status").rpartition("/")[2])
        if job is None:
            empty = {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": []}
            self._answer(200, empty)
        else:
            self._answer(200, job | {"status": {"failed": 1}})

    def do_DELETE(self) -> None:
        self._answer(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})

    def log_message(self, *args: object) -> None:
        pass

    def _answer(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        path = tmp_path / "kubeconfig"
        cluster = {"name": "here", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
        context = {"name": "here", "context": {"cluster": "here", "user": "me"}}
        user = {"name": "me", "user": {"token": "none"}}
        config = {"clusters": [cluster], "contexts": [context], "users": [user], "current-context": "here"}
        path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **config}))
        yield path
        server.shutdown()


def test_a_step_is_a_job_of_kubernetes(project: Project, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("dagster_k8s", reason="needs the extra k8s")
    monkeypatch.setenv("TFR_EXECUTOR", "k8s")
    project.table("podded", numbers(10))
    project.dataset("podded", shards=1)
    launcher = read("k8s/dagster.yaml")["run_launcher"]
    launcher["config"] |= {"load_incluster_config": False, "kubeconfig_file": str(kubeconfig)}
    resources = {"requests": {"memory": "500Mi"}, "limits": {"memory": "1Gi"}}
    config = {"job_image": launcher["config"]["job_image"], "resources": resources}
    job = project.repository().get_job("Refresh_podded")
    assert dg.validate_run_config(job, {"execution": {"config": config}})
    with pytest.raises(dg.DagsterInvalidConfigError, match="no_such_setting"):
        dg.validate_run_config(job, {"execution": {"config": {"no_such_setting": 1}}})
    with pytest.raises(ConfigError, match="TFR_EXECUTOR=k8s needs the run launcher of dagster-k8s: write"):
        project.run("Refresh_podded", shard_keys("train", 1))
    (kubeconfig.parent / "instance").mkdir()
    with dg.DagsterInstance.local_temp(
        str(kubeconfig.parent / "instance"), {**OVERRIDES, "run_launcher": launcher}
    ) as instance:
        monkeypatch.setattr(project, "instance", instance)
        ran = project.run("Refresh_podded", shard_keys("train", 1), config={"execution": {"config": config}})
    assert not ran.ok  # no pod ran
    (made,) = Api.jobs.values()
    validate(made)
    (container,) = made["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "tfr-assets:latest" and container["resources"] == resources
    assert container["args"][:3] == ["dagster", "api", "execute_step"]
    assert "podded__raw" in " ".join(container["args"]) + json.dumps(made["metadata"])
    assert container["envFrom"] == [
        {"configMapRef": {"name": "tfr-settings"}},
        {"secretRef": {"name": "tfr-postgres"}},
    ]


@pytest.mark.skipif(not program("initdb"), reason=WHY_NOT)
@pytest.mark.skipif(not shutil.which("redis-server"), reason="needs redis-server")
def test_the_workers_of_compose_make_a_dataset(project: Project, tmp_path: Path) -> None:
    for package in ("dagster_celery", "dagster_postgres"):
        pytest.importorskip(package)
    compose = read("compose.yaml")
    worker = compose["services"]["worker"]
    assert set(worker["depends_on"]) <= set(compose["services"])
    assert {each.partition(":")[0] for each in worker["volumes"]} <= {*compose["volumes"], "./dagster.yaml"}
    project.table("spread", numbers())
    project.dataset("spread", shards=SHARDS, shards_per_step=2)
    home = tmp_path / "dagster"
    home.mkdir()
    (home / "dagster.yaml").write_text((DEPLOY / "dagster.yaml").read_text().replace("/shared", str(tmp_path)))
    redis, running = Redis(tmp_path), []
    with postgres() as server:
        here = {"TFR_CELERY_BROKER": redis.url, **server}
        assert set(here) <= set(worker["environment"])
        variables = environment(project) | worker["environment"] | here | {"DAGSTER_HOME": str(home)}
        try:
            for number in range(worker["deploy"]["replicas"]):
                log = (tmp_path / f"worker{number}.log").open("wb")
                command = [sys.executable, "-m", *shlex.split(worker["command"]), "-n", f"worker{number}@%h"]
                running.append(
                    subprocess.Popen(
                        command, cwd=project.root, env=variables, stdout=log, stderr=log, start_new_session=True
                    )
                )
            for number in range(len(running)):
                wait_for(lambda log=tmp_path / f"worker{number}.log": b" ready." in log.read_bytes(), 200)
            run = [sys.executable, "-m", "dagster", "job", "execute", "-m", f"{project.package}.definitions"]
            tags = {f"dagster/asset_partition_range_{end}": key for end, key in (("start", KEYS[0]), ("end", KEYS[-1]))}
            run += ["-j", "Refresh_spread", "--tags", json.dumps(tags)]
            done = subprocess.run(run, cwd=project.root, env=variables, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr[-4000:]
        finally:
            for process in running:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            redis.stop()
        took = [(tmp_path / f"worker{number}.log").read_text().count("succeeded in") for number in range(2)]
        assert all(took) and sum(took) == 2 + 6  # two steps of shards; raw, plan, commit, merged, and two of checks
    assert project.layout("spread").merged_path().is_file()
