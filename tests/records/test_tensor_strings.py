"""Strings that TensorFlow takes: whoever has them frees them, once, whatever happens between."""

import pytest

from tests.allocated import check_freed, in_use
from tfr_assets.records.arrow.arrays import concatenate
from tfr_assets.records.examples.decoder import Decoder
from tfr_assets.records.kernels.tensor_strings import StringSlots

from .decoding import STRING, add, single, tensor_strings, values_of

LARGE = 200_000  # bytes, which glibc gives back to the system at once


def values(count: int) -> list[bytes]:
    return [bytes([number]) * (LARGE if number % 2 else number) for number in range(count)]


def test_what_nobody_takes_is_freed_with_the_last_view() -> None:
    def run() -> None:
        before = in_use()
        column = tensor_strings(values(20))
        view = concatenate([column[3:5], column[18:]])
        del column
        assert in_use() > before + 9 * LARGE
        assert values_of(view) == [values(20)[number] for number in (3, 4, 18, 19)]

    check_freed(run, LARGE)


def test_records_that_are_left_out_leave_nothing() -> None:
    decoder = Decoder(STRING, {"s"}, tensor_strings=True)
    payloads = [single(value) for value in values(20)]

    def run() -> None:
        decoder.start(40)
        assert not add(decoder, payloads)
        assert add(decoder, [*payloads[:10], b"\xff", *payloads[10:]]) == 1
        assert not add(decoder, payloads)
        assert values_of(decoder.finish()["s"]) == values(20) * 2

    check_freed(run, LARGE)


@pytest.mark.parametrize("end", ["clear", "start", "drop"])
def test_rows_that_are_given_up_are_freed(end: str) -> None:
    def run() -> None:
        decoder = Decoder(STRING, {"s"}, tensor_strings=True)
        for _ in range(3):
            decoder.start(4)
            assert not add(decoder, [single(value) for value in values(20)])  # more than there is room for
            if end != "drop":
                getattr(decoder, end)(*[4] * (end == "start"))

    check_freed(run, LARGE)


def test_strings_stay_when_there_must_be_room_for_more() -> None:
    def run() -> None:
        decoder = Decoder(STRING, {"s"}, tensor_strings=True)
        decoder.start(1)
        for value in values(20):
            assert not add(decoder, [single(value)])
        assert values_of(decoder.finish()["s"]) == values(20)

    check_freed(run, LARGE)


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")  # of what fails in a `__del__`
def test_room_that_memory_does_not_have_is_an_error() -> None:
    with pytest.raises(MemoryError):
        StringSlots(10**15)
