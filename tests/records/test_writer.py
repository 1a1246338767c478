"""A written file has an index and a manifest that describe it, whatever interrupts the writing."""

import os
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from tfr_assets.errors import WriteError
from tfr_assets.layout import index_path, manifest_path
from tfr_assets.records.examples.encoder import Frames
from tfr_assets.records.examples.writer import write_file
from tfr_assets.records.frames.examine import examine, is_intact
from tfr_assets.records.frames.index import read_index
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.frames.merge import merge_files
from tfr_assets.records.schema.derive import derive_spec

from .reference import frames, offsets
from .streams import as_frames

PAYLOADS = [b"foo", b"", b"x" * 1000]


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_the_manifest_describes_the_file(compression: str, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "file"
    spec = derive_spec(pa.schema([("a", pa.int8())]), {})
    manifest = write_file(path, [as_frames(PAYLOADS[:1]), as_frames(PAYLOADS[1:])], compression, spec, {"rows": [0, 3]})
    assert manifest == Manifest.load(path)
    assert (manifest.file, manifest.records, manifest.payload_bytes) == ("file", 3, 1003)
    assert (manifest.bytes, manifest.compression) == (path.stat().st_size, compression)
    assert (manifest.features, manifest.made_from) == (spec, {"rows": [0, 3]})
    content = path.read_bytes()
    assert frames(PAYLOADS) == (
        content if compression == "none" else zlib.decompress(content, 31 if compression == "gzip" else 15)
    )
    assert read_index(index_path(path))[:, 0].tolist() == offsets(PAYLOADS)[:-1]
    assert everything(path.parent) == ["file", "index/file.idx", "manifest/file.json"]
    assert is_intact(path, manifest)


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_a_file_without_records(compression: str, tmp_path: Path) -> None:
    for some in ([], [as_frames([])]):
        manifest = write_file(tmp_path / "file", some, compression)
        assert (manifest.records, manifest.payload_bytes, manifest.digest) == (0, 0, "0" * 16)
        assert (manifest.bytes == 0) == (compression == "none")
        assert is_intact(tmp_path / "file", manifest)


def test_frames_are_written_before_the_next_are_asked_for(tmp_path: Path) -> None:
    buffer = bytearray(frames([b"aaaa"]))

    def reusing() -> Iterator[Frames]:
        for letter in (b"a", b"b", b"c"):
            buffer[:] = frames([letter * 4])
            yield Frames(memoryview(buffer), as_frames([b"aaaa"]).sizes)
        buffer[:] = bytes(len(buffer))

    for compression in ("none", "gzip"):
        manifest = write_file(tmp_path / "file", reusing(), compression)
        expected = write_file(tmp_path / "other", [as_frames([b"aaaa", b"bbbb", b"cccc"])], compression)
        assert manifest.digest == expected.digest
        assert (tmp_path / "file").read_bytes() == (tmp_path / "other").read_bytes()


def test_a_failure_in_the_middle_leaves_the_old_file_with_its_manifest(tmp_path: Path) -> None:
    path = tmp_path / "file"
    old = write_file(path, [as_frames(PAYLOADS)])
    before = {name: (tmp_path / name).read_bytes() for name in everything(tmp_path)}

    def failing() -> Iterator[Frames]:
        yield as_frames([b"new"])
        raise ValueError("bad row")

    with pytest.raises(ValueError, match="bad row"):
        write_file(path, failing())
    assert {name: (tmp_path / name).read_bytes() for name in everything(tmp_path)} == before
    assert is_intact(path, old) and Manifest.load(path) == old


def test_a_failure_of_the_first_writing_leaves_nothing(tmp_path: Path) -> None:
    def failing() -> Iterator[Frames]:
        yield as_frames([b"new"])
        raise OSError(5, "Input/output error")

    with pytest.raises(WriteError, match="Input/output error"):
        write_file(tmp_path / "file", failing())
    assert everything(tmp_path) == []


@pytest.mark.parametrize("compression", ["none", "zlib"])
def test_a_full_disk_leaves_no_new_file(compression: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    old = write_file(path, [as_frames(PAYLOADS)], compression)
    before = {name: (tmp_path / name).read_bytes() for name in everything(tmp_path)}
    script = """
import os, resource, struct, sys
from pathlib import Path
import numpy as np
from tfr_assets.errors import WriteError
from tfr_assets.records.kernels.crc32c import masked_crc32c
from tfr_assets.records.examples.encoder import Frames
from tfr_assets.records.examples.writer import write_file
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
def frames():
    for _ in range(100):
        payload = os.urandom(20_000)
        size = struct.pack("<Q", len(payload))
        crc = [struct.pack("<I", masked_crc32c(data)) for data in (size, payload)]
        yield Frames(memoryview(size + crc[0] + payload + crc[1]), np.array([20_016]))
try:
    write_file(Path(sys.argv[1]), frames(), sys.argv[2])
except WriteError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(path), compression],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "cannot write" in done.stdout and str(path) in done.stdout, done.stderr
    assert {name: (tmp_path / name).read_bytes() for name in everything(tmp_path)} == before
    assert is_intact(path, old)


def test_no_manifest_vouches_for_a_file_whose_writing_was_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever step the process dies at, either the old file is whole with its manifest, or there is none."""
    path = tmp_path / "file"
    steps = ("rename", "unlink", "fsync")
    for step in steps:
        for die_at in range(12):
            old = write_file(path, [as_frames(PAYLOADS)])
            real, calls = getattr(os, step), 0

            def dying(*arguments: object, **keywords: object) -> object:
                nonlocal calls
                calls += 1
                if calls > die_at:  # noqa: B023 - called in this turn of the loop only
                    raise SystemExit("killed")
                return real(*arguments, **keywords)  # noqa: B023

            with monkeypatch.context() as patch:
                patch.setattr(os, step, dying)
                with suppress(SystemExit):
                    write_file(path, [as_frames([b"new", b"content"])])
            manifest = Manifest.load(path)
            if manifest == old:
                assert is_intact(path, old), (step, die_at)
            elif manifest:
                assert is_intact(path, manifest) and manifest.records == 2, (step, die_at)
            else:
                assert examine(path).ok, (step, die_at)  # one of the two, whole


def _steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Notes what is removed, renamed and synced from now on, by name."""
    noted: list[tuple[str, str]] = []
    unlink, rename, fsync = os.unlink, os.rename, os.fsync

    def noting_unlink(path: Path) -> None:
        unlink(path)
        noted.append(("unlink", Path(path).name))

    def noting_rename(old: str, new: Path) -> None:
        rename(old, new)
        noted.append(("rename", new.name))

    def noting_fsync(descriptor: int) -> None:
        fsync(descriptor)
        noted.append(("fsync", Path(f"/proc/self/fd/{descriptor}").readlink().name))

    for name, function in (("unlink", noting_unlink), ("rename", noting_rename), ("fsync", noting_fsync)):
        monkeypatch.setattr(os, name, function)
    return noted


def test_every_step_of_replacing_a_file_is_on_the_disk_before_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old manifest is gone for good before the new file has its name, and the new manifest comes last."""
    path = tmp_path / "shards" / "file"
    write = {"write": lambda: write_file(path, [as_frames(PAYLOADS)])}
    part = tmp_path / "part"
    inputs = [(part, write_file(part, [as_frames(PAYLOADS)]))]
    write["merge"] = lambda: merge_files(inputs, path)
    for function in write.values():
        write["write"]()
        with monkeypatch.context() as patch:
            noted = _steps(patch)
            function()
        names = [(step, name) for step, name in noted if not name.endswith(".tmp")]
        assert names == [
            ("unlink", "file.json"), ("fsync", "manifest"),
            ("rename", "file"), ("fsync", "shards"),
            ("rename", "file.idx"), ("fsync", "index"),
            ("rename", "file.json"), ("fsync", "manifest"),
        ]  # fmt: skip


def test_new_folders_are_on_the_disk_before_what_lies_in_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted = _steps(monkeypatch)
    write_file(tmp_path / "a" / "b" / "file", [as_frames(PAYLOADS)])
    renamed = noted.index(("rename", "file"))
    for folder in (tmp_path.name, "a", "b"):
        assert ("fsync", folder) in noted[:renamed]


def test_the_index_is_part_of_being_intact(tmp_path: Path) -> None:
    path = tmp_path / "file"
    manifest = write_file(path, [as_frames(PAYLOADS)])
    index = index_path(path).read_bytes()
    for content in (b"", index[:-1], index.replace(b"19", b"18"), b"0 1038\n"):
        index_path(path).write_bytes(content)
        assert not is_intact(path, manifest)
    index_path(path).unlink()
    assert not is_intact(path, manifest)
    index_path(path).write_bytes(index)
    assert is_intact(path, manifest)
    manifest_path(path).unlink()
    assert Manifest.load(path) is None
