"""The asset `reader_report`: which reader is fastest, as a table, as pictures, and as what `tfr_assets.read` uses."""

from typing import TYPE_CHECKING, Any

import dagster as dg

from tfr_assets.bench.readers.options import BenchOptions
from tfr_assets.components.assets.readers import POOL
from tfr_assets.components.attributes import Look
from tfr_assets.components.failures import reported
from tfr_assets.components.metadata.file_metadata import markdown, rounded
from tfr_assets.components.metadata.progress import logged
from tfr_assets.components.metadata.report import write_report
from tfr_assets.components.runs.while_held import while_held

if TYPE_CHECKING:
    from tfr_assets.bench.readers.report import Report

_DESCRIPTION = """Which reader is fastest, and what each of them does when.

A table, bars, curves over cycle length and batch size, and timelines of real runs. `recommendation.json` names the
reader that `tfr_assets.read` uses from then on."""


def build_reader_report(look: Look, options: BenchOptions) -> dg.AssetsDefinition:
    """Returns the asset `reader_report` of a dataset."""
    dataset = look.dataset

    @dg.asset(
        **look.asset("reader_report", _DESCRIPTION, {"tensorflow", "json"}, group_name=look.bench_group),
        deps=[dg.AssetDep(look.key("readers"), partition_mapping=dg.AllPartitionMapping())],
        pool=POOL,
    )
    def reader_report(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        from tfr_assets.bench.readers.report import make_report
        from tfr_assets.reading.locate.files import locate

        report_progress = logged(context.log.info)
        folder = dataset.layout.readers
        with while_held(context, dataset.layout), reported(dataset=dataset.name):
            files = locate(dataset.layout.folder, "shards")
            report = make_report(
                folder, files, options.readers, options.step_ms, lambda _, done, steps: report_progress(done, steps)
            )
            pictures = report.save(folder)
        if best := report.recommendation:
            context.log.info(f"recommended: {best.reader}, {best.why}")
        shown = {name: dg.MetadataValue.md(_picture(path.read_bytes(), name)) for name, path in pictures.items()}
        page = dg.MetadataValue.path(dataset.layout.report)
        places: dict[str, Any] = {"dagster/uri": str(folder), "path": dg.MetadataValue.path(folder), "report": page}
        metadata = rounded({**_metadata(report), **places, **shown})
        known = {name: getattr(value, "value", value) for name, value in metadata.items()}
        write_report(look, context, {"reader_report": known})
        return dg.MaterializeResult(metadata=metadata)

    return reader_report


def _metadata(report: "Report") -> dict[str, Any]:
    from tfr_assets.bench.readers.table import COLUMNS, NOTE, rows

    table = markdown(COLUMNS, rows(report.measurements))
    shown: dict[str, Any] = {"readers": dg.MetadataValue.md(f"{table}\n\n{NOTE}")}
    if report.missing:
        shown["missing"] = dg.MetadataValue.md(markdown(["reader", "why"], list(report.missing.items())))
    first = next(iter(report.measurements.values()))
    shown |= {"dagster/row_count": first.records, "dagster/size_bytes": first.bytes}
    if best := report.recommendation:
        shown |= {"recommended": best.reader, "why": best.why, "hardware": str(best.hardware)}
        shown["records_per_second"] = best.records_per_second[best.reader]
        if best.not_recommended:
            passed_over = markdown(["reader", "faster, but"], list(best.not_recommended.items()))
            shown["not_recommended"] = dg.MetadataValue.md(passed_over)
    return shown


def _picture(png: bytes, name: str) -> str:
    from tfr_assets.pictures import as_markdown

    return as_markdown(png, name.replace("_", " "))
