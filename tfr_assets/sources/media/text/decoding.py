"""Raw bytes → text: UTF-8 is checked by Arrow where it lies, any other encoding goes through Python's codecs."""

import codecs
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfr_assets.sources.model.kinds import BadFileError
from tfr_assets.sources.tables.arrow_files import guess

_CHUNK = 4 << 20
_MAGIC = 512
_BAD = "\udc80"  # half of a surrogate pair: no encoding's bytes can mean it, and UTF-8 cannot hold it


def is_utf8(encoding: str) -> bool:
    """Whether an encoding's bytes are UTF-8 already, except for a byte order mark that is removed anyway."""
    return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")


def check_decodable(data: bytes, encoding: str) -> None:
    """Raises BadFileError, which names the byte, unless `data` is text of that encoding."""
    try:
        text = data.decode(encoding)
        if not is_utf8(encoding):
            text.encode()  # UTF-7 can spell what UTF-8 cannot: halves of surrogate pairs
    except UnicodeError as error:
        raise undecodable(error, encoding, data[:_MAGIC]) from error


def undecodable(error: UnicodeError, encoding: str, begin: bytes = b"", before: int = 0) -> BadFileError:
    """Returns the error that says which byte is wrong, and what to do.

    Args:
        error: What decoding raised.
        encoding: What was tried.
        begin: First bytes of the file, if they are known.
        before: Number of bytes before those that were decoded.
    """
    if hint := guess(begin):
        return BadFileError(f"is not text.{hint.removesuffix('.')}")
    remedy = "If it is in another encoding, set it, such as `encoding: latin-1`"
    if not isinstance(error, UnicodeDecodeError):  # such as a byte order mark that is missing
        return BadFileError(f"is not {encoding} text: {error}. {remedy}")
    byte = error.object[error.start]
    where = f"byte {before + error.start} (0x{byte:02x})"
    return BadFileError(f"{where} is not {encoding} text: {error.reason}. {remedy}")


def decode_all(contents: pa.LargeBinaryArray, encoding: str) -> pa.LargeStringArray:
    """Returns the texts of whole contents, without their byte order marks.

    Args:
        contents: Every one passed `check_decodable`.
        encoding: Of all of them.
    """
    if not is_utf8(encoding):
        texts = (data.decode(encoding).removeprefix("\ufeff") for data in contents.to_pylist())
        return pa.array(texts, pa.large_string(), size=len(contents))
    marked = pc.starts_with(contents, pattern=codecs.BOM_UTF8)
    if pc.any(marked).as_py():
        contents = pc.if_else(marked, pc.binary_replace_slice(contents, 0, len(codecs.BOM_UTF8), b""), contents)
    return contents.cast(pa.large_string())


def cast_valid(texts: pa.LargeBinaryArray) -> tuple[pa.LargeStringArray, list[int]]:
    """Returns the values that are UTF-8, and the positions of those that are not."""
    try:
        return texts.cast(pa.large_string()), []
    except pa.ArrowInvalid:
        values = texts.to_pylist()
        bad = [at for at, value in enumerate(values) if value is not None and not _is_valid(value)]
        good = np.delete(np.arange(len(values)), bad)
        return texts.take(pa.array(good)).cast(pa.large_string()), bad


def _is_valid(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def utf8_chunks(stream: BinaryIO, encoding: str, strict: bool) -> Iterator[bytes]:
    """Returns a stream's text in UTF-8, some megabytes at a time.

    What is in UTF-8 already comes unchecked. Of other encodings, what cannot be decoded raises BadFileError if
    `strict`, and otherwise becomes bytes that are not UTF-8.
    """
    chunks = iter(lambda: stream.read(_CHUNK), b"")
    return chunks if is_utf8(encoding) else _recoded(chunks, encoding, strict)


def _recoded(chunks: Iterator[bytes], encoding: str, strict: bool) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("strict" if strict else _MARKING)
    before = 0
    try:
        for chunk in chunks:
            held = len(decoder.getstate()[0])
            yield decoder.decode(chunk).encode(errors="surrogatepass")
            before += len(chunk)
        held = len(decoder.getstate()[0])
        yield decoder.decode(b"", final=True).encode(errors="surrogatepass")
    except UnicodeError as error:
        raise undecodable(error, encoding, before=before - held) from error


def _mark(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return _BAD, error.end


_MARKING = "tfr_assets.mark"
codecs.register_error(_MARKING, _mark)
