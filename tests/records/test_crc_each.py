"""The CRCs of stretches of memory, against that of each alone."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tfr_assets.records.kernels.crc32c import crc32c, crc32c_each


@given(pieces=st.lists(st.binary(max_size=50), max_size=11), before=st.binary(max_size=3))
def test_each_piece_has_its_own_crc(pieces: list[bytes], before: bytes) -> None:
    data = np.frombuffer(before + b"".join(pieces) + b"more", np.uint8)
    offsets = np.cumsum([len(before), *map(len, pieces)]).astype(np.int64)
    assert crc32c_each(data, offsets).tolist() == [crc32c(piece) for piece in pieces]
