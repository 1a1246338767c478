"""`tfr_assets.read` over whole datasets: what is written comes back, once and in order, or an error does."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import tfr_assets
from tfr_assets.errors import ConfigError
from tfr_assets.layout import Layout, index_path
from tfr_assets.records.frames.index import read_index
from tfr_assets.records.schema.feature_options import FeatureOptions

Written = Callable[..., Layout]


def table(rows: int) -> pa.Table:
    random = np.random.default_rng(7)
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "value": pa.array(random.normal(size=rows), pa.float32(), mask=random.random(rows) < 0.2),
            "name": pa.array([f"näme {i}" for i in range(rows)], pa.string(), mask=random.random(rows) < 0.2),
            "tags": pa.array([[f"t{j}" for j in range(i % 4)] for i in range(rows)], pa.list_(pa.string())),
        }
    )


def columns(dataset: tf.data.Dataset) -> dict[str, list[Any]]:
    """All batches joined, as Python values."""
    joined: dict[str, list[Any]] = {name: [] for name in dataset.element_spec}
    for batch in dataset:
        for name, tensor in batch.items():
            joined[name] += tensor.to_list() if isinstance(tensor, tf.RaggedTensor) else tensor.numpy().tolist()
    return joined


def expected(source: pa.Table) -> dict[str, list[Any]]:
    return {
        "id": source["id"].to_pylist(),
        "value": [np.nan if value is None else value for value in source["value"].to_pylist()],
        "name": [(value or "").encode() for value in source["name"].to_pylist()],
        "tags": [[tag.encode() for tag in tags] for tags in source["tags"].to_pylist()],
    }


@pytest.mark.parametrize("files", ["shards", "merged"])
@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_what_was_written_comes_back_in_order(written: Written, compression: str, files: Any) -> None:
    source = table(100)
    layout = written(source, compression=compression)
    found = columns(tfr_assets.read("sample", batch_size=32, files=files, root=layout.folder.parent))
    np.testing.assert_equal(found, expected(source))


@pytest.mark.parametrize("rows", [0, 1, 99, 100, 101])
@pytest.mark.parametrize("drop_remainder", [False, True])
def test_the_cardinality_is_known_and_true(written: Written, rows: int, drop_remainder: bool) -> None:
    dataset = tfr_assets.read(written(table(rows)).folder, batch_size=50, drop_remainder=drop_remainder)
    sizes = [batch["id"].shape[0] for batch in dataset]
    assert dataset.cardinality() == len(sizes)
    assert sizes == [50] * (rows // 50) + ([rows % 50] if rows % 50 and not drop_remainder else [])


def test_a_second_epoch_gives_the_same(written: Written) -> None:
    dataset = tfr_assets.read(written(table(20)).folder, batch_size=6)
    np.testing.assert_equal(columns(dataset), columns(dataset))


def test_renamed_dropped_and_filled_columns(written: Written) -> None:
    options = FeatureOptions(drop=("tags",), rename={"id": "key"}, fill={"value": 0, "name": "none"})
    found = columns(tfr_assets.read(written(table(30), options=options).folder))
    assert sorted(found) == ["key", "name", "value"]
    assert b"none" in found["name"]
    assert not np.isnan(found["value"]).any()


@pytest.mark.parametrize("batch_size", [30, 100])
def test_unchecked_a_file_cut_between_records_after_opening_is_an_error(written: Written, batch_size: int) -> None:
    layout = written(table(100))
    dataset = tfr_assets.read(layout.folder, batch_size=batch_size, on_error="unchecked")
    path = layout.shard_path("train-00002-of-00003")
    offset, _ = read_index(index_path(path))[-1]
    with path.open("r+b") as file:
        file.truncate(offset)
    with pytest.raises(tf.errors.FailedPreconditionError, match="contain 100 elements but contained only 99"):
        columns(dataset)


@pytest.mark.parametrize("batch_size", [0, -1, 1.5, True, "32"])
def test_a_batch_size_that_cannot_be_is_refused(numbers: Layout, batch_size: Any) -> None:
    with pytest.raises(ConfigError, match=r"batch_size=.* must be a positive integer"):
        tfr_assets.read(numbers.folder, batch_size)


def test_unknown_readers_get_the_closest(numbers: Layout) -> None:
    with pytest.raises(ConfigError, match=r"no reader 'vectorised'; did you mean 'vectorized'\?"):
        tfr_assets.read(numbers.folder, reader="vectorised")
    with pytest.raises(ConfigError, match=r"no reader 'fast'; use one of naive"):
        tfr_assets.read(numbers.folder, reader="fast")


def test_reading_needs_no_dagster(numbers: Layout) -> None:
    script = f"""
import sys
import tfr_assets
assert "tensorflow" not in sys.modules
assert sum(len(batch["x"]) for batch in tfr_assets.read({str(numbers.folder)!r}, 4)) == 10
assert "dagster" not in sys.modules
"""
    root = Path(tfr_assets.__file__).parent.parent
    subprocess.run([sys.executable, "-c", script], check=True, cwd=root, timeout=120)
