"""Which columns are said to lose digits; that they do, and others do not, by what is encoded."""

import numpy as np
import pyarrow as pa
import pytest

from tfr_assets.errors import SchemaError
from tfr_assets.records.examples.wire import decode_record
from tfr_assets.records.schema.casts import lossy_casts
from tfr_assets.records.schema.derive import derive_spec
from tfr_assets.records.schema.feature_options import FeatureOptions

from .encoding import encode

TENSOR = pa.struct([("data", pa.list_(pa.float64())), ("shape", pa.list_(pa.int64()))])


def told(data_type: pa.DataType, cast: str | None = None, **options: object) -> list[str]:
    chosen = FeatureOptions(cast={"x": cast} if cast else {}, **options)  # type: ignore[arg-type]
    return lossy_casts(derive_spec(pa.schema([("x", data_type), ("n", pa.int64())]), {}, chosen))


@pytest.mark.parametrize(
    "data_type",
    [
        pa.float64(),
        pa.list_(pa.float64()),
        pa.list_(pa.list_(pa.float64())),
        TENSOR,
        pa.fixed_shape_tensor(pa.float64(), [2]),
    ],
    ids=str,
)
def test_float64_is_told_once_a_column_unless_it_is_meant_or_kept(data_type: pa.DataType) -> None:
    (sentence,) = told(data_type)
    assert sentence.startswith("column 'x': float64 becomes float32") and "cast: {x: float32}" in sentence
    assert told(data_type, "float32") == []
    if data_type != pa.float64():
        assert told(data_type, tensor={"x": "serialized"}) == []


@pytest.mark.parametrize("cast", ["float16", "float32", "float64"])
def test_decimals_cast_to_floats_are_told(cast: str) -> None:
    for data_type in (pa.decimal128(9, 2), pa.list_(pa.decimal256(50, 2))):
        (sentence,) = told(data_type, cast)
        assert sentence.startswith("column 'x': decimals become float") and "text is exact" in sentence
        assert told(data_type) == told(data_type, "string") == []


def test_integers_cast_to_float64_are_told_and_really_lose() -> None:
    (sentence,) = told(pa.int64(), "float64")
    assert "integers become float32" in sentence and "16,777,216" in sentence
    found = decode_record(encode(pa.record_batch({"x": [2**24 + 1]}), cast={"x": "float64"})[0])
    assert found == {"x": ("float32", [2.0**24])}


def test_integers_cast_to_float32_are_not_told_as_a_loss_is_an_error() -> None:
    assert told(pa.int64(), "float32") == []
    with pytest.raises(SchemaError, match="16777217"):
        encode(pa.record_batch({"x": [2**24 + 1]}), cast={"x": "float32"})


@pytest.mark.parametrize(
    "data_type",
    [pa.float16(), pa.float32(), pa.int64(), pa.uint64(), pa.string(), pa.timestamp("ns"), pa.bool_()],
    ids=str,
)
def test_what_loses_nothing_is_not_told(data_type: pa.DataType) -> None:
    assert told(data_type) == told(pa.list_(data_type)) == []


def test_every_float16_is_a_float32() -> None:
    halves = np.arange(0, 0x7C00, dtype=np.uint16).view(np.float16)
    found = decode_record(encode(pa.record_batch({"x": pa.array([halves])}))[0])
    assert found is not None and found["x"][1] == halves.tolist()
