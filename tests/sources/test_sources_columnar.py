import gc
import gzip
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tfr_assets.errors import ConfigError, SchemaError, SourceChanged, SourceError
from tfr_assets.sources import Source, preview, read_rows, take_inventory
from tfr_assets.sources.tables.repeated import longest_in_batch
from tfr_assets.sources.tables.schemas import plain_schema


def table(rows: int, offset: int = 0) -> pa.Table:
    numbers = range(offset, offset + rows)
    return pa.table(
        {
            "i": pa.array(numbers, pa.int64()),
            "s": pa.array([None if n % 5 == 0 else "x" * (n % 7) for n in numbers], pa.string()),
            "st": pa.array(
                [{"x": n, "y": [n] * (n % 3)} for n in numbers], pa.struct({"x": pa.int64(), "y": pa.list_(pa.int16())})
            ),
        }
    )


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_row_range_of_any_layout(tmp_path: Path, data: st.DataObject) -> None:
    folder = tmp_path / uuid4().hex
    folder.mkdir()
    kind = data.draw(st.sampled_from(["parquet", "arrow", "lz4.feather"]))
    counts = data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=4))
    parts = []
    for number, rows in enumerate(counts):
        parts.append(table(rows, sum(counts[:number])))
        group, path = data.draw(st.integers(1, 50)), str(folder / f"{number}.{kind}")
        if kind == "parquet":
            pq.write_table(parts[-1], path, row_group_size=group)
        elif kind == "arrow":
            with pa.ipc.new_file(path, parts[-1].schema) as writer:
                writer.write_table(parts[-1], group)
        else:
            feather.write_feather(parts[-1], path, compression="lz4", chunksize=group)
    expected = pa.concat_tables(parts)
    inventory = take_inventory(Source(path=str(folder)), tmp_path / "landing")
    assert inventory.rows == len(expected)
    assert not inventory.landed
    start = data.draw(st.integers(0, len(expected)))
    stop = data.draw(st.integers(start, len(expected)))
    columns = data.draw(
        st.none() | st.permutations(["i", "s", "st"]).flatmap(lambda p: st.integers(1, 3).map(lambda n: p[:n]))
    )
    batch_rows = data.draw(st.integers(1, 60))
    batches = list(read_rows(inventory, start, stop, columns, batch_rows))
    assert all(0 < batch.num_rows <= batch_rows for batch in batches)
    wanted = expected.select(columns or expected.column_names)
    found = pa.Table.from_batches(batches, wanted.schema)
    assert found.equals(wanted.slice(start, stop - start))


@pytest.mark.parametrize("seed", [None, 1])
def test_dictionaries_and_metadata_are_gone(tmp_path: Path, landing: Path, seed: int | None) -> None:
    letters = pa.array(["u", None, "u"]).dictionary_encode()
    written = pa.table(
        {
            "d": letters,
            "s": pa.StructArray.from_arrays([letters], ["d"]),
            "l": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3]), letters),
            "m": pa.MapArray.from_arrays(pa.array([0, 1, 2, 3]), pa.array(["a", "b", "c"]), letters),
        }
    ).replace_schema_metadata({"pandas": "?"})
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), written.schema) as writer:
        writer.write_table(written)
    pq.write_table(written.select(["d"]), tmp_path / "a.parquet")
    inventory = take_inventory(Source(path=str(tmp_path / "a.arrow"), shuffle_seed=seed), landing)
    assert "dictionary" not in str(inventory.schema)
    assert inventory.schema.field("d").type == pa.string()
    assert inventory.schema.metadata is None
    rows = preview(inventory).to_pylist()
    assert all(row in rows for row in written.to_pylist())
    in_parquet = take_inventory(Source(path=str(tmp_path / "a.parquet"), shuffle_seed=seed), landing)
    assert in_parquet.schema.equals(pa.schema({"d": pa.string()}), check_metadata=True)
    assert preview(in_parquet).num_rows == 3


def test_views_become_plain_strings(tmp_path: Path, landing: Path) -> None:
    written = pa.table({"v": pa.array(["x", None, "a string too long to be inlined"], pa.string_view())})
    try:
        assert written.nbytes
    except pa.ArrowException:
        pytest.skip("this pyarrow can do little with views")
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), written.schema) as writer:
        writer.write_table(written)
    inventory = take_inventory(Source(path=str(tmp_path / "a.arrow")), landing)
    assert inventory.schema == pa.schema({"v": pa.string()})
    assert preview(inventory).to_pylist() == written.to_pylist()


def test_arrow_streams_are_landed(tmp_path: Path, landing: Path) -> None:
    with pa.ipc.new_stream(str(tmp_path / "a.arrow"), table(0).schema) as writer:
        writer.write_table(table(50), 7)
    inventory = take_inventory(Source(path=str(tmp_path / "a.arrow")), landing)
    assert inventory.landed
    assert preview(inventory, 50).equals(table(50))
    assert inventory.files[0].rows == 50


def test_files_whose_parts_are_too_large_for_memory_are_landed(
    tmp_path: Path, landing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfr_assets.sources.inventory.take.UNIT_BYTES", 1 << 20)
    images = pa.table({"image": [np.random.default_rng(n).bytes(100_000) for n in range(20)]})
    pq.write_table(images, tmp_path / "a.parquet")
    feather.write_feather(images, str(tmp_path / "a.feather"), compression="lz4")
    feather.write_feather(images, str(tmp_path / "b.feather"), compression="uncompressed")
    for name, landed in (("a.parquet", True), ("a.feather", True), ("b.feather", False)):
        inventory = take_inventory(Source(path=str(tmp_path / name)), landing)
        assert bool(inventory.landed) == landed
        assert preview(inventory, 20).equals(images)


def test_large_rows_make_small_batches(tmp_path: Path, landing: Path) -> None:
    images = pa.table({"image": [np.random.default_rng(n).bytes(1 << 20) for n in range(40)]})
    pq.write_table(images, tmp_path / "a.parquet", row_group_size=40)
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), images.schema) as writer:
        writer.write_table(images)
    for name in ("a.parquet", "a.arrow"):
        inventory = take_inventory(Source(path=str(tmp_path / name)), landing)
        batches = list(read_rows(inventory, 3, 40))
        assert max(batch.nbytes for batch in batches) < 17 << 20
        assert pa.Table.from_batches(batches).equals(images.slice(3))


def test_landed_row_groups_are_fit_for_sharding(tmp_path: Path, landing: Path) -> None:
    pq.write_table(pa.table({"a": np.arange(40_000)}), tmp_path / "a.parquet")
    rows = take_inventory(Source(path=str(tmp_path / "a.parquet"), shuffle_seed=0), landing)
    assert rows.landed[0].groups == (16_384, 16_384, 7_232)
    pq.write_table(
        pa.table({"a": [np.random.default_rng(n).bytes(1 << 20) for n in range(40)]}), tmp_path / "b.parquet"
    )
    images = take_inventory(Source(path=str(tmp_path / "b.parquet"), shuffle_seed=0), landing)
    assert sum(images.landed[0].groups) == 40
    assert max(images.landed[0].groups) <= 16


def test_a_change_between_inventory_and_reading_is_seen(tmp_path: Path, landing: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table(10), path)
    inventory = take_inventory(Source(path=str(path)), landing)
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)  # another inode, another time, but the same content
    assert len(preview(inventory)) == 10
    pq.write_table(table(10, 1), path)
    with pytest.raises(SourceChanged, match=r"a\.parquet: is not what it was .* Materialize raw again"):
        list(read_rows(inventory, 0, 10))
    path.unlink()
    with pytest.raises(SourceChanged, match="no longer there"):
        list(read_rows(inventory, 0, 10))


def test_a_change_during_reading_is_seen(tmp_path: Path, landing: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table(10), path)
    inventory = take_inventory(Source(path=str(path)), landing)
    batches = read_rows(inventory, 0, 10, batch_rows=2)
    next(batches)
    pq.write_table(table(10, 1), tmp_path / "b.parquet")
    (tmp_path / "b.parquet").replace(path)
    with pytest.raises(SourceChanged):
        list(batches)


def test_a_reader_may_stop_early(tmp_path: Path, landing: Path) -> None:
    pq.write_table(table(10), tmp_path / "a.parquet")
    batches = read_rows(take_inventory(Source(path=str(tmp_path / "a.parquet")), landing), 0, 10, batch_rows=2)
    next(batches)
    batches.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((0, 11), "rows 0 to 11: .*a.parquet has 10 rows"),
        ((-1, 5), "rows -1 to 5"),
        ((5, 4), "rows 5 to 4"),
        ((0, 1, ["zz"]), "column 'zz': .*a.parquet has no such column. It has: i, s, st"),
        ((0, 1, None, 0), "batch_rows: expected 1 or more"),
    ],
)
def test_rows_and_columns_that_are_not_there(tmp_path: Path, landing: Path, arguments: tuple, problem: str) -> None:
    pq.write_table(table(10), tmp_path / "a.parquet")
    inventory = take_inventory(Source(path=str(tmp_path / "a.parquet")), landing)
    with pytest.raises(ConfigError, match=problem):
        read_rows(inventory, *arguments)


def test_no_rows_but_a_schema(tmp_path: Path, landing: Path) -> None:
    pq.write_table(table(0), tmp_path / "a.parquet")
    for seed in (None, 1):
        inventory = take_inventory(Source(path=str(tmp_path / "a.parquet"), shuffle_seed=seed), landing)
        assert inventory.rows == 0
        assert preview(inventory).schema.equals(table(0).schema)


def test_files_that_cannot_be_read(tmp_path: Path, landing: Path) -> None:
    pq.write_table(table(100), tmp_path / "good.parquet")
    feather.write_feather(table(100), str(tmp_path / "good.arrow"))
    parquet, arrow = (tmp_path / "good.parquet").read_bytes(), (tmp_path / "good.arrow").read_bytes()
    for name, content, problem in [
        ("a.parquet", b"", r"a.parquet: is empty \(0 bytes\)"),
        ("a.arrow", b"", r"a.arrow: is empty \(0 bytes\)"),
        ("a.parquet", b"<html>", "is not Parquet: it begins with b'<html>'. This looks like a web page"),
        ("a.parquet", b"a,b\n1,2\n", "is not Parquet: it begins with b'a,b"),
        ("a.parquet", parquet[:-20], "is cut short"),
        ("a.parquet", parquet[: len(parquet) - 400] + bytes(390) + parquet[-10:], "cannot be read"),
        ("a.arrow", arrow[:-20], "is cut short"),
        ("a.arrow", b"FEA1" + bytes(50), "Feather version 1"),
        ("a.arrow", b"hello", "is not Arrow"),
    ]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SourceError, match=problem):
            take_inventory(Source(path=str(tmp_path / name)), landing)


@pytest.mark.parametrize("files", [1, 2])
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.arrow.gz"])
def test_what_a_schema_tells_is_refused_before_rows_are_landed(
    tmp_path: Path, landing: Path, name: str, files: int
) -> None:
    rows = pa.table({"m": pa.array([[("k", 1)]] * 10, pa.map_(pa.string(), pa.int64()))})
    for number in range(files):
        path = tmp_path / "data" / f"{number}.{name.partition('.')[2]}"
        path.parent.mkdir(exist_ok=True)
        if path.suffix == ".parquet":
            pq.write_table(rows, path)
            continue
        with pa.ipc.new_stream(stream := pa.BufferOutputStream(), rows.schema) as writer:
            writer.write_table(rows)
        content = stream.getvalue().to_pybytes()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    landed: list[int] = []

    def refuse(schema: pa.Schema) -> None:
        assert schema == plain_schema(rows.schema, "")
        raise SchemaError("a map")

    source = Source(path=str(tmp_path / "data"), shuffle_seed=1)
    with pytest.raises(SchemaError, match="a map"):
        take_inventory(source, landing, lambda done, total: landed.append(done) if total is None else None, refuse)
    assert not landed
    assert take_inventory(source, landing, check=lambda schema: None).rows == 10 * files


def test_streams_of_arrow_before_0_15_are_read(tmp_path: Path, landing: Path) -> None:
    options = pa.ipc.IpcWriteOptions(use_legacy_format=True)
    with pa.ipc.new_stream(str(tmp_path / "a.arrow"), table(0).schema, options=options) as writer:
        writer.write_table(table(50), 7)
    assert not (tmp_path / "a.arrow").read_bytes().startswith(b"\xff\xff\xff\xff")
    assert preview(take_inventory(Source(path=str(tmp_path / "a.arrow")), landing), 50).equals(table(50))


def test_no_file_is_left_open(tmp_path: Path, landing: Path) -> None:
    (folder := tmp_path / "data").mkdir()
    with pa.ipc.new_stream(str(folder / "a.arrow"), table(0).schema) as writer:
        writer.write_table(table(50), 7)
    feather.write_feather(table(50), str(folder / "b.feather"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for path in (folder, folder / "a.arrow", folder / "b.feather"):
            inventory = take_inventory(Source(path=str(path), shuffle_seed=1), landing)
            next(read_rows(inventory, 0, 10))
        gc.collect()


@pytest.mark.parametrize("ending", ["parquet", "feather"])
@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize("nested", [False, True])
def test_values_that_are_held_once_and_repeated_fill_no_memory(
    tmp_path: Path, landing: Path, ending: str, seed: int | None, nested: bool
) -> None:
    rows = 4000
    texts = pa.array(["a" * 300_000, "b" * 100_000, "c"])
    column = pa.DictionaryArray.from_arrays(pa.array(np.arange(rows) % 3, pa.int32()), texts)
    if nested:
        column = pa.ListArray.from_arrays(pa.array(np.arange(rows + 1), pa.int32()), column)
    written = pa.table({"s": column, "n": np.arange(rows)})
    path = tmp_path / f"a.{ending}"
    if ending == "parquet":
        pq.write_table(written, path, dictionary_pagesize_limit=1 << 20)
    else:
        feather.write_feather(written, str(path), compression="uncompressed")
    before = pa.total_allocated_bytes()
    inventory = take_inventory(Source(path=str(path), shuffle_seed=seed), landing)
    at = most = 0
    for batch in read_rows(inventory, 0, 1000, batch_rows=1000):
        most = max(most, pa.total_allocated_bytes() - before)
        first = batch.column("n")[0].as_py() % 3
        text = batch.column("s")[0].as_py()
        assert (text[0] if nested else text) == texts[first].as_py()
        at += batch.num_rows
    assert at == 1000
    assert most < 200 << 20  # of 530 MB


def test_repeated_values_of_maps_count() -> None:
    texts = pa.DictionaryArray.from_arrays(pa.array([0, 0, 1, 0], pa.int32()), pa.array(["x" * 100, "y"]))
    column = pa.MapArray.from_arrays([0, 1, 4], pa.array(list("abcd")), texts)
    assert longest_in_batch(pa.record_batch({"m": column})) == 200  # two entries per row


MEASURE = """
    import sys
    from pathlib import Path
    from tfr_assets.sources import Source, read_rows, take_inventory

    def memory():
        status = Path("/proc/self/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("RssAnon")).split()[1]) // 1024

    inventory = take_inventory(Source(path=sys.argv[1]), Path(sys.argv[2]))
    before, most = memory(), 0
    for batch in read_rows(inventory, 0, inventory.rows):
        most = max(most, memory() - before)
    print(most)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_memory_does_not_grow_with_a_row_group(tmp_path: Path) -> None:
    rows = 4_000_000
    numbers = np.random.default_rng(0).random(rows)
    pq.write_table(
        pa.table({"a": numbers, "b": numbers, "c": numbers, "d": numbers}), tmp_path / "a.parquet", row_group_size=rows
    )
    command = [sys.executable, "-c", textwrap.dedent(MEASURE), str(tmp_path / "a.parquet"), str(tmp_path / "landing")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    assert int(done.stdout) < 100  # MB, of 128 MB of rows
