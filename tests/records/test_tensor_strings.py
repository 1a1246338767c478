"""Strings that TensorFlow takes: whoever has them frees them, once, whatever happens between."""

import ctypes
import gc
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tfr_assets.records.arrow.arrays import TensorStrings, concatenate
from tfr_assets.records.examples.decoder import Decoder
from tfr_assets.records.schema.features import Feature, FeatureSpec, Kind

from .decoding import values_of
from .reference import message

LARGE = 200_000  # bytes, which glibc gives back to the system at once
SPEC = FeatureSpec((Feature("s", Kind.BYTES, (), "s", "binary", False),))


class _Counts(ctypes.Structure):
    """`struct mallinfo2` of glibc."""

    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]


@pytest.fixture
def in_use() -> Callable[[], int]:
    """How many bytes this process has from `malloc`."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        pytest.skip("needs glibc 2.33, which counts")
    libc.mallinfo2.restype = _Counts

    def count() -> int:
        gc.collect()
        counts = libc.mallinfo2()
        return int(counts.uordblks + counts.hblkhd)

    return count


def record(value: bytes) -> bytes:
    entry = message(0x0A, message(0x0A, b"s"), message(0x12, message(0x0A, message(0x0A, value))))
    return message(0x0A, entry)


def add(decoder: Decoder, payloads: Sequence[bytes]) -> int:
    """Decodes payloads; returns the number of problems."""
    bounds = np.cumsum([0, *map(len, payloads)])
    frames = np.stack([bounds[:-1], np.diff(bounds), np.arange(len(payloads))], 1)
    return len(decoder.add(np.frombuffer(b"".join(payloads) + bytes(64), np.uint8), frames))


def values(count: int) -> list[bytes]:
    return [bytes([number]) * (LARGE if number % 2 else number) for number in range(count)]


def decoded(count: int) -> TensorStrings:
    decoder = Decoder(SPEC, {"s"}, tensor_strings=True)
    decoder.start(count)
    assert not add(decoder, [record(value) for value in values(count)])
    column = decoder.finish()["s"]
    assert isinstance(column, TensorStrings)
    return column


def check_freed(run: Callable[[], None], in_use: Callable[[], int]) -> None:
    """Makes sure that a repetition leaves no more than the first time did: buffers that are used again."""
    counts = []
    for _ in range(4):
        run()
        counts.append(in_use())
    assert counts[-1] < counts[0] + LARGE


def test_what_nobody_takes_is_freed_with_the_last_view(in_use: Callable[[], int]) -> None:
    def run() -> None:
        before = in_use()
        column = decoded(20)
        view = concatenate([column[3:5], column[18:]])
        del column
        assert in_use() > before + 9 * LARGE
        assert values_of(view) == [values(20)[number] for number in (3, 4, 18, 19)]

    check_freed(run, in_use)


def test_records_that_are_left_out_leave_nothing(in_use: Callable[[], int]) -> None:
    decoder = Decoder(SPEC, {"s"}, tensor_strings=True)
    payloads = [record(value) for value in values(20)]

    def run() -> None:
        decoder.start(40)
        assert not add(decoder, payloads)
        assert add(decoder, [*payloads[:10], b"\xff", *payloads[10:]]) == 1
        assert not add(decoder, payloads)
        assert values_of(decoder.finish()["s"]) == values(20) * 2

    check_freed(run, in_use)


@pytest.mark.parametrize("end", ["clear", "start", "drop"])
def test_rows_that_are_given_up_are_freed(in_use: Callable[[], int], end: str) -> None:
    def run() -> None:
        decoder = Decoder(SPEC, {"s"}, tensor_strings=True)
        for _ in range(3):
            decoder.start(4)
            assert not add(decoder, [record(value) for value in values(20)])  # more than there is room for
            if end != "drop":
                getattr(decoder, end)(*[4] * (end == "start"))

    check_freed(run, in_use)


def test_strings_stay_when_there_must_be_room_for_more(in_use: Callable[[], int]) -> None:
    def run() -> None:
        decoder = Decoder(SPEC, {"s"}, tensor_strings=True)
        decoder.start(1)
        for value in values(20):
            assert not add(decoder, [record(value)])
        assert values_of(decoder.finish()["s"]) == values(20)

    check_freed(run, in_use)
