"""What S3 does inside of itself, by its own client: joining objects part by part, and ending uploads that were left.

obstore has neither. Where this client is not installed, or the store is another one, callers do without.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tfr_assets.errors import WriteError
from tfr_assets.packages import is_installed
from tfr_assets.storage.objects.failures import describe
from tfr_assets.storage.objects.folder import ObjectFolder
from tfr_assets.urls import endpoint_of, split_url

SMALLEST_PART = 5 << 20  # bytes that S3 asks of every part but the last
LARGEST_PART = 1 << 30  # bytes that are copied at once; S3 takes five times as many
_ANSWERS = 6  # to one request, of which all but the last may be lost in their middle
_REGION = "us-east-1"  # where nothing else is said, as obstore has it


@dataclass(frozen=True)
class Source:
    """An object to copy from.

    Attributes:
        url: Where it is.
        size: Its bytes.
        etag: Of the version that is copied; another one is refused.
    """

    url: str
    size: int
    etag: str


@dataclass(frozen=True)
class Piece:
    """Bytes of a source.

    Attributes:
        source: Which of the sources.
        start: First byte.
        stop: The one behind the last.
    """

    source: int
    start: int
    stop: int

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self.stop - self.start


@dataclass(frozen=True)
class Part:
    """What becomes one part of an object.

    Attributes:
        pieces: Where its bytes come from, in order.
        is_copied: Whether the store copies it by itself; else its bytes are fetched and sent.
    """

    pieces: tuple[Piece, ...]
    is_copied: bool


def can_join(urls: Sequence[str]) -> bool:
    """Whether a store joins these objects by itself: they are of one bucket of S3, and its client is installed."""
    buckets = {split_url(url)[0] for url in urls}
    return len(buckets) == 1 and buckets.pop().startswith("s3://") and is_installed("boto3")


def plan_parts(sizes: Sequence[int], smallest: int = SMALLEST_PART, largest: int = LARGEST_PART) -> list[Part]:
    """Returns the parts that objects of these sizes become when they are joined.

    As much as possible is copied by the store. What is shorter than a part may be, is fetched and sent together with
    the beginning of what follows: less than twice the smallest part of every object.

    Args:
        sizes: Bytes of each object.
        smallest: Bytes that every part but the last must have.
        largest: Bytes that a part may have.
    """
    parts: list[Part] = []
    waiting: list[Piece] = []  # fewer bytes than a part must have
    last = max((source for source, size in enumerate(sizes) if size), default=-1)
    for source, size in enumerate(sizes):
        start = 0
        if waiting and size:  # it must be filled up to a whole part, or by all that would be left of this object
            lacking = smallest - sum(piece.size for piece in waiting)
            start = lacking if size - lacking >= (1 if source == last else smallest) else size
            waiting.append(Piece(source, 0, start))
            if start >= lacking:
                parts.append(Part(tuple(waiting), is_copied=False))
                waiting = []
        left = size - start
        if left >= smallest or (left and source == last):
            count = -(-left // largest)
            cuts = [start + left * number // count for number in range(count + 1)]
            parts += [Part((Piece(source, *cut),), is_copied=True) for cut in pairwise(cuts)]
        elif left:
            waiting.append(Piece(source, start, size))
    if waiting:
        parts.append(Part(tuple(waiting), is_copied=False))
    return parts


@contextmanager
def joining(sources: Sequence[Source], target: str, progress: Callable[[int], None] | None = None) -> Iterator[None]:
    """Joins objects inside of the store, and runs the block; when that ends without an error, the result appears.

    Args:
        sources: At least one byte in all; see `can_join`.
        target: URL of the result.
        progress: Called with the number of bytes that were just joined.

    Raises:
        WriteError: The store refused, or a source is another one by now. Nothing appeared.
    """
    bucket, key = split_url(target)
    name = bucket.partition("://")[2]
    with _errors(target):
        client = _client()
        upload = client.create_multipart_upload(Bucket=name, Key=key)["UploadId"]
    place = {"Bucket": name, "Key": key, "UploadId": upload}
    try:
        with _errors(target):
            done = []
            for number, part in enumerate(plan_parts([source.size for source in sources]), 1):
                done.append({"ETag": _send(client, place, number, part, sources), "PartNumber": number})
                if progress:
                    progress(sum(piece.size for piece in part.pieces))
        _check_versions(sources, target)
        yield
        with _errors(target):
            _complete(client, place, done, ObjectFolder(target), sum(source.size for source in sources))
    except BaseException:
        with _quietly():
            client.abort_multipart_upload(**place)
        raise


def _check_versions(sources: Sequence[Source], target: str) -> None:
    """Refuses sources that are others by now: not every store looks at the condition of a copy."""
    for source in sources:
        folder, _, key = source.url.rpartition("/")
        stat = ObjectFolder(folder).stat(key)
        if stat is None or stat.etag != source.etag:
            raise WriteError(_replaced(target))


def _complete(client: Any, place: dict[str, str], parts: list[dict[str, Any]], target: ObjectFolder, size: int) -> None:
    try:
        client.complete_multipart_upload(**place, MultipartUpload={"Parts": parts})
    except client.exceptions.NoSuchUpload:
        # the answer to its end was lost, and the upload is not known any more when it is ended again
        stat = target.stat("")
        if stat is None or stat.size != size:
            raise


def _send(client: Any, place: dict[str, str], number: int, part: Part, sources: Sequence[Source]) -> str:
    if part.is_copied:
        piece, source = part.pieces[0], sources[part.pieces[0].source]
        bounds = {} if piece.size == source.size else {"CopySourceRange": f"bytes={piece.start}-{piece.stop - 1}"}
        answer = client.upload_part_copy(
            **place, **bounds, PartNumber=number, CopySource=_bucket_and_key(source.url), CopySourceIfMatch=source.etag
        )
        return str(answer["CopyPartResult"]["ETag"])
    content = b"".join(_fetch(client, sources[piece.source], piece) for piece in part.pieces)
    return str(client.upload_part(**place, PartNumber=number, Body=content)["ETag"])


def _fetch(client: Any, source: Source, piece: Piece) -> bytes:
    from botocore.exceptions import HTTPClientError, IncompleteReadError

    bounds = f"bytes={piece.start}-{piece.stop - 1}"
    for left in reversed(range(_ANSWERS)):
        answer = client.get_object(**_bucket_and_key(source.url), Range=bounds, IfMatch=source.etag)
        try:
            return bytes(answer["Body"].read())
        except (HTTPClientError, IncompleteReadError):  # the client tries again only what has no answer yet
            if not left:
                raise
    raise AssertionError


def abort_uploads(folder: ObjectFolder, pattern: str) -> int:
    """Ends uploads that a killed writer left, whose parts nobody sees but everybody pays for.

    Only the holder of the lock of what is written there may do that: nobody else has one open.

    Args:
        folder: Where they are.
        pattern: Regular expression of their whole keys in the folder.

    Returns:
        Number of these. Stores other than S3 forget them by themselves, so that there are none.
    """
    if not folder.bucket.startswith("s3://") or not is_installed("boto3"):
        return 0
    found, prefix = 0, folder.path("")
    name, start = folder.bucket.partition("://")[2], len(prefix) + 1 if prefix else 0
    with _quietly():  # a credential that may only write is enough to write
        client = _client()
        for page in client.get_paginator("list_multipart_uploads").paginate(
            Bucket=name, Prefix=prefix and f"{prefix}/"
        ):
            for upload in page.get("Uploads", ()):
                if re.fullmatch(pattern, upload["Key"][start:]):
                    client.abort_multipart_upload(Bucket=name, Key=upload["Key"], UploadId=upload["UploadId"])
                    found += 1
    return found


def _client() -> Any:
    import boto3
    from botocore.config import Config

    session = boto3.Session()
    region = os.environ.get("AWS_REGION") or session.region_name or _REGION
    style = {"addressing_style": "path"} if endpoint_of() else {}
    return session.client(
        "s3",
        endpoint_url=endpoint_of(),
        region_name=region,
        config=Config(retries={"mode": "standard", "total_max_attempts": 7}, s3=style),
    )


def _bucket_and_key(url: str) -> dict[str, str]:
    bucket, key = split_url(url)
    return {"Bucket": bucket.partition("://")[2], "Key": key}


def _replaced(url: str) -> str:
    return f"{url}: what was to be joined was replaced meanwhile; run again"


@contextmanager
def _errors(url: str) -> Iterator[None]:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        answer = error.response.get("Error", {})
        if answer.get("Code") in ("PreconditionFailed", "NoSuchKey", "412"):
            raise WriteError(_replaced(url)) from None
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        raise WriteError(describe(url, f"<Code>{answer.get('Code')}</Code> status code: {status}")) from None
    except BotoCoreError as error:
        raise WriteError(describe(url, f"{type(error).__name__}: {error}")) from None


@contextmanager
def _quietly() -> Iterator[None]:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError):
        return
