"""Slices: raw data that arrives piece by piece, a day or a region at a time. Each is a dataset's folder of its own.

    hourly   2026-03-01-05        from 05:00 to 06:00, UTC
    daily    2026-03-01
    weekly   2026-03-02           seven days from that day on
    monthly  2026-03
    values   eu, us               in the order of the YAML
    folder   eu, us               a slice for each folder in a folder; which, only who lists it knows
    append   000001               what was new in a folder that only grows; which, only who keeps count knows

Keys of times sort as the times do. A slice of time is there once its time is over.
"""

import fnmatch
import glob
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PlainValidator

from tfr_assets.errors import ConfigError
from tfr_assets.layout import SLICES_FILE
from tfr_assets.option_groups import OneOf, options, problem, problem_at
from tfr_assets.sources.model.kinds import TABLE
from tfr_assets.sources.model.source import Source
from tfr_assets.storage.atomic import write_atomically
from tfr_assets.storage.file_names import is_remote
from tfr_assets.storage.sealed import seal, unseal

_KINDS = ("hourly", "daily", "weekly", "monthly", "values", "folder", "append")
_FORMATS = {"hourly": "%Y-%m-%d-%H", "daily": "%Y-%m-%d", "weekly": "%Y-%m-%d", "monthly": "%Y-%m"}
_STEPS = {"hourly": timedelta(hours=1), "daily": timedelta(days=1), "weekly": timedelta(days=7)}
_WRITTEN = ("%Y-%m-%d-%H", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d", "%Y-%m")  # how YAML may give a time
_HOLE = re.compile(r"\{slice(?::([^{}]+))?\}")
_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_SAMPLED = 800  # slices that follow each other whose paths are held against each other,
_SAMPLED_DAYS = 2200  # and one of each day: in six years, weeks and days of all years have met
_YEARS = range(1900, 2201)
WORDS = ("all", "last", "new")  # which `--slices` takes for something else
_SHOWN = 5


def _time(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    for form in _WRITTEN if isinstance(value, str) else ():
        try:
            return datetime.strptime(value, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise problem(f"expected the time of the first slice, such as 2026-01-01; found {value!r}")


def _start(form: str) -> PlainValidator:
    """Returns the validator of a first slice: its key, of any way to write a time."""

    def check(value: Any) -> str:
        time = _time(value)
        if time.year not in _YEARS:
            raise problem(f"the first slice must be between {_YEARS[0]} and {_YEARS[-1]}; found {value!r}")
        key = time.strftime(form)
        if datetime.strptime(key, form).replace(tzinfo=UTC) != time:
            raise problem(f"{value!r} is not where a slice begins; such as {key}")
        return key

    return PlainValidator(check, json_schema_input_type=str)


def _values(values: Any) -> tuple[str, ...]:
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise problem(f"expected a list of names, such as [eu, us]; found {values!r}")
    for value in values:
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            raise problem(f"{value!r} is not a name; use letters, digits, '-' and '_', and put numbers in quotes")
        if value in WORDS:
            raise problem(f"{value!r} means something else where slices are chosen; use another name")
        if values.count(value) > 1:
            raise problem(f"{value!r} is named twice")
    return tuple(values)


_Names = Annotated[tuple[str, ...], PlainValidator(_values, json_schema_input_type=list[str])]


@options("slices")
class Slices:
    """Slices that raw data arrives in. Exactly one of the fields but `empty` is set.

    Attributes:
        hourly: The first hour, such as `2026-01-01 00:00`, in UTC, as all times.
        daily: The first day.
        weekly: The first day of the first week, on whatever day of the week.
        monthly: The first month.
        values: Names of the slices.
        folder: A folder, or its URL, in which each folder is a slice and has its name; a new folder is a new slice.
        append: The source is a folder or pattern whose files are only added to: the files that are new become a slice.
        empty: What is done with a slice that has no raw data: `refuse`, so that it fails; or `allow`, and it becomes
            files without records, of the columns of another slice.
    """

    hourly: Annotated[str, _start(_FORMATS["hourly"])] | None = Field(default=None, examples=["2026-01-01 00:00"])
    daily: Annotated[str, _start(_FORMATS["daily"])] | None = Field(default=None, examples=["2026-01-01"])
    weekly: Annotated[str, _start(_FORMATS["weekly"])] | None = Field(default=None, examples=["2026-01-05"])
    monthly: Annotated[str, _start(_FORMATS["monthly"])] | None = Field(default=None, examples=["2026-01"])
    values: _Names | None = Field(default=None, examples=[["eu", "us"]])
    folder: str | None = Field(default=None, examples=["raw/events", "s3://bucket/events"])
    append: bool = Field(default=False, examples=[True])
    empty: Annotated[str, OneOf(("refuse", "allow"))] = Field(default="refuse", examples=["allow"])

    def __post_init__(self) -> None:
        """Checks that one kind is chosen."""
        given = [kind for kind in _KINDS if getattr(self, kind)]
        if not given:
            raise problem(f"set one of {', '.join(_KINDS[:-1])} and {_KINDS[-1]}, such as {{daily: 2026-01-01}}")
        if len(given) > 1:
            raise problem_at((given[1],), f"{given[0]} is set, too; keep one of them")

    @property
    def kind(self) -> str:
        """Name of the field that is set."""
        return next(kind for kind in _KINDS if getattr(self, kind))

    @property
    def of_time(self) -> bool:
        """Whether slices are times, one after the other."""
        return self.kind in _FORMATS

    @property
    def grows(self) -> bool:
        """Whether which slices there are does not follow from the YAML, but from what lies on the disk."""
        return self.kind in ("folder", "append")

    @property
    def example(self) -> str:
        """Several slices, as a person writes it."""
        if self.grows:
            return "new"
        if self.values is not None:
            return ",".join(self.values[:2])
        return f"{self.begin.strftime(self.format)}..{self._next(self.begin).strftime(self.format)}"

    @property
    def format(self) -> str:
        """How the keys of slices of time are written, as `strftime` takes it."""
        return _FORMATS[self.kind]

    def all_keys(self, now: datetime | None = None) -> list[str]:
        """Returns the keys of all slices, in order; of time, of those whose time is over. Not of slices that grow.

        Args:
            now: The time that it is; None: the current one.
        """
        assert not self.grows
        return list(self.values) if self.values is not None else list(self._over(now or datetime.now(UTC)))

    def _over(self, now: datetime) -> Iterator[str]:
        begin = self.begin
        while (end := self._next(begin)) <= now:
            yield begin.strftime(self.format)
            begin = end

    @property
    def begin(self) -> datetime:
        """When the first slice of time begins."""
        return self._begin(getattr(self, self.kind))

    def _begin(self, key: str) -> datetime:
        return datetime.strptime(key, self.format).replace(tzinfo=UTC)

    def _next(self, begin: datetime) -> datetime:
        if self.kind == "monthly":
            return begin.replace(year=begin.year + begin.month // 12, month=begin.month % 12 + 1)
        return begin + _STEPS[self.kind]

    def choose(self, said: str, keys: Sequence[str]) -> list[str]:
        """Returns the keys that a text names: one, several with commas, a range `FIRST..LAST`, `last`, or `all`.

        Either end of a range may be missing. Both belong to it.

        Args:
            said: The text.
            keys: Of all slices, in order.

        Raises:
            ConfigError: There is no such slice, or not yet.
        """
        if not keys and self.of_time:
            raise ConfigError(f"slices: the first one, {getattr(self, self.kind)}, is not over yet (times are UTC)")
        if not keys:
            raise ConfigError(
                f"slices: there is no folder in {self.folder} yet"
                if self.folder
                else "slices: no file has come yet; --slices new makes a slice of those that are there"
            )
        named = {"all": keys, "last": keys[-1:]}
        found: set[str] = set()
        for part in said.split(","):
            first, dots, last = (each.strip() for each in part.partition(".."))
            if not dots:
                found |= set(named[first]) if first in named else {keys[self._place(first, keys)]}
                continue
            begin, end = self._place(first or keys[0], keys), self._place(last or keys[-1], keys)
            if begin > end:
                raise ConfigError(f"slices: {first} comes after {last}; write the first one first")
            found |= set(keys[begin : end + 1])
        return [key for key in keys if key in found]

    def shared_with(
        self, source: Source, key: str, files: Iterable[str], keys: Iterable[str]
    ) -> tuple[str, str] | None:
        """Returns the first of a slice's files that the pattern of another slice matches, and that slice; None: none.

        Args:
            source: That of all slices.
            key: The slice.
            files: Its files.
            keys: Of all slices.
        """
        paths = [path for path in _texts(source) if _is_loose(path)]
        if not paths:  # then slices lie in folders, or in files, of their own
            return None
        names = list(files)
        for other in keys:
            forms = [_form(self.fill(path, other)) for path in paths] if other != key else []
            if found := next((name for name in names for form in forms if form.fullmatch(name)), None):
                return found, other
        return None

    def _place(self, key: str, keys: Sequence[str]) -> int:
        if key in keys:
            return keys.index(key)
        there = ", ".join(keys) if len(keys) <= _SHOWN else f"{keys[0]} to {keys[-1]}, {self.kind}"
        raise ConfigError(f"slices: there is no slice {key!r}; there are {there}")

    def check_source(self, source: Source) -> None:
        """Makes sure that a source says where each slice is, and that no two slices are in one place.

        Raises:
            ConfigError: It does not.
        """
        holes = [hole for text in _texts(source) for hole in _HOLE.finditer(text)]
        by_form = ", or raw/{slice:%Y/%m/%d}/*.parquet" if self.of_time else ""
        if self.append:
            _check_appended(source, bool(holes))
            return
        if not holes:
            raise ConfigError(
                f"slices: nothing in the source says where a slice is; write {{slice}} in its path, such as "
                f"raw/{{slice}}/*.parquet{by_form}; or a function that takes it, such as "
                "my_package.my_module:my_rows({slice})"
            )
        if not self.of_time and (formed := next((hole for hole in holes if hole[1]), None)):
            raise ConfigError(f"slices: {formed[0]} is a form of times, but the slices are names; write {{slice}}")
        forms = [hole[1] for hole in holes]
        if not all(forms):  # a place with the key in it is that of no other slice
            return
        places: dict[str, datetime] = {}
        for time in dict.fromkeys(self._sample()):
            place = time.strftime(" ".join(forms))
            if (other := places.setdefault(place, time)) != time:
                raise ConfigError(
                    f"slices: {holes[0][0]} is {place} for {other:{self.format}} as well as for {time:{self.format}}; "
                    f"write a form that tells all slices apart, such as {{slice:{self.format}}}"
                )

    def _sample(self) -> Iterator[datetime]:
        """Yields when slices begin that a form might not tell apart: those that follow each other, and years later."""
        begin = self.begin
        for _ in range(_SAMPLED):
            yield begin
            begin = self._next(begin)
        if self.kind in ("hourly", "daily"):
            yield from (self.begin + timedelta(days=day) for day in range(_SAMPLED_DAYS))

    def place(self, source: Source, key: str) -> Source:
        """Returns the source of one slice: the key is put in place of each `{slice}`, in the form asked for."""
        return _mapped(source, lambda text: self.fill(text, key))

    def fill(self, text: str, key: str) -> str:
        """Returns a text with the key in place of each `{slice}`."""
        begin = self._begin(key) if self.of_time else None
        return _HOLE.sub(lambda hole: begin.strftime(hole[1]) if hole[1] and begin else key, text)


def _check_appended(source: Source, has_holes: bool) -> None:
    if has_holes:
        raise ConfigError("slices: with append, a slice is what is new; remove {slice} from the source")
    if source.kind != TABLE or not source.path:
        raise ConfigError(
            "slices: append takes tables in files, such as raw/*.parquet; for others, set `folder`, and have a folder "
            "for each slice"
        )


def save_slices(folder: Path, slices: Slices) -> None:
    """Saves which slices there are beside their folders, for readers, which know no YAML; of those that grow, nothing.

    Raises:
        WriteError: The file system refused.
    """
    path = folder / SLICES_FILE
    content = seal({} if slices.grows else {slices.kind: getattr(slices, slices.kind)})
    if not path.exists() or path.read_bytes() != content:
        write_atomically(path, content)


def load_slices(content: bytes) -> Slices | None:
    """Returns what `save_slices` saved; None, if that is nothing, or damaged."""
    try:
        return Slices(**(unseal(content) or {}))
    except ConfigError:
        return None


def has_slices(source: Source) -> bool:
    """Whether a source names a place by `{slice}`."""
    return any(_HOLE.search(text) for text in _texts(source))


def missing_root(source: Source) -> Path | None:
    """Returns the first folder that a source's slices must lie in and that is not there; None, if all are."""
    for text in _texts(source):
        hole = _HOLE.search(text)
        if hole is None or "/" not in text[: hole.start()] or is_remote(text):
            continue
        before = _local(text[: hole.start()]).split("/")[:-1]
        plain = "/".join(takewhile(lambda part: not glob.has_magic(part), before)) or "/"
        if not (folder := Path(plain).expanduser().absolute()).is_dir():
            return folder
    return None


def _is_loose(path: str) -> bool:
    """Whether patterns of two slices can match one file: wildcards stand beside the key, or folders before it vary."""
    if not _HOLE.search(path) or not glob.has_magic(path):
        return False
    before, _, after = (_HOLE.split(path)[0], None, _HOLE.split(path)[-1])
    beside = before.rpartition("/")[2] + after.partition("/")[0]
    return glob.has_magic(beside) or "**" in before.split("/")


def _form(pattern: str) -> re.Pattern[str]:
    """Returns what the paths look like that a pattern matches, as `glob` takes it."""
    whole = pattern if is_remote(pattern) else str(Path(_local(pattern)).expanduser().absolute())
    parts = [
        "(?:[^/]+/)*" if part == "**" else fnmatch.translate(part).removeprefix("(?s:").removesuffix(r")\Z") + "/"
        for part in whole.split("/")
    ]
    return re.compile("".join(parts).removesuffix("/").replace(".*", "[^/]*"))


def _local(path: str) -> str:
    return path.removeprefix("file://").removeprefix("local://")


def _mapped(source: Source, change: Callable[[str], str]) -> Source:
    def walk(value: Any) -> Any:
        if isinstance(value, str):
            return change(value)
        if isinstance(value, Mapping):
            return {key: walk(item) for key, item in value.items()}
        return [walk(item) for item in value] if isinstance(value, list | tuple) else value

    return replace(source, path=walk(source.path), callable=walk(source.callable), options=walk(source.options))


def _texts(source: Source) -> list[str]:
    texts: list[str] = []

    def note(text: str) -> str:
        texts.append(text)
        return text

    _mapped(source, note)
    return texts
