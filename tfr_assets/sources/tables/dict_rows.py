"""Dicts, one per row → Arrow tables of one schema."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from tfr_assets.errors import SourceError
from tfr_assets.sources.tables.python_values import (
    NOT_CONVERTED,
    ArrayUnreadableError,
    Form,
    ShapeVariesError,
    as_arrow,
    as_numpy,
)

_INFER_ROWS = 10_000
_INFER_BYTES = 16 << 20
_CHUNK_ROWS = 1_024


class ShapesVaryError(SourceError):
    """Arrays of dicts vary in shape, but those of the rows that set the schema did not.

    Attributes:
        column: The column.
        form: How it can hold all of them.
    """

    def __init__(self, message: str, column: str, form: Form) -> None:
        super().__init__(message)
        self.column, self.form = column, form


class DictRows:
    """Gathers dicts to tables of one schema, which the first 10,000 rows or 16 MB set."""

    def __init__(self, name: str, forms: Mapping[str, Form]) -> None:
        """Begins without rows.

        Args:
            name: What the rows are from, for messages.
            forms: By column, how to hold arrays, where it is known that their shapes vary.
        """
        self._name = name
        self._forms = forms
        self._schema: pa.Schema | None = None
        self._rows: list[Mapping[str, Any]] = []
        self._size = 0
        self._start = 0

    def add(self, row: Mapping[str, Any]) -> Iterator[pa.Table]:
        """Takes a row; yields those gathered, if they are enough.

        Raises:
            SourceError: They are not a table, or not of the schema.
        """
        row = {key: self._read(key, value) for key, value in row.items()}
        self._rows.append(row)
        self._size += sum(map(_size, row.values()))
        most = _INFER_ROWS if self._schema is None else _CHUNK_ROWS
        if len(self._rows) >= most or self._size >= _INFER_BYTES:
            yield from self.flush()

    def flush(self) -> Iterator[pa.Table]:
        """Yields the rows gathered, if there are any; raises as `add`."""
        rows, start = self._rows, self._start
        self._rows, self._size, self._start = [], 0, start + len(rows)
        if not rows:
            return
        if self._schema is None:
            names = list(dict.fromkeys(key for row in rows for key in row))
            for key in names:
                if not isinstance(key, str):
                    raise SourceError(
                        f"{self._name}: key {key!r} is {describe_value(key)}. Keys of a row must be texts."
                    )
            columns = {key: self._column(key, rows, start, None) for key in names}
            table = pa.table(columns)
            self._schema = table.schema
            yield table
            return
        known = set(self._schema.names)
        for at, row in enumerate(rows):
            if new := [key for key in row if key not in known]:
                raise SourceError(
                    f"{self._name}: row {start + at} has a key {new[0]!r}, which no row before {start} had. "
                    "Give it to the first row too, None being allowed."
                )
        arrays = [self._column(field.name, rows, start, field.type) for field in self._schema]
        yield pa.Table.from_arrays(arrays, schema=self._schema)

    def _read(self, key: str, value: Any) -> Any:
        try:
            return as_numpy(value)
        except ArrayUnreadableError as error:
            where = f"{self._name}: row {self._start + len(self._rows)}, column {key!r}"
            raise SourceError(f"{where}: {describe_value(value)} {error}") from error

    def _column(self, key: str, rows: Sequence[Mapping[str, Any]], start: int, type_: pa.DataType | None) -> pa.Array:
        values = [row.get(key) for row in rows]
        try:
            return as_arrow(values, type_, self._forms.get(key))
        except NOT_CONVERTED as error:
            low, high = 0, len(values)  # the shortest beginning that fails ends with the culprit
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _converts(values[:middle], type_) else (low, middle)
            value = values[high - 1]
            where = f"{self._name}: row {start + high - 1}, column {key!r}"
            if isinstance(error, ShapeVariesError):
                raise ShapesVaryError(
                    f"{where}: {error}. Bring all to one shape, or yield lists (`.tolist()`) or Arrow tables.",
                    key, error.form,
                ) from error  # fmt: skip
            known = f", but the rows before {start} made the column {type_}" if type_ is not None else ""
            remedy = _remedy(error)
            if type_ is not None and pa.types.is_null(type_):
                known = f", but no row before {start} had a value that shows the type"
                remedy = "Yield Arrow tables, which have a schema."
            raise SourceError(
                f"{where}: {repr(value).split(chr(10))[0]:.60} is {describe_value(value)}{known}. {remedy} ({error})"
            ) from error


def _remedy(error: Exception) -> str:
    if isinstance(error, OverflowError):
        return "Whole numbers of 64 bits are the largest: yield larger ones as texts or floats."
    if "did not recognize Python value type" in str(error):
        return "Yield numbers, texts, bytes, dates, arrays, or lists and dicts of these."
    return "All values of a column must be of one type."


def _converts(values: list[Any], type_: pa.DataType | None) -> bool:
    try:
        as_arrow(values, type_)
    except NOT_CONVERTED:
        return False
    return True


def _size(value: Any) -> int:
    """Returns about how many bytes a value takes; of a list, as if all elements were like the first."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, list | tuple):
        return len(value) * _size(value[0]) if value else 8
    return int(getattr(value, "nbytes", 8))


def describe_value(value: Any) -> str:
    """Returns what messages call a value."""
    return "None" if value is None else f"a value of type {type(value).__name__}"
