"""Ticks of an axis: round numbers, with as many digits as tell them apart."""

import math


def ticks(low: float, high: float, most: int, least: float = 0) -> dict[float, str]:
    """Returns where an axis has ticks, and what stands there.

    Args:
        low: Where the axis begins.
        high: Where it ends: more than `low`.
        most: About how many ticks there is room for.
        least: How far apart they are at least: 1 where there are no halves.
    """
    rough = max((high - low) / most, least)
    exponent = math.floor(math.log10(rough))
    steps = [digit * 10.0**exponent for digit in (1, 2, 5, 10)]
    at = next(at for at, step in enumerate(steps) if step >= rough)
    step, numbers = steps[at], _multiples(low, high, steps[at])
    if not numbers:  # the axis is shorter than the step and lies between two multiples of it
        step, numbers = steps[at - 1], _multiples(low, high, steps[at - 1])
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    if decimals > 4 or max(abs(low), abs(high)) >= 1e9:
        digits = max(1, math.ceil(math.log10(max(abs(low), abs(high)) / step)) + 1)
        return {number * step: f"{number * step:.{digits}g}" for number in numbers}
    return {number * step: f"{number * step:,.{decimals}f}" for number in numbers}


def _multiples(low: float, high: float, step: float) -> range:
    return range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
