"""Records by number → columns, by one thread at a time, with errors that name the record."""

from collections.abc import Mapping

import numpy as np

from tfr_assets.errors import DamagedFile, OutOfMemory
from tfr_assets.reading.access.gather import Source
from tfr_assets.records.arrow.buffers import Buffer
from tfr_assets.records.arrow.ragged import put_together
from tfr_assets.records.examples.decoder import Decoder
from tfr_assets.records.examples.ranges import Columns
from tfr_assets.records.frames.scan import Fault
from tfr_assets.records.frames.skipped import describe_faults
from tfr_assets.records.schema.features import FeatureSpec


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

    def decode(self, records: np.ndarray, threads: int = 1) -> tuple[Columns, dict[int, Fault]]:
        """Returns the columns of records, a row each, as they were asked for, and what is wrong with others.

        Args:
            records: int64 of shape (n,): their numbers, in any order, also several times.
            threads: How many read at once.

        Raises:
            StaleError: A file is not the one that was opened.
            DamagedFile: A file cannot be read; or a record is damaged, unless these are left out.
            OutOfMemory: The records do not fit into memory.
        """
        try:
            found = self._source.gather(records, self._memory.take, threads)
            faults = {**found.faults}
            self._refuse(faults)
            frames = found.frames
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
        except MemoryError as error:
            raise OutOfMemory(
                f"there is no memory for {len(records)} records; ask for fewer at once, or use a smaller batch_size, "
                "fewer workers or columns"
            ) from error

    def _refuse(self, faults: Mapping[int, Fault]) -> None:
        _refuse(faults, self._skip)


def read_payloads(
    source: Source, records: np.ndarray, skip: bool, threads: int = 1
) -> tuple[list[bytes], Mapping[int, Fault]]:
    """Returns the bytes of records, whatever they hold; arguments, faults and errors as for `RecordDecoder.decode`."""
    found = source.gather(records, Buffer().take, threads)
    _refuse(found.faults, skip)
    return [found.buffer[start : start + size].tobytes() for start, size, _ in found.frames.tolist()], found.faults


def _refuse(faults: Mapping[int, Fault], skip: bool) -> None:
    if faults and not skip:
        raise DamagedFile(describe_faults(list(faults.values())))
