"""Files of lines → rows."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import PurePosixPath

import pyarrow as pa

from tfr_assets.errors import SourceChanged, SourceError
from tfr_assets.sources.files.tree import Tree, tree_of
from tfr_assets.sources.media.labelling import Labeller, labeller_of
from tfr_assets.sources.media.labels import class_names, label_key
from tfr_assets.sources.media.table_rows import numbered
from tfr_assets.sources.media.text.lines import read_lines
from tfr_assets.sources.model.kinds import CLASS, FILE, SPLIT, BadFileError, Found
from tfr_assets.sources.model.source import Source
from tfr_assets.sources.model.text_options import TEXT, TextOptions
from tfr_assets.storage.file_names import COMPRESSION_ENDINGS, endings, natural
from tfr_assets.storage.git_lfs import IS_POINTER
from tfr_assets.storage.raw_files import RawFile, reading

FILENAME = "text/filename"
_ENDINGS = ("", *(ending for ending in COMPRESSION_ENDINGS if ending != ".zip"))
_SCHEMA = pa.schema([*((name, pa.string()) for name in (FILE, SPLIT, CLASS, FILENAME)), (TEXT, pa.large_string())])
_Bad = Callable[[str, str], None]  # leaves a file out, or ends the listing with an error


def is_one_file(source: Source) -> bool:
    """Whether a source's path names a file rather than a folder or a pattern."""
    assert source.path
    entries = tree_of(source.path, source.storage_options).entries(lambda folder, reason: None, lambda link: None)
    return list(islice(entries, 2)) == [PurePosixPath(source.path).name]


def list_text_lines(source: Source, options: TextOptions, found: Found) -> Iterator[pa.RecordBatch]:
    """Yields .file (NAME:NUMBER, from 1), .split, .class, `text/filename` and `text` of every line that is not empty.

    The files' names are in memory all at once, but little of what they hold.

    Args:
        source: What to list.
        options: What it says.
        found: Filled meanwhile.

    Raises:
        SourceError: There are no such files, or one cannot be read, is not text or has no class.
    """
    assert source.path
    yield pa.RecordBatch.from_pylist([], _SCHEMA)
    tree = tree_of(source.path, source.storage_options, options.follow_links)

    def bad(file: str, reason: str) -> None:
        if not options.skip:
            raise SourceError(f"{tree.root}/{file}: {reason}.")
        found.skip(file, reason)

    places = _places(tree, source, options, bad, found)
    raw = {file: RawFile(_path(tree, file), "", source.storage_options) for file in places}
    infos = {file: raw[file].info() for file in places}
    total = sum(size for size, _ in infos.values())
    labeller = _labeller(tree, source, options, places, bad)
    classes: set[str] = set()
    for file, (split, below) in places.items():
        try:
            name = labeller.of(file, below)
        except BadFileError as error:
            bad(file, str(error))
            continue
        classes |= {name} if name is not None else set()
        if raw[file].is_pointer():
            bad(file, IS_POINTER)
            continue
        for numbers, texts in _lines(raw[file], file, options, found):
            said = [pa.repeat(pa.scalar(value, pa.string()), len(texts)) for value in (split, name, file)]
            yield pa.RecordBatch.from_arrays([numbered(file, numbers), *said, texts], schema=_SCHEMA)
        size, signature = infos[file]
        if raw[file].info()[1] != signature:
            raise SourceChanged(f"{raw[file].path}: changed while it was read. Materialize raw again.")
        found.files, found.bytes = found.files + 1, found.bytes + size
        found.progress(found.bytes, total)
    if classes:
        found.classes[label_key(TEXT)] = class_names(classes, options.label_options)


def _places(
    tree: Tree, source: Source, options: TextOptions, bad: _Bad, found: Found
) -> dict[str, tuple[str | None, str]]:
    """Returns each file's split, and its path below the split's folder; files in natural order.

    Raises:
        SourceError: There are none.
    """
    ignored = found.ignored(options.endings, "a text")
    fitting = []
    is_one = is_one_file(source)

    def leads_out(path: str) -> None:
        if path.endswith("/") or _fits(path, options.endings):
            ignored.add_link(path)
        else:
            ignored.add(path)

    for path in tree.entries(bad, leads_out):
        if path.endswith("/"):
            continue
        if is_one or _fits(path, options.endings):
            fitting.append(path)
        else:
            ignored.add(path)
    if not fitting:
        looked = f"looked for files ending in {', '.join(options.endings)}"
        there = sorted(ending or "nothing" for ending in ignored.counts)
        there_are = f"those that are there end in {', '.join(there)}" if there else "there is no file at all"
        raise SourceError(f"{source}: no text is there: {looked}; {there_are}. {ignored.links_warning()}".rstrip())
    found.warn_of(ignored)
    splits: Sequence[str] = source.splits.folder if source.splits else ()
    places: dict[str, tuple[str | None, str]] = {}
    for file in sorted(fitting, key=natural):
        split, _, below = file.partition("/")
        if endings(file)[1] == ".zip":
            bad(file, "is a zip. Unpack it")
        elif splits and split not in splits:
            bad(file, f"is in none of the folders that are splits ({', '.join(splits)})")
        else:
            places[file] = (split, below) if splits else (None, file)
    return places


def _fits(file: str, wanted: Sequence[str]) -> bool:
    ending, compression = endings(file)
    return ending in wanted and compression in _ENDINGS


def _labeller(
    tree: Tree, source: Source, options: TextOptions, places: dict[str, tuple[str | None, str]], bad: _Bad
) -> Labeller:
    files = [(file, below) for file, (_, below) in places.items()]
    try:
        labeller = labeller_of(options.label_options, tree.root, files, (), source.storage_options)
    except SourceError as error:
        raise SourceError(f"{source}: {error}") from error
    for what, reason in labeller.missing():
        bad(what, reason)
    return labeller


def _path(tree: Tree, file: str) -> str:
    """Returns the path or URL of a file; of several chained ones, the first leads to it."""
    root, chain, rest = tree.root.partition("::")
    return f"{root}/{file}{chain}{rest}"


def _lines(raw: RawFile, file: str, options: TextOptions, found: Found) -> Iterator[tuple[pa.Array, pa.Array]]:
    def skip(line: int, reason: str) -> None:
        found.skip(f"{file}:{line}", reason)

    for where, stream in raw.texts():
        with reading(where):
            yield from read_lines(stream, where, options.encoding, skip if options.skip else None)
