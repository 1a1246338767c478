"""The kind `audio`: recordings → records, as their files' bytes or as samples.

    audio/encoded        bytes      the file as it is              ─┐ samples: encoded
    audio/format         string     wav, flac, ogg, mp3, aiff      ─┘
    audio/samples        numbers    frames × channels, flat        ─┐ samples: float32, int16
    audio/frames         int64      of sound, not of padding       ─┘
    audio/sample_rate    int64      Hz
    audio/channels       int64
    audio/duration       float32    seconds: frames / sample_rate
    audio/filename       string     path below the source's folder
    audio/class/label    int64      where recordings have labels
    audio/class/text     string

TensorFlow itself decodes WAV of 16 bits only (`tf.audio.decode_wav`); for all else, store samples. `float32` takes 4
bytes per sample in a record, `int16` up to 10: a tf.Example holds whole numbers as varints.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tfr_assets.errors import SourceError
from tfr_assets.sources.files.contents import read_contents
from tfr_assets.sources.files.tree import root_of
from tfr_assets.sources.media.audio.samples import SampleOptions, check_storable, decode_into, inspect, made_by
from tfr_assets.sources.media.labels import label_columns, label_fields, made_nulls
from tfr_assets.sources.media.listing import Medium, list_files
from tfr_assets.sources.model.audio_options import AudioOptions
from tfr_assets.sources.model.kinds import BYTES, CRC, FILE, BadFileError, Found

if TYPE_CHECKING:
    from tfr_assets.sources.model.source import Source

ENDINGS = (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aiff", ".aif")
_PREFIX = "audio"
_ENCODED, _FORMAT = "audio/encoded", "audio/format"
_SAMPLES, _FRAMES = "audio/samples", "audio/frames"
_RATE, _CHANNELS, _DURATION = "audio/sample_rate", "audio/channels", "audio/duration"
_FILENAME = "audio/filename"


def list_rows(source: "Source", work: Path, found: Found) -> Iterator[pa.RecordBatch]:
    """Yields a row per recording, in natural order of paths. See `kinds.Kind` and `listing.list_files`.

    With `samples`, every file is decoded once, so that a broken body is found before anything is written.
    """
    options = source.chosen.audio
    assert options
    samples = _sample_options(options)
    fields = [(_RATE, pa.int64()), (_CHANNELS, pa.int64()), (_DURATION, pa.float32())]
    fields.append((_FRAMES, pa.int64()) if samples else (_FORMAT, pa.string()))
    if samples:
        found.made_by += made_by(samples)
    look = partial(_facts, samples)
    medium = Medium("recording", _PREFIX, ENDINGS, pa.schema(fields), look, heavy=samples is not None)
    return list_files(source, medium, options.label_options, options.skip, work, found, options.follow_links)


def expansion(source: "Source", listing: pa.Schema, classes: Mapping[str, tuple[str, ...]]) -> "Recordings":
    """Returns how rows of a listing become records. See `kinds.Kind`."""
    options = source.chosen.audio
    assert options
    samples = _sample_options(options)
    content = [(_SAMPLES, _samples_type(samples))] if samples else [(_ENCODED, pa.large_binary())]
    kept = [field for field in listing if not field.name.startswith(".")]
    schema = pa.schema([*content, *kept, (_FILENAME, pa.string()), *label_fields(_PREFIX, classes)])
    root = root_of(options.path, source.storage_options)
    return Recordings(root, source.storage_options, samples, dict(classes), schema)


@dataclass(frozen=True)
class Recordings:
    """The `kinds.Expansion` of recordings.

    Attributes:
        root: What the listing's files lie below.
        storage_options: Passed to fsspec.
        samples: How samples are stored; None: files stay as they are.
        classes: Names of classes by feature column.
        schema: All columns that records can have.
    """

    root: str
    storage_options: Mapping[str, Any]
    samples: SampleOptions | None
    classes: Mapping[str, tuple[str, ...]]
    schema: pa.Schema

    def sizes(self, rows: pa.RecordBatch) -> np.ndarray:
        """Returns how many bytes each row's file, or its samples if these are more, takes in memory: int64 (rows,)."""
        sizes = _numpy(rows, BYTES)
        if not self.samples:
            return sizes
        return np.maximum(sizes, self._samples_of(rows) * self.samples.dtype.itemsize)

    def null_counts(self, listed: Mapping[str, int | None]) -> dict[str, int | None]:
        """Returns the nulls of the columns of `schema`. See `kinds.Expansion`."""
        return made_nulls(self.schema, listed)

    def expand(self, rows: pa.RecordBatch, columns: Collection[str]) -> pa.RecordBatch:
        """Returns the named columns of `schema`, in its order. See `kinds.Expansion`."""
        schema = pa.schema([field for field in self.schema if field.name in columns])
        made = label_columns(rows, _PREFIX, self.classes) | {_FILENAME: rows[FILE]}
        if _ENCODED in schema.names:
            made[_ENCODED] = self._contents(rows)
        if _SAMPLES in schema.names:
            made[_SAMPLES] = self._decoded(rows)
        arrays = [made[name] if name in made else rows[name] for name in schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _contents(self, rows: pa.RecordBatch) -> pa.LargeBinaryArray:
        return read_contents(self.root, self.storage_options, rows[FILE], rows[BYTES], rows[CRC])

    def _samples_of(self, rows: pa.RecordBatch) -> np.ndarray:
        """Returns the number of samples that are stored of each row: int64 of shape (rows,)."""
        assert self.samples
        if self.samples.length is not None:
            return np.full(len(rows), self.samples.length, np.int64)
        return _numpy(rows, _FRAMES) * _numpy(rows, _CHANNELS)

    def _decoded(self, rows: pa.RecordBatch) -> pa.Array:
        assert self.samples
        contents = self._contents(rows)
        starts = np.concatenate([[0], np.cumsum(self._samples_of(rows))])
        values = np.zeros(starts[-1], self.samples.dtype)  # zeros are what recordings are padded with
        frames, channels = _numpy(rows, _FRAMES), _numpy(rows, _CHANNELS)
        for row, start in enumerate(starts[:-1]):
            out = values[start : start + frames[row] * channels[row]].reshape(frames[row], channels[row])
            try:
                decode_into(memoryview(contents[row].as_buffer()), self.samples, out)
            except BadFileError as error:
                raise SourceError(f"{self.root}/{rows[FILE][row]}: {error}.") from error
        if self.samples.length is not None:
            return pa.FixedSizeListArray.from_arrays(pa.array(values), self.samples.length)
        return pa.LargeListArray.from_arrays(pa.array(starts, pa.int64()), pa.array(values))


def _sample_options(options: AudioOptions) -> SampleOptions | None:
    """Returns how samples are stored; None: files stay as they are."""
    if options.samples == "encoded":
        return None
    return SampleOptions(np.dtype(options.samples), options.rate, bool(options.mono), options.length)


def _facts(options: SampleOptions | None, data: bytes) -> tuple[int, int, float, int | str]:
    """Returns what a listing says of a recording: rate, channels, duration, and frames or format."""
    sound = inspect(data, decode=options is not None)
    if options is None:
        return sound.rate, sound.channels, sound.frames / sound.rate, sound.format
    stored = options.stored(sound)
    check_storable(stored)
    return stored.rate, stored.channels, stored.frames / stored.rate, stored.frames


def _samples_type(options: SampleOptions) -> pa.DataType:
    value = pa.from_numpy_dtype(options.dtype)
    return pa.large_list(value) if options.length is None else pa.list_(value, options.length)


def _numpy(rows: pa.RecordBatch, name: str) -> np.ndarray:
    """Returns a column without nulls: int64 of shape (rows,)."""
    column: np.ndarray = rows[name].to_numpy()
    return column
