"""Columns of slices: records of all of them can be read together."""

from tfr_assets.errors import SchemaError, TfrError
from tfr_assets.layout import feature_spec_path
from tfr_assets.records.schema.features import FeatureSpec
from tfr_assets.records.schema.joint import joint_spec
from tfr_assets.sources import Inventory
from tfr_assets.storage.atomic import refusals
from tfr_assets.storage.run_lock import hold_folder
from tfr_assets.writing.dataset import Dataset
from tfr_assets.writing.plan import plan_features


def settle_features(dataset: Dataset, features: FeatureSpec) -> None:
    """Makes sure that the records of a slice can be read together with those of all others, and saves what they have.

    That is saved beside its inventory before a record is written, by one slice after the other: of two that are written
    at the same time, the second one is compared with the first. Of slices of time, a later one may have more columns
    than an earlier one, but not fewer.

    Args:
        dataset: The slice.
        features: What its records will have.

    Raises:
        SchemaError: They cannot; the message names the other slice and the feature.
        WriteError: The file system refused.
    """
    from tfr_assets.writing.shard import describes, save_feature_spec  # bring the kernels, which a sensor does not need

    raw = dataset.layout.raw
    with refusals(raw), hold_folder(dataset.layout.folder.parent):
        _check_fits(dataset, features)
        if not describes(raw, features):
            save_feature_spec(raw, features, [])


def _check_fits(dataset: Dataset, features: FeatureSpec) -> None:
    from tfr_assets.writing.shard import load_feature_spec

    assert dataset.slices and dataset.slice
    keys = dataset.slice_keys()
    place = keys.index(dataset.slice)
    seen: set[tuple[bool, bytes]] = set()  # most slices have the same features
    others = [(at, key) for at, key in enumerate(keys) if at != place]
    for at, key in others:
        layout, grows = dataset.layout_of(key), dataset.slices.of_time and at < place
        for folder in (layout.raw, layout.shards):  # what its records are to have, and have
            try:
                content = feature_spec_path(folder).read_bytes()
            except OSError:  # it was not made
                continue
            if (grows, content) in seen:
                continue
            seen.add((grows, content))
            saved = load_feature_spec(folder)
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
