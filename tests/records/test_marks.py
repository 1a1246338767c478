"""Marks: what a manifest knows of the middle of its file is what a scan finds there."""

import hashlib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfr_assets
from tfr_assets.bench.writers.measured import MEASURED
from tfr_assets.records.examples.writer import write_file
from tfr_assets.records.frames import marks
from tfr_assets.records.frames.examine import examine_written, is_intact
from tfr_assets.records.frames.manifest import Manifest, Mark
from tfr_assets.records.frames.marks import SPAN, Marker
from tfr_assets.records.frames.merge import merge_files
from tfr_assets.records.frames.scan import FaultKind, scan_stream

from .reference import examples, offsets
from .streams import Memory, Seen, as_frames, scan

_payloads = st.lists(st.binary(max_size=60), max_size=25)
_cuts = st.lists(st.integers(0, 25), max_size=4).map(sorted)
COMPRESSIONS = ["none", "gzip", "zlib"]


@pytest.fixture(autouse=True)
def short_span(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "real_span" not in request.node.name:
        monkeypatch.setattr(marks, "SPAN", 100)


def expected_marks(payloads: list[bytes]) -> list[Mark]:
    """Behind each record with which 100 bytes have come since the last, by scanning what lies before."""
    ends, found, last = offsets(payloads), [], 0
    for records in range(1, len(payloads)):
        if ends[records] - last >= 100:
            last = ends[records]
            found.append(Mark(records, last, digest(payloads[:records])))
    return found


def digest(payloads: list[bytes]) -> int:
    return scan(bytes(as_frames(payloads).data))[0].digest


@examples(100)
@given(payloads=_payloads, cuts=_cuts)
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_marks_are_what_a_scan_finds_however_many_records_are_written_at_once(
    payloads: list[bytes], cuts: list[int], compression: str, tmp_path: Path
) -> None:
    bounds = [0, *cuts, 25]
    pieces = [as_frames(payloads[start:stop]) for start, stop in pairwise(bounds)]
    manifest = write_file(tmp_path / "file", pieces, compression)
    assert list(manifest.marks) == expected_marks(payloads)
    assert Manifest.load(tmp_path / "file") == manifest
    assert manifest.bounds[-1] == Mark(len(payloads), offsets(payloads)[-1], digest(payloads))


@examples(60)
@given(parts=st.lists(_payloads, max_size=4))
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_the_marks_of_a_merged_file_are_what_a_scan_of_it_finds(
    parts: list[list[bytes]], compression: str, tmp_path: Path
) -> None:
    paths = [tmp_path / f"part-{n}" for n in range(len(parts))]
    inputs = [(p, write_file(p, [as_frames(part)], compression)) for p, part in zip(paths, parts, strict=True)]
    merged = merge_files(inputs, tmp_path / "merged")
    payloads = [payload for part in parts for payload in part]
    ends = offsets(payloads)
    for mark in merged.bounds:
        assert (mark.bytes, mark.digest) == (ends[mark.records], digest(payloads[: mark.records]))
    apart = np.diff([mark.bytes for mark in merged.bounds[:-1]])
    assert (apart >= 100).all() and (np.diff([mark.bytes for mark in merged.bounds]) < 2 * (100 + 60 + 16)).all()
    assert Manifest.load(tmp_path / "merged") == merged


def test_the_real_span(tmp_path: Path) -> None:
    sizes = [SPAN // 4, 5, *[SPAN // 4] * 3, 5, *[SPAN // 4] * 4]
    data = np.zeros(sum(sizes) + 16 * len(sizes), np.uint8)  # not framed: where marks stand depends on sizes only
    marker = Marker()
    marker.append(data.data, np.array(sizes) + 16)
    assert [mark.records for mark in marker.marks] == [5] and marker.end.records == 10


@pytest.mark.parametrize("writer", ["sharded_threads", "single_writer_queue", "serial"])
def test_marks_do_not_depend_on_the_number_of_workers(
    writer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: dict[str, Any] = {"n": range(30_000), "text": [hashlib.sha256(b"%d" % n).hexdigest() for n in range(30_000)]}
    monkeypatch.setattr(marks, "SPAN", 300_000)
    found = []
    for workers in (1, 3):
        path = tmp_path / f"{workers}" / "data"
        written = tfr_assets.write(rows, path, shards=2, writer=MEASURED[writer], workers=workers)
        found.append([manifest.marks for manifest in written.manifests])
    assert found[0] == found[1] and all(found[0])


@examples(150)
@given(payloads=_payloads, damage=st.lists(st.tuples(st.integers(0), st.integers(0, 7)), max_size=3), cut=st.booleans())
@pytest.mark.parametrize(("piece", "sized"), [(1 << 30, True), (7, True), (40, False)])
def test_the_digest_is_told_where_it_is_asked_for_and_nothing_else_changes(
    payloads: list[bytes], damage: list[tuple[int, int]], cut: bool, piece: int, sized: bool
) -> None:
    content = bytearray(as_frames(payloads).data)
    ends = offsets(payloads)
    for place, bit in damage if content else []:
        content[place % len(content)] ^= 1 << bit
    content = content[: len(content) * 2 // 3] if cut else content
    seen, other = Seen(), Seen()
    stops = [place for place in range(1, len(content) + 30) if place in ends or place % 11 == 0]
    found = scan_stream(Memory(bytes(content), piece, sized), "memory", seen, stops=stops)
    assert replace(found, stops=()) == scan_stream(Memory(bytes(content), piece, sized), "memory", other)
    assert seen == other
    if not damage and not cut:
        expected = {end: (n, digest(payloads[:n])) for n, end in enumerate(ends) if n}
        assert {place: (n, so_far) for place, n, so_far in found.stops} == expected


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_marks_that_are_not_those_of_the_file_are_found(compression: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    manifest = write_file(path, [as_frames([b"x" * 40] * 9)], compression)
    assert len(manifest.marks) == 4 and examine_written(path)[0].ok and is_intact(path, manifest)
    first, *rest = manifest.marks
    for wrong in (
        (replace(first, digest=first.digest ^ 1), *rest),
        (replace(first, bytes=first.bytes + 1), *rest),
        (replace(first, records=first.records - 1), *rest),
    ):
        replace(manifest, marks=wrong).save(path)
        (fault,) = examine_written(path)[0].faults
        assert fault.kind is FaultKind.MANIFEST and "its marks are not those of the file" in str(fault)
        assert not is_intact(path, replace(manifest, marks=wrong))
    replace(manifest, marks=tuple(rest)).save(path)  # it need not have all of them
    assert examine_written(path)[0].ok
