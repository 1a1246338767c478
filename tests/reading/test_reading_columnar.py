"""`tfr_assets.batches`: every record once and in order, or an error that says which one is damaged."""

import gc
import subprocess
import sys
import threading
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pytest
from fsspec import AbstractFileSystem
from hypothesis import given
from hypothesis import strategies as st

import tfr_assets
from tests.records.reference import examples
from tfr_assets.errors import ConfigError, DamagedFile, SourceError
from tfr_assets.layout import Layout, index_path
from tfr_assets.reading.batches import batches
from tfr_assets.reading.locate.files import locate
from tfr_assets.reading.locate.shares import plan_files, ranges_of, share_of
from tfr_assets.reading.native.decoded_batches import rebatch
from tfr_assets.reading.native.read_ahead import Ahead
from tfr_assets.records.arrow import buffers as memory
from tfr_assets.records.arrow.arrays import Ragged, Strings
from tfr_assets.records.examples.encoder import ExampleEncoder
from tfr_assets.records.examples.writer import write_file
from tfr_assets.records.frames.index import read_index
from tfr_assets.records.schema.derive import derive_spec
from tfr_assets.records.schema.feature_options import FeatureOptions

from .datasets import spec_of, write_dataset

Written = Callable[..., Layout]


def table(rows: int) -> pa.Table:
    random = np.random.default_rng(7)
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "flag": pa.array([i % 3 == 0 for i in range(rows)], pa.bool_()),
            "maybe": pa.array([None if i % 4 == 0 else i for i in range(rows)], pa.int16()),
            "value": pa.array(random.normal(size=rows), pa.float32(), mask=random.random(rows) < 0.2),
            "name": pa.array([f"näme {i}" for i in range(rows)], pa.string(), mask=random.random(rows) < 0.2),
            "tags": pa.array([[f"t{j}" for j in range(i % 4)] for i in range(rows)], pa.list_(pa.string())),
            "pairs": pa.array([[[i, -i]] * (i % 3) for i in range(rows)], pa.list_(pa.list_(pa.int32(), 2))),
            "deep": pa.array(
                [[[i % 100] * j for j in range(i % 3)] for i in range(rows)], pa.list_(pa.list_(pa.int8()))
            ),
            "words": pa.array([[str(i), "é"] for i in range(rows)], pa.list_(pa.string(), 2)),
        }
    )


def lists(column: Any) -> list[Any]:
    """A column as Python values, nested as it is."""
    if isinstance(column, Ragged):
        values = lists(column.values)
        return [values[a:b] for a, b in zip(column.offsets[:-1].tolist(), column.offsets[1:].tolist(), strict=True)]
    return (column.to_numpy() if isinstance(column, Strings) else column).tolist()


def joined(found: Any) -> dict[str, list[Any]]:
    values: dict[str, list[Any]] = {}
    for batch in found:
        for name, column in batch.items():
            values.setdefault(name, []).extend(lists(column))
    return values


def as_bytes(value: Any) -> Any:
    return [as_bytes(v) for v in value] if isinstance(value, list) else value.encode() if value else b""


def expected(source: pa.Table) -> dict[str, list[Any]]:
    values = source.to_pydict()
    values["value"] = [np.nan if v is None else v for v in values["value"]]
    values["maybe"] = [[] if v is None else [v] for v in values["maybe"]]
    return values | {name: [as_bytes(v) for v in values[name]] for name in ("name", "tags", "words")}


def sizes(found: Any) -> list[int]:
    return [len(batch["id"]) for batch in found]


def decoding_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "tfr-decode"]


@pytest.mark.parametrize("files", ["shards", "merged"])
@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_what_was_written_comes_back_in_order(written: Written, compression: str, files: Any) -> None:
    source = table(100)
    layout = written(source, compression=compression)
    found = list(tfr_assets.batches("sample", 32, files=files, root=layout.folder.parent))
    assert sizes(found) == [32, 32, 32, 4]
    np.testing.assert_equal(joined(found), expected(source))
    assert found[0]["flag"].dtype == np.bool_
    assert found[0]["maybe"].values.dtype == np.int16


@pytest.mark.parametrize("rows", [0, 1, 49, 50, 51])
@pytest.mark.parametrize("drop_remainder", [False, True])
def test_all_batches_are_full_but_the_last(written: Written, rows: int, drop_remainder: bool) -> None:
    found = list(batches(written(table(rows)).folder, 25, drop_remainder=drop_remainder))
    assert sizes(found) == [25] * (rows // 25) + ([rows % 25] if rows % 25 and not drop_remainder else [])


def test_pieces_smaller_than_a_batch_are_joined(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfr_assets.records.frames.marks.SPAN", 1000)
    source = table(200)
    found = list(batches(written(source).folder, 64, workers=3))
    assert sizes(found) == [64, 64, 64, 8]
    np.testing.assert_equal(joined(found), expected(source))


def test_columns_come_in_the_order_asked_for(written: Written) -> None:
    source = table(30)
    folder = written(source).folder
    found = list(batches(folder, columns=["tags", "deep", "id"]))
    assert [list(batch) for batch in found] == [["tags", "deep", "id"]]
    np.testing.assert_equal(joined(found), {n: expected(source)[n] for n in ("tags", "deep", "id")})
    with pytest.raises(ConfigError, match="there is no column 'ids'; did you mean 'id'"):
        batches(folder, columns=["ids"])
    for wrong in ([], "id", 5):
        with pytest.raises(ConfigError, match=r"columns=.* must be a list of some of .*, id, "):
            batches(folder, columns=wrong)  # type: ignore[arg-type]


def test_arrow_gives_the_table_back(written: Written) -> None:
    source = table(50)
    (batch,) = batches(written(source).folder, into="arrow")
    assert isinstance(batch, pa.RecordBatch)
    batch.validate(full=True)
    wanted = {name: source[name].to_pylist() for name in source.column_names}
    assert None in wanted["name"]
    found = batch.to_pydict()
    found["value"] = [None if np.isnan(value) else value for value in found["value"]]
    assert found == wanted
    assert batch.schema.field("maybe").type == pa.int16()
    assert batch.schema.field("name").type == pa.large_string()


def test_pandas_keeps_integers_that_may_be_null(written: Written) -> None:
    source = pa.table({"n": pa.array([2**62 + 1, None], pa.int64()), "t": ["a", "b"], "b": pa.array([b"\xff", b""])})
    (frame,) = batches(written(source).folder, into="pandas")
    assert str(frame["n"].dtype) == "Int64"
    assert (frame["n"][0], frame["n"].isna().tolist()) == (2**62 + 1, [False, True])
    assert (frame["t"].tolist(), frame["b"].tolist()) == (["a", "b"], [b"\xff", b""])


@examples(30)
@given(texts=st.lists(st.none() | st.text(max_size=200), min_size=1, max_size=70), size=st.integers(1, 20))
def test_null_strings_are_not_empty_ones(tmp_path_factory: Any, texts: list[str | None], size: int) -> None:
    source = pa.table({"s": pa.array(texts, pa.string()), "n": range(len(texts))})
    folder = write_dataset(source, tmp_path_factory.mktemp("d"), shards=2).folder
    found = pa.Table.from_batches(batches(folder, size, into="arrow"))
    assert found["s"].to_pylist() == texts
    frames = list(batches(folder, size, into="pandas"))
    assert [None if null else s for f in frames for s, null in zip(f["s"], f["s"].isna(), strict=True)] == texts
    filled = write_dataset(
        source, tmp_path_factory.mktemp("f"), shards=1, options=FeatureOptions(fill={"s": "?"})
    ).folder
    (batch,) = batches(filled, into="arrow")
    assert batch["s"].to_pylist() == ["?" if text is None else text for text in texts]


def test_two_strings_in_place_of_one_are_damage_also_where_nulls_are_told(tmp_path: Path) -> None:
    spec = spec_of(pa.table({"s": ["a", None]}))
    lists_ = pa.record_batch({"s": pa.array([["a"], ["b", "c"], []])})
    write_file(tmp_path / "file", ExampleEncoder(derive_spec(lists_.schema, {})).encode(lists_), "none", spec)
    with pytest.raises(DamagedFile, match=r"record 1 at byte .*'s'"):
        list(batches(locate(tmp_path / "file"), into="arrow"))


def test_fills_are_put_where_the_column_is_null(written: Written) -> None:
    options = FeatureOptions(fill={"maybe": -1, "value": 2, "name": "né"})
    (batch,) = batches(written(table(40), options=options).folder)
    source = table(40)
    assert batch["maybe"].tolist() == [-1 if v is None else v for v in source["maybe"].to_pylist()]
    assert lists(batch["name"]) == [("né" if v is None else v).encode() for v in source["name"].to_pylist()]
    assert not np.isnan(batch["value"]).any()


@examples(30)
@given(rows=st.integers(0, 40), count=st.integers(1, 12), shards=st.integers(1, 5), kind=st.integers(0, 2))
def test_shares_are_disjoint_and_whole(tmp_path_factory: Any, rows: int, count: int, shards: int, kind: int) -> None:
    layout = write_dataset(
        table(rows), tmp_path_factory.mktemp("d"), shards=shards, compression=("none", "gzip")[kind == 1]
    )
    if kind == 2:
        for index in (layout.shards / "index").iterdir():
            index.unlink()
    parts = [joined(batches(layout.folder, 7, shard=(i, count), columns=["id"])).get("id", []) for i in range(count)]
    assert list(chain(*parts)) == list(range(rows))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("shard", [(1, 1), (-1, 2), (0, 0), (0.0, 1), 3, (0, 1, 2)])
def test_a_share_that_cannot_be_is_refused(numbers: Layout, shard: tuple[int, int]) -> None:
    with pytest.raises(ConfigError, match=r"shard=.* must be \(index, count\)"):
        batches(numbers.folder, shard=shard)


@pytest.mark.parametrize("option", [{"batch_size": 0}, {"workers": 0}, {"on_error": "x"}, {"into": "x"}])
def test_options_that_cannot_be_are_refused(numbers: Layout, option: Any) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(option))}="):
        batches(numbers.folder, **option)


def damaged_at(layout: Layout, shard: str, record: int, within: int = 14) -> str:
    """Flips a bit of a record: by default of its first bytes."""
    path = layout.shard_path(shard)
    offset = int(read_index(index_path(path))[record, 0])
    content = bytearray(path.read_bytes())
    content[offset + within] ^= 1
    path.write_bytes(content)
    return f"{path}: record {record} at byte {offset + (12 if within >= 12 else 0)}"


def test_damage_names_file_record_and_byte(written: Written) -> None:
    layout = written(table(100))
    place = damaged_at(layout, "train-00001-of-00003", 20)
    with pytest.raises(DamagedFile) as error:
        list(batches(layout.folder, 10))
    assert str(error.value).startswith(f"{place}: data CRC is wrong (stored")
    assert f"`tfr verify {layout.shards}`" in str(error.value)
    assert decoding_threads() == []


def test_skipping_loses_only_the_damaged_records(written: Written) -> None:
    layout = written(table(100))  # 33, 33 and 34 rows
    damaged_at(layout, "train-00000-of-00003", 5)
    damaged_at(layout, "train-00001-of-00003", 20, within=3)
    found = batches(layout.folder, 10, on_error="skip")
    with pytest.warns(
        UserWarning,
        match="left out 2 of \\d+ records, because of damage:\n.*record 5 at byte .*\n.*length CRC is wrong",
    ):
        all_batches = list(found)
    assert sizes(all_batches) == [10] * 9 + [8]
    assert joined(all_batches)["id"] == [i for i in range(100) if i not in (5, 53)]
    assert (found.skipped.records, len(found.skipped.faults)) == (2, 2)


def test_skipping_without_damage_says_nothing(written: Written) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = batches(written(table(20)).folder, on_error="skip")
        assert sum(sizes(found)) == 20
    assert found.skipped.records == 0


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_shares_with_damage_stay_disjoint(written: Written, compression: str) -> None:
    layout = written(table(60), compression=compression, shards=2)
    if compression == "none":
        damaged_at(layout, "train-00000-of-00002", 3, within=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = [joined(batches(layout.folder, shard=(i, 7), on_error="skip"))["id"] for i in range(7)]
    assert list(chain(*parts)) == [i for i in range(60) if i != 3 or compression != "none"]


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
@pytest.mark.parametrize("indexed", [True, False])
def test_no_flipped_or_cut_byte_gives_a_wrong_value(written: Written, compression: str, indexed: bool) -> None:
    layout = written(table(4), shards=1, compression=compression)
    path = layout.shard_path("train-00000-of-00001")
    content, files, right = path.read_bytes(), locate(layout.folder), expected(table(4))
    if not indexed:
        index_path(path).unlink()
    step = 1 if compression == "none" else 3
    cases = [content[:i] + bytes([content[i] ^ 1 << i % 8]) + content[i + 1 :] for i in range(0, len(content), step)]
    cases += [content[:size] for size in range(0, len(content), 5)]
    for case in cases:
        path.write_bytes(case)
        try:
            found = joined(batches(files, 3))
        except DamagedFile as error:
            assert str(error).startswith(f"{path}: record ")
        else:
            np.testing.assert_equal(found, right)
            assert compression != "none"  # whose header and trailer hold bits that mean nothing to the records


def test_another_files_index_is_not_used(written: Written) -> None:
    source = table(90)
    layout = written(source)
    first, second = (index_path(layout.shard_path(f"train-0000{i}-of-00003")) for i in (0, 1))
    first.write_text(second.read_text() + "12 12\n")
    np.testing.assert_equal(joined(batches(layout.folder, 8)), expected(source))


def test_lists_that_contradict_each_other_are_damage(written: Written) -> None:
    source = pa.table(
        {"id": range(6), "x/ragged_flat_values": [[1, 2]] * 6, "x/ragged_row_lengths_0": [[2]] * 3 + [[3]] + [[2]] * 2}
    )
    nested = pa.table({"id": range(6), "x": pa.array([[[1, 2]]] * 6, pa.list_(pa.list_(pa.int64())))})
    layout, honest = written(source, shards=1), written(nested, shards=1, name="honest")
    files = replace(locate(layout.folder), features=locate(honest.folder).features)
    with pytest.raises(DamagedFile, match=r"record 3 at byte \d+: .* lists in 'x' whose lengths do not add up"):
        list(batches(files))
    with pytest.warns(UserWarning, match=r"left out 1 of \d+ records"):
        (batch,) = batches(files, on_error="skip")
    assert lists(batch["id"]) == [0, 1, 2, 4, 5]
    assert lists(batch["x"]) == [[[1, 2]]] * 5


@pytest.mark.parametrize("into", ["numpy", "arrow", "pandas"])
@pytest.mark.parametrize("lengths", [[1, 3], [1, 1], [-1, 3], [2**63 - 1, 2**63 - 1, 4], []], ids=str)
def test_skipped_lists_shift_no_intact_record(tmp_path: Path, lengths: list[int], into: Any) -> None:
    rows = [[[3 * i], [3 * i + 1, 3 * i + 2]] for i in range(4)]
    flat = [[3 * i + k for k in range(3)] for i in range(4)]
    values = {"x/ragged_flat_values": flat, "x/ragged_row_lengths_0": [lengths, [1, 2], [1, 2], [1, 2]]}
    parts = pa.record_batch(values, pa.schema([(name, pa.list_(pa.int64())) for name in values]))
    spec = spec_of(pa.table({"x": pa.array(rows, pa.list_(pa.list_(pa.int64())))}))
    write_file(tmp_path / "file", ExampleEncoder(derive_spec(parts.schema, {})).encode(parts), "none", spec)
    files = locate(tmp_path / "file")
    with pytest.raises(DamagedFile, match=r"record 0 at byte 12: .*'x/ragged_row_lengths_0'"):
        list(batches(files, into=into))
    with pytest.warns(UserWarning, match="left out 1 of"):
        (batch,) = batches(files, into=into, on_error="skip")
    found = lists(batch["x"]) if into == "numpy" else batch.to_pydict()["x"] if into == "arrow" else [*batch["x"]]
    assert [[list(inner) for inner in row] for row in found] == rows[1:]
    if into == "arrow":
        batch.validate(full=True)


def test_skipping_reads_what_is_left_of_a_cut_file(written: Written) -> None:
    layout = written(table(60))
    path = layout.shard_path("train-00001-of-00003")
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 3)
    with pytest.raises(DamagedFile, match="its manifest says"):
        batches(layout.folder, files="shards")
    with pytest.warns(UserWarning, match="left out 1 of 60 records.*\n.*-00001-of-00003: record 19 .*truncated record"):
        found = joined(batches(layout.folder, files="shards", on_error="skip"))
    assert found["id"] == [i for i in range(60) if i != 39]


@pytest.fixture
def far() -> Iterator[AbstractFileSystem]:
    """Storage that is not a disk."""
    storage = fsspec.filesystem("memory")
    yield storage
    storage.rm("/batches", recursive=True)


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("shard", [None, (1, 3)])
def test_a_url_is_read_like_a_folder(
    written: Written, far: AbstractFileSystem, compression: str, shard: tuple[int, int] | None
) -> None:
    layout = written(table(50), compression=compression)
    far.put(str(layout.shards), "/batches/", recursive=True)
    there = batches("memory://batches/shards", 7, columns=["deep", "id"], shard=shard)
    assert joined(there) == joined(batches(layout.folder, 7, columns=["deep", "id"], shard=shard))


def test_what_goes_wrong_behind_a_url_is_told(written: Written, far: AbstractFileSystem) -> None:
    layout = written(table(50))
    far.put(str(layout.shards), "/batches/", recursive=True)
    files = locate("memory://batches/shards")
    path = "/batches/shards/" + layout.shard_path("train-00001-of-00003").name
    content = bytearray(far.cat(path))
    content[-10] ^= 1
    far.pipe(path, bytes(content))
    with pytest.raises(DamagedFile, match=rf"memory:/{path}: record \d+ at byte \d+: data CRC is wrong") as caught:
        list(batches(files))
    assert str(caught.value).endswith("; on_error='skip' skips it")  # nothing that looks at folders helps here
    with pytest.warns(UserWarning, match="1 of 50 records"):
        assert sum(len(batch["id"]) for batch in batches(files, on_error="skip")) == 49
    far.rm(path)
    with pytest.raises(SourceError, match="00001-of-00003: is no longer there"):
        list(batches(files))


def test_a_file_that_is_gone_is_named(written: Written) -> None:
    layout = written(table(20))
    files = locate(layout.folder)
    layout.shard_path("train-00001-of-00003").unlink()
    with pytest.raises(DamagedFile, match="tfrecord-00001-of-00003: cannot be read: No such file"):
        list(batches(files))


def test_manifests_are_opened_once(written: Written) -> None:
    layout = written(table(20))
    files = locate(layout.folder)
    before = joined(batches(files, columns=["deep"]))
    for manifest in (layout.shards / "manifest").iterdir():
        manifest.unlink()
    assert joined(batches(files, columns=["deep"])) == before


def test_serialized_tensors_are_refused_but_can_be_left_out(written: Written) -> None:
    source = pa.table({"id": range(3), "t": pa.array([[1.0, 2.0]] * 3, pa.list_(pa.float64(), 2))})
    folder = written(source, options=FeatureOptions(tensor={"t": "serialized"})).folder
    with pytest.raises(ConfigError, match=r"column 't' holds serialized tensors.*tfr_assets.read"):
        batches(folder)
    assert joined(batches(folder, columns=["id"])) == {"id": [0, 1, 2]}


@pytest.mark.parametrize("end", ["close", "with", "drop", "error"])
def test_no_thread_outlives_its_batches(written: Written, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    monkeypatch.setattr("tfr_assets.records.frames.marks.SPAN", 500)
    layout = written(table(300))
    if end == "error":
        damaged_at(layout, "train-00000-of-00003", 90)
        with pytest.raises(DamagedFile):
            list(batches(layout.folder, 5))
    else:
        found = batches(layout.folder, 5, workers=3)
        next(found)
        assert len(decoding_threads()) == 3
        if end == "close":
            found.close()
            assert list(found) == []
        elif end == "with":
            with found:
                pass
        del found
        gc.collect()
    assert decoding_threads() == []


def test_work_goes_no_further_ahead_than_there_is_room() -> None:
    begun: list[int] = []
    room = threading.Event()

    def task(k: int) -> Any:
        def work(put: Callable[[int], None]) -> None:
            begun.append(k)
            for j in range(10):
                put(10 * k + j)
                if j == 3:
                    room.set()

        return work

    ahead = Ahead(iter([task(k) for k in range(50)]), workers=2, depth=4)
    assert next(ahead) == 0
    room.wait(5)
    assert max(begun) <= 2
    assert list(ahead) == list(range(1, 500))


def test_an_error_comes_after_what_was_done_before_it() -> None:
    def bad(put: Callable[[int], None]) -> None:
        put(1)
        raise ValueError("second")

    ahead = Ahead(iter([lambda put: put(0), bad, lambda put: put(2)]), workers=2)
    assert [next(ahead), next(ahead)] == [0, 1]
    with pytest.raises(ValueError, match="second"):
        next(ahead)


def test_memory_does_not_grow_with_the_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfr_assets.records.frames.marks.SPAN", 1 << 18)
    monkeypatch.setattr(memory, "_SLAB", 1 << 18)
    monkeypatch.setattr(memory, "_kept", memory._Kept(1 << 18))
    rows = 60_000
    source = pa.table({"id": pa.array(range(rows)), "t": pa.array([f"{i:0200d}" for i in range(rows)])})
    peaks = []
    for compression in ("none", "gzip"):
        layout = write_dataset(source, tmp_path / compression, shards=1, compression=compression)
        tracemalloc.start()
        assert sum(sizes(batches(layout.folder, 500))) == rows
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert max(peaks) < 12e6  # of 15 MB; the scan's own buffers take 3 MB per thread


@given(pieces=st.lists(st.integers(1, 9), max_size=12), size=st.integers(1, 10), drop=st.booleans())
@examples(60)
def test_pieces_of_any_size_become_batches(pieces: list[int], size: int, drop: bool) -> None:
    bounds = np.cumsum([0, *pieces])
    found = rebatch(({"id": np.arange(a, b)} for a, b in pairwise(bounds)), size, drop)
    flat = [batch["id"].tolist() for batch in found]  # type: ignore[union-attr]
    total = sum(pieces)
    assert list(chain(*flat)) == list(range(total // size * size if drop else total))
    assert all(len(batch) == size for batch in flat[:-1])


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_ranges_cover_a_share_once(written: Written, monkeypatch: pytest.MonkeyPatch, compression: str) -> None:
    monkeypatch.setattr("tfr_assets.records.frames.marks.SPAN", 500)
    files = locate(written(table(100), compression=compression).folder)
    start, stop = share_of(files.records, (1, 3))
    found = list(ranges_of(plan_files(files, (1, 3))))
    assert sum(wanted.records for wanted in found) == stop - start
    assert len(found) > 5 if compression == "none" else len(found) <= 2
    for wanted in found:
        index = read_index(index_path(Path(wanted.path)))
        assert wanted.start == (index[wanted.segments[0].first, 0] if compression == "none" else 0)
        assert wanted.segments[-1].stop == index[wanted.segments[-1].first + wanted.segments[-1].records - 1].sum()
        assert wanted.segments[0].first <= wanted.first
        assert wanted.stop <= wanted.segments[-1].first + wanted.segments[-1].records


def test_batches_need_no_tensorflow(numbers: Layout) -> None:
    script = f"""
import sys
import tfr_assets
assert sum(len(batch["x"]) for batch in tfr_assets.batches({str(numbers.folder)!r}, 4)) == 10
assert not {{"tensorflow", "dagster", "pandas"}} & {{name.partition(".")[0] for name in sys.modules}}, "imported"
"""
    root = Path(tfr_assets.__file__).parent.parent
    subprocess.run([sys.executable, "-c", script], check=True, cwd=root, timeout=120)
