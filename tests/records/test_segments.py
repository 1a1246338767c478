"""Segments: their digests follow from the marks, and the one record that is lost from the others."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfr_assets.errors import DamagedFile, StaleError
from tfr_assets.records.examples.writer import write_file
from tfr_assets.records.frames import marks
from tfr_assets.records.frames.compression import CompressedInput, InputStream, PlainInput
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.frames.segments import Range, read_segment, segments_of
from tfr_assets.records.kernels.crc32c import masked_crc32c
from tfr_assets.records.kernels.digest import digest_frames, lost_record

from .reference import examples
from .streams import as_frames

RECORDS = [bytes([i]) * (i % 9) for i in range(60)]


def digest_of(records: list[bytes]) -> int:
    frames = as_frames(records)
    return digest_frames(0, frames.data, frames.sizes)


@examples(100)
@given(st.lists(st.binary(max_size=20), min_size=1, max_size=30), st.data())
def test_a_lost_record_follows_from_the_digest(records: list[bytes], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(records) - 1))
    rest = records[:at] + records[at + 1 :]
    found = lost_record(digest_of(records), digest_of(records[:at]), digest_of(rest), len(rest) - at)
    assert found == (len(records[at]), masked_crc32c(records[at]))


@pytest.fixture(params=["none", "gzip"])
def wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Range:
    monkeypatch.setattr(marks, "SPAN", 100)
    path = tmp_path / "file"
    manifest = write_file(path, [as_frames(RECORDS)], request.param)
    return Range(str(path), manifest, segments_of(manifest), 0, manifest.records)


def test_segments_cover_a_file_and_have_their_digests(wanted: Range) -> None:
    assert len(wanted.segments) > 5
    at = 0
    for segment in wanted.segments:
        assert segment.first == at
        at += segment.records
        assert segment.digest == digest_of(RECORDS[segment.first : at])
    assert at == len(RECORDS)
    assert wanted.segments[-1].stop == wanted.manifest.stream_bytes


def read(wanted: Range, skip: bool) -> list[int]:
    """Returns the indices of the records that are given."""
    given: list[int] = []
    with Path(wanted.path).open("rb", buffering=0) as file:
        compression = wanted.manifest.compression
        stream: InputStream = (
            PlainInput(file.fileno()) if compression == "none" else CompressedInput(file.fileno(), compression)
        )
        for segment in wanted.segments:
            visited: list[np.ndarray] = []
            visit = partial(_keep, visited)
            read_segment(stream, wanted, segment, visit, skip)
            given += np.concatenate(visited).tolist()
    return given


def _keep(visited: list[np.ndarray], buffer: np.ndarray, frames: np.ndarray, offset: int) -> None:
    visited.append(frames[:, 2].copy())


def rewrite(wanted: Range, records: list[bytes], change: Callable[[bytearray], None] = lambda content: None) -> None:
    """Puts other records into the file, and leaves its manifest as it is."""
    path, manifest_of_it = Path(wanted.path), wanted.manifest
    write_file(path, [as_frames(records)], manifest_of_it.compression)
    manifest_of_it.save(path)
    if manifest_of_it.compression == "none":
        content = bytearray(path.read_bytes())
        change(content)
        path.write_bytes(content)


@pytest.mark.parametrize("skip", [False, True])
def test_intact_records_that_are_others_are_refused(wanted: Range, skip: bool) -> None:
    assert read(wanted, skip) == list(range(60))
    other = [*RECORDS[:40], RECORDS[40][:-1] + b"x" if RECORDS[40] else b"", *RECORDS[41:]]
    assert other != RECORDS
    rewrite(wanted, other)
    with pytest.raises(StaleError, match="is not the file that its manifest described"):
        read(wanted, skip)


@pytest.mark.parametrize("skip", [False, True])
def test_one_damaged_record_does_not_hide_another_version(wanted: Range, skip: bool) -> None:
    if wanted.manifest.compression != "none":
        pytest.skip("damage of a compressed file is that of its stream")
    at = sum(len(record) + 16 for record in RECORDS[:30])

    def damage(content: bytearray) -> None:
        content[at + 2] ^= 1

    rewrite(wanted, RECORDS, damage)
    assert read(wanted, skip) == [i for i in range(60) if i != 30]  # proven
    other = list(RECORDS)
    other[31] = b"?" * len(RECORDS[31])
    rewrite(wanted, other, damage)
    with pytest.raises(StaleError):
        read(wanted, skip)


def test_a_manifest_that_changed_tells_damage_from_a_refresh(wanted: Range) -> None:
    path = Path(wanted.path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DamagedFile):
        read(wanted, skip=False)
    write_file(path.with_name("other"), [])
    Manifest("file", 0, 0, 0, "none", "0" * 16, None).save(path)
    for skip in (False, True):
        with pytest.raises(StaleError):
            read(wanted, skip)
