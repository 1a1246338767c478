"""MP3 files' frames, by their headers: a file's only length is that of its frames.

A frame begins with 4 bytes that give its size. Encoders put a frame without sound first (named Xing or Info), which
tells how many follow; without it, players guess the length from the file's size.
"""

from tfr_assets.sources.model.kinds import BadFileError

_MPEG_1 = 3
_LAYER_III = 1
_KBITS = {
    True: (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),  # MPEG 1, by the header's 4 bits
    False: (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),  # MPEG 2 and 2.5
}
_RATES = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}  # Hz, by version and 2 bits
_TAGS = (b"TAG", b"APETAGEX", b"LYRICSBEGIN", b"ID3")  # what may follow the last frame


def _frame_sizes() -> dict[tuple[int, int], int]:
    """Returns a frame's bytes by the second and third byte of its header, their bits of other meaning set to 0."""
    sizes = {}
    for version, rates in _RATES.items():
        is_1 = version == _MPEG_1
        for bits, kbits in list(enumerate(_KBITS[is_1]))[1:]:
            for at, rate in enumerate(rates):
                for padding in (0, 1):
                    size = (144_000 if is_1 else 72_000) * kbits // rate + padding
                    sizes[0xE0 | version << 3 | _LAYER_III << 1, bits << 4 | at << 2 | padding << 1] = size
    return sizes


_SIZES = _frame_sizes()


def check_frames(data: bytes, start: int) -> None:
    """Checks that all frames are there, from `start` on.

    Raises:
        BadFileError: Some are missing or damaged, or their number is unknown.
    """
    at, whole = start, 0
    bitrates = set()
    while at + 4 <= len(data) and data[at] == 0xFF:
        size = _SIZES.get((data[at + 1] & 0xFE, data[at + 2] & 0xFE))
        if size is None or at + size > len(data):
            break
        bitrates.add(data[at + 2] & 0xF0)
        at += size
        whole += 1
    if not whole:
        raise BadFileError("is not audio of a known format: it begins like MP3, but holds no whole frame")
    stated = _stated_frames(data, start)
    if stated is not None and whole - 1 < stated:
        raise BadFileError(f"is cut short or damaged: of {stated:,} frames, the first {whole - 1:,} are whole")
    if stated is None and not data.startswith(_TAGS, at) and any(data[at:]):
        raise BadFileError(f"is cut short or damaged: at byte {at:,}, there is no whole frame")
    if stated is None and len(bitrates) > 1:
        raise BadFileError(
            "does not show its length: it is MP3 of varying bit rate without a Xing header, which decoders cut short; "
            "convert it"
        )


def _stated_frames(data: bytes, start: int) -> int | None:
    """Returns the number of frames after the first, as the first one says, or None if it says nothing."""
    is_1, is_mono = data[start + 1] >> 3 & 3 == _MPEG_1, data[start + 3] >> 6 == 3
    at = start + 4 + {(True, False): 32, (False, True): 9}.get((is_1, is_mono), 17)  # behind the side information
    if data[at : at + 4] not in (b"Xing", b"Info") or not data[at + 7] & 1:
        return None
    return int.from_bytes(data[at + 8 : at + 12], "big")
