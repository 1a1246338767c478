import io

import numpy as np
import pytest
import soundfile
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.sources.recordings import FORMATS, encoded, id3, of_format, tone, wav16, with_data_size, without_xing
from tfr_assets.sources.media.audio.samples import Sound, inspect
from tfr_assets.sources.model.kinds import BadFileError

FILES = {name: of_format(name) for name in FORMATS}


def bad(data: bytes, decode: bool = False) -> str:
    with pytest.raises(BadFileError) as error:
        inspect(data, decode)
    return str(error.value)


@pytest.mark.parametrize("decode", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_a_whole_file_tells_what_it_is(name: str, decode: bool) -> None:
    sound = inspect(FILES[name], decode)
    assert sound == Sound("ogg" if name == "opus" else name, 16000, 2, 8000)


@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW"])
@pytest.mark.parametrize("format_", ["WAV", "WAVEX"])
def test_wav_of_every_sample_type_is_whole(format_: str, subtype: str) -> None:
    data = encoded(tone(channels=2), 44100, format_, subtype)
    assert inspect(data, decode=True) == Sound("wav", 44100, 2, 8000)
    assert bad(data[:-1]).startswith("is cut short: its header says")


def test_wav_of_big_endian_order_is_whole() -> None:
    data = encoded(tone(), 16000, "WAV", "PCM_16", endian="BIG")
    assert data.startswith(b"RIFX")
    assert inspect(data, decode=True) == Sound("wav", 16000, 1, 8000)
    assert bad(data[:-1]) == "is cut short: its header says 16,000 bytes of sound, 15,999 are there"


@pytest.mark.parametrize("name", FORMATS)
@given(where=st.floats(0, 1, exclude_max=True))
@example(where=0.0)
@example(where=0.9999999)  # one byte
@settings(max_examples=60, deadline=None)
def test_a_file_that_is_cut_anywhere_is_refused(name: str, where: float) -> None:
    data = FILES[name]
    part = data[: int(where * len(data))]
    with pytest.raises(BadFileError):
        inspect(part, decode=False)
    with pytest.raises(BadFileError):
        inspect(part, decode=True)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("wav", "is cut short: its header says 32,000 bytes of sound, 31,000 are there"),
        ("flac", "is cut short or damaged: its last frame cannot be reached"),
        ("ogg", "is cut short: the page that begins at byte "),
        ("mp3", "is cut short or damaged: of 16 frames, the first "),
        ("aiff", "is cut short: its header says 32,008 bytes of sound, 31,008 are there"),
    ],
)
def test_what_is_missing_is_told(name: str, reason: str) -> None:
    assert bad(FILES[name][:-1000]).startswith(reason)
    assert bad(FILES[name][:-1000], decode=True).startswith(reason)


def test_libsndfile_takes_a_cut_wav_for_a_shorter_one() -> None:
    """What makes the check of containers necessary."""
    part = FILES["wav"][:-1000]
    assert soundfile.info(io.BytesIO(part)).frames == 8000 - 250


def test_an_ogg_cut_between_pages_is_refused() -> None:
    data = FILES["opus"]
    assert bad(data[: data.rindex(b"OggS")]) == "is cut short: its last page is not marked as the end"


def test_a_wav_cut_before_its_sound_is_refused() -> None:
    assert bad(FILES["wav"][:36]) == "is cut short: it ends before its sound begins"


def test_chunks_before_and_after_the_sound_are_passed_over() -> None:
    data = FILES["wav"]
    chunk = b"LIST" + (5).to_bytes(4, "little") + b"INFOx" + b"\0"  # an odd size is padded
    padded = data[:12] + chunk + data[12:] + chunk
    assert inspect(padded, decode=True) == inspect(data, decode=True)
    assert bad((data[:12] + chunk + data[12:])[:-2]).startswith("is cut short")


@pytest.mark.parametrize("size", [0xFFFFFFFF, 0x7FFFF000, 0x7FFFFFFF])
def test_a_size_that_the_writing_program_did_not_know_is_no_fault(size: int) -> None:
    data = with_data_size(FILES["wav"], size)
    assert inspect(data, decode=False) == inspect(FILES["wav"], decode=False)


def test_tags_around_sound_are_passed_over() -> None:
    tag = id3(b"\xff\xfb" * 700)
    for name in ("mp3", "flac"):
        assert inspect(tag + FILES[name], decode=True) == inspect(FILES[name], decode=True)
        assert bad(tag + FILES[name][:-1000]).startswith("is cut short")
    assert inspect(FILES["mp3"] + b"TAG" + bytes(125), decode=True) == inspect(FILES["mp3"], decode=True)
    assert bad(tag[:8]).startswith("is not audio")


@pytest.mark.parametrize("rate", [8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000])
@pytest.mark.parametrize("mode", ["CONSTANT", "VARIABLE"])
@pytest.mark.parametrize("channels", [1, 2])
def test_mp3_of_every_rate_is_counted_frame_by_frame(rate: int, mode: str, channels: int) -> None:
    data = encoded(tone(rate=rate, channels=channels), rate, "MP3", bitrate_mode=mode)
    assert inspect(data, decode=True) == Sound("mp3", rate, channels, round(rate / 2))
    assert bad(data[:-1]).startswith("is cut short or damaged: of ")


def test_mp3_that_does_not_tell_its_length_is_refused_where_decoders_would_cut_it() -> None:
    loud_and_soft = np.concatenate([tone(seconds=1), np.zeros((16000, 1), np.float32)])
    varying = without_xing(encoded(loud_and_soft, 16000, "MP3", bitrate_mode="VARIABLE"))
    whole = len(loud_and_soft) * 0.99
    assert len(soundfile.read(io.BytesIO(varying))[0]) < whole  # libsndfile loses sound of it in silence
    assert bad(varying).startswith("does not show its length: it is MP3 of varying bit rate")


def test_mp3_of_constant_bit_rate_needs_no_header_but_its_frames() -> None:
    constant = without_xing(of_format("mp3", np.zeros((8000, 1), np.float32)))
    assert len({len(frame) for frame in constant.split(constant[:4])[1:]}) == 1
    frames = len(constant.split(constant[:4])[1:]) * 576
    assert inspect(constant, decode=True).frames == frames
    assert inspect(constant + b"TAG" + bytes(125), decode=True).frames == frames
    assert bad(constant[:-1]).startswith("is cut short or damaged: at byte ")
    assert bad(constant + b"sound of another sort").startswith("is cut short or damaged: at byte ")


@pytest.mark.parametrize("decode", [False, True])
def test_mp3_whose_header_leaves_out_more_than_there_is_has_no_length(decode: bool) -> None:
    data = bytearray(encoded(tone(seconds=0.02), 16000, "MP3"))
    at = data.index(b"LAME") + 21  # 12 bits: samples to leave out at the beginning, and as many at the end
    data[at : at + 3] = b"\x24\x0f\xff"
    assert bad(bytes(data), decode).startswith("does not show its length: its header leaves out all")


def test_flac_as_written_to_a_pipe_is_refused() -> None:
    data = bytearray(FILES["flac"])
    data[21] &= 0xF0  # 36 bits of STREAMINFO tell the number of samples; 0: not known
    data[22:26] = bytes(4)
    assert bad(bytes(data)).startswith("does not show its length: it is FLAC as written to a pipe")


@pytest.mark.parametrize(
    "data",
    [
        b"<html>not found</html>" * 100,
        b"\x89PNG\r\n\x1a\n" + bytes(100),
        b"RIFF\x10\0\0\0WEBPVP8 " + bytes(100),
        encoded(tone(), 16000, "W64"),
        bytes(1000),
        b"\xff\xfb",
        b"R",
    ],
    ids=["html", "png", "webp", "w64", "zeros", "mp3 header", "one byte"],
)
def test_what_is_no_audio_is_refused(data: bytes) -> None:
    assert bad(data).startswith("is not audio of a known format")


def test_what_holds_no_sound_is_refused() -> None:
    assert bad(b"") == "is empty"
    for format_ in ("WAV", "OGG"):
        assert bad(encoded(tone()[:0], 16000, format_)) == "holds no sound: it has 0 frames"


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_samples_that_are_no_numbers_are_refused_where_they_are_wanted(value: float) -> None:
    samples = tone()
    samples[100] = value
    data = encoded(samples, 16000, "WAV", "FLOAT")
    assert inspect(data, decode=False).frames == 8000
    assert bad(data, decode=True) == "holds samples that are not finite numbers, 0.0 s in or later"


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", FORMATS)
@given(flips=st.lists(st.tuples(st.integers(0, 300) | st.integers(0), st.integers(1, 255)), min_size=1, max_size=5))
@settings(max_examples=40, deadline=None)
def test_damage_is_never_worse_than_a_bad_file(name: str, flips: list[tuple[int, int]]) -> None:
    data = bytearray(FILES[name])
    for at, change in flips:
        data[at % len(data)] ^= change
    for decode in (False, True):
        try:
            sound = inspect(bytes(data), decode)
        except BadFileError:
            continue
        assert sound.frames > 0
        assert sound.channels > 0
        assert sound.rate > 0


def test_a_damaged_body_is_found_by_decoding() -> None:
    data = bytearray(of_format("flac", tone(seconds=2)))
    data[len(data) // 2] ^= 1
    assert inspect(bytes(data), decode=False).frames == 32000
    assert bad(bytes(data), decode=True).startswith("is damaged or cannot be decoded: ")


@given(st.integers(1, 300), st.integers(1, 6), st.sampled_from([1, 8000, 44100, 192000]))
@settings(deadline=None)
def test_wav_of_pythons_own_module_is_understood(frames: int, channels: int, rate: int) -> None:
    data = wav16(np.ones((frames, channels), np.int16), rate)
    assert inspect(data, decode=True) == Sound("wav", rate, channels, frames)
