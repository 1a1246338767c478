"""Raw data → Arrow record batches: what is there (`take_inventory`), and its rows by number (`read_rows`)."""

from tfr_assets.sources.files.subfolders import subfolders
from tfr_assets.sources.inventory.inventory import Inventory
from tfr_assets.sources.inventory.rows import preview, read_rows
from tfr_assets.sources.inventory.take import SKIPPED, remove_old_landings, take_inventory
from tfr_assets.sources.landing.landed import SourceFile
from tfr_assets.sources.model.parse import parse_source, parse_splits, seen_from, slices_seen_from
from tfr_assets.sources.model.slices import Slices, has_slices, load_slices, missing_root, save_slices
from tfr_assets.sources.model.source import Source
from tfr_assets.sources.model.splits import ONLY_SPLIT, Splits
from tfr_assets.sources.model.table_options import FORMATS, TYPE_NAMES
from tfr_assets.sources.watch import (
    called,
    check_watchable,
    files_state,
    on_this_machine,
    part_with_data,
    source_files,
)

__all__ = [
    "FORMATS",
    "ONLY_SPLIT",
    "SKIPPED",
    "TYPE_NAMES",
    "Inventory",
    "Slices",
    "Source",
    "SourceFile",
    "Splits",
    "called",
    "check_watchable",
    "files_state",
    "has_slices",
    "load_slices",
    "missing_root",
    "on_this_machine",
    "parse_source",
    "parse_splits",
    "part_with_data",
    "preview",
    "read_rows",
    "remove_old_landings",
    "save_slices",
    "seen_from",
    "slices_seen_from",
    "source_files",
    "subfolders",
    "take_inventory",
]
