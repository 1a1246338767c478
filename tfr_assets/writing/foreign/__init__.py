"""TFRecord files of other origin: `sets`, which there are and belong together; `adopt`, what is written beside them.

Any room above, and the modules of this one that write, may import both.
"""
