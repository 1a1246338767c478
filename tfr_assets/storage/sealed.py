"""JSON files that carry their own checksum: the first entry is a SHA-256 of every byte after it.

A changed bit anywhere in such a file, a cut, or an edit by hand is noticed, because the checksum is over the bytes as
they lie in the file rather than over the values that a parser makes of them. SHA-256 comes with Python, so that nothing
compiled is loaded where a manifest is read; and it is computed before anything is parsed, so that no damaged file ever
reaches the parser.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

_HEAD, _TAIL = b'{\n "checksum": "', b'",'
_DIGITS = 64  # of a SHA-256


def seal(values: Mapping[str, Any], sort: bool = False) -> bytes:
    """Returns the content of a sealed file.

    Args:
        values: Its content, JSON-ready, at least one entry.
        sort: Whether the order of entries means nothing, so that equal values give equal bytes.
    """
    rest = json.dumps(values, indent=1, sort_keys=sort)[1:].encode() + b"\n"
    return b"".join((_HEAD, _checksum(rest), _TAIL, rest))


def unseal(content: bytes) -> dict[str, Any] | None:
    """Returns the values in a sealed file's content, or None where it is not exactly what `seal` gave."""
    start = len(_HEAD) + _DIGITS + len(_TAIL)
    rest = memoryview(content)[start:]
    if content[:start] != b"".join((_HEAD, _checksum(rest), _TAIL)):
        return None
    try:
        values = json.loads(b"{" + rest)
    except (ValueError, RecursionError):  # sealed by something else than `seal`
        return None
    return values if isinstance(values, dict) else None


def _checksum(rest: bytes | memoryview) -> bytes:
    return hashlib.sha256(rest).hexdigest().encode()
