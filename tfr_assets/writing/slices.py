"""What slices of one dataset owe each other: records that can be read together, and raw files of their own."""

import hashlib
from collections.abc import Mapping

from tfr_assets.errors import SchemaError, SourceError, StaleError, TfrError
from tfr_assets.layout import feature_spec_path
from tfr_assets.records.schema.features import FeatureSpec
from tfr_assets.records.schema.joint import joint_spec
from tfr_assets.sources import Inventory, called, files_state, missing_root, part_with_data, source_files
from tfr_assets.storage.atomic import write_atomically
from tfr_assets.storage.sealed import seal, unseal
from tfr_assets.writing.dataset import Dataset
from tfr_assets.writing.outdated import outdated
from tfr_assets.writing.plan import plan_features


def check_own_files(dataset: Dataset) -> None:
    """Makes sure that no raw file of a slice belongs to another slice, too.

    Raises:
        SourceError: One does.
    """
    assert dataset.slices and dataset.slice and dataset.sliced
    files = (file.path for file in source_files(dataset.source))
    if shared := dataset.slices.shared_with(dataset.sliced, dataset.slice, files):
        path, other = shared
        raise SourceError(
            f"{path}: belongs to the slice {dataset.slice} and to {other}, says {dataset.sliced}; write a pattern that "
            "tells them apart, best with a folder for each slice"
        )


def check_fits(dataset: Dataset, features: FeatureSpec) -> None:
    """Makes sure that the records of a slice can be read together with those of the slices that are there.

    Of slices of time, a later one may have more columns than an earlier one, but not fewer.

    Args:
        dataset: The slice.
        features: What its records will have.

    Raises:
        SchemaError: They cannot; the message names the other slice and the feature.
    """
    from tfr_assets.writing.shard import load_feature_spec  # brings the kernels, which a sensor does not need

    assert dataset.slices and dataset.slice
    keys = dataset.slices.all_keys()
    place = keys.index(dataset.slice)
    seen: set[tuple[bool, bytes]] = set()  # most slices have the same features
    for at, key in enumerate(keys):
        layout = dataset.layout_of(key)
        try:
            content = feature_spec_path(layout.shards).read_bytes()
        except OSError:  # it was not made
            continue
        grows = dataset.slices.values is None and at < place
        if at == place or (grows, content) in seen:
            continue
        seen.add((grows, content))
        saved = load_feature_spec(layout.shards)
        if saved and _conflict(key, saved[0], dataset.slice, features, grows):
            current = _current_features(dataset, key)  # settings may have changed since it was written
            if current and (says := _conflict(key, current, dataset.slice, features, grows)):
                raise SchemaError(
                    f"the records of slice {dataset.slice} do not fit those of slice {key}; nothing was written. "
                    f"{says}. `features.cast` makes one type of several, `features.drop` leaves a column out"
                )


def _conflict(key: str, theirs: FeatureSpec, own: str, features: FeatureSpec, grows: bool) -> str:
    try:
        joint_spec({key: theirs, own: features}, "read together", may_lack=True)
    except SchemaError as error:
        return str(error)
    there = {feature.name for feature in features.features}
    gone = [feature.name for feature in theirs.features if feature.name not in there] if grows else []
    return f"Feature {gone[0]!r} is missing in {own!r}" if gone else ""


def _current_features(dataset: Dataset, key: str) -> FeatureSpec | None:
    """Returns the features that another slice would have if it was written now; None, where that is not known."""
    try:
        return plan_features(dataset, Inventory.load(dataset.layout_of(key).inventory))
    except TfrError:
        return None


def check_really_empty(dataset: Dataset, error: SourceError) -> None:
    """Makes sure that a slice has no raw data because there is none, and not because it cannot be seen.

    Args:
        dataset: The slice.
        error: What said that there is none.

    Raises:
        SourceError: It had rows before; or another part of its source has data; or the folder of all slices is gone.
    """
    assert dataset.sliced
    try:
        rows = Inventory.load(dataset.layout.inventory).rows
    except StaleError:  # it was not made
        rows = 0
    if rows:
        raise SourceError(
            f"{error} Slice {dataset.slice} had {rows:,} rows, now none; remove its folder {dataset.layout.folder} if "
            "that is meant"
        ) from error
    if gone := missing_root(dataset.sliced):
        raise SourceError(f"{error} The folder {gone} of all slices is not there; is it mounted?") from error
    if there := part_with_data(dataset.source):
        raise SourceError(f"{error} But there is data in {there}; a slice is only empty where all parts are") from error


def empty_inventory(dataset: Dataset) -> Inventory:
    """Returns the inventory of a slice without raw data: no rows, with the columns of the nearest slice before it.

    Raises:
        SourceError: No other slice is there, and so nothing shows the columns.
    """
    assert dataset.slices and dataset.slice
    keys = dataset.slices.all_keys()
    place = keys.index(dataset.slice)
    for key in (*reversed(keys[:place]), *keys[place + 1 :]):
        try:
            other = Inventory.load(dataset.layout_of(key).inventory)
        except StaleError:
            continue
        return Inventory(
            source=dataset.source,
            files=(),
            landed=(),
            file_count=0,
            rows=0,
            splits=dict.fromkeys(dataset.splits, 0),
            bytes=0,
            schema=other.schema,
            listing=other.listing,
            classes=other.classes,
            null_counts=other.null_counts,
            fingerprint=hashlib.sha256(f"empty {other.schema}".encode()).hexdigest(),
        )
    raise SourceError.of_no_data(
        f"slice {dataset.slice} has no raw data, and no other slice shows which columns its files would have; make one "
        "that has some first"
    )


def raw_state(dataset: Dataset) -> str:
    """Returns what changes when raw files of a slice do; nothing, where only a run can tell, or where there are none.

    Raises:
        SourceError: They cannot be listed.
    """
    if called(dataset.source):
        return ""
    try:
        return files_state(dataset.source)
    except SourceError as error:
        if not error.no_data:
            raise
        return ""


def save_raw_state(dataset: Dataset, state: str) -> None:
    """Saves what the raw files of a slice were when its inventory was taken."""
    write_atomically(dataset.layout.raw_state, seal({"files": state}))


def why_new(dataset: Dataset, state: str) -> str:
    """Returns why a slice is to be made, or made again; nothing, if all of it is there and current.

    Reads no data. A slice without raw files is not made, unless it was.

    Args:
        dataset: The slice.
        state: As `raw_state` gives it.
    """
    try:
        saved: Mapping[str, object] = unseal(dataset.layout.raw_state.read_bytes()) or {}
    except OSError:
        return "it was not made yet" if state or called(dataset.source) else ""
    if saved.get("files") != state:
        return "its raw files have changed"
    try:
        return "its files are missing or outdated" if outdated(dataset) else ""
    except TfrError as error:
        return str(error)
