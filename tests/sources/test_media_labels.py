import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sources.media_files import list_any, write
from tfr_assets.errors import ConfigError, SourceError
from tfr_assets.option_groups import validate
from tfr_assets.sources.media.labels import label_columns, label_fields
from tfr_assets.sources.model.image_options import ImageOptions
from tfr_assets.sources.model.kinds import CLASS
from tfr_assets.sources.model.label_options import LabelOptions
from tfr_assets.storage.file_names import natural

KEY = "any/class/label"


def parse_labels(options: Mapping[str, Any], field: str, rows_have_columns: bool = False) -> LabelOptions:
    column = {"column": "c"} if rows_have_columns else {}
    images: ImageOptions = validate(ImageOptions, {"path": "x"} | column | dict(options), field)
    return images.label_options


def labelled(folder: Path, work: Path, options: dict[str, Any], **of_listing: Any) -> dict[str, str]:
    """Returns the class of every file, which is also what label and text say of it."""
    table, found = list_any(folder, work, parse_labels(options, "source.images"), **of_listing)
    rows = table.combine_chunks().to_batches()[0]
    made = label_columns(rows, "any", found.classes)
    assert [field.name for field in label_fields("any", found.classes)] == list(made)
    if not made:
        assert rows.column(CLASS).null_count == rows.num_rows
        return {}
    assert made[KEY].type == pa.int64()
    texts = made["any/class/text"].to_pylist()
    assert [found.classes[KEY][label] for label in made[KEY].to_pylist()] == texts
    return dict(zip(rows.column(".file").to_pylist(), texts, strict=True))


NAME = st.text("abXY019 é-", min_size=1, max_size=5).filter(lambda text: text.strip() == text)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=st.lists(st.tuples(NAME, NAME), min_size=1, max_size=15, unique=True))
def test_the_first_folder_names_the_class(
    tmp_path_factory: pytest.TempPathFactory, files: list[tuple[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("data")
    write(folder, {f"{class_}/{'deep/' * (len(name) % 2)}{name}.dat": b"x" for class_, name in files})
    for options in ({}, {"labels": "folder"}):
        found = labelled(folder, folder / "_work", options)
        assert Counter(found.values()) == Counter(class_ for class_, _ in files)
        assert all(file.startswith(f"{class_}/") for file, class_ in found.items())
    _, expected = list_any(folder, folder / "_work")
    assert expected.classes == {KEY: tuple(sorted({class_ for class_, _ in files}, key=natural))}


def test_classes_are_in_natural_order_unless_pinned(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {f"{n}/x.dat": b"" for n in (10, 9, 1)})
    assert list_any(folder, tmp_path)[1].classes == {KEY: ("1", "9", "10")}
    pinned = parse_labels({"classes": ["9", "10", "2", "1"]}, "source.images")
    assert list_any(folder, tmp_path, pinned)[1].classes == {KEY: ("9", "10", "2", "1")}
    assert labelled(folder, tmp_path, {"classes": ["9", "10", "2", "1"]})["10/x.dat"] == "10"


def test_a_class_that_is_not_pinned(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"cat/1.dat": b"", "dgo/2.dat": b""})
    options = {"classes": ["cat", "dog"]}
    with pytest.raises(
        SourceError, match=r"dgo/2\.dat: its class 'dgo' is not one of `classes` \(did you mean 'dog'\?\)"
    ):
        labelled(folder, tmp_path, options)
    assert labelled(folder, tmp_path, options, skip=True) == {"cat/1.dat": "cat"}


def test_no_labels_where_files_lie_side_by_side_or_none_are_wanted(tmp_path: Path) -> None:
    folder = write(tmp_path / "flat", {"1.dat": b"", "2.dat": b""})
    assert labelled(folder, tmp_path, {}) == {}
    with pytest.raises(SourceError, match=r"`labels: folder`, but no file lies in a folder that could name its class"):
        labelled(folder, tmp_path, {"labels": "folder"})
    write(folder, {"cat/3.dat": b"", "empty/x.txt": b""})
    assert labelled(folder, tmp_path, {"labels": "none"}) == {}


@pytest.mark.parametrize("options", [{}, {"labels": "folder"}])
def test_files_beside_class_folders(tmp_path: Path, options: dict) -> None:
    folder = write(tmp_path / "data", {"cat/1.dat": b"", "stray.dat": b""})
    with pytest.raises(
        SourceError, match=r"stray\.dat: is beside folders that name classes\. Move it into one of them"
    ):
        labelled(folder, tmp_path, options)
    assert labelled(folder, tmp_path, options, skip=True) == {"cat/1.dat": "cat"}


def test_a_class_folder_without_files(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"cat/1.dat": b"", "dog/notes.txt": b""})
    with pytest.raises(SourceError, match=rf"{folder}/dog: holds no file of this class; fill it, remove it, or set"):
        labelled(folder, tmp_path, {})
    _, found = list_any(folder, tmp_path, skip=True)
    assert found.classes == {KEY: ("cat",)}
    assert [file for file, _ in found.first_skipped] == [f"{folder}/dog"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"(\d)_.*", {"a/3_x.dat": "3", "07_y.dat": "7"}),
        (r"^(?P<label>[^_]+)_(.)", {"a/3_x.dat": "3", "07_y.dat": "07"}),
        (r"_(?P<other>.)(?P<label>\.)", {"a/3_x.dat": ".", "07_y.dat": "."}),
    ],
)
def test_a_pattern_is_searched_in_the_name(tmp_path: Path, pattern: str, expected: dict[str, str]) -> None:
    folder = write(tmp_path / "data", dict.fromkeys(expected, b""))
    assert labelled(folder, tmp_path, {"labels": {"pattern": pattern}}) == expected


def test_a_name_that_does_not_match(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"3_x.dat": b"", "5/x.dat": b""})
    options = {"labels": {"pattern": r"(\d)"}}
    with pytest.raises(SourceError, match=r"5/x\.dat: its name does not show its class: it does not match '\(\\\\d\)'"):
        labelled(folder, tmp_path, options)
    assert labelled(folder, tmp_path, options, skip=True) == {"3_x.dat": "3"}


FILES = {"a/x.dat": b"", "a/y.v2.dat": b"", "b/z.dat": b""}


def table_of(tmp_path: Path, ending: str, rows: list[tuple[str, Any]]) -> dict[str, Any]:
    """Writes a label table and returns the options that name it."""
    path = tmp_path / f"labels{ending}"
    frame = pd.DataFrame(rows, columns=["name", "kind"]).assign(more=1.5)
    match ending:
        case ".csv":
            frame.to_csv(path, index=False)
        case ".csv.gz":
            frame.to_csv(path, index=False)
        case ".tsv":
            frame.to_csv(path, index=False, sep="\t")
        case ".parquet":
            frame.to_parquet(path)
        case ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in frame.to_dict("records")))
    return {"labels": {"table": str(path), "file": "name", "label": "kind"}}


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv", ".parquet", ".jsonl"])
@pytest.mark.parametrize(
    "files",
    [
        ("a/x.dat", "a/y.v2.dat", "b/z.dat"),
        ("x.dat", "y.v2.dat", "z.dat"),
        ("x", "y.v2", "z"),
        ("z", "a/x.dat", "y.v2.dat"),
    ],
)
def test_a_table_names_files_by_path_name_or_stem(tmp_path: Path, ending: str, files: tuple[str, ...]) -> None:
    folder = write(tmp_path / "data", FILES)
    kinds = {"x": "cat", "y": "dog, big", "z": "2020-01-01"}
    rows = [(file, kinds[file.removeprefix("a/").removeprefix("b/")[0]]) for file in files]
    found = labelled(folder, tmp_path, table_of(tmp_path, ending, rows))
    assert found == dict(zip(FILES, kinds.values(), strict=True))


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl"])
def test_whole_numbers_in_a_table_are_names(tmp_path: Path, ending: str) -> None:
    folder = write(tmp_path / "data", {"1.dat": b"", "2.dat": b""})
    options = table_of(tmp_path, ending, [(1, 10), (2, 9)])
    assert labelled(folder, tmp_path, options) == {"1.dat": "10", "2.dat": "9"}
    _, found = list_any(folder, tmp_path, parse_labels(options, "x"))
    assert found.classes == {KEY: ("9", "10")}


def test_zeros_in_front_are_kept_from_csv(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"007.dat": b""})
    options = table_of(tmp_path, ".csv", [("007", "01")])
    assert labelled(folder, tmp_path, options) == {"007.dat": "01"}


@pytest.mark.parametrize(
    ("rows", "problem", "skipped"),
    [
        ([("x", "a"), ("z", "b")], r"a/y\.v2\.dat: .*labels\.csv has no row for it", ["a/y.v2.dat"]),
        (
            [("x", "a"), ("w", "b"), ("y.v2", "c"), ("z", "d")],
            r"labels\.csv: row 2: there is no file 'w'; bring it back or remove the row",
            ["labels.csv: row 2"],
        ),
    ],
)
def test_a_table_and_files_that_do_not_fit(
    tmp_path: Path, rows: list[tuple[str, str]], problem: str, skipped: list[str]
) -> None:
    folder = write(tmp_path / "data", FILES)
    options = table_of(tmp_path, ".csv", rows)
    with pytest.raises(SourceError, match=problem):
        labelled(folder, tmp_path, options)
    _, found = list_any(folder, tmp_path, parse_labels(options, "x"), skip=True)
    assert [file.removeprefix(f"{tmp_path}/") for file, _ in found.first_skipped] == skipped


def test_a_row_that_fits_two_files(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"a/x.dat": b"", "b/x.dat": b"", "b/y.dat": b""})
    options = table_of(tmp_path, ".csv", [("x.dat", "cat"), ("y", "dog")])
    with pytest.raises(SourceError, match=r"a/x\.dat: its row in .*labels\.csv, row 1, is that of another file, too"):
        labelled(folder, tmp_path, options)
    assert labelled(folder, tmp_path, options, skip=True) == {"b/y.dat": "dog"}
    options = table_of(tmp_path, ".csv", [("x.dat", "cat"), ("y", "dog"), ("a/x.dat", "bird")])
    assert labelled(folder, tmp_path, options) == {"a/x.dat": "bird", "b/x.dat": "cat", "b/y.dat": "dog"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name,kind\nx,a\nx,b\n", r"labels\.csv: 'x' occurs twice, in rows 1 and 2"),
        ("name,kind\nx,\n", r"labels\.csv: row 1 has nothing in column 'kind'"),
        ("name,kind\nx,a\n,b\n", r"labels\.csv: row 2 has nothing in column 'name'"),
        ("name;kind\nx;a\n", r"labels\.csv: has no column 'name'\. It has: name;kind"),
        ("name,kind,kind\nx,a,b\n", r"labels\.csv: has 2 columns 'kind'"),
        ("", r"labels\.csv: cannot be read: Empty CSV file"),
        (None, r"labels\.csv: there is no such file, though `labels` names it"),
    ],
)
def test_a_table_that_cannot_be_used(tmp_path: Path, text: str | None, problem: str) -> None:
    folder = write(tmp_path / "data", {"x.dat": b""})
    if text is not None:
        (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(SourceError, match=problem):
        labelled(folder, tmp_path, {"labels": {"table": f"{tmp_path}/labels.csv", "file": "name", "label": "kind"}})


@pytest.mark.parametrize(
    ("ending", "problem"),
    [
        (".parquet", "has no column 'class'. It has: name, kind, more"),
        (".jsonl", "row 1 has nothing in column 'class'"),
    ],
)
def test_a_table_without_the_columns(tmp_path: Path, ending: str, problem: str) -> None:
    folder = write(tmp_path / "data", {"x.dat": b""})
    options = table_of(tmp_path, ending, [("x", "a")])
    options["labels"]["label"] = "class"
    with pytest.raises(SourceError, match=problem):
        labelled(folder, tmp_path, options)


def test_a_table_of_an_unknown_format(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"x.dat": b""})
    (tmp_path / "labels.xlsx").write_bytes(b"PK")
    with pytest.raises(SourceError, match=r"labels\.xlsx: is not a label table: its name must end in \.csv"):
        labelled(folder, tmp_path, {"labels": {"table": f"{tmp_path}/labels.xlsx", "file": "a", "label": "b"}})


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"labels": "folders"}, r"^source\.images\.labels: expected `folder`, `none`, \{pattern: REGEX\}.*'folders'"),
        ({"labels": ["a"]}, r"^source\.images\.labels: expected"),
        ({"labels": {}}, r"^source\.images\.labels\.table: missing\. It takes table, file, label"),
        ({"labels": {"table": "x.csv", "file": "f"}}, r"^source\.images\.labels\.label: missing"),
        ({"labels": {"table": 3}}, r"^source\.images\.labels\.table: expected text; found 3"),
        ({"labels": {"patern": "(a)"}}, r"^source\.images\.labels\.patern: not a setting"),
        (
            {"labels": {"pattern": "("}},
            r"^source\.images\.labels\.pattern: '\(' is not a regular expression: missing \)",
        ),
        ({"labels": {"pattern": "a"}}, r"^source\.images\.labels\.pattern: 'a' has no group"),
        ({"labels": {"column": "x"}}, r"^source\.images\.labels\.column: not a setting"),
        ({"classes": "cat"}, r"^source\.images\.classes: expected a list of names such as \[cat, dog\]; found 'cat'"),
        ({"classes": [1, 2]}, r"^source\.images\.classes: .*Put quotes around numbers"),
        ({"classes": ["a", "b", "a"]}, r"^source\.images\.classes: 'a' occurs twice"),
    ],
)
def test_invalid_options(options: dict, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        parse_labels(options, "source.images")


def test_options_where_rows_come_from_tables() -> None:
    assert parse_labels({}, "x", rows_have_columns=True).by == "none"
    assert parse_labels({"labels": {"column": "c"}}, "x", rows_have_columns=True).label == "c"
    for labels in ("folder", {"pattern": "(a)"}, {"table": "t.csv", "file": "f", "label": "l"}):
        with pytest.raises(ConfigError, match=r"^x\.labels"):
            parse_labels({"labels": labels}, "x", rows_have_columns=True)


def test_a_row_without_class_has_neither_label_nor_text() -> None:
    rows = pa.record_batch({CLASS: ["b", None, "a"]})
    columns = label_columns(rows, "text", {"text/class/label": ("a", "b")})
    assert columns["text/class/label"].to_pylist() == [1, None, 0]
    assert columns["text/class/text"].to_pylist() == ["b", None, "a"]
