"""One feature of a batch → its line of the encoder's table.

column   → what the feature holds of it: its values, flat values, lengths, a shape, serialized tensors
→ a physical type
→ a line; a feature list's steps are bound as rows are elsewhere
"""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from tfr_assets.errors import SchemaError
from tfr_assets.records.arrow.columns import cast_array, column_of, physical, without_views
from tfr_assets.records.arrow.nested import null_inside, ragged_part, take_apart
from tfr_assets.records.arrow.tensors import holds_tensors, tensors_of
from tfr_assets.records.examples.array_pointers import Key, first_true, flat_values, line_of
from tfr_assets.records.examples.tensor_proto import dtype_number, stored_type
from tfr_assets.records.kernels import column_table as t
from tfr_assets.records.kernels.jit import address_of
from tfr_assets.records.schema.arrow_types import value_type, with_value_type
from tfr_assets.records.schema.features import SERIALIZED, SHAPE, Feature

_INT64_MAX = 2**63 - 1


class Column:
    """One feature's line of the encoder's table, and the memory it points into.

    Attributes:
        feature: What the column becomes.
    """

    def __init__(self, feature: Feature, cast: pa.DataType | None) -> None:
        """Prepares the line.

        Args:
            feature: What the column becomes.
            cast: The type of values that the user asked for, or None.
        """
        self.feature = feature
        self._cast = None if feature.counts else cast
        self._key = Key(feature)
        self._held: tuple[object, ...] = ()
        self._ready: pa.DataType | None = None  # whose arrays need neither conversion nor check

    def bind(self, batch: pa.RecordBatch, first_row: int) -> list[int]:
        """Returns the line for a batch, and keeps its memory alive until the next call.

        Args:
            batch: Holds the feature's column.
            first_row: Row of the dataset that the batch starts with, for messages.

        Raises:
            SchemaError: A value that a record cannot hold, named with column and row.
        """
        array = column_of(batch, self.feature.column)
        if self.feature.sequence:
            return self._bind_steps(array, first_row)
        if self._ready is None or array.type != self._ready:
            part = self._part(array, first_row)
            self._check(part, first_row)
            is_checked = self.feature.names is not None or pa.types.is_uint64(value_type(part.type))
            self._ready = array.type if part is array and not is_checked else None
            array = part
        if array.null_count:
            self._check_nulls(array.is_null(), first_row)
        line = line_of(array, self.feature.shape, self.feature.column, first_row)
        self._key.bind(line)
        self._held = (array,)
        return line

    def _bind_steps(self, array: pa.Array, first_row: int) -> list[int]:
        nested = take_apart(array, 1, self.feature.column, first_row)
        steps = physical(nested.values, self._cast, self.feature.column)
        if steps.null_count:
            raise null_inside(self.feature.column, first_row)
        self._check(steps, first_row)
        line = line_of(steps, self.feature.shape[1:], self.feature.column, first_row)
        line[t.STEPS] = address_of(nested.starts[0])
        valid = None
        if nested.null is not None:
            self._check_nulls(nested.null, first_row)
            valid = pc.invert(nested.null)
            line[t.VALIDITY], line[t.VALIDITY_BIT] = valid.buffers()[1].address, valid.offset
        self._key.bind(line)
        self._held = (nested, steps, valid)
        return line

    def _part(self, array: pa.Array, first_row: int) -> pa.Array:
        """Returns what the feature holds of its column, in a physical type."""
        feature = self.feature
        if feature.part == SERIALIZED:
            return self._serialize(array, first_row)
        if feature.part == SHAPE:
            return tensors_of(array, feature, first_row).shape_lists()
        if feature.part is not None:
            array = ragged_part(array, feature, first_row)
        elif holds_tensors(array, feature):
            array = tensors_of(array, feature, first_row).values
        return physical(array, self._cast, feature.column)

    def _serialize(self, array: pa.Array, first_row: int) -> pa.Array:
        from tfr_assets.records.kernels.encode_tensor import (
            serialized,  # not above: it takes a second to compile, and few need it
        )

        column, shape = self.feature.column, self.feature.shape
        tensors = tensors_of(array, self.feature, first_row)
        values = without_views(tensors.values)
        if self._cast is not None:
            values = cast_array(values, with_value_type(values.type, self._cast), column)
        values = cast_array(values, with_value_type(values.type, stored_type(value_type(values.type))), column)
        line = line_of(values, shape or (None,), column, first_row)
        return serialized(line, replace(tensors, values=values), dtype_number(self.feature.value_type))

    def _check_nulls(self, null: pa.BooleanArray, first_row: int) -> None:
        if not self.feature.optional:
            raise SchemaError(
                f"column {self.feature.column!r} has a null in row {first_row + first_true(null)}, though the "
                "inventory counted none; materialize raw again"
            )

    def _check(self, array: pa.Array, first_row: int) -> None:
        """Refuses integers that int64 cannot hold, or that are not a class."""
        column, names = self.feature.column, self.feature.names
        if pa.types.is_uint64(value_type(array.type)):
            largest = pc.max(flat_values(array)).as_py() or 0
            if largest > _INT64_MAX:
                raise SchemaError(
                    f"column {column!r} of type uint64 holds {largest}, at or after row {first_row}, which is beyond "
                    "int64, the only integer of a tf.Example. Cast the column to string or float64, or drop it"
                )
        if names is None:
            return
        extremes = pc.min_max(array).as_py()
        if extremes["min"] is not None and (extremes["min"] < 0 or extremes["max"] >= len(names)):
            row = first_true(pc.or_(pc.less(array, 0), pc.greater_equal(array, len(names))))
            raise SchemaError(
                f"column {column!r} is {array[row]} in row {first_row + row}, but its {len(names)} classes "
                f"({', '.join(names[:3])}{', …' if len(names) > 3 else ''}) are numbered from 0; correct it in the "
                "source, or name all classes under features.names"
            )
