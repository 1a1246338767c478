"""Python values → Arrow arrays: scalars of Python and NumPy, enums, nested lists, arrays and tensors of any library.

| all values of a column are               | Arrow                                                                     |
|------------------------------------------|---------------------------------------------------------------------------|
| what Arrow knows, or enums of it         | as Arrow infers it; of an enum, the value                                 |
| arrays without dimensions                | as scalars                                                                |
| arrays of one shape                      | fixed-shape tensor                                                        |
| arrays of one dimension, varying lengths | list                                                                      |
| arrays of varying shapes                 | struct of `data`, a list of all values in row-major order, and `shape`    |

An array is a NumPy array, or anything that NumPy can read as one (`__array__`) or that has a method `numpy`, such as a
tensor of TensorFlow or PyTorch. bfloat16 becomes float32, and float128 float64.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from enum import Enum
from functools import cache
from itertools import chain
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from tfr_assets.records.schema.arrow_types import is_tensor

Form = Literal["list", "tensor"]
"""How arrays of varying shapes are held: as lists, if they have one dimension, or else as structs."""

_SMALL_FLOATS = ("bfloat16", "float8_", "float6_", "float4_")  # that NumPy has from the package ml_dtypes
NOT_CONVERTED = (pa.ArrowException, TypeError, ValueError, OverflowError)


class ArrayUnreadableError(ValueError):
    """A tensor, or similar, that its own library does not turn into an array."""


class ShapeVariesError(ValueError):
    """An array of another shape than the rows before had.

    Attributes:
        form: What could hold all of them.
    """

    def __init__(self, found: tuple[int, ...], before: str, form: Form) -> None:
        super().__init__(f"its shape is {list(found)}, but {before}")
        self.form = form


def as_arrow(values: Sequence[Any], type_: pa.DataType | None = None, form: Form | None = None) -> pa.Array:
    """Returns values of one column as an Arrow array; None is null.

    Args:
        values: The column's; arrays as `as_numpy` returns them.
        type_: The type that values before them gave the column; None: there are none before.
        form: How arrays are to be held although these values are all of one shape, as later ones are not.

    Raises:
        ShapeVariesError: An array does not fit `type_`.
        pa.ArrowException, TypeError, ValueError, OverflowError: The values are not a column.
    """
    held = type_ is not None and _holds_arrays(type_)
    if held or any(isinstance(value, np.ndarray) for value in values):
        arrays = [None if value is None else native(np.asarray(value)) for value in values]
        there = [array for array in arrays if array is not None]
        if not there:
            return pa.nulls(len(arrays), type_)
        if not held and all(array.ndim == 0 for array in there):
            return as_arrow([None if array is None else array.item() for array in arrays], type_)
        if all(array.dtype != object or _is_flat(array) for array in there):
            return _arrays(arrays, there, type_, form)
    try:
        return _array(values, type_)
    except NOT_CONVERTED:
        return _array([_plain(value) for value in values], type_)


def _array(values: Sequence[Any], type_: pa.DataType | None) -> pa.Array:
    """Returns what Arrow makes of values; TypeError, if it skipped a part of one."""
    array = pa.array(values, type_)
    _check_kept(values, array.type)
    return array


def _check_kept(values: Iterable[Any], type_: pa.DataType) -> None:
    """Raises TypeError for what Arrow, of this type, leaves out: fractions, times of days, new keys of dicts."""
    while pa.types.is_list(type_):
        values = chain.from_iterable(value for value in values if isinstance(value, list | tuple))
        type_ = type_.value_type
    if pa.types.is_integer(type_) and _has(values, (float, np.floating, Decimal)):
        raise TypeError("a fraction among whole numbers")
    if pa.types.is_date(type_) and _has(values, (datetime,)):
        raise TypeError("a time among days")
    if pa.types.is_struct(type_):
        rows = [value for value in values if isinstance(value, Mapping)]
        names = {field.name for field in type_}
        if new := next((key for row in rows for key in row if key not in names), None):
            raise TypeError(f"a key {new!r} that those before lack")
        for field in type_:
            _check_kept([row.get(field.name) for row in rows], field.type)


def _has(values: Iterable[Any], types: tuple[type, ...]) -> bool:
    return any(issubclass(type_, types) for type_ in set(map(type, values)))


def as_numpy(value: Any) -> Any:
    """Returns tensors and similar objects as NumPy arrays, and anything else as it is.

    A tensor of PyTorch may take part in training or lie on a device; its values are what is wanted.

    Raises:
        ArrayUnreadableError: It cannot become an array; its library says why.
    """
    if not is_array_like(type(value)):  # type: ignore[arg-type]
        return value
    try:
        if hasattr(value, "detach"):
            value = value.detach().cpu()
        return np.asarray(value) if hasattr(value, "__array__") else value.numpy()
    except MemoryError:
        raise
    except Exception as error:  # a library's own, of any type
        raise ArrayUnreadableError(f"cannot be read as a NumPy array: {error}") from error


@cache
def is_array_like(type_: type) -> bool:
    """Whether values of a type are tensors, or similar, that `as_numpy` turns into arrays."""
    if issubclass(type_, np.ndarray | np.generic):
        return False
    return callable(getattr(type_, "__array__", None)) or callable(getattr(type_, "numpy", None))


def native(array: np.ndarray) -> np.ndarray:
    """Returns the array in a type that Arrow has."""
    if array.dtype.name.startswith(_SMALL_FLOATS):
        return array.astype(np.float32)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        return array.astype(np.float64)
    return array.astype(array.dtype.newbyteorder("=")) if not array.dtype.isnative else array


def _is_flat(array: np.ndarray) -> bool:
    """Whether an array of objects holds texts or bytes, rather than lists of different lengths."""
    return all(isinstance(value, str | bytes) for value in array.flat)


def _arrays(
    arrays: Sequence[np.ndarray | None], there: Sequence[np.ndarray], type_: pa.DataType | None, form: Form | None
) -> pa.Array:
    """Returns arrays, some of which have dimensions, in the form that suits them or that the column has."""
    if type_ is None:
        type_ = _type_of(there, form)
    else:
        _check_shapes(there, type_)
    lengths = [0 if array is None else array.size for array in arrays]
    if isinstance(type_, pa.FixedShapeTensorType):
        storage = pa.FixedSizeListArray.from_arrays(_flat(there, type_.value_type), type_.storage_type.list_size)
        if len(there) < len(arrays):
            index = np.cumsum([array is not None for array in arrays]) - 1
            storage = storage.take(pa.array(index, mask=np.array([array is None for array in arrays])))
        return pa.ExtensionArray.from_storage(type_, storage)
    null = pa.array([array is None for array in arrays]) if len(there) < len(arrays) else None
    if not pa.types.is_struct(type_):
        return _lists(lengths, _flat(there, type_.value_type), null)
    data = _lists(lengths, _flat(there, type_.field("data").type.value_type), None)
    sizes = pa.array([size for array in there for size in array.shape], pa.int32())
    shapes = _lists([0 if array is None else array.ndim for array in arrays], sizes, None)
    return pa.StructArray.from_arrays([data, shapes], ["data", "shape"], mask=null)


def _type_of(arrays: Sequence[np.ndarray], form: Form | None) -> pa.DataType:
    """Returns the type of a column whose first arrays these are."""
    value_type = _flat(arrays).type
    shapes = {array.shape for array in arrays}
    if form is None and len(shapes) == 1 and arrays[0].size:
        return pa.fixed_shape_tensor(value_type, shapes.pop())
    if form != "tensor" and all(len(shape) == 1 for shape in shapes):
        return pa.list_(value_type)
    return pa.struct([("data", pa.list_(value_type)), ("shape", pa.list_(pa.int32()))])


def _check_shapes(arrays: Sequence[np.ndarray], type_: pa.DataType) -> None:
    """Refuses arrays that a column cannot hold as the arrays before gave it its type."""
    for array in arrays:
        if isinstance(type_, pa.FixedShapeTensorType) and list(array.shape) != type_.shape:
            one = array.ndim == len(type_.shape) == 1
            raise ShapeVariesError(array.shape, f"those before have {type_.shape}", "list" if one else "tensor")
        if pa.types.is_list(type_) and array.ndim != 1:
            raise ShapeVariesError(array.shape, "those before have one dimension", "tensor")
    if not (_holds_arrays(type_) or pa.types.is_list(type_)):
        raise TypeError("an array among other values")


def _holds_arrays(type_: pa.DataType) -> bool:
    return isinstance(type_, pa.FixedShapeTensorType) or is_tensor(type_)


def _flat(arrays: Sequence[np.ndarray], value_type: pa.DataType | None = None) -> pa.Array:
    """Returns all values of some arrays, one array after another."""
    kinds = {array.dtype.kind for array in arrays}
    if kinds <= set("USO"):
        return pa.array([value for array in arrays for value in array.ravel().tolist()], value_type)
    dtypes = {array.dtype for array in arrays}
    numbers = kinds <= set("biuf") and not {np.dtype(np.int64), np.dtype(np.uint64)} <= dtypes
    if len(dtypes) > 1 and not numbers:
        raise TypeError(f"arrays of {' and '.join(sorted(map(str, dtypes)))}")
    flat = pa.array(np.concatenate([array.ravel() for array in arrays]))
    return flat if value_type is None else flat.cast(value_type)


def _lists(lengths: Sequence[int], values: pa.Array, null: pa.BooleanArray | None) -> pa.ListArray:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=null)


def _plain(value: Any) -> Any:
    """Returns a value made of Python's own types."""
    value = as_numpy(value)
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, np.ndarray):
        value = native(value)
        if value.ndim == 1 and value.dtype != object:
            return value
        return [_plain(item) for item in value] if value.ndim else _plain(value[()])
    if isinstance(value, np.longdouble) or (
        isinstance(value, np.generic) and value.dtype.name.startswith(_SMALL_FLOATS)
    ):
        return float(value)
    if isinstance(value, np.datetime64):
        return value.item()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset | range):
        return [_plain(item) for item in value]
    return value
