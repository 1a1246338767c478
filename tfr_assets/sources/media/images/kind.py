"""The kind `images`: photographs → records, as their files' bytes, as other images, or as pixels.

    image/encoded        bytes      the file as it is, or encoded again  ─┐ not with `format: raw`
    image/format         string     jpeg, png, gif, bmp, webp           ─┘
    image/pixels         numbers    height × width × channels, uint8       only with `format: raw`
    image/height         int64      ─┐
    image/width          int64       │ of what is stored; not with `format: raw` and `size`, where they are the shape
    image/channels       int64      ─┘
    image/orientation    int64      EXIF's, 1 to 8; only of files that stay as they are: else it is applied
    image/filename       string     path below the source's folder
    image/class/label    int64      ─┐ where images have labels
    image/class/text     string     ─┘

`tf.io.decode_image` reads all that is stored: upright only where the orientation is 1, GIF and WebP with a dimension of
frames unless `expand_animations=False`. What it would read wrongly or crash on (animated WebP, BMP with a palette) is a
bad file, unless it is converted.
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
from tfr_assets.sources.media.images.tables import CONTENT, list_tables
from tfr_assets.sources.media.labels import label_columns, label_fields, made_nulls
from tfr_assets.sources.media.listing import Medium, list_files
from tfr_assets.sources.model.image_options import Conversion, ImageOptions
from tfr_assets.sources.model.kinds import BYTES, CRC, FILE, BadFileError, Found

if TYPE_CHECKING:
    from PIL.Image import Image

    from tfr_assets.sources.model.source import Source

ENDINGS = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp")
_PREFIX = "image"
_ENCODED, _PIXELS, _FORMAT = "image/encoded", "image/pixels", "image/format"
_HEIGHT, _WIDTH, _CHANNELS = "image/height", "image/width", "image/channels"
_ORIENTATION, _FILENAME = "image/orientation", "image/filename"
_SHAPE = [(_HEIGHT, pa.int64()), (_WIDTH, pa.int64()), (_CHANNELS, pa.int64())]


def list_rows(source: "Source", work: Path, found: Found) -> Iterator[pa.RecordBatch]:
    """Yields a row per image, in natural order of paths. See `kinds.Kind` and `listing.list_files`.

    To be converted, every image is decoded once here, so that a broken one is found before anything is written.
    """
    options = source.chosen.images
    assert options
    medium = _medium(options)
    if options.conversion:
        import PIL

        found.made_by.append(f"Pillow {PIL.__version__}")
    if options.column:
        return list_tables(source, options.column, options.label_options, options.skip, medium, found)
    return list_files(source, medium, options.label_options, options.skip, work, found, options.follow_links)


def expansion(source: "Source", listing: pa.Schema, classes: Mapping[str, tuple[str, ...]]) -> "Images":
    """Returns how rows of a listing become records. See `kinds.Kind`."""
    options = source.chosen.images
    assert options
    facts = [field for field in listing if not field.name.startswith(".")]
    fields = [_content_field(options.conversion), *facts, (_FILENAME, pa.string()), *label_fields(_PREFIX, classes)]
    root = root_of(options.path, source.storage_options)
    return Images(root, source.storage_options, options, dict(classes), pa.schema(fields))


def _content_field(conversion: Conversion | None) -> tuple[str, pa.DataType]:
    if not conversion or conversion.format != "raw":
        return _ENCODED, pa.large_binary()
    if not conversion.size:
        return _PIXELS, pa.large_list(pa.uint8())
    return _PIXELS, pa.fixed_shape_tensor(pa.uint8(), [*conversion.size, conversion.channels])


def _medium(options: ImageOptions) -> Medium:
    """Returns what to look for in images: what records say of them, after the conversion if there is one."""
    if not options.conversion:
        facts = [(_FORMAT, pa.string()), *_SHAPE, (_ORIENTATION, pa.int64())]
        return Medium("image", _PREFIX, ENDINGS, pa.schema(facts), partial(_look, options.max_pixels))
    if options.conversion.format == "raw":
        facts = [] if options.conversion.size else _SHAPE
    else:
        facts = [(_FORMAT, pa.string()), *_SHAPE]
    look = partial(_look_at_converted, options.conversion, options.max_pixels)
    return Medium("image", _PREFIX, ENDINGS, pa.schema(facts), look, heavy=True)


def _look(max_pixels: int, data: bytes) -> tuple[Any, ...]:
    from tfr_assets.sources.media.images.header import read_header  # loads Pillow, as the others do

    return read_header(data, max_pixels)


def _look_at_converted(conversion: Conversion, max_pixels: int, data: bytes) -> tuple[Any, ...]:
    from tfr_assets.sources.media.images.convert import look

    format_, *shape = look(data, conversion, max_pixels)
    if format_ == "raw":
        return () if conversion.size else tuple(shape)
    return (format_, *shape)


@dataclass(frozen=True)
class Images:
    """The `kinds.Expansion` of images.

    Attributes:
        root: What the listing's files lie below.
        storage_options: Passed to fsspec.
        options: Of the source.
        classes: Names of classes by feature column.
        schema: All columns that records can have.
    """

    root: str
    storage_options: Mapping[str, Any]
    options: ImageOptions
    classes: Mapping[str, tuple[str, ...]]
    schema: pa.Schema

    def sizes(self, rows: pa.RecordBatch) -> np.ndarray:
        """Returns how many bytes each row's file, or its pixels if these are more, takes in memory: int64 (rows,)."""
        sizes = rows.column(BYTES).to_numpy()
        conversion = self.options.conversion
        if not conversion:
            return sizes
        if conversion.size and conversion.format == "raw":
            return np.maximum(sizes, conversion.size[0] * conversion.size[1] * conversion.channels)
        return np.maximum(sizes, _pixels_of(rows))

    def null_counts(self, listed: Mapping[str, int | None]) -> dict[str, int | None]:
        """Returns the nulls of the columns of `schema`. See `kinds.Expansion`."""
        return made_nulls(self.schema, listed)

    def expand(self, rows: pa.RecordBatch, columns: Collection[str]) -> pa.RecordBatch:
        """Returns the named columns of `schema`, in its order. See `kinds.Expansion`."""
        schema = pa.schema([field for field in self.schema if field.name in columns])
        made = label_columns(rows, _PREFIX, self.classes) | {_FILENAME: rows.column(FILE)}
        if _ENCODED in schema.names:
            made[_ENCODED] = self._encoded(rows)
        if _PIXELS in schema.names:
            made[_PIXELS] = self._pixels(rows)
        arrays = [made[name] if name in made else rows.column(name) for name in schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _contents(self, rows: pa.RecordBatch) -> pa.LargeBinaryArray:
        if CONTENT in rows.schema.names:
            return rows.column(CONTENT)
        files, sizes, crcs = (rows.column(name) for name in (FILE, BYTES, CRC))
        return read_contents(self.root, self.storage_options, files, sizes, crcs)

    def _encoded(self, rows: pa.RecordBatch) -> pa.LargeBinaryArray:
        if not self.options.conversion:
            return self._contents(rows)
        from tfr_assets.sources.media.images.convert import encode

        quality = self.options.conversion.quality
        return pa.array([encode(*image, quality) for image in self._converted(rows)], pa.large_binary())

    def _pixels(self, rows: pa.RecordBatch) -> pa.Array:
        from tfr_assets.sources.media.images.convert import pixels

        conversion = self.options.conversion
        assert conversion
        if conversion.size:
            values = np.empty((rows.num_rows, *conversion.size, conversion.channels), np.uint8)
            for row, (_, image) in enumerate(self._converted(rows)):
                values[row] = pixels(image)
            type_ = self.schema.field(_PIXELS).type
            return pa.ExtensionArray.from_storage(
                type_, pa.FixedSizeListArray.from_arrays(values.ravel(), type=type_.storage_type)
            )
        offsets = np.concatenate([[0], np.cumsum(_pixels_of(rows))])
        flat = np.empty(offsets[-1], np.uint8)
        for row, (_, image) in enumerate(self._converted(rows)):
            flat[offsets[row] : offsets[row + 1]] = pixels(image).ravel()
        return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.array(flat))

    def _converted(self, rows: pa.RecordBatch) -> "Iterator[tuple[str, Image]]":
        from tfr_assets.sources.media.images.convert import decode

        assert self.options.conversion
        for file, data in zip(rows.column(FILE).to_pylist(), self._contents(rows), strict=True):
            try:
                yield decode(data.as_py(), self.options.conversion, self.options.max_pixels)
            except BadFileError as error:
                raise SourceError(
                    f"{self.root}/{file}: {error}, though it could be decoded when the inventory was taken. "
                    "Materialize raw again."
                ) from error


def _pixels_of(rows: pa.RecordBatch) -> np.ndarray:
    height, width, channels = (rows.column(name).to_numpy() for name, _ in _SHAPE)
    return height * width * channels
