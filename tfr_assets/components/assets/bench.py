"""What a dataset's YAML asks to be measured, and the assets that measure it, in a group of their own."""

from typing import Any

import dagster as dg
from pydantic import Field

from tfr_assets.bench.readers.options import BenchOptions
from tfr_assets.bench.writers.options import WriterTrials
from tfr_assets.components.assets.jobs import build_bench_job, readers_job, writers_job
from tfr_assets.components.assets.reader_checks import build_reader_checks
from tfr_assets.components.assets.reader_report import build_reader_report
from tfr_assets.components.assets.readers import build_readers
from tfr_assets.components.assets.writers import build_writer_report, build_writers
from tfr_assets.components.attributes import Look
from tfr_assets.option_groups import options


@options("bench")
class Bench:
    """What is measured. What is named here, if only as `{}`, has assets in the group NAME_bench.

    Attributes:
        readers: How the readers are measured.
        writers: How the writers are measured.
    """

    readers: BenchOptions | None = Field(default=None, examples=[{"batch_size": 4096, "only": ["vectorized"]}])
    writers: WriterTrials | None = Field(default=None, examples=[{"rows": 50_000, "workers": [1, 2, 4]}])


def build_bench(look: Look, bench: Bench) -> dg.Definitions:
    """Returns the assets, checks and jobs of what is asked for."""
    assets: list[dg.AssetsDefinition] = []
    checks: list[dg.AssetChecksDefinition] = []
    jobs: list[Any] = []
    name = look.dataset.name
    if bench.readers:
        assets += [build_readers(look, bench.readers), build_reader_report(look, bench.readers)]
        checks.append(build_reader_checks(look, bench.readers))
        about = "Measures and compares the readers."
        jobs.append(build_bench_job(look, readers_job(name), about, "readers", "reader_report"))
    if bench.writers:
        assets += [build_writers(look, bench.writers), build_writer_report(look, bench.writers)]
        about = "Measures how fast each writer is, and says which to use when."
        jobs.append(build_bench_job(look, writers_job(name), about, "writers", "writer_report"))
    return dg.Definitions(assets=assets, asset_checks=checks, jobs=jobs)
