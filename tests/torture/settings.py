"""How long to torture, and from which seed: the short form is part of `make test`, the long one is `make torture`.

TFR_TORTURE_SEED     every choice follows from it; the same seed makes the same choices
TFR_TORTURE_SECONDS  seconds a test; unset or 0: the short form, a small fixed number of cases
"""

import os
import random
import time
from collections.abc import Iterator

import pytest

SEED = int(os.environ.get("TFR_TORTURE_SEED") or 1)
SECONDS = float(os.environ.get("TFR_TORTURE_SECONDS") or 0)


def choices(name: str) -> random.Random:
    """Returns the source of all choices of one test, whatever else runs."""
    return random.Random(f"{SEED} {name}")


def cases(short: int) -> Iterator[int]:
    """Yields case numbers: `short` of them in the short form, as many as there is time for in the long one."""
    stop = time.monotonic() + SECONDS
    case = 0
    while case < short or time.monotonic() < stop:
        yield case
        case += 1


def need_time() -> None:
    """Skips a test that is too long for the short form."""
    if not SECONDS:
        pytest.skip("takes minutes: set TFR_TORTURE_SECONDS, or run `make torture`")
