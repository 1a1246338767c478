"""Records in any order: by number, shuffled without a list of them, from any place on, on any number of workers.

    permutation → order      which record comes at which position of an epoch
    left                     which positions are left, and whose they are
    offsets → files → gather where records lie, and their bytes
    decode                   these as columns, by several threads
    state, epochs            the iterator that can be stopped and continued
    dataset, mix             what a program holds

Knows no TensorFlow.
"""
