"""Slices: which there are, what they are called, and where the source says each is."""

from datetime import UTC, date, datetime
from pathlib import Path

import fsspec
import pytest

from tfr_assets.errors import ConfigError, SourceError
from tfr_assets.option_groups import validate
from tfr_assets.sources import Slices, Source, has_slices, subfolders

NOW = datetime(2026, 3, 4, 5, 30, tzinfo=UTC)
DAILY = Slices(daily="2026-03-01")


@pytest.mark.parametrize(
    ("said", "keys"),
    [
        ({"hourly": "2026-03-04 02:00"}, ["2026-03-04-02", "2026-03-04-03", "2026-03-04-04"]),
        ({"daily": date(2026, 3, 1)}, ["2026-03-01", "2026-03-02", "2026-03-03"]),
        ({"daily": "2026-03-04"}, []),
        ({"weekly": "2026-02-18"}, ["2026-02-18", "2026-02-25"]),
        ({"monthly": "2025-11"}, ["2025-11", "2025-12", "2026-01", "2026-02"]),
        ({"monthly": date(2026, 1, 1)}, ["2026-01", "2026-02"]),
        ({"values": ["us", "eu"]}, ["us", "eu"]),
    ],
)
def test_slices_of_time_are_there_once_they_are_over(said: dict[str, object], keys: list[str]) -> None:
    slices: Slices = validate(Slices, said, "slices")
    assert slices.all_keys(NOW) == keys


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({}, "slices: set one of hourly, daily, weekly, monthly, values, folder and append, such as"),
        ({"daily": "2026-03-01", "values": ["a"]}, "slices.values: daily is set, too"),
        ({"daily": "soon"}, "slices.daily: expected the time of the first slice, such as 2026-01-01; found 'soon'"),
        ({"daily": 20260101}, "found 20260101"),
        ({"daily": "2026-01-01 12:00"}, "is not where a slice begins; such as 2026-01-01"),
        ({"monthly": "2026-01-15"}, "is not where a slice begins; such as 2026-01"),
        ({"values": []}, "slices.values: expected a list of names, such as \\[eu, us\\]; found \\[\\]"),
        ({"values": "eu"}, "expected a list of names"),
        ({"values": ["eu", "eu"]}, "'eu' is named twice"),
        ({"values": ["../eu"]}, "'../eu' is not a name"),
        ({"values": [2026]}, "2026 is not a name; use letters, digits, '-' and '_', and put numbers in quotes"),
        ({"values": ["eu", "last"]}, "'last' means something else where slices are chosen; use another name"),
        ({"daily": "9999-01-01"}, "slices.daily: the first slice must be between 1900 and 2200; found '9999-01-01'"),
        ({"monthly": "0026-01"}, "the first slice must be between 1900 and 2200"),
        ({"folder": "raw", "append": True}, "slices.append: folder is set, too"),
        ({"folder": 3}, "slices.folder: "),
        ({"yearly": 2026}, "slices.yearly: not a setting"),
    ],
)
def test_what_is_no_slice_is_named_with_its_remedy(said: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        validate(Slices, said, "slices")


@pytest.mark.parametrize(
    ("said", "keys"),
    [
        ("2026-03-02", ["2026-03-02"]),
        ("2026-03-01..2026-03-02", ["2026-03-01", "2026-03-02"]),
        (" 2026-03-01 .. 2026-03-02 ", ["2026-03-01", "2026-03-02"]),
        ("2026-03-02..", ["2026-03-02", "2026-03-03"]),
        ("..2026-03-01", ["2026-03-01"]),
        ("last", ["2026-03-03"]),
        ("all", ["2026-03-01", "2026-03-02", "2026-03-03"]),
        ("2026-03-03,2026-03-01", ["2026-03-01", "2026-03-03"]),
    ],
)
def test_a_text_chooses_slices(said: str, keys: list[str]) -> None:
    assert DAILY.choose(said, DAILY.all_keys(NOW)) == keys


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("2026-03-04", "there is no slice '2026-03-04'; there are 2026-03-01, 2026-03-02, 2026-03-03"),
        ("2026-03-03..2026-03-01", "2026-03-03 comes after 2026-03-01; write the first one first"),
        ("", "there is no slice ''"),
    ],
)
def test_a_slice_that_is_not_there_is_named(said: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DAILY.choose(said, DAILY.all_keys(NOW))
    with pytest.raises(ConfigError, match="the first one, 2026-03-01, is not over yet"):
        DAILY.choose("all", DAILY.all_keys(datetime(2026, 3, 1, 23, tzinfo=UTC)))


def test_the_key_is_put_in_place_of_every_hole() -> None:
    source = Source(path="raw/{slice:%Y/%m}/{slice}/*.parquet")
    assert has_slices(source)
    assert DAILY.place(source, "2026-03-02").path == "raw/2026/03/2026-03-02/*.parquet"
    joined = Source(
        kind="mixed",
        options={"parts": [{"images": "photos/{slice}"}, {"table": {"callable": "pkg.mod:rows({slice:%d})"}}]},
    )
    placed = DAILY.place(joined, "2026-03-02")
    assert placed.options["parts"] == [{"images": "photos/2026-03-02"}, {"table": {"callable": "pkg.mod:rows(02)"}}]
    DAILY.check_source(joined)


@pytest.mark.parametrize(
    ("slices", "path", "message"),
    [
        (DAILY, "raw/*.parquet", "nothing in the source says where a slice is; write {slice} in its path"),
        (
            DAILY,
            "raw/{slice:%Y/%m}/",
            "{slice:%Y/%m} is 2026/03 for 2026-03-01 as well as for 2026-03-02; write a form",
        ),
        (DAILY, "raw/{slice:%m-%d}/", "{slice:%m-%d} is 03-01 for 2026-03-01 as well as for 2027-03-01"),
        (Slices(hourly="2026-01-01"), "raw/{slice:%m-%d-%H}/", "for 2026-01-01-00 as well as for 2027-01-01-00"),
        (Slices(hourly="2026-01-01"), "raw/{slice:%Y/%-m%-d/%H}/", "for 2026-01-11-00 as well as for 2026-11-01-00"),
        (DAILY, "raw/{slice:%Y-%V-%u}/", "for 2028-01-01 as well as for 2028-12-30"),
        (Slices(folder="raw"), "raw/*.csv", "nothing in the source says where a slice is"),
        (Slices(folder="raw"), "raw/{slice:%Y}/", "{slice:%Y} is a form of times, but the slices are names"),
        (Slices(append=True), "raw/{slice}/", "with append, a slice is what is new; remove {slice} from the source"),
        (Slices(values=("a", "b")), "raw/{slice:%Y}/", "{slice:%Y} is a form of times, but the slices are names"),
    ],
)
def test_a_place_that_two_slices_share_is_refused(slices: Slices, path: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        slices.check_source(Source(path=path))
    assert message in str(caught.value)


def test_only_tables_are_appended() -> None:
    with pytest.raises(ConfigError, match=r"append takes tables in files, such as raw/.*; for others, set `folder`"):
        Slices(append=True).check_source(Source(kind="images", path="photos"))


def test_each_folder_in_a_folder_is_a_slice(tmp_path: Path) -> None:
    for name in ("us", "date=2026-03-01", "v1.2", "_staging", ".git"):
        (tmp_path / name).mkdir()
    (tmp_path / "README").touch()
    assert subfolders(str(tmp_path), {}) == ["date=2026-03-01", "us", "v1.2"]
    assert subfolders(f"file://{tmp_path}", {}) == ["date=2026-03-01", "us", "v1.2"]
    assert subfolders(f"{tmp_path}/later", {}) == []
    (tmp_path / "new york").mkdir()
    with pytest.raises(SourceError, match=r"/new york: cannot be the name of a slice, which has letters, .*rename it"):
        subfolders(str(tmp_path), {})


def test_folders_in_a_store_are_slices_too() -> None:
    store = fsspec.filesystem("memory")
    for name in ("us/a.csv", "eu/b.csv", "_tmp/c.csv"):
        store.pipe(f"/events/{name}", b"id\n1\n")
    assert subfolders("memory://events", {}) == ["eu", "us"]


@pytest.mark.parametrize("prefix", ["", "file://", "local://"])
def test_a_file_that_patterns_of_two_slices_match_is_shared_however_the_path_is_written(prefix: str) -> None:
    regions = Slices(values=("eu", "eu_west"))
    source = Source(path=f"{prefix}/raw/{{slice}}_*.csv")
    assert regions.shared_with(source, "eu", ["/raw/eu_west_1.csv"], regions.all_keys()) == (
        "/raw/eu_west_1.csv",
        "eu_west",
    )
    assert regions.shared_with(source, "eu", ["/raw/eu_1.csv"], regions.all_keys()) is None
