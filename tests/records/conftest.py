import os
from collections.abc import Callable
from typing import Any

import pytest

from .tables import Row


@pytest.fixture(scope="session")
def tf() -> Any:
    """TensorFlow, the oracle. It takes seconds to import, so only tests that ask for it pay."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    import tensorflow

    return tensorflow


@pytest.fixture(scope="session")
def serialize(tf: Any) -> Callable[[Row], bytes]:
    """Serializes a row as TensorFlow does."""
    kinds = {
        "int64": lambda values: tf.train.Feature(int64_list=tf.train.Int64List(value=values)),
        "float32": lambda values: tf.train.Feature(float_list=tf.train.FloatList(value=values)),
        "bytes": lambda values: tf.train.Feature(bytes_list=tf.train.BytesList(value=values)),
    }

    def serialize_row(row: Row) -> bytes:
        features = {name: kinds[kind](values) for name, (kind, values) in row.items()}
        return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString(deterministic=True)

    return serialize_row
