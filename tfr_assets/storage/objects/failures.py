"""What an object store refuses → one sentence of the project's errors: what, where, and what to do."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from tfr_assets.errors import SourceError, TfrError
from tfr_assets.urls import endpoint_of, split_url

_CODE = re.compile(r"<Code>(\w+)</Code>|\b(ExpiredToken|NoSuchBucket|AccessDenied|InvalidAccessKeyId)\b")
_STATUS = re.compile(r"status code: (\d{3})|HTTPStatusCode': (\d{3})")
_RETRIED = re.compile(r"after (\d+) retries")
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")  # of S3 and Google, of Azure
_CREDENTIALS = {"s3": "AWS_ACCESS_KEY_ID", "gs": "GOOGLE_SERVICE_ACCOUNT", "az": "AZURE_STORAGE_ACCOUNT_KEY"}
_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired", "InvalidToken"}
_UNKNOWN = {"InvalidAccessKeyId", "SignatureDoesNotMatch", "AuthorizationHeaderMalformed", "AuthenticationFailed"}


@contextmanager
def store_errors(url: str, error: type[TfrError] = SourceError) -> Iterator[None]:
    """Raises one clear error for whatever a store refuses while the block runs.

    An object that is not there is a FileNotFoundError as before, and a condition that does not hold is an error of
    obstore, because both may be expected.

    Args:
        url: What is read or written.
        error: The class of the error.
    """
    from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

    try:
        yield
    except (AlreadyExistsError, PreconditionError):
        raise
    except FileNotFoundError as caught:
        if is_without_bucket(caught):
            raise error(describe(url, str(caught))) from None
        raise
    except (BaseError, OSError) as caught:
        if isinstance(caught, OSError) and caught.errno is not None:
            raise  # of a local file
        raise error(describe(url, f"{type(caught).__name__}: {caught}")) from None


def is_without_bucket(error: Exception) -> bool:
    """Whether a store says that it is the bucket that is not there, and not an object in it."""
    return any(code in str(error) for code in _NO_BUCKET)


def describe(url: str, text: str) -> str:
    """Returns a sentence for a store's own words.

    Args:
        url: What was read or written.
        text: What the store, or its client, said. Of it, only codes and numbers are shown, or its first line.
    """
    bucket = split_url(url)[0]
    code = next((a or b for a, b in _CODE.findall(text)), "")
    status = next((int(a or b) for a, b in _STATUS.findall(text)), 0)
    retries = _RETRIED.search(text)
    after = f" after {retries[1]} retries" if retries else ""
    says = f"{status} {code}".strip(" 0") or "no answer"
    variable = _CREDENTIALS[bucket.partition("://")[0]]
    if code in _NO_BUCKET:
        return f"{url}: there is no bucket {bucket}; make it, or correct the URL"
    if "/latest/api/token" in text or "/latest/meta-data" in text or "NoCredentials" in text:
        return f"{url}: there is no credential; set one in the environment, such as {variable}, or in its configuration"
    if code in _EXPIRED:
        return f"{url}: the credential has expired ({code}); get a new one, then run again"
    if code in _UNKNOWN:
        return f"{url}: the store does not know this credential ({code}); check the access key, secret and region"
    if status == 401 or "Unauthenticated" in text:
        return f"{url}: the store asks for a credential ({says}); set it in the environment, such as {variable}"
    if status == 403 or "PermissionDenied" in text:
        return f"{url}: no permission ({says}); the credential must allow to read, write and list there"
    if status >= 500 or code == "SlowDown":
        return f"{url}: the store failed{after} ({says}); run again when it is well"
    if "error sending request" in text or "Connect" in text or "timed out" in text or "EndpointConnection" in text:
        at = endpoint_of(os.environ) if bucket.startswith("s3://") else None
        store = f"the store at {at}" if at else "the store"
        return f"{url}: {store} cannot be reached{after}; check the endpoint and the network"
    if status:
        return f"{url}: the store refused ({says})"
    return f"{url}: {text.splitlines()[0]:.300}"
