"""A flipped bit in any file of a dataset's folder is found, never read as data, and healed by the next run."""

import random
from pathlib import Path

import pytest

from tfr_assets.errors import TfrError

from .scenarios import dataset, put_raw, read_rows, refresh, table
from .settings import cases, choices
from .truth import is_verified, meaning, put_tree, tree_of

SOURCES = {"read in place": "raw.parquet", "landed": "raw.jsonl"}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES.keys())
def test_a_flipped_bit_is_found_never_read_and_healed(source: str, fast_folder: Path) -> None:
    choose, made, data = choices(f"flips {source}"), dataset(fast_folder, 2, source), fast_folder / "data"
    put_raw(fast_folder, 1)
    refresh(made, merge=True)
    whole = tree_of(data)
    for case in cases(short=40):
        put_tree(data, whole)
        names = sorted(name for name, content in whole.items() if content)
        name = names[case] if case < len(names) else choose.choice(names)  # each at least once
        content, what = _damaged(whole[name], choose)
        (data / name).write_bytes(content)
        try:
            for files in ("shards", "merged"):
                _check_read(data / "sample", files)
            assert not is_verified(data / "sample"), "verify finds nothing"
            refresh(made, merge=True)
            assert meaning(tree_of(data)) == meaning(whole), "the next run does not heal it"
            assert is_verified(data / "sample")
        except BaseException as error:
            error.add_note(f"{name}: {what}")
            raise


def _damaged(content: bytes, choose: random.Random) -> tuple[bytes, str]:
    """Returns a file's content, damaged, and in words how."""
    changed, place = bytearray(content), choose.randrange(len(content))
    kind = choose.choice(("bit", "bit", "bit", "zeros", "cut", "more", "twice"))
    if kind == "bit":
        bit = choose.randrange(8)
        changed[place] ^= 1 << bit
        return bytes(changed), f"bit {bit} of byte {place} of {len(content)}, {content[place]:#x}, flipped"
    if kind == "zeros" and any(content[place : place + 512]):
        return content[:place] + bytes(len(content[place : place + 512])) + content[place + 512 :], f"zeros at {place}"
    if kind == "more":
        return content + content[: place + 1], f"{place + 1} bytes more"
    if kind == "twice":
        return content[:place] + content[place : place + 1] + content[place:], f"byte {place} twice"
    return content[:place], f"cut at {place}"


def _check_read(folder: Path, files: str) -> None:
    try:
        rows = read_rows(folder, files)
    except TfrError:
        return
    assert rows == table(1).to_pylist(), f"wrong rows from {files}"
