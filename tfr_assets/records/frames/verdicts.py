"""What is right and wrong with a TFRecord file, in words and numbers; nothing here knows Dagster.

The disk is read once (`records.frames.examine.examine`); these functions judge what was read.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tfr_assets.records.frames.manifest import Manifest
from tfr_assets.units import IDEAL_FILE, LARGE_FILE, SMALL_FILE, megabytes

if TYPE_CHECKING:  # these come with compiled kernels, which the code server does not load
    from tfr_assets.records.frames.examine import FileReport
    from tfr_assets.records.frames.scan import Fault


@dataclass(frozen=True)
class Check:
    """A kind of check.

    Attributes:
        name: Its name.
        description: What it looks at.
        blocking: Whether nothing may be built on a file that fails it.
    """

    name: str
    description: str
    blocking: bool = True


CRC = Check("crc", "Every frame's two CRCs, and the file's digest against its manifest, read back from the disk.")
RECORD_COUNT = Check("record_count", "As many records as the raw data assigns to the file.")
FEATURES = Check("features", "Every record parses by the feature spec.")
SHARD_SIZE = Check("shard_size", "Files of 100 to 200 MB, where there is enough data to care.", blocking=False)
CHECKS = (CRC, RECORD_COUNT, FEATURES, SHARD_SIZE)
CURRENT = Check(
    "current",
    "All shards are there, and made from the settings of the YAML and from the inventory of raw as they are now. Reads "
    "no data.",
    blocking=False,
)


@dataclass(frozen=True)
class Verdict:
    """What a check found.

    Attributes:
        check: The check.
        passed: Whether all is well.
        says: The outcome in a sentence or two.
        shown: Numbers and names to show with it.
        faults: The first places where it is wrong.
        fault_count: Number of all of them.
    """

    check: Check
    passed: bool
    says: str
    shown: Mapping[str, Any] = field(default_factory=dict)
    faults: "tuple[Fault, ...]" = ()
    fault_count: int = 0


def judge(report: "FileReport", manifest: Manifest | None, expected: int | str, skipped: int = 0) -> Iterator[Verdict]:
    """Judges the content of one file; the size is judged by `judge_size`.

    Args:
        report: What was read from the disk.
        manifest: What the file must hold; None if it has no manifest.
        expected: How many records the raw data assigns to it, or why that is not known.
        skipped: How many raw files were left out of the whole dataset.
    """
    yield _judge_crc(report, manifest)
    yield _judge_count(report, expected, skipped)
    yield _judge_features(report, manifest)


def judge_size(size: int, total: float, files: int) -> Verdict:
    """Judges the size of one of `files` files that together have `total` bytes."""
    shown = {"bytes": size, "total_bytes": round(total), "files": files}
    if total <= LARGE_FILE:
        why = f"one could hold all of the data, {megabytes(total)}"
        return Verdict(SHARD_SIZE, True, f"{megabytes(size)}. The number of files does not matter: {why}", shown)
    recommended = max(1, round(total / IDEAL_FILE))
    shown["recommended_files"] = recommended
    if SMALL_FILE <= size <= LARGE_FILE or recommended == files:
        return Verdict(SHARD_SIZE, True, f"{megabytes(size)}, which suits parallel readers", shown)
    problem = "too small: opening files costs readers time" if size < SMALL_FILE else "too large to share among readers"
    says = (
        f"{megabytes(size)} is {problem}. Recommended are {recommended} files of about {megabytes(total / recommended)}"
    )
    return Verdict(SHARD_SIZE, False, says, shown)


def judge_current(outdated: Mapping[str, str] | str, planned: int) -> Verdict:
    """Judges whether shards are those that YAML and inventory ask for.

    Args:
        outdated: Those that are not, each with the reason; or why it is unknown which there must be.
        planned: Number of all of them.
    """
    if isinstance(outdated, str):
        return Verdict(CURRENT, False, outdated, {"planned": planned})
    shown = {"planned": planned, "outdated": len(outdated)}
    if not outdated:
        return Verdict(CURRENT, True, f"All {planned} shards are those of the current settings and raw data", shown)
    reasons = Counter(outdated.values())
    says = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    named = ", ".join(list(outdated)[:5]) + (", …" if len(outdated) > 5 else "")
    return Verdict(CURRENT, False, f"Of {planned} shards, {says}: {named}. Materialize all of the dataset again", shown)


def together(verdicts: Mapping[str, Verdict]) -> Verdict:
    """Returns what one check found in several files, by split; with one file, what it found there."""
    if len(verdicts) == 1:
        return next(iter(verdicts.values()))
    all_of = list(verdicts.values())
    wrong = {split: verdict for split, verdict in verdicts.items() if not verdict.passed}
    return Verdict(
        check=all_of[0].check,
        passed=not wrong,
        says="; ".join(f"{split}: {verdict.says}" for split, verdict in (wrong or verdicts).items()),
        shown={f"{name} of {split}": value for split, v in verdicts.items() for name, value in v.shown.items()},
        faults=tuple(fault for verdict in all_of for fault in verdict.faults),
        fault_count=sum(verdict.fault_count for verdict in all_of),
    )


def _judge_crc(report: "FileReport", manifest: Manifest | None) -> Verdict:
    shown = {"records": report.records, "bytes": report.bytes, "digest": report.digest, "seconds": report.seconds}
    if report.faults:
        says = f"{report.faults[0]}{_more(report.fault_count)}. Write the file again"
        return Verdict(CRC, False, says, shown, report.faults, report.fault_count)
    if manifest is None:
        says = f"{report.path} has no manifest, so nothing proves that it is what was written. Write it again"
        return Verdict(CRC, False, says, shown)
    return Verdict(CRC, True, f"All {report.records:,} records are as they were written", shown)


def _judge_count(report: "FileReport", expected: int | str, skipped: int) -> Verdict:
    shown = {"records": report.records, "expected": expected} | ({"skipped_raw_files": skipped} if skipped else {})
    if isinstance(expected, str):
        return Verdict(
            RECORD_COUNT, False, f"{report.records:,} records, but it is not known how many: {expected}", shown
        )
    if report.records != expected:
        says = f"{report.records:,} records where raw assigns {expected:,}. Write the file again"
        return Verdict(RECORD_COUNT, False, says, shown)
    without = f"; {skipped:,} raw files of the dataset were left out" if skipped else ""
    return Verdict(RECORD_COUNT, True, f"{report.records:,} records, as raw assigns{without}", shown)


def _judge_features(report: "FileReport", manifest: Manifest | None) -> Verdict:
    shown: dict[str, Any] = {"records": report.records}
    if manifest is None or manifest.features is None:
        return Verdict(FEATURES, False, f"No manifest tells how a record of {report.path} is parsed", shown)
    shown["features"] = len(manifest.features.features)
    if report.feature_faults:
        says = f"{report.feature_faults[0]}{_more(report.feature_fault_count)}. Write the file again"
        return Verdict(FEATURES, False, says, shown, report.feature_faults, report.feature_fault_count)
    if report.records != manifest.records:
        return Verdict(FEATURES, False, "Not every record could be read; see the check crc", shown)
    return Verdict(FEATURES, True, f"All {report.records:,} records parse by the feature spec", shown)


def _more(faults: int) -> str:
    return f", and {faults - 1:,} more" if faults > 1 else ""
