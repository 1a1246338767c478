"""A merged file is the concatenation of its inputs, byte for byte where that can be, record for record always."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfr_assets.errors import DamagedFile, WriteError
from tfr_assets.layout import index_path, manifest_path
from tfr_assets.records.examples.writer import write_file
from tfr_assets.records.frames import merge
from tfr_assets.records.frames.examine import examine, is_intact
from tfr_assets.records.frames.index import read_index
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.frames.merge import copy_range, merge_files

from .reference import examples, offsets
from .streams import as_frames

PARTS = [[b"foo", b"", b"x" * 300], [b"bar"], [b"y" * 2000, b"z"]]
ALL = [payload for part in PARTS for payload in part]
TENSORFLOWS = {"none": "", "gzip": "GZIP", "zlib": "ZLIB"}
Inputs = list[tuple[Path, Manifest]]


def inputs_of(folder: Path, parts: Sequence[Sequence[bytes]], compression: str = "none") -> Inputs:
    found = []
    for n, part in enumerate(parts):
        path = folder / f"part-{n}"
        found.append((path, write_file(path, [as_frames(part)], compression)))
    return found


@examples(40)
@given(parts=st.lists(st.lists(st.binary(max_size=30), max_size=4), max_size=6))
@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_merging_equals_writing_at_once(parts: list[list[bytes]], compression: str, tmp_path: Path) -> None:
    inputs = inputs_of(tmp_path, parts, compression)
    merged = merge_files(inputs, tmp_path / "merged", made_from={"some": "thing"})
    payloads = [payload for part in parts for payload in part]
    whole = write_file(tmp_path / "whole", [as_frames(payloads)], compression if parts else "none")
    assert merged == replace(whole, file="merged", bytes=merged.bytes, made_from={"some": "thing"})
    assert Manifest.load(tmp_path / "merged") == merged
    assert is_intact(tmp_path / "merged", merged)
    assert read_index(index_path(tmp_path / "merged"))[:, 0].tolist() == offsets(payloads)[:-1]
    if compression != "gzip":  # its members stay apart
        assert (tmp_path / "merged").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_tensorflow_reads_all_records_of_a_merged_file(compression: str, tf: Any, tmp_path: Path) -> None:
    parts = [[], *PARTS[:1], [], [], *PARTS[1:], []]  # it would stop at an empty gzip member, and behind a zlib stream
    merge_files(inputs_of(tmp_path, parts, compression), tmp_path / "merged")
    found = [r.numpy() for r in tf.data.TFRecordDataset(str(tmp_path / "merged"), TENSORFLOWS[compression])]
    assert found == ALL


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_inputs_without_any_record_make_a_file_without_records(compression: str, tf: Any, tmp_path: Path) -> None:
    merged = merge_files(inputs_of(tmp_path, [[], [], []], compression), tmp_path / "merged")
    assert (merged.records, merged.compression) == (0, compression)
    assert is_intact(tmp_path / "merged", merged)
    assert list(tf.data.TFRecordDataset(str(tmp_path / "merged"), TENSORFLOWS[compression])) == []


def test_uncompressed_bytes_and_gzip_members_are_copied_as_they_are(tmp_path: Path) -> None:
    for compression in ("none", "gzip"):
        inputs = inputs_of(tmp_path, PARTS, compression)
        merged = merge_files(inputs, tmp_path / "merged")
        assert (tmp_path / "merged").read_bytes() == b"".join(path.read_bytes() for path, _ in inputs)
        assert merged.bytes == sum(manifest.bytes for _, manifest in inputs)


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_progress_adds_up_to_what_was_copied(compression: str, tmp_path: Path) -> None:
    inputs = inputs_of(tmp_path, PARTS, compression)
    steps: list[int] = []
    merge_files(inputs, tmp_path / "merged", progress=steps.append)
    assert sum(steps) == sum(path.stat().st_size for path, _ in inputs)


def test_merging_twice_gives_equal_files_and_leaves_nothing_else(tmp_path: Path) -> None:
    inputs = inputs_of(tmp_path / "in", PARTS)
    target = tmp_path / "out" / "merged"
    first = merge_files(inputs, target)
    content = target.read_bytes()
    assert merge_files(inputs, target) == first
    assert target.read_bytes() == content
    assert sorted(path.name for path in target.parent.rglob("*") if path.is_file()) == [
        "merged", "merged.idx", "merged.json",
    ]  # fmt: skip


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_an_input_that_ends_early_is_named(compression: str, tmp_path: Path) -> None:
    inputs = inputs_of(tmp_path, PARTS, compression)
    path = inputs[1][0]
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(DamagedFile, match=r"part-1 ends 3 bytes early"):
        merge_files(inputs, tmp_path / "merged")
    assert not (tmp_path / "merged").exists() and not manifest_path(tmp_path / "merged").exists()
    assert not index_path(tmp_path / "merged").exists()


@pytest.mark.parametrize("damage", ["short", "flipped", "trailing"])
def test_a_damaged_zlib_input_is_named(damage: str, tmp_path: Path) -> None:
    inputs = inputs_of(tmp_path, PARTS, "zlib")
    path = inputs[1][0]
    content = path.read_bytes()
    path.write_bytes({"short": content[:-1], "flipped": content[:-1] + b"\0", "trailing": content + b"\0"}[damage])
    with pytest.raises(DamagedFile, match="part-1"):
        merge_files(inputs, tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


@pytest.mark.parametrize("damage", [None, b"", b"0 20\n", b"0 19\n20 16\n36 316\n", b"no index\n"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_input_whose_index_is_missing_or_another_is_named(damage: bytes | None, tmp_path: Path) -> None:
    inputs = inputs_of(tmp_path, PARTS)
    if damage is None:
        index_path(inputs[0][0]).unlink()
    else:
        index_path(inputs[0][0]).write_bytes(damage)
    with pytest.raises(DamagedFile, match=r"part-0: its index .*part-0\.idx is missing or damaged"):
        merge_files(inputs, tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_different_compressions_are_refused(tmp_path: Path) -> None:
    inputs = [*inputs_of(tmp_path / "a", PARTS), *inputs_of(tmp_path / "b", PARTS, "gzip")]
    with pytest.raises(DamagedFile, match=r"different compressions \(gzip, none\)"):
        merge_files(inputs, tmp_path / "merged")


def test_a_missing_input_leaves_what_was_there(tmp_path: Path) -> None:
    inputs = inputs_of(tmp_path, PARTS)
    merged = merge_files(inputs, tmp_path / "merged")
    inputs[2][0].unlink()
    with pytest.raises((WriteError, DamagedFile), match=r"part-2|merged"):
        merge_files(inputs, tmp_path / "merged")
    assert is_intact(tmp_path / "merged", merged) and Manifest.load(tmp_path / "merged") == merged


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    inputs_of(tmp_path, [[os.urandom(60_000)], [os.urandom(60_000)]])
    script = """
import resource, sys
from pathlib import Path
from tfr_assets.errors import WriteError
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.frames.merge import merge_files
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
folder = Path(sys.argv[1])
try:
    merge_files([(folder / name, Manifest.load(folder / name)) for name in ("part-0", "part-1")], folder / "merged")
except WriteError as error:
    print(error)
"""
    before = sorted(path.name for path in tmp_path.rglob("*"))
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "cannot write" in done.stdout and "merged" in done.stdout, done.stderr
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def _copied(source: Path, target: Path, count: int) -> bytes:
    """Copies by `copy_range` in steps of at most `count`, behind what is in the target already."""
    with source.open("rb", buffering=0) as read, target.open("wb", buffering=0) as write:
        write.write(b"before ")
        while copy_range(read.fileno(), write.fileno(), count):
            pass
    return target.read_bytes()


@pytest.mark.parametrize("count", [1, 1000, 1 << 20, 1 << 30])
def test_copying_from_position_to_position(count: int, tmp_path: Path) -> None:
    content = os.urandom(3000 if count < 1000 else 3_000_000)
    (tmp_path / "source").write_bytes(content)
    assert _copied(tmp_path / "source", tmp_path / "target", count) == b"before " + content


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs a second file system")
def test_copying_between_file_systems(tmp_path: Path) -> None:
    content = os.urandom(3_000_000)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        source = Path(memory) / "source"
        source.write_bytes(content)
        assert _copied(source, tmp_path / "target", 1 << 22) == b"before " + content
        inputs = inputs_of(Path(memory), PARTS)
        merged = merge_files(inputs, tmp_path / "merged")
        assert is_intact(tmp_path / "merged", merged)


@pytest.mark.parametrize("error", [18, 22, 38, 95, 26, None], ids=str)
def test_copying_where_the_system_has_no_call_for_it(
    error: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> int:
        raise OSError(error, "refused") if error else AttributeError("copy_file_range")

    monkeypatch.setattr(os, "copy_file_range", refuse)
    content = os.urandom(3_000_000)
    (tmp_path / "source").write_bytes(content)
    assert _copied(tmp_path / "source", tmp_path / "target", 1 << 22) == b"before " + content


def test_copying_does_not_hide_other_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "copy_file_range", fail)
    inputs = inputs_of(tmp_path, PARTS)
    with pytest.raises(WriteError, match="No space left on device"):
        merge_files(inputs, tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_large_inputs_are_copied_in_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge, "_STEP", 700)
    inputs = inputs_of(tmp_path, PARTS)
    steps: list[int] = []
    merged = merge_files(inputs, tmp_path / "merged", progress=steps.append)
    assert max(steps) <= 700 and len(steps) > len(inputs)
    assert examine(tmp_path / "merged", merged).ok
