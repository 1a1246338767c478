"""`tfr diff`: what changed in features and records, as a set of rows would tell."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfr_assets
from tests.records.reference import examples
from tfr_assets.errors import DamagedFile
from tfr_assets.reading import differences
from tfr_assets.reading.differences import compare

from .test_access import flip


def run_tfr(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tfr_assets.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def write(path: Path, ids: Any, **columns: Any) -> Path:
    tfr_assets.write(pa.table({"id": pa.array(ids, pa.int64()), **columns}), path)
    return path


def test_the_same_records_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differences, "_hashes", lambda _: pytest.fail("was read"))
    one = write(tmp_path / "one.tfrecord", range(50))
    tfr_assets.write({"id": range(50)}, tmp_path / "many" / "x", shards=4)
    found = compare(one, tmp_path / "many" / "x")
    assert found.none
    assert [(split.before, split.after, split.kept) for split in found.splits] == [(50, 50, 50)]


def test_features_that_changed_are_told(tmp_path: Path) -> None:
    old = write(tmp_path / "old.tfrecord", [1], gone=[1.5], kept=["x"], typed=[1])
    new = write(tmp_path / "new.tfrecord", [1], kept=["x"], new=[[1, 2]], typed=["1"])
    found = compare(old, new)
    assert not found.none
    changes = {change.name: (change.before, change.after) for change in found.features}
    assert sorted(changes) == ["gone", "new", "typed"]
    assert changes["gone"][1] is None and changes["new"][0] is None
    assert changes["typed"][0].startswith("int64 of int64") and changes["typed"][1].startswith("bytes of string")


@pytest.mark.parametrize(
    ("before", "after", "added", "removed", "moved"),
    [
        ([1, 2, 3], [1, 2, 3, 4, 5], 2, 0, False),
        ([1, 2, 3], [3], 0, 2, False),
        ([1, 2, 3], [3, 2, 1], 0, 0, True),
        ([1, 1, 2], [1, 2, 2], 1, 1, False),
        ([], [1], 1, 0, False),
        ([1, 2], [3, 4], 2, 2, False),
    ],
)
def test_records_are_told_by_their_content(
    tmp_path: Path, before: list[int], after: list[int], added: int, removed: int, moved: bool
) -> None:
    old, new = write(tmp_path / "old.tfrecord", before), write(tmp_path / "new.tfrecord", after)
    (split,) = compare(old, new).splits
    assert (split.added, split.removed, split.moved) == (added, removed, moved)
    assert not compare(old, new).none


@given(old=st.lists(st.integers(0, 9), max_size=30), new=st.lists(st.integers(0, 9), max_size=30))
@examples(200)
def test_what_is_in_both_is_what_multisets_share(old: list[int], new: list[int]) -> None:
    mine, theirs = differences._in_both(np.array(old, np.uint64), np.array(new, np.uint64))
    shared = Counter(old) & Counter(new)
    assert Counter(np.array(old, int)[mine].tolist()) == Counter(np.array(new, int)[theirs].tolist()) == shared


def test_splits_are_compared_by_name(tmp_path: Path) -> None:
    for folder, splits in (("old", {"train": 5, "test": 2}), ("new", {"train": 6, "validation": 1})):
        for split, rows in splits.items():
            write(tmp_path / folder / f"x-{split}.tfrecord", range(rows))
    found = compare(tmp_path / "old", tmp_path / "new")
    assert [(s.split, s.before, s.after, s.kept) for s in found.splits] == [
        ("test", 2, 0, 0), ("train", 5, 6, 5), ("validation", 0, 1, 0),
    ]  # fmt: skip


def test_damage_is_told(tmp_path: Path) -> None:
    old, new = write(tmp_path / "old.tfrecord", range(9)), write(tmp_path / "new.tfrecord", range(8))
    flip(new, 3)
    with pytest.raises(DamagedFile, match="record 3"):
        compare(old, new)


def test_the_command_tells_and_exits_as_diff_does(tmp_path: Path) -> None:
    old = write(tmp_path / "old.tfrecord", range(2000), gone=[1.5] * 2000)
    new = write(tmp_path / "new.tfrecord", range(2001))
    same = run_tfr("diff", old, old)
    assert same.returncode == 0 and "the same records in the same order" in same.stdout
    other = run_tfr("diff", old, new)
    assert other.returncode == 1
    assert "- gone: float32 of double" in other.stdout and "2,001" in other.stdout
    found = json.loads(run_tfr("diff", "--json", old, new).stdout)
    assert found["same"] is False
    assert found["splits"][0]["added"] == 2001
    assert run_tfr("diff", old, tmp_path / "nowhere").returncode == 2
    flip(new, 3)
    damaged = run_tfr("diff", old, new)
    assert damaged.returncode == 2 and "record 3" in damaged.stderr
