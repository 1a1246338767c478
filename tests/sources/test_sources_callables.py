import datetime
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tfr_assets.errors import ConfigError, SourceError
from tfr_assets.sources import Inventory, Source, preview, remove_old_landings, take_inventory

Module = Callable[[str], str]


@pytest.fixture
def give(module: Module, landing: Path) -> Callable[..., Inventory]:
    """Takes the inventory of a function with this body."""

    def give(*body: str, name: str = "rows") -> Inventory:
        lines = ["import numpy as np, pandas as pd, pyarrow as pa", "def rows():", *(f"    {line}" for line in body)]
        return take_inventory(Source(callable=f"{module(chr(10).join(lines))}:{name}"), landing)

    return give


@pytest.mark.parametrize(
    "body",
    [
        "return pa.table({'a': [1, 2], 'b': ['x', None]})",
        "return pa.record_batch({'a': [1, 2], 'b': ['x', None]})",
        "return pa.table({'a': [1, 2], 'b': ['x', None]}).to_reader()",
        "return [{'a': 1, 'b': 'x'}, {'a': 2}]",
        "yield {'a': 1, 'b': 'x'}; yield {'a': 2, 'b': None}",
        "yield [{'a': 1, 'b': 'x'}]; yield {'a': 2}; yield []",
        "yield pa.table({'a': [1], 'b': ['x']}); yield pa.table({'b': pa.nulls(1), 'a': [2]})",
        "yield {'a': 1, 'b': 'x'}; yield pa.record_batch({'a': [2], 'b': [None]})",
        "t = pa.table({'a': [1, 2], 'b': ['x', None]}); "
        "return type('Other', (), {'__arrow_c_stream__': t.__arrow_c_stream__})()",
    ],
)
def test_everything_a_function_may_give(give: Callable[..., Inventory], body: str) -> None:
    inventory = give(body)
    assert preview(inventory).to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
    assert inventory.schema == pa.schema({"a": pa.int64(), "b": pa.string()})
    assert inventory.files == ()
    assert inventory.bytes == inventory.landed[0].bytes


def test_pandas(give: Callable[..., Inventory]) -> None:
    inventory = give(
        "yield pd.DataFrame({'f': [1.5, np.nan], 's': ['x', None], 'c': pd.Categorical(['u', 'v'])}, index=[7, 8])",
        "yield pd.DataFrame({'s': ['z'], 'f': [2.5], 'c': pd.Categorical(['w'])})",
    )
    assert preview(inventory).to_pylist() == [
        {"f": 1.5, "s": "x", "c": "u"},
        {"f": None, "s": None, "c": "v"},
        {"f": 2.5, "s": "z", "c": "w"},
    ]
    assert inventory.null_counts == {"f": 1, "s": 1, "c": 0}


def test_values_of_dicts(give: Callable[..., Inventory]) -> None:
    inventory = give(
        "import datetime",
        "yield {'v': np.zeros(2, 'float32'), 'k': np.int16(3), 'b': b'x', 'l': [1], 's': {'q': True}, "
        "'f': float('nan'), 'd': datetime.date(2020, 1, 1)}",
    )
    row = preview(inventory).to_pylist()[0]
    assert row.pop("f") != row.get("f")  # NaN of a dict is a value
    assert row == {"v": [0, 0], "k": 3, "b": b"x", "l": [1], "s": {"q": True}, "d": datetime.date(2020, 1, 1)}
    assert str(inventory.schema.field("v").type.value_type) == "float"
    assert inventory.null_counts == {"v": 0, "k": 0, "b": 0, "l": None, "s/q": 0, "f": 0, "d": 0}


def test_an_attribute_that_is_a_table(module: Module, landing: Path) -> None:
    name = module("import pandas as pd\nclass Data:\n    table = pd.DataFrame({'a': [1]})")
    assert preview(take_inventory(Source(callable=f"{name}:Data.table"), landing)).to_pylist() == [{"a": 1}]


def test_no_rows_but_a_schema(give: Callable[..., Inventory]) -> None:
    inventory = give("yield pa.table({'a': pa.array([], pa.int8())})")
    assert inventory.rows == 0
    assert inventory.schema == pa.schema({"a": pa.int8()})
    assert preview(inventory).num_rows == 0


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("raise KeyError('boom')", "raised KeyError: 'boom'"),
        ("yield {'a': 1}; raise ValueError('later')", "raised ValueError: later"),
        ("return None", "gave None. It must return or yield Arrow tables"),
        ("return 'text'", "gave a value of type str"),
        ("return {'a': [1, 2]}", "gave one dict. Yield dicts.*return pa.table"),
        ("return [1]", "item 0 is a value of type int"),
        ("return []", "gave no rows"),
        ("yield {}", "has no columns"),
        ("yield {1: 2}", "key 1 is a value of type int"),
        (
            "yield pa.table({'a': [1]}); yield pa.table({'a': [1.5]})",
            "batch 1: column 'a' is double, but int64 in .*batch 0",
        ),
        ("yield pa.table({'a': [1]}); yield pa.table({'b': [1]})", "batch 1: has no column 'a'"),
        (
            "yield from ({'a': 1 if n != 13 else 'x'} for n in range(20))",
            "row 13, column 'a': 'x' is a value of type str",
        ),
        (
            "yield from ({'a': 1 if n != 11003 else 'x'} for n in range(12000))",
            "row 11003, column 'a': 'x' .*the rows before 10000 made the column int64",
        ),
        (
            "yield from ({'a': 1} if n != 11003 else {'zz': 1} for n in range(12000))",
            "row 11003 has a key 'zz', which no row before 10000 had",
        ),
        (
            "yield from ({'a': 'x' if n == 11003 else None} for n in range(12000))",
            "row 11003.*no row before 10000 had a value",
        ),
        ("yield {'a': {'b': 1}}; yield {'a': np.zeros((2, 2))}", "row 1, column 'a': .*a value of type ndarray"),
        ("yield {'a': np.zeros(2)}; yield {'a': np.array(['x'])}", "row 1, column 'a': .*arrays of <U1 and float64"),
        (
            "yield from ({'a': n if n != 11003 else 1.5} for n in range(12000))",
            "row 11003, column 'a': 1.5 is .*rows before 10000 made the column int64.*a fraction among whole numbers",
        ),
        (
            "import datetime as d; yield from ({'a': d.date(2020, 1, 1) if n != 11003 else d.datetime(2020, 1, 1, 5)} "
            "for n in range(12000))",
            "row 11003, column 'a': datetime.*a time among days",
        ),
        (
            "import decimal as d; yield from ({'a': n if n != 11003 else d.Decimal('1.5')} for n in range(12000))",
            "row 11003, column 'a': .*a fraction among whole numbers",
        ),
        (
            "yield from ({'a': [[n]] if n != 11003 else [[], [1.5]]} for n in range(12000))",
            r"row 11003, column 'a': \[\[\], \[1.5\]\] is .*a fraction among whole numbers",
        ),
        (
            "yield from ({'a': {'b': n} if n != 11003 else {'b': 1, 'c': 2}} for n in range(12000))",
            "row 11003, column 'a': .*a key 'c' that those before lack",
        ),
        ("yield {'a': 2**70}", "row 0, column 'a'.*Whole numbers of 64 bits are the largest.*too large"),
        ("yield {'a': 1j}", "row 0, column 'a': 1j is .*Yield numbers, texts, bytes, dates, arrays"),
        ("return pa.table([[1], [2]], names=['a', 'a'])", "2 columns are named 'a'"),
        ("return pd.DataFrame({'a': [1, 'x']})", "a DataFrame that cannot become Arrow:.*column a"),
        (
            "return pa.table({'u': pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])})",
            "column 'u' of type sparse_union.* is not supported",
        ),
    ],
)
def test_what_a_function_must_not_give(give: Callable[..., Inventory], body: str, problem: str) -> None:
    with pytest.raises(SourceError, match=problem) as error:
        give(body)
    assert str(error.value).startswith("user_")


def test_the_cause_is_kept(give: Callable[..., Inventory]) -> None:
    with pytest.raises(SourceError) as error:
        give("raise KeyError('boom')")
    assert isinstance(error.value.__cause__, KeyError)


def test_functions_that_cannot_be_called(module: Module, landing: Path) -> None:
    name = module("def rows(path): ...")
    for given, kind, problem in [
        (f"{name}:rows", SourceError, "is called without arguments, but needs path"),
        (f"{name}:row", ConfigError, f"'{name}' has no attribute 'row'. It has: rows"),
        ("nowhere_at_all:rows", ConfigError, "there is no module 'nowhere_at_all'"),
        (f"{module('import nowhere_at_all')}:rows", SourceError, "needs 'nowhere_at_all', which is not installed"),
        (f"{module('def (')}:rows", SourceError, "raised SyntaxError"),
    ]:
        with pytest.raises(kind, match=problem):
            take_inventory(Source(callable=given), landing)


def test_a_callable_is_called_again_and_its_result_compared(tmp_path: Path, module: Module, landing: Path) -> None:
    state = tmp_path / "state"
    state.write_text("1")
    name = module(f"""
        from pathlib import Path
        def rows():
            with Path({str(state)!r}).open("a") as calls: calls.write("#")
            yield {{"a": int(Path({str(state)!r}).read_text().rstrip("#"))}}
    """)
    source = Source(callable=f"{name}:rows")
    first, second = take_inventory(source, landing), take_inventory(source, landing)
    assert state.read_text() == "1##"
    assert second == first  # the same landed file, untouched
    state.write_text("2")
    third = take_inventory(source, landing)
    assert third.fingerprint != first.fingerprint
    assert preview(first).to_pylist() == [{"a": 1}]  # a running reader of the old rows is not disturbed
    remove_old_landings(third, landing)
    assert [path.name for path in landing.iterdir()] == [Path(third.landed[0].path).parent.name]


def test_the_fingerprint_is_of_rows_not_of_batches(give: Callable[..., Inventory]) -> None:
    whole = give("return pa.table({'a': list(range(99)), 's': [str(n) for n in range(99)]})")
    parts = give("yield from pa.table({'a': list(range(99)), 's': [str(n) for n in range(99)]}).to_batches(7)")
    dicts = give("yield from ({'a': n, 's': str(n)} for n in range(99))")
    other = give("yield from ({'a': n, 's': str(n)} for n in range(100))")
    assert whole.fingerprint == parts.fingerprint == dicts.fingerprint != other.fingerprint
