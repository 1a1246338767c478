"""Compiles all kernels now, while an environment or a container's image is made, so that no first use waits for them.

    python -m tfr_assets.compile_kernels

They are kept where kernels always are: beside the sources, else in the user's cache, else among temporary files.
Another kind of processor compiles its own.
"""

import os
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from tfr_assets.packages import is_installed

_PACKAGE = Path(__file__).parent


def main() -> None:
    """Imports every module that has kernels: they are compiled when their module is imported."""
    for source in sorted(_PACKAGE.rglob("*.py")):
        if b"\n@kernel(" in source.read_bytes():
            import_module(".".join(source.relative_to(_PACKAGE.parent).with_suffix("").parts))
    if is_installed("tensorflow"):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        from tfr_assets.reading.tensors import op

        with suppress(op.OpRefused):  # the reader that needs it says so
            op.register()


if __name__ == "__main__":
    main()
