"""A column of a table → one row a value."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfr_assets.errors import SourceError
from tfr_assets.option_groups import did_you_mean
from tfr_assets.sources.files.paths import first_folder
from tfr_assets.sources.files.tree import root_of
from tfr_assets.sources.media.labels import class_names, label_key
from tfr_assets.sources.media.table_rows import key_texts, table_rows, take_table
from tfr_assets.sources.media.text.decoding import cast_valid
from tfr_assets.sources.model.kinds import CLASS, FILE, KEY, SPLIT, SPLIT_BY, Found
from tfr_assets.sources.model.source import Source
from tfr_assets.sources.model.text_options import TEXT, TextOptions


def list_text_rows(source: Source, options: TextOptions, work: Path, found: Found) -> Iterator[pa.RecordBatch]:
    """Yields .file and `text`, which is null where the table has no value, and as far as wanted .key, .split, .class.

    Args:
        source: What to list.
        options: What it says, with `per: row`.
        work: An existing folder for temporary files.
        found: Filled meanwhile.

    Raises:
        SourceError: There is no such column, it holds something else than text, or a class is none of the pinned.
    """
    assert source.path
    table = Source(path=source.path, storage_options=source.storage_options, **options.table)
    label = options.label_options.label if options.label_options.by == "column" else None
    split_by = source.splits and (source.splits.column or source.splits.key)
    columns = list(dict.fromkeys(name for name in (options.column, options.key, label, split_by) if name))
    inventory = take_table(table, columns, work / "table", found)
    by_folder = source.splits is not None and bool(source.splits.folder)
    classes: set[str] = set()
    for path, rows in table_rows(inventory, root_of(source.path, source.storage_options), columns):
        rows, texts = _with_texts(rows, source, options, found)
        listed = {FILE: rows.column(FILE), TEXT: texts}
        if options.key:
            listed[KEY] = key_texts(rows.column(options.key), f"{source}: column {options.key!r}")
        if by_folder:
            listed[SPLIT] = pa.repeat(pa.scalar(first_folder(source.path, path), pa.string()), rows.num_rows)
        if split_by:
            listed[SPLIT_BY] = rows.column(split_by)
        if label:
            listed[CLASS] = rows.column(label).cast(pa.string())
            classes.update(pc.unique(listed[CLASS].drop_null()).to_pylist())
        yield pa.record_batch(listed)
    if label:
        found.classes[label_key(TEXT)] = class_names(classes, options.label_options)


def _with_texts(
    rows: pa.RecordBatch, source: Source, options: TextOptions, found: Found
) -> tuple[pa.RecordBatch, pa.LargeStringArray]:
    """Returns the rows that can be used, and their texts."""
    bad: dict[int, str] = {}
    if (pinned := options.label_options.classes) and options.label_options.by == "column":
        names = rows.column(options.label_options.label).cast(pa.string())
        unknown = pc.invert(pc.is_in(names, value_set=pa.array([*pinned, None])))
        for at in np.flatnonzero(unknown).tolist():
            name = names[at].as_py()
            bad[at] = f"its class {name!r} is not one of `classes`{did_you_mean(name, pinned)}"
    texts = rows.column(options.column)
    if pa.types.is_binary(texts.type) or pa.types.is_large_binary(texts.type):
        _, undecodable = cast_valid(texts.cast(pa.large_binary()))
        bad |= dict.fromkeys(undecodable, f"column {options.column!r} holds bytes that are not UTF-8 text")
    elif texts.type not in (pa.string(), pa.large_string(), pa.null()):
        raise SourceError(f"{source}: column {options.column!r} is {texts.type}, not text. Name another one.")
    if bad:
        files = rows.column(FILE)
        for at, reason in sorted(bad.items()):
            if not options.skip:
                remedy = "Correct it, or set `on_error: skip` to go on without such rows."
                raise SourceError(f"{source}: {files[at]}: {reason}. {remedy}")
            found.skip(files[at].as_py(), reason)
        rows = rows.take(pa.array(np.delete(np.arange(rows.num_rows), list(bad))))
    return rows, rows.column(options.column).cast(pa.large_string())
