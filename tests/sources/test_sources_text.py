import bz2
import gzip
import json
import lzma
import zipfile
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tfr_assets.errors import SourceError
from tfr_assets.sources import Inventory, Source, preview, take_inventory
from tfr_assets.sources.tables import csv_files as csv_text
from tfr_assets.sources.tables import json_lines as jsonl
from tfr_assets.sources.tables.schemas import widen


@pytest.fixture
def read(tmp_path: Path, landing: Path) -> Callable[..., Inventory]:
    def read(content: str | bytes, name: str = "a.csv", **options: Any) -> Inventory:
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return take_inventory(Source(path=str(tmp_path / name), options=options), landing)

    return read


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 64 bytes, so that a short text has its surprises in a later one."""
    monkeypatch.setattr(csv_text, "_BLOCK", 64)
    monkeypatch.setattr(jsonl, "_BLOCK", 64)


def types(inventory: Inventory) -> dict[str, str]:
    return {field.name: str(field.type) for field in inventory.schema}


def test_csv_is_landed_with_inferred_types(read: Callable[..., Inventory]) -> None:
    inventory = read("i,f,b,d,t,s,none\n1,1.5,true,2020-01-02,2020-01-02 03:04:05,x,\n2,,,,,,\n")
    assert types(inventory) == {
        **{"i": "int64", "f": "double", "b": "bool", "d": "date32[day]", "t": "timestamp[ms]"},
        **{"s": "string", "none": "null"},
    }
    first = {"i": 1, "f": 1.5, "b": True, "d": date(2020, 1, 2), "t": datetime(2020, 1, 2, 3, 4, 5), "s": "x"}
    assert preview(inventory).to_pylist() == [
        {**first, "none": None},
        {"i": 2, "f": None, "b": None, "d": None, "t": None, "s": "", "none": None},
    ]
    assert inventory.files[0].rows == 2
    assert inventory.null_counts["f"] == 1
    assert inventory.null_counts["none"] == 2


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("early", "late", "type_"),
    [
        ("1", "2.5", "double"),
        ("1", "x", "string"),
        ("", "7", "int64"),
        ("", "", "null"),
        ("true", "maybe", "string"),
        ("true", "2", "string"),
        ("2020-01-01", "2020-01-01 10:00:00", "timestamp[ms]"),
        ("2020-01-01 10:00:00", "2020-01-01 10:00:00.123", "timestamp[ns]"),
        ("2020-01-01", "soon", "string"),
        ("2020-01-01", "12", "string"),
        ("10:00:00", "2020-01-01", "string"),
        ("007", "x", "string"),
    ],
)
def test_types_of_csv_hold_for_the_whole_input(
    read: Callable[..., Inventory], early: str, late: str, type_: str
) -> None:
    inventory = read("k,v\n" + f"1,{early}\n" * 100 + f"1,{late}\n")
    assert types(inventory) == {"k": "int64", "v": type_}
    assert inventory.rows == 101
    if type_ == "string":
        assert preview(inventory, 101)["v"].to_pylist() == [early] * 100 + [late]


def test_types_of_csv_hold_for_all_files(tmp_path: Path, landing: Path) -> None:
    for number, (value, other) in enumerate([("1", ""), ("2.5", "x"), ("", "")]):
        (tmp_path / f"{number}.csv").write_text(f"a,b,c\n{value},{other},\n")
    inventory = take_inventory(Source(path=str(tmp_path / "*.csv")), landing)
    assert types(inventory) == {"a": "double", "b": "string", "c": "null"}
    assert preview(inventory).to_pylist() == [
        {"a": 1.0, "b": "", "c": None},
        {"a": 2.5, "b": "x", "c": None},
        {"a": None, "b": "", "c": None},
    ]


def test_options_of_csv(read: Callable[..., Inventory]) -> None:
    def rows(content: str | bytes, **options: Any) -> list[dict]:
        return preview(read(content, **options)).to_pylist()

    assert rows("a;b\n1;2\n", delimiter=";") == [{"a": 1, "b": 2}]
    assert rows("a,b\n'1,5',2\n", quote_char="'") == [{"a": "1,5", "b": 2}]
    assert rows('a,b\n"1,2\n', quote_char=None) == [{"a": '"1', "b": 2}]
    assert rows("1,2\n", column_names=["x", "y"]) == [{"x": 1, "y": 2}]
    assert rows("made by X\na,b\n1,2\n", skip_rows=1) == [{"a": 1, "b": 2}]
    assert rows("a\nä\n".encode("latin-1"), encoding="latin-1") == [{"a": "ä"}]
    assert rows("a\nä\n".encode("utf-16"), encoding="utf-16") == [{"a": "ä"}]
    assert rows("a,b\n?,?\n1,x\n", null_values=["?"]) == [{"a": None, "b": None}, {"a": 1, "b": "x"}]
    typed = read("a,b,c\n1,1,1\n", column_types={"a": "int8", "b": "string", "c": "float"})
    assert types(typed) == {"a": "int8", "b": "string", "c": "float"}


@pytest.mark.usefixtures("small_blocks")
def test_options_hold_when_types_are_widened(read: Callable[..., Inventory]) -> None:
    options = {"null_values": ["?"], "column_types": {"b": "float"}, "delimiter": ";"}
    inventory = read("a;b\n" + "1;1\n" * 100 + "x;?\n?;2\n", **options)
    assert types(inventory) == {"a": "string", "b": "float"}
    assert preview(inventory, 200).to_pylist()[-2:] == [{"a": "x", "b": None}, {"a": None, "b": 2.0}]


def test_quoted_values_of_several_lines(read: Callable[..., Inventory]) -> None:
    assert preview(read('a,b\n1,"x\n""y"""\n')).to_pylist() == [{"a": 1, "b": 'x\n"y"'}]


def test_compressed_text(read: Callable[..., Inventory]) -> None:
    content = b"a,b\n1,x\n"
    stream = pa.BufferOutputStream()
    with pa.CompressedOutputStream(stream, "zstd") as out:
        out.write(content)
    packed = {"gz": gzip.compress(content), "bz2": bz2.compress(content), "xz": lzma.compress(content)}
    packed["zst"] = stream.getvalue().to_pybytes()
    for ending, data in packed.items():
        assert preview(read(data, f"a.csv.{ending}")).to_pylist() == [{"a": 1, "b": "x"}]
    assert preview(read(b"a\tb\n1\tx\n", "a.tsv")).to_pylist() == [{"a": 1, "b": "x"}]


def test_tabs_by_the_ending(tmp_path: Path, landing: Path, read: Callable[..., Inventory]) -> None:
    tabs, commas = read("a\tb\n1\t2\n", "a.tsv"), read("a\tb\n1\t2\n", "a.csv")
    assert tabs.schema.names == ["a", "b"]
    assert commas.schema.names == ["a\tb"]
    assert tabs.fingerprint != commas.fingerprint
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        archive.writestr("1.tsv", "a\tb\n1\t2\n")
        archive.writestr("2.csv", "a,b\n3,4\n")
    many = take_inventory(Source(path=str(tmp_path / "many.zip")), landing)
    assert preview(many).to_pylist() == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]


def test_zips_of_one_file_and_of_many(tmp_path: Path, landing: Path) -> None:
    with zipfile.ZipFile(tmp_path / "one.csv.zip", "w") as archive:
        archive.writestr("data.txt", "a\n1\n")
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for name, content in {"d/10.csv": "b,a\nx,10\n", "d/2.csv": "a,b\n2.5,y\n", "__MACOSX/2.csv": "?"}.items():
            archive.writestr(name, content)
        archive.writestr("README.txt", "?")
    assert preview(take_inventory(Source(path=str(tmp_path / "one.csv.zip")), landing)).to_pylist() == [{"a": 1}]
    many = take_inventory(Source(path=str(tmp_path / "many.zip")), landing)
    assert preview(many).to_pylist() == [{"a": 2.5, "b": "y"}, {"a": 10.0, "b": "x"}]
    with pytest.raises(SourceError, match=r"this zip holds no jsonl file. It holds: d/10.csv"):
        take_inventory(Source(path=str(tmp_path / "many.zip"), format="jsonl"), landing)


def test_json_lines(read: Callable[..., Inventory]) -> None:
    inventory = read('{"a":1,"s":{"x":1}}\n\n{"a":2.5,"s":{"y":[true]},"n":"x"}', "a.jsonl")
    assert preview(inventory).to_pylist() == [
        {"a": 1.0, "s": {"x": 1, "y": None}, "n": None},
        {"a": 2.5, "s": {"x": None, "y": [True]}, "n": "x"},
    ]
    assert types(read('{"a":1}\n', "a.ndjson", column_types={"a": "float32"})) == {"a": "float"}


@pytest.mark.usefixtures("small_blocks")
def test_types_of_json_lines_hold_for_the_whole_input(read: Callable[..., Inventory]) -> None:
    early = '{"i":1,"s":{"x":1},"d":"2020-01-01","l":[],"n":null}\n' * 20
    late = '{"i":1.5,"s":{"y":true},"d":"soon","l":[{"q":1}],"n":3,"new":"x"}\n'
    inventory = read(early + late, "a.jsonl")
    assert preview(inventory, 100).to_pylist()[0]["new"] is None
    assert preview(inventory, 100).to_pylist()[-1] == {
        **{"i": 1.5, "s": {"x": None, "y": True}, "d": "soon", "l": [{"q": 1}], "n": 3, "new": "x"},
    }


def test_landing_is_skipped_when_it_was_done(
    read: Callable[..., Inventory], landing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = read("a\n1\n")
    monkeypatch.setattr("tfr_assets.sources.inventory.take.write_parts", None)
    assert read("a\n1\n").landed == first.landed
    with pytest.raises(TypeError):
        read("a\n1\n", delimiter=";")


def test_fingerprints_hang_on_content_and_options(read: Callable[..., Inventory]) -> None:
    found = [
        read("a;b\n1;2\n"),
        read("a;b\n1;2\n", delimiter=";"),
        read("a;b\n1;3\n", delimiter=";"),
        read("a;b\n1;2\n", "other.csv"),
    ]
    assert len({inventory.fingerprint for inventory in found}) == 3
    assert found[0].fingerprint == found[3].fingerprint


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.csv", b"", "is empty.*not even a header"),
        ("a.csv", b"\n \n", "is empty"),
        ("a.csv", b"<!DOCTYPE html>\n<html>", "looks like a web page"),
        ("a.csv", gzip.compress(b"a\n1\n", mtime=0), "looks like gzip: its name should end in .gz"),
        ("a.csv", b"PAR1xxxxPAR1", "looks like Parquet"),
        ("a.csv.gz", b"a\n1\n", "damaged or cut short: Not a gzipped file"),
        ("a.csv.gz", gzip.compress(b"a\n" + b"1\n" * 999, mtime=0)[:-9], "damaged or cut short"),
        ("a.csv.zip", b"PK\x03\x04nonsense", "damaged or cut short: File is not a zip file"),
        ("a.csv", b"a,b\n1,2\n3\n", "row 3 has 1 values where 2 are expected: '3'"),
        ("a.csv", b"a,b\n1,2\n3,4,5\n", "row 3 has 3 values where 2 are expected: '3,4,5'"),
        ("a.csv", b"a,a\n1,2\n", "2 columns are named 'a'"),
        ("a.csv", b"a,\n1,2\n", "column 2 of 2 has no name"),
        ("a.csv", b"a,b\n\xe4,1\n", "column 'a' holds bytes that are not UTF-8 text.*encoding: latin-1"),
        ("a.csv", b"\xe4,b\n1,1\n", "bytes that are not utf-8 text"),
        ("a.csv", b'a,b\n1,"x\n2,y\n', "a quote is opened and never closed"),
        ("a.jsonl", b"", "holds no line"),
        ("a.jsonl", b"\n\n", "holds no line"),
        ("a.jsonl", b"<html>", "looks like a web page"),
        ("a.jsonl", b'[{"a": 1}]', "is one JSON array"),
        ("a.jsonl", b'{"a":1}\n\n{"a":\n', "line 3: is not JSON"),
        ("a.jsonl", b'{"a":1}\n7\n', "line 2: must be an object"),
        ("a.jsonl", b'{"a":1}\n\n{"a":"x"}\n', "line 3: key 'a' is string here, but number"),
        ("a.jsonl", b'{"a":1}\n{"a":"\xe4"}\n', "line 2: bytes that are not UTF-8"),
        ("a.jsonl", b'{"a":{}}\n', "column 'a' of type struct<> cannot be stored"),
        ("a.jsonl", b"null\n", "line 1: must be an object.*but is 'null'"),
        ("a.jsonl", b'\n  null\n{"a":1}\n', "line 2: must be an object.*but is 'null'"),
        ("a.jsonl", b'{"a":1}\n\n null\n', "line 3: must be an object.*but is 'null'"),
        ("a.jsonl", b'{"a":1}\n{"a":2} null\n', "line 2: must be an object.*but is 'null'"),
        ("a.jsonl", b'{"a":1}\n[1]\n', "line 2: must be an object.*but is '\\[1\\]'"),
        ("a.jsonl", b'{"a":1}\n{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "line 2: is nested more than 200 deep"),
        ("a.jsonl", b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "line 1: is nested more than 200 deep"),
        ("a.jsonl", b"[" * 100_000, "is one JSON array"),
        ("a.jsonl", b'{"a":' + b"[" * 5000, "line 1: is nested more than 200 deep"),
    ],
)
def test_text_that_cannot_be_read(read: Callable[..., Inventory], name: str, content: bytes, problem: str) -> None:
    with pytest.raises(SourceError, match=problem) as error:
        read(content, name)
    assert name in str(error.value)


def test_null_and_brackets_in_texts_of_json_lines_are_texts(read: Callable[..., Inventory]) -> None:
    rows = [{"a": None}, {"a": "} null"}, {"a": "\nnull"}, {"a": '"' + "]" * 300}]
    inventory = read("\n".join(map(json.dumps, [*rows, {"a": None}])), "a.jsonl")
    assert preview(inventory).to_pylist() == [*rows, {"a": None}]
    assert preview(read('{"a": null}\n{"a":\tnull }\n', "b.jsonl")).to_pylist() == [{"a": None}] * 2


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("name", "content", "options", "problem"),
    [
        ("a.csv", b"a,b\n" + b"1,2\n" * 99 + b"3,x\n", {"b": "int32"}, "row 101, column 'b': .*'x'.* as int32"),
        ("a.csv", b"a,b\n" + b"x,2\n" * 99 + b"\xe4,2\n", {}, "row 101, column 'a': bytes that are not UTF-8"),
        ("a.csv", b"a,b\n1,2\n", {"zz": "int32"}, "`column_types` names 'zz', but the columns are: a, b"),
        ("a.csv", b"a\n" + b"x" * 999 + b"\n1\n", {}, "a row is longer than"),
        ("a.jsonl", b'{"a":1}\n' * 99 + b'{"a":"x"}\n', {}, "line 100: key 'a' is string here"),
        (
            "a.jsonl",
            b'{"a":"x"}\n' * 99 + b'{"a":2001}\n',
            {"a": "string"},
            "line 100: key 'a' is a number here, but a string by `column_types`. JSON distinguishes.*callable",
        ),
        ("a.jsonl", b'{"a":1}\n' * 99 + b'{"a"\n', {}, "line 100: is not JSON"),
        ("a.jsonl", b'{"a":[1]}\n' * 99 + b'{"a":{"b":1}}\n' * 9, {}, "line 100"),
    ],
)
def test_late_surprises_are_located(
    read: Callable[..., Inventory], name: str, content: bytes, options: dict, problem: str
) -> None:
    with pytest.raises(SourceError, match=problem):
        read(content, name, column_types=options)


def test_bytes_that_are_no_text_can_be_declared(read: Callable[..., Inventory]) -> None:
    assert preview(read(b"a\n\xe4\n", column_types={"a": "binary"})).to_pylist() == [{"a": b"\xe4"}]


def test_a_header_alone_is_a_table_without_rows(read: Callable[..., Inventory]) -> None:
    inventory = read("a,b\n")
    assert inventory.rows == 0
    assert inventory.schema.names == ["a", "b"]
    assert preview(inventory).num_rows == 0


def test_widen_is_symmetric_and_repeatable() -> None:
    kinds = [pa.null(), pa.int64(), pa.float64(), pa.string(), pa.date32(), pa.timestamp("s"), pa.timestamp("ns")]
    for a in kinds:
        for b in kinds:
            try:
                wide = widen(a, b)
            except Exception:
                with pytest.raises(Exception):  # noqa: B017
                    widen(b, a)
            else:
                assert widen(b, a) == wide == widen(wide, a) == widen(wide, b)
