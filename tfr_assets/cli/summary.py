"""What `tfr run` says in the end: what was made, where, how many, how long, and every check."""

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from tfr_assets.cli.terminal import table
from tfr_assets.units import megabytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfr_assets.cli.execute import Made, Outcome
    from tfr_assets.writing.sizing import SplitSize


def made_table(outcome: "Outcome") -> Group:
    """Returns a line for each asset that was materialized."""
    columns = ("asset", "files", "records", "size", "seconds", "records/s read", "where")
    rows = [
        (
            made.asset,
            _files(made),
            f"{made.records:,}",
            megabytes(made.bytes),
            f"{made.seconds:.1f}",
            _speed(made),
            made.path,
        )
        for made in outcome.made
    ]
    title = f"{outcome.dataset}, slice {outcome.slice}" if outcome.slice else outcome.dataset
    return table(title, columns, rows, numbers=columns[1:-1], apart=True)


def slices_table(outcomes: "Sequence[Outcome]") -> Group:
    """Returns a line for each slice that was made."""
    columns = ("slice", "", "files", "records", "size", "checks passed", "where")
    rows: list[tuple[str | Text, ...]] = []
    for outcome in outcomes:
        shards = next((made for made in outcome.made if made.asset == "shards"), None)
        checks = [passed for evaluations in outcome.checks.values() for passed in evaluations.values()]
        rows.append(
            (
                f"{outcome.dataset}/{outcome.slice}",
                Text("ok", "green") if outcome.ok else Text("failed", "red"),
                _files(shards) if shards else "–",
                f"{shards.records:,}" if shards else "–",
                megabytes(shards.bytes) if shards else "–",
                f"{sum(checks)} of {len(checks)}",
                shards.path if shards else "",
            )
        )
    return table("", columns, rows, numbers=columns[2:-1], apart=True)


def checks_text(outcome: "Outcome") -> str:
    """Returns a line for each asset's checks, such as `shards  crc 16 of 16 · …`."""
    by_asset: dict[str, list[str]] = {}
    for name, evaluations in outcome.checks.items():
        asset, check = name.split("/")
        passed = sum(evaluations.values())
        style = "green" if passed == len(evaluations) else "red"
        by_asset.setdefault(asset, []).append(f"[{style}]{check} {passed} of {len(evaluations)}[/]")
    return "\n".join(f"checks of {asset}: {' · '.join(texts)}" for asset, texts in by_asset.items())


def plan_table(name: str, sizes: "Sequence[SplitSize]") -> Group:
    """Returns a line for each split of a dataset: what it will become."""
    columns = ("split", "records", "files", "size", "a file")
    rows = [
        (size.split, f"{size.rows:,}", f"{size.shards}", megabytes(size.bytes), megabytes(size.bytes / size.shards))
        for size in sizes
    ]
    return table(name, columns, rows, numbers=columns[1:], apart=True)


def _files(made: "Made") -> str:
    return f"{made.files:,}" + (f" ({made.skipped} there already)" if made.skipped else "")


def _speed(made: "Made") -> str:
    return "" if made.records_per_second is None else f"{made.records_per_second:,.0f}"
