"""A manifest says what its file must hold, or nothing at all."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfr_assets.errors import WriteError
from tfr_assets.layout import manifest_path
from tfr_assets.records.frames.manifest import FORMAT, IndexChecksum, Manifest, Mark
from tfr_assets.records.schema.derive import derive_spec
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.storage.sealed import seal, unseal

from .reference import examples, flipped

SPEC = derive_spec(
    pa.schema([("a", pa.list_(pa.float32())), ("é", pa.string()), ("b", pa.list_(pa.int8(), 2))]),
    {"é": 0},
    FeatureOptions(fill={"é": "?"}),
)
MANIFEST = Manifest(
    "file", 3, 100, 52, "gzip", "0123456789abcdef", SPEC, {"rows": [0, 3], "cast": {}},
    marks=(Mark(1, 20, 2**64 - 1), Mark(2, 60, 0)), index=IndexChecksum(21, 0xDEADBEEF),
)  # fmt: skip


def test_a_manifest_survives_saving(tmp_path: Path) -> None:
    for manifest in (
        MANIFEST,
        replace(MANIFEST, features=None),
        replace(MANIFEST, made_from={}),
        replace(MANIFEST, marks=(), index=None),
    ):
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


VALUES = unseal(MANIFEST.to_json())
assert VALUES
FEATURE = SPEC.to_json()[0]


def _without(name: str) -> dict[str, object]:
    return {key: value for key, value in VALUES.items() if key != name}


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"null", b"3", b'"text"', b"[]", b"[1, 2]", b"{}", b"\0" * 100, b"true", b"\xff" * 100,
        json.dumps(VALUES).encode(), b"[" * 50_000, b'{"a":' * 50_000 + b"1" + b"}" * 50_000, b"9" * 5000,
    ],
    ids=lambda content: f"{content[:10]!r}",
)  # fmt: skip
def test_what_is_not_sealed_is_no_manifest(content: bytes, tmp_path: Path) -> None:
    path = manifest_path(tmp_path / "file")
    path.parent.mkdir()
    path.write_bytes(content)
    assert Manifest.load(tmp_path / "file") is None


def test_sealed_nesting_beyond_all_bounds_is_no_manifest() -> None:
    rest = b'\n "a": ' + b"[" * 50_000 + b"]" * 50_000 + b"\n}\n"
    checksum = hashlib.sha256(rest).hexdigest().encode()
    assert Manifest.from_json(b'{\n "checksum": "' + checksum + b'",' + rest) is None


@pytest.mark.parametrize(
    "values",
    [
        *(_without(name) for name in VALUES),
        *(VALUES | {"surprise": value} for value in (1, None)),
        *(VALUES | {"format": value} for value in (FORMAT - 1, FORMAT + 1, None, "2", [2])),
        *(
            VALUES | {name: value}
            for name in ("records", "bytes", "payload_bytes")
            for value in (-1, 2**63, 10**400, 1.0, "1", None, True, [1])
        ),
        *(VALUES | {"digest": value} for value in ("", "0123456789ABCDEF", "0" * 15, "0" * 17, 5, None)),
        *(VALUES | {"compression": value} for value in ("", "zstd", "None", None, 1, ["none"])),
        *(VALUES | {"file": value} for value in (3, None, ["file"])),
        *(VALUES | {"made_from": value} for value in (3, None, [], "x")),
        *(
            VALUES | {"marks": value}
            for value in (
                None, 3, "ab", [3], [[1, 20]], [[1, 20, 3]], [[1, 20, "0" * 16, 1]], [[-1, 20, "0" * 16]],
                [[0, 0, "0" * 16]], [[3, 99, "0" * 16]], [[1, 100, "0" * 16]], [[2, 60, "0" * 16], [1, 20, "0" * 16]],
                [[1, 20, "0" * 16], [1, 20, "0" * 16]], {"1": 2},
            )
        ),
        *(VALUES | {"index": value} for value in (3, [], [21], [21, 3], ["21", "deadbeef"], [21, "deadbeef", 1])),
        *(VALUES | {"features": value} for value in (3, "abc", [1], {"a": 1}, [{"name": "a"}], [[]])),
        *(
            VALUES | {"features": [FEATURE | {name: value}]}
            for name, value in [
                ("kind", "double"), ("kind", None), ("shape", 3), ("shape", [-1]), ("shape", ["n"]), ("shape", [1.5]),
                ("name", 3), ("column", None), ("arrow_type", 1), ("optional", 1), ("fill", [1]), ("part", 1),
                ("sequence", "yes"), ("names", [1]), ("names", 3), ("cast_from", 2), ("new", 1),
            ]
        ),
    ],
    ids=lambda values: "",
)  # fmt: skip
def test_entries_that_are_missing_new_or_mistyped_make_no_manifest(values: dict[str, object]) -> None:
    assert Manifest.from_json(seal(values)) is None


def test_a_manifest_is_that_of_its_file_only(tmp_path: Path) -> None:
    MANIFEST.save(tmp_path / "file")
    content = manifest_path(tmp_path / "file").read_bytes()
    manifest_path(tmp_path / "other").write_bytes(content)
    assert Manifest.load(tmp_path / "other") is None
    assert Manifest.from_json(content) == Manifest.from_json(content, "file") == MANIFEST
    assert Manifest.from_json(content, "other") is None


def test_every_flipped_bit_is_noticed() -> None:
    content = MANIFEST.to_json()
    assert all(Manifest.from_json(flipped(content, bit)) is None for bit in range(len(content) * 8))


def test_bounds_are_the_start_the_marks_and_the_end() -> None:
    assert MANIFEST.bounds == (Mark(0, 0, 0), *MANIFEST.marks, Mark(3, 100, 0x0123456789ABCDEF))


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
    for size in range(len(content)):
        path.write_bytes(content[:size])
        assert Manifest.load(tmp_path / "file") is None


def test_a_folder_that_cannot_be_made_is_a_write_error(tmp_path: Path) -> None:
    (tmp_path / "manifest").write_text("in the way")
    with pytest.raises(WriteError, match="manifest"):
        MANIFEST.save(tmp_path / "file")
