"""Object stores: S3 and what speaks like it, Google Cloud Storage, Azure.

From the bottom up:

store       a URL → the store, with credentials from its own configuration
failures    what a store refuses → one sentence
folder      the objects below a URL: put, upload, get, list, delete, all or nothing each
ranges      an object's bytes, fetched in parts at once and ahead
lease       one writer at a time, on whatever machines
guard       steps make nothing visible once their run has lost its lock
multipart   joining objects inside of S3, and uploads that killed writers left
publish     local files → visible ones: the manifest last
"""
