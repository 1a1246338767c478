import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tfr_assets.errors import SourceChanged, StaleError, WriteError
from tfr_assets.sources import (
    Inventory,
    Source,
    preview,
    read_rows,
    remove_old_landings,
    take_inventory,
)
from tfr_assets.sources.landing import landed as landing_module


@pytest.fixture
def source(tmp_path: Path) -> Source:
    (tmp_path / "a.csv").write_text("a,b\n" + "".join(f"{n},x{n}\n" for n in range(100)))
    return Source(path=str(tmp_path / "a.csv"))


def test_an_inventory_survives_json_and_disk(source: Source, tmp_path: Path, landing: Path) -> None:
    inventory = take_inventory(source, landing)
    assert Inventory.from_json(json.loads(json.dumps(inventory.to_json()))) == inventory
    inventory.save(tmp_path / "new" / "folder" / "inventory.json")
    assert Inventory.load(tmp_path / "new" / "folder" / "inventory.json") == inventory
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == ["inventory.json"]


def test_an_inventory_that_is_not_there_or_not_one(tmp_path: Path) -> None:
    with pytest.raises(StaleError, match=r"inventory\.json: there is no inventory .* Materialize raw first"):
        Inventory.load(tmp_path / "inventory.json")
    for content in ("{}", "[]", "", "\xff"):
        (tmp_path / "inventory.json").write_text(content, encoding="latin-1")
        with pytest.raises(StaleError, match=r"not an inventory of this version\. Materialize raw again"):
            Inventory.load(tmp_path / "inventory.json")


@pytest.mark.parametrize("wrong", ["x", None, 0, -1, 1.5, True])
def test_a_file_whose_most_rows_is_no_number_makes_no_inventory(wrong: object, source: Source, landing: Path) -> None:
    values = json.loads(json.dumps(take_inventory(source, landing).to_json()))
    values["landed"][0]["most_rows"] = wrong
    with pytest.raises(TypeError):
        Inventory.from_json(values)


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """A disk that is full: no file may grow beyond `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_saving_fails_without_harm(source: Source, tmp_path: Path, landing: Path) -> None:
    inventory = take_inventory(source, landing)
    path = tmp_path / "saved" / "inventory.json"
    inventory.save(path)
    before = path.read_text()

    with largest_file(10), pytest.raises(WriteError, match=r"cannot write .*inventory\.json: File too large"):
        inventory.save(path)
    assert path.read_text() == before
    assert len(list(path.parent.iterdir())) == 1


def test_landing_on_a_full_disk_leaves_nothing(source: Source, landing: Path) -> None:
    with largest_file(10), pytest.raises(WriteError, match=r"File too large.*Nothing was changed"):
        take_inventory(source, landing)
    assert not list(landing.iterdir())


def test_a_folder_that_cannot_be_made(source: Source, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match="cannot write there"):
        take_inventory(source, tmp_path / "file" / "landing")


def test_a_damaged_landing_is_made_again(source: Source, landing: Path) -> None:
    inventory = take_inventory(source, landing)
    part = Path(inventory.landed[0].path)
    content = part.read_bytes()
    part.write_bytes(content[:50] + b"!" + content[51:])
    with pytest.raises(SourceChanged, match="not what it was"):
        list(read_rows(inventory, 0, 1))
    again = take_inventory(source, landing)
    assert part.read_bytes() == content
    assert again.fingerprint == inventory.fingerprint
    part.unlink()
    with pytest.raises(SourceChanged, match="no longer there"):
        list(read_rows(again, 0, 1))
    assert len(preview(take_inventory(source, landing), 100)) == 100


def test_a_moved_landing_is_found_where_it_is(source: Source, landing: Path, tmp_path: Path) -> None:
    take_inventory(source, landing)
    moved = landing.rename(tmp_path / "moved")
    inventory = take_inventory(source, moved)
    assert Path(inventory.landed[0].path).is_relative_to(moved)
    assert len(preview(inventory)) == 10


def test_two_at_once(source: Source, landing: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: take_inventory(source, landing), range(8)))
    assert len({inventory.fingerprint for inventory in found}) == 1
    assert len(list(landing.iterdir())) == 1
    for inventory in found:
        assert len(preview(inventory)) == 10


def test_old_landings_and_leftovers_are_removed_and_nothing_else(source: Source, landing: Path) -> None:
    first = take_inventory(source, landing)
    second = take_inventory(Source(path=source.path, shuffle_seed=1), landing)
    (landing / "inventory.json").write_text("{}")
    (landing / "mine").mkdir()
    (landing / ".landing-killed").mkdir()
    (landing / ".landing-killed" / "part").write_text("")
    with landing_module.temporary_folder(landing) as running:  # whose age is of no account: its process lives
        os.utime(running, (0, 0))
        remove_old_landings(second, landing)
        kept = {"inventory.json", "mine", running.name, Path(second.landed[0].path).parent.name}
        assert {path.name for path in landing.iterdir()} == kept
    assert Path(first.landed[0].path).parent.name not in kept


_LAND_FOR_EVER = """
import sys, time
from pathlib import Path
from tfr_assets.sources import Source, take_inventory

def stop(done, total):
    if total is None:  # rows are written
        print("landing", flush=True)
        time.sleep(600)

take_inventory(Source(path=sys.argv[1]), Path(sys.argv[2]), stop)
"""


def test_a_landing_of_a_killed_process_goes_at_once_and_a_running_one_stays(source: Source, landing: Path) -> None:
    inventory = take_inventory(source, landing)
    current = Path(inventory.landed[0].path).parent
    other = landing.parent / "other.csv"
    other.write_text("a,b\n1,2\n")
    command = [sys.executable, "-c", _LAND_FOR_EVER, str(other), str(landing)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout and running.stdout.readline() == "landing\n"
            (unfinished,) = set(landing.iterdir()) - {current}
            remove_old_landings(inventory, landing)
            assert set(landing.iterdir()) == {current, unfinished}
            assert list(unfinished.glob("part-*"))
        finally:
            running.kill()
    assert unfinished.is_dir()  # a killed process removes nothing
    remove_old_landings(inventory, landing)
    assert list(landing.iterdir()) == [current]


def test_many_parts_are_one_table(tmp_path: Path, landing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landing_module, "_PART_GROUPS", 2)
    monkeypatch.setattr(landing_module, "_GROUP_ROWS", 10)
    table = pa.table({"a": range(95)})
    pq.write_table(table, tmp_path / "a.parquet")
    inventory = take_inventory(Source(path=str(tmp_path / "a.parquet"), shuffle_seed=3), landing)
    assert [part.rows for part in inventory.landed] == [20, 20, 20, 20, 15]
    found = pa.Table.from_batches(read_rows(inventory, 0, 95))
    assert found.sort_by("a").equals(table)
    assert pa.Table.from_batches(read_rows(inventory, 15, 77)).equals(found.slice(15, 62))


def test_a_source_that_changes_while_it_is_read(source: Source, tmp_path: Path, landing: Path) -> None:
    def meddle(done: int, total: int | None) -> None:
        (tmp_path / "a.csv").write_text("a,b\n1,2\n")

    content = (tmp_path / "a.csv").read_text()
    with pytest.raises(SourceChanged, match=r"a\.csv: changed while it was read"):
        take_inventory(source, landing, meddle)
    assert not list(landing.iterdir())  # above all not other rows under the name of the hashed content
    (tmp_path / "a.csv").write_text(content)
    assert take_inventory(source, landing).rows == 100
