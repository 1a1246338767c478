"""Documents, columns of tables, and what all texts have in common; Python's codecs and slices are the oracle."""

import json
from pathlib import Path
from typing import Any

import fsspec
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sources.kind_records import inventory_of, records, records_of
from tfr_assets.errors import ConfigError, SourceChanged, SourceError
from tfr_assets.sources import Splits, parse_source, read_rows
from tfr_assets.sources.media.text.decoding import decode_all

WORDS = st.text(st.one_of(st.sampled_from("a é日😀\n"), st.characters(exclude_categories=["Cs"])), max_size=20)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """A folder for raw data, beside what is made of it."""
    (folder := tmp_path / "raw").mkdir()
    return folder


# documents


@settings(max_examples=50, deadline=None)
@given(
    texts=st.lists(WORDS, max_size=5), encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32", "gb18030"])
)
def test_documents_are_what_python_decodes(texts: list[str], encoding: str) -> None:
    contents = pa.array([text.encode(encoding) for text in texts], pa.large_binary())
    expected = [text.encode(encoding).decode(encoding).removeprefix("\ufeff") for text in texts]
    assert decode_all(contents, encoding).to_pylist() == expected
    assert decode_all(contents.slice(1), encoding).to_pylist() == expected[1:]


def test_a_folder_has_a_record_a_document(tmp_path: Path, raw: Path) -> None:
    (raw / "2.txt").write_bytes(b"\xef\xbb\xbfzwei\r\n")
    (raw / "10.MD").write_text("# zehn")
    (raw / "3.rst").write_text("")
    (raw / "4.pdf").write_text("no document")
    inventory = inventory_of({"text": str(raw)}, tmp_path)
    assert records_of(inventory).to_pylist() == [
        {"text": "zwei\r\n", "text/filename": "2.txt"},
        {"text": "", "text/filename": "3.rst"},
        {"text": "# zehn", "text/filename": "10.MD"},
    ]
    assert inventory.null_counts == {"text": 0, "text/filename": 0}
    assert records({"text": str(raw / "*.rst")}, tmp_path) == [{"text": "", "text/filename": "3.rst"}]
    other = {"path": str(raw), "endings": [".PDF"]}
    assert records({"text": other}, tmp_path) == [{"text": "no document", "text/filename": "4.pdf"}]
    whole = {"path": str(raw / "2.txt"), "per": "document"}
    assert records({"text": whole}, tmp_path) == [{"text": "zwei\r\n", "text/filename": "2.txt"}]


def test_documents_have_classes_and_splits(tmp_path: Path, raw: Path) -> None:
    for name in ("train/pos/a.txt", "train/neg/b.txt", "test/pos/c.txt"):
        (raw / name).parent.mkdir(parents=True, exist_ok=True)
        (raw / name).write_text(name)
    inventory = inventory_of({"text": str(raw)}, tmp_path, Splits(folder=("train", "test")))
    assert inventory.splits == {"train": 2, "test": 1}
    assert records_of(inventory).to_pylist() == [
        {"text": name, "text/filename": name, "text/class/label": label, "text/class/text": said}
        for name, label, said in [
            ("train/neg/b.txt", 0, "neg"),
            ("train/pos/a.txt", 1, "pos"),
            ("test/pos/c.txt", 1, "pos"),
        ]
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_a_document_of_another_encoding_is_named_or_left_out(encoding: str, tmp_path: Path, raw: Path) -> None:
    (raw / "good.txt").write_text("gut", encoding=encoding)
    content = "ab".encode(encoding) + b"\x81"
    (raw / "bad.txt").write_bytes(content)
    with pytest.raises(UnicodeDecodeError) as told:
        content.decode(encoding)
    where = rf"bad\.txt: byte {told.value.start} \(0x81\) is not {encoding} text: .*such as `encoding: latin-1`"
    said: dict[str, Any] = {"path": str(raw), "encoding": encoding}
    with pytest.raises(SourceError, match=where):
        records({"text": said}, tmp_path)
    inventory = inventory_of({"text": {**said, "on_error": "skip"}}, tmp_path)
    assert records_of(inventory)["text"].to_pylist() == ["gut"]
    assert [file for file, _ in inventory.first_skipped] == ["bad.txt"]


def test_what_utf8_cannot_hold_is_no_text(tmp_path: Path, raw: Path) -> None:
    (raw / "a.txt").write_bytes(b"a+2AA-")  # half of a surrogate pair
    with pytest.raises(SourceError, match=r"a\.txt: is not utf-7 text: .*surrogates not allowed"):
        records({"text": {"path": str(raw), "encoding": "utf-7"}}, tmp_path)


def test_a_document_that_changes_after_the_inventory(tmp_path: Path, raw: Path) -> None:
    (raw / "a.txt").write_text("one")
    inventory = inventory_of({"text": str(raw)}, tmp_path)
    (raw / "a.txt").write_text("two")
    with pytest.raises(SourceChanged, match=r"a\.txt"):
        records_of(inventory)


def test_documents_by_url(tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe({"/documents/pos/a.txt": "ä".encode("latin-1"), "/documents/neg/b.md": b"b"})
    try:
        made = records({"text": {"path": "memory://documents", "encoding": "latin-1"}}, tmp_path)
        assert [record["text"] for record in made] == ["b", "ä"]
        assert [record["text/class/text"] for record in made] == ["neg", "pos"]
    finally:
        memory.rm("/documents", recursive=True)


# rows of tables

TABLE = {
    "id": ["007", "8", "9"],
    "body": ["good", 'bad,\n "so bad"', "1"],
    "stars": [5, 1, 5],
    "day": ["2020-01-01"] * 3,
}


def write_table(folder: Path, format_: str) -> Path:
    path = folder / f"a.{format_}"
    table = pa.table(TABLE)
    match format_:
        case "csv":
            table.to_pandas().to_csv(path, index=False)
        case "tsv":
            table.to_pandas().to_csv(path, index=False, sep="\t")
        case "jsonl":
            table.to_pandas().to_json(path, orient="records", lines=True)
        case "parquet":
            pq.write_table(table, path)
        case "arrow":
            pyarrow.feather.write_feather(table, path)
    return path


@pytest.mark.parametrize("format_", ["csv", "tsv", "jsonl", "parquet", "arrow"])
def test_a_table_has_a_record_a_row(format_: str, tmp_path: Path, raw: Path) -> None:
    said = {"path": str(write_table(raw, format_)), "column": "body", "labels": {"column": "stars"}}
    inventory = inventory_of({"text": said}, tmp_path)
    assert inventory.listing
    assert inventory.listing.names == [".file", "text", ".class"]
    assert records_of(inventory).to_pylist() == [
        {"text": text, "text/class/label": int(stars == 5), "text/class/text": str(stars)}
        for text, stars in zip(TABLE["body"], TABLE["stars"], strict=True)
    ]
    assert inventory.file_count == 1
    assert inventory.bytes == Path(said["path"]).stat().st_size
    for column in ("id", "day"):  # text stays text, though it looks like a number or a date
        assert [record["text"] for record in records({"text": said | {"column": column}}, tmp_path)] == TABLE[column]


def test_rows_are_called_by_file_and_number(tmp_path: Path, raw: Path) -> None:
    for name, rows in (("a/2.parquet", 1), ("a/10.parquet", 3), ("b/1.parquet", 2)):
        (raw / name).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"body": [f"{name}{row}" for row in range(rows)]}), raw / name)
    inventory = inventory_of({"text": {"path": str(raw), "column": "body"}}, tmp_path, Splits(folder=("b", "a")))
    assert inventory.splits == {"b": 2, "a": 4}
    listing = pq.read_table(inventory.landed[0].path)
    names = ["b/1.parquet:1", "b/1.parquet:2", "a/2.parquet:1", *(f"a/10.parquet:{row}" for row in (1, 2, 3))]
    assert listing[".file"].to_pylist() == names
    assert listing["text"].to_pylist() == [f"{name[:-2]}{int(name[-1]) - 1}" for name in names]


@pytest.mark.parametrize("format_", ["csv", "jsonl", "parquet"])
def test_a_column_of_the_table_tells_the_split(format_: str, tmp_path: Path, raw: Path) -> None:
    said = {"text": {"path": str(write_table(raw, format_)), "column": "body"}}
    inventory = inventory_of(said, tmp_path, Splits(column="stars", values=("1", "5")))
    assert inventory.splits == {"1": 1, "5": 2}
    assert records_of(inventory).to_pydict() == {"text": [TABLE["body"][1], TABLE["body"][0], TABLE["body"][2]]}
    by_key = inventory_of(said, tmp_path, Splits({"a": 0.5, "b": 0.5}, key="day"))  # the same in all rows
    assert sorted(by_key.splits.values()) == [0, 3]
    with pytest.raises(SourceError, match=r"there is no column 'part'\. There are: id, body, stars, day"):
        inventory_of(said, tmp_path, Splits(column="part", values=("a",)))


@pytest.mark.parametrize("name", ["a.txt", "a.csv"])
def test_new_texts_never_move_old_ones_to_another_split(name: str, tmp_path: Path, raw: Path) -> None:
    said = {"text": {"path": str(raw / name)} | ({"column": "t"} if name == "a.csv" else {})}
    found = []
    for new in ([], [f"new {number}" for number in range(7)]):
        (raw / name).write_text("\n".join(["t", *new, *(f"old {number}" for number in range(100))]))
        inventory = inventory_of(said, tmp_path, Splits({"train": 0.5, "test": 0.5}))
        assert ".split_by" not in pq.read_schema(inventory.landed[0].path).names
        texts = records_of(inventory)["text"].to_pylist()
        where = ["train"] * inventory.splits["train"] + ["test"] * inventory.splits["test"]
        found.append({text: split for text, split in zip(texts, where, strict=True) if text.startswith("old")})
    assert found[0] == found[1]
    assert set(found[0].values()) == {"train", "test"}


def test_a_table_is_read_as_its_options_say(tmp_path: Path, raw: Path) -> None:
    (raw / "messages.txt").write_bytes("ham|schön\nspam|kaufen".encode("latin-1"))
    said = {
        "path": str(raw / "messages.txt"),
        "column": "body",
        "labels": {"column": "class"},
        "encoding": "latin-1",
        "format": "csv",
        "options": {"delimiter": "|", "column_names": ["class", "body"]},
    }
    made = records({"text": said}, tmp_path)
    assert [(record["text"], record["text/class/text"]) for record in made] == [("schön", "ham"), ("kaufen", "spam")]


def test_missing_texts_and_classes_stay_missing(tmp_path: Path, raw: Path) -> None:
    pq.write_table(pa.table({"t": ["a", None, ""], "c": [None, "x", "y"]}), raw / "a.parquet")
    inventory = inventory_of({"text": {"path": str(raw), "column": "t", "labels": {"column": "c"}}}, tmp_path)
    made = records_of(inventory).to_pydict()
    assert made == {"text": ["a", None, ""], "text/class/label": [None, 0, 1], "text/class/text": [None, "x", "y"]}
    assert inventory.null_counts["text"] == 1


def test_bytes_in_a_table_are_text_if_they_are_utf8(tmp_path: Path, raw: Path) -> None:
    pq.write_table(pa.table({"t": ["ä".encode(), b"\xff", None]}), raw / "a.parquet")
    said = {"path": str(raw), "column": "t"}
    with pytest.raises(SourceError, match=r"a\.parquet:2: column 't' holds bytes that are not UTF-8 text\. .*on_error"):
        records({"text": said}, tmp_path)
    inventory = inventory_of({"text": {**said, "on_error": "skip"}}, tmp_path)
    assert records_of(inventory)["text"].to_pylist() == ["ä", None]
    assert inventory.first_skipped[0][0] == "a.parquet:2"


def test_a_class_that_is_not_pinned(tmp_path: Path, raw: Path) -> None:
    said = {
        "path": str(write_table(raw, "csv")),
        "column": "body",
        "labels": {"column": "stars"},
        "classes": ["5", "11"],
    }
    with pytest.raises(SourceError, match=r"a\.csv:2: its class '1' is not one of `classes` \(did you mean '11'\?\)"):
        records({"text": said}, tmp_path)
    made = records({"text": {**said, "on_error": "skip"}}, tmp_path)
    assert [record["text/class/label"] for record in made] == [0, 0]


@pytest.mark.parametrize("format_", ["csv", "jsonl", "parquet"])
def test_a_column_that_is_not_there_or_no_text(format_: str, tmp_path: Path, raw: Path) -> None:
    path = str(write_table(raw, format_))
    for option in ({"column": "bdy"}, {"column": "body", "labels": {"column": "bdy"}}):
        with pytest.raises(SourceError, match=r"there is no column 'bdy'\. There are: id, body, stars, day\."):
            records({"text": {"path": path, **option}}, tmp_path)
    if format_ != "csv":
        with pytest.raises(SourceError, match=r"column 'stars' is int64, not text\. Name another one\."):
            records({"text": {"path": path, "column": "stars"}}, tmp_path)


# what all have in common


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(WORDS, min_size=1, max_size=5), most=st.integers(1, 12))
def test_texts_are_cut_after_characters(texts: list[str], most: int, tmp_path: Path) -> None:
    (folder := tmp_path / "cut").mkdir(exist_ok=True)
    pq.write_table(pa.table({"t": texts}), folder / "a.parquet")
    made = records({"text": {"path": str(folder), "column": "t", "max_length": most}}, tmp_path)
    assert [record["text"] for record in made] == [text[:most] for text in texts]


def test_only_columns_that_are_asked_for_are_made(tmp_path: Path, raw: Path) -> None:
    (raw / "a.txt").write_text("a")
    inventory = inventory_of({"text": str(raw)}, tmp_path)
    (raw / "a.txt").unlink()

    assert [batch.to_pydict() for batch in read_rows(inventory, 0, 1, ["text/filename"])] == [
        {"text/filename": ["a.txt"]}
    ]


def test_the_fingerprint_tells_texts_and_options_apart(tmp_path: Path, raw: Path) -> None:
    (raw / "a.txt").write_text("a")
    said = {"text": {"path": str(raw)}}
    first = inventory_of(said, tmp_path).fingerprint
    (raw / "a.txt").touch()
    assert inventory_of(said, tmp_path).fingerprint == first
    assert inventory_of({"text": {"path": str(raw), "max_length": 1}}, tmp_path).fingerprint != first
    (raw / "a.txt").write_text("b")
    assert inventory_of(said, tmp_path).fingerprint != first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_lenth": 3}, r"text\.max_lenth: not a setting \(did you mean 'max_length'\?\)"),
        ({"per": "word"}, r"text\.per: 'word' is not known.*document, line, row"),
        ({"per": "row"}, r"text\.column: missing\. With `per: row`, it names the column"),
        ({"per": "line", "column": "a"}, r"text\.column: has no meaning for `per: line`; remove it"),
        ({"format": "csv"}, r"text\.format: has no meaning for files of text; remove it"),
        ({"column": "a", "endings": [".txt"]}, r"text\.endings: has no meaning for `per: row`"),
        ({"column": 3}, r"text\.column: expected text; found 3"),
        ({"encoding": "utf-9"}, r"text\.encoding: 'utf-9' is not an encoding\. Common ones: utf-8"),
        ({"encoding": None}, r"text\.encoding: None is not an encoding"),
        ({"endings": "txt"}, r"text\.endings: expected a list of endings such as \['\.txt', '\.log'\]; found 'txt'"),
        ({"endings": [".tar.gz"]}, r"text\.endings: expected a list of endings"),
        ({"max_length": 0}, r"text\.max_length: expected a whole number from 1 up; found 0"),
        ({"max_length": True}, r"text\.max_length: expected a whole number from 1 up; found True"),
        ({"on_error": "ignore"}, r"text\.on_error: 'ignore' is not known"),
        ({"labels": {"column": "a"}}, r"text\.labels\.column: not a setting"),
        ({"column": "t", "labels": "folder"}, r"text\.labels: expected `none` or {column: NAME}"),
        ({"tokenizer": ["a"]}, r"text\.tokenizer: expected text; found \['a'\]"),
    ],
)
def test_invalid_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=rf"^source\.{message}"):
        parse_source({"text": {"path": "corpus/", **options}})


def test_a_source_without_texts(tmp_path: Path, raw: Path) -> None:
    with pytest.raises(SourceError, match=r"no document is there: looked for \.txt, \.md"):
        records({"text": str(raw)}, tmp_path)
    with pytest.raises(SourceError, match="there is no such file or folder"):
        records({"text": str(raw / "none")}, tmp_path)
    (raw / "a.txt").write_text("\n\n")
    with pytest.raises(SourceError, match="no file of it can become a record: they are empty"):
        records({"text": str(raw / "a.txt")}, tmp_path)
    pd.DataFrame({"t": []}).to_csv(raw / "a.csv", index=False)
    with pytest.raises(SourceError, match="no file of it can become a record: they are empty"):
        records({"text": {"path": str(raw / "a.csv"), "column": "t"}}, tmp_path)


def test_json_of_mixed_dates_and_texts(tmp_path: Path, raw: Path) -> None:
    texts = ["2020-01-01", "no date"]
    (raw / "a.jsonl").write_text("".join(f"{json.dumps({'t': text})}\n" for text in texts))
    assert [record["text"] for record in records({"text": {"path": str(raw), "column": "t"}}, tmp_path)] == texts
