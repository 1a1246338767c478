"""Texts → tokens: by a `tokenizer.json` of Hugging Face's `tokenizers`, or by a function of the user's own.

tokens.json              numbers: the ids, special tokens included; what the file says of padding and truncation is
                         left out, because one depends on the batch and the other is said by `max_length`
package.module:function  gets a text, returns a list of whole numbers or of texts
"""

import hashlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfr_assets.errors import ConfigError, SourceError
from tfr_assets.storage.raw_files import RawFile

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Trained

FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_FIELD = "source.text.tokenizer"
_SAMPLE = "Hello, world!"
_CHUNK = 1 << 20  # bytes of text that are encoded at once: an encoding takes some hundred times its text


class Tokenizer(Protocol):
    """A way to cut texts into tokens.

    Attributes:
        type: `list<int64>` or `list<string>`.
        digest: SHA-256 of what decides over the tokens.
    """

    type: pa.DataType
    digest: bytes

    def encode(self, texts: pa.LargeStringArray, names: pa.Array) -> pa.Array:
        """Returns the tokens of each text; none, where it is null.

        Args:
            texts: What to cut.
            names: What errors call each text.

        Raises:
            SourceError: A text cannot be cut; the message names it.
        """


def open_tokenizer(name: str, most: int | None, storage_options: Mapping[str, Any]) -> Tokenizer:
    """Returns the tokenizer of that name.

    Args:
        name: A `tokenizer.json`, as a path or URL, or `package.module:function`.
        most: How many tokens of a text are kept; None: all.
        storage_options: Passed to fsspec.

    Raises:
        ConfigError: There is no such function, or a package is missing.
        SourceError: There is no such file, or it is not a tokenizer.
    """
    return _Function(name, most) if FUNCTION.fullmatch(name) else _Trained(name, most, storage_options)


class _Trained:
    """A tokenizer of the package `tokenizers`."""

    type = pa.list_(pa.int64())

    def __init__(self, name: str, most: int | None, storage_options: Mapping[str, Any]) -> None:
        data = _read(name, storage_options)
        self.digest = hashlib.sha256(data).digest()
        self._tokenizer = _trained(name, data, most)

    def encode(self, texts: pa.LargeStringArray, names: pa.Array) -> pa.Array:
        """Returns the ids of each text's tokens."""
        parts = [self._encode(part, names.slice(at, len(part))) for at, part in _chunks(texts)]
        return pa.concat_arrays(parts) if parts else pa.array([], self.type)

    def _encode(self, texts: pa.LargeStringArray, names: pa.Array) -> pa.Array:
        present = list(_present(texts))
        try:
            encoded = self._tokenizer.encode_batch_fast([text for _, text in present])
        except Exception:  # one by one, the error tells which
            encoded = [_guarded(self._tokenizer.encode, text, names[at].as_py()) for at, text in present]
        tokens: list[list[int]] = [[]] * len(texts)
        for (at, _), found in zip(present, encoded, strict=True):
            tokens[at] = found.ids
        return pa.array(tokens, self.type)


@lru_cache(maxsize=2)  # to parse one takes seconds, and looking at single rows opens it for each
def _trained(name: str, data: bytes, most: int | None) -> "Trained":
    """Returns the tokenizer in a file, which pads nothing and truncates after `most` tokens."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ConfigError(
            f"{_FIELD}: {name} needs the package `tokenizers`, which is not installed: pip install tokenizers"
        ) from error
    try:
        tokenizer = Tokenizer.from_buffer(data)
    except Exception as error:  # the package raises nothing narrower
        raise SourceError(f"{name}: is not a tokenizer of the package `tokenizers`: {error}.") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if most is not None:
        if most <= (special := tokenizer.num_special_tokens_to_add(False)):
            raise ConfigError(
                f"source.text.max_length: {most} leaves no room for a token of the text: {name} adds {special} "
                "special ones. Raise it."
            )
        tokenizer.enable_truncation(most)
    return tokenizer


class _Function:
    """A function that gets a text and returns its tokens."""

    def __init__(self, name: str, most: int | None) -> None:
        self._name, self._most = name, most
        self._function, self.digest = _find(name)
        sample = self._tokens(_SAMPLE, f"the text {_SAMPLE!r}")
        if not len(sample):
            raise SourceError(f"{name}: gave no token for the text {_SAMPLE!r}, which would show their type.")
        self.type = pa.list_(pa.string() if isinstance(sample[0], str) else pa.int64())

    def encode(self, texts: pa.LargeStringArray, names: pa.Array) -> pa.Array:
        """Returns what the function gives for each text."""
        tokens: list[Sequence[Any]] = [[]] * len(texts)
        for at, text in _present(texts):
            tokens[at] = self._tokens(text, names[at].as_py())
        try:
            return pa.array(tokens, self.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            for at, found in enumerate(tokens):
                self._check(found, names[at].as_py())
            raise

    def _tokens(self, text: str, name: str) -> Any:
        found = _guarded(self._function, text, name)
        if not isinstance(found, list | tuple | np.ndarray):
            raise self._odd(found, name, "a list")
        return found if self._most is None else found[: self._most]

    def _check(self, tokens: Sequence[Any], name: str) -> None:
        try:
            pa.array([tokens], self.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            what = "a list of texts" if self.type.value_type == pa.string() else "a list of whole numbers of 64 bits"
            raise self._odd(tokens, name, what) from error

    def _odd(self, found: object, name: str, what: str) -> SourceError:
        return SourceError(f"{name}: the tokenizer {self._name} returned {found!r:.60}, which is not {what}.")


def _read(name: str, storage_options: Mapping[str, Any]) -> bytes:
    file = RawFile(name if "://" in name else str(Path(name).expanduser().absolute()), "", storage_options)
    try:
        file.info()
    except FileNotFoundError as error:
        raise SourceError(f"{file.path}: there is no such file; `tokenizer` names it.") from error
    return b"".join(file.chunks())


def _find(name: str) -> tuple[Callable[[str], Any], bytes]:
    """Returns the user's function, and the hash of the file that its module is in."""
    try:
        found = pkgutil.resolve_name(name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"{_FIELD}: {name!r}: {error}. Check its spelling, and that it is installed or its folder is on PYTHONPATH."
        ) from error
    except Exception as error:
        raise SourceError(f"{name}: importing it raised {type(error).__name__}: {error}") from error
    if not callable(found):
        raise ConfigError(f"{_FIELD}: {name!r} is {type(found).__name__}, not a function.")
    module = sys.modules[name.partition(":")[0]]
    path = inspect.getsourcefile(module)
    return found, hashlib.sha256(Path(path).read_bytes() if path else name.encode()).digest()


def _guarded(function: Callable[[str], Any], text: str, name: str) -> Any:
    try:
        return function(text)
    except Exception as error:
        raise SourceError(f"{name}: the tokenizer raised {type(error).__name__}: {error}") from error


def _present(texts: pa.LargeStringArray) -> Iterator[tuple[int, str]]:
    return ((at, text) for at, text in enumerate(texts.to_pylist()) if text is not None)


def _chunks(texts: pa.LargeStringArray) -> Iterator[tuple[int, pa.LargeStringArray]]:
    """Yields stretches of about as much text as is encoded at once, with the position of the first."""
    ends = np.cumsum(pc.fill_null(pc.binary_length(texts), 0).to_numpy())
    at = 0
    while at < len(texts):
        stop = max(at + 1, int(np.searchsorted(ends, (ends[at - 1] if at else 0) + _CHUNK, side="right")))
        yield at, texts.slice(at, stop - at)
        at = stop
