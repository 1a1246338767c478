"""Names of classes that tables of Hugging Face's `datasets` tell are kept, where every value is a class."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from tfr_assets.sources import Inventory, Source, take_inventory
from tfr_assets.writing.write import write

NAMES = ("neg", "pos")


def table(labels: list[int | None], names: Any = NAMES) -> pa.Table:
    features = {"label": {"names": names, "_type": "ClassLabel"}, "text": {"dtype": "string", "_type": "Value"}}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    columns = {"label": pa.array(labels, pa.int64()), "text": [""] * len(labels)}
    return pa.table(columns).replace_schema_metadata(metadata)


def classes(written: pa.Table, folder: Path, ending: str, **source: Any) -> Any:
    folder.mkdir(exist_ok=True)
    path = folder / f"{len(list(folder.iterdir()))}.{ending}"
    if ending == "parquet":
        pq.write_table(written, path, row_group_size=2)
    else:
        feather.write_feather(written, str(path), chunksize=2, compression="uncompressed")
    inventory = take_inventory(Source(path=str(folder), **source), folder.parent / "landing")
    assert Inventory.from_json(inventory.to_json()).classes == inventory.classes
    return inventory.classes


@pytest.mark.parametrize("ending", ["parquet", "feather"])
@pytest.mark.parametrize("source", [{}, {"shuffle_seed": 1}])
def test_names_are_kept_where_every_value_is_a_class(tmp_path: Path, ending: str, source: dict[str, Any]) -> None:
    for number, labels in enumerate(([0, 1, 1, None, 0], [None, None], [])):
        assert classes(table(labels), tmp_path / str(number), ending, **source) == {"label": NAMES}
    for number, labels in enumerate(([0, 1, 1, -1], [0, 2])):
        assert classes(table(labels), tmp_path / f"wrong {number}", ending, **source) == {}
    assert classes(table([1]), tmp_path / "several", ending, **source) == {"label": NAMES}
    assert classes(table([0]), tmp_path / "several", ending, **source) == {"label": NAMES}
    assert classes(table([0], ["pos", "neg"]), tmp_path / "several", ending, **source) == {}


@pytest.mark.parametrize("names", [[], ["a", "a"], ["a", 5], "ab", None, 5])
def test_what_are_no_names_is_passed_over(tmp_path: Path, names: Any) -> None:
    assert classes(table([0, 1], names), tmp_path / "data", "parquet") == (
        {"label": ("a", "b")} if names == "ab" else {}
    )


def test_names_become_part_of_the_feature_spec(tmp_path: Path) -> None:
    for data, expected in ((table([0, 1]), NAMES), (table([0, -1]), None), (table([0, 1]).to_reader(), NAMES)):
        (manifest,) = write(data, tmp_path / "a.tfrecord").manifests
        assert manifest.features
        assert {feature.name: feature.names for feature in manifest.features.features}["label"] == expected
