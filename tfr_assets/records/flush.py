"""Files that go to the disk while they are written, so that fsync finds little left to wait for.

The processor makes more bytes while the disk takes those before; the system alone would begin seconds later.
"""

import ctypes

from tfr_assets.records.files import write_all

_STEP = 4 << 20
_WRITE = 2  # SYNC_FILE_RANGE_WRITE: begin, and wait for nothing


def _sync_file_range() -> "ctypes._NamedFuncPointer | None":
    function = getattr(ctypes.CDLL(None), "sync_file_range", None)  # Linux has it, Python does not know it
    if function is not None:
        function.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return function


_begin = _sync_file_range()


class FlushedFile:
    """Appends to an open file from its start, and lets the disk begin with every 4 MB that are whole.

    Attributes:
        descriptor: The file.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._size = self._begun = 0

    def write(self, content: bytes | memoryview) -> None:
        """Appends.

        Raises:
            OSError: The file system refused.
        """
        write_all(self.descriptor, content)
        self._size += memoryview(content).nbytes
        self._begin_before(self._size - self._size % _STEP)

    def end(self) -> None:
        """Lets the disk begin with the rest, while another file is waited for."""
        self._begin_before(self._size)

    def _begin_before(self, stop: int) -> None:
        if stop > self._begun and _begin is not None:
            _begin(self.descriptor, self._begun, stop - self._begun, _WRITE)  # a hint: fsync tells what goes wrong
            self._begun = stop
