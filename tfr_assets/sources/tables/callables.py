"""A user's own Python function as a source: whatever it gives becomes Arrow record batches of one schema."""

import importlib
import inspect
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from tfr_assets.errors import ConfigError, SourceError, TfrError
from tfr_assets.sources.tables.data_frames import table_of
from tfr_assets.sources.tables.dict_rows import DictRows, ShapesVaryError, describe_value
from tfr_assets.sources.tables.python_values import Form, as_numpy
from tfr_assets.sources.tables.schemas import check_same, conform, empty_batch, plain_schema

_ACCEPTED = "Arrow tables, record batches or readers, pandas DataFrames, or dicts (one per row)"


def callable_batches(name: str, forms: Mapping[str, Form] | None = None) -> Iterator[pa.RecordBatch]:
    """Calls `package.module:attribute` and yields its rows, in batches of one schema.

    Dicts may lack keys (null). Their schema is inferred from the first 10,000 rows or 16 MB, and holds from then on;
    `sources.tables.python_values` says what happens to which value. NaN in a pandas column of floats becomes null; in
    dicts and Arrow data it stays what it is.

    Args:
        name: The attribute; a function is called without arguments, or, as `package.module:function(text)`, with that
            text.
        forms: By column of dicts, how to hold arrays whose shapes turn out to vary only after the first rows.

    Raises:
        ConfigError: There is no such module or attribute.
        SourceError: The function raised, or gave something that is not a table; ShapesVaryError, if calling it again
            with that error's `column` and `form` among `forms` would help.
    """
    path, _, argument = name.removesuffix(")").partition("(")
    found = _find(path)
    yield from batches_of(name, _again(found, tables_of(name, _call(name, found, argument), forms)))


def batches_of(name: str, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    """Yields the rows of tables, which must have the columns of the first; before them a batch without rows.

    Args:
        name: What the tables are from, for messages.
        tables: As `tables_of` yields them.

    Raises:
        SourceError: The columns change, or there is no table.
    """
    first: pa.Schema | None = None
    checked: pa.Schema | None = None
    for index, table in enumerate(tables):
        where = f"{name}: batch {index}"
        if checked is None or not table.schema.equals(checked):
            schema, checked = plain_schema(table.schema, where), table.schema
            if first is None:
                first = schema
                yield empty_batch(schema, where)
            check_same(schema, where, first, f"{name}: batch 0")
        assert first is not None
        for batch in table.to_batches():
            yield conform(batch, first)
    if first is None:
        raise SourceError.of_no_data(
            f"{name}: gave no rows, and nothing that shows its columns. Give at least an empty table."
        )


def _again(found: Any, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yields the tables; only a function can be asked for all rows again."""
    try:
        yield from tables
    except ShapesVaryError as error:
        if callable(found):
            raise
        raise SourceError(str(error)) from error


def _find(name: str) -> Any:
    module_name, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise SourceError(
                f"{name}: module {module_name!r} needs {error.name!r}, which is not installed."
            ) from error
        raise ConfigError(
            f"source.callable: {name!r}: there is no module {error.name!r}. "
            "Check its spelling, and that it is installed or its folder is on PYTHONPATH."
        ) from error
    except Exception as error:
        raise SourceError(f"{name}: importing {module_name!r} raised {type(error).__name__}: {error}") from error
    for attribute in path.split("."):
        if not hasattr(found, attribute):
            there = [key for key, value in vars(found).items() if callable(value) and not key.startswith("_")]
            has = f" It has: {', '.join(there[:10])}." if isinstance(found, ModuleType) and there else ""
            raise ConfigError(f"source.callable: {name!r}: {module_name!r} has no attribute {attribute!r}.{has}")
        found = getattr(found, attribute)
    return found


def _call(name: str, found: Any, argument: str) -> Any:
    if argument:
        if not callable(found):
            raise SourceError(f"{name}: is not a function, so that nothing can be given to it. Leave out the brackets.")
        return _guarded(name, lambda: found(argument))
    if not callable(found):
        return found
    required = _required_arguments(found)
    if required:
        raise SourceError(f"{name}: is called without arguments, but needs {', '.join(required)}. Give them defaults.")
    return _guarded(name, found)


def _required_arguments(function: Any) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some built-in functions have no signature
        return []
    return [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def _guarded(name: str, step: Any) -> Any:
    """Runs a step of the user's code; what it raises becomes a SourceError with the original as its cause."""
    try:
        return step()
    except (TfrError, MemoryError):
        raise
    except Exception as error:
        raise SourceError(f"{name}: raised {type(error).__name__}: {error}") from error


def items_of(name: str, values: Iterable[Any]) -> Iterator[Any]:
    """Yields the items of an iterable of the user's; what it raises becomes a SourceError."""
    iterator = _guarded(name, lambda: iter(values))
    end = object()
    while (item := _guarded(name, lambda: next(iterator, end))) is not end:
        yield item


def tables_of(name: str, value: Any, forms: Mapping[str, Form] | None = None) -> Iterator[pa.Table]:
    """Yields what a program gave as tables.

    Args:
        name: What it is from, for messages.
        value: A table, a DataFrame, a reader, or an iterable of these or of dicts.
        forms: As in `callable_batches`.

    Raises:
        SourceError: It is nothing of that kind; it raised; or its dicts are not a table.
    """
    if (tables := as_tables(name, value)) is not None:
        yield from tables
        return
    if isinstance(value, Mapping):
        raise SourceError(
            f"{name}: gave one dict. Yield dicts, one per row; a dict of columns: return pa.table(…) of it."
        )
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise SourceError(f"{name}: gave {describe_value(value)}. It must return or yield {_ACCEPTED}.")
    rows = DictRows(name, forms or {})
    for index, item in enumerate(items_of(name, value)):
        if isinstance(item, Mapping):
            yield from rows.add(item)
        elif isinstance(item, list | tuple) and all(isinstance(row, Mapping) for row in item):
            yield from chain.from_iterable(rows.add(row) for row in item)
        elif (tables := as_tables(name, item)) is not None:
            yield from rows.flush()
            yield from tables
        else:
            raise SourceError(f"{name}: item {index} is {describe_value(item)}. {_row_remedy(item)}")
    yield from rows.flush()


def _row_remedy(item: Any) -> str:
    """Returns what to give in place of an item that is not a row."""
    if not isinstance(item, np.generic) and as_numpy(item) is item and not isinstance(item, np.ndarray):
        return f"It must return or yield {_ACCEPTED}."
    return (
        "A row is a dict, whose keys name the columns: give {'x': array} in place of an array. Of a tf.data.Dataset of "
        "dicts, or of records that are serialized already, give `dataset.as_numpy_iterator()`."
    )


def as_tables(name: str, value: Any) -> Iterator[pa.Table] | None:
    """Returns the tables of an object of any library that holds columns, or None for anything else.

    Args:
        name: What it is from, for messages.
        value: Anything.

    Raises:
        SourceError: Its library refuses to hand it over; iterating raises it, too.
    """
    if isinstance(value, pa.Table):
        return iter([value])
    if isinstance(value, pa.RecordBatch):
        return iter([pa.Table.from_batches([value])])
    library = type(value).__module__.split(".")[0]
    if library == "pandas":
        import pandas as pd

        return iter([table_of(value, name)]) if isinstance(value, pd.DataFrame) else None
    if library == "polars" and hasattr(value, "collect"):  # a LazyFrame
        value = _guarded(name, value.collect)
    if library == "pyarrow" and hasattr(value, "scanner"):  # a Dataset
        value = _guarded(name, value.scanner)
    if library == "pyarrow" and hasattr(value, "to_reader"):  # a Scanner
        value = _guarded(name, value.to_reader)
    if isinstance(value, pa.RecordBatchReader):
        return _read(name, value)
    if isinstance(value, pa.Array):
        return None
    if hasattr(value, "__arrow_c_stream__"):  # polars, DuckDB and others
        return _read(name, _guarded(name, lambda: pa.RecordBatchReader.from_stream(value)))
    if hasattr(value, "__arrow_c_array__"):  # one batch, such as arro3's and nanoarrow's
        return iter([pa.Table.from_batches([_guarded(name, lambda: pa.record_batch(value))])])
    return None


def _read(name: str, reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    yield reader.schema.empty_table()
    yield from (pa.Table.from_batches([batch]) for batch in items_of(name, reader))
