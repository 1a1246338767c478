"""Text files → one row per line. A line ends with a line feed, before which a carriage return is no part of it."""

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from tfr_assets.errors import SourceError
from tfr_assets.sources.media.text.decoding import cast_valid, undecodable, utf8_chunks
from tfr_assets.sources.model.kinds import BadFileError

_LONGEST_LINE = 256 << 20


def read_lines(
    stream: BinaryIO, where: str, encoding: str, skip: Callable[[int, str], None] | None = None
) -> Iterator[tuple[np.ndarray, pa.LargeStringArray]]:
    """Yields the numbers, from 1, and texts of all lines but the empty ones, some megabytes at a time.

    Args:
        stream: The file's text.
        where: The file, for messages.
        encoding: Of the text.
        skip: Called with the number of each line that is not text of this encoding, and the reason; None: such a line
            is an error.

    Raises:
        SourceError: A line is longer than 256 MB, or not text; the message names the byte.
    """
    line, offset = 1, 0
    try:
        for block in _whole_lines(utf8_chunks(stream, encoding, strict=skip is None), where):
            if line == 1 and block.startswith(BOM_UTF8):
                offset = len(BOM_UTF8)
                if not (block := block[offset:]):
                    break
            positions, raw, count = _split(block)
            texts, bad = cast_valid(raw)
            if bad:
                if skip is None:
                    raise _first_bad(block, line, offset)
                for at in bad:
                    skip(line + int(positions[at]), f"is not {encoding} text")
                positions = np.delete(positions, bad)
            yield line + positions, texts
            line += count
            offset += len(block)
    except BadFileError as error:
        raise SourceError(f"{where}: {error}, or set `on_error: skip` to go on without such lines.") from error


def _whole_lines(chunks: Iterator[bytes], where: str) -> Iterator[bytes]:
    """Yields text cut after line ends, and what is left at the end."""
    held: list[bytes] = []
    size = 0
    for chunk in chunks:
        if cut := chunk.rfind(b"\n") + 1:
            yield b"".join([*held, chunk[:cut]])
            held, size = [], 0
        held.append(chunk[cut:])
        size += len(chunk) - cut
        if size > _LONGEST_LINE:
            raise SourceError(f"{where}: a line is longer than {_LONGEST_LINE >> 20} MB. Perhaps the file is not text.")
    if rest := b"".join(held):
        yield rest


def _split(block: bytes) -> tuple[np.ndarray, pa.LargeBinaryArray, int]:
    """Returns the position, among all lines, of those that are not empty, these lines, and their number in all."""
    data = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    if not block.endswith(b"\n"):
        ends = np.append(ends, len(block))
    starts = np.zeros_like(ends)
    starts[1:] = ends[:-1] + 1
    ends -= (ends > starts) & (data[ends - 1] == ord("\r"))
    # Lines and what is between them are alternate values of one array, because its offsets have no gaps.
    offsets = np.empty(2 * len(ends) + 1, np.int64)
    offsets[:-1:2], offsets[1::2], offsets[-1] = starts, ends, len(block)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(block)]
    alternate = pa.LargeBinaryArray.from_buffers(pa.large_binary(), 2 * len(ends), buffers)
    positions = np.flatnonzero(ends > starts)
    return positions, alternate.take(pa.array(2 * positions)), len(ends)


def _first_bad(block: bytes, line: int, offset: int) -> BadFileError:
    try:
        block.decode()
    except UnicodeDecodeError as error:
        begin = block[:512] if line == 1 else b""
        at = line + block.count(b"\n", 0, error.start)
        return BadFileError(f"line {at}: {undecodable(error, 'utf-8', begin, offset)}")
    raise AssertionError("Arrow and Python differ on what UTF-8 is")
