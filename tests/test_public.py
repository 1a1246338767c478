"""What `import tfr_assets` shows: everything a user calls, each with a description and, if it is called, an example."""

import inspect
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import tfr_assets

FUNCTIONS = ["adopt", "batches", "inspect", "merge", "mix", "open", "read", "verify", "write"]
TABLE = pa.table({"id": range(100), "name": [f"n{n}" for n in range(100)]})


def test_everything_public_is_listed_and_described() -> None:
    assert dir(tfr_assets) == sorted(tfr_assets.__all__)
    for name in tfr_assets.__all__:
        assert inspect.getdoc(getattr(tfr_assets, name)), name
    assert [name for name in tfr_assets.__all__ if inspect.isfunction(getattr(tfr_assets, name))] == FUNCTIONS


def test_looking_at_functions_imports_nothing_heavy() -> None:
    code = f"import sys, tfr_assets; [getattr(tfr_assets, name) for name in {FUNCTIONS}]; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"tensorflow", "numba", "pyarrow", "numpy", "dagster"}.isdisjoint(done.stdout.split())


def test_what_dagster_looks_at_imports_no_compiled_kernels() -> None:
    code = "import sys, tfr_assets; [getattr(tfr_assets, name) for name in dir(tfr_assets)]; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"tensorflow", "numba"}.isdisjoint(done.stdout.split())
    assert tfr_assets.Dataset and tfr_assets.Mixture and tfr_assets.ResumableBatches  # for type hints


@pytest.mark.parametrize("name", FUNCTIONS)
def test_examples_run(name: str, tmp_path: Path) -> None:
    tfr_assets.write(TABLE, tmp_path / "names.tfrecord")
    tfr_assets.write(TABLE, tmp_path / "out" / "names", shards=2)
    (example,) = (inspect.getdoc(getattr(tfr_assets, name)) or "").split("```python")[1:]
    code = example.partition("```")[0]
    # what is elsewhere, and photographs: tests/test_commands.py reads such
    kept = [line for line in code.splitlines() if "example.org" not in line and "digits" not in line]
    script = "\n".join([PREPARED, *kept])
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{script}\n{done.stderr}"


PREPARED = """
from pathlib import Path
import pyarrow as pa
import tfr_assets
table = pa.table({"id": range(9)})
frames = lambda: iter(table.to_batches(max_chunksize=2))
worker, workers = 0, 2
flights = pa.table({"distance": range(500), "origin": ["JFK"] * 500, "dep_delay": [1.5] * 500, "carrier": ["UA"] * 500})
tfr_assets.write(flights, "data/flights/shards/flights.tfrecord")
tfr_assets.write(table, "foreign/some.tfrecord")
for path in Path("foreign").glob("*/*"):
    path.unlink()
"""


def test_verify_reports_each_file_and_names_damage(tmp_path: Path) -> None:
    tfr_assets.write(TABLE, tmp_path / "out" / "names", shards=2)
    reports = tfr_assets.verify(tmp_path / "out")
    assert [(report.ok, report.records) for report in reports] == [(True, 50), (True, 50)]
    damaged = Path(reports[1].path)
    content = bytearray(damaged.read_bytes())
    content[40] ^= 1
    damaged.write_bytes(content)
    first, second = tfr_assets.verify(tmp_path / "out")
    assert first.ok and not second.ok
    assert "record 0" in str(second.faults[0])
    with pytest.raises(tfr_assets.ConfigError, match="there is no dataset 'nowhere'"):
        tfr_assets.verify("nowhere")
    with pytest.raises(tfr_assets.ConfigError, match="there is no file or folder"):
        tfr_assets.verify(tmp_path / "nowhere")


def test_inspect_describes_any_file(tmp_path: Path) -> None:
    tfr_assets.write(TABLE, tmp_path / "names.tfrecord")
    found = tfr_assets.inspect(tmp_path / "names.tfrecord")
    assert (found.records, sorted(found.features), len(found.first)) == (100, ["id", "name"], 3)
    with pytest.raises(tfr_assets.ConfigError, match="there is no file"):
        tfr_assets.inspect(tmp_path / "nothing.tfrecord")


def test_merge_joins_verified_files(tmp_path: Path) -> None:
    shards = tfr_assets.write(TABLE, tmp_path / "out" / "names", shards=3).paths
    merged = tfr_assets.merge(shards, tmp_path / "all.tfrecord")
    assert merged.records == 100
    (batch,) = tfr_assets.batches(tmp_path / "all.tfrecord")
    assert batch["id"].tolist() == list(range(100))
    before = (tmp_path / "all.tfrecord").read_bytes()
    shards[1].write_bytes(shards[1].read_bytes()[:-1])
    with pytest.raises(tfr_assets.DamagedFile, match=shards[1].name):
        tfr_assets.merge(shards, tmp_path / "all.tfrecord")
    assert (tmp_path / "all.tfrecord").read_bytes() == before
    with pytest.raises(tfr_assets.ConfigError, match="no file to merge"):
        tfr_assets.merge([], tmp_path / "all.tfrecord")
    (tmp_path / "foreign.tfrecord").write_bytes(b"")
    with pytest.raises(tfr_assets.DamagedFile, match="no manifest"):
        tfr_assets.merge([tmp_path / "foreign.tfrecord"], tmp_path / "all.tfrecord")
    tfr_assets.write({"other": [1]}, tmp_path / "other.tfrecord")
    with pytest.raises(tfr_assets.ConfigError, match="different features"):
        tfr_assets.merge([shards[0], tmp_path / "other.tfrecord"], tmp_path / "all.tfrecord")


def test_merge_never_overwrites_what_it_merges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = tfr_assets.write(TABLE, tmp_path / "out" / "names", shards=2).paths
    before = [path.read_bytes() for path in shards]
    (tmp_path / "link").symlink_to(shards[0].parent)
    for target in (shards[0], tmp_path / "link" / shards[1].name):
        with pytest.raises(tfr_assets.ConfigError, match=r"is one of the files to merge.*give another target"):
            tfr_assets.merge(shards, target)
    assert [path.read_bytes() for path in shards] == before
    for one in (str(shards[0]), shards[0]):
        with pytest.raises(tfr_assets.ConfigError, match="give a list of files"):
            tfr_assets.merge(one, tmp_path / "all.tfrecord")  # type: ignore[arg-type]
    monkeypatch.setenv("HOME", str(tmp_path))
    assert tfr_assets.merge([f"~/out/names/{path.name}" for path in shards], "~/all.tfrecord").records == 100
    assert (tmp_path / "all.tfrecord").is_file()


def test_manifests_of_other_programs_are_no_files_of_ours(tmp_path: Path) -> None:
    tfr_assets.write(TABLE, tmp_path / "names.tfrecord")
    tfr_assets.merge([tmp_path / "names.tfrecord"], tmp_path / "plain")
    for content in ("{}", "[]", "no JSON"):
        (tmp_path / "manifest" / "app.json").write_text(content)
        assert [(Path(report.path).name, report.ok) for report in tfr_assets.verify(tmp_path)] == [
            ("names.tfrecord", True), ("plain", True),
        ]  # fmt: skip
    (tmp_path / "manifest" / "plain.json").write_text("damaged")
    (tmp_path / "names.tfrecord").unlink()
    assert sorted((Path(report.path).name, report.ok) for report in tfr_assets.verify(tmp_path)) == [
        ("names.tfrecord", False), ("plain", False),
    ]  # fmt: skip
    (tmp_path / "only" / "manifest").mkdir(parents=True)
    (tmp_path / "only" / "manifest" / "app.json").write_text("{}")
    with pytest.raises(tfr_assets.ConfigError, match="there is no TFRecord file"):
        tfr_assets.verify(tmp_path / "only")


def test_a_static_type_checker_knows_what_is_public(tmp_path: Path) -> None:
    mypy = pytest.importorskip("mypy.api")
    script = tmp_path / "use.py"
    script.write_text("import tfr_assets\nreveal_type(tfr_assets.batches)\ntfr_assets.read(batch_size='x', name='a')\n")
    options = ["--no-error-summary", "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache")]
    said, _, _ = mypy.run([str(script), *options])
    assert "Batches" in said
    assert 'Argument "batch_size" to "read" has incompatible type "str"' in said
