"""`tfr bench`: measures, and shows what was measured."""

from typing import TYPE_CHECKING

from tfr_assets.cli.terminal import out, stderr_to, steps_bar, table

if TYPE_CHECKING:
    from tfr_assets.bench.writers.comparison import Comparison
    from tfr_assets.bench.writers.options import WriterTrials
    from tfr_assets.writing.dataset import Dataset


def bench_writers(dataset: "Dataset", options: "WriterTrials") -> "Comparison":
    """Measures the writers of a dataset one after another, keeps what is measured, and compares them.

    Raises:
        TfrError: As `tfr_assets.bench.writers.comparison.try_writer`.
    """
    from tfr_assets.bench.writers.comparison import compare
    from tfr_assets.cli.instance import log_folder
    from tfr_assets.components.assets.writers import measure

    names = options.only
    with stderr_to(log_folder() / "tfr-bench.log"), steps_bar(dataset.name) as bar:
        for done, name in enumerate(names):
            bar(name, done, len(names))
            measure(dataset, name, options)
        bar("", len(names), len(names))
    return compare(dataset, options)


def show_writers(comparison: "Comparison") -> None:
    """Prints a line for each measurement, and what follows from them."""
    from tfr_assets.bench.writers.comparison import COLUMNS, as_row

    out.print(table("", COLUMNS, list(map(as_row, comparison.measured)), numbers=COLUMNS[1:]))
    for sentence in comparison.advice():
        out.print(sentence.replace("`", ""), markup=False, soft_wrap=True)
