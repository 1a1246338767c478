"""A manifest says what its file must hold, or nothing at all."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfr_assets.errors import WriteError
from tfr_assets.layout import manifest_path
from tfr_assets.records.features import FeatureOptions
from tfr_assets.records.manifest import FORMAT, Manifest
from tfr_assets.records.schema import derive_spec

from .reference import examples

SPEC = derive_spec(
    pa.schema([("a", pa.list_(pa.float32())), ("é", pa.string()), ("b", pa.list_(pa.int8(), 2))]),
    {"é": 0},
    FeatureOptions(fill={"é": "?"}),
)
MANIFEST = Manifest("file", 3, 100, 52, "gzip", "0123456789abcdef", SPEC, {"rows": [0, 3], "cast": {}})


def test_a_manifest_survives_saving(tmp_path: Path) -> None:
    for manifest in (MANIFEST, replace(MANIFEST, features=None), replace(MANIFEST, made_from={})):
        manifest.save(tmp_path / "file")
        assert Manifest.load(tmp_path / "file") == manifest


def test_saving_twice_gives_equal_bytes_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = manifest_path(tmp_path / "file")
    MANIFEST.save(tmp_path / "file")
    first = path.read_bytes()
    MANIFEST.save(tmp_path / "file")
    assert path.read_bytes() == first
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_no_manifest_is_none(tmp_path: Path) -> None:
    assert Manifest.load(tmp_path / "file") is None


def _values(**changes: object) -> dict[str, object]:
    return {**MANIFEST.__dict__, "features": SPEC.to_json(), "format": FORMAT, **changes}


@pytest.mark.parametrize(
    "content",
    [
        "", "{", "null", "3", '"text"', "[]", "[1, 2]", "{}", "\0" * 100, "true",
        json.dumps({**_values(), "format": FORMAT + 1}),
        json.dumps({**_values(), "format": 0}),
        json.dumps({name: value for name, value in _values().items() if name != "format"}),
        json.dumps({name: value for name, value in _values().items() if name != "digest"}),
        json.dumps({name: value for name, value in _values().items() if name != "features"}),
        json.dumps(_values(surprise=1)),
        json.dumps(_values(features=3)),
        json.dumps(_values(features="abc")),
        json.dumps(_values(features=[1])),
        json.dumps(_values(features=[{"name": "a"}])),
        json.dumps(_values(features=[{**SPEC.to_json()[0], "kind": "double"}])),
        json.dumps(_values(features=[{**SPEC.to_json()[0], "shape": 3}])),
        json.dumps(_values(features={"a": 1})),
    ],
)  # fmt: skip
def test_what_is_no_manifest_of_this_format_is_none(content: str, tmp_path: Path) -> None:
    path = manifest_path(tmp_path / "file")
    path.parent.mkdir()
    path.write_text(content)
    assert Manifest.load(tmp_path / "file") is None


@examples(100)
@given(content=st.binary(max_size=50))
def test_random_bytes_are_no_manifest(content: bytes, tmp_path: Path) -> None:
    path = manifest_path(tmp_path / "file")
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    assert Manifest.load(tmp_path / "file") is None


def test_every_truncation_of_a_manifest_is_none(tmp_path: Path) -> None:
    MANIFEST.save(tmp_path / "file")
    path = manifest_path(tmp_path / "file")
    content = path.read_bytes()
    for size in range(len(content) - 2):
        path.write_bytes(content[:size])
        assert Manifest.load(tmp_path / "file") is None


def test_a_folder_that_cannot_be_made_is_a_write_error(tmp_path: Path) -> None:
    (tmp_path / "manifest").write_text("in the way")
    with pytest.raises(WriteError, match="manifest"):
        MANIFEST.save(tmp_path / "file")
