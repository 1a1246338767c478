"""`tfds.builder_from_directory` loads a folder of shards: the right features, splits, counts, and every value."""

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tfr_assets.errors import SourceChanged, WriteError
from tfr_assets.layout import Layout, assign_rows
from tfr_assets.records.examples.encoder import ExampleEncoder
from tfr_assets.records.examples.writer import write_file
from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.records.schema.derive import derive_spec
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.records.schema.features import FLAT_VALUES, ROW_LENGTHS, Feature, FeatureSpec
from tfr_assets.sources import Source, take_inventory
from tfr_assets.writing.export.tfds import FEATURES, INFO, tfds_files, withdraw_tfds_files, write_tfds_files
from tfr_assets.writing.export.tfds_features import ImageFacts, image_facts
from tfr_assets.writing.plan import plan_shards
from tfr_assets.writing.raw import materialize_raw
from tfr_assets.writing.shard import finish_shards, write_shard

from ..records.reference import examples
from ..records.tables import SORTS, Row, Table, tables
from .conftest import ROWS, MakeDataset, write_all_shards
from .conftest import table as raw_table

tfds = pytest.importorskip("tensorflow_datasets", reason="the package `tensorflow_datasets` is not installed")

Splits = dict[str, list[Manifest]]


def spec_of(table: pa.Table, options: FeatureOptions | None = None) -> FeatureSpec:
    return derive_spec(table.schema, {name: table[name].null_count for name in table.column_names}, options)


def write(
    table: pa.Table,
    root: Path,
    spec: FeatureSpec | None = None,
    counts: Mapping[str, int] | None = None,
    name: str = "sample",
    compression: str = "none",
) -> tuple[Layout, FeatureSpec, Splits]:
    """Writes a table as shards; splits are given as their numbers of shards, and share the rows evenly."""
    layout, spec = Layout.of(name, root), spec or spec_of(table)
    counts = counts or {"train": 3}
    splits: Splits = {}
    for part, (split, count) in zip(assign_rows(table.num_rows, len(counts)), counts.items(), strict=True):
        for shard in assign_rows(part.rows, count, split):
            rows = table.slice(part.start + shard.start, shard.rows).combine_chunks().to_batches()
            frames = (some for batch in rows for some in ExampleEncoder(spec).encode(batch))
            manifest = write_file(layout.shard_path(shard), frames, compression, spec)
            splits.setdefault(split, []).append(manifest)
    return layout, spec, splits


def load(table: pa.Table, root: Path, spec: FeatureSpec | None = None, **how: Any) -> Any:
    """Returns the builder of a table's shards."""
    layout, spec, splits = write(table, root, spec, **how)
    assert write_tfds_files(layout.shards, layout.name, spec, splits) is None
    return tfds.builder_from_directory(layout.shards)


def dataset(builder: Any, split: str = "train", **options: Any) -> Any:
    """All records of a split as tensors, in order."""
    in_order = tfds.ReadConfig(interleave_cycle_length=1, try_autocache=False)
    return builder.as_dataset(split, read_config=in_order, **options)


def records(builder: Any, split: str = "train", **options: Any) -> Iterator[dict[str, Any]]:
    """All records of a split as numpy values, in order."""
    return iter(dataset(builder, split, **options).as_numpy_iterator())


def stored(found: Mapping[str, Any], feature: Feature) -> np.ndarray:
    """What a loaded record holds of a feature."""
    tensor = found[feature.base_name if feature.name not in found else feature.name]
    if feature.part == FLAT_VALUES:
        return tensor.flat_values.numpy()
    if feature.part and feature.part.startswith(ROW_LENGTHS):
        return tensor.nested_row_lengths()[int(feature.part.removeprefix(ROW_LENGTHS))].numpy()
    return np.array(tensor.numpy(), object if feature.kind == "bytes" else None)  # keeps zeros at the end of bytes


def assert_holds(found: Mapping[str, Any], expected: Row, spec: FeatureSpec) -> None:
    """A record has a row's values, and none where the row has none."""
    for feature in spec.features:
        array = stored(found, feature)
        inner = feature.shape[1:] if None in feature.shape else feature.shape
        assert array.shape[array.ndim - len(inner) :] == inner
        if feature.name not in expected:
            assert set(array.ravel().tolist()) <= {b""}, feature
            continue
        kind, values = expected[feature.name]
        with np.errstate(all="ignore"):
            wanted = np.array(values, {"int64": np.int64, "float32": np.float32, "bytes": object}[kind])
        np.testing.assert_array_equal(array.ravel().astype(wanted.dtype), wanted, str(feature))


@examples(8)
@given(tables(max_rows=5))
def test_any_table(tmp_path_factory: pytest.TempPathFactory, drawn: Table) -> None:
    table = pa.Table.from_batches([drawn.batch])
    spec = derive_spec(table.schema, {})
    builder = load(table, tmp_path_factory.mktemp("any"), spec, counts={"train": 2})
    found = list(dataset(builder)) if drawn.rows else []
    assert len(found) == builder.info.splits["train"].num_examples == len(drawn.rows)
    for record, row in zip(found, drawn.rows, strict=True):
        assert_holds(record, row, spec)


@settings(examples(2), phases=[Phase.generate])  # so many columns take minutes to shrink
@given(st.data())
def test_every_sort_of_column(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    drawn = data.draw(tables({sort.name: sort for sort in SORTS}, max_rows=3))
    spec = derive_spec(drawn.batch.schema, {})
    builder = load(pa.Table.from_batches([drawn.batch]), tmp_path_factory.mktemp("sorts"), spec)
    for record, row in zip(dataset(builder) if drawn.rows else (), drawn.rows, strict=True):
        assert_holds(record, row, spec)


TABLE = pa.table(
    {
        "id": pa.array(range(40), pa.int32()),
        "on": pa.array([n % 3 == 0 for n in range(40)]),
        "value": pa.array([n / 4 for n in range(40)], pa.float64()),
        "name": [f"näme {n}" for n in range(40)],
        "tags": [[f"t{k}" for k in range(n % 4)] for n in range(40)],
        "pixels": pa.array([[n, n + 1, n + 2, n + 3] for n in range(40)], pa.list_(pa.uint8(), 4)),
        "at": pa.array(range(40), pa.timestamp("us")),
        "place/x": [n / 2 for n in range(40)],
    }
)


def test_it_yields_what_read_yields(tmp_path: Path) -> None:
    import tfr_assets

    builder = load(TABLE, tmp_path)
    read = tfr_assets.read(tmp_path / "sample" / "shards", batch_size=1)
    for found, batch in zip(records(builder), read, strict=True):
        assert found.keys() == batch.keys()
        for name, tensor in batch.items():
            (expected,) = tensor.numpy()
            np.testing.assert_array_equal(found[name], expected)
            assert np.asarray(found[name]).dtype == np.asarray(expected).dtype


def test_features_splits_and_counts(tmp_path: Path) -> None:
    layout, spec, splits = write(TABLE, tmp_path, counts={"train": 3, "validation": 1, "test": 2})
    assert write_tfds_files(layout.shards, "sample", spec, splits) is None
    builder = tfds.builder_from_directory(layout.shards)
    info, features = builder.info, tfds.features
    assert (info.name, str(info.version)) == ("sample", "1.0.0")
    assert {name: type(connector) for name, connector in info.features.items()} == {
        **dict.fromkeys(["id", "on", "value", "tags", "pixels", "at", "place/x"], features.Tensor),
        "name": features.Text,
    }
    dtypes = {name: (connector.np_dtype.name, connector.shape) for name, connector in info.features.items()}
    assert dtypes == {
        "id": ("int32", ()),
        "on": ("bool", ()),
        "value": ("float32", ()),
        "name": ("object", ()),
        "tags": ("object", (None,)),
        "pixels": ("uint8", (4,)),
        "at": ("int64", ()),
        "place/x": ("float32", ()),
    }
    assert info.features["at"].doc.desc == "timestamp[us]"  # what the number counts
    assert list(info.splits) == ["train", "validation", "test"]
    assert [info.splits[split].shard_lengths for split in info.splits] == [[4, 4, 5], [13], [7, 7]]
    for split, manifests in splits.items():
        paths = [layout.shards / manifest.file for manifest in manifests]
        assert info.splits[split].filepaths == paths
        assert info.splits[split].num_bytes == sum(path.stat().st_size for path in paths)
    assert info.dataset_size == sum(path.stat().st_size for path in layout.shards.glob("*.tfrecord-*"))
    found = [record["id"] for split in info.splits for record in records(builder, split)]
    assert found == list(range(40))


def test_parts_of_splits_and_shuffled_files(tmp_path: Path) -> None:
    builder = load(TABLE, tmp_path, counts={"train": 4, "test": 1})
    assert [record["id"] for record in records(builder, "train[25%:50%]+test[:2]")] == [*range(5, 10), 20, 21]
    shuffled = builder.as_dataset("train", shuffle_files=True).as_numpy_iterator()
    assert sorted(record["id"] for record in shuffled) == list(range(20))


def test_the_files_are_as_tensorflow_datasets_writes_them(tmp_path: Path) -> None:
    spec = spec_of(TABLE)
    named = tuple(replace(f, names=tuple(map(str, range(40)))) if f.name == "id" else f for f in spec.features)
    builder = load(TABLE, tmp_path, FeatureSpec(named))
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    builder.info.write_to_directory(theirs)
    ours = tmp_path / "sample" / "shards"
    assert (ours / "id.labels.txt").read_bytes() == (theirs / "id.labels.txt").read_bytes()
    assert json.loads((ours / FEATURES).read_bytes()) == json.loads((theirs / FEATURES).read_bytes())
    its_own = {"moduleName": "tensorflow_datasets.core.read_only_builder", "redistributionInfo": {}}
    assert json.loads((ours / INFO).read_bytes()) | its_own == json.loads((theirs / INFO).read_bytes())


class TestAbsent:
    """What records lack is never a number that looks like data."""

    def test_numbers_are_a_list_of_none_or_one(self, tmp_path: Path) -> None:
        columns = {
            "i": pa.array([1, None, 3], pa.int16()),
            "f": pa.array([0.5, None, 2.5], pa.float32()),
            "a": pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2)),
        }
        found = list(records(load(pa.table(columns), tmp_path)))
        assert [record["i"].tolist() for record in found] == [[1], [], [3]]
        assert [record["f"].tolist() for record in found] == [[0.5], [], [2.5]]
        assert [record["a"].tolist() for record in found] == [[[1, 2]], [], [[3, 4]]]
        assert [record["a"].shape for record in found] == [(1, 2), (0, 2), (1, 2)]

    def test_bytes_are_empty_as_read_gives_them(self, tmp_path: Path) -> None:
        columns = {"s": ["x", None, ""], "p": pa.array([["a", "b"], None, ["c", ""]], pa.list_(pa.string(), 2))}
        builder = load(pa.table(columns), tmp_path)
        assert [record["s"] for record in records(builder)] == [b"x", b"", b""]
        assert [record["p"].tolist() for record in records(builder)] == [[b"a", b"b"], [b"", b""], [b"c", b""]]
        assert builder.info.features["s"].shape == ()

    def test_a_fill_is_not_made_up(self, tmp_path: Path) -> None:
        table = pa.table({"s": ["x", None], "e": ["x", None], "n": pa.array([1, None], pa.int8())})
        spec = spec_of(table, FeatureOptions(fill={"s": "?", "e": "", "n": -1}))
        found = list(records(load(table, tmp_path, spec)))
        assert [record["s"].tolist() for record in found] == [[b"x"], []]
        assert [record["e"] for record in found] == [b"x", b""]
        assert [record["n"].tolist() for record in found] == [[1], []]

    def test_lists_are_empty(self, tmp_path: Path) -> None:
        table = pa.table({"l": pa.array([[1, 2], None, []], pa.list_(pa.int64()))})
        assert [record["l"].tolist() for record in records(load(table, tmp_path))] == [[1, 2], [], []]


class TestClassNames:
    def spec(self, table: pa.Table, names: Mapping[str, tuple[str, ...]]) -> FeatureSpec:
        return FeatureSpec(tuple(replace(f, names=names.get(f.name)) for f in spec_of(table).features))

    def test_labels_have_names(self, tmp_path: Path) -> None:
        table = pa.table({"image/class/label": [2, 0, 1], "other": [0, 0, 0]})
        names = ("hot dog", "日本語", "c#")
        builder = load(table, tmp_path, self.spec(table, {"image/class/label": names}))
        label = builder.info.features["image/class/label"]
        assert isinstance(label, tfds.features.ClassLabel)
        assert (label.num_classes, tuple(label.names)) == (3, names)
        found = [label.int2str(record["image/class/label"]) for record in records(builder)]
        assert found == ["c#", "hot dog", "日本語"]
        assert not isinstance(builder.info.features["other"], tfds.features.ClassLabel)

    def test_labels_that_some_records_lack(self, tmp_path: Path) -> None:
        table = pa.table({"label": pa.array([1, None, 0], pa.int64())})
        builder = load(table, tmp_path, self.spec(table, {"label": ("a", "b")}))
        label = builder.info.features["label"].feature
        assert [label.int2str(n) for record in records(builder) for n in record["label"]] == ["b", "a"]
        assert [record["label"].size for record in records(builder)] == [1, 0, 1]

    @pytest.mark.parametrize(
        "names", [("a", ""), (" a", "b"), ("a\nb", "c"), ("a\rb", "c"), ("a", "a"), ("a\x85b", "c"), ("a\u2028b", "c")]
    )
    def test_names_are_read_as_they_are_or_not_at_all(self, tmp_path: Path, names: tuple[str, ...]) -> None:
        table = pa.table({"label": [1, 0]})
        builder = load(table, tmp_path, self.spec(table, {"label": names}))
        assert [record["label"] for record in records(builder)] == [1, 0]
        label = builder.info.features["label"]
        assert not isinstance(label, tfds.features.ClassLabel) or tuple(label.names) == names

    def test_two_features_never_share_a_file(self, tmp_path: Path) -> None:
        table = pa.table({"a/b": [0, 1], "a.b": [1, 0], "c": [0, 0]})
        names = {"a/b": ("x", "y"), "a.b": ("p", "q"), "c": ("only",)}
        builder = load(table, tmp_path, self.spec(table, names))
        assert isinstance(builder.info.features["c"], tfds.features.ClassLabel)
        assert [(record["a/b"], record["a.b"]) for record in records(builder)] == [(0, 1), (1, 0)]
        assert {type(builder.info.features[name]) for name in ("a/b", "a.b")} == {tfds.features.Tensor}

    @pytest.mark.parametrize("feature", ["x" * 300, "\0", "a\nb"])
    def test_a_feature_that_names_no_file(self, tmp_path: Path, feature: str) -> None:
        table = pa.table({feature: [1, 0]})
        builder = load(table, tmp_path, self.spec(table, {feature: ("a", "b")}))
        assert [record[feature] for record in records(builder)] == [1, 0]


class TestListsOfListsAndTensors:
    NESTED = pa.array([[[1, 2], [], [3]], [], [[4]], None], pa.list_(pa.list_(pa.int16())))

    def test_ragged(self, tmp_path: Path) -> None:
        deep = pa.list_(pa.list_(pa.list_(pa.string())))
        table = pa.table(
            {
                "two": self.NESTED,
                "deep": pa.array([[[["a"]]], [[], [["b", "c"], []]], [], None], deep),
                "pairs": pa.array([[[[1, 2]], [[3, 4], [5, 6]]]] * 4, pa.list_(pa.list_(pa.list_(pa.float32(), 2)))),
            }
        )  # fmt: skip
        builder = load(table, tmp_path)
        found = list(dataset(builder))
        assert builder.info.features.keys() == set(table.column_names)
        assert [record["two"].to_list() for record in found] == [[[1, 2], [], [3]], [], [[4]], []]
        assert found[0]["two"].dtype.name == "int16"
        assert [r["deep"].to_list() for r in found] == [[[[b"a"]]], [[], [[b"b", b"c"], []]], [], []]
        assert [record["pairs"].to_list() for record in found] == [[[[1, 2]], [[3, 4], [5, 6]]]] * 4

    def test_tensors_of_varying_shape(self, tmp_path: Path) -> None:
        table = pa.table({"t": pa.array([[[1, 2], [3, 4]], [[5]], None, []], pa.list_(pa.list_(pa.int64())))})
        found = list(records(load(table, tmp_path, spec_of(table, FeatureOptions(tensor={"t": "packed"})))))
        assert [record["t"].tolist() for record in found] == [[1, 2, 3, 4], [5], [], []]
        assert [record["t/shape"].tolist() for record in found[:2]] == [[[2, 2]], [[1, 1]]]

    def test_serialized_tensors(self, tmp_path: Path) -> None:
        import tensorflow as tf

        table = pa.table({"t": pa.array([[1, -2], [3, 4]], pa.list_(pa.int8(), 2)), "s": [["a", ""], ["b"]]})
        spec = spec_of(table, FeatureOptions(tensor={"t": "serialized", "s": "serialized"}))
        builder = load(table, tmp_path, spec)
        found = list(records(builder))
        assert [tf.io.parse_tensor(record["t"], tf.int8).numpy().tolist() for record in found] == [[1, -2], [3, 4]]
        assert tf.io.parse_tensor(found[0]["s"], tf.string).numpy().tolist() == [b"a", b""]
        assert builder.info.features["t"].doc.desc.startswith("tf.io.serialize_tensor of ")

    def test_they_equal_what_read_gives(self, tmp_path: Path) -> None:
        import tfr_assets

        builder = load(pa.table({"x": self.NESTED}), tmp_path)
        read = tfr_assets.read(tmp_path / "sample" / "shards", batch_size=4)
        (batch,) = read
        assert [record["x"].to_list() for record in dataset(builder)] == batch["x"].to_list()


class TestImages:
    @pytest.fixture
    def pictures(self) -> dict[str, bytes]:
        pil = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
        random = np.random.default_rng(3)

        def encoded(channels: int, size: tuple[int, int], file_format: str) -> bytes:
            pixels = random.integers(0, 256, (*size, channels), np.uint8)
            buffer = io.BytesIO()
            pil.fromarray(pixels.squeeze()).save(buffer, file_format)
            return buffer.getvalue()

        return {
            "rgb.png": encoded(3, (5, 7), "PNG"),
            "gray.png": encoded(1, (9, 4), "PNG"),
            "rgba.png": encoded(4, (3, 3), "PNG"),
            "rgb.jpeg": encoded(3, (16, 11), "JPEG"),
            "gray.jpeg": encoded(1, (8, 8), "JPEG"),
            "rgb.bmp": encoded(3, (6, 5), "BMP"),
        }

    @staticmethod
    def table(pictures: Mapping[str, bytes], **more: Any) -> pa.Table:
        formats = [name.split(".")[1] for name in pictures]
        return pa.table({"image/encoded": list(pictures.values()), "image/format": formats, **more})

    def test_they_are_decoded(self, tmp_path: Path, pictures: dict[str, bytes]) -> None:
        import tensorflow as tf
        from PIL import Image

        builder = load(self.table(pictures), tmp_path)
        assert isinstance(builder.info.features["image/encoded"], tfds.features.Image)
        for (name, data), record in zip(pictures.items(), records(builder), strict=True):
            np.testing.assert_array_equal(record["image/encoded"], tf.io.decode_image(data))
            if not name.endswith("jpeg"):  # of which decoders differ by rounding
                pixels = np.asarray(Image.open(io.BytesIO(data)))
                np.testing.assert_array_equal(record["image/encoded"].squeeze(), pixels)
            assert record["image/format"] == name.split(".")[1].encode()

    def test_their_bytes_can_be_had(self, tmp_path: Path, pictures: dict[str, bytes]) -> None:
        builder = load(self.table(pictures), tmp_path)
        found = records(builder, decoders={"image/encoded": tfds.decode.SkipDecoding()})
        assert [record["image/encoded"] for record in found] == list(pictures.values())

    def test_pairs_of_image_and_label(self, tmp_path: Path, pictures: dict[str, bytes]) -> None:
        table = self.table(pictures, **{"image/class/label": [0, 1, 0, 1, 0, 1]})
        spec = spec_of(table)
        named = [replace(f, names=("a", "b")) if f.name.endswith("label") else f for f in spec.features]
        builder = load(table, tmp_path, FeatureSpec(tuple(named)))
        pairs = list(records(builder, as_supervised=True))
        assert [label for _, label in pairs] == [0, 1, 0, 1, 0, 1]
        assert pairs[0][0].shape == (5, 7, 3)

    @pytest.mark.parametrize("formats", [{"jpeg", "gif"}, {"webp"}])
    def test_where_some_cannot_be_decoded_to_one_frame_all_stay_bytes(
        self, tmp_path: Path, pictures: dict[str, bytes], formats: set[str]
    ) -> None:
        layout, spec, splits = write(self.table(pictures), tmp_path)
        assert write_tfds_files(layout.shards, "sample", spec, splits, images=ImageFacts(frozenset(formats))) is None
        found = records(tfds.builder_from_directory(layout.shards))
        assert [record["image/encoded"] for record in found] == list(pictures.values())

    def test_what_a_folder_of_images_tells_of_them(self, tmp_path: Path, pictures: dict[str, bytes]) -> None:
        def facts(*names: str, **options: Any) -> ImageFacts:
            folder = tmp_path / "-".join(names)
            folder.mkdir(exist_ok=True)
            for name in names:
                (folder / name).write_bytes(pictures[name])
            source = Source(str(folder), kind="images", options=options)
            return image_facts(take_inventory(source, tmp_path / "raw"))

        assert facts("rgb.png") == ImageFacts(frozenset({"png"}), (5, 7, 3))
        assert facts("rgb.png", "gray.jpeg") == ImageFacts(frozenset({"png", "jpeg"}))
        assert facts("rgb.png", "rgb.jpeg") == ImageFacts(frozenset({"png", "jpeg"}), (None, None, 3))
        assert facts("rgb.png", "rgb.jpeg", size=[4, 6]) == ImageFacts(frozenset({"png", "jpeg"}), (4, 6, 3))

    def test_a_damaged_listing_of_images_tells_nothing(self, tmp_path: Path, pictures: dict[str, bytes]) -> None:
        (folder := tmp_path / "images").mkdir()
        (folder / "rgb.png").write_bytes(pictures["rgb.png"])
        inventory = take_inventory(Source(str(folder), kind="images"), tmp_path / "raw")
        landed = Path(inventory.landed[0].path)
        content = landed.read_bytes()
        for damaged in (content[:-4], content[:100] + bytes([content[100] ^ 1]) + content[101:]):
            landed.write_bytes(damaged)
            with pytest.raises(SourceChanged, match=f"{landed.name}: it is not what was landed. Materialize raw"):
                image_facts(inventory)

    def test_nothing_is_known_of_images_in_a_table(self, tmp_path: Path, pictures: dict[str, bytes]) -> None:
        pq.write_table(self.table(pictures), tmp_path / "pictures.parquet")
        assert image_facts(take_inventory(Source(str(tmp_path / "pictures.parquet")), tmp_path / "raw")) == ImageFacts()

    def test_their_size_is_known_where_it_is_one(self, tmp_path: Path, pictures: dict[str, bytes]) -> None:
        layout, spec, splits = write(self.table({"rgb.png": pictures["rgb.png"]}), tmp_path)
        assert write_tfds_files(layout.shards, "sample", spec, splits, images=ImageFacts(shape=(5, None, 3))) is None
        builder = tfds.builder_from_directory(layout.shards)
        assert builder.info.features["image/encoded"].shape == (5, None, 3)
        assert next(records(builder))["image/encoded"].shape == (5, 7, 3)

    def test_other_bytes_are_no_images(self, tmp_path: Path) -> None:
        nullable = pa.table({"image/encoded": [b"x", None], "image/format": ["png", None]})
        alone = pa.table({"image/encoded": [b"x"]})
        elsewhere = pa.table(
            {"encoded": [b"x"], "format": ["png"], "my_image/encoded": [b"x"], "my_image/format": [""]}
        )
        for number, table in enumerate([nullable, alone, elsewhere]):
            builder = load(table, tmp_path / str(number))
            assert not any(isinstance(f, tfds.features.Image) for f in builder.info.features.values())
            assert next(records(builder))[table.column_names[0]] == b"x"


@pytest.mark.parametrize("name", ["2020_data", "MyData", "x"])
def test_any_name_of_a_dataset(tmp_path: Path, name: str) -> None:
    builder = load(TABLE, tmp_path, name=name)
    assert builder.info.name == name
    assert [record["id"] for record in records(builder)] == list(range(40))


def test_more_shards_than_rows(tmp_path: Path) -> None:
    builder = load(TABLE.slice(0, 2), tmp_path, counts={"train": 5})
    assert builder.info.splits["train"].shard_lengths == [0, 0, 1, 0, 1]
    assert [record["id"] for record in records(builder)] == [0, 1]


def test_a_split_without_records(tmp_path: Path) -> None:
    builder = load(TABLE.slice(0, 1), tmp_path, counts={"none": 1, "train": 1})
    assert builder.info.splits["none"].num_examples == 0
    assert [record["id"] for record in records(builder)] == [0]


class TestWhatCannotBeLoaded:
    def test_compressed_shards(self, tmp_path: Path) -> None:
        _, spec, splits = write(TABLE, tmp_path, compression="gzip")
        reason = tfds_files("sample", spec, splits)
        assert isinstance(reason, str) and "these are gzip" in reason and "compression: none" in reason

    def test_sequence_examples(self) -> None:
        spec = spec_of(TABLE, FeatureOptions(sequence=("tags",)))
        reason = tfds_files("sample", spec, {"train": []})
        assert isinstance(reason, str) and "SequenceExamples, and tags" in reason

    def test_it_is_told_and_nothing_is_left_that_does_not_hold(self, tmp_path: Path) -> None:
        layout, spec, splits = write(TABLE, tmp_path)
        named = FeatureSpec(tuple(replace(f, names=("a",)) if f.name == "id" else f for f in spec.features))
        assert write_tfds_files(layout.shards, "sample", named, splits) is None
        there = {path.name for path in layout.shards.iterdir() if path.is_file()}
        shards = {manifest.file for manifest in splits["train"]}
        assert there - shards == {INFO, FEATURES, "id.labels.txt"}
        _, _, zipped = write(TABLE, tmp_path, compression="zlib")
        reason = write_tfds_files(layout.shards, "sample", named, zipped)
        assert reason == tfds_files("sample", named, zipped)
        assert {path.name for path in layout.shards.iterdir() if path.is_file()} == shards


class TestWriting:
    def test_twice_writes_once(self, tmp_path: Path) -> None:
        layout, spec, splits = write(TABLE, tmp_path)
        write_tfds_files(layout.shards, "sample", spec, splits)
        before = {path: path.stat().st_mtime_ns for path in layout.shards.glob("*.json")}
        write_tfds_files(layout.shards, "sample", spec, splits)
        assert {path: path.stat().st_mtime_ns for path in layout.shards.glob("*.json")} == before
        withdraw_tfds_files(layout.shards)
        withdraw_tfds_files(layout.shards)
        with pytest.raises(OSError, match=INFO):
            tfds.builder_from_directory(layout.shards)
        write_tfds_files(layout.shards, "sample", spec, splits)
        assert tfds.builder_from_directory(layout.shards).info.splits["train"].num_examples == 40

    def test_another_state_replaces_the_one_before(self, tmp_path: Path) -> None:
        layout, spec, splits = write(TABLE, tmp_path)
        named = FeatureSpec(tuple(replace(f, names=("a",)) if f.name == "id" else f for f in spec.features))
        write_tfds_files(layout.shards, "sample", named, splits)
        _, _, fewer = write(TABLE.slice(0, 20), tmp_path)
        write_tfds_files(layout.shards, "sample", spec, fewer)
        builder = tfds.builder_from_directory(layout.shards)
        assert [record["id"] for record in records(builder)] == list(range(20))
        assert not list(layout.shards.glob("*.labels.txt"))

    def test_what_fails_half_way_is_not_loaded(self, tmp_path: Path) -> None:
        layout, spec, splits = write(TABLE, tmp_path)
        write_tfds_files(layout.shards, "sample", spec, splits)
        _, _, other = write(TABLE.slice(0, 5), tmp_path)
        (layout.shards / FEATURES).unlink()
        (layout.shards / FEATURES).mkdir()  # no file can take its name
        with pytest.raises(WriteError, match=FEATURES):
            write_tfds_files(layout.shards, "sample", spec, other)
        assert not (layout.shards / INFO).exists()


def test_a_dataset_is_loaded_once_all_its_shards_are_there(make: MakeDataset, raw: Path) -> None:
    plan, _ = write_all_shards(make())
    folder = plan.dataset.layout.shards

    def numbers() -> list[int]:
        return [record["n"] for record in records(tfds.builder_from_directory(folder))]

    assert numbers() == list(range(ROWS))
    pq.write_table(raw_table(ROWS, first=1000), raw)
    materialize_raw(plan.dataset)
    changed = plan_shards(plan.dataset)
    write_shard(changed, changed.shards[0])
    with pytest.raises(OSError, match=INFO):
        numbers()
    for shard in changed.shards[1:]:
        write_shard(changed, shard)
    finish_shards(changed)
    assert numbers() == list(range(1000, 1000 + ROWS))
