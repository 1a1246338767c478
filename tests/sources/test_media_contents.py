import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sources.media_files import list_any, write
from tfr_assets.errors import SourceChanged, SourceError
from tfr_assets.sources.files.contents import read_contents
from tfr_assets.sources.files.tree import root_of
from tfr_assets.sources.model.label_options import LabelOptions

UNLABELLED = LabelOptions("none")
FILES = {"a.dat": b"first", "b/c.dat": b"", "b/d.dat": b"x" * 100_000, "e.dat": b"last"}


def contents(path: str, listing: pa.Table, storage_options: dict | None = None) -> list[bytes]:
    rows = listing.combine_chunks().to_batches()[0]
    columns = (rows.column(name) for name in (".file", ".bytes", ".crc32c"))
    array = read_contents(root_of(path, storage_options or {}), storage_options or {}, *columns)
    array.validate(full=True)
    return array.to_pylist()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "data", FILES)


@settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.lists(st.binary(max_size=300), min_size=1, max_size=12), order=st.randoms(use_true_random=False))
def test_contents_are_the_files_bytes_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, data: list[bytes], order: "st.randoms"
) -> None:
    folder = write(tmp_path_factory.mktemp("data"), {f"{n}.dat": each for n, each in enumerate(data)})
    listing, _ = list_any(folder, folder / "_work")
    numbers = list(range(len(data)))
    order.shuffle(numbers)
    assert contents(str(folder), listing.take(numbers)) == [data[n] for n in numbers]
    if len(data) > 1:
        assert contents(str(folder), listing.slice(1)) == data[1:]


def test_a_glob_a_file_and_a_file_url(folder: Path, tmp_path: Path) -> None:
    for path, expected in (
        (f"{folder}/b/*.dat", [FILES["b/c.dat"], FILES["b/d.dat"]]),
        (f"{folder}/a.dat", [FILES["a.dat"]]),
        (f"file://{folder}/b", [FILES["b/c.dat"], FILES["b/d.dat"]]),
    ):
        listing, _ = list_any(path, tmp_path)
        assert contents(path, listing) == expected


@pytest.mark.parametrize(
    ("name", "change"),
    [
        *product(("a.dat", "b/c.dat", "e.dat"), ("grown", "gone", "replaced by a folder")),
        *product(("a.dat", "e.dat"), ("cut", "flipped")),
    ],
)
def test_a_change_is_named(folder: Path, tmp_path: Path, name: str, change: str) -> None:
    listing, _ = list_any(folder, tmp_path, UNLABELLED)
    path = folder / name
    old = path.read_bytes()
    match change:
        case "grown":
            path.write_bytes(old + b"x")
        case "cut":
            path.write_bytes(old[:-1])
        case "flipped":
            path.write_bytes(bytes([old[0] ^ 1]) + old[1:])
        case "gone":
            path.unlink()
        case _:
            path.unlink()
            path.mkdir()
    told = {"gone": "is no longer there", "replaced by a folder": "cannot be read: Is a directory"}
    with pytest.raises(SourceError, match=f"{path}: {told.get(change, 'is not what it was')}") as error:
        contents(str(folder), listing)
    assert isinstance(error.value, SourceChanged) == (change != "replaced by a folder")


def test_a_file_that_was_only_touched_is_what_it_was(folder: Path, tmp_path: Path) -> None:
    listing, _ = list_any(folder, tmp_path, UNLABELLED)
    os.utime(folder / "a.dat", (1, 1))
    assert contents(str(folder), listing) == list(FILES.values())


def test_no_open_file_is_left(folder: Path, tmp_path: Path) -> None:
    listing, _ = list_any(folder, tmp_path, UNLABELLED)
    before = os.listdir("/proc/self/fd")  # noqa: PTH208
    contents(str(folder), listing)
    (folder / "e.dat").unlink()
    with pytest.raises(SourceChanged):
        contents(str(folder), listing)
    assert len(os.listdir("/proc/self/fd")) == len(before)  # noqa: PTH208


@pytest.fixture
def bucket() -> Iterator[str]:
    fs = fsspec.filesystem("memory")
    for name, data in FILES.items():
        with fs.open(f"/bucket/{name}", "wb") as file:
            file.write(data)
    yield "memory://bucket"
    fs.rm("/bucket", recursive=True)


def test_files_by_url(bucket: str, tmp_path: Path) -> None:
    listing, _ = list_any(bucket, tmp_path, UNLABELLED)
    assert contents(bucket, listing) == list(FILES.values())
    fs = fsspec.filesystem("memory")
    for data, told in (
        (b"fIrst", "is not what it was"),
        (b"first+", "is not what it was"),
        (None, "is no longer there"),
    ):
        if data is None:
            fs.rm("/bucket/a.dat")
        else:
            with fs.open("/bucket/a.dat", "wb") as file:
                file.write(data)
        with pytest.raises(SourceChanged, match=f"bucket/a.dat: {told}"):
            contents(bucket, listing)
