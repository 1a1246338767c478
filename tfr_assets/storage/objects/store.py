"""A URL → the store that holds it.

Credentials come only from the environment or the store's own configuration, such as `AWS_ACCESS_KEY_ID` or a profile in
`~/.aws`. They stay inside of the store, which is never pickled, shown or written: what travels is the URL.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tfr_assets.errors import ConfigError
from tfr_assets.packages import is_installed, need
from tfr_assets.urls import SCHEMES, endpoint_of, is_object_url

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_RETRIES = 6  # with growing pauses: about ten seconds
_RETRIED = timedelta(minutes=3)  # since the first request
_TIMEOUT = 60.0  # seconds for one request, which carries 8 MB or so
_ENDPOINT = re.compile(r"(AWS|AZURE(_STORAGE)?)_ENDPOINT(_URL(_S3)?)?")
_TRUE = {"1", "true", "on", "yes", "y"}
_MADE_FROM_URL = re.compile(r"(s3|gs|az|https?):/(?!/)")
_PROFILES = {"AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials", "AWS_CONFIG_FILE": "~/.aws/config"}


def is_reached(path: object) -> bool:
    """Whether it is such a URL, and the package is there that reaches it; else fsspec may reach it."""
    return is_object_url(path) and is_installed("obstore")


def refuse_url(path: object) -> None:
    """Refuses a path of this machine that was made from a URL: `Path("s3://b/x")` is the local `s3:/b/x`.

    Raises:
        ConfigError: It is one.
    """
    if isinstance(path, str | os.PathLike) and (match := _MADE_FROM_URL.match(os.fspath(path))):
        raise ConfigError(f"{os.fspath(path)!r} was a URL before it became a path; give {match[1]}://… as text")


def store_of(bucket: str, patience: float | None = None) -> "ObjectStore":
    """Returns the store of a bucket's URL, as the environment configures it now.

    Args:
        bucket: The URL.
        patience: Seconds to wait for one answer, and after which no request is made again; None: as long as requests
            need that carry much.

    Raises:
        MissingPackage: The package that reaches it is not installed.
        ConfigError: The environment, or the store's own configuration, is invalid; or this process was forked from one
            that had reached a store.
    """
    need("obstore", "obstore", f"{bucket}", "`pip install 'tfr-assets[s3]'`")
    _check_not_forked(bucket)
    return _open(bucket, os.getpid(), _settings(bucket), patience)


_reached_by: set[int] = set()  # processes: this one, and those that it was forked from


def _check_not_forked(bucket: str) -> None:
    """Refuses what would wait for ever: the threads that send requests are not in a process that is forked."""
    if _reached_by and os.getpid() not in _reached_by:
        raise ConfigError(
            f"{bucket} cannot be reached from a process that was forked from one that had reached a store; start "
            "processes by 'spawn' or 'forkserver', such as with DataLoader's multiprocessing_context='spawn'"
        )
    _reached_by.add(os.getpid())


@lru_cache(maxsize=32)
def _open(bucket: str, _process: int, settings: tuple[tuple[str, str], ...], patience: float | None) -> "ObjectStore":
    from obstore.store import from_url

    with _configuring(bucket):
        return from_url(bucket, **store_options(bucket, dict(settings), patience))


@contextmanager
def _configuring(bucket: str) -> Iterator[None]:
    """Raises one error for all that is wrong with what the user set."""
    from obstore.exceptions import BaseError

    try:
        from botocore.exceptions import BotoCoreError
    except ImportError:  # then nothing here raises it
        BotoCoreError = BaseError  # noqa: N806
    try:
        yield
    except (BaseError, BotoCoreError, ValueError) as error:
        says = str(error).partition("\n")[0]
        where = f"{SCHEMES[bucket.partition('://')[0]][0]}… in the environment"
        files = " and ~/.aws" if bucket.startswith("s3://") else ""
        raise ConfigError(f"{bucket} cannot be opened as it is configured: {says}; check {where}{files}") from error


def filesystem_of(bucket: str) -> Any:
    """Returns the same as an fsspec filesystem, for what reads by that. Raises as `store_of`."""
    store_of(bucket)  # the filesystem would say what is wrong only when it reads
    return _open_filesystem(bucket, os.getpid(), _settings(bucket))


@lru_cache(maxsize=32)
def _open_filesystem(bucket: str, _process: int, settings: tuple[tuple[str, str], ...]) -> Any:
    from obstore.fsspec import FsspecStore

    new: Any = FsspecStore  # whose hints do not know what fsspec itself takes
    return new(bucket.partition("://")[0], skip_instance_cache=True, **store_options(bucket, dict(settings)))


def _settings(bucket: str) -> tuple[tuple[str, str], ...]:
    prefixes = SCHEMES[bucket.partition("://")[0]]
    return tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith(prefixes)))


def store_options(
    bucket: str, settings: Mapping[str, str] = os.environ, patience: float | None = None
) -> dict[str, Any]:
    """Returns how a store is opened, besides what it takes from the environment by itself.

    Args:
        bucket: The bucket's URL.
        settings: Environment variables.
        patience: As for `store_of`.

    Raises:
        ConfigError: An endpoint is invalid.
    """
    endpoints = {name: value for name, value in settings.items() if _ENDPOINT.fullmatch(name) and value}
    for name, value in endpoints.items():
        _check_endpoint(name, value)
    retried = _RETRIED if patience is None else timedelta(seconds=patience)
    options: dict[str, Any] = {
        "retry_config": {"max_retries": _RETRIES, "retry_timeout": retried},
        "client_options": {"timeout": timedelta(seconds=patience or _TIMEOUT)},
    }
    if bucket.startswith("s3://"):
        if endpoint := endpoint_of(settings):
            options["config"] = {"endpoint": endpoint}
            options["client_options"]["allow_http"] = endpoint.startswith("http://")
        is_signed = settings.get("AWS_SKIP_SIGNATURE", "").lower() not in _TRUE
        if is_signed and "AWS_ACCESS_KEY_ID" not in settings and _has_profile(settings) and is_installed("boto3"):
            import boto3
            from obstore.auth.boto3 import Boto3CredentialProvider

            session = boto3.Session()
            if session.get_credentials() is not None:  # else there is a region only, say
                options["credential_provider"] = Boto3CredentialProvider(session)
            elif session.region_name and not {"AWS_REGION", "AWS_DEFAULT_REGION"} & settings.keys():
                options.setdefault("config", {})["region"] = session.region_name
    if bucket.startswith("az://"):
        is_plain = any(value.startswith("http://") for name, value in endpoints.items() if name.startswith("AZURE_"))
        options["client_options"]["allow_http"] = is_plain
    return options


def _check_endpoint(name: str, value: str) -> None:
    try:
        parts = urlsplit(value)
        is_valid = value.startswith(("http://", "https://")) and parts.hostname and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or re.search(r"\s", value):
        shown = value.rpartition("@")[2]
        raise ConfigError(f"{name}={shown!r} is no endpoint; write it as http://HOST:PORT or https://HOST")


def _has_profile(settings: Mapping[str, str]) -> bool:
    if "AWS_PROFILE" in settings:
        return True
    return any(Path(settings.get(name) or usual).expanduser().is_file() for name, usual in _PROFILES.items())
