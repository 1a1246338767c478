"""Class balance: how many records there are of each class."""

from collections.abc import Mapping

from tfr_assets.pictures.card import INNER, MARGIN, Card, empty
from tfr_assets.pictures.palette import ACCENT, FAINT, INK
from tfr_assets.pictures.text import fit, number, width_of

_MOST, _LARGEST, _SMALLEST = 40, 20, 10  # classes that are drawn; which, where there are more
_ROW, _BAR, _GAP = 20, 14, 10  # pixels: height of a row, of its bar, room beside texts
_WIDEST_NAME = 260


def class_balance(counts: Mapping[str, int], title: str) -> bytes:
    """Draws a bar a class, in the order given.

    Of more than 40 classes the largest 20 and the smallest 10 are drawn, by size, and the number of the others said.

    Args:
        counts: Number of records by class.
        title: Stands above.

    Returns:
        A PNG of less than 100 kB.

    Raises:
        ValueError: A count below zero.
    """
    if not counts:
        return empty(title, "no classes")
    if any(count < 0 for count in counts.values()):
        raise ValueError(f"a count of {min(counts.values()):,}: classes have no fewer than 0 records")
    rows: list[tuple[str, int] | None] = [*counts.items()]  # None: where classes are left out
    if len(counts) > _MOST:
        by_size = sorted(counts.items(), key=lambda item: -item[1])
        rows = [*by_size[:_LARGEST], None, *by_size[-_SMALLEST:]]
    card = Card(len(rows) * _ROW, title, _summary(counts))
    names = [fit(row[0], _WIDEST_NAME) if row else "" for row in rows]
    values = [f"{row[1]:,}" if row else "" for row in rows]
    left = MARGIN + max(map(width_of, names)) + _GAP
    width = MARGIN + INNER - left - max(map(width_of, values)) - _GAP
    largest = max(counts.values()) or 1
    for index, (row, name, value) in enumerate(zip(rows, names, values, strict=True)):
        middle = (index + 0.5) * _ROW
        if row is None:
            card.write(left, card.top + middle, f"… {len(counts) - _LARGEST - _SMALLEST:,} more", FAINT)
            continue
        length = round(row[1] / largest * width)
        card.bar(left, card.top + middle - _BAR / 2, length, _BAR, ACCENT)
        card.write(left - _GAP, card.top + middle, name, align="right")
        card.write(left + length + _GAP / 2, card.top + middle, value, INK if row[1] else FAINT)
    return card.png()


def _summary(counts: Mapping[str, int]) -> str:
    largest, smallest = max(counts.values()), min(counts.values())
    total = f"{len(counts):,} classes, {sum(counts.values()):,} records"
    if not smallest:
        return f"{total}; {sum(not count for count in counts.values()):,} of the classes without any"
    if largest == smallest:
        return f"{total}; as many of each"
    if (times := number(largest / smallest)) == "1":
        return f"{total}; about as many of each"
    return f"{total}; the largest has {times} times as many as the smallest"
