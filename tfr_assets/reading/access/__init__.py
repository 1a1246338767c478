"""Records in any order: by number, shuffled without a list of them, from any place on, on any number of workers.

    permutation → order      which record comes at which position of an epoch
    left                     which positions are left, and whose they are
    open_files → gather      where records lie, and their bytes
    decode, rows             these as columns, or as dicts
    passes, state, epochs    the iterator that can be stopped and continued
    dataset, mixture         what a program holds

Knows no TensorFlow.
"""
