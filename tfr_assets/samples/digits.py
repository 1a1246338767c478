"""Handwritten digits as PNG files, made of the data set that scikit-learn brings along."""

import io
from collections.abc import Iterator

import numpy as np

_LEVELS = 16  # of grey: 0 … 16


def digit_files() -> dict[str, bytes]:
    """Returns 1,797 grey images of 8 × 8 pixels by path: the class's folder and a number, such as `7/0042.png`."""
    return {f"{label}/{number:04d}.png": content for number, label, content in digits()}


def digits() -> Iterator[tuple[int, int, bytes]]:
    """Yields number, class and PNG of each digit."""
    from PIL import Image
    from sklearn.datasets import load_digits

    found = load_digits()
    for number, (pixels, label) in enumerate(zip(found.images, found.target, strict=True)):
        grey = np.round(pixels * (255 / _LEVELS)).astype(np.uint8)
        content = io.BytesIO()
        Image.fromarray(grey).save(content, "PNG")
        yield number, int(label), content.getvalue()
