"""What `tfr verify` does with files: examines them behind a progress bar, and compares datasets with their plans."""

from collections.abc import Collection, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tfr_assets.cli.terminal import bytes_bar
from tfr_assets.errors import ConfigError
from tfr_assets.layout import data_root, is_slice, mixes_slices, name_in
from tfr_assets.packages import is_installed
from tfr_assets.project import find_project
from tfr_assets.records.frames.compression import Opener, open_file
from tfr_assets.records.frames.examine import FileReport, examine_files, faulty_report, unread_report
from tfr_assets.records.frames.scan import Fault, FaultKind
from tfr_assets.writing.audit import Note
from tfr_assets.writing.audit_plan import audit_plan
from tfr_assets.writing.dataset import Dataset


def verify_files(
    files: Sequence[Path], quiet: bool = False, max_record_bytes: int | None = None, opener: Opener = open_file
) -> list[FileReport]:
    """Examines files behind a progress bar.

    Args:
        files: The files.
        quiet: Show no progress.
        max_record_bytes: As `examine_written` takes it.
        opener: As `examine_written` takes it.
    """
    total = sum(file.stat().st_size for file in files if file.is_file())
    shown = nullcontext(None) if quiet else bytes_bar("verifying", total)
    with shown as progress:
        return examine_files(files, progress, max_record_bytes, opener)


def as_documents(reports: Sequence[FileReport], notes: Iterable[Note]) -> list[dict[str, Any]]:
    """Returns reports JSON-ready, each with the notes on its file; a file with nothing but a note comes last."""
    said: dict[str, list[str]] = {}
    for note in notes:
        said.setdefault(note.path, []).append(note.says)
    others = [unread_report(path) for path in said.keys() - {report.path for report in reports}]
    return [
        {**asdict(report), "ok": report.ok, "notes": said.get(report.path, [])}
        for report in (*reports, *sorted(others, key=lambda report: report.path))
    ]


def audit_plans(paths: Iterable[Path], reported: Collection[str]) -> tuple[list[FileReport], tuple[Note, ...]]:
    """Compares the folders of datasets with their plans, and looks whether slices lie beside what has none.

    Args:
        paths: Folders of datasets that have a YAML, among others.
        reported: Files that are known to be wrong already.

    Returns:
        A report of each other file that is missing or not of the plan; and what else should be known.
    """
    found = [path for path in map(Path.absolute, paths) if not path.is_file()]
    faults = [Fault(str(path), 0, 0, FaultKind.BESIDE, says) for path in found if (says := mixes_slices(path))]
    folders = [path for path in found if _is_of_dataset(path)]
    if not folders or find_project() is None:  # a copy of a dataset's folder can be verified anywhere
        return _reports(faults, reported), ()
    if not is_installed("dagster"):  # as on a host that only reads
        says = "not compared with its YAML: Dagster is not installed"
        return _reports(faults, reported), tuple(Note(str(folder), says) for folder in folders)
    from tfr_assets.components.config.load import dataset_names, load_component

    for folder in folders:
        try:
            name = name_in(folder)
            loaded = load_component(name) if name in dataset_names() else None
            for dataset in _planned(loaded[1], folder) if loaded else ():
                faults += audit_plan(dataset)
        except ConfigError as error:
            says = f"its plan is not known: {' '.join(str(error).split())}"
            faults.append(Fault(str(folder), 0, 0, FaultKind.BESIDE, says))
    return _reports(faults, reported), ()


def _reports(faults: Iterable[Fault], reported: Collection[str]) -> list[FileReport]:
    return [faulty_report(fault) for fault in faults if fault.path not in reported]


def _is_of_dataset(folder: Path) -> bool:
    """Whether a folder is where a dataset, or a slice of one, lies."""
    return data_root() == (folder.parent.parent.parent if is_slice(folder) else folder.parent)


def _planned(dataset: Dataset, folder: Path) -> list[Dataset]:
    """Returns what lies in a folder of a dataset that has a plan: the dataset, or slices that were made."""
    if not dataset.slices:
        return [dataset]
    made = dataset.made_slices()
    if is_slice(folder):
        return [dataset.of_slice(folder.name)] if folder.name in made else []
    return [dataset.of_slice(key) for key in made]
