"""The digest of a file follows from its records, and that of a merge from its parts."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tfr_assets.records.kernels.digest import combine, digest_frames, second_part, to_text

from .reference import crc32c, examples, masked
from .streams import as_frames, scan

_payloads = st.lists(st.binary(max_size=20), max_size=12)
_MODULUS = 2**64


def digest(payloads: list[bytes], before: int = 0) -> int:
    frames = as_frames(payloads)
    return digest_frames(before, frames.data, frames.sizes)


def by_definition(payloads: list[bytes]) -> int:
    total = 0
    for payload in payloads:
        z = (len(payload) << 32) ^ masked(crc32c(payload))
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % _MODULUS
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % _MODULUS
        total = (total * 0x9E3779B97F4A7C15 + (z ^ (z >> 31))) % _MODULUS
    return total


@examples(200)
@given(payloads=_payloads)
def test_the_digest_is_what_its_definition_says(payloads: list[bytes]) -> None:
    assert digest(payloads) == by_definition(payloads)


@examples(200)
@given(parts=st.lists(_payloads, max_size=5))
def test_the_digest_of_a_concatenation_follows_from_its_parts(parts: list[list[bytes]]) -> None:
    total = 0
    for part in parts:
        total = combine(total, digest(part), len(part))
    assert total == digest([payload for part in parts for payload in part])


@examples(200)
@given(payloads=_payloads, first=st.integers(0, 12), last=st.integers(0, 12))
def test_the_digest_of_a_middle_part_follows_from_what_is_known_at_its_ends(
    payloads: list[bytes], first: int, last: int
) -> None:
    part = payloads[first:last]
    before = digest(payloads[:first])
    assert second_part(digest(payloads[: max(first, last)]) if part else before, before, len(part)) == digest(part)


@examples(100)
@given(payloads=_payloads, cut=st.integers(0, 12))
def test_frames_may_be_added_in_pieces(payloads: list[bytes], cut: int) -> None:
    assert digest(payloads[cut:], digest(payloads[:cut])) == digest(payloads)


@examples(100)
@given(payloads=_payloads)
def test_a_scan_computes_the_digest_that_writing_did(payloads: list[bytes]) -> None:
    found, _ = scan(bytes(as_frames(payloads).data))
    assert found.digest == digest(payloads)


@examples(100)
@given(payloads=st.lists(st.binary(max_size=20), min_size=2, max_size=8, unique=True), data=st.data())
def test_order_number_and_content_count(payloads: list[bytes], data: st.DataObject) -> None:
    other = data.draw(st.permutations(payloads))
    assert (digest(list(other)) == digest(payloads)) == (list(other) == payloads)
    index = data.draw(st.integers(0, len(payloads) - 1))
    assert digest(payloads[:index] + payloads[index + 1 :]) != digest(payloads)
    assert digest([*payloads[:index], payloads[index] + b"\0", *payloads[index + 1 :]]) != digest(payloads)


def test_empty_records_count() -> None:
    digests = {digest([b""] * count) for count in range(50)}
    assert len(digests) == 50 and digest([]) == 0


def test_text_is_sixteen_hex_digits() -> None:
    assert to_text(0) == "0" * 16
    assert to_text(_MODULUS - 1) == "f" * 16
    assert int(to_text(digest([b"x"])), 16) == digest([b"x"])


def test_nothing_changes_nothing() -> None:
    assert digest_frames(5, memoryview(b""), np.empty(0, np.int64)) == 5
    assert combine(5, 0, 0) == 5
