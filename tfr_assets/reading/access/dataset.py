"""A dataset that a program holds: its length, any of its records, and batches of them in any order."""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from tfr_assets.errors import ConfigError, OutOfMemory, OutOfRange, SourceError, StaleError
from tfr_assets.reading.access.decode import RecordDecoder, read_payloads
from tfr_assets.reading.access.epochs import ResumableBatches
from tfr_assets.reading.access.frameworks import InFrameworks
from tfr_assets.reading.access.gather import LoadedRecords, Source, batches_together, file_records
from tfr_assets.reading.access.left import Positions
from tfr_assets.reading.access.open_files import OpenFiles
from tfr_assets.reading.access.options import BatchInto, BatchOptions, Even, check_on_error
from tfr_assets.reading.access.order import Order, Shuffle, order_of
from tfr_assets.reading.access.passes import AnyOrder
from tfr_assets.reading.access.remote_files import REACH
from tfr_assets.reading.access.rows import as_records
from tfr_assets.reading.locate.file_sets import other_splits, split_of
from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.reading.locate.slices import gather_again
from tfr_assets.reading.locate.undescribed import REMOTE
from tfr_assets.reading.native.choose_columns import check_decodable, chosen_columns
from tfr_assets.reading.native.convert import converter, keeps_nulls
from tfr_assets.records.frames.examine import FileReport, examine, examine_files, faulty_report
from tfr_assets.records.frames.gather import GAP
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.frames.scan import Fault, FaultKind
from tfr_assets.records.schema.features import FeatureSpec
from tfr_assets.storage.file_names import is_remote
from tfr_assets.storage.objects.folder import ObjectFolder
from tfr_assets.storage.objects.store import is_reached
from tfr_assets.storage.remote_folders import files_in

if TYPE_CHECKING:
    import pyarrow as pa

Into = Literal["numpy", "arrow", "pandas", "records", "bytes", "torch", "jax"]
Records = Sequence[int] | np.ndarray | slice | range
_AT_ONCE = 1024  # records decoded together when iterating
_THREADS = 4  # that read for one `take`


def fingerprint_of(files: RecordFiles) -> str:
    """Returns what tells the records of some files, in their order, from all others: 16 hex digits."""
    made = [[manifest.records, manifest.digest] for manifest in files.manifests]
    return hashlib.sha256(json.dumps([made, files.features.fingerprint]).encode()).hexdigest()[:16]


def payload_bytes_of(files: RecordFiles) -> int:
    """Returns the size of all records of some files."""
    return sum(manifest.payload_bytes for manifest in files.manifests)


def files_order(files: RecordFiles, shuffle: Shuffle, seed: int) -> Order:
    """Returns an order of all records of some files. Arguments and errors as for `order_of`."""
    return order_of(files.records, payload_bytes_of(files), shuffle, seed)


class Dataset(InFrameworks):
    """Records of one split that are read by number, without TensorFlow. Get it from `tfr_assets.open`.

    ```python
    import tfr_assets

    flights = tfr_assets.open("flights")
    len(flights)
    flights[17]["carrier"]  # a dict: numbers as NumPy has them, texts as str
    flights[-5:]  # a list of five
    flights.take([3, 1, 1], into="pandas")  # columns, in the order asked
    for batch in flights.batches(256, shuffle="global"):
        batch["distance"]
    ```

    A null is None for texts and integers, NaN for floats, and an empty array or list for lists, as in batches.

    Any number of threads may use it, and forked processes; an iterator of batches goes on only in the process that
    began it. It can be pickled: the files are opened again then, and must be the same. Both CRCs of each record are
    checked, and a file that is replaced meanwhile is noticed.

    Args:
        files: The files.
        columns: The columns to decode; None: all.
        in_memory: Whether all records are read now, and kept.
    """

    def __init__(
        self,
        files: RecordFiles,
        columns: Sequence[str] | None = None,
        in_memory: bool = False,
    ) -> None:
        self._files, self._columns = files, None if columns is None else chosen_columns(files.features, columns)
        self._open, self._in_memory = OpenFiles(files), in_memory
        self._source: Source = file_records(files, self._open)
        if in_memory:
            try:
                self._source = LoadedRecords(self._source, len(self), _THREADS)
            except MemoryError as error:
                raise OutOfMemory(
                    f"the {files.bytes} bytes of {files.paths[0]} … do not fit into memory; leave out in_memory"
                ) from error
            self.close()
        self._own = threading.local()

    def __len__(self) -> int:
        return self._files.records

    def __repr__(self) -> str:
        return f"<{len(self)} records of {len(self._files.paths)} files: {', '.join(self._names(None))}>"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._files.scanned:  # which a file that is not the same fails
            return Dataset, (self._files, self._columns, self._in_memory)
        return _reopened, (
            self._files.paths,
            self._columns,
            self._files.max_record_bytes,
            self._in_memory,
            self.fingerprint,
        )

    @property
    def manifests(self) -> tuple[Manifest, ...]:
        """What each of the files must hold."""
        return self._files.manifests

    @property
    def features(self) -> FeatureSpec:
        """How records are parsed."""
        return self._files.features

    @property
    def schema(self) -> "pa.Schema":
        """The Arrow schema of the columns, as `take(…, into="arrow")` gives them."""
        return self.take([], into="arrow").schema

    @property
    def splits(self) -> list[str]:
        """Names of all splits that lie beside this one, and of this one."""
        path = self._files.paths[0]
        folder, _, name = path.rpartition("/")
        manifests = f"{folder}/manifest"
        names = files_in(manifests) if is_remote(path) else [each.name for each in Path(manifests).glob("*")]
        beside = [each.removesuffix(".json") for each in names if each.endswith(".json")]
        return sorted({*other_splits(path, beside), split_of(name)} - {""})

    @property
    def fingerprint(self) -> str:
        """What tells these records, in their order, from all others: 16 hex digits over the manifests' digests."""
        return fingerprint_of(self._files)

    @overload
    def __getitem__(self, record: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, record: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, record: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(record, slice):
            return self.take(record, into="records")
        return self.take([record], into="records")[0]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for first in range(0, len(self), _AT_ONCE):
            yield from self[first : first + _AT_ONCE]

    @overload
    def take(self, records: Records, *, into: Into = ..., columns: Sequence[str] | None = ...) -> Any: ...
    @overload
    def take(
        self, records: Records, *, into: Into = ..., columns: Sequence[str] | None = ..., on_error: Literal["raise"]
    ) -> Any: ...
    @overload
    def take(
        self, records: Records, *, into: Into = ..., columns: Sequence[str] | None = ..., on_error: Literal["skip"]
    ) -> tuple[Any, np.ndarray]: ...
    def take(
        self,
        records: Records,
        *,
        into: Into = "numpy",
        columns: Sequence[str] | None = None,
        on_error: Literal["raise", "skip"] = "raise",
    ) -> Any:
        """Returns records by number, in the order asked, all read in one pass.

        Args:
            records: Numbers of records, also several times; those below 0 count from the end. Or a slice or range.
            into: `"numpy"`, `"arrow"`, `"pandas"`, `"torch"` or `"jax"`, as for `tfr_assets.batches`; `"records"`: a
                list of dicts; `"bytes"`: a list of serialized records.
            columns: Those to decode; None: those that the dataset was opened with.
            on_error: `"raise"`, or `"skip"` to leave out damaged records.

        Returns:
            The records; with `on_error="skip"` also the numbers of those that are missing, ascending, as int64.

        Raises:
            OutOfRange: There is no such record. It is an IndexError, too.
            ConfigError: There is no such column or choice, a column holds what only TensorFlow can read, or the process
                may not open any more files.
            StaleError: A file was replaced since it was opened.
            DamagedFile: A record is damaged: the message says which, in which file and where.
            WriteError: A compressed file does not fit into the temporary folder.
            OutOfMemory: The records do not fit into memory.
        """
        check_on_error(on_error)
        wanted = self._numbers(records)
        skip = on_error == "skip"
        faults: Mapping[int, Fault]
        names = self._names(columns)
        if into == "bytes":
            found, faults = read_payloads(self._source, wanted, skip, _THREADS)
        else:
            convert = self._converter(names, into, ("records", "bytes"))
            decoded, faults = self._decoder(names, keeps_nulls(into), skip).decode(wanted, _THREADS)
            found = convert({name: decoded[name] for name in names})
        return (found, np.array(list(faults), np.int64)) if skip else found

    def batches(
        self,
        batch_size: int = 4096,
        *,
        into: BatchInto = "numpy",
        columns: Sequence[str] | None = None,
        shuffle: Shuffle = False,
        seed: int = 0,
        epochs: int | None = 1,
        shard: tuple[int, int] | None = None,
        even: Even | None = None,
        on_error: Literal["raise", "skip"] = "raise",
        workers: int = 2,
        drop_remainder: bool = False,
    ) -> ResumableBatches:
        """Returns an iterator of batches that can be stopped anywhere and continued, on any number of workers.

        Args:
            batch_size: Records a batch; the last one of an epoch has what is left.
            into: As for `take`.
            columns: As for `take`.
            shuffle: `"global"`: any record at any position; `"blocks"`: blocks of 256 KiB or more in random order, 16
                of them shuffled together; a number: within windows of so many records, 10,000 for True; False: as
                written. docs/reading.md measures them against each other.
            seed: Another number is another order. Each epoch has its own, the same in every run and on all workers.
            epochs: How many; None: without end.
            shard: `(index, count)`: only this worker's share of the epoch's positions, a consecutive one; None: all.
            even: What makes all workers have as many batches: `"pad"` gives a share that is one record short another
                one, so that this comes twice; `"drop"` leaves out the last of one that is longer. None: each record
                comes once; shares differ by one record at most, and so by a batch at most.
            on_error: `"raise"`, or `"skip"` to leave damaged records out of their batches, with a warning at the end.
            workers: Threads that read and decode ahead.
            drop_remainder: Whether to leave out a last batch that is not full.

        Raises:
            ConfigError: An argument cannot be; while iterating, as for `take`, as are the others.
        """
        options = BatchOptions(batch_size, into, epochs, shard, even, on_error, workers, drop_remainder)
        return self.batches_in_order(self._order(shuffle, seed), self.fingerprint, options, columns)

    def batches_in_order(
        self, order: Order, fingerprint: str, options: BatchOptions, columns: Sequence[str] | None = None
    ) -> ResumableBatches:
        """Does what `batches` does, in any order of these records.

        Args:
            order: The order.
            fingerprint: What the states of the iterator are bound to.
            options: What is asked for.
            columns: As for `take`.
        """
        names = self._names(columns)
        convert = self._converter(names, options.into, ("records",))

        def new_decoder() -> RecordDecoder:
            return RecordDecoder(self._source, self.features, names, keeps_nulls(options.into), options.skip)

        idle = [new_decoder()]  # what it refuses is refused at once

        together = 1
        if order.shuffle == "global" and not self._in_memory:
            gap = REACH[0] if is_remote(self._files.paths[0]) else GAP
            together = batches_together(self._payload_bytes, len(self), options.batch_size, gap)

        def start(order: Order, epoch: int, share: Positions) -> AnyOrder:
            return AnyOrder(order, epoch, share, options, together, new_decoder, idle, names, convert)

        return ResumableBatches(fingerprint, order, options, start)

    def verify(self) -> list[FileReport]:
        """Reads all files and compares each with its manifest and index, as `tfr_assets.verify` does.

        Returns:
            A report of each file; one that is missing, or cannot be read, has a fault that says so.
        """
        if not is_remote(self._files.paths[0]):
            return examine_files([Path(path) for path in self._files.paths])
        files = zip(self._files.paths, self._files.manifests, strict=True)
        return [report for path, manifest in files for report in self._verify_remote(path, manifest)]

    def _verify_remote(self, url: str, manifest: Manifest) -> list[FileReport]:
        try:
            if self._files.scanned or not is_reached(url):  # what lies beside them is not looked at
                return [examine(url, manifest, manifest.features, opener=REMOTE.open)]
            folder, _, name = url.rpartition("/")
            if ObjectFolder(folder).stat(name) is None:
                return [faulty_report(Fault(url, 0, 0, FaultKind.MISSING))]
            from tfr_assets.writing.stored import verify

            return verify(url)
        except SourceError as error:
            says = str(error).removeprefix(f"{url}: ")
            return [faulty_report(Fault(url, 0, 0, FaultKind.UNREADABLE, says))]

    def close(self) -> None:
        """Closes the files; they are opened again when a record is asked for, and must be the same."""
        self._open.close()

    def __enter__(self) -> "Dataset":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _order(self, shuffle: Shuffle, seed: int) -> Order:
        return files_order(self._files, shuffle, seed)

    @property
    def _payload_bytes(self) -> int:
        return payload_bytes_of(self._files)

    def _numbers(self, records: Records) -> np.ndarray:
        size = len(self)
        if isinstance(records, slice):
            return np.arange(*records.indices(size))
        wanted = np.asarray(records)
        if not wanted.size:
            return np.empty(0, np.int64)
        if wanted.ndim != 1 or wanted.dtype.kind not in "iu":
            raise ConfigError(f"{str(records)[:200]} must be the number of a record, a slice, or a list of numbers")
        outside = (wanted < -size) | (wanted >= size)
        if outside.any():
            raise OutOfRange(f"there is no record {wanted[outside][0]}; the dataset has {size}, from 0 on")
        wanted = wanted.astype(np.int64)
        return np.where(wanted < 0, wanted + size, wanted)

    def _names(self, columns: Sequence[str] | None) -> tuple[str, ...]:
        if columns is None and self._columns is not None:
            return self._columns
        return chosen_columns(self.features, columns)

    def _decoder(self, names: tuple[str, ...], nulls: bool, skip: bool) -> RecordDecoder:
        """Returns this thread's decoder."""
        decoders: dict[Any, RecordDecoder] = self._own.__dict__
        key = f"{names} {nulls} {skip}"
        if key not in decoders:
            decoders[key] = RecordDecoder(self._source, self.features, names, nulls, skip)
        return decoders[key]

    def _converter(self, names: tuple[str, ...], into: str, choices: Sequence[str]) -> Callable[[Any], Any]:
        for name in names:
            check_decodable(self.features, name)
        if into == "records":
            return lambda columns: as_records(self.features, columns)
        return converter(self.features, names, into, choices)


def _reopened(
    paths: tuple[str, ...],
    columns: tuple[str, ...] | None,
    max_record_bytes: int,
    in_memory: bool,
    fingerprint: str,
) -> Dataset:
    """Opens files again.

    Raises:
        StaleError: They are not those of the fingerprint.
        DamagedFile: A file is missing.
    """
    files = gather_again(paths).with_limit(max_record_bytes)
    if (now := fingerprint_of(files)) != fingerprint:
        raise StaleError(
            f"{paths[0]} and what belongs to it are not the files of the pickled dataset (fingerprint {fingerprint}, "
            f"now {now}); open the dataset again"
        )
    return Dataset(files, columns, in_memory)
