"""A flipped bit in any file of a dataset's folder is found, never read as data, and healed by the next run."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import numpy as np
import pytest
from PIL import Image

from tests.waiting import wait_for
from tfr_assets.bench.readers.measure import measure_readers
from tfr_assets.bench.readers.options import BenchOptions
from tfr_assets.bench.readers.recommend import recommend
from tfr_assets.bench.readers.report import Report
from tfr_assets.bench.writers.comparison import Trial, as_document, compare, try_writer
from tfr_assets.bench.writers.options import WriterTrials
from tfr_assets.components.runs.held_apart import WAITING
from tfr_assets.errors import TfrError
from tfr_assets.layout import Layout
from tfr_assets.reading.locate.files import locate
from tfr_assets.reading.recommendation import recommended_reader
from tfr_assets.sources import Source
from tfr_assets.storage.locks import lock as take_lock
from tfr_assets.storage.locks import unlock
from tfr_assets.storage.sealed import seal
from tfr_assets.writing import sizing
from tfr_assets.writing.dataset import Dataset
from tfr_assets.writing.plan import load_inventory

from .command import Copy, kill_session, make_copy
from .scenarios import dataset, put_raw, read_rows, refresh
from .settings import cases, choices
from .truth import is_verified, meaning, put_tree, tree_of


def _planned(root: Path) -> Dataset:
    return Dataset("sample", Source(path=str(root / "raw.parquet")), shards=1, root=root / "data", auto=True)


def _images(root: Path) -> Dataset:
    """Pictures in a folder a class, and a file that is none."""
    for number in range(6):
        folder = root / "images" / ("cat", "dog")[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(number).integers(0, 255, (6, 8, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    (root / "images" / "cat" / "broken.png").write_bytes(b"no picture")
    source = Source(path=str(root / "images"), kind="images", options={"on_error": "skip"})
    return Dataset("sample", source, shards=2, root=root / "data")


SOURCES: dict[str, Callable[[Path], Dataset]] = {
    "read in place": lambda root: dataset(root, 2, "raw.parquet"),
    "landed": lambda root: dataset(root, 2, "raw.jsonl"),
    "planned": _planned,
    "images": _images,
}
FOR_PEOPLE = (".png", ".csv", ".tsv", ".html")
"""Endings of files that nothing reads: no flipped bit of theirs can become data."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the `readers` and `writers` of a dataset that was measured twice."""
    root = tmp_path_factory.mktemp("measured")
    made, options = dataset(root), WriterTrials(workers=(1,), repeats=1, only=("serial",))
    put_raw(root, 1)
    refresh(made)
    readers = measure_readers(locate(made.layout.folder), BenchOptions(repeats=1, only=("naive", "vectorized")))
    assert not readers.failures
    for found in readers.measurements.values():
        found.save(made.layout.readers)
        found.save(made.layout.readers)  # the first one is kept as the one before
    Report(readers.measurements, {}, recommend(readers.measurements, "vectorized"), {}, []).save(made.layout.readers)
    try_writer(made, "serial", options).save(made.layout)
    (made.layout.writers / "report.json").write_bytes(seal(as_document(compare(made, options))))
    return made.layout.folder


def _run(made: Dataset) -> None:
    refresh(made, merge=True)
    if made.auto:
        sizing.save_planned(made.layout, sizing.split_sizes(made, load_inventory(made)))


@pytest.mark.parametrize("source", SOURCES)
def test_a_flipped_bit_is_found_never_read_and_healed(source: str, fast_folder: Path, measured: Path) -> None:
    choose, data = choices(f"flips {source}"), fast_folder / "data"
    put_raw(fast_folder, 1)
    made = SOURCES[source](fast_folder)
    _run(made)
    rows = read_rows(data / "sample")
    for part in ("readers", "writers"):
        shutil.copytree(measured / part, data / "sample" / part)
    assert is_verified(data / "sample")
    whole = tree_of(data)
    for case in cases(short=40):
        put_tree(data, whole)
        names = sorted(name for name, content in whole.items() if content)
        name = names[case] if case < len(names) else choose.choice(names)  # each at least once
        content, what = _damaged(whole[name], choose)
        (data / name).write_bytes(content)
        is_measured = Path(name).parts[1] in ("readers", "writers")  # what no run writes
        is_for_people = name.endswith(FOR_PEOPLE)
        try:
            for files in ("shards", "merged"):
                _check_read(data / "sample", files, rows)
            assert is_verified(data / "sample") == is_for_people, "what verify finds"
            _check_measured(made.layout)
            _run(made)
            healed = {**whole, name: content} if is_measured else whole
            if is_measured and not is_for_people:  # removed, so that it can be measured anew
                del healed[name]
            assert meaning(tree_of(data)) == meaning(healed), "the next run does not heal it"
            assert is_verified(data / "sample")
        except BaseException as error:
            error.add_note(f"{name}: {what}")
            raise


def test_a_run_writes_the_page_anew_and_needs_no_name_in_its_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = make_copy(tmp_path / "copy")
    monkeypatch.setenv("DAGSTER_HOME", str(copy.root))  # whose storage begins there
    code, said = copy.run("run", "small")
    assert code == 0, said
    page, lock = copy.data / "report.html", copy.data / ".lock"
    assert page.stat().st_size and lock.stat().st_size
    held_before = lock.read_bytes()
    page.write_bytes(_damaged(page.read_bytes(), choices("page"))[0])
    lock.write_bytes(b"\xff" + held_before[1:])  # no text at all
    assert is_verified(copy.data)
    held = take_lock(lock)
    process = copy.start("run", "small")
    try:
        wait_for(lambda: process.poll() is not None or _waits_for_another(copy), 120)
        unlock(held)
        assert process.wait(120) == 0 and "Traceback" not in copy.said(), copy.said()
    finally:
        kill_session(process.pid)
    _check_page(copy)
    assert lock.read_bytes().isascii() and lock.read_bytes() != held_before, "the lock has the name of another run"


def _waits_for_another(copy: Copy) -> bool:
    with dg.DagsterInstance.get() as instance:
        (run,) = instance.get_runs(limit=1)
        logs = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ENGINE_EVENT)
    return any(f"{WAITING} another run, which is working on small" in log.message for log in logs)


def _check_page(copy: Copy) -> None:
    page = (copy.data / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and page.rstrip().endswith("</html>") and "\0" not in page


def _check_measured(layout: Layout) -> None:
    """What was measured is what was measured, or nothing."""
    assert recommended_reader(layout.folder) in (None, "vectorized")
    trial = Trial.load(layout, "serial")
    assert trial is None or trial.rows == 60


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


def _check_read(folder: Path, files: str, expected: list[dict[str, object]]) -> None:
    try:
        rows = read_rows(folder, files)
    except TfrError:
        return
    assert rows == expected, f"wrong rows from {files}"
