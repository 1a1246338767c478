"""How fast a writer is: the same data written again and again, beside a plain write of the same bytes.

Every writer has a process of its own, which has imported what it needs and written everything once before time is
taken: that time from a stream, for the memory that the writer itself needs. Writers and plain writes take turns, so
that a slow moment of the machine hits all of them.
"""

import fcntl
import os
import pickle
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from tfr_assets.errors import ConfigError, TfrError, WriteError
from tfr_assets.records.features import FeatureOptions
from tfr_assets.records.files import write_all
from tfr_assets.writing.write import write
from tfr_assets.writing.writers.pieces import Piece
from tfr_assets.writing.writers.process import Process, fresh_process, messages
from tfr_assets.writing.writers.registry import Writer
from tfr_assets.writing.writers.rows import rows_of

_CHUNK = 512 * 1024
_SCRATCH = ".writers-"  # how names of temporary folders begin


@dataclass(frozen=True)
class WriterMeasurement:
    """What writing all records cost; times are medians over the repeats, in seconds.

    Attributes:
        writer: Name of the writer.
        workers: Threads or processes that encoded at once.
        shards: Number of files; None: one, with a name of its own.
        repeats: Number of timed writes.
        records: Number of records.
        bytes: Size of the files.
        seconds: Wall time, from a table in mapped memory to files that are flushed to the disk and have their names.
        fastest: The least of these times.
        slowest: The most.
        cpu_seconds: CPU time, of all threads and processes.
        peak_memory_bytes: Largest resident memory of the process, libraries included, while it writes a stream; with
            worker processes, at most that of all together.
        plain_write_seconds: Wall time of one thread for writing the same bytes to one file, fsync and rename included.
    """

    writer: str
    workers: int
    shards: int | None
    repeats: int
    records: int
    bytes: int
    seconds: float
    fastest: float
    slowest: float
    cpu_seconds: float
    peak_memory_bytes: int
    plain_write_seconds: float

    @property
    def records_per_second(self) -> float:
        """Of the median."""
        return self.records / self.seconds

    @property
    def mb_per_second(self) -> float:
        """Millions of bytes of the files, of the median."""
        return self.bytes / self.seconds / 1e6

    @property
    def share_of_plain(self) -> float:
        """How fast it is against the plain write: 1 is as fast."""
        return self.plain_write_seconds / self.seconds


@dataclass(frozen=True)
class Contestant:
    """A writer that is measured.

    Attributes:
        writer: A writer's name, or a function that can be imported.
        workers: Threads or processes that encode at once.
        shards: Number of files; None: one.
        compression: `none`, `gzip` or `zlib`.
        features: What to do with which column.
    """

    writer: str | Writer
    workers: int = 1
    shards: int | None = None
    compression: str = "none"
    features: FeatureOptions | None = None


class _Pass(NamedTuple):
    records: int
    bytes: int
    seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    writer: str


def measure_writers(
    contestants: Sequence[Contestant], data: Any, repeats: int = 3, folder: Path | None = None
) -> list[WriterMeasurement]:
    """Measures writers against each other.

    Args:
        contestants: What to measure.
        data: As for `write`, but no records that are serialized already.
        repeats: Number of timed writes of each.
        folder: On which disk to write; None: that of temporary files.

    Raises:
        ConfigError: There is no such writer, `repeats` is not positive, or the data consists of serialized records.
        TfrError: As `write`; WriteError also where there is no room for the copies that measuring needs.
    """
    if repeats < 1:
        raise ConfigError(f"repeats={repeats} must be at least 1")
    with _scratch(folder) as work, ExitStack() as stack:
        _save(data, work / "data.arrow")
        processes = [stack.enter_context(fresh_process(__name__)) for _ in contestants]
        for process, contestant in zip(processes, contestants, strict=True):
            pickle.dump((contestant, work), process.stdin)
        passes: list[list[_Pass]] = [[] for _ in contestants]
        plain: list[list[float]] = [[] for _ in contestants]
        for _ in range(1 + repeats):
            for index, process in enumerate(processes):
                passes[index].append(_next_pass(process))
                plain[index].append(_plain_write(work))
    return [
        _measurement(contestant, first.peak_memory_bytes, timed, plainly)
        for contestant, (first, *timed), (_, *plainly) in zip(contestants, passes, plain, strict=True)
    ]


@contextmanager
def _scratch(folder: Path | None) -> Iterator[Path]:
    """Makes a temporary folder and removes it whatever happens; with it goes what killed processes left."""
    where = folder or Path(tempfile.gettempdir())
    try:
        for stray in where.glob(f"{_SCRATCH}*"):
            with suppress(FileNotFoundError, BlockingIOError), _locked(stray):
                shutil.rmtree(stray, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=where, prefix=_SCRATCH) as name, _locked(Path(name)):
            yield Path(name)
    except OSError as error:
        raise WriteError(f"cannot measure writers in {where}: {error.strerror or error}. Free space there") from error


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Holds a folder for this process; raises BlockingIOError where another one does."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _measurement(
    contestant: Contestant, peak_memory_bytes: int, passes: list[_Pass], plain: list[float]
) -> WriterMeasurement:
    last = passes[-1]
    times = [each.seconds for each in passes]
    return WriterMeasurement(
        writer=last.writer,
        workers=contestant.workers,
        shards=contestant.shards,
        repeats=len(passes),
        records=last.records,
        bytes=last.bytes,
        seconds=statistics.median(times),
        fastest=min(times),
        slowest=max(times),
        cpu_seconds=statistics.median(each.cpu_seconds for each in passes),
        peak_memory_bytes=peak_memory_bytes,
        plain_write_seconds=statistics.median(plain),
    )


def _save(data: Any, path: Path) -> None:
    rows = rows_of(data, 1)
    if rows.serialized:
        raise ConfigError("data: consists of records that are serialized already; give their columns")
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        for piece in rows.pieces():
            if isinstance(piece, Piece):
                writer.write_batch(piece.batch)


def _next_pass(process: Process) -> _Pass:
    try:
        process.stdin.write(b"\n")
        process.stdin.flush()
        result = pickle.load(process.stdout)
    except (BrokenPipeError, EOFError) as error:
        code = process.popen.wait()
        raise WriteError(f"the process that measured a writer ended with exit code {code}; run it again") from error
    if isinstance(result, TfrError):
        raise result
    assert isinstance(result, _Pass)
    return result


def _plain_write(work: Path) -> float:
    """Returns the seconds that the bytes just written take when they are only written."""
    content = memoryview(b"".join(path.read_bytes() for path in _files(work)))
    target = work / "plain"
    started = time.perf_counter()
    descriptor = os.open(work / "temporary", os.O_CREAT | os.O_WRONLY)
    try:
        for start in range(0, len(content), _CHUNK):
            write_all(descriptor, content[start : start + _CHUNK])
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    (work / "temporary").rename(target)
    seconds = time.perf_counter() - started
    target.unlink()
    shutil.rmtree(work / "out")
    return seconds


def _files(work: Path) -> list[Path]:
    return sorted(path for path in (work / "out").iterdir() if ".tfrecord" in path.name)


def _one_pass(contestant: Contestant, work: Path, streamed: bool) -> _Pass:
    path = work / "out" / "out.tfrecord" if contestant.shards is None else work / "out"
    cpu, started = _cpu_seconds(), time.perf_counter()
    written = write(
        _rows(work / "data.arrow", streamed),
        path,
        shards=contestant.shards,
        writer=contestant.writer,
        workers=contestant.workers,
        compression=contestant.compression,
        features=contestant.features,
    )
    return _Pass(
        records=written.records,
        bytes=written.bytes,
        seconds=time.perf_counter() - started,
        cpu_seconds=_cpu_seconds() - cpu,
        peak_memory_bytes=_peak_memory(contestant.workers),
        writer=written.writer,
    )


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _peak_memory(workers: int) -> int:
    # not getrusage of this process, which begins with what its parent had
    own = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
    return 1024 * (own + workers * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)


def _rows(path: Path, streamed: bool) -> pa.Table | Iterator[pa.RecordBatch]:
    if not streamed:
        return pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    file = pa.ipc.open_file(pa.OSFile(str(path)))
    return (file.get_batch(index) for index in range(file.num_record_batches))


def main() -> None:
    """Writes once for every byte on standard input, and tells what that took."""
    stream = messages()
    contestant, work = pickle.load(sys.stdin.buffer)
    streamed = True
    while sys.stdin.buffer.read(1):
        try:
            result: _Pass | TfrError = _one_pass(contestant, work, streamed)
        except TfrError as error:
            result = type(error)(str(error))
        streamed = False
        pickle.dump(result, stream)
        stream.flush()
