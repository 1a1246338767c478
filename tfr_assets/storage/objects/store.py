"""A URL → the store that holds it.

Credentials come only from the environment or the store's own configuration, such as `AWS_ACCESS_KEY_ID` or a profile in
`~/.aws`. They stay inside of the store, which is never pickled, shown or written: what travels is the URL.
"""

import os
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tfr_assets.errors import ConfigError
from tfr_assets.packages import is_installed, need

if TYPE_CHECKING:
    from obstore.store import ObjectStore

SCHEMES = {"s3": ("AWS_",), "gs": ("GOOGLE_",), "az": ("AZURE_",)}
"""What a URL begins with, and what the names of its store's environment variables begin with."""

_RETRIES = 6  # with growing pauses: about ten seconds
_TIMEOUT = 60  # seconds for one request, which carries 8 MB or so
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


def is_object_url(path: object) -> bool:
    """Whether a path is the URL of an object store that we read and write by ourselves."""
    return isinstance(path, str) and path.partition("://")[0] in SCHEMES and "://" in path


def is_reached(path: object) -> bool:
    """Whether it is such a URL, and the package is there that reaches it; else fsspec may reach it."""
    return is_object_url(path) and is_installed("obstore")


def split_url(url: str) -> tuple[str, str]:
    """Returns the URL of the bucket, and the key in it without slashes around it.

    Raises:
        ConfigError: It names no bucket.
    """
    parts = urlsplit(url, allow_fragments=False)
    if parts.username or parts.password or "@" in parts.netloc:
        raise ConfigError(
            f"{parts.scheme}://…@{parts.netloc.rpartition('@')[2]}: a URL must hold no credentials; set them in the "
            "environment or in the store's own configuration"
        )
    if not parts.netloc:
        raise ConfigError(f"{url}: names no bucket; write {parts.scheme}://BUCKET/FOLDER")
    path = url[len(parts.scheme) + 3 + len(parts.netloc) :].strip("/")  # "?" and "#" are characters like others
    return f"{parts.scheme}://{parts.netloc}", path


def store_of(bucket: str) -> "ObjectStore":
    """Returns the store of a bucket's URL, as the environment configures it now.

    Raises:
        MissingPackage: The package that reaches it is not installed.
    """
    need("obstore", "obstore", f"{bucket}", "`pip install 'tfr-assets[s3]'`")
    return _open(bucket, os.getpid(), _settings(bucket))


@lru_cache(maxsize=32)
def _open(bucket: str, _process: int, settings: tuple[tuple[str, str], ...]) -> "ObjectStore":
    from obstore.store import from_url

    return from_url(bucket, **store_options(bucket, dict(settings)))


def filesystem_of(bucket: str) -> Any:
    """Returns the same as an fsspec filesystem, for what reads by that. Raises as `store_of`."""
    need("obstore", "obstore", f"{bucket}", "`pip install 'tfr-assets[s3]'`")
    return _open_filesystem(bucket, os.getpid(), _settings(bucket))


@lru_cache(maxsize=32)
def _open_filesystem(bucket: str, _process: int, settings: tuple[tuple[str, str], ...]) -> Any:
    from obstore.fsspec import FsspecStore

    new: Any = FsspecStore  # whose hints do not know what fsspec itself takes
    return new(bucket.partition("://")[0], skip_instance_cache=True, **store_options(bucket, dict(settings)))


def _settings(bucket: str) -> tuple[tuple[str, str], ...]:
    prefixes = SCHEMES[bucket.partition("://")[0]]
    return tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith(prefixes)))


def store_options(bucket: str, settings: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Returns how a store is opened, besides what it takes from the environment by itself.

    Args:
        bucket: The bucket's URL.
        settings: Environment variables.
    """
    options: dict[str, Any] = {
        "retry_config": {"max_retries": _RETRIES, "retry_timeout": timedelta(minutes=3)},
        "client_options": {"timeout": timedelta(seconds=_TIMEOUT)},
    }
    if bucket.startswith("s3://"):
        if endpoint := endpoint_of(settings):
            options["config"] = {"endpoint": endpoint}
            options["client_options"]["allow_http"] = endpoint.startswith("http://")
        if "AWS_ACCESS_KEY_ID" not in settings and _has_profile(settings) and is_installed("boto3"):
            import boto3
            from obstore.auth.boto3 import Boto3CredentialProvider

            options["credential_provider"] = Boto3CredentialProvider(boto3.Session())
    return options


def endpoint_of(settings: Mapping[str, str] = os.environ) -> str | None:
    """Returns where a server that speaks S3 is, if it is not Amazon's."""
    return next((settings[name] for name in _ENDPOINTS if settings.get(name)), None)


def _has_profile(settings: Mapping[str, str]) -> bool:
    if "AWS_PROFILE" in settings:
        return True
    return any((Path("~/.aws").expanduser() / name).is_file() for name in ("credentials", "config"))
