import hashlib
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.records.reference import crc32c
from tests.sources.media_files import ANY_FILE, list_any, write
from tfr_assets.errors import SourceError
from tfr_assets.sources.media import listing, sorted_names
from tfr_assets.sources.media.listing import Medium
from tfr_assets.sources.media.sorted_names import SortedNames
from tfr_assets.sources.model.kinds import BadFileError
from tfr_assets.sources.model.label_options import LabelOptions
from tfr_assets.sources.model.source import Source
from tfr_assets.sources.model.splits import Splits
from tfr_assets.storage.file_names import natural

UNLABELLED = LabelOptions("none")


def names(table: pa.Table) -> list[str]:
    return table[".file"].to_pylist()


def refuse_bad(data: bytes) -> tuple[int]:
    if data.startswith(b"bad"):
        raise BadFileError("is bad")
    return (len(data),)


PICKY = Medium("file", "any", (".dat",), pa.schema([("length", pa.int64())]), refuse_bad)


def test_a_row_tells_all_of_a_file(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"b/x.y.DAT": b"hello", "a/x.dat": b""})
    table, found = list_any(folder, tmp_path, UNLABELLED)
    assert table.to_pylist()[1] == {
        ".file": "b/x.y.DAT",
        ".key": "x.y",
        ".split": None,
        ".class": None,
        ".bytes": 5,
        ".crc32c": crc32c(b"hello"),
        ".sha256": hashlib.sha256(b"hello").digest(),
        "first": ord("h"),
    }
    assert (found.files, found.bytes, found.classes, found.skipped) == (2, 5, {}, 0)


def test_progress_counts_files(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {f"{n}.dat": b"x" for n in range(300)})
    calls: list[tuple[int, int | None]] = []
    found = listing.Found(tmp_path / "log", lambda done, total: calls.append((done, total)))
    source = Source(path=str(folder))
    rows = sum(batch.num_rows for batch in listing.list_files(source, ANY_FILE, UNLABELLED, False, tmp_path, found))
    assert rows == 300
    assert calls == [(128, 300), (256, 300), (300, 300)]


SEGMENT = st.text("aB0129 -é", min_size=1, max_size=4).filter(lambda text: text.strip() == text)
PATHS = st.sets(st.lists(SEGMENT, min_size=1, max_size=3).map("/".join), min_size=1, max_size=20)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(paths=PATHS, hidden=st.sampled_from(["", ".", "_"]))
def test_files_come_in_natural_order_of_their_paths(
    tmp_path_factory: pytest.TempPathFactory, paths: set[str], hidden: str
) -> None:
    folder = tmp_path_factory.mktemp("data")
    for path in paths:  # an ending keeps files apart from folders
        write(
            folder, {f"{path}.dat": b"", f"{path}.txt": b"", f".{path}.dat": b"", f"{hidden or '_'}x/{path}.dat": b""}
        )
    table, _ = list_any(folder, folder / "_work", UNLABELLED)
    assert names(table) == sorted((f"{path}.dat" for path in paths), key=natural)
    matched, _ = list_any(folder / "**/*.dat", folder / "_work", UNLABELLED)
    assert set(names(table)) <= set(names(matched))


@settings(deadline=None, max_examples=60)
@given(
    found=st.lists(st.text(max_size=6), max_size=60, unique=True),
    run=st.integers(1, 20),
)
def test_names_are_sorted_however_few_fit_into_memory(
    tmp_path_factory: pytest.TempPathFactory, found: list[str], run: int
) -> None:
    folder = tmp_path_factory.mktemp("spool")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_names, "_MERGED", 2)
        patch.setattr(sorted_names, "_BLOCK", 3)
        ordered = SortedNames(iter(found), folder, run)
    assert ordered.count == len(found)
    for _ in range(2):
        assert list(ordered) == sorted(found, key=natural)
    assert len(list(folder.iterdir())) == 1


def test_names_are_spooled_in_runs(tmp_path: Path) -> None:
    most = 0

    def numbers() -> Iterator[str]:
        nonlocal most
        for number in range(1000, 0, -1):
            most = max(most, len(list(tmp_path.iterdir())))
            yield f"{number}.dat"

    ordered = SortedNames(numbers(), tmp_path, 100)
    assert most == 9
    assert list(ordered) == [f"{number}.dat" for number in range(1, 1001)]


def test_a_glob_and_a_file_lie_below_a_root(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"a/1/x.dat": b"", "a/2/x.dat": b"", "a/2/deep/x.dat": b"", "b/x.dat": b""})
    assert names(list_any(folder / "a/*/*.dat", tmp_path)[0]) == ["1/x.dat", "2/x.dat"]
    assert names(list_any(folder / "a" / "**", tmp_path)[0]) == ["1/x.dat", "2/deep/x.dat", "2/x.dat"]
    assert names(list_any(folder / "a/1/x.dat", tmp_path)[0]) == ["x.dat"]
    assert names(list_any(f"file://{folder}/b", tmp_path)[0]) == ["x.dat"]


def test_a_folder_whose_name_looks_like_a_pattern(tmp_path: Path) -> None:
    folder = write(tmp_path / "photos[1]", {"a[2].dat": b"x"})
    assert names(list_any(folder, tmp_path)[0]) == ["a[2].dat"]
    assert names(list_any(folder / "a[2].dat", tmp_path)[0]) == ["a[2].dat"]


def linked(tmp_path: Path) -> Path:
    """Makes a folder with links that lead out of it, and links that do not."""
    folder = write(tmp_path / "data", {"a.dat": b"1", "in/d.dat": b"3"})
    write(tmp_path / "data-elsewhere", {"b.dat": b"2"})
    (folder / "more").symlink_to(tmp_path / "data-elsewhere")
    (folder / "c.dat").symlink_to("../data-elsewhere/b.dat")
    (folder / "in/e.dat").symlink_to("../a.dat")
    (folder / "same").symlink_to("in")
    return folder


def test_links_that_lead_out_are_followed_when_asked(tmp_path: Path) -> None:
    folder = linked(tmp_path)
    for path in (folder, folder / "**/*.dat"):
        table, found = list_any(path, tmp_path, UNLABELLED, follow_links=True)
        assert names(table) == ["a.dat", "c.dat", "in/d.dat", "in/e.dat", "more/b.dat", "same/d.dat", "same/e.dat"]
        assert table["first"].to_pylist() == list(b"1231231")
        assert found.warnings == []


def test_links_that_lead_out_are_left_out_by_default(tmp_path: Path) -> None:
    folder = linked(tmp_path)
    (tmp_path / "root").symlink_to(folder)
    (folder / "README").symlink_to("../readme")
    (folder / "f.txt").symlink_to("../data-elsewhere/f.txt")
    leads_out = "ignored: it is a link that leads out of the folder, and `follow_links: true` is not set"
    for root in (folder, tmp_path / "root"):
        table, found = list_any(root, tmp_path, UNLABELLED)
        assert names(table) == ["a.dat", "in/d.dat", "in/e.dat", "same/d.dat", "same/e.dat"]
        lines = dict(line.split("\t") for line in found.log.read_text().splitlines())
        assert lines == {"more/": leads_out, "c.dat": leads_out, "f.txt": "ignored: its ending is not that of a file"}
        (warning,) = found.warnings
        assert "2 links in the folder are ignored" in warning and "set `follow_links: true` to follow them" in warning
        assert "1 file in the folder is ignored: 1 ending in .txt" in warning
        table, found = list_any(root / "**/*.dat", tmp_path, UNLABELLED)
        assert names(table) == ["a.dat", "in/d.dat", "in/e.dat", "same/d.dat", "same/e.dat"]
        assert dict(line.split("\t") for line in found.log.read_text().splitlines()) == {
            "more/b.dat": leads_out,
            "c.dat": leads_out,
        }


def test_a_link_that_the_source_names_is_followed(tmp_path: Path) -> None:
    folder = linked(tmp_path)
    assert names(list_any(folder / "c.dat", tmp_path)[0]) == ["c.dat"]
    assert names(list_any(folder / "more", tmp_path)[0]) == ["b.dat"]
    assert names(list_any(folder / "more/*.dat", tmp_path)[0]) == ["b.dat"]


def test_where_nothing_but_links_is_there_that_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a").symlink_to(write(tmp_path / "elsewhere", {"b.dat": b"2"}))
    with pytest.raises(SourceError, match=r"no file is there.*1 link in the folder is ignored.*`follow_links: true`"):
        list_any(tmp_path / "data", tmp_path)
    write(tmp_path / "data", {"train/1.dat": b""})
    with pytest.raises(SourceError, match=r"data/a: holds no file, but `splits` names it.*`follow_links: true`"):
        list_any(tmp_path / "data", tmp_path, UNLABELLED, splits=Splits(folder=("train", "a")))


def test_a_link_to_a_folder_that_it_lies_in(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"a/b/c.dat": b""})
    (folder / "a/b/up").symlink_to(folder)
    with pytest.raises(SourceError, match=r"a/b/up/: is a link to a folder that it lies in\. Remove the link"):
        list_any(folder, tmp_path, UNLABELLED)


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("nothing", r"nothing: there is no such file or folder\."),
        ("empty", r"empty: no file is there: looked for \.dat; found no file at all\."),
        ("empty/*.dat", r"no file is there: looked for \.dat; found no file at all"),
        ("others", r"looked for \.dat; found 2 ending in \.txt, 1 ending in nothing\."),
        ("others/a.txt", r"looked for \.dat; found 1 ending in \.txt\."),
        ("memory://nowhere", r"memory://nowhere: there is no such file or folder\."),
        ("memory://nowhere/*.dat", r"no file is there: looked for \.dat; found no file at all"),
        ("nosuch://x/x.dat", "begins with nosuch://, which is not known"),
    ],
)
def test_a_path_without_files(tmp_path: Path, path: str, problem: str) -> None:
    write(tmp_path, {"others/a.txt": b"", "others/b.TXT": b"", "others/README": b"", "empty/.hidden.dat": b""})
    with pytest.raises(Exception, match=problem) as error:
        list_any(path if "://" in path else tmp_path / path, tmp_path / "work", UNLABELLED)
    assert type(error.value).__name__ in ("SourceError", "ConfigError")


def spoil(folder: Path, how: str) -> str:
    """Makes one bad file and returns what is said of it."""
    bad = folder / "2.dat"
    match how:
        case "content":
            bad.write_bytes(b"bad")
            return "is bad"
        case "folder":
            bad.mkdir()
            return "is a folder"
        case "pipe":
            os.mkfifo(bad)
            return "is not a regular file"
        case "broken link":
            bad.symlink_to(folder / "nowhere")
            return "cannot be read: No such file or directory"
        case "link to itself":
            bad.symlink_to(bad)
            return "cannot be read: Too many levels of symbolic links"
    raise AssertionError(how)


@pytest.mark.parametrize("how", ["content", "pipe", "broken link", "link to itself", "folder"])
def test_a_bad_file_is_an_error_or_left_out(tmp_path: Path, how: str) -> None:
    folder = write(tmp_path / "data", {"1.dat": b"x", "3.dat": b"xyz"})
    problem = spoil(folder, how)
    path = folder / "*.dat" if how == "folder" else folder
    with pytest.raises(
        SourceError, match=rf"{folder}/2\.dat: {problem}\. Repair or remove it, or set `on_error: skip`"
    ):
        list_any(path, tmp_path, medium=PICKY)
    table, found = list_any(path, tmp_path, skip=True, medium=PICKY)
    assert names(table) == ["1.dat", "3.dat"]
    assert (found.files, found.bytes, found.skipped, found.first_skipped) == (2, 4, 1, [("2.dat", problem)])
    assert found.log.read_text() == f"2.dat\t{problem}\n"


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path / "data", {"1.dat": b"x", "2.dat": b"x"})
    opened = os.open

    def refuse(
        path: str, flags: int, *more: int, **named: int
    ) -> int:  # tests may run as root, whom nothing is refused
        if str(path).endswith("2.dat"):
            raise PermissionError(13, "Permission denied")
        return opened(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(SourceError, match=r"2\.dat: cannot be read: Permission denied\. Repair or remove it"):
        list_any(folder, tmp_path)
    assert names(list_any(folder, tmp_path, skip=True)[0]) == ["1.dat"]


def test_a_file_that_vanishes_or_grows_meanwhile(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {f"{n:03d}.dat": b"x" for n in range(200)})

    def meddle(data: bytes) -> tuple[int]:
        (folder / "150.dat").unlink(missing_ok=True)
        return (len(data),)

    medium = Medium("file", "any", (".dat",), pa.schema([("length", pa.int64())]), meddle)
    table, found = list_any(folder, tmp_path, skip=True, medium=medium)
    assert len(table) == 199
    assert found.first_skipped == [("150.dat", "cannot be read: No such file or directory")]


def test_a_folder_that_cannot_be_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path / "data", {"a/1.dat": b"x", "b/2.dat": b"x"})
    scandir = os.scandir

    def refuse(path: str) -> "os.ScandirIterator[str]":
        if path.endswith("/a/"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(SourceError, match="/a/: cannot be looked into: Permission denied"):
        list_any(folder, tmp_path, UNLABELLED)
    table, found = list_any(folder, tmp_path, UNLABELLED, skip=True)
    assert names(table) == ["b/2.dat"]
    assert found.first_skipped == [("a/", "cannot be looked into: Permission denied")]


def test_a_name_that_is_not_text(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"1.dat": b"x"})
    try:
        Path(os.fsdecode(os.fsencode(folder) + b"/\xff.dat")).write_bytes(b"x")
    except OSError:
        pytest.skip("this file system takes UTF-8 names alone")
    with pytest.raises(SourceError, match="its name is not UTF-8 text"):
        list_any(folder, tmp_path)
    assert names(list_any(folder, tmp_path, skip=True)[0]) == ["1.dat"]


def test_nothing_but_bad_files(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"1.dat": b"bad", "2.dat": b"bad"})
    with pytest.raises(SourceError, match=r"data: no file of it can be used\. The first, 1\.dat: is bad\."):
        list_any(folder, tmp_path, skip=True, medium=PICKY)


def test_the_first_bad_file_in_order_is_told_however_many_threads(tmp_path: Path) -> None:
    files = {f"{n}.dat": b"bad" if n in (40, 11, 30) else b"x" * 200_000 for n in range(50)}
    folder = write(tmp_path / "data", files)
    heavy = Medium("file", "any", (".dat",), PICKY.facts, refuse_bad, heavy=True)
    with pytest.raises(SourceError, match=r"/11\.dat: is bad"):
        list_any(folder, tmp_path, medium=heavy)
    table, found = list_any(folder, tmp_path, skip=True, medium=heavy)
    assert names(table) == [f"{n}.dat" for n in range(50) if n not in (40, 11, 30)]
    assert [file for file, _ in found.first_skipped] == ["11.dat", "30.dat", "40.dat"]


def test_split_folders_come_before_class_folders(tmp_path: Path) -> None:
    files = {"train/cat/1.dat": b"a", "train/dog/1.dat": b"b", "test/cat/2.dat": b"c"}
    folder = write(tmp_path / "data", files)
    splits = Splits(folder=("train", "test"))
    table, found = list_any(folder, tmp_path, splits=splits)
    assert table.select([".file", ".split", ".class"]).to_pylist() == [
        {".file": "test/cat/2.dat", ".split": "test", ".class": "cat"},
        {".file": "train/cat/1.dat", ".split": "train", ".class": "cat"},
        {".file": "train/dog/1.dat", ".split": "train", ".class": "dog"},
    ]
    assert found.classes == {"any/class/label": ("cat", "dog")}
    with pytest.raises(SourceError, match=r"data/validation: holds no file, but `splits` names it\."):
        list_any(folder, tmp_path, splits=Splits(folder=("train", "test", "validation")))
    write(folder, {"more/cat/1.dat": b"x", "top.dat": b"x"})
    with pytest.raises(
        SourceError, match=r"more/cat/1\.dat: is in none of the folders that are splits \(train, test\)"
    ):
        list_any(folder, tmp_path, splits=splits)
    table, found = list_any(folder, tmp_path, skip=True, splits=splits)
    assert len(table) == 3
    assert [file for file, _ in found.first_skipped] == ["more/cat/1.dat", "top.dat"]


@pytest.fixture
def bucket() -> Iterator[str]:
    fs = fsspec.filesystem("memory")
    for name in ("c/x[2].dat", "a/10.dat", "a/2.dat", "b/_hidden/1.dat", "b/1.dat", "b/x.txt"):
        with fs.open(f"/bucket/{name}", "wb") as file:
            file.write(name.encode())
    yield "memory://bucket"
    fs.rm("/bucket", recursive=True)


def test_files_by_url(tmp_path: Path, bucket: str) -> None:
    table, found = list_any(bucket, tmp_path)
    assert names(table) == ["a/2.dat", "a/10.dat", "b/1.dat", "c/x[2].dat"]
    assert table[".class"].to_pylist() == ["a", "a", "b", "c"]
    assert found.bytes == 32
    assert names(list_any(f"{bucket}/a/*.dat", tmp_path)[0]) == ["2.dat", "10.dat"]
    assert names(list_any(f"{bucket}/a/2.dat", tmp_path)[0]) == ["2.dat"]
    assert names(list_any(f"{bucket}/c/x[2].dat", tmp_path)[0]) == ["x[2].dat"]


def test_files_in_a_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("data/cat/1.dat", b"one")
        archive.writestr("data/dog/1.dat", b"two")
    table, _ = list_any(f"zip://data::{tmp_path}/x.zip", tmp_path)
    assert names(table) == ["cat/1.dat", "dog/1.dat"]
    assert table["first"].to_pylist() == [ord("o"), ord("t")]


def test_a_skipped_file_takes_one_line_of_the_log(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"a\n\tb.dat": b"bad", "ü c.dat": b"bad", "good.dat": b""})
    found = listing.Found(tmp_path / "log", lambda done, total: None)
    of = Source(path=str(folder), kind="images")
    list(listing.list_files(of, PICKY, UNLABELLED, True, tmp_path, found))
    assert found.log.read_text() == "a\\n\\tb.dat\tis bad\nü c.dat\tis bad\n"


def test_files_of_other_endings_are_listed_and_warned_of(tmp_path: Path) -> None:
    others = {"a/photo.tiff": b"II*", "a/photo.TIFF": b"II*", "b/notes": b"", "b/odd\nname.avif": b""}
    folder = write(
        tmp_path / "data",
        {"a/1.dat": b"x", "b/2.dat": b"", "b/README.md": b"", **others, ".hidden.tiff": b"", "_SUCCESS": b""},
    )
    table, found = list_any(folder, tmp_path)
    assert table[".file"].to_pylist() == ["a/1.dat", "b/2.dat"]
    lines = dict(line.split("\t") for line in found.log.read_text().splitlines())
    assert set(lines) == {"a/photo.tiff", "a/photo.TIFF", "b/notes", r"b/odd\nname.avif"}
    assert set(lines.values()) == {"ignored: its ending is not that of a file"}
    assert found.skipped == 0
    assert len(found.warnings) == 1
    problem = "4 files in the folder are ignored: 2 ending in .tiff, 1 ending in "
    assert problem in found.warnings[0] and "Taken are .dat" in found.warnings[0]


def test_a_folder_of_its_files_alone_needs_no_warning(tmp_path: Path) -> None:
    _, found = list_any(write(tmp_path / "data", {"1.dat": b"x"}), tmp_path)
    assert found.warnings == []
    assert not found.log.exists()
