"""Files in a source's folder that are not read, because of their ending or where a link leads.

All of it is listed and warned of. What comes with data everywhere, such as a README or what a file manager leaves
behind, is ignored without a word.
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
        tells_endings: Whether files of other endings are listed and warned of.
        counts: Number of all files of other endings, by ending.
        links: Number of links to files and folders that lead out of the source's folder.
    """

    log: Path | None
    wanted: Iterable[str]
    noun: str
    tells_endings: bool = True
    counts: Counter[str] = field(default_factory=Counter)
    links: int = 0
    _unexpected: Counter[str] = field(default_factory=Counter)
    _pending: list[str] = field(default_factory=list)

    def add(self, file: str) -> str:
        """Counts a file, given by its path, and lists it; returns its line, or nothing if it is not data."""
        path = PurePosixPath(file)
        ending = path.suffix.lower()
        ending = ending if ending in self.counts or len(self.counts) < _MOST_ENDINGS else _OTHERS
        self.counts[ending] += 1
        if not self.tells_endings or path.name.lower().partition(".")[0] in _NO_DATA:
            return ""
        self._unexpected[ending] += 1
        return self._list(file, f"its ending is not that of {self.noun}")

    def add_link(self, path: str) -> str:
        """Counts and lists a link that leads out of the source's folder; returns its line."""
        self.links += 1
        return self._list(path, "it is a link that leads out of the folder, and `follow_links: true` is not set")

    def _list(self, file: str, reason: str) -> str:
        line = log_line(file, f"ignored: {reason}")
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
        """Returns the warning about them; nothing if there are none that may be data."""
        self._flush()
        said = []
        if self._unexpected:
            endings, taken = _count_endings(self._unexpected), ", ".join(self.wanted)
            files = _are(self._unexpected.total(), "file")
            said.append(f"{files} ignored: {endings}. Taken are {taken}. If the others are data, convert them.")
        return " ".join([*said, *filter(None, [self.links_warning()])])

    def links_warning(self) -> str:
        """Returns the warning about links; nothing if none leads out of the folder."""
        return links_warning(self.links)

    def __str__(self) -> str:
        """Returns which endings there are: "2 ending in .txt, 1 ending in nothing"; and the warning about links."""
        found = _count_endings(self.counts) if self.counts else "no file at all"
        return f"{found}. {self.links_warning().removesuffix('.')}" if self.links else found


def links_warning(count: int) -> str:
    """Returns the warning about `count` links that lead out of a folder; nothing for none."""
    lead, them = ("it leads", "it") if count == 1 else ("they lead", "them")
    ignored = f"{_are(count, 'link')} ignored: {lead} out of it; set `follow_links: true` to follow {them}."
    return ignored if count else ""


def _are(count: int, noun: str) -> str:
    return f"1 {noun} in the folder is" if count == 1 else f"{count:,} {noun}s in the folder are"


def _count_endings(counts: Counter[str]) -> str:
    return ", ".join(f"{count} ending in {ending or 'nothing'}" for ending, count in counts.most_common())


def log_line(file: str, reason: str) -> str:
    """Returns a file and a reason as one line of a log; names of files can hold line ends and tabs."""
    name = file if file.isprintable() else file.encode("unicode_escape").decode()
    return f"{name}\t{' '.join(reason.split())}\n"
