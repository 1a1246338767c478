"""Dagster's share: how fast the definitions load, what an empty shard step costs, how large a shard's process gets."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from tests.bench.measuring import Line
from tests.components.project import Project

_EMPTY_SHARDS = 16
_MEMORY_LIMIT = 400e6
_SMALL, _LARGE = 100_000, 4_000_000  # rows; about 30 MB and 1.2 GB of TFRecord
_LOAD = """
import json, sys, time
started = time.perf_counter()
from tfr_assets.definitions import defs
defs()
print(json.dumps([time.perf_counter() - started, sorted({"tensorflow", "numba"} & set(sys.modules))]))
"""


def measure_steps(folder: Path) -> list[Line]:
    """Returns the lines of this part; works in `folder`."""
    sys.path.insert(0, str(folder))
    project = Project(folder)
    return [_measure_loading(), _measure_empty_steps(project), _measure_memory(project)]


def _measure_loading() -> Line:
    command = [sys.executable, "-c", _LOAD]
    loads = [json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(3)]
    seconds, heavy = sorted(loads)[1]
    detail = f"imports {' and '.join(heavy) or 'neither TensorFlow nor numba'}"
    return Line("loading the definitions", f"{seconds:.1f} s", "≤ 3 s", seconds <= 3 and not heavy, detail)


def _measure_empty_steps(project: Project) -> Line:
    project.table("tiny", pa.table({"n": range(_EMPTY_SHARDS)}))
    project.dataset("tiny", shards=_EMPTY_SHARDS)
    run = project.refresh("tiny", _EMPTY_SHARDS)
    assert run.ok, run.problems()
    times = {"STEP_WORKER_STARTING": [], "STEP_SUCCESS": []}  # type: dict[str, list[float]]
    for log in project.instance.all_logs(run.run.run_id):
        event = log.dagster_event
        if event and event.event_type_value in times and "write_shard" in (event.step_key or ""):
            times[event.event_type_value].append(log.timestamp)
    took = max(times["STEP_SUCCESS"]) - min(times["STEP_WORKER_STARTING"])
    each = took / _EMPTY_SHARDS
    detail = f"{_EMPTY_SHARDS} steps in {took:.1f} s"
    return Line("a shard step with next to nothing to do, wall time", f"{each:.2f} s", "≤ 0.5 s", each <= 0.5, detail)


def _measure_memory(project: Project) -> Line:
    peaks = {}
    for rows in (_SMALL, _LARGE):
        name = f"rows_{rows}"
        project.table(name, _wide(rows), row_group_size=100_000)
        project.dataset(name, shards=2)
        run = project.refresh(name, 2)
        assert run.ok, run.problems()
        peaks[rows] = max(shard["peak_memory_bytes"] for shard in run.materialized("shards").values())
    detail = " and ".join(f"{peak / 1e6:.0f} MB for {rows:,} rows" for rows, peak in peaks.items())
    largest = max(peaks.values())
    return Line(
        "peak memory of a shard's process", f"{largest / 1e6:.0f} MB", "< 400 MB", largest < _MEMORY_LIMIT, detail
    )


def _wide(rows: int) -> pa.Table:
    numbers = np.arange(rows)
    columns: dict[str, pa.Array] = {f"int_{k}": pa.array(numbers * (k + 1)) for k in range(8)}
    columns |= {f"float_{k}": pa.array(numbers / (k + 1), pa.float32()) for k in range(4)}
    return pa.table(columns | {"text": pa.array([f"row number {n}" for n in range(rows)])})
