"""Sources of files for tests: images as Pillow writes them, listings, and what happens to these."""

import io
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from PIL import Image

from tfr_assets.sources.media.listing import Medium, list_files
from tfr_assets.sources.model.kinds import Found, kind_named
from tfr_assets.sources.model.label_options import LabelOptions
from tfr_assets.sources.model.source import Source

ANY_FILE = Medium("file", "any", (".dat",), pa.schema([("first", pa.int64())]), lambda data: (data[0] if data else -1,))

BY_DEFAULT = LabelOptions()


def image(mode: str = "RGB", height: int = 6, width: int = 9, seed: int = 0) -> Image.Image:
    """Returns random pixels."""
    values = np.random.default_rng(seed).integers(0, 256, (height, width, 4), np.uint8)
    if mode == "I;16":
        return Image.fromarray(values[..., 0].astype(np.uint16) * 256 + values[..., 1])
    if mode == "RGBA":
        return Image.fromarray(values)
    rgb = Image.fromarray(values[..., :3])
    if mode == "LA":
        gray = rgb.convert("L")
        gray.putalpha(Image.fromarray(values[..., 3]))
        return gray
    return rgb.convert(mode, palette=Image.Palette.ADAPTIVE) if mode == "P" else rgb.convert(mode)


def encoded(picture: Image.Image, format_: str = "JPEG", **options: Any) -> bytes:
    """Returns the bytes of an image file."""
    stream = io.BytesIO()
    picture.save(stream, format_, **options)
    return stream.getvalue()


def write(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Writes files by their paths below a folder."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def found_in(folder: Path) -> Found:
    """Returns what a listing fills, with its log in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    return Found(folder / "skipped.tsv", lambda done, total: None)


def list_any(
    path: Path | str,
    work: Path,
    labels: LabelOptions = BY_DEFAULT,
    skip: bool = False,
    medium: Medium = ANY_FILE,
    follow_links: bool = False,
    **of_source: Any,
) -> tuple[pa.Table, Found]:
    """Lists files by a medium that takes any bytes."""
    found = found_in(work / uuid4().hex)
    source = Source(path=str(path), **of_source)
    return pa.Table.from_batches(list_files(source, medium, labels, skip, found.log.parent, found, follow_links)), found


def list_kind(source: Source, work: Path) -> tuple[pa.Table, Found]:
    """Lists a source of a kind."""
    found = found_in(work / uuid4().hex)
    return pa.Table.from_batches(kind_named(source.kind).list_rows(source, found.log.parent, found)), found


def expand(
    source: Source, listing: pa.Table, classes: Mapping[str, tuple[str, ...]], columns: Collection[str] | None = None
) -> pa.Table:
    """Returns columns of records for the rows of a listing, all by default."""
    expansion = kind_named(source.kind).expansion(source, listing.schema, classes)
    names = expansion.schema.names if columns is None else columns
    batches = [expansion.expand(batch, names) for batch in listing.to_batches()]
    return pa.Table.from_batches(batches, pa.schema([field for field in expansion.schema if field.name in names]))
