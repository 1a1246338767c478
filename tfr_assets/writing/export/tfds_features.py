"""Features as TensorFlow Datasets declares them, so that it parses our records.

| feature                                   | in TensorFlow Datasets   | one record's value                        |
|-------------------------------------------|--------------------------|-------------------------------------------|
| scalar or fixed shape, in every record    | Tensor; Text for strings | as `tfr_assets.read` gives it             |
| the same, optional bytes without `fill`   | Tensor, optional         | `b""` where absent                        |
| the same, optional otherwise              | Tensor((None, …))        | no value, or the one                      |
| list of varying length                    | Tensor((None, …))        | the values; none where absent             |
| integer with class names                  | ClassLabel               | the number                                |
| the same, optional                        | Sequence(ClassLabel)     | no number, or the one                     |
| `image/encoded` beside `image/format`     | Image                    | uint8 (height, width, channels), decoded  |
| ragged                                    | Sequence(Sequence(…))    | a ragged tensor                           |
| tensor of varying shape                   | two Tensors              | its values, flat; and `NAME/shape`        |
| serialized tensor                         | Tensor of bytes          | what `tf.io.parse_tensor` takes           |

Keys are the features' names, slashes included: `example["image/encoded"]`. Where an optional number is absent,
TensorFlow Datasets would put the smallest number of its type, which looks like data; a list of no or one value does
not. It decodes a GIF or WebP image to frames, which are no Image: where such are known to occur, all images stay bytes.
"""

import io
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from tfr_assets.errors import SourceChanged
from tfr_assets.records.schema.features import (
    FLAT_VALUES,
    NARROW_TYPES,
    ROW_LENGTHS,
    SERIALIZED,
    Feature,
    FeatureSpec,
    Kind,
)
from tfr_assets.sources import Inventory
from tfr_assets.sources.landing.landed import landing_problem

Json = dict[str, Any]
LABELS = ".labels.txt"
_MODULE = "tensorflow_datasets.core.features"
_ONE_FRAME = {"jpeg", "png", "bmp"}
_LONGEST_NAME = 200  # bytes of a file's name; the system's 255 less what a temporary name adds
_STORED = {Kind.INT64: "int64", Kind.FLOAT32: "float32", Kind.BYTES: "string"}
_TEXTS = {"string", "large_string", "string_view"}


@dataclass(frozen=True)
class ImageFacts:
    """What is known of a dataset's encoded images.

    Attributes:
        formats: Those that occur, such as `jpeg`; empty where unknown.
        shape: Height, width and channels; None where they differ or are unknown.
    """

    formats: frozenset[str] = frozenset()
    shape: tuple[int | None, ...] = (None, None, None)


UNKNOWN = ImageFacts()


def image_facts(inventory: Inventory) -> ImageFacts:
    """Returns what the listing of a folder of images says of them all; of other raw data, that nothing is known.

    Raises:
        SourceChanged: The listing is missing or damaged.
    """
    found: dict[str, set[Any]] = {fact: set() for fact in ("format", "height", "width", "channels")}
    names = inventory.listing.names if inventory.listing else []
    columns = {name: fact for name in names for fact in found if name.endswith(f"image/{fact}")}
    for part in inventory.landed if columns else ():
        if problem := landing_problem(part):
            raise SourceChanged(f"{part.path}: {problem}. Materialize raw again.")
        table = pq.read_table(part.path, columns=list(columns))
        for name, fact in columns.items():
            found[fact].update(table[name].unique().to_pylist())
    formats, *sizes = found.values()
    return ImageFacts(frozenset(formats), tuple(min(size) if len(size) == 1 else None for size in sizes))


def features_dict(spec: FeatureSpec, labelled: Collection[str], images: ImageFacts) -> Json:
    """Returns the content of `features.json`.

    Args:
        spec: The features of all records; tf.Examples.
        labelled: Names of the features that have a file of class names.
        images: What is known of encoded images, if there are any.
    """
    return _of_class("features_dict.FeaturesDict", featuresDict={"features": dict(_connectors(spec, labelled, images))})


def label_files(spec: FeatureSpec) -> dict[str, tuple[str, bytes]]:
    """Returns name and content of the file of class names, by feature; only of names that will be read as they are."""
    named = {feature.name: feature.names for feature in spec.features if feature.names}
    files = {name: name.replace("/", ".") + LABELS for name in named}
    count = Counter(files.values())
    return {
        name: (files[name], "".join(f"{label}\n" for label in names).encode())
        for name, names in named.items()
        if count[files[name]] == 1 and _fits(files[name]) and _read_back(names) == list(names)
    }


def _fits(file_name: str) -> bool:
    return file_name.isprintable() and len(file_name.encode()) <= _LONGEST_NAME


def _read_back(names: Sequence[str]) -> list[str]:
    """Returns the class names that TensorFlow Datasets makes of a file of them; it wants no name twice."""
    lines = (line.strip() for line in io.StringIO("".join(f"{name}\n" for name in names), newline=None))
    return list(dict.fromkeys(line for line in lines if line))


def _connectors(spec: FeatureSpec, labelled: Collection[str], images: ImageFacts) -> Iterator[tuple[str, Json]]:
    """Yields key and connector, TensorFlow Datasets' word for how a feature is parsed, of all features."""
    lengths = Counter(f.base_name for f in spec.features if f.part and f.part.startswith(ROW_LENGTHS))
    for feature in spec.features:
        if feature.part == FLAT_VALUES:
            values = _tensor(feature, feature.value_shape[1:])
            yield feature.base_name, _sequence(values, lengths[feature.base_name] + 1)
        elif _is_image(feature, spec) and _ONE_FRAME.issuperset(images.formats):
            image = {"shape": _shape(images.shape), "dtype": "uint8"}
            yield feature.name, _of_class("image_feature.Image", image=image)
        elif feature.part is None or not feature.part.startswith(ROW_LENGTHS):
            yield feature.name, _connector(feature, feature.name in labelled)


def _connector(feature: Feature, labelled: bool) -> Json:
    shape = feature.value_shape
    absent = feature.optional and None not in shape
    if labelled and feature.names:
        label = _of_class("class_label_feature.ClassLabel", classLabel={"numClasses": str(len(feature.names))})
        return _sequence(label, int(absent))
    if absent and feature.kind is Kind.BYTES and feature.fill in (None, ""):
        return _tensor(feature, shape, optional=True)
    if feature.value_type in _TEXTS and feature.part is None and not shape and not absent:
        return _of_class("text_feature.Text", text={})
    return _tensor(feature, (None, *shape) if absent else shape)


def _tensor(feature: Feature, shape: Sequence[int | None], **more: bool) -> Json:
    narrow = feature.kind is Kind.INT64 and feature.value_type in NARROW_TYPES
    dtype = feature.value_type if narrow else _STORED[feature.kind]
    tensor = {"dtype": dtype, "encoding": "none", "shape": _shape(shape), **more}
    described = f"tf.io.serialize_tensor of {feature.arrow_type}" if feature.part == SERIALIZED else feature.arrow_type
    return _of_class("tensor_feature.Tensor", description=described, tensor=tensor)


def _sequence(connector: Json, depth: int) -> Json:
    for _ in range(depth):
        connector = _of_class("sequence_feature.Sequence", sequence={"feature": connector, "length": "-1"})
    return connector


def _is_image(feature: Feature, spec: FeatureSpec) -> bool:
    *_, folder, last = ("", *feature.name.split("/"))
    if (folder, last) != ("image", "encoded") or feature.kind is not Kind.BYTES or feature.shape or feature.optional:
        return False
    tells = feature.name.removesuffix(last) + "format"
    return any(other.name == tells for other in spec.features)


def _of_class(name: str, **content: Any) -> Json:
    return {"pythonClassName": f"{_MODULE}.{name}", **content}


def _shape(sizes: Sequence[int | None]) -> Json:
    return {"dimensions": [str(-1 if size is None else size) for size in sizes]} if sizes else {}
