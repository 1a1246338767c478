"""`tfr verify` and `tfr inspect`, on real files, as a person at a terminal calls them."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tests.records.reference import payloads_of
from tfr_assets.layout import manifest_path
from tfr_assets.records.examples.encoder import ExampleEncoder
from tfr_assets.records.examples.writer import write_file
from tfr_assets.records.kernels.crc32c import masked_crc32c
from tfr_assets.records.schema.derive import derive_spec
from tfr_assets.writing.write import write

RECORDS = 100


def tfr(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tfr_assets.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def frame(payload: bytes) -> bytes:
    length = len(payload).to_bytes(8, "little")
    crcs = [masked_crc32c(part).to_bytes(4, "little") for part in (length, payload)]
    return length + crcs[0] + payload + crcs[1]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    table = pa.table(
        {"number": range(RECORDS), "name": [f"row {i}" for i in range(RECORDS)], "maybe": [1.5, None] * 50}
    )
    spec = derive_spec(table.schema, {"number": 0, "name": 0})
    path = tmp_path / "shards" / "some-train.tfrecord-00000-of-00001"
    frames = (some for batch in table.to_batches() for some in ExampleEncoder(spec).encode(batch))
    write_file(path, frames, features=spec)
    return path


def test_a_whole_file_is_verified(file: Path) -> None:
    done = tfr("verify", file)
    assert done.returncode == 0
    assert "all 1 files are whole: 100 intact records" in done.stdout


def test_a_dataset_is_meant_where_no_path_is_called_so(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFR_DATA", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)
    for command in ("verify", "inspect"):
        done = tfr(command, tmp_path.name)
        assert done.returncode == 0, done.stderr
        assert "some-train.tfrecord-00000-of-00001" in done.stdout
    (tmp_path / tmp_path.name).mkdir()
    done = tfr("verify", tmp_path.name)
    assert done.returncode == 2
    assert f"no TFRecord file in {tmp_path.name}" in done.stderr


def test_a_broken_project_around_does_not_concern_files(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.dg\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TFR_DATA", raising=False)
    monkeypatch.delenv("TFR_PROJECT", raising=False)
    for command in ("verify", "inspect"):
        assert tfr(command, file).returncode == 0
    done = tfr("verify", "flights")
    assert done.returncode == 2 and "pyproject.toml" in done.stderr


def test_dagster_is_not_imported_for_a_mistyped_path(tmp_path: Path) -> None:
    code = """if True:
        import sys
        from tfr_assets.cli import cli
        try:
            cli(["verify", "no/such-file.tfrecord"])
        except SystemExit as end:
            print(end.code, "dagster" in sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "False"]


def test_a_flipped_bit_is_named_with_file_record_offset_and_kind(file: Path) -> None:
    content = bytearray(file.read_bytes())
    size = int.from_bytes(content[:8], "little") + 16
    content[size + 20] ^= 1
    file.write_bytes(content)
    done = tfr("verify", file)
    assert done.returncode == 1
    assert f"{file}: record 1 at byte {size + 12}: data CRC is wrong" in done.stdout
    assert "1 of 1 files are bad" in done.stdout


def test_json_carries_the_same_facts(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-3])
    done = tfr("verify", file, "--json")
    (report,) = json.loads(done.stdout)
    assert done.returncode == 1
    assert report["ok"] is False
    assert report["records"] == RECORDS - 1
    kinds = {fault["kind"] for fault in report["faults"]}
    assert {"truncated record", "wrong number of bytes", "wrong number of records"} <= kinds


def test_json_carries_notes_too(file: Path) -> None:
    foreign = file.with_name("foreign.tfrecord")
    foreign.write_bytes(frame(b"abc"))
    left = file.with_name(f".{file.name}.abcd1234.tmp")
    left.write_bytes(b"half")
    done = tfr("verify", file.parent, "--json")
    assert done.returncode == 0
    notes = {report["path"]: report["notes"] for report in json.loads(done.stdout) if report["ok"]}
    assert notes[str(file)] == []
    assert "no manifest describes it" in notes[str(foreign)][0]
    assert "left by a process that was killed" in notes[str(left)][0]


def test_a_folder_means_all_its_files_and_those_that_are_missing(file: Path) -> None:
    (file.parent / "foreign.tfrecord.gz").write_bytes(gzip.compress(frame(b"abc")))
    assert tfr("verify", file.parent).returncode == 0
    file.unlink()
    done = tfr("verify", file.parent)
    assert done.returncode == 1
    assert f"{file}: file is missing" in done.stdout
    looked = tfr("inspect", file.parent)
    assert looked.returncode == 2
    assert f"{file} is missing, says its manifest; `tfr verify {file.parent}` lists" in " ".join(looked.stderr.split())


def test_files_are_found_however_they_are_called(tmp_path: Path) -> None:
    names = ("a_tfrecord-00000-of-00002.gz", "deep/er/b-tfrecord.gz", "deep/c_tfrecord", "d.tfrecords", "e.tfrec")
    for name in (*names, "tfrecord_tools.py", "f_tfrecord.md", "g.csv.gz"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(frame(b"abc")))
    done = tfr("verify", tmp_path)
    assert (done.returncode, f"all {len(names)} files are whole: " in done.stdout) == (0, True), done.stdout
    assert all(Path(name).name in done.stdout for name in names)


def test_a_git_lfs_pointer_is_called_so(file: Path, tmp_path: Path) -> None:
    file.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 123456\n")
    says = f"{file}: file cannot be read (is a git-LFS pointer, not the file itself: run `git lfs"
    for command in ("verify", "inspect"):
        done = tfr(command, file)
        assert done.returncode == 1
        assert done.stdout.count(str(file)) == done.stdout.count(says) == 1, done.stdout


def test_files_of_anyone_are_verified_without_a_manifest(tmp_path: Path) -> None:
    path = tmp_path / "anything"
    path.write_bytes(frame(b"") + frame(b"no example"))
    done = tfr("verify", path)
    assert done.returncode == 0
    assert "2 intact records" in done.stdout


def test_what_is_no_tfrecord_is_bad(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b\n" * 10)
    done = tfr("verify", path)
    assert done.returncode == 1
    assert "record 0 at byte 0: length CRC is wrong" in done.stdout


@pytest.mark.parametrize("arguments", [["verify"], ["verify", "nowhere"], ["inspect"], ["inspect", "nowhere"], ["fly"]])
def test_wrong_usage_exits_with_2_and_a_hint(arguments: list[str]) -> None:
    done = tfr(*arguments)
    assert done.returncode == 2
    assert "Usage: tfr" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_empty_folder_is_wrong_usage(tmp_path: Path) -> None:
    for command in ("verify", "inspect"):
        done = tfr(command, tmp_path)
        assert done.returncode == 2
        assert f"no TFRecord file in {tmp_path}" in done.stderr


def test_inspect_shows_schema_counts_sizes_and_first_records(file: Path) -> None:
    done = tfr("inspect", file, "--records", 2)
    assert done.returncode == 0
    for text in ("100", "number", "int64", "50.0% of records", "row 0", "record 1", "row 1"):
        assert text in done.stdout
    assert "record 2" not in done.stdout


def test_inspect_as_json(file: Path) -> None:
    (found,) = json.loads(tfr("inspect", file, "--json", "-n", 1).stdout)
    assert found["records"] == RECORDS
    assert found["bytes"] == file.stat().st_size
    assert found["features"]["maybe"] == {"kinds": {"float32": 50}, "present": 50, "values": [1, 1]}
    assert found["first"] == [{"number": [0], "name": ["row 0"], "maybe": [1.5]}]


def test_inspect_shows_records_that_are_no_examples(tmp_path: Path) -> None:
    path = tmp_path / "plain.tfrecord"
    path.write_bytes(frame(b"hello") + frame(b"\xff\xfe"))
    done = tfr("inspect", path)
    assert done.returncode == 0
    assert "2 of 2 sampled records are not tf.Examples" in done.stdout
    assert "hello" in done.stdout
    assert "0xfffe" in done.stdout


def test_inspect_of_a_damaged_file_shows_the_rest_and_exits_with_1(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[20] ^= 1
    file.write_bytes(content)
    done = tfr("inspect", file)
    assert done.returncode == 1
    assert "99" in done.stdout
    assert "record 0 at byte 12: data CRC is wrong" in done.stdout


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    path = tmp_path / "empty.tfrecord"
    path.touch()
    assert tfr("verify", path).returncode == 0
    (found,) = json.loads(tfr("inspect", path, "--json").stdout)
    assert (found["records"], found["first"], found["features"]) == (0, [], {})


def test_an_unreadable_manifest_is_a_fault(file: Path) -> None:
    manifest_path(file).write_text("{")
    done = tfr("verify", file)
    assert done.returncode == 1
    assert "manifest" in done.stdout


@pytest.mark.parametrize("command", [[], ["run"], ["verify"], ["inspect"], ["list"]])
def test_help_helps(command: list[str]) -> None:
    done = tfr(*command, "--help")
    assert done.returncode == 0
    assert "Usage: tfr" in done.stdout
    assert "--help" in done.stdout


def test_brackets_are_shown_as_they_are(tmp_path: Path) -> None:
    table = pa.table({"[/x]": ["[red]word[/red]"]})
    path = tmp_path / "[a]" / "[b].tfrecord"
    spec = derive_spec(table.schema, {"[/x]": 0})
    write_file(path, ExampleEncoder(spec).encode(table.to_batches()[0]), features=spec)
    for command in ("verify", "inspect"):
        done = tfr(command, path)
        assert done.returncode == 0, done.stderr
        assert "[b].tfrecord" in done.stdout
        assert f"in {path.parent}" in done.stdout
    assert "[/x]  [red]word[/red]" in done.stdout


def test_records_are_exported_for_grain(file: Path, tmp_path: Path) -> None:
    reason = "the package `array_record` is not installed"
    module = pytest.importorskip("array_record.python.array_record_module", reason=reason)
    target = tmp_path / "some.array_record"
    done = tfr("export", file.parent, target)
    assert (done.returncode, "100 records of 1 files" in " ".join(done.stdout.split())) == (0, True), done.stderr
    reader = module.ArrayRecordReader(str(target))
    assert reader.read_all() == [bytes(payload) for payload in payloads_of(file.read_bytes())]


def test_an_export_says_which_splits_are_not_in_it(tmp_path: Path) -> None:
    pytest.importorskip("array_record", reason="the package `array_record` is not installed")
    for split in ("train", "test", "validation"):
        write(pa.table({"a": [1, 2]}), tmp_path / "data", shards=1, split=split)
    done = tfr("export", tmp_path / "data", tmp_path / "a.array_record")
    assert (done.returncode, "not in it: split test, validation; --split" in done.stdout) == (0, True), done.stderr
    done = tfr("export", tmp_path / "data", tmp_path / "a.array_record", "--split", "test")
    assert (done.returncode, "not in it" in done.stdout) == (0, False), done.stderr


def test_an_export_overwrites_nothing_and_copies_no_damage(file: Path, tmp_path: Path) -> None:
    pytest.importorskip("array_record", reason="the package `array_record` is not installed")
    wrong = tfr("export", file.parent, file)
    assert wrong.returncode == 2 and "array_record, so that no other is overwritten" in wrong.stderr
    data = bytearray(file.read_bytes())
    data[100] ^= 1
    file.write_bytes(data)
    done = tfr("export", file.parent, tmp_path / "some.array_record")
    assert done.returncode == 1 and f"{file}: record 1 at byte " in done.stderr
    assert not (tmp_path / "some.array_record").exists()
    assert tfr("export", "no_such_dataset", tmp_path / "some.array_record").returncode == 2


def test_control_characters_are_escaped_wherever_they_stand(tmp_path: Path) -> None:
    """A terminal obeys them: they could hide what is printed, or worse."""
    table = pa.table({"\x1b[31mname\x9b": ["\x1b]0;title\x07"]})
    path = tmp_path / "a\x1b[2J" / "b\x1b.tfrecord"
    spec = derive_spec(table.schema, {table.schema.names[0]: 0})
    write_file(path, ExampleEncoder(spec).encode(table.to_batches()[0]), features=spec)
    looked = tfr("inspect", path)
    assert looked.returncode == 0, looked.stderr
    assert r"\x1b[31mname\x9b  \x1b]0;title\x07" in looked.stdout
    as_json = tfr("inspect", path, "--json")
    assert json.loads(as_json.stdout)[0]["first"] == [{"\x1b[31mname\x9b": [r"\x1b]0;title\x07"]}]
    path.write_bytes(path.read_bytes()[:-1])
    done, of_folder = tfr("verify", path), tfr("verify", path.parent, "--json")
    assert done.returncode == of_folder.returncode == 1
    assert r"b\x1b.tfrecord: record 0 at byte" in done.stdout
    (path.parent / "more\x1b.tfrecord").write_bytes(b"")
    noted = tfr("verify", path.parent, path)
    for each in (looked, as_json, done, of_folder, noted):
        assert not any((ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 for c in each.stdout + each.stderr)
