"""`tfr_assets.write`: whatever a program has becomes whole files where it asked for them."""

import io
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pytest

from tests.records.encoding import encode
from tests.records.reference import payloads_of
from tests.writing.conftest import files, table
from tests.writing.written_files import expected_names, names, payloads
from tfr_assets.errors import ConfigError, SchemaError, SourceError
from tfr_assets.layout import index_path
from tfr_assets.records.frames.examine import examine
from tfr_assets.records.frames.index import read_index
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.records.schema.features import FeatureSpec
from tfr_assets.writing.write import Written, write

NUMBERS = pa.table({"n": pa.array(range(50), pa.int64()), "x": pa.array([n / 4 for n in range(50)], pa.float64())})
ROWS = NUMBERS.to_pylist()
BATCHES = NUMBERS.to_batches(max_chunksize=7)


def reader() -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(NUMBERS.schema, BATCHES)


class Stream:
    """What DuckDB, Polars and others offer."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return NUMBERS.__arrow_c_stream__(requested_schema)


class Array:
    """What arro3, nanoarrow and others offer for one batch."""

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return NUMBERS.combine_chunks().to_batches()[0].__arrow_c_array__(requested_schema)


class Column:
    """A column of any library, such as a Series of polars."""

    def __init__(self, name: str) -> None:
        self._column = NUMBERS[name]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._column.__arrow_c_stream__(requested_schema)


class Lazy:
    """An iterable that makes its rows again each time."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(ROWS)


FORMS: dict[str, Callable[[], Any]] = {
    "table": lambda: NUMBERS,
    "batch": lambda: NUMBERS.combine_chunks().to_batches()[0],
    "reader": reader,
    "arrow stream": Stream,
    "arrow array": Array,
    "arrow arrays": lambda: [Array()],
    "dataset": lambda: pa.dataset.dataset(NUMBERS),
    "scanner": lambda: pa.dataset.dataset(NUMBERS).scanner(batch_size=7),
    "columns of any library": lambda: {"n": Column("n"), "x": Column("x")},
    "list of batches": lambda: BATCHES,
    "generator of batches": lambda: iter(BATCHES),
    "tables": lambda: [NUMBERS.slice(0, 20), NUMBERS.slice(20)],
    "DataFrame": NUMBERS.to_pandas,
    "DataFrames": lambda: (NUMBERS.slice(start, 10).to_pandas() for start in range(0, 50, 10)),
    "columns": lambda: {"n": range(50), "x": [n / 4 for n in range(50)]},
    "NumPy columns": lambda: {"n": np.arange(50), "x": np.arange(50) / 4},
    "rows": lambda: ROWS,
    "generator of rows": lambda: iter(ROWS),
    "iterable of rows": Lazy,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_data_becomes_the_same_bytes(form: str, tmp_path: Path) -> None:
    written = write(FORMS[form](), tmp_path / "x", shards=3)
    assert [len(each) for each in payloads(written)] == [16, 17, 17]
    assert [record for each in payloads(written) for record in each] == encode(*BATCHES)


class Message:
    """As protobuf's messages are; it insists on the bytes that are equal for equal messages."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def SerializeToString(self, *, deterministic: bool) -> bytes:  # noqa: N802
        assert deterministic
        return self._content


@pytest.mark.parametrize("of", [bytes, bytearray, memoryview, Message], ids=lambda of: of.__name__)
def test_records_that_are_serialized_already_are_written_as_they_are(of: Any, tmp_path: Path) -> None:
    records = [b"", b"foo", b"x" * 70_000, *(b"%d" % n for n in range(5000))]
    for data in ([of(each) for each in records], (of(each) for each in records)):
        written = write(data, tmp_path / "x", shards=2, compression="gzip")
        assert [manifest.features for manifest in written.manifests] == [None, None]
        assert [manifest.records for manifest in written.manifests] == [2501, 2502]
        assert all(examine(*each).ok for each in zip(written.paths, written.manifests, strict=True))
        write(data if isinstance(data, list) else records, tmp_path / "x.tfrecord")
        assert payloads_of((tmp_path / "x.tfrecord").read_bytes()) == records
    assert not (tmp_path / "x" / "feature_spec.json").exists()


def test_one_file_lies_where_it_was_asked_for(tmp_path: Path) -> None:
    written = write(table(), str(tmp_path / "deep" / "er" / "any.tfrecord"))
    assert written.paths == (tmp_path / "deep" / "er" / "any.tfrecord",)
    assert names(tmp_path / "deep" / "er") == expected_names("any.tfrecord")
    assert written.manifests == (Manifest.load(written.paths[0]),)
    assert written.manifests[0].features is not None
    assert payloads(written) == [encode(*table().to_batches())]
    assert len(read_index(index_path(written.paths[0]))) == written.records == 103
    assert written.bytes == written.paths[0].stat().st_size
    assert written.seconds > 0 and written.workers >= 1 and written.writer == "single_writer_queue"


def test_shards_are_named_after_their_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written = write(table(), "my_data", shards=2, split="test")
    expected = [f"my_data-test.tfrecord-0000{n}-of-00002" for n in range(2)]
    assert written.paths == tuple(tmp_path / "my_data" / name for name in expected)
    assert names(tmp_path / "my_data") == expected_names(*expected) | {"feature_spec.json"}
    assert written.writer == "sharded_threads"


def test_another_number_of_shards_replaces_the_old_ones_of_its_split(tmp_path: Path) -> None:
    folder = tmp_path / "x"
    write(table(), folder, shards=4)
    write(table(), folder, shards=3, split="test")
    (folder / "x-train.tfrecord-00000-of-00009").write_text("of no manifest")
    (folder / "dataset_info.json").write_text("{}")
    write(table(50), folder, shards=2)
    train = [f"x-train.tfrecord-0000{n}-of-00002" for n in range(2)]
    test = [f"x-test.tfrecord-0000{n}-of-00003" for n in range(3)]
    others = {"feature_spec.json", "x-train.tfrecord-00000-of-00009"}
    assert names(folder) == expected_names(*train, *test) | others


def test_files_of_two_calls_can_be_told_apart(tmp_path: Path) -> None:
    first, second = (write(table(), tmp_path / "x", shards=2).manifests for _ in range(2))
    assert [m.digest for m in first] == [m.digest for m in second]
    assert first[0].made_from["write"] == first[1].made_from["write"] != second[0].made_from["write"]
    assert [m.made_from["rows"] for m in first] == [[0, 51], [51, 103]]


def test_equal_data_gives_equal_files(tmp_path: Path) -> None:
    found = []
    for name in ("a", "b"):
        write(iter(table(500).to_batches(max_chunksize=33)), tmp_path / name / "x", shards=3)
        found.append({n: content for n, content in files(tmp_path / name).items() if "manifest" not in n})
    assert found[0] == found[1]


def test_feature_options(tmp_path: Path) -> None:
    options = {"drop": ("l", "a/b"), "rename": {"t": "text"}, "cast": {"n": "float32"}, "fill": {"t": "?"}}
    written = write(table(), tmp_path / "x.tfrecord", features=FeatureOptions(**options))  # type: ignore[arg-type]
    assert payloads(written) == [encode(*table().to_batches(), **options)]
    spec = written.manifests[0].features
    assert isinstance(spec, FeatureSpec) and [feature.name for feature in spec.features] == ["n", "text"]
    assert [feature.optional for feature in spec.features] == [False, True]


def test_columns_of_several_dimensions(tmp_path: Path) -> None:
    pixels = np.arange(5 * 2 * 3, dtype=np.uint8).reshape(5, 2, 3)
    written = write({"pixels": pixels, "label": np.arange(5)}, tmp_path / "x.tfrecord")
    spec = written.manifests[0].features
    assert spec and {feature.name: feature.shape for feature in spec.features} == {"pixels": (2, 3), "label": ()}
    assert written.records == 5


def test_rows_whose_arrays_come_to_vary_in_shape(tmp_path: Path) -> None:
    rows = [{"a": np.zeros((2, 2 if n < 10_500 else 3), np.int16)} for n in range(11_000)]
    written = write(rows, tmp_path / "x", shards=2)
    spec = written.manifests[0].features
    assert spec and {feature.name for feature in spec.features} == {"a", "a/shape"}
    assert written.records == 11_000


def test_columns_of_any_container(tmp_path: Path) -> None:
    containers = {
        "series": pd.Series(["a", None]),
        "chunked": pa.chunked_array([[1], [2]]),
        "array": pa.array([b"a", b"b"]),
        "tuple": (np.float32(1), 2.5),
        "lists": [[1], [2, 3]],
    }
    found = payloads(write(containers, tmp_path / "x.tfrecord"))
    values = {
        "series": pa.array(["a", None]),
        "chunked": [1, 2],
        "array": [b"a", b"b"],
        "tuple": pa.array([1, 2.5]),
        "lists": [[1], [2, 3]],
    }
    assert found == [encode(*pa.table(values).to_batches())]


def test_no_rows_are_files_without_records(tmp_path: Path) -> None:
    for data in (NUMBERS.slice(0, 0), iter(NUMBERS.schema.empty_table().to_batches() or [BATCHES[0].slice(0, 0)])):
        written = write(data, tmp_path / "x", shards=2)
        assert written.records == 0 and [manifest.records for manifest in written.manifests] == [0, 0]


def test_progress_is_told_of_all_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps: list[int] = []
    write(table(3000), tmp_path / "x", shards=4, progress=steps.append)
    assert sum(steps) == 3000
    for shown in (None, False):
        write(table(), tmp_path / "x", shards=4, progress=shown)
    assert capsys.readouterr() == ("", "")


def test_a_bar_is_shown_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("FORCE_COLOR", "1")
    write(table(3000), tmp_path / "x", shards=4, progress=True)
    assert "records" in terminal.getvalue() and "3000" in terminal.getvalue()


def test_a_function_can_be_the_writer(tmp_path: Path) -> None:
    from tfr_assets.bench.writers.serial import serial

    assert write(table(), tmp_path / "x.tfrecord", writer=serial).writer == "serial"


BAD_ARGUMENTS: dict[str, tuple[dict[str, Any], str]] = {
    "a folder without shards": ({"path": "x"}, "a file's name must hold '.tfrecord'.*`shards`"),
    "a file with shards": ({"path": "x.tfrecord", "shards": 2}, "give the folder for them"),
    "no shards": ({"path": "x", "shards": 0}, "shards=0 is not between 1 and 99999"),
    "shards in words": ({"path": "x", "shards": "2"}, "shards='2' is not between"),
    "a name for two": ({"path": "my-data", "shards": 2}, "'my-data': use letters, digits and underscores"),
    "a split's name": ({"path": "x", "shards": 2, "split": "a-b"}, "split name 'a-b'"),
    "writer": ({"writer": "sharded_thread"}, "there is no writer 'sharded_thread'; did you mean 'sharded_threads'"),
    "another writer": ({"writer": "?"}, "use one of sharded_threads, sharded_processes"),
    "compression": ({"compression": "GZIP"}, "compression='GZIP' is none of none, gzip, zlib"),
    "workers": ({"workers": 0}, "workers=0 must be a positive integer"),
    "columns": ({"features": FeatureOptions(drop=("k",))}, r"features\.drop: there is no column 'k'"),
    "options in a dict": ({"features": {"drop": ["n"]}}, "features={'drop': \\['n'\\]} must be FeatureOptions"),
    "progress": ({"progress": "yes"}, "progress='yes' must be True, False or a function"),
    "workers that are no number": ({"workers": True}, "workers=True must be a positive integer"),
    "shards that are no number": ({"path": "x", "shards": True}, "shards=True is not between"),
    "a number for a split's name": ({"path": "x", "shards": 2, "split": 5}, "split name 5: use letters"),
    "options for records": ({"data": [b"a"], "features": FeatureOptions()}, "serialized already"),
}


@pytest.mark.parametrize("case", BAD_ARGUMENTS)
def test_invalid_arguments(case: str, tmp_path: Path) -> None:
    arguments, message = BAD_ARGUMENTS[case]
    arguments = {"data": NUMBERS, "path": "x.tfrecord", **arguments}
    data, path = arguments.pop("data"), arguments.pop("path")
    with pytest.raises(ConfigError, match=message):
        write(data, tmp_path / path, **arguments)
    assert names(tmp_path) == set()


@pytest.mark.parametrize("part", ["raw", "shards", "merged"])
def test_the_folder_of_a_dataset_is_left_alone(part: str, tmp_path: Path) -> None:
    (tmp_path / "flights" / part).mkdir(parents=True)
    with pytest.raises(ConfigError, match="is the folder of a dataset"):
        write(pa.table({"a": [1]}), tmp_path / "flights", shards=1)
    assert [path.name for path in (tmp_path / "flights").iterdir()] == [part]


@pytest.mark.parametrize("path", ["memory://bucket/x.tfrecord", 5, None])
def test_a_path_that_is_none(path: Any) -> None:
    with pytest.raises(ConfigError, match=r"path=.* must be a path on this machine"):
        write(NUMBERS, path)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "x.tfrecord").mkdir()
    with pytest.raises(ConfigError, match="is a folder"):
        write(NUMBERS, tmp_path / "x.tfrecord")


def test_more_open_files_than_the_system_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfr_assets.writing.writers.rows._LOOK_AHEAD", 1)
    with pytest.raises(ConfigError, match=r"shards=90000: data of unknown length keeps all shards open"):
        write(iter(BATCHES), tmp_path / "x", shards=90_000)
    assert names(tmp_path) == set()


def raising() -> Iterator[dict[str, int]]:
    yield {"a": 1}
    raise RuntimeError("no more")


BAD_DATA: dict[str, tuple[Any, type[Exception], str]] = {
    "nothing": ([], SourceError, "data: gave no rows, and nothing that shows its columns"),
    "an empty generator": (iter([]), SourceError, "data: gave no rows"),
    "a number": (3, SourceError, "data: is a value of type int; give an Arrow table, .* or bytes"),
    "a path": ("data.parquet", SourceError, "data: is a value of type str; give an Arrow table, .* or bytes"),
    "one record": (b"record", SourceError, "data: is a value of type bytes; give an Arrow table, .* or bytes"),
    "numbers": ([1, 2], SourceError, "data: item 0 is a value of type int; give an Arrow table, .* or bytes"),
    "a record, then a row": (
        [b"a", {"a": 1}],
        SourceError,
        "data: item 1 is a value of type dict, but those before it",
    ),
    "columns of two lengths": ({"a": [1], "b": [1, 2]}, SourceError, "different lengths: .*'a': 1, 'b': 2"),
    "a column of mixed types": ({"a": [1, "x"]}, SourceError, "data: column 'a' cannot become Arrow"),
    "one row": ({"a": 1}, SourceError, "data: column 'a' cannot become Arrow"),
    "a generator that raises": (raising(), SourceError, "data: raised RuntimeError: no more"),
    "a map": (pa.table({"m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8()))}), SchemaError, "column 'm'"),
    "a column of nulls": ({"a": [None]}, SchemaError, "column 'a' has no value at all"),
    "types that differ": ([pd.DataFrame({"a": [1]}), pd.DataFrame({"a": ["x"]})], SourceError, "batch 1: column 'a'"),
}


@pytest.mark.parametrize("case", BAD_DATA)
def test_data_that_is_none(case: str, tmp_path: Path) -> None:
    data, error, message = BAD_DATA[case]
    with pytest.raises(error, match=message):
        write(data, tmp_path / "x.tfrecord")
    assert names(tmp_path) == set()


def test_what_was_written_is_told_in_numbers(tmp_path: Path) -> None:
    written = write(table(), tmp_path / "x", shards=2, workers=7)
    assert isinstance(written, Written)
    assert (written.workers, written.records) == (7, 103)
    assert written.bytes == sum(path.stat().st_size for path in written.paths)
    with pytest.raises(AttributeError):
        written.records = 0  # type: ignore[misc]


def test_writing_arrow_does_not_import_pandas(tmp_path: Path) -> None:
    code = f"""
import sys
import pyarrow as pa
from tfr_assets.writing.write import write
arrays = [pa.py_buffer(bytes(80)), pa.py_buffer(bytes(88))]
batch = pa.RecordBatch.from_arrays([
    pa.Array.from_buffers(pa.int64(), 10, [None, arrays[0]]),
    pa.Array.from_buffers(pa.large_string(), 10, [None, arrays[1], pa.py_buffer(b"")]),
], ["n", "t"])
write(iter([batch] * 3), {str(tmp_path / "x.tfrecord")!r})
assert "pandas" not in sys.modules  # 40 MB and a third of a second
"""
    subprocess.run([sys.executable, "-c", code], check=True)
