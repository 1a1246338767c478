"""Steps as jobs of Ray: a real cluster of two nodes, on this machine."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pytest

from tests.waiting import wait_for

from .conftest import SHARDS
from .project import Project, environment, start_run
from .test_components_celery import KEYS, files_of

pytest.importorskip("dagster_ray", reason="needs the extra ray")
pytest.importorskip("ray.dashboard.modules.job.sdk", reason="needs ray[default]")
from ray.job_submission import JobSubmissionClient

RAY = Path(sys.executable).parent / "ray"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _takes_jobs(address: str) -> bool:
    """Whether the agents of the nodes are there, which come after the nodes."""
    try:
        JobSubmissionClient(address).submit_job(entrypoint="true", entrypoint_num_cpus=1)
    except (RuntimeError, ConnectionError):
        return False
    return True


@pytest.fixture
def cluster(project: Project) -> Iterator[str]:
    """The address of the jobs of two nodes with one processor each, whose jobs can import the project."""
    port, jobs = free_port(), free_port()
    variables = environment(project) | {
        "PATH": f"{RAY.parent}{os.pathsep}{os.environ['PATH']}",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    common = ["--num-cpus", "1", "--object-store-memory", "100000000", "--disable-usage-stats"]
    head = ["--head", "--port", str(port), "--dashboard-port", str(jobs), "--include-dashboard", "true"]
    nodes: list[subprocess.Popen[bytes]] = []
    address = f"http://127.0.0.1:{jobs}"
    try:
        for number, options in enumerate((head, ["--address", f"127.0.0.1:{port}"])):
            agent = ["--dashboard-agent-listen-port", str(free_port())]
            command = [str(RAY), "start", "--block", "--node-ip-address", "127.0.0.1", *options, *agent, *common]
            log = project.root / f"ray{number}.log"
            with log.open("wb") as out:
                nodes.append(subprocess.Popen(command, env=variables, cwd=project.root, stdout=out, stderr=out))
            wait_for(lambda log=log: b"Ray runtime started." in log.read_bytes(), 200)  # type: ignore[misc]
        wait_for(lambda: _takes_jobs(address), 200)
        yield address
    finally:
        for node in reversed(nodes):
            node.terminate()
            node.wait(120)


def test_two_nodes_make_what_one_machine_makes(
    project: Project, make_dataset: Callable[..., str], cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFR_EXECUTOR", "ray")
    monkeypatch.setenv("RAY_ADDRESS", cluster)
    name = make_dataset("rayed", shards_per_step=2)
    process = start_run(project, f"Refresh_{name}", KEYS)
    code = process.wait(900)
    run = project.instance.get_runs(dg.RunsFilter(job_name=f"Refresh_{name}"))[0]
    ran = project.ran(run.run_id)
    assert code == 0 and ran.ok, ran.problems() or (project.root / "start_run.log").read_text()[-3000:]
    assert set(ran.materialized("shards")) == set(KEYS)
    jobs = [event for event in ran.events if "in Ray job dagster-step-" in str(event.message)]
    assert len(jobs) == 2 + 6  # two steps of shards; raw, plan, commit, merged, and two of checks
    done = JobSubmissionClient(cluster).list_jobs()
    assert len({job.driver_node_id for job in done if str(job.submission_id).startswith("dagster-step-")}) == 2
    made = files_of(project, name)
    monkeypatch.delenv("TFR_EXECUTOR")
    shutil.rmtree(project.layout(name).folder)
    assert project.refresh(name, SHARDS).ok
    assert files_of(project, name) == made and len(made) == SHARDS
