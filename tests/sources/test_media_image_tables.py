from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.sources.kind_records import inventory_of, records_of
from tests.sources.media_files import encoded, expand, image, list_kind
from tfr_assets.errors import SourceError
from tfr_assets.sources import Inventory
from tfr_assets.sources.model.source import Source
from tfr_assets.sources.model.splits import Splits

PICTURES = [encoded(image(seed=n), "PNG" if n % 2 else "JPEG") for n in range(6)]
LABELS = ["b", "a", "b", "c", "a", "b"]


def source(path: Path, splits: Splits | None = None, **options: Any) -> Source:
    return Source(path=str(path), kind="images", options={"column": "picture"} | options, splits=splits)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "tables"
    for name, rows in (("train/part-10.parquet", slice(3, 6)), ("train/part-2.parquet", slice(0, 3))):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        table = pa.table({"picture": pa.array(PICTURES[rows], pa.binary()), "kind": LABELS[rows], "n": range(3)})
        pq.write_table(table, folder / name, row_group_size=2)
    return folder


def test_images_in_a_column(folder: Path, tmp_path: Path) -> None:
    of = source(folder)
    listing, found = list_kind(of, tmp_path)
    table = expand(of, listing, found.classes)
    assert table["image/encoded"].to_pylist() == PICTURES
    names = [f"train/part-{part}.parquet#{row}" for part in (2, 10) for row in range(3)]
    assert table["image/filename"].to_pylist() == names == listing[".key"].to_pylist()
    assert table["image/format"].to_pylist() == ["jpeg", "png"] * 3
    assert listing[".bytes"].to_pylist() == list(map(len, PICTURES))
    assert (found.files, found.bytes, found.classes) == (6, sum(map(len, PICTURES)), {})


def test_labels_in_another_column(folder: Path, tmp_path: Path) -> None:
    of = source(folder, labels={"column": "kind"}, format="raw", size=[3, 4], splits=Splits(folder=("train",)))
    listing, found = list_kind(of, tmp_path)
    assert found.classes == {"image/class/label": ("a", "b", "c")}
    table = expand(of, listing, found.classes)
    assert table["image/class/text"].to_pylist() == LABELS
    assert table["image/class/label"].to_pylist() == [1, 0, 1, 2, 0, 1]
    assert table["image/pixels"].combine_chunks().to_numpy_ndarray().shape == (6, 3, 4, 3)
    assert set(listing[".split"].to_pylist()) == {"train"}
    numbers = source(folder, labels={"column": "n"})
    assert list_kind(numbers, tmp_path)[1].classes == {"image/class/label": ("0", "1", "2")}


def test_images_as_hugging_face_writes_them(tmp_path: Path) -> None:
    structs = pa.array([{"bytes": data, "path": "x.png"} for data in PICTURES])
    pq.write_table(pa.table({"picture": structs}), tmp_path / "x.parquet")
    of = source(tmp_path / "x.parquet")
    listing, found = list_kind(of, tmp_path / "work")
    assert expand(of, listing, found.classes)["image/encoded"].to_pylist() == PICTURES


@pytest.mark.parametrize(
    ("pictures", "labels", "problem"),
    [
        ([PICTURES[0], None], ["a", "b"], r"x\.parquet: row 1: is empty \(0 bytes\)\. Repair or remove it"),
        ([PICTURES[0], b"text"], ["a", "b"], r"x\.parquet: row 1: is not a JPEG"),
        ([PICTURES[0], PICTURES[1]], ["a", None], r"x\.parquet: row 1: holds no label in column 'kind'"),
        ([PICTURES[0], PICTURES[1]], ["a", "z"], r"x\.parquet: row 1: its class 'z' is not one of `classes`"),
    ],
)
def test_a_bad_row_is_named_or_skipped(tmp_path: Path, pictures: list, labels: list, problem: str) -> None:
    pq.write_table(pa.table({"picture": pa.array(pictures, pa.binary()), "kind": labels}), tmp_path / "x.parquet")
    options = {"labels": {"column": "kind"}, "classes": ["a", "b"]}
    with pytest.raises(SourceError, match=problem):
        list_kind(source(tmp_path / "x.parquet", **options), tmp_path / "work")
    listing, found = list_kind(source(tmp_path / "x.parquet", on_error="skip", **options), tmp_path / "work")
    assert listing[".file"].to_pylist() == ["x.parquet#0"]
    assert [file for file, _ in found.first_skipped] == ["x.parquet#1"]


def test_invalid_tables(folder: Path, tmp_path: Path) -> None:
    for options, problem in (
        ({"column": "image"}, r"part-2\.parquet: has no column 'image'\. It has: picture, kind, n\."),
        ({"column": "kind"}, r"part-2\.parquet: column 'kind' of type string holds no images: these are binary\."),
        ({"labels": {"column": "label"}}, r"part-2\.parquet: has no column 'label'"),
        ({"splits": Splits(folder=("test",))}, r"train/part-2\.parquet: is in none of the folders that are splits"),
    ):
        with pytest.raises(SourceError, match=problem):
            list_kind(source(folder, **options), tmp_path)
    (tmp_path / "x.csv").write_text("picture\nx\n")
    with pytest.raises(SourceError, match=r"x\.csv: `column` is for images in Parquet or Arrow files"):
        list_kind(source(tmp_path / "x.csv"), tmp_path / "work")


def test_splits_by_a_column_or_by_the_images(folder: Path, tmp_path: Path) -> None:
    said = {"images": {"path": str(folder), "column": "picture"}}
    inventory = inventory_of(said, tmp_path, Splits(column="kind", values=("a", "b", "c")))
    assert inventory.splits == {"a": 2, "b": 3, "c": 1}
    made = records_of(inventory)["image/encoded"].to_pylist()
    assert made == [picture for _, picture in sorted(zip(LABELS, PICTURES, strict=True), key=lambda each: each[0])]
    by_number = inventory_of(said, tmp_path, Splits({"train": 0.5, "test": 0.5}, key="n"))
    assert set(by_number.splits.values()) <= {0, 2, 4, 6}  # every number is there in both files
    with pytest.raises(SourceError, match=r"part-2\.parquet: has no column 'part'\. It has: picture, kind, n\."):
        inventory_of(said, tmp_path, Splits(column="part", values=("a",)))

    halves = Splits({"train": 0.5, "test": 0.5})
    before = records_of_splits(inventory_of(said, tmp_path, halves))
    more = [encoded(image(seed=n)) for n in range(10, 14)]
    table = pa.table({"picture": pa.array(more, pa.binary()), "kind": ["a"] * 4, "n": range(4)})
    pq.write_table(
        pa.concat_tables([table, pq.read_table(folder / "train/part-2.parquet")]), folder / "train/part-2.parquet"
    )
    after = records_of_splits(inventory_of(said, tmp_path, halves))
    assert {name: sorted(set(found) - set(more)) for name, found in after.items()} == before
    assert all(before.values())


def records_of_splits(inventory: Inventory) -> dict[str, list[bytes]]:
    images = iter(records_of(inventory)["image/encoded"].to_pylist())
    return {split: sorted(islice(images, rows)) for split, rows in inventory.splits.items()}
