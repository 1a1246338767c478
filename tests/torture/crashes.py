"""What a power cut can leave of a recording: the operations persist up to any point, and of those that were not synced,
only some.

    bytes     of what was written to a file since it was synced: all, none, up to any place, or zeros in its place
    names     of what was done in a folder since it was synced:
              ordered   a prefix, and folders independently: what ext4, XFS and Btrfs keep to
              weak      any subset: less than any of these allows, but all that POSIX promises

A rename is one operation in both: it happened, or it did not.
"""

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from .calls import Bind, Operation, Recording, Sync, Write, apply_bind, apply_write, files_below

Model = Literal["ordered", "weak"]
Tree = dict[str, bytes]
FEW = 20_000  # states that are all built
_TORN = ((0.0, False), (1.0, False), (0.5, False), (0.5, True))  # how much of a file is there, and zeros for the rest


@dataclass(frozen=True)
class Crash:
    """One state that a power cut can leave.

    Attributes:
        point: Number of operations that were issued.
        dropped: Which of them left no trace in their folder.
        torn: By file: how much of what was not synced is there (0 to 1), and whether the rest is zeros.
        tree: The files.
    """

    point: int
    dropped: tuple[int, ...]
    torn: dict[int, tuple[float, bool]]
    tree: Tree

    def __str__(self) -> str:
        return f"crash after {self.point} operations, without {self.dropped}, torn {self.torn}: {sorted(self.tree)}"


def count_of(recording: Recording, model: Model) -> int:
    """Returns how many states `every_crash` yields."""
    total = 0
    for point in range(len(recording.operations) + 1):
        pending = _pending(recording.operations[:point])
        sizes = [2] * len(pending.binds)
        if model == "ordered":
            sizes = [len(places) + 1 for places in _by_folder(recording.operations, pending).values()]
        total += math.prod(sizes) * len(_TORN) ** len(pending.files)
    return total


def every_crash(recording: Recording, model: Model) -> Iterator[Crash]:
    """Yields every state: each point, each choice of what is in folders, each file there, not there or half.

    `crashes` tears files anywhere.
    """
    for point in range(len(recording.operations) + 1):
        pending = _pending(recording.operations[:point])
        for dropped in _every_drop(recording.operations, pending, model):
            for torn in itertools.product(_TORN, repeat=len(pending.files)):
                yield _state(recording, point, dropped, dict(zip(pending.files, torn, strict=True)))


def _every_drop(operations: list[Operation], pending: "_Pending", model: Model) -> Iterator[tuple[int, ...]]:
    if model == "weak":
        for kept in itertools.product((True, False), repeat=len(pending.binds)):
            yield tuple(place for place, keep in zip(pending.binds, kept, strict=True) if not keep)
        return
    folders = list(_by_folder(operations, pending).values())
    for counts in itertools.product(*(range(len(places) + 1) for places in folders)):
        yield tuple(place for places, count in zip(folders, counts, strict=True) for place in places[count:])


def crashes(recording: Recording, model: Model, choose: random.Random) -> Iterator[Crash]:
    """Yields states without end, each at random, after those where all or nothing that is pending persists."""
    points = range(len(recording.operations) + 1)
    for point in choose.sample(points, len(points)):
        for share in (0.0, 1.0):
            pending = _pending(recording.operations[:point])
            dropped = () if share else pending.binds
            yield _state(recording, point, dropped, dict.fromkeys(pending.files, (share, False)))
    while True:
        point = choose.choice(points)
        pending = _pending(recording.operations[:point])
        torn = {file: (choose.choice((0.0, 1.0, choose.random())), choose.random() < 0.3) for file in pending.files}
        yield _state(recording, point, _dropped(recording.operations, pending, model, choose), torn)


@dataclass(frozen=True)
class _Pending:
    """What was not synced: places of operations on names, and files."""

    binds: tuple[int, ...]
    files: tuple[int, ...]


def _synced(operations: list[Operation]) -> dict[int, int]:
    """By file or folder: how many of the operations came before it was last synced."""
    found: dict[int, int] = {}
    for operation in operations:
        if isinstance(operation, Sync):
            found[operation.file] = max(operation.since, found.get(operation.file, 0))
    return found


def _pending(operations: list[Operation]) -> _Pending:
    synced = _synced(operations)
    binds, files = [], {}
    for place, operation in enumerate(operations):
        if isinstance(operation, Bind) and any(synced.get(folder, 0) <= place for (folder, _), _ in operation.entries):
            binds.append(place)
        elif isinstance(operation, Write) and synced.get(operation.file, 0) <= place:
            files[operation.file] = None
    return _Pending(tuple(binds), tuple(files))


def _dropped(operations: list[Operation], pending: _Pending, model: Model, choose: random.Random) -> tuple[int, ...]:
    if model == "weak":
        return tuple(place for place in pending.binds if choose.random() < 0.5)
    folders = _by_folder(operations, pending).values()
    return tuple(place for places in folders for place in places[choose.randint(0, len(places)) :])


def _by_folder(operations: list[Operation], pending: _Pending) -> dict[int, list[int]]:
    """What is pending on names, by folder."""
    found: dict[int, list[int]] = {}
    for place in pending.binds:
        operation = operations[place]
        assert isinstance(operation, Bind)
        found.setdefault(operation.entries[0][0][0], []).append(place)
    return found


def _state(recording: Recording, point: int, dropped: tuple[int, ...], torn: dict[int, tuple[float, bool]]) -> Crash:
    operations = recording.operations[:point]
    synced = _synced(operations)
    folders = {number: dict(names) for number, names in recording.folders.items()}
    contents = {number: bytearray(content) for number, content in recording.contents.items()}
    loose: dict[int, list[Write]] = {}
    for place, operation in enumerate(operations):
        if isinstance(operation, Bind) and place not in dropped:
            apply_bind(folders, operation)
        elif isinstance(operation, Write):
            if place < synced.get(operation.file, 0):
                apply_write(contents.setdefault(operation.file, bytearray()), operation)
            else:
                loose.setdefault(operation.file, []).append(operation)
    for number, writes in loose.items():
        share, zeros = torn[number]
        _tear(contents.setdefault(number, bytearray()), writes, share, zeros)
    tree = dict(files_below(folders, {number: bytes(content) for number, content in contents.items()}))
    return Crash(point, dropped, torn, tree)


def _tear(content: bytearray, writes: list[Write], share: float, zeros: bool) -> None:
    """Applies the first share of the bytes of some writes, and zeros, or nothing, for the rest."""
    left = round(share * sum(len(write.data or b"") for write in writes))
    for write in writes:
        if write.data is None:
            apply_write(content, write)
            continue
        kept = write.data[: max(0, left)]
        left -= len(write.data)
        rest = bytes(len(write.data) - len(kept)) if zeros else b""
        if kept or rest:
            apply_write(content, Write(write.file, write.offset, kept + rest))
