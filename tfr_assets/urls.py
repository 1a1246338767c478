"""URLs of object stores, and the folders of this machine that stand in for what lies below them.

A folder that stands in lies in a spool, by default `~/.cache/tfr-assets/stores`, or `$TFR_SPOOL`:

    stores/s3%3A%2F%2Flake%2Fteam/flights/shards/…       stands in for s3://lake/team/flights/shards/…

So a path tells by itself which object it stands in for, in every process and on every machine. What is called `.…` is
of this machine only. What lies there, and when, is the business of `storage.mirror`.
"""

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, unquote

from tfr_assets.errors import ConfigError

SCHEMES = {"s3": ("AWS_",), "gs": ("GOOGLE_",), "az": ("AZURE_",)}
"""What a URL begins with, and what the names of its store's environment variables begin with."""

SPOOL_VARIABLE = "TFR_SPOOL"
_BUCKET = re.compile(r"[A-Za-z0-9$][A-Za-z0-9._-]*")
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_AZURE_ENDPOINTS = ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")
_AZURE_ACCOUNTS = ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_ACCOUNT_NAME")
_LONGEST = 255  # bytes of a file's name


def is_object_url(path: object) -> bool:
    """Whether a path is the URL of an object store that we read and write by ourselves."""
    return isinstance(path, str) and path.partition("://")[0] in SCHEMES and "://" in path


def split_url(url: str) -> tuple[str, str]:
    """Returns the URL of the bucket, and the key in it without slashes around it.

    Raises:
        ConfigError: It is no URL of an object store, names no bucket, or has a part that no key can have.
    """
    scheme, _, rest = url.partition("://")
    bucket, _, path = rest.partition("/")  # in a key, "?" and "#" are characters like others
    if "@" in bucket:
        raise ConfigError(
            f"{scheme}://…@{bucket.rpartition('@')[2]}: a URL must hold no credentials; set them in the "
            "environment or in the store's own configuration"
        )
    if not is_object_url(url):
        schemes = ", ".join(f"{known}://" for known in SCHEMES)
        raise ConfigError(f"{url}: must be a URL that begins with {schemes}")
    if not bucket:
        raise ConfigError(f"{url}: names no bucket; write {scheme}://BUCKET/FOLDER")
    if not _BUCKET.fullmatch(bucket):
        raise ConfigError(f"{url}: {bucket!r} is no name of a bucket: it must be of letters, digits, '.', '-' and '_'")
    path = path.rstrip("/")
    if path and not {"", ".", ".."}.isdisjoint(path.split("/")):
        raise ConfigError(f"{url}: has an empty part, '.' or '..' in its path; write each folder's name once")
    return f"{scheme}://{bucket}", path


def endpoint_of(settings: Mapping[str, str] = os.environ) -> str | None:
    """Returns where a server that speaks S3 is, if it is not Amazon's."""
    return next((settings[name] for name in _ENDPOINTS if settings.get(name)), None)


def mirror_of(url: str) -> Path:
    """Returns the folder of this machine that stands in for what lies below a URL. Makes nothing.

    Two servers, or accounts, that know a bucket of the same name get a folder each.

    Raises:
        ConfigError: It is no URL of an object store, holds credentials, or is too long for a folder's name.
    """
    bucket, path = split_url(url)
    name = quote(f"{bucket}/{path}".rstrip("/"), safe="")
    if server := _server_of(bucket):
        name += "@" + hashlib.sha256(server.rstrip("/").encode()).hexdigest()[:8]
    if len(name) > _LONGEST:
        raise ConfigError(f"{url}: is too long for the name of a folder that stands in for it; use a shorter prefix")
    return _spool() / name


def _server_of(bucket: str) -> str | None:
    """Returns what tells buckets of the same name apart; None: nothing has to."""
    if bucket.startswith("s3://"):
        return endpoint_of()
    if bucket.startswith("az://"):
        return "/".join(filter(None, map(os.environ.get, (*_AZURE_ENDPOINTS, *_AZURE_ACCOUNTS)))) or None
    return None


def url_of(path: Path) -> str | None:
    """Returns the URL of what a path stands in for; None: it is a file of this machine, and nothing else."""
    spool = _spool()
    if not path.is_relative_to(spool):
        return None
    root, *parts = path.relative_to(spool).parts or (".",)
    if any(part.startswith(".") for part in (root, *parts)):
        return None
    return "/".join([unquote(root.partition("@")[0]), *parts])


def mirror_root(path: Path) -> Path:
    """Returns the folder that `mirror_of` gave, of a path below it."""
    spool = _spool()
    return spool / path.relative_to(spool).parts[0]


def place_of(path: Path) -> str:
    """Returns where something lies, for people: a path, or the URL that it stands in for."""
    return url_of(path) or str(path)


def named(text: str) -> str:
    """Returns a text with URLs in place of the paths that stand in for them."""
    spool = f"{_spool()}/"
    if spool not in text:
        return text
    before, *parts = text.split(spool)
    return before + "".join(unquote(root.partition("@")[0]) + rest for root, rest in map(_first_part, parts))


def _first_part(text: str) -> tuple[str, str]:
    found = re.match(r"[A-Za-z0-9%@._~-]+", text)
    return (found[0], text[found.end() :]) if found else ("", text)


def scans_folder() -> Path:
    """Returns the folder of this machine in which is kept what was found in files of other origin by URL."""
    return _spool().parent / "foreign"


def _spool() -> Path:
    if value := os.environ.get(SPOOL_VARIABLE):  # set but empty counts as unset
        return Path(value).expanduser().absolute() / "stores"
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser().absolute() / "tfr-assets" / "stores"
