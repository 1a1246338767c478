"""The command line, `tfr`: what the UI does, without a browser.

Exit code 0: fine. 1: data is bad, or a run failed. 2: wrong usage. Stopped: 130 by Ctrl-C, 143 by SIGTERM, 129 by
SIGHUP, which a terminal sends when it is closed.
"""

import atexit
import gc
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape
from rich.text import Text

from tfr_assets.bench.writers.measured import MEASURED
from tfr_assets.cli.signals import handle_stop_signals, stop_code
from tfr_assets.errors import ConfigError, TfrError
from tfr_assets.project import PROJECT_VARIABLE, find_project
from tfr_assets.reading.locate.file_sets import is_of_slice
from tfr_assets.reading.registry import READERS
from tfr_assets.urls import is_object_url, named

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from tfr_assets.cli.execute import Outcome
    from tfr_assets.cli.status import Status
    from tfr_assets.components.config.component import TFRecordDataset
    from tfr_assets.records.frames.examine import FileReport
    from tfr_assets.units import StepProgress
    from tfr_assets.writing.dataset import Dataset

_SHOWN_FAULTS = 20
_STALE_NAMED = 3
max_record_bytes = click.option(
    "--max-record-bytes",
    type=click.IntRange(1),
    metavar="N",
    help="Longest record that is read into memory; the default is 256 MiB, or what a manifest says.",
)
of_slices = click.option(
    "--slices",
    metavar="SLICES",
    help="Where raw data comes in slices, which: one, several with commas, FIRST..LAST, last, or all; for run and "
    "plan also new, those that are new or have changed.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")


class _Files(click.Path):
    """A file or folder; or a dataset's name, which stands for its folder where nothing else is called so; or a URL."""

    urls = False

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if self.urls and is_object_url(value):
            return value
        if not Path(value).exists():  # else it does not matter whether there is a project
            from tfr_assets.writing.stored import dataset_folder

            folder = dataset_folder(value)
            if folder.is_dir():
                value = folder
            elif re.fullmatch("[A-Za-z0-9_]+", value):
                from tfr_assets.reading.locate.files import check_name

                try:
                    check_name(value, folder.parent)
                except ConfigError as error:
                    self.fail(f"there is no such file, and {error}", param, ctx)
        return super().convert(value, param, ctx)


class _FilesOrUrl(_Files):
    """As `_Files`; or the URL of a file or folder in an object store, as a string."""

    urls = True


class _PathOrUrl(click.Path):
    """A file or folder; or any URL, as a string."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if isinstance(value, str) and "://" in value else super().convert(value, param, ctx)


class _DatasetOrFiles(_FilesOrUrl):
    """As `_FilesOrUrl`; also the name of a dataset that was not written yet, for its folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if is_object_url(value):
            return value
        from tfr_assets.writing.stored import dataset_folder

        is_name = re.fullmatch("[A-Za-z0-9_]+", value) and not Path(value).exists()
        if is_name and not (folder := dataset_folder(value)).is_dir() and find_project():
            from tfr_assets.components.config.load import dataset_names

            if value in dataset_names():
                return folder
        return super().convert(value, param, ctx)


class _Stoppable(click.Group):
    """Being stopped has exit codes of its own, because it is no bad data and no failed run."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, click.Abort):
            click.echo("tfr: interrupted", err=True)
            ctx.exit(stop_code())


@click.group(cls=_Stoppable, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="tfr-assets")
@click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="The Dagster project; by default the one around the working directory.",
)
def cli(project: Path | None) -> None:
    """Turn raw data into verified TFRecord shards, and look after them.

    \b
    tfr plan flights                      what raw data is there, and which files it will become
    tfr run flights                       raw, shards, checks, merged
    tfr verify flights                    every CRC of every record, strictly
    tfr inspect some.tfrecord             what is in there?
    tfr diff flights old/flights          what changed?
    tfr export flights f.array_record     the same records for Grain
    tfr publish flights s3://lake/flights to an object store, as readers need it
    tfr bench readers flights             which reader is fastest here?
    tfr bench writers flights             which way of writing is the fastest?

    Exit code: 0 fine, 1 bad data or a failed run, 2 wrong usage, 130 stopped by Ctrl-C, 143 by
    SIGTERM, 129 by SIGHUP (the terminal was closed).
    """  # noqa: D301 - click wants a real backspace before lines that it must not join
    if project:
        os.environ[PROJECT_VARIABLE] = str(project.absolute())  # so that the processes of steps find it, too


@cli.command("list")
@click.argument("url", required=False, metavar="[URL]")
@click.option("--slices", "by_slice", is_flag=True, help="A line for each slice that was made, where there are slices.")
@as_json
def list_datasets(url: str | None, by_slice: bool, as_json: bool) -> None:
    """List the project's datasets and what there is of them; or what lies below a URL, such as s3://lake/team."""
    if url:
        _list_stored(url, by_slice, as_json)
        return
    rows, broken = [], {}
    with importing():
        from tfr_assets.cli.status import slices_status, status_of
        from tfr_assets.components.config.load import dataset_names, load_component

        for name in dataset_names():
            try:
                if found := load_component(name):
                    found[1].catch_up()
                    rows += slices_status(found[1]) if by_slice else [status_of(found[1])]
            except TfrError as problem:
                broken[name] = str(problem)
    if as_json:
        _print_json([asdict(row) for row in rows] + [{"name": name, "error": error} for name, error in broken.items()])
    else:
        _show_datasets(rows)
    for error in broken.values():
        click.echo(f"tfr: {error}", err=True)
    if broken:
        sys.exit(2)


def _list_stored(url: str, by_slice: bool, as_json: bool) -> None:
    from tfr_assets.cli.stored import stored_datasets

    if "://" not in url:
        raise click.UsageError(
            f"{url}: give the URL of a folder in an object store, such as s3://lake/team; without one, `tfr list` "
            "shows the datasets of the project"
        )
    rows = stored_datasets(url, by_slice)
    if as_json:
        _print_json([asdict(row) for row in rows])
    else:
        _show_datasets(rows)


def _stale(row: "Status") -> str:
    """Returns which slices are to be made again; of a line for one slice, why."""
    if not row.stale:
        return "" if row.stale is None else "–"
    if row.slices is None:
        return next(iter(row.stale.values()))
    named = list(row.stale)
    return f"{len(named)}: {', '.join(named[:_STALE_NAMED])}{', …' if len(named) > _STALE_NAMED else ''}"


def _show_datasets(rows: "list[Status]") -> None:
    from tfr_assets.cli.terminal import out, table

    if not rows:
        out.print("There is no dataset yet: dg scaffold defs tfr_assets.TFRecordDataset NAME --source PATH")
        return
    columns = ["dataset", "source", "rows", "slices", "stale", "shards", "merged", "folder"]
    for column in ("slices", "stale"):
        if all(getattr(row, column) is None for row in rows):
            columns.remove(column)
    if not any(row.source for row in rows):
        columns.remove("source")
    lines = [
        {
            "dataset": row.name,
            "source": row.source,
            "rows": "–" if row.rows is None else f"{row.rows:,}",
            "slices": "" if row.slices is None else f"{row.slices_made} of {row.slices}",
            "stale": _stale(row),
            "shards": f"{row.shards_written} of {row.shards}",
            "merged": "yes" if row.merged else "–",
            "folder": row.folder,
        }
        for row in rows
    ]
    out.print(table("", columns, [[line[column] for column in columns] for line in lines], numbers=("rows",)))


@cli.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@of_slices
@click.option("--readers", is_flag=True, help="Also measure the readers, which takes a minute or more.")
@as_json
def run(names: Sequence[str], slices: str | None, readers: bool, as_json: bool) -> None:
    """Materialize datasets end to end: raw, shards, checks, merged.

    What is there already and matches its manifest is not written again. The runs are recorded on the same Dagster
    instance that `make ui` shows. Each slice is a run of its own; one that fails does not hold up the others.
    """

    def refresh(dataset: "Dataset", instance: Any, bar: Any) -> "Outcome":
        from tfr_assets.cli.execute import run_dataset

        return run_dataset(dataset, instance, readers, bar)

    outcomes = _run_each(names, slices, refresh)
    if as_json:
        _print_json([asdict(outcome) for outcome in outcomes])
    else:
        from tfr_assets.cli.summary import checks_text, made_table, slices_table
        from tfr_assets.cli.terminal import out

        many = [outcome for outcome in outcomes if outcome.slice] if len(outcomes) > 1 else []
        if many:
            out.print(slices_table(many))
        for outcome in outcomes:
            if outcome in many:
                _print_failures(outcome)
                continue
            if outcome.made:
                out.print(made_table(outcome))
            out.print(checks_text(outcome))
            if outcome.report:
                out.print(f"all of it on one page: {outcome.report}", soft_wrap=True, markup=False, highlight=False)
            _print_failures(outcome)
    _exit(outcomes)


@cli.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@of_slices
@as_json
def plan(names: Sequence[str], slices: str | None, as_json: bool) -> None:
    """Look at the raw data of datasets, and show which files it will become. Writes no shard."""
    planned = {}

    def look(dataset: "Dataset", instance: Any, bar: Any) -> "Outcome":
        from tfr_assets.cli.execute import Outcome, run_raw
        from tfr_assets.writing.plan import load_inventory
        from tfr_assets.writing.sizing import split_sizes

        outcome = Outcome(dataset.name, dataset.slice)
        dataset = run_raw(dataset, instance, outcome, bar)
        if outcome.ok:
            planned[dataset.title] = split_sizes(dataset, load_inventory(dataset))
        return outcome

    outcomes = _run_each(names, slices, look)
    if as_json:
        _print_json({name: [asdict(size) for size in sizes] for name, sizes in planned.items()})
    else:
        from tfr_assets.cli.summary import plan_table
        from tfr_assets.cli.terminal import out

        for name, sizes in planned.items():
            out.print(plan_table(name, sizes))
        for outcome in outcomes:
            _print_failures(outcome)
    _exit(outcomes)


def _run_each(
    names: Sequence[str], slices: str | None, do: "Callable[[Dataset, DagsterInstance, StepProgress], Outcome]"
) -> "list[Outcome]":
    """Does something with datasets, and slices, one after another, a bar for each; stops when it is interrupted."""
    from tfr_assets.components.runs.steps.crew import prepare, stop_prepared

    prepare(_named_by(names[0]))  # imports what steps need while this process imports Dagster
    try:
        with importing():
            import_module("tfr_assets.cli.execute")
            from tfr_assets.cli.instance import log_folder, open_instance
            from tfr_assets.cli.terminal import stderr_to, steps_bar

            known = dict.fromkeys(map(_named_by, names))
            chosen = [each for name in known for each in _slices(_dataset(name), slices)]
        outcomes: list[Outcome] = []
        with open_instance() as instance, stderr_to(log_folder() / "tfr-run.log"):
            for number, dataset in enumerate(chosen):
                if number:
                    prepare(dataset.name)
                with steps_bar(dataset.title) as bar:
                    outcomes.append(do(dataset, instance, bar))
                if outcomes[-1].interrupted:
                    break
        return outcomes
    finally:
        stop_prepared()


def _named_by(name: str) -> str:
    """Returns the name of a dataset of the project that was given by its name, or by the URL of where it lies."""
    if "://" not in name:
        return name
    from tfr_assets.layout import data_root
    from tfr_assets.urls import place_of, split_url

    bucket, path = split_url(name)
    folder, _, last = f"{bucket}/{path}".rstrip("/").rpartition("/")
    root = place_of(data_root())
    if f"{folder}/{last}" == str(root).rstrip("/"):
        raise click.UsageError(f"{name} is the folder of all datasets; add the name of one, or give the name alone")
    if folder != root:
        raise click.UsageError(
            f"{name}: no dataset of the project lies there: what is to be made is said by its YAML, and data lies in "
            f"{root}. Give the name of a dataset; of a URL, `tfr list`, `inspect` and `verify` tell what is there"
        )
    return last


def _slices(dataset: "Dataset", said: str | None) -> "list[Dataset]":
    """Returns the slices of a dataset that are asked for; the dataset itself, if it has none."""
    if dataset.slices is None:
        if said is None:
            return [dataset]
        raise click.UsageError(f"--slices: the raw data of {dataset.name} does not come in slices; leave it out")
    if said is None:
        raise click.UsageError(
            f"the raw data of {dataset.name} comes in slices ({dataset.slices.kind}); say which, such as "
            f"--slices last, --slices {dataset.slices.example}, or --slices all"
        )
    if said != "new":
        return [dataset.of_slice(key) for key in dataset.choose_slices(said)]
    from tfr_assets.writing.slices.append import append_new
    from tfr_assets.writing.slices.state import raw_state, why_new

    append_new(dataset)
    slices = map(dataset.of_slice, dataset.slice_keys())
    return [each for each in slices if why_new(each, raw_state(each))]


def _chosen(said: str | None) -> "Callable[[Path], Sequence[Path]]":
    """Returns what tells the folders of the slices of a dataset that are asked for, given its own."""
    from tfr_assets.reading.locate.slices import slice_folders

    def choose(path: Path) -> Sequence[Path]:
        if said is None:
            return [path]
        folders, others = slice_folders(path, said)
        if others:
            more = f" and {len(others) - 20} more" if len(others) > 20 else ""
            click.echo(f"{path.name}: left out, because not made yet: {', '.join(others[:20])}{more}", err=True)
        return folders

    return choose


def _print_failures(outcome: "Outcome") -> None:
    from tfr_assets.cli.terminal import err

    if outcome.interrupted:
        err.print("interrupted; run again to make what is missing")
    for failure in outcome.failures:
        where = f"{outcome.dataset}/{outcome.slice}: " if outcome.slice else ""
        err.print(Text.assemble(("failed ", "red"), where, failure), soft_wrap=True)


def _exit(outcomes: "Sequence[Outcome]") -> None:
    if any(outcome.interrupted for outcome in outcomes):
        sys.exit(stop_code())
    sys.exit(0 if all(outcome.ok for outcome in outcomes) else 1)


@cli.command()
@click.argument(
    "paths", nargs=-1, required=True, metavar="NAME|PATH|URL...", type=_DatasetOrFiles(exists=True, path_type=Path)
)
@of_slices
@max_record_bytes
@as_json
def verify(paths: Sequence[Path | str], slices: str | None, max_record_bytes: int | None, as_json: bool) -> None:
    """Verify TFRecord files: both CRCs of every record, read from the disk.

    NAME is a dataset, PATH a file or a folder of files, written by this project or by anyone, of any compression, URL
    the same in an object store. Files
    with a manifest are also compared with it: size, count, content, index, and that every record parses. In a folder,
    files are noticed that are missing or do not belong there, and whatever else of a dataset is not as it was written.
    A dataset's files are also compared with the plan that its YAML and its inventory make: which there must be, with
    how many rows, of which settings.
    """
    from tfr_assets.cli.verify import as_documents, audit_plans, verify_files
    from tfr_assets.writing.remote.stand_in import standing_in
    from tfr_assets.writing.stored import audit_folders, find_record_files

    with standing_in(paths, _chosen(slices)) as there:
        files = find_record_files(there.paths)
        beside, notes = audit_folders(there.paths)
        unplanned, more = audit_plans(there.paths, {report.path for report in beside})
        beside, notes = beside + unplanned, notes + more
        if not files and not beside:
            raise click.UsageError(f"no TFRecord file in {', '.join(map(str, paths))}")
        found = [*verify_files(files, as_json, max_record_bytes, there.open), *beside]
        reports = [there.report(report) for report in found]
        notes = tuple(replace(note, path=there.names(note.path), says=there.names(note.says)) for note in notes)
    if as_json:
        _print_json(as_documents(reports, notes))
    else:
        _show_reports(reports, [str(note) for note in notes])
    sys.exit(0 if all(report.ok for report in reports) else 1)


def _show_reports(reports: "Sequence[FileReport]", notes: Sequence[str]) -> None:
    from tfr_assets.cli.terminal import below, common_folder, out, table, visible
    from tfr_assets.units import megabytes

    folder = common_folder([report.path for report in reports])
    lines = [
        (
            Text("ok", "green") if report.ok else Text("BAD", "red"),
            f"{report.records:,}",
            megabytes(report.bytes),
            report.compression,
            below(report.path, folder),
        )
        for report in reports
    ]
    out.print(table(f"in {folder}", ("", "records", "size", "compression", "file"), lines, numbers=("records", "size")))
    for report in reports:
        faults = [*report.faults, *report.feature_faults]
        for fault in faults[:_SHOWN_FAULTS]:
            out.print(visible(str(fault)), markup=False, soft_wrap=True)
        more = report.fault_count + report.feature_fault_count - min(len(faults), _SHOWN_FAULTS)
        if more:
            says = f"{report.path}: and {more:,} more faults; --json lists more of them"
            out.print(visible(says), markup=False, soft_wrap=True)
    bad = sum(not report.ok for report in reports)
    for note in notes:
        out.print(visible(note), markup=False, soft_wrap=True)
    verdict = (
        f"[red]{bad} of {len(reports)} files are bad[/]" if bad else f"[green]all {len(reports)} files are whole[/]"
    )
    folders: dict[str, list[FileReport]] = {}
    for report in reports:
        if report.bytes:
            folders.setdefault(_without_slice(report.path.rpartition("/")[0]), []).append(report)
    sums = [  # shards and the merged file hold the same records, which are not to be added up
        (f"{escape(visible(folder.rpartition('/')[2]))}: " if len(folders) > 1 else "")
        + f"{sum(each.records for each in of_folder):,} intact records, {megabytes(sum(e.bytes for e in of_folder))}"
        for folder, of_folder in folders.items()
    ]
    out.print(f"{verdict}: {'; '.join(sums) or '0 intact records'}")


def _without_slice(folder: str) -> str:
    """Returns a folder of a slice's files as that of its dataset, whose slices are added up."""
    of_slice, _, part = folder.rpartition("/")
    return f"{of_slice.rsplit('/', 2)[0]}/{part}" if is_of_slice(of_slice) else folder


@cli.command()
@click.argument("path", metavar="NAME|PATH|URL", type=_FilesOrUrl(exists=True, path_type=Path))
@click.option(
    "-n", "--records", "first", default=3, show_default=True, type=click.IntRange(0, 100), help="Records to show."
)
@of_slices
@max_record_bytes
@as_json
def inspect(path: Path | str, first: int, slices: str | None, max_record_bytes: int | None, as_json: bool) -> None:
    """Show what is in a dataset, a folder or a TFRecord file: schema, counts, sizes, first records."""
    from tfr_assets.cli.inspection import as_document, show
    from tfr_assets.records.examples.inspect import inspect_file
    from tfr_assets.writing.remote.stand_in import standing_in
    from tfr_assets.writing.stored import find_record_files

    with standing_in([path], _chosen(slices)) as there:
        files = find_record_files(there.paths)
        if not files:
            raise click.UsageError(f"no TFRecord file in {path}")
        if gone := [there.names(str(file)) for file in files if not file.is_file()]:
            says = f"{gone[0]} is missing, says its manifest; `tfr verify {path}` lists all that is wrong"
            raise click.UsageError(says)
        found = [
            there.inspection(inspect_file(file, first if n == 0 else 0, max_record_bytes, there.open))
            for n, file in enumerate(files)
        ]
    if as_json:
        _print_json([as_document(inspection) for inspection in found])
    else:
        show(found)
    sys.exit(1 if any(inspection.fault_count for inspection in found) else 0)


@cli.command()
@click.argument("path", metavar="PATH", type=_PathOrUrl(exists=True, path_type=Path))
@max_record_bytes
@as_json
def adopt(path: str | Path, max_record_bytes: int | None, as_json: bool) -> None:
    """Verify TFRecord files of other origin, and write index, manifest and feature spec beside them.

    PATH is a file, or a folder of files. These are only read. Nothing is written if one is damaged, or holds no
    tf.Examples.
    """
    from tfr_assets.cli.adopted import as_document, show
    from tfr_assets.writing.foreign.adopt import adopt

    found = adopt(path, max_record_bytes=max_record_bytes)
    if as_json:
        _print_json(as_document(found))
    else:
        show(found)


@cli.command("diff")
@click.argument("before", metavar="BEFORE", type=_FilesOrUrl(exists=True, path_type=Path))
@click.argument("after", metavar="AFTER", type=_FilesOrUrl(exists=True, path_type=Path))
@as_json
def compare_datasets(before: str | Path, after: str | Path, as_json: bool) -> None:
    """Show what changed between two datasets, folders or TFRecord files: features, and records by their content.

    Each is the name of a dataset, a path, or the URL of one in an object store.

    Exit code: 0 they are the same, 1 they are not, 2 they cannot be compared.
    """
    from tfr_assets.cli.differences import as_document, show
    from tfr_assets.reading.differences import compare

    try:
        found = compare(before, after)
    except (TfrError, MemoryError) as error:  # whose code would be that of a difference
        click.echo(f"tfr: {named(str(error)) or 'there is not enough memory for this'}", err=True)
        sys.exit(2)
    if as_json:
        _print_json(as_document(found))
    else:
        show(found)
    sys.exit(0 if found.none else 1)


@cli.command()
@click.argument("what", metavar="NAME|PATH|URL")
@click.argument("target", metavar="FILE.array_record", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--split", help="Which split; without it the only one, or train.")
@of_slices
def export(what: str, target: Path, split: str | None, slices: str | None) -> None:
    """Copy the records of a dataset, or of a folder of TFRecord files, into one ArrayRecord file.

    That is what Grain reads, by record number. The records stay as they are; every CRC is checked on the way.
    """
    from tfr_assets.cli.terminal import out, records_bar
    from tfr_assets.reading.locate.file_sets import other_splits
    from tfr_assets.reading.locate.files import locate, names_with_manifest
    from tfr_assets.writing.export.array_record import export_array_record
    from tfr_assets.writing.remote.stand_in import standing_in
    from tfr_assets.writing.stored import path_or_url

    if target.suffix != ".array_record":
        raise click.UsageError(f"{target}: call the file {target.stem}.array_record, so that no other is overwritten")
    files = locate(what, split=split, slices=slices)
    with (
        standing_in([path_or_url(path) for path in files.paths]) as there,
        there.named(),
        records_bar(target.name, files.records) as progress,
    ):
        records = export_array_record(there.paths, target, progress, there.open)
    out.print(f"{target}: {records:,} records of {len(files.paths)} files", markup=False, soft_wrap=True)
    if split is None and (others := other_splits(files.paths[0], names_with_manifest(files.paths[0]))):
        out.print(f"not in it: split {', '.join(others)}; --split exports them, a file each", markup=False)


@cli.command()
@click.argument("what", metavar="NAME|PATH", type=_Files(exists=True, file_okay=False, path_type=Path))
@click.argument("url", metavar="URL")
def publish(what: Path, url: str) -> None:
    """Copy a dataset, or a folder of TFRecord files, to an object store, such as s3://bucket/flights.

    What readers need is sent: shards, merged files and what describes them. What is there already is not sent again,
    what is of an earlier number of shards goes, and each file is verified before. It exists there by its manifest,
    which comes last.
    """
    from tfr_assets.cli.terminal import bytes_bar, out
    from tfr_assets.units import megabytes
    from tfr_assets.writing.publish import publish as publish_folder

    if not is_object_url(url):
        raise click.UsageError(f"{url}: give the URL of a folder in an object store, such as s3://bucket/{what.name}")
    total = sum(path.stat().st_size for path in what.rglob("*.tfrecord*") if path.is_file())
    with bytes_bar("publishing", total) as progress:
        done = publish_folder(what.absolute(), url, progress)
    says = (
        f"{done.url}: {done.sent} files sent, {megabytes(done.bytes)}; {done.kept} were there, {done.removed} removed"
    )
    out.print(says, markup=False, soft_wrap=True)


@cli.group()
def bench() -> None:
    """Measure on this machine what is fastest."""


@bench.command("readers", epilog=f"Readers: {', '.join(READERS)}.")
@click.argument("name")
@click.option("--only", multiple=True, metavar="READER", help="Readers to measure; can be given several times.")
@click.option("--batch-size", type=int, help="Records per batch.")
@click.option("--repeats", type=int, help="Processes per reader, in turn with the others.")
@click.option("--step-ms", type=float, help="Simulated training step after each batch.")
@click.option("--decode-ms", type=float, help="Simulated cost of decoding a record.")
@click.option("--latency-ms", type=float, help="Read over HTTP, with this time to the first byte.")
@click.option("--mb-per-s", type=float, help="Read over HTTP, with this bandwidth of each connection.")
@as_json
def readers_of(name: str, latency_ms: float | None, mb_per_s: float | None, as_json: bool, **settings: Any) -> None:
    """Measure how fast each reader reads a dataset, beside plain reading of the same bytes.

    What is not given is as the dataset's YAML says. With settings of the YAML, the measurements are kept, and
    tfr_assets.read uses the recommended reader from then on.
    """
    from dataclasses import replace

    from tfr_assets.bench.readers.options import BenchOptions
    from tfr_assets.bench.readers.slow_server import Storage
    from tfr_assets.cli.bench_readers import bench_readers

    component, dataset = _component(name)
    given = {key: value for key, value in settings.items() if value not in (None, ())}
    options = replace(component.bench.readers or BenchOptions(), **given)
    far = {"first_byte_ms": latency_ms, "mb_per_second": mb_per_s}
    slow = {key: value for key, value in far.items() if value is not None}
    storage = Storage(**slow) if slow else None
    keep = not given.keys() - {"only", "repeats"}
    document = bench_readers(dataset.layout.folder, options, keep, storage, quiet=as_json)
    if as_json:
        _print_json(document)
    sys.exit(1 if document["failures"] else 0)


@bench.command("writers", epilog=f"Writers: {', '.join(MEASURED)}.")
@click.argument("name")
@click.option("--only", multiple=True, metavar="WRITER", help="Writers to measure; can be given several times.")
@click.option("--rows", type=int, help="Most rows to write, the first ones.")
@click.option("--workers", type=int, multiple=True, help="A number of workers; can be given several times.")
@click.option("--repeats", type=int, help="Timed writes of each.")
@as_json
def writers(name: str, as_json: bool, **settings: Any) -> None:
    """Measure the writers with a dataset's first rows, and say which to use when.

    The rows are those of its last inventory: `tfr plan NAME` takes one. What is not given is as the dataset's YAML
    says. What is measured is kept beside the dataset, where the UI's asset `writer_report` takes what is of as many
    rows as the YAML says.
    """
    from dataclasses import replace

    from tfr_assets.bench.writers.comparison import as_document
    from tfr_assets.bench.writers.options import WriterTrials
    from tfr_assets.cli.bench_writers import bench_writers, show_writers

    component, dataset = _component(name)
    given = {key: value for key, value in settings.items() if value not in (None, ())}
    comparison = bench_writers(dataset, replace(component.bench.writers or WriterTrials(), **given))
    if as_json:
        _print_json(as_document(comparison))
    else:
        show_writers(comparison)


@contextmanager
def importing() -> Iterator[None]:
    """Collects no garbage meanwhile: importing leaves little, and looking for it takes a third of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _component(name: str) -> "tuple[TFRecordDataset, Dataset]":
    """Loads the component of a dataset, and no other."""
    import difflib

    from tfr_assets.components.config.load import dataset_names, load_component

    names = dataset_names()
    if name in names and (found := load_component(name)):
        return found
    close = difflib.get_close_matches(name, names, n=1)
    known = (
        f"did you mean {close[0]!r}?" if close and close[0] != name else f"there are {', '.join(names) or 'none yet'}"
    )
    raise click.UsageError(f"there is no dataset {name!r}; {known}")


def _dataset(name: str) -> "Dataset":
    return _component(name)[1]


def _print_json(document: Any) -> None:
    text = json.dumps(document, indent=1, ensure_ascii=False, default=str)
    # JSON allows these as they are; terminals obey the former, and the latter cannot be printed
    click.echo(re.sub("[\x7f-\x9f\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text))


def main() -> None:
    """Runs the command line; the entry point of `tfr`."""
    handle_stop_signals()
    atexit.register(gc.freeze)  # at the end Python would look through all that was imported, which takes half a second
    try:
        cli(prog_name="tfr")
    except TfrError as error:
        click.echo(f"tfr: {named(str(error))}", err=True)
        sys.exit(2 if isinstance(error, ConfigError) else 1)
    except MemoryError:
        click.echo("tfr: there is not enough memory for this; end other programs, or use a larger machine", err=True)
        sys.exit(1)
