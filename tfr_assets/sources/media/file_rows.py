"""Files → rows of a listing: each file is read once."""

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa

from tfr_assets.sources.files.tree import Tree
from tfr_assets.sources.model.kinds import BYTES, CLASS, CRC, FILE, HASH, KEY, SPLIT, BadFileError
from tfr_assets.storage.git_lfs import IS_POINTER, is_pointer

COLUMNS = (
    *((FILE, pa.string()), (KEY, pa.string()), (SPLIT, pa.string()), (CLASS, pa.string())),
    *((BYTES, pa.int64()), (CRC, pa.uint32()), (HASH, pa.binary(32))),
)
_NAMES = [name for name, _ in COLUMNS]
CLASS_AT, SIZE_AT = (_NAMES.index(name) for name in (CLASS, BYTES))
_FILES, _SLOW_FILES = 128, 8  # that a thread reads at a time, and where that takes long
_LARGE = 64 << 10  # mean size from which hashing, which needs no Python, is worth a second thread
Row = tuple[Any, ...]  # values of `COLUMNS` and of a medium's facts


@dataclass(frozen=True)
class Medium:
    """What kind of files become rows.

    Attributes:
        noun: What messages call one: "image".
        prefix: Begins the names of its columns: "image".
        endings: Lower-case endings of its files, each with its dot.
        facts: Columns that `look` gives, beside those of every listing. Those without a leading dot are columns of the
            records.
        look: Bytes of a file → values of `facts`, in order. Runs in several threads. Raises BadFileError.
        heavy: Whether `look` computes for long outside of Python, as decoding does.
    """

    noun: str
    prefix: str
    endings: tuple[str, ...]
    facts: pa.Schema
    look: Callable[[bytes], tuple[Any, ...]]
    heavy: bool = False


class Looked(NamedTuple):
    """What some files gave.

    Attributes:
        rows: Of good files.
        bad: Bad files, and reasons.
    """

    rows: list[Row]
    bad: list[tuple[str, str]]


def batch_of(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Returns rows as a batch; there may be none."""
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(values, type_) for values, type_ in zip(columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def look_at_all(tree: Tree, medium: Medium, heads: Iterator[Row]) -> Iterator[Looked]:
    """Yields what files gave, some of them at a time, in order.

    Each head is a row's values of the columns before `.bytes`.

    Small files on a local disk are read by one thread: what Python does with each would only make others wait.
    """
    is_slow = medium.heavy or tree.is_remote
    ahead = 1
    pending: deque[Future[Looked]] = deque()
    with ThreadPoolExecutor(tree.threads) as pool:
        try:
            while True:
                while len(pending) < ahead and (some := list(islice(heads, _SLOW_FILES if is_slow else _FILES))):
                    pending.append(pool.submit(_look_at, tree, medium, some))
                if not pending:
                    return
                looked = pending.popleft().result()
                is_large = sum(row[SIZE_AT] for row in looked.rows) > _LARGE * len(looked.rows)
                ahead = tree.threads if is_slow or is_large else 1
                yield looked
        finally:
            for future in pending:
                future.cancel()


def _look_at(tree: Tree, medium: Medium, heads: list[Row]) -> Looked:
    from tfr_assets.records.kernels.crc32c import crc32c  # loads compiled code

    looked = Looked([], [])
    for head in heads:
        file = head[0]
        try:
            data = tree.read(file)
            if is_pointer(data):
                looked.bad.append((file, IS_POINTER))
                continue
            facts = medium.look(data)
            looked.rows.append((*head, len(data), crc32c(data), hashlib.sha256(data).digest(), *facts))
        except BadFileError as error:
            looked.bad.append((file, str(error)))
        except OSError as error:
            looked.bad.append((file, f"cannot be read: {error.strerror or error}"))
    return looked
