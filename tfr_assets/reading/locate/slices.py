"""Which slices of a dataset are read, and their files as one set.

data/events/slices/slices.json       which slices there are, and in which order: what the YAML says
data/events/slices/2026-03-01/…      one of them, as a dataset has it
"""

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from tfr_assets.errors import ConfigError, StaleError
from tfr_assets.layout import SLICES, SLICES_FILE, feature_spec_path, holds_slices
from tfr_assets.reading.locate.file_sets import MissingSlices, SliceChoice
from tfr_assets.reading.locate.record_files import RecordFiles, gather
from tfr_assets.reading.locate.remote import gather_urls
from tfr_assets.records.schema.joint import joint_spec
from tfr_assets.storage.file_names import is_remote

if TYPE_CHECKING:
    from tfr_assets.sources import Slices

_SHOWN = 10


def choose_slices(
    slices: SliceChoice | None, missing: MissingSlices, there: Collection[str], known: "Slices | None", name: str
) -> list[str]:
    """Returns the keys of the slices to read, in order.

    Args:
        slices: Which; None: all that are there.
        missing: What is done where one is not there: `raise`, or `allow`, and it is left out.
        there: Keys of those that are there.
        known: Which there can be; None: that is not known, and they are in the order of their keys.
        name: Of the dataset.

    Raises:
        ConfigError: There is no such slice, or the choice is invalid.
        StaleError: One is missing.
    """
    from tfr_assets.sources import Slices

    if missing not in ("raise", "allow"):
        raise ConfigError(f"missing_slices={missing!r}: use 'raise' or 'allow'")
    if not known and not there:
        raise StaleError(f"no slice of dataset {name!r} is there yet; run `tfr run {name} --slices all` first")
    keys = known.all_keys() if known else sorted(there)
    if slices is None:
        found = [key for key in keys if key in there]
    else:
        chosen = (known or Slices(folder=name)).choose(_said(slices), keys)
        gone = [key for key in chosen if key not in there]
        if gone and missing == "raise":
            more = ", …" if len(gone) > _SHOWN else ""
            raise StaleError(
                f"of dataset {name!r}, {len(gone)} of {len(chosen)} slices are not there: {', '.join(gone[:_SHOWN])}"
                f"{more}. Run `tfr run {name} --slices {','.join(gone[:_SHOWN])}`, or leave them out: in Python, "
                "missing_slices='allow'"
            )
        found = [key for key in chosen if key in there]
    if not found:
        raise StaleError(f"none of these slices of dataset {name!r} is there; run `tfr run {name} --slices …` first")
    return found


def warn_of_unfinished(unfinished: Collection[str], name: str) -> None:
    """Warns of slices of a dataset that are left out, if there are any, where nobody has said which are to be read."""
    if unfinished:
        warnings.warn(
            f"dataset {name!r}: left out, because being written, or lost: {', '.join(unfinished)}. `tfr run {name} "
            "--slices new` makes them; slices= says which are read",
            stacklevel=3,
        )


def _said(slices: SliceChoice) -> str:
    """Returns a choice as `Slices.choose` takes it."""
    if isinstance(slices, str):
        return slices
    if isinstance(slices, tuple) and len(slices) == 2:
        return f"{slices[0]}..{slices[1]}"
    if isinstance(slices, list) and slices:
        return ",".join(map(str, slices))
    raise ConfigError(
        f"slices={slices!r}: give the first and the last one, such as ('2026-03-01', '2026-03-07'), a list of them, or "
        "a text such as 'last'"
    )


def join_slices(parts: Mapping[str, RecordFiles]) -> RecordFiles:
    """Returns the files of several slices, in order, as one set. A feature that a slice lacks is absent there.

    Raises:
        SchemaError: They have other features.
        StaleError: They are of several compressions.
    """
    (first, files), *others = parts.items()
    for key, each in others:
        if each.compression != files.compression:
            raise StaleError(
                f"slices {first!r} and {key!r} cannot be read together: compression of the one is {files.compression}, "
                f"of the other {each.compression}; write one of them again"
            )
    return RecordFiles(
        paths=tuple(path for each in parts.values() for path in each.paths),
        manifests=tuple(manifest for each in parts.values() for manifest in each.manifests),
        features=joint_spec({key: each.features for key, each in parts.items()}, "read together", may_lack=True),
        max_record_bytes=max(each.max_record_bytes for each in parts.values()),
    )


def by_slice(files: RecordFiles) -> list[RecordFiles]:
    """Returns files that are read as one, as the sets of the folders that they lie in."""
    at, sets = 0, []
    for _, group in groupby(files.paths, lambda path: path.rpartition("/")[0]):
        paths = tuple(group)
        sets.append(replace(files, paths=paths, manifests=files.manifests[at : at + len(paths)]))
        at += len(paths)
    return sets


def gather_again(paths: Sequence[str]) -> RecordFiles:
    """Returns files that were located before, of a folder or of several slices. Raises as `gather` or `locate_url`."""
    folders = {
        folder: gather_urls([*group]) if is_remote(folder) else gather(list(map(Path, group)), sizes_must_fit=False)
        for folder, group in groupby(paths, lambda path: path.rpartition("/")[0])
    }
    return next(iter(folders.values())) if len(folders) == 1 else join_slices(folders)


def slice_folders(folder: Path, slices: SliceChoice) -> tuple[list[Path], list[str]]:
    """Returns the folders of some slices of a dataset, given its own; and which of `all` are not there.

    Raises as `choose_slices`.
    """
    if not holds_slices(folder):
        raise ConfigError(f"slices={slices!r}: {folder} is no dataset with slices; leave it out")
    there, known = slices_in(folder)
    keys = choose_slices(slices, "allow" if slices == "all" else "raise", there, known, folder.name)
    others = [key for key in known.all_keys() if key not in there] if known and slices == "all" else []
    return [folder / SLICES / key for key in keys], others


def slices_in(folder: Path) -> "tuple[set[str], Slices | None]":
    """Returns the keys of a dataset's slices that were made; and which there can be, where saved.

    One whose first shards are being written is not there yet: it is once their feature spec, which comes last, is.
    """
    from tfr_assets.sources import load_slices

    finished = [feature_spec_path(path / "shards") for path in (folder / SLICES).glob("*")]
    there = {path.parents[1].name for path in finished if path.is_file()}
    there |= {path.parents[2].name for path in (folder / SLICES).glob("*/merged/manifest/*.json")}
    try:
        content = (folder / SLICES / SLICES_FILE).read_bytes()
    except OSError:
        return there, None
    return there, load_slices(content)


def unfinished_slices(folder: Path, there: Collection[str]) -> list[str]:
    """Returns the keys of the slices whose inventory was taken, but that have no files, or not all."""
    taken = {path.parents[1].name for path in (folder / SLICES).glob("*/raw/inventory.json")}
    written = {path.parents[2].name for path in (folder / SLICES).glob("*/shards/manifest/*.json")}
    return sorted((taken | written) - {*there})
