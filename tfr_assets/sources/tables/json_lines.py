"""JSON lines → Arrow: one object per line. Column types hold for the whole input, as in `csv_text`."""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pjson

from tfr_assets.errors import SourceError
from tfr_assets.sources.model.table_options import column_types
from tfr_assets.sources.tables.arrow_files import guess
from tfr_assets.sources.tables.schemas import (
    NoCommonTypeError,
    TypesTooNarrowError,
    conform,
    empty_batch,
    in_milliseconds,
    plain_schema,
    widen_schemas,
)
from tfr_assets.storage.raw_files import FileBatches, RawFile, reading

_BLOCK = 8 << 20
_LONGEST_LINE = 256 << 20
_DEEPEST = 200  # levels; Arrow's parser, and others after it, call themselves for each level
_DEEP_ENDS = tuple(ends * (_DEEPEST // len(ends)) for ends in (b"]", b"}", b"]}", b"[", b"[{"))
_OPENING = list(b"[{")
_NO_OBJECT = 'must be an object, such as {"key": 1}'
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
_NULL = re.compile(rb"(?:^|\})[ \t\r]*null", re.MULTILINE)
_CHANGED = re.compile(r"Column\(/(.*?)\) changed from (\w+) to (\w+)")


@dataclass(frozen=True)
class JsonReader:
    """Reads the JSON lines files of a source.

    Attributes:
        options: The source's options.
    """

    options: Mapping[str, Any]

    def infer(self, files: Sequence[RawFile]) -> dict[str, pa.DataType]:
        """Returns the type of each column that all lines of all files can be parsed as; missing keys are nulls."""
        schema = pa.schema([])
        given = pa.schema(list(column_types(self.options).items()))
        for file in files:
            for where, text in file.texts():
                for line, block in _blocks(where, text):
                    found = _parse(where, line, block, given, given.names).schema
                    try:
                        schema = widen_schemas(schema, found)
                    except NoCommonTypeError as conflict:
                        before, here = (_json_kind(type_) for type_ in conflict.types)
                        raise SourceError(
                            f"{where}: key {conflict.path!r} holds {here} in the lines from {line} on, "
                            f"but {before} before. All lines must have one type: convert the data."
                        ) from conflict
        return {field.name: self._type_of(field) for field in schema}

    def _type_of(self, field: pa.Field) -> pa.DataType:
        """Returns the type of a column: times are in milliseconds, unless the user names another type."""
        return column_types(self.options).get(field.name) or in_milliseconds(field.type)

    def batches(self, files: Sequence[RawFile], types: Mapping[str, pa.DataType] | None) -> FileBatches:
        """Yields the rows of all files in order, in batches of one schema, each with its file's number.

        Args:
            files: Files of one object per line.
            types: Of each column. None: as the first block of the first file suggests.

        Raises:
            TypesTooNarrowError: With `types` None: lines that they cannot hold; `infer` finds the right ones.
            SourceError: A file is not JSON lines.
        """
        given = column_types(self.options)
        schema = pa.schema(list((types or given).items()))
        settled = types is not None
        for index, file in enumerate(files):
            for where, text in file.texts():
                for line, block in _blocks(where, text):
                    try:
                        table = _parse(where, line, block, schema, given)
                    except SourceError as error:
                        if types is None and settled:  # perhaps only of another type than the first block
                            raise TypesTooNarrowError(str(error)) from error
                        raise
                    if not settled:
                        found = plain_schema(table.schema, where)
                        schema, settled = pa.schema([(field.name, self._type_of(field)) for field in found]), True
                    elif not table.schema.equals(schema):
                        raise TypesTooNarrowError(where)
                    for batch in table.to_batches():
                        yield index, conform(batch, schema)
        if not settled:
            raise SourceError(f"{files[0].path}: holds no line. Get it again.")
        yield 0, empty_batch(schema, files[0].path)


def _blocks(where: str, text: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yields whole lines, about 8 MB at a time, with the number of the first of them."""
    line = 1
    with reading(where):
        while block := text.read(_BLOCK):
            if not block.endswith(b"\n"):
                block += text.readline(_LONGEST_LINE)
                if len(block) >= _LONGEST_LINE:
                    raise SourceError(f"{where}: line {line} or a later one is longer than {_LONGEST_LINE >> 20} MB.")
            start = block[:512].lstrip(b"\xef\xbb\xbf \t\r\n") if line == 1 else b"{"
            if start.startswith(b"["):
                raise SourceError(
                    f"{where}: is one JSON array, not JSON lines (one object per line). "
                    "Convert it, such as by `jq -c '.[]'`, or read it by a `callable`."
                )
            if hint := guess(block[:512]) if line == 1 else "":
                raise SourceError(f"{where}: is not JSON lines: it begins with {block[:16]!r}.{hint}")
            if line == 1:
                block = block.removeprefix(b"\xef\xbb\xbf")
            if block.strip():
                yield line, block
            line += block.count(b"\n")


def _parse(where: str, line: int, block: bytes, schema: pa.Schema, given: Collection[str]) -> pa.Table:
    """Parses lines; keys that `schema` does not know are inferred, and those of `given` are as the user said."""
    if block.lstrip().startswith(b"null"):  # ends Arrow's parser, and the process with it
        _refuse_nulls(where, line, block)
    if any(ends in block for ends in _DEEP_ENDS):
        _refuse_deep(where, line, block)
    try:
        block.decode()
        table = pjson.read_json(
            pa.BufferReader(block),
            pjson.ReadOptions(block_size=len(block) + 1),  # one block: Arrow then counts rows from its beginning
            pjson.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer"),
        )
    except UnicodeDecodeError as error:
        at = line + block.count(b"\n", 0, error.start)
        raise SourceError(f"{where}: line {at}: bytes that are not UTF-8 text, which JSON must be.") from error
    except pa.ArrowException as error:
        place, problem = _locate(line, block, str(error), given)
        raise SourceError(f"{where}: {place}: {problem}") from error
    if _has_empty_row(table) and _NULL.search(block):
        _refuse_nulls(where, line, block)
    return table.combine_chunks()


def _has_empty_row(table: pa.Table) -> bool:
    empty = pa.scalar(True)
    for column in table.columns:
        if not column.null_count:
            return False
        empty = pc.and_(empty, column.is_null())
        if not pc.any(empty).as_py():
            return False
    return bool(table.num_rows)


def _refuse_nulls(where: str, first: int, block: bytes) -> None:
    """Raises SourceError for a `null` in place of an object, of which Arrow makes a row without values."""
    for number, line in enumerate(block.split(b"\n"), first):
        if _NULL.search(_STRING.sub(b"0", line)):
            raise SourceError(f"{where}: line {number}: {_NO_OBJECT}, but is 'null'. Remove it, or write {{}}.")


def _refuse_deep(where: str, first: int, block: bytes) -> None:
    """Raises SourceError for a line that is nested so deep that a parser may end the process."""
    for number, line in enumerate(block.split(b"\n"), first):
        brackets = re.sub(rb"[^][{}]+", b"", _STRING.sub(b"", line))
        depth = np.cumsum(np.where(np.isin(np.frombuffer(brackets, np.uint8), _OPENING), 1, -1))
        if len(depth) and depth.max() > _DEEPEST:
            raise SourceError(f"{where}: line {number}: is nested more than {_DEEPEST} deep. Make it flatter.")


def _locate(first: int, block: bytes, message: str, given: Collection[str]) -> tuple[str, str]:
    """Returns where in a block an error is, and what it is."""
    for number, line in enumerate(block.split(b"\n"), first):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            return f"line {number}", f"is not JSON: {error}. It begins with {line[:40].decode(errors='replace')!r}."
        if not isinstance(value, dict):
            return f"line {number}", f"{_NO_OBJECT}, but is {line[:40].decode(errors='replace')!r}."
    problem = re.sub(r"^JSON parse error: ", "", message)
    remedy = "Correct the data."
    if (match := _CHANGED.search(problem)) and (key := match[1]) in given:
        problem = _CHANGED.sub(r"key '\1' is a \3 here, but a \2 by `column_types`", problem)
        remedy = (
            f"JSON distinguishes texts from numbers, which `column_types` does not change: correct the data, take "
            f"{key!r} out of `column_types`, or read the file by a `callable`."
        )
    problem = _CHANGED.sub(r"key '\1' is \3 here, but \2 in a line before", problem)
    rows = [number for number, line in enumerate(block.split(b"\n"), first) if line.strip()]
    if (match := re.search(r" in row (\d+)$", problem)) and int(match[1]) < len(rows):
        where = f"line {rows[int(match[1])]}"
        return where, f"{problem[: match.start()]}. {remedy}"
    return f"lines {rows[0]} to {rows[-1]}", f"{problem}. {remedy}"


def _json_kind(type_: pa.DataType) -> str:
    if pa.types.is_struct(type_):
        return "an object"
    if pa.types.is_list(type_):
        return "an array"
    if pa.types.is_integer(type_) or pa.types.is_floating(type_):
        return "a number"
    return "true or false" if pa.types.is_boolean(type_) else "a text"
