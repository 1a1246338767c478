"""What was found in files of other origin is kept, and used for exactly these files."""

import os
from pathlib import Path

import pytest

import tfr_assets
from tfr_assets.errors import DamagedFile, WriteError

from .test_foreign import RECORDS, values, write_foreign


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return [write_foreign(tmp_path / "in" / f"x-{part}.tfrecord", RECORDS[part * 9 : part * 9 + 9]) for part in (0, 1)]


def test_they_are_read_once(files: list[Path], tmp_path: Path, surveys: list[object]) -> None:
    plain = tfr_assets.open(files[0].parent)
    for count in (2, 2, 2):
        opened = tfr_assets.open(files[0].parent, cache=tmp_path / "cache")
        assert len(surveys) == count
        assert (len(opened), opened.features, opened.fingerprint) == (18, plain.features, plain.fingerprint)
        assert values(opened[11]) == values(plain[11])
    tfr_assets.open(files[0], cache=tmp_path / "cache")
    assert len(surveys) == 3  # other files


def test_files_that_have_changed_are_read_again(files: list[Path], tmp_path: Path, surveys: list[object]) -> None:
    folder, cache = files[0].parent, tmp_path / "cache"
    tfr_assets.open(folder, cache=cache)
    write_foreign(files[1], RECORDS[9:13])
    assert len(tfr_assets.open(folder, cache=cache)) == 13 and len(surveys) == 2
    status = files[1].stat()
    os.utime(files[1], ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    tfr_assets.open(folder, cache=cache)
    assert len(surveys) == 3
    content = bytearray(files[1].read_bytes())
    content[20] ^= 1
    files[1].write_bytes(content)
    with pytest.raises(DamagedFile, match="CRC is wrong"):
        tfr_assets.open(folder, cache=cache)


@pytest.mark.parametrize("ending", [".json", ".sizes"])
@pytest.mark.parametrize("how", ["flipped", "cut", "gone"])
def test_what_is_damaged_is_not_used(
    files: list[Path], tmp_path: Path, surveys: list[object], ending: str, how: str
) -> None:
    expected = values(tfr_assets.open(files[0].parent, cache=tmp_path / "cache")[11])
    (path,) = (tmp_path / "cache").glob(f"*{ending}")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink() if how == "gone" else path.write_bytes(content if how == "flipped" else content[:-8])
    for _ in range(2):
        assert values(tfr_assets.open(files[0].parent, cache=tmp_path / "cache")[11]) == expected
    assert len(surveys) == 2


def test_a_cache_that_cannot_be_written_is_named(files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(WriteError, match="cache"):
        tfr_assets.open(files[0].parent, cache=tmp_path / "cache")
