"""A mistake in one dataset's YAML stays there: it is shown in its place, and all others load and run."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tfr_assets
from tfr_assets.components.config.load import dataset_names
from tfr_assets.components.config.yaml_files import check_yaml
from tfr_assets.errors import ConfigError

GOOD = "type: tfr_assets.TFRecordDataset\nattributes:\n  source: few.csv\n  shards: 2\n"
LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)
HOSTILE = {
    "a number of 5,000 digits": (
        GOOD.replace("2", "9" * 5000),
        r"line 4: a number of 5,000 digits; write it in quotes",
    ),
    "a list 3,000 deep": ("a: " + "[" * 3000 + "]" * 3000, "line 1: is nested more than 50 deep"),
    "a mapping 3,000 deep": ("{a: " * 3000 + "1" + "}" * 3000, "line 1: is nested more than 50 deep"),
    "blocks 3,000 deep": ("- " * 3000 + "x", "line 1: is nested more than 50 deep"),
    "aliases of aliases": (LAUGHS, r"line \d+: has more than 10,000 values, with aliases \(`\*name`\) unfolded"),
    "an alias of what it is in": ("a: &a [*a]\n" + GOOD, "."),
    "no UTF-8": (
        GOOD.encode() + b"  description: caf\xe9\n",
        "line 5: holds bytes that are not UTF-8 text; save the file",
    ),
    "no YAML": ("type: [no, such", r"line 1: is no YAML: .* in line 2"),
    "nothing": ("# to be written\n", "is empty; it starts with `type:"),
    "a file without end": ("# " + "x" * (2 << 20), "a dataset's YAML has 1,048,576 at most"),
    "no mapping": ("[1, 2]\n", "."),
    "another type": ("type: no_such.Component\nattributes: {}\n", "no_such"),
    "an unknown field": (GOOD + "  shrads: 3\n", r"line 5: shrads: .*did you mean 'shards'"),
    "fields that do not go together": (GOOD + "  splits: {train: 0.5}\n", "splits"),
}


@pytest.mark.parametrize("name", ["a number of 5,000 digits", *list(HOSTILE)[1:5], "no UTF-8", "no YAML", "nothing"])
def test_what_no_loader_can_read_is_named_with_its_line(name: str, tmp_path: Path) -> None:
    content, says = HOSTILE[name]
    (file := tmp_path / "defs.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError, match=says) as caught:
        check_yaml(file)
    assert str(file) in str(caught.value)


def test_the_bundled_datasets_pass() -> None:
    for name in dataset_names():
        check_yaml(Path(tfr_assets.__file__).parent / "defs" / name / "defs.yaml")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a good dataset, and one broken in each way."""
    root = tmp_path_factory.mktemp("broken")
    package = Path(tfr_assets.__file__).parent
    shutil.copytree(package, root / "tfr_assets", ignore=shutil.ignore_patterns("__pycache__", "defs"))
    shutil.copy(package.parent / "pyproject.toml", root)
    (root / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    (root / "few.csv").write_text("n,word\n" + "".join(f"{n},w{n}\n" for n in range(100)))
    for number, (content, _) in enumerate([(GOOD, ""), *HOSTILE.values()]):
        folder = root / "tfr_assets" / "defs" / (f"broken_{number}" if number else "good")
        folder.mkdir(parents=True)
        (folder / "defs.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    for name in ("fine", "no-name", "no.name"):  # the names of the latter are the mistake
        (root / "tfr_assets" / "defs" / name).mkdir()
        (root / "tfr_assets" / "defs" / name / "defs.yaml").write_text(GOOD)
    for path in ("here/twin", "there/twin", "good/.ipynb_checkpoints", ".hidden/good"):
        (root / "tfr_assets" / "defs" / path).mkdir(parents=True)
        (root / "tfr_assets" / "defs" / path / "defs.yaml").write_text(GOOD)
        (root / "tfr_assets" / "defs" / path / "fails-checkpoint.py").write_text(
            "raise ValueError" if "." in path else ""
        )
    (root / "tfr_assets" / "defs" / "__init__.py").touch()
    (root / "tfr_assets" / "defs" / "more.py").write_text(
        "import dagster as dg\n\n\n@dg.asset\ndef more() -> None:\n    pass\n"
    )
    (root / "tfr_assets" / "defs" / "later.py").write_text(
        "import dagster as dg\n\n\n@dg.definitions\ndef later():\n    return dg.Definitions([dg.AssetSpec('later')])\n"
    )
    return root


def run(home: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    environment = {
        **os.environ, "TFR_DATA": str(home / "data"), "DAGSTER_HOME": str(home), "PYTHONPATH": str(home),
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, check=False, cwd=home, timeout=300
    )


def test_the_others_load_and_the_broken_ones_say_why(home: Path) -> None:
    script = """
import json
from tfr_assets.definitions import defs
loaded = defs()
graph = loaded.resolve_asset_graph()
said = {key.path[0]: graph.get(key).description for key in graph.get_all_asset_keys() if key.path[-1] == "raw"}
print(json.dumps({"said": said, "keys": [k.to_user_string() for k in graph.get_all_asset_keys()],
    "jobs": loaded.resolve_job_def("Refresh_good") and sorted(loaded.get_repository_def().job_names)}))
"""
    done = run(home, "-c", script)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert {"good/raw", "good/shards", "good/merged", "fine/merged", "more", "later"} <= set(found["keys"])
    assert {f"Refresh_broken_{number}" for number in range(1, len(HOSTILE) + 1)} <= set(found["jobs"])
    assert sum(job.startswith("Refresh_no_name_") for job in found["jobs"]) == 2
    for number in range(1, len(HOSTILE) + 1):
        assert "cannot be loaded" in found["said"][f"broken_{number}"]
        assert f"broken_{number}/defs.yaml" in found["said"][f"broken_{number}"]
    for folder in ("here", "there"):
        assert f"{folder}/twin/defs.yaml" in found["said"]["twin"]


def test_the_command_line_lists_all_and_loads_the_good_one(home: Path) -> None:
    listed = run(home, "-m", "tfr_assets.cli", "list", "--json")
    assert listed.returncode == 2
    rows = {row["name"]: row for row in json.loads(listed.stdout)}
    assert rows["good"]["shards"] == 2
    assert ".ipynb_checkpoints" not in rows
    assert re.search(r"two datasets are called 'twin': .*here/twin.* and .*there/twin", rows["twin"]["error"])
    for number, (_, says) in enumerate(HOSTILE.values(), 1):
        assert re.search(says, rows[f"broken_{number}"]["error"], re.DOTALL), rows[f"broken_{number}"]["error"]
        assert f"broken_{number}" in listed.stderr
    assert "Traceback" not in listed.stderr
    script = "from tfr_assets.components.config.load import load_definitions as load\n"
    script += "load('good').resolve_job_def('Refresh_good')"
    good = run(home, "-c", script)  # what `tfr run` executes; the run itself would compile the copy's kernels again
    assert good.returncode == 0, good.stderr[-3000:]
    bad = run(home, "-m", "tfr_assets.cli", "run", "broken_4")
    assert bad.returncode == 2
    assert "nested more than 50 deep" in bad.stderr and "Traceback" not in bad.stderr


def test_a_run_of_a_broken_dataset_fails_with_the_message(home: Path) -> None:
    script = """
import dagster as dg
from tfr_assets.definitions import defs
job = defs().resolve_job_def("Refresh_broken_4")
ran = job.execute_in_process(instance=dg.DagsterInstance.ephemeral(), raise_on_error=False)
print(ran.success, [e.event_specific_data.user_failure_data.description for e in ran.get_step_failure_events()])
"""
    done = run(home, "-c", script)
    assert "False" in done.stdout and "nested more than 50 deep" in done.stdout, done.stderr[-2000:]
