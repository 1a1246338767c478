"""A page of Parquet that is not what its checksum says is refused."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tfr_assets.errors import SourceError
from tfr_assets.sources import Source, preview, take_inventory


def test_a_flipped_byte_in_a_page_is_found_by_its_checksum(tmp_path: Path, landing: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"s": ["needle"] * 3})
    pq.write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    content = path.read_bytes()
    at = content.index(b"\x06\0\0\0needle") + 4  # behind its length: a value, not a statistic
    source = Source(path=str(path))
    assert preview(take_inventory(source, landing)).equals(table)
    path.write_bytes(content[:at] + b"N" + content[at + 1 :])
    with pytest.raises(SourceError, match=r"a\.parquet: cannot be read.*(?i:crc|checksum)"):
        preview(take_inventory(source, landing))
