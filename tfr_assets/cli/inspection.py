"""Shows what `tfr inspect` found."""

from collections.abc import Sequence
from typing import Any

from tfr_assets.cli.terminal import below, common_folder, out, table, visible
from tfr_assets.records.examples.inspect import FeatureSeen, Inspection
from tfr_assets.units import megabytes

_VALUES = 6
_CHARACTERS = 60


def as_document(found: Inspection) -> dict[str, Any]:
    """Returns an inspection as JSON-ready values; bytes that are not text become hex."""
    features = {
        name: {"kinds": dict(seen.kinds), "present": seen.present, "values": [seen.smallest, seen.largest]}
        for name, seen in found.features.items()
    }
    first = [
        _text(record)
        if isinstance(record, bytes)
        else {name: [_text(v) if isinstance(v, bytes) else v for v in values] for name, (_, values) in record.items()}
        for record in found.first
    ]
    plain = {name: value for name, value in vars(found).items() if name not in ("features", "first", "faults")}
    return {**plain, "features": features, "first": first, "faults": [str(fault) for fault in found.faults]}


def show(files: Sequence[Inspection]) -> None:
    """Prints the counts of all files, and features and first records of the first one."""
    folder = common_folder([found.path for found in files])
    lines = [
        (
            f"{found.records:,}",
            megabytes(found.bytes),
            f"{found.smallest:,} – {found.largest:,}" if found.records else "–",
            found.compression,
            below(found.path, folder),
        )
        for found in files
    ]
    columns = ("records", "size", "bytes per record", "compression", "file")
    out.print(table(f"in {folder}", columns, lines, numbers=columns[:3]))
    if len(files) > 1:
        out.print(
            f"{sum(f.records for f in files):,} records, {megabytes(sum(f.bytes for f in files))} in {len(files)} files"
        )
    _show_features(files[0])
    for number, record in enumerate(files[0].first):
        out.print(f"\n[bold]record {number}[/]")
        out.print(_record(record), markup=False, soft_wrap=True)
    for fault in [fault for found in files for fault in found.faults][:20]:
        out.print(visible(str(fault)), style="red", markup=False, soft_wrap=True)


def _show_features(found: Inspection) -> None:
    if found.not_examples:
        out.print(f"\n{found.not_examples:,} of {found.sampled:,} sampled records are not tf.Examples")
    if found.features:
        examples = found.sampled - found.not_examples
        rows = [(name, *_describe(seen, examples)) for name, seen in found.features.items()]
        out.print()
        out.print(table(f"features of the first {examples:,} records", ("feature", "kind", "values", "in"), rows))


def _describe(seen: FeatureSeen, examples: int) -> tuple[str, str, str]:
    values = f"{seen.smallest}" if seen.smallest == seen.largest else f"{seen.smallest} – {seen.largest}"
    share = "every record" if seen.present == examples else f"{seen.present / examples:.1%} of records"
    return " or ".join(sorted(seen.kinds)), values, share


def _record(record: "dict[str, Any] | bytes") -> str:
    if isinstance(record, bytes):
        return _text(record[:_CHARACTERS])
    shown = {visible(name): values for name, (_, values) in sorted(record.items())}
    width = max(map(len, shown), default=0)
    return "\n".join(f"  {name:<{width}}  {_values(values)}" for name, values in shown.items())


def _values(values: Sequence[Any]) -> str:
    shown = ", ".join(_value(value) for value in values[:_VALUES])
    shown = shown if len(values) == 1 else f"[{shown}{', …' if len(values) > _VALUES else ''}]"
    return f"{shown}  ({len(values):,} values)" if len(values) > _VALUES else shown


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.7g}"
    if not isinstance(value, bytes):
        return str(value)
    text = _text(value[: _CHARACTERS * 2])
    return f"{text[:_CHARACTERS]}… ({megabytes(len(value))})" if len(value) > _CHARACTERS else text


def _text(value: bytes) -> str:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return "0x" + value.hex()
    return text if text.isprintable() else repr(text)[1:-1]
