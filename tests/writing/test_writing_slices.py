"""What slices without raw data become: files without records, unless their data is only out of sight."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tfr_assets.errors import SchemaError, SourceError
from tfr_assets.sources import Inventory, Slices, parse_source, read_rows
from tfr_assets.writing.dataset import Dataset
from tfr_assets.writing.plan import plan_shards
from tfr_assets.writing.raw import materialize_raw
from tfr_assets.writing.slices.fits import settle_features

AB = Slices(values=("a", "b"), empty="allow")


def put(path: Path, text: str = "id\n1\n2\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def dataset(tmp_path: Path, source: Any) -> Dataset:
    return Dataset("gaps", parse_source(source), 1, root=tmp_path / "data", slices=AB)


def make(whole: Dataset, key: str) -> Inventory:
    return materialize_raw(whole.of_slice(key))


@pytest.mark.parametrize("prefix", ["", "file://"])
def test_a_slice_whose_root_is_gone_is_not_empty(tmp_path: Path, prefix: str) -> None:
    put(tmp_path / "share" / "a" / "x.csv")
    whole = dataset(tmp_path, f"{prefix}{tmp_path}/share/{{slice}}/*.csv")
    make(whole, "a")
    (tmp_path / "share").rename(tmp_path / "away")
    with pytest.raises(SourceError, match=r"The folder .*/share of all slices is not there; is it mounted\?"):
        make(whole, "b")
    (tmp_path / "away").rename(tmp_path / "share")
    assert make(whole, "b").rows == 0


def test_a_slice_that_had_rows_does_not_become_empty_by_itself(tmp_path: Path) -> None:
    for key in "ab":
        put(tmp_path / "raw" / key / "x.csv")
    whole = dataset(tmp_path, f"{tmp_path}/raw/{{slice}}/*.csv")
    for key in "ab":
        make(whole, key)
    (tmp_path / "raw" / "b" / "x.csv").unlink()
    with pytest.raises(SourceError, match=r"Slice b had 2 rows, now none; remove its folder .*/slices/b if that is"):
        make(whole, "b")
    assert Inventory.load(whole.layout_of("b").inventory).rows == 2
    whole.layout_of("b").inventory.unlink()
    assert make(whole, "b").rows == 0


@pytest.mark.parametrize("lacking", ["t", "txt"])
def test_a_mixed_slice_is_empty_only_if_all_parts_are(tmp_path: Path, lacking: str) -> None:
    raw = tmp_path / "raw"
    for key in "ab":
        put(raw / key / "t" / "x.csv", "id,v\n1,5\n")
        put(raw / key / "txt" / "1.txt", "one")
    parts = [{"table": f"{raw}/{{slice}}/t/*.csv"}, {"text": f"{raw}/{{slice}}/txt/*.txt"}]
    whole = dataset(tmp_path, {"mixed": {"key": "id", "parts": parts, "missing": "skip"}})
    make(whole, "a")
    next((raw / "b" / lacking).iterdir()).unlink()
    with pytest.raises(SourceError, match=r"But there is data in .*; a slice is only empty where all parts are"):
        make(whole, "b")
    for file in list((raw / "b").rglob("*.*")):
        file.unlink()
    assert make(whole, "b").rows == 0


@pytest.mark.parametrize("folder", ["missing", "empty"])
def test_texts_of_an_empty_slice_need_no_folder(tmp_path: Path, folder: str) -> None:
    put(tmp_path / "raw" / "a" / "1.txt", "one")
    if folder == "empty":
        (tmp_path / "raw" / "b").mkdir()
    whole = dataset(tmp_path, {"text": f"{tmp_path}/raw/{{slice}}/"})
    make(whole, "a")
    inventory = make(whole, "b")
    assert list(read_rows(inventory, 0, 0)) == []
    assert inventory.schema.names == ["text", "text/filename"]


def test_of_slices_with_other_columns_one_is_first_however_many_begin_at_once(tmp_path: Path) -> None:
    keys = ("a", "b", "c", "d")
    whole = replace(dataset(tmp_path, f"{tmp_path}/raw/{{slice}}.csv"), slices=Slices(values=keys))
    plans = {}
    for number, key in enumerate(keys):
        put(tmp_path / "raw" / f"{key}.csv", f"id\n{('1', 'x', '1.5', '2026-01-01')[number]}\n")
        make(whole, key)
        plans[key] = plan_shards(whole.of_slice(key))
    begin, outcomes = threading.Barrier(len(keys)), {}

    def settle(key: str) -> None:
        begin.wait()
        try:
            settle_features(plans[key].dataset, plans[key].features)
            outcomes[key] = ""
        except SchemaError as error:
            outcomes[key] = str(error)

    threads = [threading.Thread(target=settle, args=(key,)) for key in keys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (first,) = [key for key, says in outcomes.items() if not says]
    assert all(f"do not fit those of slice {first}" in says for says in outcomes.values() if says)


@pytest.mark.parametrize("content", ["id\n", "id,name\n"])
def test_a_csv_with_only_its_header_is_an_empty_slice_of_the_others_columns(tmp_path: Path, content: str) -> None:
    put(tmp_path / "raw" / "a" / "x.csv")
    put(tmp_path / "raw" / "b" / "x.csv", content)
    whole = dataset(tmp_path, f"{tmp_path}/raw/{{slice}}/*.csv")
    schema = make(whole, "a").schema
    inventory = make(whole, "b")
    assert inventory.rows == 0 and inventory.schema == schema
