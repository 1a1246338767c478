"""How columns look when they are printed."""

import numpy as np

from tfr_assets.records.arrow.arrays import Ragged, Strings


def test_a_printed_column_shows_its_first_rows_and_stays_short() -> None:
    strings = Strings(np.array([0, 1, 3, 3, 6]), np.frombuffer(b"abcdef", np.uint8))
    assert repr(strings) == "Strings of 4 rows: [b'a', b'bc', b'', b'def']"
    assert repr(Ragged(np.array([0, 3, 4]), strings)) == "Ragged of 2 rows: [[b'a', b'bc', b''], [b'def']]"
    assert repr(Ragged(np.arange(10_001), np.arange(10_000))).startswith("Ragged of 10,000 rows: [[0], [1], [2],")
    large = Strings(np.array([0, 100_000]), np.zeros(100_000, np.uint8))
    assert len(repr(large)) < 200
