"""Files' bytes when shards are written: read straight into one Arrow buffer, and compared with the listing."""

import os
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tfr_assets.errors import SourceChanged, SourceError
from tfr_assets.sources.files.tree_local import OPEN
from tfr_assets.sources.files.tree_remote import RemoteTree
from tfr_assets.storage.file_names import is_remote

_PADDING = 64  # bytes after the last file; the first of them shows that it has grown


def read_contents(
    root: str, storage_options: Mapping[str, Any], files: pa.Array, sizes: pa.Array, crcs: pa.Array
) -> pa.LargeBinaryArray:
    """Returns the bytes of files: large_binary of shape (files,).

    Args:
        root: What `tree.root_of(source.path, source.storage_options)` gives.
        storage_options: Passed to fsspec.
        files: A listing's `.file`.
        sizes: A listing's `.bytes`.
        crcs: A listing's `.crc32c`.

    Raises:
        SourceChanged: A file is gone, or its bytes are not those that were listed.
        SourceError: A file cannot be read.
    """
    from tfr_assets.records.kernels.crc32c import crc32c_each  # loads compiled code

    names = files.to_pylist()
    offsets = np.zeros(len(names) + 1, np.int64)
    np.cumsum(sizes.to_numpy(), out=offsets[1:])
    buffer = pa.allocate_buffer(int(offsets[-1]) + _PADDING)
    ranges = list(pairwise(offsets.tolist()))
    if is_remote(root):
        _read_remote(RemoteTree(root, None, storage_options), names, ranges, buffer)
    else:
        _read_local(root, names, ranges, buffer)
    found = crc32c_each(np.frombuffer(buffer, np.uint8), offsets)
    if (changed := np.flatnonzero(found != crcs.to_numpy())).size:
        raise _changed(root, names[changed[0]])
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(names), [None, pa.py_buffer(offsets), buffer])


def _read_local(root: str, names: list[str], ranges: list[tuple[int, int]], buffer: pa.Buffer) -> None:
    view = memoryview(buffer)
    for name, (start, stop) in zip(names, ranges, strict=True):
        path = f"{root}/{name}"
        try:
            descriptor = os.open(path, OPEN)
            try:
                # one byte more than there should be; the next file's bytes take its place
                count = last = os.readv(descriptor, (view[start : stop + 1],))
                while last and count < stop - start:  # one read gives 2 GiB at most
                    last = os.readv(descriptor, (view[start + count : stop + 1],))
                    count += last
            finally:
                os.close(descriptor)
        except FileNotFoundError as error:
            raise SourceChanged(f"{path}: is no longer there. Bring it back, or materialize raw again.") from error
        except OSError as error:
            raise SourceError(f"{path}: cannot be read: {error.strerror or error}.") from error
        if count != stop - start:
            raise _changed(root, name)


def _read_remote(tree: RemoteTree, names: list[str], ranges: list[tuple[int, int]], buffer: pa.Buffer) -> None:
    view = memoryview(buffer).cast("B")
    for name, (start, stop), data in zip(names, ranges, tree.read_many(names), strict=True):
        if len(data) != stop - start:
            raise _changed(tree.root, name)
        view[start:stop] = data


def _changed(root: str, name: str) -> SourceChanged:
    return SourceChanged(f"{root}/{name}: is not what it was when the inventory was taken. Materialize raw again.")
