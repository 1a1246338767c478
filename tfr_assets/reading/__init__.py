"""TFRecord files → `tf.data.Dataset`: the only room that knows TensorFlow.

A dataset's name, or a path:
    locate     the files to read, by their manifests
    pipelines  the readers: files → batches, parsed as `spec` says
    read       … to training code
    measure    … against the clock, with what `bench` holds; `recommendation` says which reader to use
"""

import os

# TensorFlow tells even of a dataset's regular end. Its warnings and errors stay, and a user's own setting wins.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
