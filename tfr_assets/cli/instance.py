"""Dagster's instance of the command line: the one that `make ui` shows."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from sqlalchemy.exc import DBAPIError
from yaml import YAMLError

from tfr_assets.components.load import PROJECT
from tfr_assets.components.runs import end_dead_runs
from tfr_assets.errors import ConfigError, TfrError
from tfr_assets.layout import DATA_VARIABLE, data_root
from tfr_assets.records.locks import locked


def dagster_home() -> Path:
    """Returns `$DAGSTER_HOME`, by default the project; set but empty counts as unset."""
    return Path(os.environ.get("DAGSTER_HOME") or PROJECT)


@contextmanager
def open_instance() -> Iterator[dg.DagsterInstance]:
    """Yields the instance of `$DAGSTER_HOME`, by default the project's own, after it has ended runs of dead processes.

    Raises:
        ConfigError: There is no such folder, or its `dagster.yaml` cannot be understood.
        TfrError: Nothing can be stored there, at once or in the middle of a run.
    """
    home = dagster_home()
    os.environ["DAGSTER_HOME"] = str(home)
    if os.environ.get(DATA_VARIABLE):
        os.environ[DATA_VARIABLE] = str(data_root())  # the same folder for the steps, wherever they are started
    if home == PROJECT:
        os.chdir(PROJECT)  # the paths in the project's dagster.yaml are relative
    with _explained(home), _open(home) as instance:
        end_dead_runs(instance)
        yield instance


def _open(home: Path) -> dg.DagsterInstance:
    try:
        if not home.is_dir():
            return dg.DagsterInstance.get()  # says so
        with locked(home):  # the first one makes the databases; two at once would spoil them
            return dg.DagsterInstance.get()
    except (dg.DagsterError, YAMLError) as error:
        raise ConfigError(f"DAGSTER_HOME={home}: {error}") from error


@contextmanager
def _explained(home: Path) -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        raise TfrError(_not_stored(home, str(error.orig))) from error
    except OSError as error:
        if error.filename is None or home not in Path(error.filename).absolute().parents:
            raise
        raise TfrError(_not_stored(home, f"{error.strerror}: {error.filename}")) from error


def _not_stored(home: Path, reason: str) -> str:
    return (
        f"DAGSTER_HOME={home}: Dagster cannot store its runs there: {reason}. "
        "Free some space and make the folder writable, or set DAGSTER_HOME to another folder"
    )
