"""What people look at rather than read: pictures of the first records, and how many there are of each class."""

import io
from collections import Counter
from typing import Any

import dagster as dg
import pyarrow as pa

from tfr_assets.sources import Inventory, read_rows
from tfr_assets.sources.model.kinds import TABLE

_RECORDS = 24
_MOST_BYTES = 256 << 20  # of records that are held to be shown
_SECONDS = 30  # that are drawn of a recording: decoded, a song takes a hundred megabytes
_CHARACTERS = 600  # of the text that is shown of each of the first documents
_TEXTS = 3
_CLASS_NAME = "class/text"


def previews(inventory: Inventory, start: int, stop: int) -> dict[str, Any]:
    """Returns pictures of some rows as metadata; nothing for tables.

    Args:
        inventory: Where the rows are.
        start: First row.
        stop: Row after the last one.
    """
    if inventory.source.kind == TABLE or start == stop:
        return {}
    rows = _spread(inventory, start, stop)
    shown: dict[str, Any] = {}
    for name in rows.column_names:
        prefix, _, part = name.rpartition("/")
        if part in ("encoded", "pixels") and prefix.endswith("image"):
            shown[prefix] = _contact_sheet(rows, prefix)
        elif part in ("encoded", "samples") and prefix.endswith("audio"):
            shown[prefix] = _waveforms(rows, prefix)
        elif name == "text" or (name.endswith("/text") and not name.endswith(_CLASS_NAME)):
            shown[name] = _texts(rows, name)
    for name in [name for name in inventory.schema.names if name.endswith(_CLASS_NAME)]:
        shown[name.removesuffix("/text").replace("class", "classes")] = _balance(inventory, start, stop, name)
    return shown


def _spread(inventory: Inventory, start: int, stop: int) -> pa.Table:
    """Returns rows from all over the range: rows that follow each other are often of one class."""
    count = min(_RECORDS, stop - start)
    batches: list[pa.RecordBatch] = []
    for row in (start + number * (stop - start) // count for number in range(count)):
        batches += read_rows(inventory, row, row + 1)
        if sum(batch.nbytes for batch in batches) > _MOST_BYTES:
            break
    return pa.Table.from_batches(batches, inventory.schema)


def _contact_sheet(rows: pa.Table, prefix: str) -> dg.MetadataValue:
    from tfr_assets.pictures import contact_sheet

    is_encoded = f"{prefix}/encoded" in rows.column_names
    images: list[Any] = rows[f"{prefix}/encoded"].to_pylist() if is_encoded else _pixels(rows, prefix)
    return _markdown(contact_sheet(images, _captions(rows, prefix)), prefix)


def _pixels(rows: pa.Table, prefix: str) -> list[Any]:
    pixels = rows[f"{prefix}/pixels"]
    if isinstance(pixels.type, pa.FixedShapeTensorType):  # which tells the shape of all
        return [image.to_numpy() for image in pixels]
    sizes = zip(*(rows[f"{prefix}/{side}"].to_pylist() for side in ("height", "width", "channels")), strict=True)
    return [image.values.to_numpy().reshape(size) for image, size in zip(pixels, sizes, strict=True)]


def _waveforms(rows: pa.Table, prefix: str) -> dg.MetadataValue:
    from tfr_assets.pictures import MOST_SOUNDS, waveform_strip

    rows = rows.slice(0, MOST_SOUNDS)
    captions = _captions(rows, prefix)
    if f"{prefix}/samples" in rows.column_names:
        channels, rates = (rows[f"{prefix}/{name}"].to_pylist() for name in ("channels", "sample_rate"))
        flat = (sound.values.to_numpy() for sound in rows[f"{prefix}/samples"])
        found = [(sound.reshape(-1, n)[:, 0], rate) for sound, n, rate in zip(flat, channels, rates, strict=True)]
    else:
        found = list(map(_decoded, rows[f"{prefix}/encoded"].to_pylist()))
        captions = [
            caption if len(sound) else f"{caption}: damaged"
            for caption, (sound, _) in zip(captions, found, strict=True)
        ]
    sounds = [(sound[: _SECONDS * rate], rate) for sound, rate in found]
    is_cut = any(len(sound) > _SECONDS * rate for sound, rate in found)
    title = f"The first {_SECONDS} seconds of each" if is_cut else ""
    return _markdown(waveform_strip(sounds, captions, title), prefix)


def _decoded(recording: bytes) -> tuple[Any, int]:
    """Returns the first channel and its rate; no sample where it cannot be decoded, as headers need not tell."""
    import numpy as np
    import soundfile

    try:
        with soundfile.SoundFile(io.BytesIO(recording)) as file:
            samples = file.read(_SECONDS * file.samplerate + 1, dtype="float32", always_2d=True)
            return samples[:, 0].copy(), file.samplerate
    except soundfile.LibsndfileError:
        return np.zeros(0, np.float32), 1


def _texts(rows: pa.Table, name: str) -> dg.MetadataValue:
    texts = [str(text)[:_CHARACTERS] for text in rows[name].slice(0, _TEXTS).to_pylist()]
    # four spaces make it a block of code, in which nothing is taken for markup
    blocks = ["\n".join(f"    {line}" for line in text.splitlines()) for text in texts]
    return dg.MetadataValue.md("\n\n---\n\n".join(blocks))


def _balance(inventory: Inventory, start: int, stop: int, name: str) -> dg.MetadataValue:
    from tfr_assets.pictures import class_balance

    found: Counter[str] = Counter()
    for batch in read_rows(inventory, start, stop, columns=[name]):
        found.update({str(each["values"]): each["counts"] for each in batch.column(0).value_counts().to_pylist()})
    order = next((names for column, names in inventory.classes.items() if _of_one_class(column, name)), sorted(found))
    counts = {label: found[label] for label in order} | {label: found[label] for label in found if label not in order}
    return _markdown(class_balance(counts, name.removesuffix("/text")), name)


def _of_one_class(column: str, name: str) -> bool:
    return column.rpartition("/")[0] == name.rpartition("/")[0]


def _captions(rows: pa.Table, prefix: str) -> list[str]:
    for name in (f"{prefix}/{_CLASS_NAME}", f"{prefix}/filename"):
        if name in rows.column_names:
            return [str(value) for value in rows[name].to_pylist()]
    return [""] * rows.num_rows


def _markdown(png: bytes, alt: str) -> dg.MetadataValue:
    from tfr_assets.pictures import as_markdown

    return dg.MetadataValue.md(as_markdown(png, alt))
