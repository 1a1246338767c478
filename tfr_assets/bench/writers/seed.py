"""`seed`: how most tutorials write TFRecord, to measure the other writers against.

A `tf.train.Example` is built for each row from Python values, and `tf.io.TFRecordWriter` writes it, under the file's
final name from the first byte on, without index or manifest.
"""

from typing import Any

import pyarrow as pa
import tensorflow as tf

from tfr_assets.errors import SchemaError
from tfr_assets.records.frames.compression import COMPRESSIONS
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.writing.writers.outcome import Report
from tfr_assets.writing.writers.pieces import End
from tfr_assets.writing.writers.rows import Rows
from tfr_assets.writing.writers.write_plan import WritePlan


def seed(plan: WritePlan, rows: Rows, report: Report) -> None:
    """Writes all shards in the caller's thread, a row at a time; see `WriteFunction`.

    Of feature options it knows `drop` only.

    Raises:
        SchemaError: A column of another type than numbers, dates, times, texts, bytes, or lists of numbers, texts
            or bytes.
    """
    kept = _kept(plan)
    writers: dict[int, tf.io.TFRecordWriter] = {}
    payload_bytes: dict[int, int] = {}
    for piece in rows.pieces():
        if piece.shard not in writers:
            path = plan.paths[piece.shard]
            path.parent.mkdir(parents=True, exist_ok=True)
            writers[piece.shard] = tf.io.TFRecordWriter(str(path), COMPRESSIONS[plan.compression].tensorflow_name)
            payload_bytes[piece.shard] = 0
        if isinstance(piece, End):
            writers[piece.shard].close()
            report.finished(piece.shard, _manifest(plan, piece, payload_bytes[piece.shard]))
            continue
        for row in _plain(piece.batch.select(kept)).to_pylist():
            example = _example(row)
            writers[piece.shard].write(example)
            payload_bytes[piece.shard] += len(example)
        report.wrote(piece.batch.num_rows)


def _kept(plan: WritePlan) -> list[str]:
    """Returns the names of the columns of which there is a feature."""
    assert plan.features is not None
    return plan.features.columns_of(plan.schema.names)


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns dates and times as the counts that they are, and decimals as their text."""
    columns = {name: batch.column(name) for name in batch.schema.names}
    for name, column in columns.items():
        if pa.types.is_temporal(column.type):
            columns[name] = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
        elif pa.types.is_decimal(column.type):
            columns[name] = column.cast(pa.string())
    return pa.RecordBatch.from_pydict(columns)


def _example(row: dict[str, Any]) -> bytes:
    features = {name: _feature(name, value) for name, value in row.items() if value is not None}
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def _feature(name: str, value: Any) -> tf.train.Feature:
    values = value if isinstance(value, list) else [value]
    try:
        if values and isinstance(values[0], str):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=[text.encode() for text in values]))
        if values and isinstance(values[0], bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        if values and isinstance(values[0], float):
            return tf.train.Feature(float_list=tf.train.FloatList(value=values))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    except (TypeError, ValueError, AttributeError) as error:
        raise SchemaError(
            f"column {name!r}: the code of most tutorials, which the writer 'seed' is, knows numbers, texts, bytes and "
            f"lists of these only, but not {str(value)[:60]!r}. Leave it out: `writers: {{only: [sharded_threads, …]}}`"
        ) from error


def _manifest(plan: WritePlan, end: End, payload_bytes: int) -> Manifest:
    """Returns what is known of a file; it is not saved, since nothing confirms the bytes."""
    path = plan.paths[end.shard]
    return Manifest(
        file=path.name,
        records=end.records,
        bytes=path.stat().st_size,
        payload_bytes=payload_bytes,
        compression=plan.compression,
        digest="",
        features=plan.features,
        made_from=plan.shard_made_from(end.shard),
    )
