"""Folders that only grow: which new files become a slice, and which are left until they stay as they are."""

import multiprocessing
from pathlib import Path

import pytest

from tfr_assets.errors import SourceError, StaleError
from tfr_assets.layout import Layout
from tfr_assets.sources import Inventory, Slices, parse_source
from tfr_assets.writing.appended import append_slice, appended_files, appended_slices
from tfr_assets.writing.dataset import Dataset
from tfr_assets.writing.raw import materialize_raw
from tfr_assets.writing.slices.append import append_new
from tfr_assets.writing.slices.state import why_stale


@pytest.fixture
def whole(tmp_path: Path) -> Dataset:
    (tmp_path / "raw").mkdir()
    source = parse_source(f"{tmp_path}/raw/*.csv")
    return Dataset("log", source, 1, root=tmp_path / "data", slices=Slices(append=True))


def put(whole: Dataset, name: str, *numbers: int) -> str:
    path = Path(str(whole.source.path)).parent / name
    path.write_text("\n".join(["id", *map(str, numbers), ""]))
    return str(path)


def files(whole: Dataset) -> dict[str, list[str]]:
    keys = appended_slices(whole.layout)
    return {key: [Path(file).name for file in appended_files(whole.layout_of(key))] for key in keys}


def test_new_files_become_a_slice_once_they_stay_as_they_are(whole: Dataset) -> None:
    assert append_new(whole, {}) == {} and files(whole) == {}
    put(whole, "a.csv", 1)
    growing = put(whole, "b.csv", 2)
    left = append_new(whole, {})
    assert len(left) == 2 and files(whole) == {}
    put(whole, "b.csv", 2, 3)
    left = append_new(whole, left)
    assert list(left) == [growing] and files(whole) == {"000001": ["a.csv"]}
    assert append_new(whole, left) == {} and files(whole) == {"000001": ["a.csv"], "000002": ["b.csv"]}
    assert append_new(whole, {}) == {} and len(files(whole)) == 2
    put(whole, "c.csv", 4)
    assert append_new(whole) == {}  # whoever asks for it does not wait
    assert files(whole)["000003"] == ["c.csv"]
    assert [materialize_raw(whole.of_slice(key)).rows for key in whole.slice_keys()] == [1, 2, 1]


def test_a_file_that_changes_makes_its_own_slice_stale(whole: Dataset) -> None:
    put(whole, "a.csv", 1)
    gone = Path(put(whole, "b.csv", 2))
    append_new(whole)
    put(whole, "c.csv", 3)
    append_new(whole)
    for key in whole.slice_keys():
        materialize_raw(whole.of_slice(key))
    put(whole, "c.csv", 3, 4)
    assert why_stale(whole.of_slice("000002")) == "its raw files have changed"
    assert materialize_raw(whole.of_slice("000002")).rows == 2
    gone.unlink()
    with pytest.raises(SourceError, match=r"b\.csv: is gone, one of 2 files that belong together; put it back"):
        materialize_raw(whole.of_slice("000001"))
    assert Inventory.load(whole.layout_of("000001").inventory).rows == 2
    assert append_new(whole) == {} and len(files(whole)) == 2


def test_a_damaged_list_is_not_taken_for_an_empty_one(whole: Dataset) -> None:
    put(whole, "a.csv", 1)
    append_new(whole)
    whole.layout_of("000001").appended.write_bytes(b"{}")
    put(whole, "b.csv", 1)
    with pytest.raises(StaleError, match=r"000001/raw/files\.json: is damaged, .* its files become a new slice"):
        append_new(whole)


def _append(layout: Layout, begin: "multiprocessing.synchronize.Barrier", names: list[str]) -> None:
    begin.wait()
    for name in names:
        append_slice(layout, [name, *names])


def test_no_file_gets_into_two_slices_however_many_processes_append(whole: Dataset) -> None:
    context = multiprocessing.get_context("fork")
    begin = context.Barrier(4)
    names = [f"/raw/{number}.csv" for number in range(20)]
    processes = [
        context.Process(target=_append, args=(whole.layout, begin, names[first:] + names[:first])) for first in range(4)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    taken = [file for key in appended_slices(whole.layout) for file in appended_files(whole.layout_of(key))]
    assert sorted(taken) == sorted(names)
