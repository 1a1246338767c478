"""Packages that only a part of this library needs, and what is said where one of them is not installed."""

from importlib.util import find_spec

from tfr_assets.errors import MissingPackage


def is_installed(package: str) -> bool:
    """Whether a package can be imported; it is not imported."""
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # of a finder that refuses; of a module that was put in place of it
        return False


def need(package: str, name: str, use: str, remedy: str) -> None:
    """Refuses what cannot work without a package.

    Args:
        package: What is imported.
        name: What people call it.
        use: What needs it.
        remedy: What to do.

    Raises:
        MissingPackage: It is not installed.
    """
    if not is_installed(package):
        raise MissingPackage(f"{use} needs {name}, which is not installed: {remedy}")
