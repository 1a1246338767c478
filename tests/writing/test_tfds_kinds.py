"""TensorFlow Datasets loads datasets of every kind of raw data, split, and gives what `tfr_assets.read` gives."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
from PIL import Image

import tfr_assets
from tfr_assets.sources import Splits
from tfr_assets.sources.model.parse import parse_source
from tfr_assets.writing.dataset import Dataset

from .conftest import write_all_shards

tfds = pytest.importorskip("tensorflow_datasets", reason="the package `tensorflow_datasets` is not installed")

CLASSES, FILES = ("cat", "dog"), 6
SOURCES: dict[str, Any] = {
    "images": {"images": "images"},
    "pixels": {"images": {"path": "images", "size": [4, 5], "format": "raw"}},
    "audio": {"audio": "audio"},
    "samples": {"audio": {"path": "audio", "samples": "int16"}},
    "documents": {"text": "text"},
    "mixed": {"mixed": {"key": "id", "parts": [{"images": "images"}, {"audio": "audio"}, {"table": "facts.parquet"}]}},
}
LABELLED = {
    "images": "image/class/label",
    "pixels": "image/class/label",
    "audio": "audio/class/label",
    "samples": "audio/class/label",
    "documents": "text/class/label",
}


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of images, recordings and documents in two classes, and a table; all of the same names."""
    folder, random = tmp_path_factory.mktemp("raw"), np.random.default_rng(5)
    names = [f"{label}/{label}{number}" for label in CLASSES for number in range(FILES)]
    for kind in ("images", "audio", "text"):
        for label in CLASSES:
            (folder / kind / label).mkdir(parents=True)
    for number, name in enumerate(names):
        Image.fromarray(random.integers(0, 256, (8, 6 + number, 3), np.uint8)).save(folder / "images" / f"{name}.png")
        wave = random.integers(-999, 999, 50 + number).astype(np.int16)
        soundfile.write(folder / "audio" / f"{name}.wav", wave, 8000)
        (folder / "text" / f"{name}.txt").write_text(f"über {name}")
    pq.write_table(pa.table({"id": [name.split("/")[1] for name in names], "v": range(12)}), folder / "facts.parquet")
    return folder


def records(dataset: Any) -> Iterator[Mapping[str, Any]]:
    """The records of batches of one."""
    for batch in dataset:
        yield {name: tensor[0] for name, tensor in batch.items()}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_kind(kind: str, raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tensorflow as tf

    monkeypatch.chdir(raw)
    source = replace(parse_source(SOURCES[kind], "source"), splits=Splits(fractions={"train": 0.6, "test": 0.4}))
    dataset = Dataset(kind, source, shards=2, root=tmp_path)
    write_all_shards(dataset)
    builder = tfds.builder_from_directory(dataset.layout.shards)
    in_order = tfds.ReadConfig(interleave_cycle_length=1, try_autocache=False)
    assert sum(split.num_examples for split in builder.info.splits.values()) == len(CLASSES) * FILES
    for split, info in builder.info.splits.items():
        read = list(records(tfr_assets.read(dataset.layout.folder, batch_size=1, split=split)))
        loaded = list(builder.as_dataset(split, read_config=in_order))
        assert len(loaded) == info.num_examples > 0
        for found, expected in zip(loaded, read, strict=True):
            assert found.keys() == expected.keys()
            for name, value in expected.items():
                wanted = tf.io.decode_image(value) if name == "image/encoded" else value
                assert found[name].dtype == wanted.dtype, name
                np.testing.assert_array_equal(found[name], wanted, name)
    if label := LABELLED.get(kind):
        assert tuple(builder.info.features[label].names) == CLASSES
