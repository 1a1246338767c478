"""Where compiled kernels are kept between processes, so that only the first one waits for the compiler.

Folders are tried in this order: `$NUMBA_CACHE_DIR`, and no other if it is set; `__pycache__` beside the source; the
user's cache folder; a folder of the user's own among the temporary ones. What is found in any of them is used, also
where it may not write, as in a container's image; what is compiled is kept in the first that takes it. A cache that is
damaged, full or nowhere is never an error: the kernel is compiled again.
"""

import hashlib
import os
import stat
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile

from tfr_assets.records.kernels.compile_progress import show_compiling

_NAME = "tfr-assets"


def _folders(source: Path) -> list[Path]:
    """Returns the folders for the kernels of a source file, the best first."""
    part = f"{source.parent.name}-{hashlib.sha256(os.fsencode(source.parent)).hexdigest()[:16]}"
    if chosen := getattr(config, "CACHE_DIR", ""):
        return [Path(chosen) / part]
    found = [source.parent / "__pycache__"]
    with suppress(RuntimeError):  # a container's user may have no home
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        found.append(Path(cache) / _NAME / part)
    with suppress(OSError):  # there may be no folder for temporary files
        temporary = Path(tempfile.gettempdir()) / f"{_NAME}-{os.geteuid()}"
        if _is_private(temporary):
            found.append(temporary / part)
    return found


def _is_private(folder: Path) -> bool:
    """Makes a folder among others' files if it is missing, and tells whether only this user can put code into it."""
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


class _Locator:
    """What Numba asks where a function's cache is; the folders are chosen by `KernelCache`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._line, self._py_file = function.__code__.co_firstlineno, function.__code__.co_filename

    @classmethod
    def from_function(cls, function: Callable[..., Any], _: str) -> "_Locator":
        """Returns the locator of a function."""
        return cls(function)

    def get_cache_path(self) -> str:
        """Returns nothing, as the stamp."""
        return ""

    def ensure_cache_path(self) -> None:
        """Does nothing: a folder is made when something is kept in it."""

    def get_source_stamp(self) -> str:
        """Returns nothing: the kernel's own is given with it."""
        return ""

    def get_disambiguator(self) -> str:
        """Returns what sets functions of one name apart."""
        return str(self._line)


class _Implementation(CompileResultCacheImpl):
    _locator_classes = [_Locator]  # type: ignore[list-item]  # noqa: RUF012 - as Numba has it


class KernelCache(FunctionCache):
    """Numba's cache of one function, in several folders.

    Args:
        function: The function.
        stamp: Stands for all sources that it is compiled from: what was compiled under another one is not used.
        kernels: Number of all kernels.
    """

    _impl_class = _Implementation

    def __init__(self, function: Callable[..., Any], stamp: str, kernels: int) -> None:
        super().__init__(function)
        self._kernels = kernels
        self._kernel = f"{function.__module__.rpartition('.')[2]}.{function.__name__.lstrip('_')}"
        name = self._impl.filename_base
        self._files = [
            IndexDataCacheFile(str(folder), name, stamp) for folder in _folders(Path(function.__code__.co_filename))
        ]

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Returns what was compiled before, or None; then shows that the compiler is at work."""
        for file in self._files:
            self._cache_file = file
            try:
                found = super().load_overload(signature, target_context)
            except Exception:  # whatever a damaged file makes of a pickle
                continue
            if found is not None:
                return found
        show_compiling(self._kernel, self._kernels)
        return None

    def save_overload(self, signature: Any, data: Any) -> None:
        """Keeps what was compiled, if any folder takes it."""
        for file in self._files:
            self._cache_file = file
            try:
                Path(file._cache_path).mkdir(parents=True, exist_ok=True)
                super().save_overload(signature, data)
            except Exception:  # read-only, full, or what was there is damaged: removed, so that the next time is right
                with suppress(OSError):
                    Path(file._index_path).unlink(missing_ok=True)
                continue
            return
        warnings.warn(
            "compiled kernels cannot be kept, so each process waits for them; set NUMBA_CACHE_DIR", stacklevel=2
        )
