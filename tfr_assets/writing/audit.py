"""What lies beside TFRecord files, held against what was written.

That is which files there must be, what describes them, and what raw data was there. The TFRecord files themselves are
examined by `records.report`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfr_assets.errors import StaleError
from tfr_assets.layout import Layout, feature_spec_path, index_path, manifest_path, set_of
from tfr_assets.records.features import FeatureSpec
from tfr_assets.records.files import abandoned_files
from tfr_assets.records.manifest import Manifest
from tfr_assets.records.scan import Fault, FaultKind
from tfr_assets.records.sealed import unseal
from tfr_assets.sources import Inventory
from tfr_assets.sources.landing import landing_problem
from tfr_assets.writing.stray import MERGED, SHARD, names_in, places_of
from tfr_assets.writing.tfds import FEATURES, INFO, tfds_files
from tfr_assets.writing.tfds_features import LABELS, image_facts

_AGAIN = "run again, which writes it anew"


@dataclass(frozen=True)
class Audit:
    """What was found.

    Attributes:
        faults: What is wrong.
        notes: What is not wrong but not of this project either, or left over; a line each.
    """

    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()

    def __add__(self, other: "Audit") -> "Audit":
        return Audit(self.faults + other.faults, self.notes + other.notes)


def audit_folder(folder: Path) -> Audit:
    """Looks for files that are missing from a folder of TFRecord files, and for those that do not belong there.

    Which there must be, the feature spec tells, and names that end in `-of-N`. Reads manifests only.
    """
    names = names_in(folder)
    manifests = {name: manifest for name in names if (manifest := Manifest.load(folder / name))}
    spec = _sealed(feature_spec_path(folder))
    features = FeatureSpec.from_json(spec["features"]) if spec else None
    faults, notes = [], []
    if spec is None and feature_spec_path(folder).exists():
        faults.append(_beside(feature_spec_path(folder), f"it is damaged; {_AGAIN}"))
    listed = set(spec["files"]) if spec else set()
    splits = {_stem(name) for name in listed}  # `write` lists those of its last call, other splits may lie beside them
    expected = listed.union(*(set_of(name) for name in manifests))
    for name in sorted(expected - names):
        faults.append(_fault(folder / name, FaultKind.MISSING, f"with its manifest; {_AGAIN}"))
    for name, manifest in sorted(manifests.items()):
        if spec and name in listed and manifest.features != features:
            faults.append(_beside(feature_spec_path(folder), f"{name} was written by another feature spec; {_AGAIN}"))
        elif (
            listed and name not in listed and set_of(name) and (_is_of_dataset(folder / name) or _stem(name) in splits)
        ):
            says = f"it belongs to another set than {feature_spec_path(folder).name} lists; run again, which removes it"
            faults.append(_fault(folder / name, FaultKind.STRAY, says))
    faults += _mixed_sets(folder, manifests)
    ours = {_stem(name) for name in expected}
    for name in sorted(names - set(manifests)):
        path = folder / name
        if manifest_path(path).exists():
            continue  # what is wrong with that is found with its file
        if not path.is_file():
            faults.append(_fault(index_path(path), FaultKind.STRAY, "it is the index of no file; remove it"))
        elif _is_of_dataset(path):
            faults.append(_fault(path, FaultKind.STRAY, "it was left by an earlier run; run again, which removes it"))
        elif set_of(name) and _stem(name) in ours:
            says = "no manifest describes it: left by a `write` that was killed, or somebody else's; remove it"
            faults.append(_fault(path, FaultKind.STRAY, says))
        elif ".tfrecord" in name or ".tfr" in name:
            notes.append(f"{path}: no manifest vouches for it; only its own checksums were checked")
    left = [path for place in places_of(folder) for path in abandoned_files(place)]
    notes += [f"{path}: left by a process that was killed; the next run removes it" for path in left]
    return Audit(tuple(faults), tuple(notes))


def _is_of_dataset(path: Path) -> bool:
    """Whether a file is named and lies as the dataset's whose folder is above: it is nobody else's."""
    dataset, form = path.parent.parent, {"shards": SHARD, "merged": MERGED}.get(path.parent.name)
    return form is not None and (dataset / "raw").is_dir() and bool(re.fullmatch(dataset.name + form, path.name))


def _mixed_sets(folder: Path, manifests: Mapping[str, Manifest]) -> Iterator[Fault]:
    """Yields files that were made from other data or settings than the first of their set."""
    makes: dict[str, tuple[str, object]] = {}
    for name, manifest in sorted(manifests.items()):
        make = {**manifest.made_from, "rows": None, "compression": manifest.compression}
        first, expected = makes.setdefault(f"{name.partition('.tfrecord')[0]} {len(set_of(name))}", (name, make))
        if make != expected:
            says = f"it was made from other data or settings than {first}; {_AGAIN}"
            yield _fault(folder / name, FaultKind.STRAY, says)


def audit_dataset(layout: Layout) -> Audit:
    """Looks at what describes a dataset as a whole: inventory, landing, plan, recommendation, files for other tools."""
    return Audit(tuple(_dataset_faults(layout)))


def _dataset_faults(layout: Layout) -> Iterator[Fault]:
    for path in (layout.planned, layout.readers / "recommendation.json"):
        if path.exists() and _sealed(path) is None:
            yield _beside(path, f"it is damaged; {_AGAIN}")
    if not layout.inventory.exists():
        return
    try:
        inventory = Inventory.load(layout.inventory)
    except StaleError as error:
        yield _beside(layout.inventory, str(error))
        return
    for record in sorted({Path(part.path).with_name("landing.json") for part in inventory.landed}):
        if _sealed(record) is None:
            yield _beside(record, f"it is damaged; {_AGAIN}")
    for part in inventory.landed:
        if problem := landing_problem(part):
            yield _beside(Path(part.path), f"{problem}; {_AGAIN}")
    if list(layout.merged.glob("*.tfrecord")):
        for split in inventory.splits:
            if not layout.merged_path(split).exists() and not manifest_path(layout.merged_path(split)).exists():
                yield _fault(layout.merged_path(split), FaultKind.MISSING, _AGAIN)
    yield from _description_faults(layout, inventory)


def _description_faults(layout: Layout, inventory: Inventory) -> Iterator[Fault]:
    """Yields what is wrong with the files for TensorFlow Datasets, where these are complete."""
    folder = layout.shards
    spec = _sealed(feature_spec_path(folder))
    manifests = [Manifest.load(folder / name) for name in spec["files"]] if spec else []
    found = [manifest for manifest in manifests if manifest and manifest.features]
    if not (folder / INFO).exists() or not found or len(found) < len(manifests) or not found[0].features:
        return
    by_split: Mapping[str, list[Manifest]] = {
        split: [manifest for manifest in found if manifest.file.startswith(f"{layout.name}-{split}.tfrecord")]
        for split in inventory.splits
    }
    expected = tfds_files(layout.name, found[0].features, by_split, images=image_facts(inventory))
    contents: Mapping[str, bytes] = {} if isinstance(expected, str) else expected
    there = {path.name for path in (folder / INFO, folder / FEATURES, *folder.glob(f"*{LABELS}")) if path.exists()}
    for name in sorted(there | contents.keys()):
        path = folder / name
        if name not in there or path.read_bytes() != contents.get(name):
            yield _beside(path, f"it does not describe the shards beside it; {_AGAIN}")


def _sealed(path: Path) -> dict[str, Any] | None:
    try:
        return unseal(path.read_bytes())
    except OSError:
        return None


def _beside(path: Path, says: str) -> Fault:
    return _fault(path, FaultKind.BESIDE, says)


def _fault(path: Path, kind: FaultKind, says: str) -> Fault:
    return Fault(str(path), 0, 0, kind, says)


def _stem(name: str) -> str:
    """Returns the part of a file's name that tells dataset and split."""
    return name.partition(".tfrecord")[0]
