"""What lies beside TFRecord files, compared with what was written.

That is which files there must be, what describes them, and what raw data was there. The TFRecord files themselves are
examined by `records.frames.examine`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfr_assets.errors import ConfigError, StaleError
from tfr_assets.layout import Layout, feature_spec_path, index_path, manifest_path, name_in, set_of
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.frames.scan import Fault, FaultKind
from tfr_assets.sources import Inventory
from tfr_assets.sources.landing.landed import landing_problem
from tfr_assets.storage.atomic import abandoned_files
from tfr_assets.storage.sealed import unseal
from tfr_assets.writing.export.tfds import FEATURES, INFO, tfds_files
from tfr_assets.writing.export.tfds_features import LABELS, image_facts
from tfr_assets.writing.shard import load_feature_spec
from tfr_assets.writing.stray import MERGED, SHARD, names_in, places_of

_AGAIN = "run again, which writes it"


@dataclass(frozen=True)
class Note:
    """What is not wrong, but should be known of a file.

    Attributes:
        path: The file.
        says: What is to be known.
    """

    path: str
    says: str

    def __str__(self) -> str:
        return f"{self.path}: {self.says}"


@dataclass(frozen=True)
class Audit:
    """What was found.

    Attributes:
        faults: What is wrong.
        notes: What is not wrong but not of this project either, or left over.
    """

    faults: tuple[Fault, ...] = ()
    notes: tuple[Note, ...] = ()

    def __add__(self, other: "Audit") -> "Audit":
        return Audit(self.faults + other.faults, self.notes + other.notes)


def audit_folder(folder: Path) -> Audit:
    """Looks for files that are missing from a folder of TFRecord files, and for those that do not belong there.

    The feature spec, and names that end in `-of-N`, say which there must be. Reads manifests only.
    """
    names = names_in(folder)
    manifests = {name: manifest for name in names if (manifest := Manifest.load(folder / name))}
    spec = load_feature_spec(folder)
    features, listed = spec or (None, ())
    faults: list[Fault] = []
    notes: list[Note] = []
    if spec is None and feature_spec_path(folder).exists():
        faults.append(_beside(feature_spec_path(folder), f"it is damaged; {_AGAIN}"))
    splits = {_stem(name) for name in listed}  # `write` lists those of its last call, other splits may lie beside them
    expected = set(listed).union(*(set_of(name) for name in manifests))
    there = {name for name in names if (folder / name).is_file() or manifest_path(folder / name).exists()}
    for name in sorted(expected - there):
        faults.append(_fault(folder / name, FaultKind.MISSING, f"with its manifest; {_AGAIN}"))
    for name, manifest in sorted(manifests.items()):
        if name in listed and manifest.features != features:
            faults.append(_beside(feature_spec_path(folder), f"{name} was written by another feature spec; {_AGAIN}"))
        elif (
            listed and name not in listed and set_of(name) and (_is_of_dataset(folder / name) or _stem(name) in splits)
        ):
            says = f"it belongs to another set than {feature_spec_path(folder).name} lists; run again, which removes it"
            faults.append(_fault(folder / name, FaultKind.EXTRA, says))
    faults += _mixed_sets(folder, manifests)
    ours = {_stem(name) for name in expected}
    for name in sorted(names - set(manifests)):
        path = folder / name
        if manifest_path(path).exists():
            continue  # what is wrong with that is found with its file
        if not path.is_file():
            if name not in expected:  # else it was reported as missing
                remedy = "run again, which removes it" if _is_of_dataset(path) else "remove it"
                says = f"the file that it is the index of is gone, and so is its manifest; {remedy}"
                faults.append(_fault(index_path(path), FaultKind.EXTRA, says))
        elif _is_of_dataset(path):
            faults.append(_fault(path, FaultKind.STRAY, "it was left by an earlier run; run again, which removes it"))
        elif set_of(name) and _stem(name) in ours:
            says = "no manifest describes it: left by a `write` that was killed, or somebody else's; remove it"
            faults.append(_fault(path, FaultKind.STRAY, says))
        elif ".tfrecord" in name or ".tfr" in name:
            notes.append(Note(str(path), "no manifest describes it; only its own checksums were checked"))
    left = [path for place in places_of(folder) for path in abandoned_files(place)]
    notes += [Note(str(path), "left by a process that was killed; the next run removes it") for path in left]
    return Audit(tuple(faults), tuple(notes))


def _is_of_dataset(path: Path) -> bool:
    """Whether a file has the name and place of a file of the dataset whose folder is above: it is nobody else's."""
    dataset, form = path.parent.parent, {"shards": SHARD, "merged": MERGED}.get(path.parent.name)
    if form is None or not (dataset / "raw").is_dir():
        return False
    return bool(re.fullmatch(re.escape(name_in(dataset)) + form, path.name))


def _mixed_sets(folder: Path, manifests: Mapping[str, Manifest]) -> Iterator[Fault]:
    """Yields files that were made from other data or settings than the first of their set."""
    makes: dict[str, tuple[str, object]] = {}
    for name, manifest in sorted(manifests.items()):
        make = {**manifest.made_from, "rows": None, "compression": manifest.compression}
        first, expected = makes.setdefault(f"{name.partition('.tfrecord')[0]} {len(set_of(name))}", (name, make))
        if make != expected:
            says = f"it was made from other data or settings than {first}; {_AGAIN}"
            yield _fault(folder / name, FaultKind.MIXED, says)


def audit_dataset(folder: Path) -> Audit:
    """Looks at what describes a dataset as a whole: inventory, landing, plan, recommendation, files for other tools."""
    try:
        layout = _layout_of(folder)
    except ConfigError:
        says = "no file in it tells the dataset's name, and the folder's is none; give the folder its first name back"
        return Audit((_beside(folder, says),))
    return Audit(tuple(_dataset_faults(layout)))


def _layout_of(folder: Path) -> Layout:
    """Returns the layout of a dataset's folder. Where that is a copy under another name, its files show the first.

    Raises:
        ConfigError: There are no files, and the folder's name is not a dataset's.
    """
    form = re.compile(f"([A-Za-z0-9][A-Za-z0-9_]*)({SHARD}|{MERGED})")
    names = [name for part in ("shards", "merged") for name in sorted(names_in(folder / part))]
    found = Counter(match[1] for match in map(form.fullmatch, names) if match)
    name = name_in(folder)
    return Layout(name if name in found or not found else found.most_common(1)[0][0], folder)


def _dataset_faults(layout: Layout) -> Iterator[Fault]:
    if layout.planned.exists() and _sealed(layout.planned) is None:
        yield _beside(layout.planned, f"it is damaged; {_AGAIN}")
    for path in layout.measurements():
        if _sealed(path) is None:
            measured = "writers" if path.parent == layout.writers else "readers"
            remedy = f"run again, which removes it; `tfr bench {measured} {layout.name}` writes another"
            yield _beside(path, f"it is damaged; {remedy}")
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
    problems = {part.path: problem for part in inventory.landed if (problem := landing_problem(part))}
    for part, problem in problems.items():
        yield _beside(Path(part), f"{problem}; {_AGAIN}")
    if layout.merged.is_dir():
        for split in inventory.splits:
            if not layout.merged_path(split).exists() and not manifest_path(layout.merged_path(split)).exists():
                yield _fault(layout.merged_path(split), FaultKind.MISSING, _AGAIN)
    if not problems:  # what is said of images is landed
        yield from _description_faults(layout, inventory)


def _description_faults(layout: Layout, inventory: Inventory) -> Iterator[Fault]:
    """Yields what is wrong with the files that describe the shards, once all shards are of this inventory.

    Until then, it is unknown what they must be: what is said of images, only the inventory of their shards knew.
    """
    folder = layout.shards
    found = {name: manifest for name in sorted(names_in(folder)) if (manifest := Manifest.load(folder / name))}
    by_split: Mapping[str, list[Manifest]] = {
        split: [manifest for name, manifest in found.items() if name.startswith(f"{layout.name}-{split}.tfrecord-")]
        for split in inventory.splits
    }
    features = next((manifest.features for manifest in found.values()), None)
    current = all(manifest.made_from.get("inventory") == inventory.fingerprint for manifest in found.values())
    if not current or not all(by_split.values()) or any(name not in found for each in found for name in set_of(each)):
        return
    if not feature_spec_path(folder).exists():
        yield _fault(feature_spec_path(folder), FaultKind.MISSING, _AGAIN)
    if features is None:
        return
    expected = tfds_files(layout.name, features, by_split, images=image_facts(inventory))
    contents: Mapping[str, bytes] = {} if isinstance(expected, str) else expected
    there = {path.name for path in (folder / INFO, folder / FEATURES, *folder.glob(f"*{LABELS}")) if path.exists()}
    for name in sorted(there | contents.keys()):
        path = folder / name
        if name not in there:
            yield _fault(path, FaultKind.MISSING, _AGAIN)
        elif path.read_bytes() != contents.get(name):
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
    """Returns the part of a file's name that names dataset and split."""
    return name.partition(".tfrecord")[0]
