"""TFRecord files of other origin: opened as they are, adopted, or refused with what is wrong where."""

import json
import pickle
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import tfr_assets
from tests.records.reference import examples
from tfr_assets.errors import ConfigError, DamagedFile, SchemaError, StaleError

Record = dict[str, list[Any]]
RECORDS: list[Record] = [
    {"id": [i], "pair": [i + 0.5, -i], "words": [b"\xff%d" % i] * (i % 3), **({"rare": [i]} if i == 77 else {})}
    for i in range(100)
]
OTHERS: list[Record] = [{**record, "id": [record["id"][0] + 1000]} for record in RECORDS]


def feature(values: list[Any]) -> tf.train.Feature:
    if values and isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if values and isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def example(record: Record) -> tf.train.Example:
    filled = {name: feature(values) for name, values in record.items() if values or name != "words"}
    if "words" in record and not record["words"]:
        filled["words"] = tf.train.Feature(bytes_list=tf.train.BytesList())
    return tf.train.Example(features=tf.train.Features(feature=filled))


def write_foreign(path: Path, records: list[Any], compression: str = "") -> Path:
    """Writes as TensorFlow does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for record in records:
            writer.write(record if isinstance(record, bytes) else example(record).SerializeToString())
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for part in range(4):
        write_foreign(tmp_path / "foreign" / f"part-{part}.tfrecord", RECORDS[part * 25 : part * 25 + 25])
    return tmp_path / "foreign"


def values(record: dict[str, Any]) -> Record:
    """A record's values as lists; what is absent is left out."""
    lists = {name: np.atleast_1d(value).tolist() for name, value in record.items() if value is not None}
    return {name: found for name, found in lists.items() if found}


def given_values(record: Record) -> Record:
    return {name: found for name, found in record.items() if found}


def test_files_without_manifest_are_opened_as_they_are(folder: Path) -> None:
    before = sorted(path.name for path in folder.iterdir())
    opened = tfr_assets.open(folder)
    assert [values(opened[i]) for i in range(100)] == [given_values(record) for record in RECORDS]
    assert {f.name: (f.kind.value, f.shape, f.optional) for f in opened.features.features} == {
        "id": ("int64", (), False), "pair": ("float32", (2,), False), "rare": ("int64", (), True),
        "words": ("bytes", (None,), False),
    }  # fmt: skip
    assert sorted(path.name for path in folder.iterdir()) == before
    found = [int(i) for batch in opened.batches(9, shuffle="global") for i in batch["id"]]
    assert sorted(found) == list(range(100)) != found
    assert values(pickle.loads(pickle.dumps(opened))[42]) == given_values(RECORDS[42])
    assert all(report.ok for report in opened.verify())
    assert tfr_assets.open(folder / "part-1.tfrecord", columns=["id"])[0] == {"id": 25}


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_compressed_files_are_opened_and_adopted(tmp_path: Path, compression: str) -> None:
    path = write_foreign(tmp_path / "some.tfrecord", RECORDS, compression)
    for _ in range(2):
        assert values(tfr_assets.open(path)[99]) == given_values(RECORDS[99])
        tfr_assets.adopt(path) if not (tmp_path / "manifest").exists() else None
    assert [int(i) for batch in tfr_assets.read(path) for i in batch["id"]] == list(range(100))


def test_adopted_files_are_read_by_all(folder: Path) -> None:
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    manifests = tfr_assets.adopt(folder)
    after = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.glob("part-*")}
    assert after == before and [path.name for path in manifests] == sorted(before)
    assert [report.ok for report in tfr_assets.verify(folder)] == [True] * 4
    assert [values(record) for record in tfr_assets.open(folder)] == [given_values(record) for record in RECORDS]
    for reader in ("columnar", "vectorized"):
        assert [int(i) for batch in tfr_assets.read(folder, 8, reader=reader) for i in batch["id"]] == list(range(100))
    shares = [[int(i) for b in tfr_assets.batches(folder, 8, shard=(n, 3)) for i in b["id"]] for n in range(3)]
    assert [i for share in shares for i in share] == list(range(100))
    with pytest.raises(ConfigError, match="nothing to adopt"):
        tfr_assets.adopt(folder)
    (folder / "part-2.tfrecord").unlink()
    with pytest.raises(DamagedFile, match=r"part-2.tfrecord: missing"):
        tfr_assets.open(folder)
    (folder / "manifest" / "part-2.tfrecord.json").unlink()
    with pytest.raises(StaleError, match=r"has 3 files like part-0.tfrecord, and 4 were adopted"):
        tfr_assets.open(folder)


def test_large_files_have_marks_as_those_written_here(tmp_path: Path) -> None:
    records = [{"id": [i], "payload": [bytes([i]) * (3 << 20)]} for i in range(14)]
    serialized = [example(record).SerializeToString() for record in records]
    path = write_foreign(tmp_path / "large.tfrecord", serialized)
    (adopted,) = tfr_assets.adopt(path).values()
    (written,) = tfr_assets.write(serialized, tmp_path / "out.tfrecord").manifests
    assert adopted.marks == written.marks and len(adopted.marks) == 2
    assert adopted.digest == written.digest and adopted.features == written.features
    assert all(report.ok for report in tfr_assets.verify(path))


def test_splits_are_words_of_names(tmp_path: Path) -> None:
    for split, count in (("train", 3), ("test", 2)):
        for part in range(count):
            write_foreign(tmp_path / f"x-{split}-{part:05d}-of-{count:05d}.tfrecord", [{"id": [part]}])
    for _ in range(2):
        assert len(tfr_assets.open(tmp_path)) == 3 and len(tfr_assets.open(tmp_path, split="test")) == 2
        with pytest.raises(ConfigError, match=r"holds several sets of files: .*give a word"):
            tfr_assets.open(tmp_path, split="validation")
        if not (tmp_path / "manifest").exists():
            assert len(tfr_assets.adopt(tmp_path)) == 5
    assert [int(i) for batch in tfr_assets.read(tmp_path, split="test") for i in batch["id"]] == [0, 1]


def test_feature_lists_are_adopted(tmp_path: Path) -> None:
    def sequence(number: int) -> bytes:
        steps = {"steps": tf.train.FeatureList(feature=[feature([number, i]) for i in range(number % 3)])}
        lists, context = tf.train.FeatureLists(feature_list=steps), tf.train.Features(feature={"id": feature([number])})
        return bytes(tf.train.SequenceExample(context=context, feature_lists=lists).SerializeToString())

    path = write_foreign(tmp_path / "some.tfrecord", [sequence(i) for i in range(9)])
    tfr_assets.adopt(path)
    (batch,) = tfr_assets.read(path)
    assert batch["steps"].to_list() == [[[n, i] for i in range(n % 3)] for n in range(9)]


@pytest.mark.parametrize("act", [tfr_assets.open, tfr_assets.adopt])
def test_what_cannot_be_read_is_refused_and_nothing_is_written(folder: Path, act: Any) -> None:
    def refused(kind: type[Exception], message: str) -> None:
        before = sorted(folder.rglob("*"))
        with pytest.raises(kind, match=message):
            act(folder)
        assert sorted(folder.rglob("*")) == before

    path = folder / "part-3.tfrecord"
    whole = path.read_bytes()
    damaged = bytearray(whole)
    damaged[40] ^= 1
    path.write_bytes(damaged)
    refused(DamagedFile, r"part-3.tfrecord: record 0 at byte \d+: data CRC is wrong")
    path.write_bytes(whole[:-3])
    refused(DamagedFile, r"part-3.tfrecord: record 24 .*truncated")
    write_foreign(path, [*RECORDS[:20], b"no example"])
    refused(SchemaError, r"part-3.tfrecord: record 20 is neither a tf.Example nor")
    write_foreign(path, [*RECORDS[:20], {"id": [b"text"]}])
    refused(SchemaError, "feature 'id' is of several kinds: bytes and int64")
    write_foreign(path, [{}])
    for other in range(3):
        (folder / f"part-{other}.tfrecord").unlink()
    refused(SchemaError, "the records have no features")


def test_a_file_replaced_after_it_was_opened_is_noticed(folder: Path) -> None:
    opened = tfr_assets.open(folder)
    write_foreign(folder / "part-0.tfrecord", RECORDS[25:50])
    with pytest.raises(StaleError):
        opened.take([0])


def test_sets_with_and_without_manifests_are_not_mixed(folder: Path) -> None:
    tfr_assets.adopt(folder)
    write_foreign(folder / "part-4.tfrecord", RECORDS[:3])
    with pytest.raises(StaleError, match=r"part-0.tfrecord has a manifest, but part-4.tfrecord has none"):
        tfr_assets.adopt(folder)
    with pytest.raises(ConfigError, match="there is no file or folder"):
        tfr_assets.adopt(folder / "nowhere")


def of_four(folder: Path, of: str = "00004", first: int = 0) -> list[Path]:
    names = [f"some-{first + part:05}-of-{of}.tfrecord" for part in range(4)]
    return [write_foreign(folder / name, RECORDS[part * 25 : part * 25 + 25]) for part, name in enumerate(names)]


@pytest.mark.parametrize("first", [0, 1])
def test_a_set_whose_names_tell_of_more_files_is_refused(tmp_path: Path, first: int) -> None:
    *_, last = of_four(tmp_path, first=first)
    assert len(tfr_assets.open(tmp_path)) == 100
    last.unlink()
    for act in (tfr_assets.open, tfr_assets.adopt):
        with pytest.raises(StaleError, match="3 of the 4 files that their names tell of"):
            act(tmp_path)
    assert not (tmp_path / "manifest").exists()


def test_sets_of_other_numbers_of_files_are_others(tmp_path: Path) -> None:
    of_four(tmp_path)
    for part in range(2):
        write_foreign(tmp_path / f"some-{part:05}-of-00002.tfrecord", RECORDS[part * 50 : part * 50 + 50])
    with pytest.raises(ConfigError, match="holds several sets of files"):
        tfr_assets.open(tmp_path)


def test_one_adopted_file_does_not_stand_for_its_set(tmp_path: Path) -> None:
    first, *others = of_four(tmp_path)
    tfr_assets.adopt(first)
    assert len(tfr_assets.open(first)) == 25
    with pytest.raises(StaleError, match="1 of the 4 files that their names tell of"):
        tfr_assets.open(tmp_path)
    for other in others:
        other.unlink()
    with pytest.raises(StaleError, match="1 of the 4 files"):
        tfr_assets.open(tmp_path)


def test_a_file_added_after_adopting_is_noticed(folder: Path) -> None:
    tfr_assets.adopt(folder)
    write_foreign(folder / "part-4.tfrecord", RECORDS[:3])
    with pytest.raises(StaleError, match=r"has part-4.tfrecord beside part-0.tfrecord, with which it was not adopted"):
        tfr_assets.open(folder)


def test_files_written_here_whose_manifests_are_gone_are_not_foreign(tmp_path: Path) -> None:
    tfr_assets.write([{"s": "text", "b": True}] * 4, tmp_path / "ours", shards=2)
    shutil.rmtree(tmp_path / "ours" / "manifest")
    for act in (tfr_assets.open, tfr_assets.adopt):
        with pytest.raises(StaleError, match="and none of their manifests"):
            act(tmp_path / "ours")


def test_the_index_of_another_tool_stays(folder: Path) -> None:
    other = folder / "index" / "part-1.tfrecord.idx"
    other.parent.mkdir()
    other.write_text("theirs")
    with pytest.raises(ConfigError, match=r"part-1.tfrecord.idx is there already"):
        tfr_assets.adopt(folder)
    assert other.read_text() == "theirs" and not (folder / "manifest").exists()
    assert [path.name for path in other.parent.iterdir()] == [other.name]


@given(
    kinds=st.tuples(*[st.sampled_from([int, float, bytes])] * 3), data=st.data(), count=st.integers(1, 40),
)  # fmt: skip
@examples(40)
def test_whatever_records_hold_is_what_is_read(kinds: Any, data: st.DataObject, count: int) -> None:
    values_of = {
        int: st.integers(-(2**63), 2**63 - 1), float: st.floats(width=32, allow_nan=False),
        bytes: st.binary(max_size=3),
    }  # fmt: skip
    sizes = [data.draw(st.sampled_from([(0, 0), (1, 1), (0, 1), (2, 2), (1, 3), (0, 3)])) for _ in kinds]
    records = [
        {
            f"f{n}": data.draw(st.lists(values_of[kind], min_size=least, max_size=most))
            for n, (kind, (least, most)) in enumerate(zip(kinds, sizes, strict=True))
        }
        | {"id": [number]}
        for number in range(count)
    ]
    absent = [{name: found for name, found in record.items() if found} for record in records]
    with tempfile.TemporaryDirectory() as place:
        path = write_foreign(Path(place) / "some.tfrecord", absent)
        opened = tfr_assets.open(path)
        decoded = [
            {
                name: found.ravel().tolist()  # two integers that may be absent are rows of two, none or one of them
                for name, found in ((n, np.atleast_1d(v)) for n, v in record.items() if v is not None)
            }
            for record in opened
        ]
        for record, found in zip(absent, decoded, strict=True):
            shown = {name: some for name, some in found.items() if some and not _is_filled(name, some, record)}
            assert shown == record


def _is_filled(name: str, found: list[Any], record: Record) -> bool:
    """Whether a value stands for one that is absent: NaN for floats of fixed shapes, empty bytes."""
    return name not in record and all(value != value or value == b"" for value in found)


@pytest.mark.parametrize("shards", [None, 3])
def test_serialized_records_are_read_when_they_are_written(tmp_path: Path, shards: int | None) -> None:
    path = tmp_path / ("out" if shards else "out.tfrecord")
    for data in ([example(r) for r in RECORDS], (example(r).SerializeToString() for r in RECORDS)):
        tfr_assets.write(data, path, shards=shards)
        ids = sorted(int(i) for batch in tfr_assets.read(path) for i in batch["id"])
        assert ids == list(range(100))
        assert all(report.ok for report in tfr_assets.verify(path))
        found = sorted((values(record) for record in tfr_assets.open(path)), key=lambda record: record["id"])
        assert found == [given_values(record) for record in RECORDS]


def tfr(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tfr_assets.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_adopts(folder: Path) -> None:
    damaged = folder / "part-3.tfrecord"
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:-1])
    refused = tfr("adopt", folder)
    assert refused.returncode == 1 and "part-3.tfrecord: record 24" in refused.stderr
    assert "Traceback" not in refused.stderr
    damaged.write_bytes(whole)
    done = tfr("adopt", folder, "--json")
    assert done.returncode == 0, done.stderr
    files = json.loads(done.stdout)
    assert [file["records"] for file in files] == [25] * 4
    assert [feature["name"] for feature in files[0]["features"]] == ["id", "pair", "rare", "words"]
    again = tfr("adopt", folder)
    assert again.returncode != 0 and "nothing to adopt" in again.stderr
    for made in ("manifest", "index"):
        for path in (folder / made).iterdir():
            path.unlink()
        (folder / made).rmdir()
    (folder / "feature_spec.json").unlink()
    shown = tfr("adopt", folder)
    assert shown.returncode == 0 and "words" in shown.stdout and "some records" in shown.stdout


def sequence(number: int, lists: dict[str, list[list[Any]]], **context: list[Any]) -> bytes:
    steps = {name: tf.train.FeatureList(feature=[feature(step) for step in found]) for name, found in lists.items()}
    features = tf.train.Features(feature={"c": feature([number]), **{n: feature(v) for n, v in context.items()}})
    of_lists = tf.train.FeatureLists(feature_list=steps)
    return bytes(tf.train.SequenceExample(context=features, feature_lists=of_lists).SerializeToString())


def test_feature_lists_that_come_late_are_not_lost(tmp_path: Path) -> None:
    late = [sequence(i, {"s": [[i, i], [7]]}) for i in range(20, 40)]
    path = write_foreign(tmp_path / "some.tfrecord", [*({"c": [i]} for i in range(20)), *late])
    tfr_assets.adopt(path)
    opened = tfr_assets.open(path)
    assert [(f.name, f.sequence, f.optional) for f in opened.features.features] == [
        ("c", False, False),
        ("s", True, True),
    ]
    (batch,) = tfr_assets.read(path)
    assert batch["c"].numpy().tolist() == list(range(40))
    assert batch["s"].to_list() == [[[i, i], [7]] if i >= 20 else [] for i in range(40)]
    assert all(report.ok for report in tfr_assets.verify(path))


def test_a_feature_that_is_a_list_elsewhere_is_refused(tmp_path: Path) -> None:
    for number, late in enumerate([sequence(0, {"c": [[1]]}), sequence(0, {"s": [[1]]}, s=[1])]):
        path = write_foreign(tmp_path / f"some-{number}x.tfrecord", [*({"c": [i]} for i in range(20)), late])
        with pytest.raises(SchemaError, match=rf"{path}: record 20: '[cs]' is a feature of some .* list of others"):
            tfr_assets.adopt(path)


def test_features_without_a_name_are_written_and_not_adopted(tmp_path: Path) -> None:
    records = [{"": [i], "c": [i]} for i in range(3)]
    written = tfr_assets.write((example(record).SerializeToString() for record in records), tmp_path / "out.tfrecord")
    assert written.manifests[0].features is None and written.manifests[0].records == 3
    path = write_foreign(tmp_path / "foreign" / "some.tfrecord", [*RECORDS[:20], *records])
    with pytest.raises(SchemaError, match=rf"{path}: a feature has an empty name"):
        tfr_assets.adopt(path)


def test_features_that_hold_nothing_are_absent(tmp_path: Path) -> None:
    empty = tf.train.Example(features=tf.train.Features(feature={"id": tf.train.Feature(), "n": feature([3])}))
    for records in ([empty.SerializeToString(), {"id": [1], "n": [4]}], [*[{"id": [1], "n": [4]}] * 20, empty]):
        serialized = [each.SerializeToString() if isinstance(each, tf.train.Example) else each for each in records]
        path = write_foreign(tmp_path / "some.tfrecord", serialized)
        assert {record["id"] for record in tfr_assets.open(path)} == {None, 1}


def count_reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    from tfr_assets.records.examples import survey

    reads: list[Path] = []
    read = survey._read
    monkeypatch.setattr(survey, "_read", lambda path, *args: (reads.append(path), read(path, *args))[1])
    return reads


@pytest.mark.parametrize("at", [0, 2, 9, 10, 22])
def test_a_feature_that_a_record_has_twice_is_refused_wherever_it_comes(at: int, tmp_path: Path) -> None:
    records: list[Any] = [example({"x": [i]}).SerializeToString() for i in range(30)]
    records[at] += example({"x": [99]}).SerializeToString()  # messages that are joined are one: its map has two entries
    path = write_foreign(tmp_path / "some.tfrecord", records)
    for take in (tfr_assets.open, tfr_assets.adopt):
        with pytest.raises(SchemaError, match=rf"record {at} at byte \d+ has feature 'x' twice"):
            take(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["some.tfrecord"]


def test_files_of_many_kinds_of_records_are_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [{"c": [i], f"only{i // 200:02d}": [i]} for i in range(60 * 200)]
    half = len(records) // 2
    for part in range(2):
        write_foreign(tmp_path / f"some-{part}.tfrecord", records[part * half : part * half + half])
    reads = count_reads(monkeypatch)
    opened = tfr_assets.open(tmp_path)
    assert len(reads) == 2 * 2
    assert len(opened.features.features) == 61 and values(opened[5432]) == {"c": [5432], "only27": [5432]}


def test_records_that_all_have_names_of_their_own_are_no_table(tmp_path: Path) -> None:
    path = write_foreign(tmp_path / "some.tfrecord", [{f"{i}-{n}": [i] for n in range(20)} for i in range(700)])
    with pytest.raises(SchemaError, match=rf"{path}: record \d+ .* more than 10200 features, .*names"):
        tfr_assets.adopt(path)
    written = tfr_assets.write([b"\x0a\x00", path.read_bytes()], tmp_path / "out.tfrecord")
    assert written.manifests[0].features is None


def test_long_features_are_counted_and_not_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tfr_assets.records.examples import wire

    def refused(*_: object) -> None:
        raise AssertionError("values are decoded")

    monkeypatch.setattr(wire, "_values", refused)
    numbers = np.random.default_rng(1).integers(-(2**40), 2**40, 100_000).tolist()
    path = write_foreign(tmp_path / "some.tfrecord", [{"n": numbers, "f": [0.5] * 9}] * 2)
    assert [(f.name, f.shape) for f in tfr_assets.open(path).features.features] == [("f", (9,)), ("n", (100_000,))]
