"""Records come from anywhere in a file, whole and in the order asked, however they are read together."""

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tfr_assets.records.frames import gather
from tfr_assets.records.frames.gather import Runs, faults_in, lay_out
from tfr_assets.records.frames.scan import FaultKind

from .reference import frame


def gathered(
    path: Path, sizes: list[int], asked: list[int], first: int, threads: int = 1
) -> tuple[list[bytes], dict[int, FaultKind]]:
    records = np.array(asked, np.int64)
    order = np.argsort(records)
    frames = np.empty((len(asked), 3), np.int64)
    bounds = np.cumsum([0, *(size + 16 for size in sizes)], dtype=np.int64)
    runs = Runs(bounds, first, records[order], order, frames)
    buffer, problems = np.full(lay_out(frames) + 64, 0xAA, np.uint8), np.full(len(asked), -1)
    scratch = np.full(gather.SCRATCH, 0xBB, np.uint8)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        cuts = [len(runs) * index // threads for index in range(threads + 1)]
        for start, stop in pairwise(cuts):
            runs.read(descriptor, buffer, problems, scratch, start, stop)
    finally:
        os.close(descriptor)
    assert frames[:, 2].tolist() == asked
    assert all(0 <= start <= stop <= sum(sizes) + 16 * len(sizes) for start, stop in runs.ranges)
    return [buffer[start : start + size].tobytes() for start, size, _ in frames.tolist()], faults_in(problems)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_records_come_in_any_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: st.DataObject) -> None:
    monkeypatch.setattr(gather, "GAP", data.draw(st.sampled_from([0, 20, 200, 8192])))
    monkeypatch.setattr(gather, "SCRATCH", data.draw(st.sampled_from([1, 64, 300, 1 << 18])))
    sizes = data.draw(st.lists(st.integers(0, 90), min_size=1, max_size=40))
    first, random = data.draw(st.integers(0, 1000)), np.random.default_rng(1)
    payloads = [random.bytes(size) for size in sizes]
    path = tmp_path / "x"
    path.write_bytes(b"".join(map(frame, payloads)))
    some = st.lists(st.integers(0, len(sizes) - 1), max_size=60) | st.just([*range(len(sizes))])
    asked = [first + index for index in data.draw(some)]
    found, faults = gathered(path, sizes, asked, first, data.draw(st.integers(1, 3)))
    assert found == [payloads[number - first] for number in asked] and not faults


@pytest.mark.parametrize("gap", [0, 8192])
@pytest.mark.parametrize("asked", [[3, 1, 0, 2], [0, 1, 2, 3], [2], [3, 3, 1]])
def test_damage_is_told_of_the_records_that_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[int], gap: int
) -> None:
    monkeypatch.setattr(gather, "GAP", gap)
    payloads = [b"a" * 30, b"b" * 5, b"c" * 40, b"d" * 20]
    content = bytearray(b"".join(map(frame, payloads)))
    content[46 + 12] ^= 1  # record 1's data
    content[46 + 21 + 8] ^= 1  # record 2's header
    path = tmp_path / "x"
    path.write_bytes(content[:-3])
    found, faults = gathered(path, [30, 5, 40, 20], asked, 0)
    wrong = {1: FaultKind.DATA_CRC, 2: FaultKind.LENGTH_CRC, 3: FaultKind.DATA_CRC}
    assert faults == {at: wrong[number] for at, number in enumerate(asked) if number}
    assert all(found[at] == payloads[0] for at, number in enumerate(asked) if not number)


def test_a_frame_of_another_length_is_not_what_was_indexed(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(frame(b"abc") + frame(b"defgh"))
    assert gathered(path, [4, 4], [0, 1], 0)[1] == {0: FaultKind.CONTENT, 1: FaultKind.LENGTH_CRC}
