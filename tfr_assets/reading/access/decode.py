"""Records by number → columns, by one thread at a time, with errors that name the record."""

from collections.abc import Iterator, Mapping

import numpy as np

from tfr_assets.errors import DamagedFile, OutOfMemory
from tfr_assets.reading.access.gather import Gathered, Source
from tfr_assets.records.arrow.buffers import Buffer
from tfr_assets.records.arrow.ragged import put_together
from tfr_assets.records.examples.decoder import Decoder
from tfr_assets.records.examples.ranges import Columns
from tfr_assets.records.frames.scan import Fault
from tfr_assets.records.frames.skipped import describe_faults
from tfr_assets.records.schema.features import FeatureSpec

Decoded = tuple[Columns, dict[int, Fault]]
"""Columns, a row each record, and what is wrong with those that are left out, by number."""


class RecordDecoder:
    """Reads and decodes records. One thread at a time may use it.

    Args:
        source: Where the records come from.
        spec: How the records are parsed.
        names: The columns to decode, by base name.
        nulls: As for `Decoder`.
        skip: Whether damaged records are left out.

    Raises:
        ConfigError: The spec holds what cannot be decoded here.
    """

    def __init__(self, source: Source, spec: FeatureSpec, names: tuple[str, ...], nulls: bool, skip: bool) -> None:
        self._source, self._spec, self._skip = source, spec, skip
        self._decoder = Decoder(spec, {part.name for name in names for part in spec.columns[name]}, nulls)
        self._memory = Buffer()

    def decode(self, records: np.ndarray, threads: int = 1) -> Decoded:
        """Returns the columns of records, a row each, as they were asked for, and what is wrong with others.

        Args:
            records: int64 of shape (n,): their numbers, in any order, also several times.
            threads: How many read at once.

        Raises:
            StaleError: A file is not the one that was opened.
            DamagedFile: A file cannot be read; or a record is damaged, unless these are left out.
            OutOfMemory: The records do not fit into memory.
        """
        (found,) = self.decode_all(records, max(1, len(records)), threads)
        return found

    def decode_all(self, records: np.ndarray, size: int, threads: int = 1) -> Iterator[Decoded]:
        """Yields what `decode` returns of so many records after so many, which are all read together.

        Arguments and errors as for `decode`.
        """
        try:
            found = self._source.gather(records, self._memory.take, threads)
            for first in range(0, len(records), size) or [0]:
                yield self._decoded(found, found.frames[first : first + size])
        except MemoryError as error:
            raise OutOfMemory(
                f"there is no memory for {len(records)} records; ask for fewer at once, or use a smaller batch_size, "
                "fewer workers or columns"
            ) from error

    def _decoded(self, found: Gathered, frames: np.ndarray) -> Decoded:
        frames, faults = _intact(found, frames)
        self._refuse(faults)
        self._decoder.start(len(frames))
        if problems := self._decoder.add(found.buffer, frames):
            for problem in problems:
                number = int(frames[problem.index, 2])
                faults[number] = self._source.misfit(number, problem.text)
            self._refuse(faults)
            frames = np.delete(frames, [problem.index for problem in problems], 0)
            problems = self._decoder.add(found.buffer, frames)
            assert not problems
        return put_together(self._spec, self._decoder.finish()), dict(sorted(faults.items()))

    def _refuse(self, faults: Mapping[int, Fault]) -> None:
        _refuse(faults, self._skip)


def read_payloads(
    source: Source, records: np.ndarray, skip: bool, threads: int = 1
) -> tuple[list[bytes], Mapping[int, Fault]]:
    """Returns the bytes of records, whatever they hold; arguments, faults and errors as for `RecordDecoder.decode`."""
    found = source.gather(records, Buffer().take, threads)
    _refuse(found.faults, skip)
    frames, faults = _intact(found, found.frames)
    return [found.buffer[start : start + size].tobytes() for start, size, _ in frames.tolist()], faults


def _intact(found: Gathered, frames: np.ndarray) -> tuple[np.ndarray, dict[int, Fault]]:
    """Returns some of the frames less those that are damaged, and what is wrong with these, by number."""
    if not found.faults:
        return frames, {}
    wrong = np.isin(frames[:, 2], list(found.faults))
    return frames[~wrong], {number: found.faults[number] for number in np.unique(frames[wrong, 2]).tolist()}


def _refuse(faults: Mapping[int, Fault], skip: bool) -> None:
    if faults and not skip:
        raise DamagedFile(describe_faults(list(faults.values())))
