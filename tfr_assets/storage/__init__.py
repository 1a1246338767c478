"""Where bytes lie: files that are whole or absent, sealed JSON, locks, and what is elsewhere, by URL.

    atomic          temporary name, fsync, rename, fsync of the folder
    reserve         room on the disk for a file that is being written
    sealed          JSON files that carry a checksum of themselves
    objects         object stores: S3, Google Cloud Storage, Azure
    mirror          folders that stand in for what lies in an object store
    run_lock        one run at a time in a folder, wherever it lies
    raw_files       files of others, local or by URL, and how a change of them is noticed
    remote_folders  which files are in a folder by URL
    pipe            a remote file as a local descriptor
    spool           a temporary folder for what is on its way
    file_names      what a file's name says of its format

The lowest room: it imports no other, and every other may import any of its modules.
"""
