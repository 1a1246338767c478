import wave
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import soundfile
import soxr

from tests.sources.recordings import FORMATS, of_format, tone, wav16
from tfr_assets.errors import ConfigError, SourceChanged, SourceError
from tfr_assets.option_groups import validate
from tfr_assets.sources import Source
from tfr_assets.sources.media.audio import kind as audio
from tfr_assets.sources.model.audio_options import AudioOptions
from tfr_assets.sources.model.kinds import Found

DIGITS = Path("/work/shared/data/spoken_digits")


def listed(path: Path, found: Found, **options: Any) -> tuple[Source, pa.RecordBatch]:
    """Returns a source of recordings, and the rows of all its files."""
    source = Source(path=str(path), kind="audio", options=options)
    with TemporaryDirectory() as work:
        rows = pa.Table.from_batches(audio.list_rows(source, Path(work), found))
    return source, rows.combine_chunks().to_batches()[0]


def records(path: Path, found: Found, **options: Any) -> pa.RecordBatch:
    """Returns all columns of all records."""
    source, rows = listed(path, found, **options)
    expansion = audio.expansion(source, rows.schema, found.classes)
    return expansion.expand(rows, expansion.schema.names)


@pytest.fixture
def found(tmp_path: Path) -> Found:
    return Found(tmp_path / "skipped.log", lambda done, total: None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "recordings"
    path.mkdir()
    return path


@pytest.fixture
def one_of_each(folder: Path) -> Path:
    endings = {"opus": "opus", "aiff": "AIF", "ogg": "oga"}
    for name in FORMATS:
        (folder / f"{name}.{endings.get(name, name)}").write_bytes(of_format(name))
    return folder


def test_files_pass_as_they_are(one_of_each: Path, found: Found) -> None:
    rows = records(one_of_each, found).to_pylist()
    assert [row["audio/filename"] for row in rows] == [
        "aiff.AIF",
        "flac.flac",
        "mp3.mp3",
        "ogg.oga",
        "opus.opus",
        "wav.wav",
    ]
    assert [row["audio/format"] for row in rows] == ["aiff", "flac", "mp3", "ogg", "ogg", "wav"]
    for row in rows:
        assert row["audio/encoded"] == (one_of_each / row["audio/filename"]).read_bytes()
        assert (row["audio/sample_rate"], row["audio/channels"], row["audio/duration"]) == (16000, 2, 0.5)


def test_records_of_files_and_of_samples_have_these_columns(one_of_each: Path, found: Found) -> None:
    common = [("audio/sample_rate", pa.int64()), ("audio/channels", pa.int64()), ("audio/duration", pa.float32())]
    name = ("audio/filename", pa.string())
    assert records(one_of_each, found).schema == pa.schema(
        [("audio/encoded", pa.large_binary()), *common, ("audio/format", pa.string()), name]
    )
    assert records(one_of_each, found, samples="int16").schema == pa.schema(
        [("audio/samples", pa.large_list(pa.int16())), *common, ("audio/frames", pa.int64()), name]
    )
    assert records(one_of_each, found, samples="float32", rate=100, mono=True, seconds=0.5).schema == pa.schema(
        [("audio/samples", pa.list_(pa.float32(), 50)), *common, ("audio/frames", pa.int64()), name]
    )


def test_samples_lie_frame_by_frame(folder: Path, found: Found) -> None:
    shapes = {"a.wav": (3, 2), "b.wav": (5, 1), "c.wav": (2, 4)}
    samples = {name: np.random.default_rng(3).integers(-999, 999, shape, np.int16) for name, shape in shapes.items()}
    for name, values in samples.items():
        (folder / name).write_bytes(wav16(values, 8000))
    for row in records(folder, found, samples="int16").to_pylist():
        shape = (row["audio/frames"], row["audio/channels"])
        np.testing.assert_array_equal(np.reshape(row["audio/samples"], shape), samples[row["audio/filename"]])


def test_what_is_stored_is_what_columns_tell(one_of_each: Path, found: Found) -> None:
    for row in records(one_of_each, found, samples="float32", rate=8000, mono=True).to_pylist():
        assert (row["audio/sample_rate"], row["audio/channels"], row["audio/frames"]) == (8000, 1, 4000)
        assert row["audio/duration"] == 0.5
        assert len(row["audio/samples"]) == 4000


def test_seconds_make_all_records_of_one_length(folder: Path, found: Found) -> None:
    samples = np.random.default_rng(4).integers(1, 999, (32000, 1), np.int16)
    (folder / "long.wav").write_bytes(wav16(samples))
    (folder / "short.wav").write_bytes(wav16(samples[:4000]))
    long, short = records(folder, found, samples="int16", rate=16000, mono=True, seconds=1).to_pylist()
    assert (long["audio/frames"], long["audio/duration"]) == (16000, 1)
    assert (short["audio/frames"], short["audio/duration"]) == (4000, 0.25)
    assert long["audio/samples"] == samples[:16000, 0].tolist()
    assert short["audio/samples"] == samples[:4000, 0].tolist() + [0] * 12000


def test_only_the_wanted_columns_are_made(one_of_each: Path, found: Found) -> None:
    source, rows = listed(one_of_each, found, samples="float32")
    expansion = audio.expansion(source, rows.schema, found.classes)
    for file in one_of_each.iterdir():
        file.unlink()  # none of these columns needs it
    some = expansion.expand(rows, {"audio/filename", "audio/duration"})
    assert some.schema.names == ["audio/duration", "audio/filename"]
    assert some.num_rows == len(FORMATS)
    with pytest.raises(SourceChanged, match=r"aiff\.AIF: is no longer there"):
        expansion.expand(rows, {"audio/samples"})


@pytest.mark.parametrize(
    ("options", "values"),
    [
        ({}, None),
        ({"samples": "float32"}, 8000 * 2 * 4),
        ({"samples": "int16"}, 8000 * 2 * 2),
        ({"samples": "float32", "rate": 48000, "mono": True, "seconds": 3}, 48000 * 3 * 4),
    ],
)
def test_sizes_are_those_of_files_or_samples(
    one_of_each: Path, found: Found, options: Mapping[str, Any], values: int | None
) -> None:
    source, rows = listed(one_of_each, found, **options)
    sizes = audio.expansion(source, rows.schema, found.classes).sizes(rows)
    files = [(one_of_each / name).stat().st_size for name in rows[".file"].to_pylist()]
    assert sizes.dtype == np.int64
    assert sizes.tolist() == [max(file, values or 0) for file in files]


def test_versions_of_what_makes_samples_are_told(one_of_each: Path, found: Found) -> None:
    listed(one_of_each, found)
    assert found.made_by == []
    listed(one_of_each, found, samples="int16")
    assert found.made_by == [f"libsndfile {soundfile.__libsndfile_version__}"]
    listed(one_of_each, found, samples="int16", rate=8000)
    assert found.made_by[-1] == f"soxr {soxr.__version__}"


def test_labels_come_from_folders_and_names(folder: Path, found: Found) -> None:
    for name in ("yes", "no"):
        (folder / name).mkdir()
        (folder / name / f"{name}_1.wav").write_bytes(of_format("wav"))
    expected = [("no/no_1.wav", 0, "no"), ("yes/yes_1.wav", 1, "yes")]
    columns = ["audio/filename", "audio/class/label", "audio/class/text"]
    for options in ({}, {"labels": {"pattern": "(?P<label>[a-z]+)_"}}):
        rows = records(folder, found, **options).select(columns)
        assert [tuple(row.values()) for row in rows.to_pylist()] == expected
    assert "audio/class/label" not in records(folder, Found(found.log, found.progress), labels="none").schema.names


@pytest.mark.parametrize("options", [{}, {"samples": "float32"}])
def test_a_bad_file_is_named_or_left_out(one_of_each: Path, found: Found, options: Mapping[str, Any]) -> None:
    cut = one_of_each / "wav.wav"
    cut.write_bytes(cut.read_bytes()[:-1])
    with pytest.raises(SourceError, match=r"wav\.wav: is cut short: its header says 32,000 bytes of sound, 31,999"):
        listed(one_of_each, found, **options)
    assert records(one_of_each, found, on_error="skip", **options).num_rows == len(FORMATS) - 1
    assert [file for file, _ in found.first_skipped] == ["wav.wav"]


def test_a_damaged_body_is_left_out_where_samples_are_stored(folder: Path, found: Found) -> None:
    data = bytearray(of_format("flac", tone(seconds=2)))
    data[len(data) // 2] ^= 1
    (folder / "bad.flac").write_bytes(data)
    (folder / "good.flac").write_bytes(of_format("flac"))
    assert records(folder, found, on_error="skip").num_rows == 2
    assert records(folder, found, on_error="skip", samples="int16").num_rows == 1


def test_a_recording_too_short_for_its_new_rate_is_named(folder: Path, found: Found) -> None:
    (folder / "click.wav").write_bytes(wav16(np.ones((1, 1), np.int16), 48000))
    with pytest.raises(SourceError, match=r"click\.wav: is too short: it has no frame at 8,000 Hz"):
        listed(folder, found, samples="float32", rate=8000)


def test_a_file_that_changed_since_is_refused(one_of_each: Path, found: Found) -> None:
    source, rows = listed(one_of_each, found)
    (one_of_each / "mp3.mp3").write_bytes(of_format("mp3", tone(880, channels=2)))
    with pytest.raises(SourceChanged, match=r"mp3\.mp3"):
        audio.expansion(source, rows.schema, found.classes).expand(rows, {"audio/encoded"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample": "int16"}, "source.audio.sample: not a setting (did you mean 'samples'?)"),
        ({"samples": "int32"}, "source.audio.samples: 'int32' is not known"),
        ({"rate": 16000}, "source.audio.rate: has no meaning for `samples: encoded`"),
        ({"mono": True}, "source.audio.mono: has no meaning for `samples: encoded`"),
        ({"seconds": 1, "samples": "encoded"}, "source.audio.seconds: has no meaning for `samples: encoded`"),
        ({"samples": "int16", "rate": 16000.0}, "source.audio.rate: expected a whole number of Hz"),
        ({"samples": "int16", "rate": 0}, "source.audio.rate: expected a whole number of Hz"),
        ({"samples": "int16", "mono": 1}, "source.audio.mono: expected true or false; found 1"),
        ({"samples": "int16", "seconds": "1"}, "source.audio.seconds: expected a number"),
        ({"samples": "int16", "seconds": 1, "rate": 16000}, "source.audio.seconds: needs `rate` and `mono: true`"),
        ({"samples": "int16", "seconds": 1, "mono": True}, "source.audio.seconds: needs `rate` and `mono: true`"),
        ({"samples": "int16", "seconds": 1e-9, "rate": 8000, "mono": True}, "source.audio.seconds: 1e-09 at a rate of"),
        ({"samples": "int16", "seconds": 1e9, "rate": 8000, "mono": True}, "source.audio.seconds: 1000000000.0 at"),
        ({"samples": "int16", "seconds": float("nan"), "rate": 8000, "mono": True}, "source.audio.seconds: nan at"),
        ({"on_error": "ignore"}, "source.audio.on_error: 'ignore' is not known"),
    ],
)
def test_a_wrong_option_is_named_with_its_remedy(options: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        validate(AudioOptions, {"path": "x", **options}, "source.audio")
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("options", [{}, {"mono": False}, {"rate": None, "samples": "encoded"}, {"samples": "float32"}])
def test_valid_options_are_accepted(options: Mapping[str, Any]) -> None:
    validate(AudioOptions, {"path": "x", **options}, "source.audio")


@pytest.mark.skipif(not DIGITS.is_dir(), reason="the spoken digits are not on this machine")
def test_spoken_digits_become_samples(found: Found) -> None:
    rows = records(DIGITS, found, samples="int16", labels={"pattern": r"(?P<label>\d)_"})
    assert rows.num_rows == len(list(DIGITS.glob("*.wav")))
    assert found.classes["audio/class/label"] == tuple("0123456789")
    for row in rows.take(list(range(0, rows.num_rows, 100))).to_pylist():
        with wave.open(str(DIGITS / row["audio/filename"])) as reader:
            expected = np.frombuffer(reader.readframes(reader.getnframes()), "<i2")
        np.testing.assert_array_equal(row["audio/samples"], expected)
        assert row["audio/class/label"] == int(row["audio/filename"][0])
        assert row["audio/sample_rate"] == 8000
