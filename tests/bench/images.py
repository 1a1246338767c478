"""Stand-ins for encoded images: bytes that no compression makes smaller."""

import numpy as np
import pyarrow as pa


def random_images(count: int) -> pa.Table:
    """Returns so many images of 10 to 100 kB, with a label each."""
    random = np.random.default_rng(0)
    sizes = random.integers(10_000, 100_000, count)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    content = pa.py_buffer(random.bytes(int(offsets[-1])))
    images = pa.LargeBinaryArray.from_buffers(pa.large_binary(), count, [None, pa.py_buffer(offsets), content])
    return pa.table({"image/encoded": images, "label": random.integers(0, 10, count)})
