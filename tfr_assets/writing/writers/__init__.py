"""The writers: named ways to turn rows into TFRecord files with several workers. All write the same records.

    sharded_threads       one file per thread at a time                           the fastest, for several files
    sharded_processes     one file per process at a time, rows sent through pipes
    single_writer_queue   threads encode → bounded queue → one thread writes      the fastest, for one file

All give the same bytes, with any number of workers; `registry` lists them. Each file is whole or not there; an
error in one does not touch the others; memory does not grow with the data, as far as that comes bit by bit.
"""
