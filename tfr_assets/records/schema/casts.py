"""Which features cannot hold every value of their column exactly. Known from types alone; no value is looked at."""

from tfr_assets.records.schema.features import SERIALIZED, Feature, FeatureSpec

_FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}


def lossy_casts(spec: FeatureSpec) -> list[str]:
    """Returns a sentence for each column whose values may lose digits, in the order of the features.

    A float column that the options cast to a narrower float is none: the loss was asked for. Casts of integers to
    float32 are none either: one that is not exact is an error while encoding.
    """
    sentences = ((feature.column, _sentence(feature)) for feature in spec.features)
    return [f"column {column!r}: {sentence}" for column, sentence in sentences if sentence]


def _sentence(feature: Feature) -> str | None:
    source, number = feature.cast_from or "", feature.value_type
    rounded = number == "double" and feature.part != SERIALIZED  # a tf.Example's floats are float32
    if source.startswith("decimal") and number in _FLOATS:
        became = "float32" if rounded else _FLOATS[number]
        return f"decimals become {became}, which rounds them; uncast, their text is exact"
    if "int" in source and rounded:
        return "integers become float32, which rounds those beyond 16,777,216; uncast, they are exact"
    if rounded:
        return (
            f"float64 becomes float32, about 7 digits; `cast: {{{feature.column}: float32}}` says that this is intended"
        )
    return None
