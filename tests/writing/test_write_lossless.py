"""`write` leaves nothing out silently: what is no column is refused, and what pandas calls an index is written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tfr_assets import batches, write
from tfr_assets.errors import SourceError


def columns_of(data: Any, path: Path) -> dict[str, list[Any]]:
    """Returns what is read back of data that is written."""
    write(data, path / "a.tfrecord")
    table = pa.Table.from_batches(list(batches(str(path / "a.tfrecord"), 100, into="arrow")))
    return {
        name: [x.decode() if isinstance(x, bytes) else x for x in table[name].to_pylist()]
        for name in table.schema.names
    }


@pytest.mark.parametrize(
    "value",
    [{"x": [1, 2], "y": [3, 4]}, {1, 2}, frozenset("ab"), "ab", b"ab", bytearray(b"ab")],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_column_of_a_dict_is_refused(value: Any, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"column 'a' is a value of type \w+.*list or array of its values"):
        write({"a": value, "b": [1, 2]}, tmp_path / "a.tfrecord")
    assert not any(tmp_path.iterdir())


class Dataset:
    """What of a dataset of Hugging Face tells that it has columns of its own."""

    column_names = ("x", "y")

    def __iter__(self) -> Any:
        return iter([{"x": 1, "y": 2}] * 2)


@pytest.mark.parametrize("make", [Dataset, lambda: pd.DataFrame({"x": [1, 2]}), lambda: pa.table({"x": [1, 2]})])
def test_a_dict_of_tables_is_refused_with_the_way_to_write_splits(make: Callable[[], Any], tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"'train' is a table.*write\(data\['train'\], ….*split='train'\)"):
        write({"train": make(), "test": make()}, tmp_path / "a.tfrecord")


FRAME = pd.DataFrame({"k": ["a", "b", "a"], "j": [1, 1, 2], "v": [1, 2, 4]})
INDEXED: dict[str, tuple[pd.DataFrame, dict[str, list[Any]]]] = {
    "grouped": (FRAME.groupby("k")[["v"]].sum(), {"k": ["a", "b"], "v": [5, 2]}),
    "grouped by two": (FRAME.groupby(["k", "j"])[["v"]].sum(), {"k": ["a", "a", "b"], "j": [1, 2, 1], "v": [1, 4, 2]}),
    "named numbers": (FRAME.set_index("j")[["v"]], {"j": [1, 1, 2], "v": [1, 2, 4]}),
    "levels without names": (
        pd.DataFrame({"v": [1, 2]}, index=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])),
        {"level_0": ["a", "b"], "level_1": [1, 2], "v": [1, 2]},
    ),
    "texts without a name": (pd.DataFrame({"v": [1, 2]}, index=["a", "b"]), {"index": ["a", "b"], "v": [1, 2]}),
    "a column that is the index too": (FRAME.set_index("j", drop=False)[["j", "v"]], {"j": [1, 1, 2], "v": [1, 2, 4]}),
    "row numbers": (FRAME[["v"]], {"v": [1, 2, 4]}),
    "row numbers of a part": (FRAME[FRAME.v > 1][["v"]], {"v": [2, 4]}),
}


@pytest.mark.parametrize("name", INDEXED)
def test_an_index_of_pandas_becomes_columns(name: str, tmp_path: Path) -> None:
    frame, expected = INDEXED[name]
    for data in (frame, [frame], (each for each in [frame])):
        assert columns_of(data, tmp_path) == expected


def test_an_index_with_the_name_of_another_column_is_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame({"v": [1, 2]}, index=pd.Index([3, 4], name="v"))
    with pytest.raises(SourceError, match=r"index is named 'v', as a column.*reset_index"):
        write(frame, tmp_path / "a.tfrecord")


def test_bfloat16_is_written_as_float32(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.array([1.5, -2, 0.125], ml_dtypes.bfloat16)
    for data in (
        {"x": values},
        {"x": list(values)},
        [{"x": value} for value in values],
        [{"x": value.reshape(())} for value in values],
    ):
        assert columns_of(data, tmp_path) == {"x": [1.5, -2, 0.125]}


class Tensor:
    """A tensor of PyTorch as far as NumPy is concerned: one that takes part in training must be detached first."""

    def __init__(self, values: np.ndarray, requires_grad: bool = True) -> None:
        self._values, self._requires_grad = values, requires_grad

    def detach(self) -> "Tensor":
        return Tensor(self._values, requires_grad=False)

    def cpu(self) -> "Tensor":
        return self

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        if self._requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        return self._values


class Broken:
    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise RuntimeError("no more memory on the device")


def test_tensors_that_take_part_in_training_are_written(tmp_path: Path) -> None:
    values = np.array([1, 2, 3], np.float32)
    assert columns_of({"x": [Tensor(np.asarray(value)) for value in values]}, tmp_path) == {"x": [1, 2, 3]}
    assert columns_of({"x": Tensor(values)}, tmp_path) == {"x": [1, 2, 3]}
    assert columns_of([{"x": Tensor(np.asarray(value))} for value in values], tmp_path) == {"x": [1, 2, 3]}
    for data in ({"x": Broken()}, {"x": [Broken()]}, [{"x": Broken()}]):
        with pytest.raises(SourceError, match=r"column 'x'.*no more memory on the device"):
            write(data, tmp_path / "b.tfrecord")


def test_tensors_that_are_no_rows_are_refused_with_the_remedy(tmp_path: Path) -> None:
    tf = pytest.importorskip("tensorflow")
    dataset = tf.data.Dataset.range(3)
    with pytest.raises(SourceError, match=r"item 0 is .*EagerTensor.*\{'x': array\}.*as_numpy_iterator\(\)"):
        write(dataset, tmp_path / "a.tfrecord")
    with pytest.raises(SourceError, match=r"item 0 is .*int64.*\{'x': array\}"):
        write(dataset.as_numpy_iterator(), tmp_path / "a.tfrecord")
    assert columns_of(({"x": x} for x in dataset), tmp_path) == {"x": [0, 1, 2]}
