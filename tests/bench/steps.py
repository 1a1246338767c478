"""Dagster's share: what a command, its definitions and an empty step cost, and how large a shard's process gets."""

import io
import json
import os
import pickle
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import dagster as dg
import numpy as np
import pyarrow as pa
from PIL import Image

from tests.bench.measuring import Line
from tests.components.project import OVERRIDES, Project

_ROOT = Path(__file__).parents[2]
_EMPTY_SHARDS = 16
_PHOTOGRAPHS, _DISTINCT, _PHOTOGRAPH_SHARDS = 4_000, 40, 8
_MEMORY_LIMIT = 400e6
_SMALL, _LARGE = 100_000, 4_000_000  # rows; about 30 MB and 1.2 GB of TFRecord
_LOAD = """
import json, sys, time
started = time.perf_counter()
from tfr_assets.definitions import defs
defs()
print(json.dumps([time.perf_counter() - started, sorted({"tensorflow", "numba"} & set(sys.modules))]))
"""
_SCRIPT = """
import pickle, sys, time
from pathlib import Path
from tfr_assets.writing.merged import merge_shards
from tfr_assets.writing.plan import plan_shards
from tfr_assets.writing.raw import materialize_raw
from tfr_assets.writing.shard import write_shard
started = time.perf_counter()
dataset = pickle.loads(Path(sys.argv[1]).read_bytes())
materialize_raw(dataset)
plan = plan_shards(dataset)
for shard in plan.shards:
    write_shard(plan, shard)
merge_shards(dataset)  # verifies all shards, and what it makes of them
print(time.perf_counter() - started)
"""


def measure_steps(folder: Path) -> list[Line]:
    """Returns the lines of this part; works in `folder`."""
    sys.path.insert(0, str(folder))
    os.environ["TFR_DATA"] = str(folder / "data")
    project = Project(folder)
    project.instance = _instance(folder / "instance")
    return [
        *_measure_commands(folder / "home"),
        _measure_make_run(folder / "installed"),
        _measure_loading(),
        _measure_empty_steps(project),
        _measure_photographs(project, folder / "photographs"),
        _measure_memory(project),
    ]


def _instance(home: Path) -> dg.DagsterInstance:
    """Returns an instance with the storage of the project's `dagster.yaml`."""
    module = "tfr_assets.components.runs.sqlite"
    storage = {"module": module, "class": "KeptSqliteStorage", "config": {"base_dir": str(home)}}
    logs = {"module": module, "class": "DirectLogManager", "config": {"base_dir": str(home / "logs")}}
    overrides = {**OVERRIDES, "storage": {"custom": storage}, "compute_logs": logs}
    return dg.DagsterInstance.local_temp(str(home), overrides=overrides)


def _measure_commands(home: Path) -> list[Line]:
    """Measures commands from the key press on, as medians of three; flights are 336,776 rows in 16 shards."""
    home.mkdir()
    shutil.copy(_ROOT / "dagster.yaml", home)
    _seconds(home, "run", "flights")  # kernels are compiled, databases are made
    written = []
    for _ in range(3):
        shutil.rmtree(home / "data")
        written.append(_seconds(home, "run", "flights"))
    again = [_seconds(home, "run", "flights") for _ in range(3)]
    listed = [_seconds(home, "list") for _ in range(3)]
    return [
        _command("tfr run flights, to verified shards, merged and checked", written, 6),
        _command("tfr run flights, nothing to write", again, 4),
        _command("tfr list", listed, 1.5),
    ]


def _measure_make_run(home: Path) -> Line:
    """Measures what `make run` runs once everything is installed: all five bundled datasets, of which nothing is there.

    Kernels are compiled before, as the installation does.
    """
    home.mkdir()
    shutil.copy(_ROOT / "dagster.yaml", home)
    kernels = {"NUMBA_CACHE_DIR": str(home / "kernels")}
    compiling = _seconds(home, module="tfr_assets.compile_kernels", **kernels)
    commands = (("run", "--readers", "flights"), ("run", "tones", "topics", "mixed", "digits"))
    seconds = sum(_seconds(home, *command, **kernels) for command in commands)
    detail = f"installing compiles kernels in {compiling:.0f} s"
    return Line("make run after installation, five datasets", f"{seconds:.0f} s", "≤ 60 s", seconds <= 60, detail)


def _seconds(home: Path, *arguments: str, module: str = "tfr_assets.cli", **variables: str) -> float:
    own = {"DAGSTER_HOME": str(home), "TFR_DATA": str(home / "data"), "TFR_PROJECT": str(_ROOT)} | variables
    environment = os.environ | own | {"PYTHONPATH": str(_ROOT)}
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", module, *arguments], cwd=home, env=environment, check=True, capture_output=True
    )
    return time.perf_counter() - started


def _command(what: str, seconds: list[float], most: float) -> Line:
    median = statistics.median(seconds)
    return Line(what, f"{median:.1f} s", f"≤ {most:g} s", median <= most, f"{min(seconds):.1f} – {max(seconds):.1f} s")


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
    return Line("a shard step with next to nothing to do, wall time", f"{each:.2f} s", "≤ 0.15 s", each <= 0.15, detail)


def _measure_photographs(project: Project, home: Path) -> Line:
    """Measures `tfr run` of photographs against a script that does the same work without Dagster."""
    photographs = [_photograph(seed) for seed in range(_DISTINCT)]
    folder = project.root / "raw" / "photographs"
    for number in range(_PHOTOGRAPHS):
        path = folder / f"class_{number % 10}" / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(photographs[number % _DISTINCT])
    project.dataset("photographs", source={"images": str(folder)}, shards=_PHOTOGRAPH_SHARDS)
    home.mkdir()
    shutil.copy(_ROOT / "dagster.yaml", home)
    scripts, commands, within = [], [], []
    for _ in range(3):
        dataset = replace(project.load("photographs"), root=home / "script")
        (home / "dataset").write_bytes(pickle.dumps(dataset))
        started = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", _SCRIPT, home / "dataset"], capture_output=True, check=True)
        scripts.append(time.perf_counter() - started)
        within.append(float(done.stdout))
        commands.append(_seconds(home, "run", "photographs", TFR_PROJECT=str(project.root)))
        shutil.rmtree(home / "script")
        shutil.rmtree(home / "data")
    script, command = statistics.median(scripts), statistics.median(commands)
    ratio = command / script
    detail = f"{command:.1f} s, a script {script:.1f} s, {statistics.median(within):.1f} s of it without its imports"
    what = f"tfr run of {_PHOTOGRAPHS:,} photographs of {len(photographs[0]) / 1e3:.0f} kB, checked and merged"
    return Line(what, f"{ratio:.1f} times a script", "≤ 3", ratio <= 3, detail)


def _photograph(seed: int) -> bytes:
    chance = np.random.default_rng(seed)
    small = Image.fromarray(chance.integers(0, 256, (24, 32, 3), np.uint8))
    smooth = np.asarray(small.resize((480, 320), Image.Resampling.BICUBIC), np.int16)
    noisy = np.clip(smooth + chance.integers(-12, 13, smooth.shape), 0, 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(noisy).save(file, "JPEG", quality=82)
    return file.getvalue()


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
