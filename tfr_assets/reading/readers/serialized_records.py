"""Ranges of files → datasets of serialized records: where every reader begins.

    records   one by one                        what is read of a file comes as
    chunks    about a megabyte at a time        many as fit, never of two files
    batches   as many as a batch has            files' ends leave no mark

TensorFlow's own reader does the reading. Where faults are to be named, each range is verified right before it is read,
which costs a few percent. Damage to skip and remote storage are the business of `framing`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import tensorflow as tf

from tfr_assets.errors import TfrError
from tfr_assets.reading.locate.record_files import RecordFiles
from tfr_assets.reading.locate.shares import plan_files
from tfr_assets.reading.native.skipped_count import Tally
from tfr_assets.reading.native.verified_files import VerifiedFiles, verified_path
from tfr_assets.reading.readers.framing import range_records
from tfr_assets.reading.readers.generators import from_generator
from tfr_assets.reading.readers.options import ReadOptions
from tfr_assets.reading.tensors.spec import Tensors
from tfr_assets.records.frames.compression import COMPRESSIONS
from tfr_assets.records.frames.segments import Range
from tfr_assets.storage.file_names import is_remote

_STRINGS, _STRING = tf.TensorSpec((None,), tf.string), tf.TensorSpec((), tf.string)
CHUNK_BYTES = 1 << 20
_BUFFER = 256 << 10  # as TensorFlow's own

Opener = Callable[[dict[str, tf.Tensor]], tf.data.Dataset]


@dataclass
class _Source:
    """Opens ranges of files.

    Attributes:
        files: All files.
        options: How they are read.
        ranges: The parts of them that are read.
        tally: What was left out in this epoch.
    """

    files: RecordFiles
    options: ReadOptions
    ranges: list[Range]
    tally: Tally = field(default_factory=Tally)

    @property
    def count(self) -> int:
        return sum(wanted.records for wanted in self.ranges)

    @property
    def skips(self) -> bool:
        return self.options.on_error == "skip"

    @property
    def is_framed(self) -> bool:
        """Whether the project's own scan reads, rather than TensorFlow."""
        return self.skips or any(is_remote(wanted.path) for wanted in self.ranges)

    @property
    def is_plain(self) -> bool:
        """Whether TensorFlow's reader can take all files as they are, one after another."""
        whole = all(wanted.whole for wanted in self.ranges) and len(self.ranges) == len(self.files.paths)
        return whole and not self.is_framed and not self.options.shuffle and self.options.on_error == "unchecked"

    @property
    def chunk(self) -> int:
        """Records that are passed on at once."""
        size = self.files.bytes // max(1, self.files.records)
        return max(1, min(self.options.batch_size, CHUNK_BYTES // max(1, size)))

    def elements(self) -> tf.data.Dataset:
        """Returns the ranges as a dataset, in another order every epoch if that is asked for."""
        columns = {
            "number": tf.range(len(self.ranges)),
            "path": tf.constant([wanted.path for wanted in self.ranges], tf.string),
            **{
                name: tf.constant([getattr(wanted, name) for wanted in self.ranges], tf.int64)
                for name in ("start", "skip", "records")
            },
        }
        ranges = tf.data.Dataset.from_tensor_slices(columns)
        return ranges.shuffle(len(self.ranges), self.options.seed) if self.options.shuffle and self.ranges else ranges

    def records_of(self, wanted: dict[str, tf.Tensor]) -> tf.data.Dataset:
        """Returns the serialized records of a range, one by one."""
        return self.chunks_of(wanted).unbatch() if self.is_framed else self._open(wanted, self._stock)

    def chunks_of(self, wanted: dict[str, tf.Tensor]) -> tf.data.Dataset:
        """Returns the serialized records of a range, some at a time."""
        if self.is_framed:
            return checked_chunks(self._scan, wanted["number"])
        return self._open(wanted, lambda wanted: self._stock(wanted).batch(self.chunk))

    def report(self) -> tf.data.Dataset:
        """Returns no records, but warns of those that were left out when it is reached."""
        return from_generator(self._warn, _STRINGS)

    def _open(self, wanted: dict[str, tf.Tensor], opener: Opener) -> tf.data.Dataset:
        if self.options.on_error == "unchecked":
            return opener(wanted)
        held = from_generator(self._verify, (_STRING, _STRING), [wanted["number"]]).map(refuse)
        return held.flat_map(lambda path: opener({**wanted, "path": path}))

    def _stock(self, wanted: dict[str, tf.Tensor]) -> tf.data.Dataset:
        compression = COMPRESSIONS[self.files.compression].tensorflow_name
        if all(each.whole for each in self.ranges):
            return tf.data.TFRecordDataset(wanted["path"], compression)
        offsets = [wanted["start"]] if not compression else tf.zeros((0,), tf.int64)
        variant = tf.raw_ops.TFRecordDatasetV2(
            filenames=[wanted["path"]], compression_type=compression, buffer_size=_BUFFER, byte_offsets=offsets
        )
        records = tf.data.experimental.from_variant(variant, tf.TensorSpec((), tf.string))
        return records.skip(wanted["skip"]).take(wanted["records"])

    def _verify(self, number: np.int32) -> Iterator[tuple[str, str]]:
        """Gives the path of a file that was verified, which leads to it until this ends, and what is wrong with it."""
        try:
            with verified_path(self.ranges[number]) as path:
                yield path, ""
        except TfrError as error:
            yield "", str(error)

    def _scan(self, number: np.int32) -> Iterator[tuple[np.ndarray, str]]:
        try:
            for records in range_records(self.ranges[number], self.tally.add if self.skips else None):
                yield records, ""
        except TfrError as error:
            yield np.empty(0, object), str(error)
        except MemoryError:
            yield np.empty(0, object), f"{self.ranges[number].path}: there is no memory for its records"

    def _warn(self) -> Iterator[np.ndarray]:
        tally, self.tally = self.tally, Tally()
        tally.warn(self.count)
        yield from ()


def records(
    files: RecordFiles, options: ReadOptions, cycle_length: int = 1, block_length: int = 1, calls: int | None = None
) -> tf.data.Dataset:
    """Returns the serialized records one by one, of shape ().

    Args:
        files: Where they are.
        options: Which of them, in which order.
        cycle_length: Files that are read in turn.
        block_length: Records from a file before it is the next one's turn.
        calls: Files that are read in parallel; None: none.
    """
    source = _Source(files, options, plan_files(files, options.shard))
    if source.is_plain and cycle_length == 1:
        found = tf.data.TFRecordDataset(list(files.paths), COMPRESSIONS[files.compression].tensorflow_name)
    else:
        found = _in_turn(source.elements(), source.records_of, options, cycle_length, block_length, calls)
    if source.skips:
        return shuffle(found.concatenate(source.report().unbatch()), options)
    return shuffle(_assert_count(found, source.count), options)


def batches(
    files: RecordFiles, options: ReadOptions, cycle_length: int = 1, calls: int | None = None
) -> tf.data.Dataset:
    """Returns the serialized records by the batch, of shape (B,); the last one has what is left.

    Args:
        files: Where they are.
        options: Which of them, in which order.
        cycle_length: Files that are read in turn, about a megabyte at a time.
        calls: Files that are read in parallel; None: none.
    """
    source = _Source(files, options, plan_files(files, options.shard))
    if cycle_length == 1 and source.is_plain:
        return records(files, options).batch(options.batch_size, drop_remainder=options.drop_remainder)
    chunks = _in_turn(source.elements(), source.chunks_of, options, cycle_length, 1, calls)
    if source.skips:
        chunks = chunks.concatenate(source.report())
    return rebatch(chunks, options, None if source.skips else source.count)


def checked_chunks(generate: Callable[..., Iterator[tuple[np.ndarray, str]]], *arguments: tf.Tensor) -> tf.data.Dataset:
    """Returns a dataset of serialized records, of shape (n,), from a generator.

    Args:
        generate: Gives arrays of bytes, each with what is wrong, or nothing. An exception would reach training code as
            a stack trace.
        arguments: What it is called with, for each epoch.
    """
    return from_generator(generate, (_STRINGS, _STRING), arguments).map(refuse)


def chunks_in_turn(files: RecordFiles, options: ReadOptions, cycle_length: int, calls: int | None) -> tf.data.Dataset:
    """Returns the serialized records about a megabyte at a time, of shape (n,), neither shuffled nor counted."""
    source = _Source(files, options, plan_files(files, options.shard))
    return _in_turn(source.elements(), source.chunks_of, options, cycle_length, 1, calls)


def verify_batches(batches: tf.data.Dataset, files: RecordFiles, options: ReadOptions) -> tf.data.Dataset:
    """Returns what other processes read, if the files are verified, before the first batch and still when each comes.

    Args:
        batches: What they read, under the names of the files.
        files: The files.
        options: Which of them, and whether this is asked for.
    """
    if options.on_error != "raise":
        return batches
    ranges = plan_files(files, options.shard)
    verified = VerifiedFiles(ranges)

    def verify_all(one: tf.Tensor) -> tf.Tensor:
        def verify(number: tf.Tensor) -> tf.Tensor:
            return refuse(number, tf.numpy_function(_problem_of(verified.verify), [number], tf.string))

        return tf.data.Dataset.range(len(ranges)).map(verify, tf.data.AUTOTUNE).reduce(one, lambda one, _: one)

    def check(batch: Tensors) -> Tensors:
        problem = tf.numpy_function(_problem_of(verified.check), [], tf.string)
        return tf.nest.map_structure(lambda tensor: refuse(tensor, problem), batch, expand_composites=True)

    # of one element, so that nothing follows an error: tf.data goes on after it, to what may be gone by then
    return tf.data.Dataset.from_tensors(0).map(verify_all).flat_map(lambda _: batches.map(check))


def _problem_of(work: Callable[..., None]) -> Callable[..., str]:
    """Returns a function that gives what is wrong as a text, because an exception would be a stack trace."""

    def problem(*arguments: int) -> str:
        try:
            work(*arguments)
        except TfrError as error:
            return str(error)
        return ""

    return problem


def rebatch(chunks: tf.data.Dataset, options: ReadOptions, count: int | None) -> tf.data.Dataset:
    """Makes batches of chunks, shuffled if that is asked for.

    Args:
        chunks: Serialized records, of shape (n,).
        options: Tells the size of batches and the order.
        count: Number of all records; None where that is not known.
    """
    size, drop_remainder = options.batch_size, options.drop_remainder
    if options.shuffle:
        one_by_one = chunks.unbatch() if count is None else _assert_count(chunks.unbatch(), count)
        return shuffle(one_by_one, options).batch(size, drop_remainder=drop_remainder)
    found = chunks.rebatch(size, drop_remainder=drop_remainder)
    return found if count is None else _assert_count(found, _batch_count(count, options))


def assert_batch_count(batches: tf.data.Dataset, files: RecordFiles, options: ReadOptions) -> tf.data.Dataset:
    """Makes it an error if batches are more or fewer than the files' records make."""
    return _assert_count(batches, _batch_count(records_in(files, options), options))


def _batch_count(records: int, options: ReadOptions) -> int:
    return records // options.batch_size if options.drop_remainder else -(-records // options.batch_size)


def records_in(files: RecordFiles, options: ReadOptions) -> int:
    """Returns how many records there are to read."""
    return sum(wanted.records for wanted in plan_files(files, options.shard))


def shuffle(records: tf.data.Dataset, options: ReadOptions) -> tf.data.Dataset:
    """Draws records at random from as many as the options say, in another order every epoch."""
    return records.shuffle(options.shuffle, options.seed) if options.shuffle else records


def _assert_count(dataset: tf.data.Dataset, count: int) -> tf.data.Dataset:
    """Makes another number of elements an error: TensorFlow takes a file cut between two records for a shorter one."""
    return dataset.apply(tf.data.experimental.assert_cardinality(count))


def _in_turn(
    ranges: tf.data.Dataset,
    open_range: Opener,
    options: ReadOptions,
    cycle_length: int,
    block_length: int,
    calls: int | None,
) -> tf.data.Dataset:
    if cycle_length == 1 and calls is None:
        return ranges.flat_map(open_range)
    return ranges.interleave(
        open_range, cycle_length, block_length, calls, deterministic=None if calls is None else options.deterministic
    )


def refuse(value: tf.Tensor, problem: tf.Tensor) -> tf.Tensor:
    """Passes a value on, unless there is a problem."""
    with tf.control_dependencies([tf.debugging.Assert(tf.equal(problem, ""), [problem])]):
        return tf.identity(value)
