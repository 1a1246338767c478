"""Schemas as this room hands them on: without metadata and dictionaries, equal for all of a source's files."""

import base64
from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from tfr_assets.errors import SourceError
from tfr_assets.sources.tables.plain_arrays import plain_array, plain_field

_SAME = "All must have the same columns."
LACKING = (
    "All must have the same columns; with `columns: union` under `source`, a file may lack some, which are null there."
)
_ORDINARY = (
    pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_date,
    pa.types.is_time, pa.types.is_timestamp, pa.types.is_duration, pa.types.is_string, pa.types.is_large_string,
    pa.types.is_binary, pa.types.is_large_binary,
)  # fmt: skip


def plain_schema(schema: pa.Schema, where: str, remedy: str = "Give each column a name of its own.") -> pa.Schema:
    """Returns the schema without metadata, dictionaries, views and "not null" marks.

    Args:
        schema: What a file or table says about itself.
        where: What it says so of, for messages.
        remedy: What to do about names that are missing or not unique.

    Raises:
        SourceError: It has no columns, names that are empty or not unique, or types that pyarrow has no arrays for.
    """
    if not schema.names:
        raise SourceError(f"{where}: has no columns.")
    for name, count in Counter(schema.names).items():
        if not name.strip():
            at = schema.names.index(name) + 1
            raise SourceError(f"{where}: column {at} of {len(schema.names)} has no name. {remedy}")
        if count > 1:
            raise SourceError(f"{where}: {count} columns are named {name!r}. {remedy}")
    for field in schema:
        _check_known(field, where)
    return pa.schema([plain_field(field) for field in schema])


def _check_known(field: pa.Field, where: str) -> None:
    if _is_ordinary(field.type):
        return
    try:
        pa.nulls(0, field.type)
    except KeyError as error:  # the number of the type, in a table of classes
        raise SourceError(
            f"{where}: column {field.name!r} is of type {field.type}, which pyarrow cannot read. "
            "Convert it where the file is made, or remove it."
        ) from error
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        pass  # its rows may still be unsupported


def empty_batch(schema: pa.Schema, where: str) -> pa.RecordBatch:
    """Returns an empty batch of a schema, for callers that need the schema.

    Raises:
        SourceError: A column is of a type that Arrow itself hardly supports.
    """
    for field in schema:
        if _is_ordinary(field.type):
            continue
        try:
            pa.array([], field.type)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
            raise SourceError(f"{where}: column {field.name!r} of type {field.type} is not supported.") from error
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def _is_ordinary(kind: pa.DataType) -> bool:
    """Whether Arrow surely supports it. Trying costs time and 40 MB, because `pa.array` imports pandas."""
    if any(is_kind(kind) for is_kind in (pa.types.is_list, pa.types.is_large_list, pa.types.is_struct)):
        return all(_is_ordinary(kind.field(index).type) for index in range(kind.num_fields))
    return any(is_kind(kind) for is_kind in _ORDINARY)


def check_same(schema: pa.Schema, where: str, first: pa.Schema, first_where: str, remedy: str = _SAME) -> None:
    """Checks that two plain schemas have the same columns, in whatever order; one without any value fits all.

    Args:
        schema: To be checked.
        where: What has it, for messages.
        first: What it must be.
        first_where: What has that.
        remedy: What to do about a column that is missing or extra.

    Raises:
        SourceError: A column is missing, extra or of another type.
    """
    _check_names(schema, where, first, first_where, remedy)
    there = _types(first)
    for name, type_ in _types(schema).items():
        if type_ != there[name] and not pa.types.is_null(type_):
            raise _differs(name, type_, where, there[name], first_where)


def common_schema(schemas: Sequence[tuple[pa.Schema, str]], union: bool) -> pa.Schema:
    """Returns the columns of several files' plain schemas; a column without any value in a file fits all types.

    Args:
        schemas: Of each file, with the file's name for messages.
        union: Whether files may lack columns that others have.

    Raises:
        SourceError: A column is of several types, or, unless `union`, not in all files.
    """
    first, first_where = schemas[0]
    types, origin = _types(first), dict.fromkeys(first.names, first_where)
    for schema, where in schemas[1:]:
        if not union:
            _check_names(schema, where, first, first_where)
        for name, type_ in _types(schema).items():
            before = types.get(name)
            if before is None or (pa.types.is_null(before) and type_ != before):
                types[name], origin[name] = type_, where
            elif type_ != before and not pa.types.is_null(type_):
                raise _differs(name, type_, where, before, origin[name])
    return pa.schema(list(types.items()))


def _check_names(schema: pa.Schema, where: str, first: pa.Schema, first_where: str, remedy: str = LACKING) -> None:
    here, there = set(schema.names), set(first.names)
    if name := next((name for name in first.names if name not in here), None):
        raise SourceError(f"{where}: has no column {name!r}, which {first_where} has. {remedy}")
    if name := next((name for name in schema.names if name not in there), None):
        raise SourceError(f"{where}: has a column {name!r}, which {first_where} has not. {remedy}")


def _differs(name: str, type_: pa.DataType, where: str, before: pa.DataType, before_where: str) -> SourceError:
    return SourceError(
        f"{where}: column {name!r} is {type_}, but {before} in {before_where}. "
        "All must have the same types: convert one of them."
    )


def _types(schema: pa.Schema) -> dict[str, pa.DataType]:
    return dict(zip(schema.names, schema.types, strict=True))


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Returns the columns of `schema` in its order, in their plain types.

    Args:
        batch: Rows; columns that they lack are null, as are those that have no type for lack of any value.
        schema: A plain schema.
    """
    if batch.schema.equals(schema, check_metadata=True):
        return batch
    found = dict(zip(batch.schema.names, batch.columns, strict=True))
    arrays = [
        plain_array(found[name], type_) if name in found else pa.nulls(batch.num_rows, type_)
        for name, type_ in zip(schema.names, schema.types, strict=True)
    ]
    if not arrays:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * batch.num_rows, pa.struct([])))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def with_units(type_: pa.DataType, given: pa.DataType) -> pa.DataType:
    """Returns the type that Parquet holds, with those units of time that it had before and that Parquet lacks."""
    if pa.types.is_struct(type_) and pa.types.is_struct(given):
        before = {field.name: field.type for field in given}
        return pa.struct([(f.name, with_units(f.type, before.get(f.name, f.type))) for f in type_])
    if pa.types.is_list(type_) and pa.types.is_list(given):
        return pa.list_(with_units(type_.value_type, given.value_type))
    if pa.types.is_large_list(type_) and pa.types.is_large_list(given):
        return pa.large_list(with_units(type_.value_type, given.value_type))
    if pa.types.is_fixed_size_list(type_) and pa.types.is_fixed_size_list(given):
        return pa.list_(with_units(type_.value_type, given.value_type), type_.list_size)
    in_seconds = type_ == pa.time32("ms") and given == pa.time32("s")
    is_timestamp = pa.types.is_timestamp(type_) and type_.unit == "ms" and given == pa.timestamp("s", type_.tz)
    is_date = pa.types.is_date32(type_) and pa.types.is_date64(given)
    return given if in_seconds or is_timestamp or is_date else type_


def in_milliseconds(type_: pa.DataType) -> pa.DataType:
    """Returns the type of times that are read from text: those that Arrow takes for seconds are milliseconds."""
    if pa.types.is_struct(type_):
        return pa.struct([(field.name, in_milliseconds(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(in_milliseconds(type_.value_type))
    is_seconds = pa.types.is_timestamp(type_) and type_.unit == "s"
    return pa.timestamp("ms", type_.tz) if is_seconds else type_


def schema_to_text(schema: pa.Schema) -> str:
    """Returns the schema as text that JSON can hold (base64 of Arrow's serialization)."""
    return base64.b64encode(schema.serialize().to_pybytes()).decode("ascii")


def schema_from_text(text: str) -> pa.Schema:
    """Returns the schema that `schema_to_text` gave."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


class TypesTooNarrowError(Exception):
    """Text was met that the types inferred from the text before it cannot hold."""


class NoCommonTypeError(Exception):
    """Two types of one column that no type can hold; the caller knows where they were met."""

    def __init__(self, path: str, types: Sequence[pa.DataType]) -> None:
        super().__init__(path, *types)
        self.path, self.types = path, tuple(types)


def widen(a: pa.DataType, b: pa.DataType, path: str = "") -> pa.DataType:
    """Returns the narrowest type that text of both types parses as.

    Args:
        a: What was inferred from some of the input.
        b: What was inferred from another part.
        path: The column, for the exception.

    Raises:
        NoCommonTypeError: There is none.
    """
    if a == b or pa.types.is_null(b):
        return a
    if pa.types.is_null(a):
        return b
    for narrow, wide in ((a, b), (b, a)):
        if pa.types.is_integer(narrow) and pa.types.is_floating(wide):
            return wide
        if pa.types.is_date(narrow) and pa.types.is_timestamp(wide) and wide.tz is None:
            return wide
        if pa.types.is_temporal(narrow) and pa.types.is_string(wide):
            return wide
    if pa.types.is_timestamp(a) and pa.types.is_timestamp(b) and a.tz == b.tz:
        units = ("s", "ms", "us", "ns")
        return pa.timestamp(max(a.unit, b.unit, key=units.index), a.tz)
    if pa.types.is_temporal(a) and pa.types.is_temporal(b):
        return pa.string()
    if pa.types.is_list(a) and pa.types.is_list(b):
        return pa.list_(widen(a.value_type, b.value_type, path + "/[]"))
    if pa.types.is_struct(a) and pa.types.is_struct(b):
        return pa.struct(list(widen_schemas(pa.schema(list(a)), pa.schema(list(b)), path + "/")))
    raise NoCommonTypeError(path, (a, b))


def widen_schemas(a: pa.Schema, b: pa.Schema, prefix: str = "") -> pa.Schema:
    """Returns the union of two schemas, each column as wide as both need it; columns of `a` come first.

    Raises:
        NoCommonTypeError: A column's types have nothing in common.
    """
    types = dict(zip(a.names, a.types, strict=True))
    for field in b:
        types[field.name] = widen(types.get(field.name, pa.null()), field.type, prefix + field.name)
    return pa.schema(list(types.items()))
