"""A trace of system calls → what was changed below a folder, and what was synced, in order.

Whatever the trace holds that is not understood is an error: a call that is skipped could be the one that matters.
Threads share their descriptors, processes have each their own.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

CHANGING = (
    "open,openat,creat,mkdir,mkdirat,rmdir,unlink,unlinkat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,"
    "read,readv,pread64,write,writev,pwrite64,pwritev,lseek,close,dup,dup2,dup3,fsync,fdatasync,sync,syncfs,ftruncate,"
    "truncate,copy_file_range,sendfile,fallocate,splice"
)
TRACED = ("-y", "-e", f"trace={CHANGING},clone,clone3,fork,vfork,execve", "-e", "raw=read,readv,pread64,execve")
"""Options of strace: what is read, which can be all of Python's libraries, is left out of the trace."""
_LINE = re.compile(r"(\d+) +(\w+)\((.*)\) += (-?\d\w*)(.*)$")
_BORN = re.compile(r"(\d+) +(?:clone3?|v?fork)\((.*)\) += (\d+)$")
_HALF = re.compile(r"(\d+) +(.*) <unfinished \.\.\.>$")
_OTHER_HALF = re.compile(r"(\d+) +<\.\.\. \w+ resumed>(.*)$")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_FILE = re.compile(r"(\d+|AT_FDCWD)(?:<((?:\\x[0-9a-f]{2})*)>)?")

Entry = tuple[int, str]  # a folder's number and a name in it


@dataclass(frozen=True)
class Bind:
    """Names in folders come to stand for other files, at once: create, mkdir, unlink, rmdir, rename."""

    entries: tuple[tuple[Entry, int | None], ...]


@dataclass(frozen=True)
class Write:
    """Bytes of a file change; without `data`, its size does."""

    file: int
    offset: int
    data: bytes | None


@dataclass(frozen=True)
class Sync:
    """All that was done to a file, or to the names in a folder, is on the disk.

    Attributes:
        file: The file, or the folder.
        since: Number of operations when the call began. What another thread did while it lasted need not be there.
    """

    file: int
    since: int


Operation = Bind | Write | Sync


@dataclass
class Recording:
    """What a traced process did below a folder; files and folders are numbers, the folder itself is 0.

    Attributes:
        contents: What the files held before.
        folders: What the folders held before.
        operations: What was done.
    """

    contents: dict[int, bytes] = field(default_factory=dict)
    folders: dict[int, dict[str, int]] = field(default_factory=lambda: {0: {}})
    operations: list[Operation] = field(default_factory=list)


def snapshot(root: Path) -> Recording:
    """Returns what lies below a folder, as if all of it was on the disk."""
    found = Recording()
    _take(found, root, 0)
    return found


def _take(found: Recording, folder: Path, number: int) -> None:
    for path in sorted(folder.iterdir()):
        new = found.folders[number][path.name] = len(found.folders) + len(found.contents)
        if path.is_dir():
            found.folders[new] = {}
            _take(found, path, new)
        else:
            found.contents[new] = path.read_bytes()


def record(before: Recording, root: Path, trace: Sequence[str]) -> Recording:
    """Returns what a process and its children did below `root`, of which `before` is the snapshot.

    They were traced by `strace -f -xx` with the options `TRACED`.
    """
    return _Recorder(before, root).run(trace)


def replayed(recording: Recording) -> dict[str, bytes]:
    """Returns all files after all operations."""
    contents = {number: bytearray(content) for number, content in recording.contents.items()}
    folders = {number: dict(names) for number, names in recording.folders.items()}
    for operation in recording.operations:
        if isinstance(operation, Write):
            apply_write(contents.setdefault(operation.file, bytearray()), operation)
        elif isinstance(operation, Bind):
            apply_bind(folders, operation)
    return dict(files_below(folders, {number: bytes(content) for number, content in contents.items()}))


def apply_write(content: bytearray, write: Write) -> None:
    """Changes a file's bytes."""
    if write.data is None:
        del content[write.offset :]
        content.extend(bytes(write.offset - len(content)))
        return
    content.extend(bytes(max(0, write.offset - len(content))))
    content[write.offset : write.offset + len(write.data)] = write.data


def apply_bind(folders: dict[int, dict[str, int]], bind: Bind) -> None:
    """Changes folders' names."""
    for (folder, name), number in bind.entries:
        if number is None:
            folders.setdefault(folder, {}).pop(name, None)
        else:
            folders.setdefault(folder, {})[name] = number


def files_below(
    folders: dict[int, dict[str, int]], contents: dict[int, bytes], folder: int = 0, prefix: str = ""
) -> Iterator[tuple[str, bytes]]:
    """Yields the path and content of each file that can be reached; of an empty folder, its path with a `/` behind."""
    names = folders.get(folder, {})
    if prefix and not names:
        yield prefix, b""
    for name, number in sorted(names.items()):
        if number in folders:
            yield from files_below(folders, contents, number, f"{prefix}{name}/")
        else:
            yield prefix + name, contents.get(number, b"")


def _whole_lines(trace: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yields the calls of a trace where they end, and where they begin, if others come between, a line each.

    Whether it is one of these beginnings is told with each line. Some calls count where they begin: another thread can
    have the number of a file that is being closed, or see a folder that is being made, before the call has come back.
    """
    halves: dict[str, tuple[int, str]] = {}
    lines: list[tuple[str, bool]] = []
    for line in trace:
        if half := _HALF.match(line):
            halves[half[1]] = len(lines), half[2]
            lines.append((f"{half[1]} {half[2]}", True))
        elif other := _OTHER_HALF.match(line):
            place, first = halves.pop(other[1])
            whole = f"{other[1]} {first}{other[2]}"
            if first.startswith(_COUNTS_AT_ONCE):
                lines[place] = whole, False
            else:
                lines.append((whole, False))
        else:
            lines.append((line, False))
    yield from lines


_COUNTS_AT_ONCE = ("close(", "mkdir(", "mkdirat(")


_Descriptors = dict[int, list[int]]  # by descriptor: the file's number and the position in it


class _Recorder:
    def __init__(self, before: Recording, root: Path) -> None:
        self._made = Recording(before.contents, dict(before.folders))
        self._root = PurePosixPath(root)
        self._folders = {number: dict(names) for number, names in before.folders.items()}  # as they are now
        self._next = 1 + len(before.contents) + len(before.folders)
        self._thread, self._open = "", _Descriptors()  # whose call is looked at, and what it has open
        self._of_thread: dict[str, _Descriptors] = {}
        self._born: dict[str, tuple[str, bool]] = {}  # by thread: what made it, and whether they share descriptors
        self._since = 0  # operations when the call began that is looked at

    def run(self, trace: Sequence[str]) -> Recording:
        begun: dict[str, int] = {}
        lines = list(_whole_lines(trace))
        born = [match for line, _ in lines if (match := _BORN.match(line))]
        self._born = {match[3]: (match[1], "CLONE_FILES" in match[2]) for match in born}
        for line, began in lines:
            self._thread = line.partition(" ")[0]
            self._open = self._descriptors(self._thread)
            if began:  # what results from it is not known yet
                begun[line.partition(" ")[0]] = len(self._made.operations)
            elif (match := _LINE.match(line)) and int(match[4], 0) >= 0:
                self._since = begun.pop(match[1], len(self._made.operations))
                self._call(match[2], match[3].rstrip(), int(match[4], 0))
            else:
                assert match or re.search(r"\+\+\+|---|= \?", line), line
                begun.pop(line.partition(" ")[0], None)
        return self._made

    def _descriptors(self, thread: str) -> _Descriptors:
        """Those of a thread; of a new process, at its first call, what its parent has open then."""
        if thread not in self._of_thread:
            parent, shared = self._born.get(thread, ("", False))
            found = self._descriptors(parent) if parent else {}
            self._of_thread[thread] = found if shared else dict(found)
        return self._of_thread[thread]

    def _call(self, name: str, text: str, result: int) -> None:
        if not (handle := getattr(self, f"_on_{name}", None)):
            below = [path for path in self._paths(text) if self._is_below(path)]
            assert not below, f"{name} of {below} is not understood: {text[:300]}"
            return
        handle(text, result)

    def _paths(self, text: str) -> list[str]:
        hexes = [*_TEXT.findall(text), *(found for _, found in _FILE.findall(text) if found)]
        return [_decode(found).decode(errors="replace") for found in hexes]

    def _is_below(self, path: str) -> bool:
        return PurePosixPath(path).is_relative_to(self._root)

    # names

    def _entry(self, folder: str | None, path: bytes) -> Entry | None:
        """The folder's number and the name of a path, or None where it is not below the root."""
        full = PurePosixPath(folder or "/") / path.decode()
        if not self._is_below(str(full)) or full == self._root:
            return None
        number = 0
        for name in full.relative_to(self._root).parts[:-1]:
            number = self._folders[number][name]
        return number, full.name

    def _lookup(self, entry: Entry | None) -> int | None:
        return None if entry is None else self._folders.get(entry[0], {}).get(entry[1])

    def _bind(self, *entries: tuple[Entry, int | None]) -> None:
        bind = Bind(entries)
        apply_bind(self._folders, bind)
        self._made.operations.append(bind)

    def _new(self) -> int:
        self._next += 1
        return self._next

    def _arguments(self, text: str) -> list[tuple[str | None, bytes]]:
        """The paths of a call, each with the folder that it is relative to."""
        found: list[tuple[str | None, bytes]] = []
        folder = None
        for part in text.split(", "):
            if file := _FILE.fullmatch(part):
                folder = _decode(file[2]).decode() if file[2] else None
            elif text_match := _TEXT.fullmatch(part):
                found.append((folder, _decode(text_match[1])))
        return found

    def _on_openat(self, text: str, result: int) -> None:
        ((folder, path),) = self._arguments(text)
        self._open_file(folder, path, text, result)

    _on_open = _on_openat

    def _open_file(self, folder: str | None, path: bytes, text: str, result: int) -> None:
        self._open.pop(result, None)
        full = PurePosixPath(folder or "/") / path.decode()
        if not self._is_below(str(full)):
            return
        if full == self._root:
            self._open[result] = [0, 0]
            return
        entry = self._entry(folder, path)
        number = self._lookup(entry)
        assert "O_APPEND" not in text and "O_TMPFILE" not in text, text
        if number is None:
            assert "O_CREAT" in text and entry, text
            number = self._new()
            self._bind((entry, number))
        elif "O_TRUNC" in text:
            self._made.operations.append(Write(number, 0, None))
        self._open[result] = [number, 0]

    def _on_mkdir(self, text: str, result: int) -> None:
        ((folder, path),) = self._arguments(text)
        if entry := self._entry(folder, path):
            number = self._new()
            self._folders[number] = {}
            self._made.folders[number] = {}
            self._bind((entry, number))

    _on_mkdirat = _on_mkdir

    def _on_unlink(self, text: str, result: int) -> None:
        ((folder, path),) = self._arguments(text)
        if entry := self._entry(folder, path):
            self._bind((entry, None))

    _on_unlinkat = _on_rmdir = _on_unlink

    def _on_rename(self, text: str, result: int) -> None:
        (from_folder, source), (to_folder, target) = self._arguments(text)
        old, new = self._entry(from_folder, source), self._entry(to_folder, target)
        assert (old is None) == (new is None), text
        if old and new:
            number = self._lookup(old)
            assert number is not None, text
            self._bind((old, None), (new, number))

    _on_renameat = _on_renameat2 = _on_rename

    # bytes

    def _file(self, text: str) -> list[int] | None:
        path = _FILE.match(text)
        if path and path[2] and not self._is_below(_decode(path[2]).decode(errors="replace")):
            return None  # such as a pipe, which has the number of a file that was open before `execve`
        return self._open.get(_descriptor(text))

    def _on_write(self, text: str, result: int) -> None:
        file = self._file(text)
        if file is None:
            path = _FILE.match(text)
            assert not (path and path[2] and self._is_below(_decode(path[2]).decode())), text[:300]
            return
        data = _TEXT.search(text)
        assert data, text[:300]
        self._written(file, _decode(data[1])[:result])

    def _written(self, file: list[int], data: bytes) -> None:
        self._made.operations.append(Write(file[0], file[1], data))
        file[1] += len(data)

    def _on_read(self, text: str, result: int) -> None:
        if file := self._file(text):
            file[1] += result

    _on_readv = _on_read

    def _on_pread64(self, text: str, result: int) -> None:
        """Moves nothing."""

    _on_fallocate = _on_pread64  # with FALLOC_FL_KEEP_SIZE; a size that changes would show in the replay

    def _on_lseek(self, text: str, result: int) -> None:
        if file := self._file(text):
            file[1] = result

    def _on_close(self, text: str, result: int) -> None:
        self._open.pop(_descriptor(text), None)

    def _on_ftruncate(self, text: str, result: int) -> None:
        if file := self._file(text):
            self._made.operations.append(Write(file[0], int(text.rpartition(", ")[2]), None))

    def _on_copy_file_range(self, text: str, result: int) -> None:
        parts = text.split(", ")
        source, target = (self._open.get(int(parts[place].partition("<")[0])) for place in (0, 2))
        assert parts[1] == parts[3] == "NULL" and source and target, text
        content = bytearray(self._made.contents.get(source[0], b""))
        for operation in self._made.operations:
            if isinstance(operation, Write) and operation.file == source[0]:
                apply_write(content, operation)
        self._written(target, bytes(content[source[1] : source[1] + result]))
        source[1] += result

    def _on_fsync(self, text: str, result: int) -> None:
        if file := self._file(text):
            self._made.operations.append(Sync(file[0], self._since))

    _on_fdatasync = _on_fsync

    # processes

    def _on_execve(self, text: str, result: int) -> None:
        """Closes what is open: of all that Python opens, nothing is inherited unless it is asked for."""
        self._of_thread[self._thread] = {}


def _descriptor(text: str) -> int:
    return int(text.partition("<")[0].partition(",")[0], 0)


def _decode(hexes: str) -> bytes:
    return bytes.fromhex(hexes.replace("\\x", ""))
