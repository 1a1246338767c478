"""Shows what `tfr diff` found."""

from dataclasses import asdict
from typing import Any

from rich.markup import escape

from tfr_assets.cli.terminal import out, table
from tfr_assets.reading.differences import Differences


def as_document(found: Differences) -> dict[str, Any]:
    """Returns what changed as JSON-ready values."""
    splits = [{**asdict(split), "added": split.added, "removed": split.removed} for split in found.splits]
    return {"same": found.none, "features": [asdict(feature) for feature in found.features], "splits": splits}


def show(found: Differences) -> None:
    """Prints what changed."""
    if found.none:
        out.print("[green]the same features, and the same records in the same order[/]")
        return
    for feature in found.features:
        name, before, after = (escape(str(part)) for part in (feature.name, feature.before, feature.after))
        if feature.before is None:
            out.print(f"[green]+ {name}[/]: {after}")
        elif feature.after is None:
            out.print(f"[red]- {name}[/]: {before}")
        else:
            out.print(f"[yellow]~ {name}[/]: {before} → {after}")
    lines = [
        (
            split.split or "–", f"{split.before:,}", f"{split.after:,}", f"{split.added:,}", f"{split.removed:,}",
            f"{split.kept:,}", "other" if split.moved else "same",
        )
        for split in found.splits
    ]  # fmt: skip
    columns = ("split", "records before", "now", "added", "removed", "kept", "order of these")
    out.print(table("", columns, lines, columns[1:-1], apart=bool(found.features)))
