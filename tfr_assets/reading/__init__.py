"""TFRecord files → `tf.data.Dataset`, or NumPy, Arrow and pandas: with `bench`, the only room that knows TensorFlow.

A dataset's name, a path or a URL:
    locate     … which files to read, by their manifests, which are held from then on
    tensors    … how a record is parsed, and what happens to images and recordings
    native     … decoded by our own kernels; and the verified files under every reader
    readers    … how each reader works; `registry` lists them with their limits
    read, batches   … to the program that asked
"""

import os

# TensorFlow logs even a dataset's regular end. Its warnings and errors stay, and a user's own setting wins.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
