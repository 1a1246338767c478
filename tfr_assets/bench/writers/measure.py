"""How fast a writer is: the same data written again and again, beside a plain write of the same bytes.

Every writer has a process of its own, which has imported what it needs and written everything once before time is
taken: that time from a stream, for the memory that the writer itself needs. Writers and plain writes take turns, so
that a slow moment of the machine hits all of them, and what is compared are the times of one turn.

No writer pays for another: everything is on the disk before time is taken, rows are in memory and mapped, and what is
timed, a plain write as well, has just been done once before. A virtual machine takes back what memory a program
leaves alone for a second, data and page cache; the first to use it again would wait for it longer than for the disk.
"""

import mmap
import os
import pickle
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from tfr_assets.bench.writers.measured import MEASURED
from tfr_assets.bench.writers.measurement import WriterMeasurement
from tfr_assets.bench.writers.plain_writes import PlainWrites
from tfr_assets.errors import ConfigError, TfrError, WriteError
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.storage.locks import make_locked_folder, remove_abandoned_folders, remove_locked_folder
from tfr_assets.writing.write import write
from tfr_assets.writing.writers.pieces import Piece
from tfr_assets.writing.writers.process import Process, fresh_process, messages
from tfr_assets.writing.writers.registry import WriteFunction
from tfr_assets.writing.writers.rows import rows_of

_SCRATCH = ".writers-"  # how names of temporary folders begin


@dataclass(frozen=True)
class Contestant:
    """A writer that is measured.

    Attributes:
        writer: A name of `MEASURED`, or a function that can be imported.
        workers: Threads or processes that work at once.
        shards: Number of files; None: one.
        compression: `none`, `gzip` or `zlib`.
        features: What to do with which column.
    """

    writer: str | WriteFunction
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


class _Turn(NamedTuple):
    written: _Pass
    plain: float
    early: float


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
        turns: list[list[_Turn]] = [[] for _ in contestants]
        plain = PlainWrites(work)
        for _ in range(1 + repeats):
            for index, process in enumerate(processes):
                turns[index].append(_turn(process, plain))
    return [_measurement(contestant, *each) for contestant, each in zip(contestants, turns, strict=True)]


def _turn(process: Process, plain: PlainWrites) -> _Turn:
    written = _next_pass(process)
    plain.take_over()
    plain.write()
    return _Turn(written, plain.write(), plain.write(early=True))


@contextmanager
def _scratch(folder: Path | None) -> Iterator[Path]:
    """Makes a temporary folder and removes it whatever happens; with it goes what killed processes left."""
    where = folder or Path(tempfile.gettempdir())
    try:
        remove_abandoned_folders(where, _SCRATCH)
        lock, folder = make_locked_folder(where, _SCRATCH)
        try:
            yield folder
        finally:
            remove_locked_folder(lock, folder)
    except OSError as error:
        raise WriteError(f"cannot measure writers in {where}: {error.strerror or error}. Free space there") from error


def _measurement(contestant: Contestant, first: _Turn, *turns: _Turn) -> WriterMeasurement:
    last = turns[-1].written
    return WriterMeasurement(
        writer=last.writer,
        workers=contestant.workers,
        shards=contestant.shards,
        records=last.records,
        bytes=last.bytes,
        times=tuple(turn.written.seconds for turn in turns),
        plain_times=tuple(turn.plain for turn in turns),
        early_times=tuple(turn.early for turn in turns),
        cpu_seconds=statistics.median(turn.written.cpu_seconds for turn in turns),
        peak_memory_bytes=first.written.peak_memory_bytes,
    )


def _save(data: Any, path: Path) -> None:
    rows = rows_of(data, 1)
    if rows.serialized:
        raise ConfigError("data: consists of records that are serialized already; give their columns")
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        for piece in rows.pieces():
            if isinstance(piece, Piece):
                writer.write_batch(piece.batch)
    with path.open("rb") as file:
        os.fsync(file.fileno())  # not while time is taken


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


def _second_go(contestant: Contestant, work: Path) -> _Pass:
    """Writes twice, and tells what the second time took."""
    _one_pass(contestant, work, streamed=False)
    shutil.rmtree(work / "out")
    return _one_pass(contestant, work, streamed=False)


def _one_pass(contestant: Contestant, work: Path, streamed: bool) -> _Pass:
    writer = contestant.writer
    path = work / "out" / "out.tfrecord" if contestant.shards is None else work / "out"
    rows = _stream(work / "data.arrow") if streamed else _table(work / "data.arrow")
    cpu, started = _cpu_seconds(), time.perf_counter()
    written = write(
        rows,
        path,
        shards=contestant.shards,
        writer=MEASURED.get(str(writer), writer),  # for another name, `write` says which there are
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


def _table(path: Path) -> pa.Table:
    """Returns all rows; their memory is shared with other processes, and there before it is read."""
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED | mmap.MAP_POPULATE, mmap.PROT_READ)
    return pa.ipc.open_file(pa.py_buffer(mapped)).read_all()


def _stream(path: Path) -> Iterator[pa.RecordBatch]:
    file = pa.ipc.open_file(pa.OSFile(str(path)))
    return (file.get_batch(index) for index in range(file.num_record_batches))


def main() -> None:
    """Answers every byte on standard input with what a write took: of a stream, then each time of a second go."""
    stream = messages()
    contestant, work = pickle.load(sys.stdin.buffer)
    streamed = True
    while sys.stdin.buffer.read(1):
        try:
            result: _Pass | TfrError = (
                _one_pass(contestant, work, streamed=True) if streamed else _second_go(contestant, work)
            )
        except TfrError as error:
            result = type(error)(str(error))
        streamed = False
        pickle.dump(result, stream)
        stream.flush()
