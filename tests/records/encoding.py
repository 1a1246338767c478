"""Short ways to the encoder."""

from collections.abc import Mapping

import pyarrow as pa

from tfr_assets.records.examples.encoder import ExampleEncoder
from tfr_assets.records.schema.derive import derive_spec
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.records.schema.features import FeatureSpec

from .reference import payloads_of


def encoded(spec: FeatureSpec, *batches: pa.RecordBatch, cast: Mapping[str, str] | None = None) -> list[bytes]:
    """The payloads of all rows, whose framing is checked on the way."""
    encoder = ExampleEncoder(spec, cast)
    found: list[bytes] = []
    for batch in batches:
        for frames in encoder.encode(batch, len(found)):
            payloads = payloads_of(bytes(frames.data))
            assert [len(payload) + 16 for payload in payloads] == frames.sizes.tolist()
            found += payloads
    return found


def encode(*batches: pa.RecordBatch, nulls: Mapping[str, int | None] | None = None, **options: object) -> list[bytes]:
    """As `encoded`, with the spec that follows from the schema and the feature options."""
    chosen = FeatureOptions(**options)  # type: ignore[arg-type]
    return encoded(derive_spec(batches[0].schema, nulls or {}, chosen), *batches, cast=chosen.cast)
