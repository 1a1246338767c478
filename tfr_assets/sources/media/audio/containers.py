"""Is a recording whole? What a file's container promises, compared with the bytes that are there.

Audio libraries take a cut file for a shorter recording: libsndfile counts what is left of WAV, AIFF and Ogg, and
guesses the length of MP3. Each check here looks at headers only, so that it costs next to nothing. FLAC needs none: its
header tells the number of samples, and the last one can be asked for.
"""

from typing import Literal

from tfr_assets.sources.media.audio.mp3 import check_frames
from tfr_assets.sources.model.kinds import BadFileError

# What is written for a size that is not yet known, by programs that cannot go back: all bits set, for example.
_SIZE_UNTOLD = 0x7FFFF000


def check_whole(data: bytes) -> str:
    """Returns the format of a file's bytes: `wav`, `aiff`, `ogg`, `flac` or `mp3`.

    Raises:
        BadFileError: It is none of these, or its end is missing.
    """
    start = _after_tag(data)
    match data[start : start + 4], data[start + 8 : start + 12]:
        case (b"RIFF", b"WAVE"):
            _check_chunks(data, b"data", "little")
            return "wav"
        case (b"RIFX", b"WAVE"):
            _check_chunks(data, b"data", "big")
            return "wav"
        case (b"FORM", b"AIFF" | b"AIFC"):
            _check_chunks(data, b"SSND", "big")
            return "aiff"
        case (b"OggS", _):
            _check_pages(data)
            return "ogg"
        case (b"fLaC", _):
            return "flac"
        case (sync, _) if sync[:1] == b"\xff" and len(sync) > 1 and sync[1] & 0xE0 == 0xE0:
            check_frames(data, start)
            return "mp3"
    if not data:
        raise BadFileError("is empty")
    raise BadFileError("is not audio of a known format (WAV, FLAC, Ogg, MP3, AIFF)")


def _after_tag(data: bytes) -> int:
    """Returns where audio begins: behind an ID3 tag, which holds titles and pictures, if there is one."""
    if data[:3] != b"ID3" or len(data) < 10:
        return 0
    size = 0
    for byte in data[6:10]:  # seven bits each
        size = size << 7 | byte & 0x7F
    return 10 + size


def _check_chunks(data: bytes, sound: bytes, order: Literal["little", "big"]) -> None:
    """Checks that the chunk named `sound` is there as far as its size says; sizes are in bytes."""
    at = 12
    while at + 8 <= len(data):
        size = int.from_bytes(data[at + 4 : at + 8], order)
        if data[at : at + 4] == sound:
            there = len(data) - at - 8
            if there < size < _SIZE_UNTOLD:
                raise BadFileError(f"is cut short: its header says {size:,} bytes of sound, {there:,} are there")
            return
        at += 8 + size + size % 2
    raise BadFileError("is cut short: it ends before its sound begins")


def _check_pages(data: bytes) -> None:
    """Checks that the last Ogg page is whole, and marked as the end of the stream."""
    at = data.rfind(b"OggS")
    page = data[at:]
    segments = page[26] if len(page) > 26 else 255
    sizes = page[27 : 27 + segments]
    if len(sizes) < segments or len(page) < 27 + segments + sum(sizes):
        raise BadFileError(f"is cut short: the page that begins at byte {at:,} is not whole")
    if not page[5] & 4:
        raise BadFileError("is cut short: its last page is not marked as the end")
