"""The library in somebody else's project: the wheel in an environment of its own, far from this checkout."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import textwrap
import venv
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment: the wheel is installed there, what it needs is this one's."""
    folder = tmp_path_factory.mktemp("installed")
    sources = folder / "sources"  # setuptools leaves a folder behind where it builds
    shutil.copytree(ROOT / "tfr_assets", sources / "tfr_assets", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(sources)]
    subprocess.run(build, check=True, env=_environment())
    (wheel,) = folder.glob("tfr_assets-*.whl")
    venv.create(folder / "env", with_pip=True)
    python = folder / "env" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", str(wheel)], check=True, env=_environment())
    # a line of a .pth file adds a folder without that folder's own .pth files, so this checkout is not importable
    site = next((folder / "env" / "lib").glob("python3*")) / "site-packages"
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def _environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DAGSTER", "TFR_"))}
    return kept | {"DAGSTER_DISABLE_TELEMETRY": "1"} | more


class Shop:
    """A project of another name."""

    def __init__(self, root: Path, python: Path) -> None:
        self.root, self.python = root, python
        self.package = root / "src" / "shop_data"
        (self.package / "defs").mkdir(parents=True)
        (self.package / "__init__.py").touch()
        (self.package / "defs" / "__init__.py").touch()
        # what `create-dagster project` writes
        (self.package / "definitions.py").write_text(
            textwrap.dedent("""
                from pathlib import Path

                from dagster import definitions, load_from_defs_folder


                @definitions
                def defs():
                    return load_from_defs_folder(path_within_project=Path(__file__).parent)
            """)
        )
        (root / "pyproject.toml").write_text(
            textwrap.dedent("""
                [project]
                name = "shop_data"
                version = "0.1.0"

                [tool.dg]
                directory_type = "project"

                [tool.dg.project]
                root_module = "shop_data"
                registry_modules = ["shop_data.components.*"]
            """)
        )
        (root / "raw").mkdir()
        pd.DataFrame({"id": range(300), "price": [n / 4 for n in range(300)]}).to_parquet(
            root / "raw" / "sales.parquet"
        )

    def run(self, *command: str | Path, folder: Path | None = None, **environment: str) -> str:
        done = subprocess.run(
            list(map(str, command)),
            cwd=folder or self.root,
            env=_environment(**environment),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def dg(self, *arguments: str) -> str:
        # installed as an editable project would be
        code = "from dagster_dg_cli.cli import main; main()"
        return self.run(self.python, "-c", code, *arguments, PYTHONPATH=str(self.root / "src"))

    def tfr(self, *arguments: str, folder: Path | None = None) -> str:
        return self.run(self.python.parent / "tfr", *arguments, folder=folder)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, python: Path) -> Shop:
    shop = Shop(tmp_path_factory.mktemp("shop"), python)
    shop.dg("scaffold", "defs", "tfr_assets.TFRecordDataset", "sales", "--source", "raw/sales.parquet", "--shards", "2")
    return shop


def test_kernels_are_compiled_when_an_environment_is_made(python: Path, tmp_path: Path) -> None:
    def said_by(*arguments: str) -> str:
        command = [python, *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, env=_environment(), cwd=tmp_path
        ).stderr

    said_by("-m", "tfr_assets.compile_kernels")
    uses = """
        import pyarrow as pa, tfr_assets
        tfr_assets.write(pa.table({"n": [1, 2], "t": ["a", "b"]}), "two", shards=1)
        assert sum(map(len, (batch["n"] for batch in tfr_assets.batches("two/")))) == 2
        assert len(list(tfr_assets.read("two/", 1))) == 2 and tfr_assets.open("two/")[1]["n"] == 2
        tfr_assets.verify("two/")
    """
    assert "compiling" not in said_by("-c", textwrap.dedent(uses))


def test_the_wheel_holds_the_library_alone(python: Path) -> None:
    code = "import tfr_assets, pathlib; print(*pathlib.Path(tfr_assets.__file__).parent.iterdir())"
    # -P: not from the working directory
    done = subprocess.run([python, "-P", "-c", code], env=_environment(), capture_output=True, text=True, check=True)
    names = {Path(name).name for name in done.stdout.split()}
    assert {"reading", "writing", "py.typed"} <= names
    assert names.isdisjoint({"defs", "samples", "data", "raw"})


def test_a_dataset_is_made_and_read_back(shop: Shop) -> None:
    assert (shop.package / "defs" / "sales" / "defs.yaml").is_file()
    shop.dg("check", "defs")
    assert [row["name"] for row in json.loads(shop.tfr("list", "--json"))] == ["sales"]
    (outcome,) = json.loads(shop.tfr("run", "sales", "--json", folder=shop.package))  # from below the project's folder
    assert outcome["ok"]
    assert all(report["ok"] for report in json.loads(shop.tfr("verify", "sales", "--json")))
    assert sorted(path.name for path in (shop.root / "data" / "sales" / "shards").glob("sales-*")) == [
        "sales-train.tfrecord-00000-of-00002",
        "sales-train.tfrecord-00001-of-00002",
    ]
    code = "import tfr_assets; print(sum(float(b['price'].numpy().sum()) for b in tfr_assets.read('sales')))"
    assert float(shop.run(shop.python, "-c", code)) == sum(n / 4 for n in range(300))
    outside = shop.root.parent
    assert "sales" in shop.tfr("--project", str(shop.root), "list", folder=outside)


def test_dg_launches_its_jobs(shop: Shop) -> None:
    home = shop.root / "home"
    home.mkdir()
    code = "from dagster_dg_cli.cli import main; main()"
    shop.run(
        shop.python,
        *("-c", code, "launch", "--job", "Refresh_sales"),
        *("--partition-range", "train-00000-of-00002...train-00001-of-00002"),
        DAGSTER_HOME=str(home),
        PYTHONPATH=str(shop.root / "src"),
        TFR_DATA=str(shop.root / "launched"),
    )
    assert (shop.root / "launched" / "sales" / "merged" / "sales-train.tfrecord").is_file()


def test_dagster_may_be_started_outside_of_the_project(shop: Shop) -> None:
    code = """
import dagster as dg
from shop_data.definitions import defs
found = defs()
with dg.DagsterInstance.ephemeral() as instance:
    found.resolve_job_def("Plan_shards_sales").execute_in_process(instance=instance)
"""
    outside = shop.root.parent / "outside"
    outside.mkdir()
    shop.run(shop.python, "-c", code, folder=outside, PYTHONPATH=str(shop.root / "src"))
    assert (shop.root / "data" / "sales" / "raw" / "inventory.json").is_file()
    assert not (outside / "data").exists()
