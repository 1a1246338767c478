"""What is loaded when: the code server starts fast, and a step's process imports nothing any more."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

from tfr_assets.components.runs import executor
from tfr_assets.components.runs.preload import MODULES
from tfr_assets.layout import shard_keys

from .conftest import SHARDS
from .project import Project, start_run

ROOT = Path(__file__).parents[2]


def python(script: str, cwd: Path = ROOT) -> str:
    done = subprocess.run([sys.executable, "-c", script], cwd=cwd, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_definitions_load_within_three_seconds_and_import_neither_tensorflow_nor_numba() -> None:
    script = """
        import json, sys, time
        start = time.process_time()
        from tfr_assets.definitions import defs
        repository = defs().get_repository_def()
        seconds = time.process_time() - start
        heavy = [name for name in ("tensorflow", "numba", "llvmlite", "pandas", "matplotlib") if name in sys.modules]
        print(json.dumps({"seconds": seconds, "heavy": heavy, "jobs": repository.job_names}))
    """
    found = [json.loads(python(dedent(script)).splitlines()[-1]) for _ in range(2)]
    assert found[0]["heavy"] == []
    assert min(each["seconds"] for each in found) < 3  # the first time, bytecode is compiled, too
    assert {"Refresh_flights", "Verify_flights", "Plan_shards_flights", "Bench_readers_flights"} <= set(
        found[0]["jobs"]
    )


def test_the_package_itself_imports_nothing_heavy() -> None:
    loaded = python("import sys, tfr_assets; print(*sys.modules)").split()
    assert not {"dagster", "tensorflow", "pyarrow", "numba"} & set(loaded)


def test_listing_the_packages_components_imports_no_tensorflow() -> None:
    script = """
        import sys, tfr_assets
        found = [name for name in dir(tfr_assets) if hasattr(getattr(tfr_assets, name), "__dg_package_entry__")]
        print(*found, "tensorflow" in sys.modules)  # as `dg` does it, on every command
    """
    assert python(dedent(script)).split() == ["TFRecordDataset", "False"]


def test_every_module_of_the_preload_can_be_imported() -> None:
    script = f"""
        from importlib import import_module
        for name in {MODULES!r}:
            import_module(name)
        import sys, threading
        assert "tensorflow" not in sys.modules
        print(threading.active_count())
    """
    assert python(dedent(script)).split()[-1] == "1"  # a process with threads cannot be forked safely


def test_a_step_imports_nothing_that_could_have_been_preloaded(
    project: Project, make_dataset: Callable[..., str]
) -> None:
    home, log = project.root / project.package, project.root / "imports.log"
    (home / "audit.py").write_text(
        dedent(f"""
            import sys
            from importlib import import_module
            from tfr_assets.components.runs.preload import MODULES as ALL

            MODULES = ()
            for name in ALL:
                import_module(name)

            class Watch:
                def find_spec(self, name, path=None, target=None):
                    with open({str(log)!r}, "a") as file:
                        print(name, file=file)

            sys.meta_path.insert(0, Watch())
            Watch().find_spec("watching")
        """)
    )
    definitions = home / "definitions.py"
    watched = f"from tfr_assets.components.runs import executor\nexecutor.PRELOAD = '{project.package}.audit'\n"
    definitions.write_text(watched + definitions.read_text())
    name = make_dataset("watched")
    assert start_run(project, f"Refresh_{name}", shard_keys("train", SHARDS)).wait(120) == 0
    imported = Counter(log.read_text().split())
    assert imported["watching"] == 1  # in the one process that all workers but the first are forked from
    costly = {"dagster", "tfr_assets", "numba", "llvmlite", "pyarrow", "numpy", "sqlalchemy", "alembic", "fsspec"}
    assert [module for module in imported if module.split(".")[0] in costly] == []


def test_the_preload_is_what_the_executor_preloads() -> None:
    assert executor.PRELOAD == "tfr_assets.components.runs.preload"
