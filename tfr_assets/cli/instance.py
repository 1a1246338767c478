"""Dagster's instance of the command line: the one that `make ui` shows."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from sqlalchemy.exc import DBAPIError
from yaml import YAMLError

from tfr_assets.components.runs.dead_runs import end_dead_runs
from tfr_assets.errors import ConfigError, TfrError
from tfr_assets.layout import DATA_VARIABLE, data_root
from tfr_assets.project import current_project
from tfr_assets.storage.locks import hold_lock
from tfr_assets.urls import place_of


def dagster_home() -> Path:
    """Returns `$DAGSTER_HOME`; where that is unset or empty, the project's folder, or `.dagster` in it.

    The folder itself, if it has a `dagster.yaml`: Dagster would fill it with folders of its own otherwise.

    Raises:
        ConfigError: It is not set, and there is no project.
    """
    if value := os.environ.get("DAGSTER_HOME"):
        return Path(value).expanduser().absolute()
    project = current_project().root
    return project if (project / "dagster.yaml").is_file() else project / ".dagster"


def log_folder() -> Path:
    """Returns where a command puts what Dagster and TensorFlow say on the way: `.dagster` of `dagster_home()`.

    Raises:
        ConfigError: As `dagster_home`.
    """
    home = dagster_home()
    return home if home.name == ".dagster" else home / ".dagster"


@contextmanager
def open_instance() -> Iterator[dg.DagsterInstance]:
    """Yields the instance of `dagster_home()`, after it has ended runs of dead processes.

    Raises:
        ConfigError: There is no such folder, or its `dagster.yaml` cannot be understood.
        TfrError: Nothing can be stored there, at once or in the middle of a run.
    """
    home = dagster_home()
    os.environ["DAGSTER_HOME"] = str(home)
    if os.environ.get(DATA_VARIABLE):
        os.environ[DATA_VARIABLE] = place_of(data_root())  # the same folder for the steps, wherever they are started
    with _explain_errors(home), _open(home) as instance:
        end_dead_runs(instance)
        yield instance


def _open(home: Path) -> dg.DagsterInstance:
    try:
        if home.name == ".dagster":  # where there is no other; one that was named and is not there is a mistake
            home.mkdir(exist_ok=True)
        if not home.is_dir():
            return dg.DagsterInstance.get()  # says so
        with hold_lock(home):  # the first one makes the databases; two at once would spoil them
            return dg.DagsterInstance.get()
    except (dg.DagsterError, YAMLError) as error:
        raise ConfigError(f"DAGSTER_HOME={home}: {error}") from error


@contextmanager
def _explain_errors(home: Path) -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        raise TfrError(_not_stored(home, str(error.orig))) from error
    except OSError as error:
        path = Path(error.filename or "/").absolute()
        if home not in (path, *path.parents):
            raise
        raise TfrError(_not_stored(home, f"{error.strerror}: {error.filename}")) from error


def _not_stored(home: Path, reason: str) -> str:
    return (
        f"DAGSTER_HOME={home}: Dagster cannot store its runs there: {reason}. "
        "Free some space and make the folder writable, or set DAGSTER_HOME to another folder"
    )
