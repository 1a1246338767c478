"""Dagster's storage on PostgreSQL, as docs/operation.md has it: a real server, and many runs that write at once."""

import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
import yaml

from tfr_assets.layout import shard_keys

from .conftest import numbers
from .postgres import WHY_NOT, postgres, program
from .project import OVERRIDES, Project, environment

pytest.importorskip("dagster_postgres", reason="needs the extra postgres")
WRITERS = 8
DOCUMENT = Path(__file__).parents[2] / "docs" / "operation.md"


pytestmark = pytest.mark.skipif(not program("initdb"), reason=WHY_NOT)


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, str]]:
    with postgres() as variables:
        yield variables


def block() -> dict[str, object]:
    """The block that the documentation tells to put in place of `storage`."""
    (text,) = re.findall(r"```text\n(storage:\n  postgres:.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    settings: dict[str, object] = yaml.safe_load(text)
    return settings


_RUN = """
import dagster as dg
from dagster._core.definitions.reconstruct import ReconstructableRepository
if __name__ == "__main__":
    repository = ReconstructableRepository.for_module({module!r}, "defs", {root!r})
    with dg.DagsterInstance.get() as instance:
        result = dg.execute_job(repository.get_reconstructable_job({job!r}), instance=instance, tags={tags!r})
        raise SystemExit(0 if result.success else 1)
"""


def test_eight_runs_write_to_it_at_once(project: Project, server: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump({**OVERRIDES, **block()}))
    (project.root / "raw" / "events").mkdir()
    keys = [f"part{number}" for number in range(WRITERS)]
    for number, key in enumerate(keys):
        project.table(f"events/{key}", numbers(100, 100 * number))
    source = "raw/events/{slice}.parquet"
    project.dataset("events", source=source, slices={"values": keys}, shards=4)
    variables = environment(project) | server | {"DAGSTER_HOME": str(tmp_path), "TFR_WORKERS": "1"}
    with pytest.MonkeyPatch.context() as patch:  # as the docs say: Dagster's tables, before many use it at once
        for name, value in server.items():
            patch.setenv(name, value)
        dg.DagsterInstance.from_config(str(tmp_path)).dispose()
    processes = []
    for key in keys:
        script = project.root / f"run_{key}.py"
        module = f"{project.package}.definitions"
        tags = {"dagster/partition": key}
        script.write_text(
            textwrap.dedent(_RUN).format(module=module, root=str(project.root), job="Refresh_events", tags=tags)
        )
        log = (project.root / f"{key}.log").open("wb")
        processes.append(subprocess.Popen([sys.executable, str(script)], env=variables, stdout=log, stderr=log))
    codes = [process.wait(900) for process in processes]
    failed = [key for key, code in zip(keys, codes, strict=True) if code]
    assert not failed, "\n".join((project.root / f"{key}.log").read_text()[-8000:] for key in failed)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.items():
            patch.setenv(name, value)
        with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
            assert type(instance.event_log_storage).__name__ == "PostgresEventLogStorage"
            runs = instance.get_runs()
            assert len(runs) == WRITERS and all(run.is_success for run in runs)
            for part in ("raw", "shards", "merged"):
                assert instance.get_materialized_partitions(dg.AssetKey(["events", part])) == set(keys)
            for run in runs:
                events = [log.dagster_event for log in instance.all_logs(run.run_id) if log.dagster_event]
                over = [event.step_key for event in events if event.event_type_value == "STEP_SUCCESS"]
                assert sum("write_shard" in str(step) for step in over) == len(shard_keys("train", 4))
    assert not any(server["TFR_POSTGRES_PASSWORD"].encode() in path.read_bytes() for path in tmp_path.rglob("*.yaml"))
