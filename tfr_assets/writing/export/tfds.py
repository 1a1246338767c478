"""The files beside the shards by which TensorFlow Datasets loads them: `tfds.builder_from_directory(FOLDER)`.

    dataset_info.json   name, splits, records of every shard
    features.json       how a record is parsed; see `writing.export.tfds_features`
    ….labels.txt        names of classes, one per line

Without `dataset_info.json` nothing is loaded: it goes before anything changes, and comes last.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.schema.features import FeatureSpec
from tfr_assets.storage.atomic import remove, write_atomically
from tfr_assets.writing.export.tfds_features import LABELS, UNKNOWN, ImageFacts, features_dict, label_files

INFO, FEATURES = "dataset_info.json", "features.json"
VERSION = "1.0.0"  # TensorFlow Datasets asks for one; ours are distinguished by fingerprints

_TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
Json = dict[str, Any]


def tfds_files(
    name: str,
    spec: FeatureSpec,
    splits: Mapping[str, Sequence[Manifest]],
    images: ImageFacts = UNKNOWN,
) -> dict[str, bytes] | str:
    """Returns the files' contents by name, in the order to write them in; or, in a sentence, why there are none.

    Args:
        name: The dataset's, as in the shards' names.
        spec: The features of all records.
        splits: The manifests of every split's shards, in order.
        images: What is known of encoded images, if there are any.
    """
    if reason := _obstacle(spec, splits):
        return reason
    labels = label_files(spec)
    features = features_dict(spec, labels.keys(), images)
    info: Json = {
        "name": name,
        "version": VERSION,
        "fileFormat": "tfrecord",
        "splits": [_split(split, manifests) for split, manifests in splits.items()],
    }
    if keys := _supervised(features["featuresDict"]["features"]):
        info["supervisedKeys"] = keys
    return {FEATURES: _text(features), **dict(labels.values()), INFO: _text(info)}


def write_tfds_files(
    folder: Path,
    name: str,
    spec: FeatureSpec,
    splits: Mapping[str, Sequence[Manifest]],
    images: ImageFacts = UNKNOWN,
) -> str | None:
    """Puts the files beside the shards that they describe; those that no longer hold go.

    Args:
        folder: The shards'.
        name: The dataset's, as in the shards' names.
        spec: The features of all records.
        splits: The manifests of every split's shards, in order.
        images: What is known of encoded images, if there are any.

    Returns:
        None; or, in a sentence, why TensorFlow Datasets cannot load the shards: then no such files are there.

    Raises:
        WriteError: The file system refused.
    """
    made = tfds_files(name, spec, splits, images)
    files = {} if isinstance(made, str) else made
    if not files or not all(_holds(folder / file, content) for file, content in files.items()):
        withdraw_tfds_files(folder)
        for file, content in files.items():
            write_atomically(folder / file, content)
    for path in (folder / FEATURES, *folder.glob(f"*{LABELS}")):
        if path.name not in files:
            remove(path)
    return made if isinstance(made, str) else None


def withdraw_tfds_files(folder: Path) -> None:
    """Hides shards from TensorFlow Datasets, because they are about to change."""
    remove(folder / INFO)


def _obstacle(spec: FeatureSpec, splits: Mapping[str, Sequence[Manifest]]) -> str | None:
    """Returns why TensorFlow Datasets cannot load the shards, if so."""
    compressions = {manifest.compression for manifests in splits.values() for manifest in manifests} - {"none"}
    if compressions:
        return (
            f"TensorFlow Datasets reads no compressed TFRecord files, and these are {'/'.join(sorted(compressions))}; "
            "write them with `compression: none`"
        )
    if sequences := [feature.name for feature in spec.features if feature.sequence]:
        return (
            f"TensorFlow Datasets reads no SequenceExamples, and {', '.join(sequences)} are asked for as sequences; "
            "without `features.sequence`, they are features of tf.Examples"
        )
    return None


def _supervised(connectors: Mapping[str, Json]) -> Json | None:
    """Returns what `as_supervised=True` gives, where there is one image and one label."""
    images = [name for name, connector in connectors.items() if "image" in connector]
    labels = [name for name, connector in connectors.items() if "classLabel" in connector]
    return {"input": images[0], "output": labels[0]} if len(images) == len(labels) == 1 else None


def _split(name: str, manifests: Sequence[Manifest]) -> Json:
    return {
        "name": name,
        "shardLengths": [str(manifest.records) for manifest in manifests],
        "numBytes": str(sum(manifest.bytes for manifest in manifests)),
        "filepathTemplate": _TEMPLATE,
    }


def _text(values: Json) -> bytes:
    return (json.dumps(values, indent=1, sort_keys=True) + "\n").encode()


def _holds(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content
