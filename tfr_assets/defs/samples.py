"""The raw data of the bundled datasets, as assets that come before their `raw`."""

import hashlib
from collections.abc import Callable, Mapping
from importlib import import_module

import dagster as dg

from tfr_assets.project import current_project

_MADE = {
    "digits": "1,797 handwritten digits as PNG files, a folder per class; from scikit-learn.",
    "tones": "240 notes as WAV files, a folder per class; made here.",
    "topics": "Python's own help topics, a document a file.",
    "mixed": "Images, sounds, captions and numbers of the same things, by name.",
}


def _files_asset(name: str, description: str) -> dg.AssetsDefinition:
    @dg.asset(
        key=["samples", name],
        group_name="samples",
        description=description,
        kinds={"python", "file"},
        owners=["team:samples"],
        code_version="1",
    )
    def files() -> dg.MaterializeResult:
        from tfr_assets.samples.folder import write_folder

        module = import_module(f"tfr_assets.samples.{name}")
        make: Callable[[], Mapping[str, bytes]] = getattr(module, f"{name.removesuffix('s')}_files")
        folder, made = current_project().root / "raw" / name, make()
        size = write_folder(folder, made)
        # the content's hash: making the same files again shall not mark what follows as stale
        version = hashlib.sha256(b"".join(made.values())).hexdigest()[:16]
        return dg.MaterializeResult(
            metadata={"files": len(made), "dagster/size_bytes": size, "path": dg.MetadataValue.path(folder)},
            data_version=dg.DataVersion(version),
        )

    return files


@dg.definitions
def defs() -> dg.Definitions:
    """Returns an asset for the files of each bundled dataset."""
    return dg.Definitions(assets=[_files_asset(name, description) for name, description in _MADE.items()])
