"""TFRecord files → `tf.data.Dataset`: the only room that knows TensorFlow.

A dataset's name, a path or a URL:
    locate     the files to read, by their manifests, which are held from then on; `remote` those elsewhere
    verified   … that TensorFlow reads the very files that were verified
    pipelines  the readers by name: files → batches, parsed as `spec` says; `readers` is how each works
    decode     images and recordings → tensors
    read       … to training code
    measure    … against the clock, with what `bench` holds; `recommendation` says which reader to use
"""

import os

# TensorFlow tells even of a dataset's regular end. Its warnings and errors stay, and a user's own setting wins.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
