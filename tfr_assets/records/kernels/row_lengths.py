"""Features that give the number of values of others: lengths of a ragged column's lists, and sizes of a tensor.

Whether they agree is asked of every record that is decoded or checked. What is read from a file is never added up and
then used: a length that is negative or larger than what is left ends the sum, so that nothing can wrap around.
"""

from tfr_assets.records.kernels.jit import kernel, load_i64, store_i64
from tfr_assets.records.schema.features import FLAT_VALUES, SHAPE, FeatureSpec

LENGTHS = 8
"""The problem of lengths that do not add up, as `records.kernels.validate` counts problems."""


def counted_by(spec: FeatureSpec) -> dict[int, int]:
    """Returns which feature each feature with lengths or sizes counts: an inner level, or the values.

    Returns:
        Index of the counted feature, by index of the one with lengths or sizes.
    """
    at = {(f.base_name, f.level if f.is_row_lengths else f.part): i for i, f in enumerate(spec.features)}
    found = {}
    for index, feature in enumerate(spec.features):
        if feature.is_row_lengths:
            inner = at.get((feature.base_name, feature.level + 1), at.get((feature.base_name, FLAT_VALUES)))
        elif feature.part == SHAPE:
            inner = at.get((feature.name.removesuffix(f"/{SHAPE}"), None))
        else:
            continue
        if inner is not None:
            found[index] = inner
    return found


@kernel("void(int64, int64, int64, int64, int64, int64, int64, int64)")
def check_lengths(lengths, starts, inner, size, first, rows, feature, bad):
    """Notes the records whose lists do not fit together in one level of a ragged column.

    Args:
        lengths: Address of the lists' lengths (int64).
        starts: Address of where each row's lengths start (int64).
        inner: Address of where each row's values start, of which the lists are made: again lengths, or numbers (int64).
        size: How many of these are one: more than 1 where lists hold arrays of a fixed shape.
        first: First row.
        rows: Number of rows.
        feature: Index of the feature with the lengths.
        bad: Address of an int64 a row, which becomes LENGTHS | feature << 8 unless it has a problem already.
    """
    for i in range(rows):
        row = first + i
        left = (load_i64(inner + row * 8 + 8) - load_i64(inner + row * 8)) // size
        fits = True
        for k in range(load_i64(starts + row * 8), load_i64(starts + row * 8 + 8)):
            length = load_i64(lengths + k * 8)
            if length < 0 or length > left:
                fits = False
                break
            left -= length
        if (left or not fits) and load_i64(bad + i * 8) == 0:
            store_i64(bad + i * 8, LENGTHS | feature << 8)
