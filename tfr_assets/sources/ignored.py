"""Files in a source's folder that are not taken, because of their endings: each is listed, and all are warned of.

What comes with data everywhere, such as a README or what a file manager leaves behind, is ignored without a word.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

_MOST_ENDINGS = 10  # that are counted by themselves
_LINES = 1024  # written at once
_OTHERS = "something else"
_NO_DATA = frozenset(
    ("readme", "license", "licence", "copying", "notice", "citation", "changelog", "md5sums", "sha256sums", "thumbs")
)  # by their names without endings


@dataclass
class Ignored:
    """Files that are not taken.

    Attributes:
        log: Where they are listed, a line "FILE<tab>REASON" each; None: nowhere.
        wanted: Endings of those that are taken.
        noun: What one of these is called.
        counts: Number of all of them, by ending.
    """

    log: Path | None
    wanted: Iterable[str]
    noun: str
    counts: Counter[str] = field(default_factory=Counter)
    _unexpected: Counter[str] = field(default_factory=Counter)
    _pending: list[str] = field(default_factory=list)

    def add(self, file: str) -> str:
        """Counts a file, given by its path, and lists it; returns its line, or nothing if it is no data."""
        path = PurePosixPath(file)
        ending = path.suffix.lower()
        ending = ending if ending in self.counts or len(self.counts) < _MOST_ENDINGS else _OTHERS
        self.counts[ending] += 1
        if path.name.lower().partition(".")[0] in _NO_DATA:
            return ""
        self._unexpected[ending] += 1
        line = log_line(file, f"ignored: its ending is not that of {self.noun}")
        if self.log is not None:
            self._pending.append(line)
            if len(self._pending) >= _LINES:
                self._flush()
        return line

    def _flush(self) -> None:
        if self._pending and self.log:
            with self.log.open("a", encoding="utf-8") as log:
                log.writelines(self._pending)
            self._pending.clear()

    def warning(self) -> str:
        """Returns what to tell of them; nothing if there are none that may be data."""
        self._flush()
        if not self._unexpected:
            return ""
        count = self._unexpected.total()
        files = "1 file in the folder is" if count == 1 else f"{count:,} files in the folder are"
        taken = ", ".join(self.wanted)
        return f"{files} ignored: {_told(self._unexpected)}. Taken are {taken}. If the others are data, convert them."

    def __str__(self) -> str:
        """Returns which endings there are: "2 ending in .txt, 1 ending in nothing"."""
        return _told(self.counts) if self.counts else "no file at all"


def _told(counts: Counter[str]) -> str:
    return ", ".join(f"{count} ending in {ending or 'nothing'}" for ending, count in counts.most_common())


def log_line(file: str, reason: str) -> str:
    """Returns a file and a reason as one line of a log; names of files can hold line ends and tabs."""
    name = file if file.isprintable() else file.encode("unicode_escape").decode()
    return f"{name}\t{' '.join(reason.split())}\n"
