import pytest

from tfr_assets.errors import ConfigError
from tfr_assets.sources import Source


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, "exactly one of `path` and `callable`; neither"),
        ({"path": "a.csv", "callable": "m:f"}, "both are set"),
        (
            {"path": "a", "format": "xls"},
            "source.format: 'xls' is not known. Choose one of: parquet, csv, jsonl, arrow",
        ),
        ({"path": "a", "shuffle_seed": -1}, "source.shuffle_seed: expected a whole number from 0 up; found -1"),
        ({"path": "a", "shuffle_seed": True}, "source.shuffle_seed"),
        (
            {"path": "a", "options": {"delimeter": ";"}},
            r"options\.delimeter: not a setting .*'delimiter'",
        ),
        ({"path": "a", "format": "jsonl", "options": {"delimiter": ";"}}, "not an option of format 'jsonl'"),
        ({"path": "a", "format": "parquet", "options": {"encoding": "x"}}, "It has none: remove it"),
        ({"path": "a", "options": {"delimiter": ";;"}}, "source.options.delimiter: expected one ASCII character"),
        ({"path": "a", "options": {"delimiter": None}}, "source.options.delimiter"),
        ({"path": "a", "options": {"skip_rows": "1"}}, "source.options.skip_rows"),
        ({"path": "a", "options": {"encoding": "klingon"}}, "'klingon' is not an encoding"),
        ({"path": "a", "options": {"null_values": "NA"}}, "source.options.null_values: expected a list of texts"),
        (
            {"path": "a", "options": {"column_types": {"x": "integer"}}},
            r"types\.x: 'integer' is not a type.*int32.*timestamp",
        ),
        ({"path": "a", "options": {"column_types": {"x": ["int32"]}}}, "is not a type"),
        ({"path": "a", "options": {"column_types": ["int32"]}}, "expected column names with types"),
        ({"path": "a", "storage_options": "anon"}, "source.storage_options: expected names with values"),
        ({"callable": "no_colon"}, "`package.module:function`"),
        ({"callable": "m:f", "format": "csv"}, "source.format: has no meaning for a callable"),
    ],
)
def test_a_field_that_cannot_work_is_named(fields: dict, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Source(**fields)


def test_options_that_work() -> None:
    options = {"delimiter": ";", "quote_char": None, "skip_rows": 2, "column_types": {"a": "timestamp[us]"}}
    assert Source(path="a.csv", options=options).options == options
