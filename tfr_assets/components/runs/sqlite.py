"""Dagster's SQLite storage, with connections that are kept, and its captured output, without processes to mirror it.

Dagster opens a database anew for every event: an engine, a connection, a commit that waits for the disk, and, as no
other connection is left, a checkpoint that waits twice more. It opens every process's databases with all migrations
loaded, and captures a step's output with four processes. Files and tables here are Dagster's own: `dagster.yaml`
chooses between `storage: sqlite` and this at any time.

With a write-ahead log and `synchronous=NORMAL` a power cut may lose the last events, and never damages the database; a
killed process loses nothing.
"""

import os
import sys
from collections import OrderedDict
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any, Self

import sqlalchemy
from dagster._core.events.log import EventLogEntry
from dagster._core.execution.compute_logs import redirect_to_file
from dagster._core.storage.compute_log_manager import CapturedLogContext, ComputeIOType
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.local_compute_log_manager import IO_TYPE_EXTENSION, LocalComputeLogManager
from dagster._core.storage.runs.sqlite.sqlite_run_storage import SqliteRunStorage
from dagster._core.storage.schedules.sqlite.sqlite_schedule_storage import SqliteScheduleStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS, create_db_conn_string
from dagster._core.storage.sqlite_storage import (
    DagsterSqliteStorage,
    _event_logs_directory,
    _runs_directory,
    _schedule_directory,
)
from dagster._serdes import ConfigurableClassData
from dagster._utils import ensure_file, touch_file
from sqlalchemy.pool import QueuePool

from tfr_assets.components.runs.home import in_home
from tfr_assets.storage.locks import hold_lock

_KEPT = 4  # databases that are open at once: that of the runs, the index, and those of some runs


class _Connections:
    """Open databases by path, those used last. Threads may share it; processes may not."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._engines: OrderedDict[str, tuple[int, sqlalchemy.Engine]] = OrderedDict()

    @contextmanager
    def transaction(self, path: str) -> Iterator[sqlalchemy.Connection]:
        with self._engine(path).connect() as connection, connection.begin():
            yield connection

    def close(self) -> None:
        with self._lock:
            while self._engines:
                self._engines.popitem()[1][1].dispose()

    def _engine(self, path: str) -> sqlalchemy.Engine:
        with self._lock:
            inode, engine = self._engines.pop(path, (0, None))
            if engine is None or inode != _inode(path):  # deleted meanwhile, by `dagster run wipe` for one
                if engine is not None:
                    engine.dispose()
                engine = _open(path)
            self._engines[path] = _inode(path), engine
            while len(self._engines) > _KEPT:
                self._engines.popitem(last=False)[1][1].dispose()
            return engine


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino  # noqa: PTH116 - for every event
    except FileNotFoundError:
        return 0


def _open(path: str) -> sqlalchemy.Engine:
    engine = sqlalchemy.create_engine(
        f"sqlite:///{path}",
        poolclass=QueuePool,
        pool_size=1,
        max_overflow=-1,
        connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS, "check_same_thread": False},
    )
    sqlalchemy.event.listen(engine, "connect", lambda dbapi, _: dbapi.execute("PRAGMA synchronous=NORMAL"))
    with engine.connect():  # which creates the file, if it is not there
        return engine


def _is_initialized(path: str) -> bool:
    """Whether Dagster has made its tables; what it asks itself, without loading all migrations."""
    if not _inode(path):
        return False
    engine = _open(path)
    try:
        with engine.connect() as connection:
            return connection.execute(sqlalchemy.text("SELECT version_num FROM alembic_version")).first() is not None
    except sqlalchemy.exc.OperationalError:  # no such table
        return False
    finally:
        engine.dispose()


class _EventLog(SqliteEventLogStorage):
    """The events: a database a run, and an index of all."""

    def __init__(self, base_dir: str) -> None:
        self._connections = _Connections()
        self._tables: set[str] = set()
        super().__init__(base_dir)

    def has_table(self, table_name: str) -> bool:
        """See `SqliteEventLogStorage`, which opens the database for every event of a check to ask this."""
        if table_name not in self._tables and super().has_table(table_name):
            self._tables.add(table_name)
        return table_name in self._tables

    @contextmanager
    def _connect(self, shard: str) -> Iterator[sqlalchemy.Connection]:
        with self._db_lock:
            path = self.path_for_shard(shard)
            if shard not in self._initialized_dbs or not _inode(path):  # another process may have deleted it
                if not _is_initialized(path):
                    engine = _open(path)
                    self._initdb(engine)
                    engine.dispose()
                self._initialized_dbs.add(shard)
            with self._connections.transaction(path) as connection:
                yield connection

    def store_event(self, event: EventLogEntry) -> None:
        """See `EventLogStorage`."""
        super().store_event(event)
        with suppress(FileNotFoundError):  # the run was deleted meanwhile
            os.utime(self.path_for_shard(event.run_id))  # the UI watches this file; events go to the log beside it

    def wipe(self) -> None:
        """See `EventLogStorage`."""
        self._connections.close()
        super().wipe()

    def dispose(self) -> None:
        """See `EventLogStorage`."""
        super().dispose()
        self._connections.close()


class _Runs(SqliteRunStorage):
    """The runs."""

    def __init__(self, conn_string: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._connections = _Connections()
        super().__init__(conn_string, inst_data)

    @classmethod
    def from_local(cls, base_dir: str, inst_data: ConfigurableClassData | None = None) -> Self:
        """See `SqliteRunStorage`."""
        address = create_db_conn_string(base_dir, "runs")
        return cls(address, inst_data) if _is_initialized(_path(address)) else super().from_local(base_dir, inst_data)

    @contextmanager
    def connect(self) -> Iterator[sqlalchemy.Connection]:
        """See `SqliteRunStorage`."""
        with self._connections.transaction(_path(self._conn_string)) as connection:
            yield connection

    def dispose(self) -> None:
        """See `RunStorage`."""
        super().dispose()
        self._connections.close()


class _Schedules(SqliteScheduleStorage):
    """Ticks of schedules and sensors: few, so that nothing is kept."""

    @classmethod
    def from_local(cls, base_dir: str, inst_data: ConfigurableClassData | None = None) -> "SqliteScheduleStorage":
        """See `SqliteScheduleStorage`."""
        address = create_db_conn_string(base_dir, "schedules")
        return cls(address, inst_data) if _is_initialized(_path(address)) else super().from_local(base_dir, inst_data)


def _path(address: str) -> str:
    return address.removeprefix("sqlite:///")


class KeptSqliteStorage(DagsterSqliteStorage):
    """Dagster's own SQLite storage, which keeps its connections."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self.base_dir = base_dir
        self._inst_data = inst_data
        with _one_process(Path(base_dir)):  # two that make the same tables disturb each other
            self._run_storage = _Runs.from_local(_runs_directory(base_dir))
            self._event_log_storage = _EventLog(_event_logs_directory(base_dir))
            self._schedule_storage = _Schedules.from_local(_schedule_directory(base_dir))
        super(DagsterSqliteStorage, self).__init__()

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> "KeptSqliteStorage":
        """See `ConfigurableClass`."""
        return cls.from_local(inst_data=inst_data, base_dir=in_home(config_value["base_dir"]))


@contextmanager
def _one_process(folder: Path) -> Iterator[None]:
    """Lets one process at a time through, as long as the databases are not there yet."""
    if (folder / "schedules" / "schedules.db").exists():  # the last one to be made
        yield
        return
    with hold_lock(folder / ".lock"):  # not the folder: where it is DAGSTER_HOME itself, `tfr` holds the lock of that
        yield


class DirectLogManager(LocalComputeLogManager):
    """Captures what a step prints in a file; the terminal of `dagster dev` does not repeat it."""

    @contextmanager
    def capture_logs(self, log_key: Sequence[str]) -> Generator[CapturedLogContext, None, None]:
        """See `ComputeLogManager`."""
        out, err = (
            self.get_captured_local_path(log_key, IO_TYPE_EXTENSION[kind])
            for kind in (ComputeIOType.STDOUT, ComputeIOType.STDERR)
        )
        ensure_file(out)
        ensure_file(err)
        with redirect_to_file(sys.stdout, out), redirect_to_file(sys.stderr, err):
            yield CapturedLogContext(log_key)
        touch_file(self.complete_artifact_path(log_key))

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> "DirectLogManager":
        """See `ConfigurableClass`."""
        return cls(inst_data=inst_data, **config_value | {"base_dir": in_home(config_value["base_dir"])})
