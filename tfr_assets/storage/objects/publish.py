"""Local files → visible ones: a file and its index are sent whole, and the manifest alone makes them exist.

The old manifest goes when all bytes have been sent and before one of them is visible, and the new one comes last, on
the condition that there is none: whenever this is interrupted, no manifest stays beside a file that it does not
describe.
"""

from pathlib import Path

from tfr_assets.errors import WriteError
from tfr_assets.layout import index_path, manifest_path
from tfr_assets.storage.objects.folder import ChangedError, ObjectFolder, Version
from tfr_assets.storage.objects.guard import check_held
from tfr_assets.storage.objects.lease import Lease


def manifest_key(name: str) -> str:
    """Returns the key of the manifest of a TFRecord file, in its folder."""
    return str(manifest_path(Path(name)))


def index_key(name: str) -> str:
    """Returns the key of the index of a TFRecord file, in its folder."""
    return str(index_path(Path(name)))


def publish_file(folder: ObjectFolder, file: Path, lease: Lease, manifest: bytes | None = None) -> None:
    """Sends a whole local TFRecord file with its index and its manifest, which comes last.

    Args:
        folder: Where it goes; it keeps its name.
        file: The file; index and manifest lie below `index` and `manifest` beside it.
        lease: What the writer holds.
        manifest: What the manifest's file must hold still when the file was sent; None: whatever it holds then.

    Raises:
        WriteError: The store refused, somebody else wrote there, too, or the file was replaced while it was sent. No
            manifest is there then, or the old one beside the old file.
    """
    with folder.uploading(file.name, file), folder.uploading(index_key(file.name), index_path(file)):
        withdraw(folder, file.name, lease)
    content = manifest_path(file).read_bytes() if manifest_path(file).exists() else b""
    if manifest not in (None, content):
        raise WriteError(f"{file} was replaced while it was sent, so that it does not count as written; run again")
    reveal(folder, file.name, content, lease)


def withdraw(folder: ObjectFolder, name: str, lease: Lease) -> None:
    """Removes the manifest of a file that will be replaced.

    Raises:
        WriteError: The store refused, or the lease is lost.
    """
    lease.check()
    check_held(folder.url)
    folder.delete([manifest_key(name)])


def reveal(folder: ObjectFolder, name: str, manifest: bytes, lease: Lease) -> None:
    """Makes a file exist that is there already, by its manifest.

    Raises:
        WriteError: The store refused, or somebody else has put one; then neither stays.
    """
    lease.check()
    check_held(folder.url)
    create_alone(folder, manifest_key(name), manifest)


def create_alone(folder: ObjectFolder, key: str, manifest: bytes) -> Version:
    """Writes a manifest where there is none, and returns its version. Raises as `reveal`."""
    try:
        return folder.create(key, manifest)
    except ChangedError as error:
        folder.delete([key])  # nobody knows whose the file is
        raise WriteError(
            f"{folder.url_of(key)}: another process wrote this file at the same time, so that it does not count as "
            "written. Run again when the other is done"
        ) from error
