import functools
import http.server
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tfr_assets.errors import ConfigError, SourceChanged, SourceError
from tfr_assets.sources import Inventory, Source, preview, read_rows, take_inventory

TABLE = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]})


def write(path: Path, table: pa.Table = TABLE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    return path


def test_a_folder_is_read_in_the_order_people_number_files(tmp_path: Path, landing: Path) -> None:
    for number in (10, 2, 1):
        write(tmp_path / "data" / f"part {number}.parquet", pa.table({"n": [number]}))
    write(tmp_path / "data" / "sub" / "x.pq", pa.table({"n": [99]}))
    for name in ("_SUCCESS", ".hidden.parquet", "_metadata", "README.md", "_temporary/0.parquet"):
        (tmp_path / "data" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "data" / name).write_text("no data")
    inventory = take_inventory(Source(path=str(tmp_path / "data")), landing)
    assert preview(inventory)["n"].to_pylist() == [1, 2, 10, 99]
    assert [file.rows for file in inventory.files] == [1, 1, 1, 1]
    assert not landing.exists()


def test_home_relative_paths_and_file_urls(tmp_path: Path, landing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.parquet")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for path in ("~/a.parquet", "a.parquet", "./*.parquet", f"file://{tmp_path}/a.parquet"):
        inventory = take_inventory(Source(path=path), landing)
        assert inventory.files[0].path == str(tmp_path / "a.parquet")


def test_columns_are_matched_by_name(tmp_path: Path, landing: Path) -> None:
    write(tmp_path / "d/1.parquet", pa.table({"a": [1], "b": ["x"]}))
    write(tmp_path / "d/2.parquet", pa.table({"b": ["y"], "a": [2]}))
    inventory = take_inventory(Source(path=str(tmp_path / "d")), landing)
    assert preview(inventory).to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        ({"a": [1.5], "b": ["x"]}, "2.parquet: column 'a' is double, but int64 in .*1.parquet"),
        ({"b": ["x"]}, "2.parquet: has no column 'a', which .*1.parquet has"),
        ({"a": [1], "b": ["x"], "c": [1]}, "2.parquet: has a column 'c', which .*1.parquet has not"),
    ],
)
def test_files_that_differ_are_both_named(tmp_path: Path, landing: Path, second: dict, problem: str) -> None:
    write(tmp_path / "d/1.parquet")
    write(tmp_path / "d/2.parquet", pa.table(second))
    with pytest.raises(SourceError, match=problem):
        take_inventory(Source(path=str(tmp_path / "d")), landing)


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("nothing.csv", "no such file or folder"),
        ("*.zzz", "no file matches this pattern"),
        ("empty", "no files in this folder"),
        ("mixed", "several formats: 1 csv, 1 parquet"),
        ("mixed/*", "x.txt: its ending does not show its format"),
        ("x.json", "its ending does not show its format.*Set `format:`"),
        ("hive", "folder name 'year=2020' is the value of a column"),
        ("delta", "is a Delta table"),
        ("memory://nowhere/x.csv", "no such file or folder"),
        ("memory://nowhere/*.csv", "no file matches"),
        ("nosuch://x/x.csv", "begins with nosuch://, which is not known"),
    ],
)
def test_a_path_that_means_nothing(
    tmp_path: Path, landing: Path, monkeypatch: pytest.MonkeyPatch, path: str, problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    write(Path("mixed/b.parquet"))
    Path("mixed/a.csv").write_text("a\n1\n")
    Path("mixed/x.txt").write_text("a\n1\n")
    Path("x.json").write_text("{}")
    write(Path("hive/year=2020/a.parquet"))
    write(Path("delta/a.parquet"))
    Path("delta/_delta_log").mkdir()
    Path("delta/_delta_log/0.json").write_text("{}")
    with pytest.raises(Exception, match=problem) as error:
        take_inventory(Source(path=path), landing)
    assert type(error.value).__name__ in ("SourceError", "ConfigError")


def test_same_content_has_the_same_fingerprint_anywhere(tmp_path: Path, landing: Path) -> None:
    first = take_inventory(Source(path=str(write(tmp_path / "a.parquet"))), landing)
    os.utime(tmp_path / "a.parquet", (1, 1))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "b.pq").write_bytes((tmp_path / "a.parquet").read_bytes())
    second = take_inventory(Source(path=str(tmp_path / "elsewhere")), landing)
    other = take_inventory(Source(path=str(write(tmp_path / "c.parquet", TABLE.slice(1)))), landing)
    assert first.fingerprint == second.fingerprint != other.fingerprint


def test_a_folder_that_holds_the_landing_too(tmp_path: Path, landing: Path) -> None:
    write(tmp_path / "a.parquet")
    with pytest.raises(ConfigError, match=r"source\.path: .* also holds what is made of it"):
        take_inventory(Source(path=str(tmp_path)), landing)


def test_a_file_that_may_not_be_read(tmp_path: Path, landing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.parquet")

    def refuse(*args: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(SourceError, match=r"a\.parquet: cannot be read: .*Permission denied"):
        take_inventory(Source(path=str(path)), landing)


def test_progress_tells_bytes_and_rows(tmp_path: Path, landing: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n" + "1\n" * 20_000)
    calls: list[tuple[int, int | None]] = []
    take_inventory(Source(path=str(tmp_path / "a.csv")), landing, lambda done, total: calls.append((done, total)))
    assert calls == [(40_002, 40_002), (16_384, None), (20_000, None)]


def test_null_counts_of_parquet_and_arrow_agree(tmp_path: Path, landing: Path) -> None:
    table = pa.table(
        {
            "a": pa.array([1, None, 3]),
            "s": pa.array([{"x": 1, "y": {"z": None}}, None, {"x": None, "y": None}]),
            "l": pa.array([[1], None, []]),
            "after": pa.array(["p", "q", None]),
            "never": pa.nulls(3),
        }
    )
    write(tmp_path / "a.parquet", table)
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), table.schema) as writer:
        writer.write_table(table)
    for name in ("a.parquet", "a.arrow"):
        inventory = take_inventory(Source(path=str(tmp_path / name)), landing)
        assert inventory.null_counts == {"a": 1, "s/x": 2, "s/y/z": 3, "l": None, "after": 1, "never": 3}


def test_files_in_memory_by_url(landing: Path) -> None:
    fs = fsspec.filesystem("memory")
    for number in (2, 10):
        with fs.open(f"/bucket/data/{number}.parquet", "wb") as file:
            pq.write_table(pa.table({"n": list(range(number))}), file, row_group_size=3)
        with fs.open(f"/bucket/text/{number}.csv", "wb") as file:
            file.write(b"n\n%d\n" % number)
    try:
        inventory = take_inventory(Source(path="memory://bucket/data"), landing)
        assert inventory.files[0].path == "memory:///bucket/data/2.parquet"
        assert not inventory.landed
        batches = read_rows(Inventory.from_json(inventory.to_json()), 1, 7)
        assert pa.Table.from_batches(batches)["n"].to_pylist() == [1, 0, 1, 2, 3, 4]
        with fs.open("/bucket/data/10.parquet", "wb") as file:
            pq.write_table(pa.table({"n": list(range(1, 11))}), file, row_group_size=3)
        with pytest.raises(SourceChanged, match=r"10\.parquet: is not what it was.*Materialize raw again"):
            list(read_rows(inventory, 1, 7))
        fs.rm("/bucket/data/10.parquet")
        with pytest.raises(SourceChanged, match=r"10\.parquet: is no longer there"):
            list(read_rows(inventory, 1, 7))
        text = take_inventory(Source(path="memory://bucket/text/*.csv"), landing)
        assert preview(text)["n"].to_pylist() == [2, 10]
    finally:
        fs.rm("/bucket", recursive=True)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    pytest.importorskip("aiohttp")
    (tmp_path / "www").mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(tmp_path / "www"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield lambda name: f"http://127.0.0.1:{running.server_port}/{name}"
        running.shutdown()
        thread.join()


def test_files_from_a_web_server_that_sends_no_parts(
    tmp_path: Path, landing: Path, server: Callable[[str], str]
) -> None:
    write(tmp_path / "www" / "a.parquet")
    (tmp_path / "www" / "a.csv").write_text("a,b\n1,x\n")
    inventory = take_inventory(Source(path=server("a.parquet")), landing)
    assert inventory.landed
    assert preview(inventory).equals(TABLE)
    assert preview(take_inventory(Source(path=server("a.csv?token=1")), landing)).to_pylist() == [{"a": 1, "b": "x"}]
    with pytest.raises(SourceError, match=r"no\.csv: there is no such file"):
        take_inventory(Source(path=server("no.csv")), landing)


def test_a_package_that_is_missing_for_a_url_is_named(landing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("s3fs", "obstore"):
        monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(SourceError, match=r"another package: Install s3fs.*pip install 'fsspec\[s3\]'"):
        take_inventory(Source(path="s3://bucket/x.csv"), landing)
