"""A dataset whose YAML cannot be loaded, as what the UI shows in its place: an asset and a job that say why."""

import re
from zlib import crc32

import dagster as dg

from tfr_assets.components.assets.jobs import refresh_job
from tfr_assets.errors import ConfigError


def build_broken(name: str, error: ConfigError) -> dg.Definitions:
    """Returns the definitions that stand in for a dataset: the asset `raw`, whose materialization fails with the error.

    Args:
        name: Its folder's, of any characters.
        error: Why it cannot be loaded, with file, line, field and remedy.
    """
    safe = re.sub(r"[^A-Za-z0-9_]", "_", name)
    if safe != name:  # what a name cannot hold may be the very mistake; two such names must not become one
        safe += f"_{crc32(name.encode()):08x}"
    key = dg.AssetKey([safe, "raw"])

    @dg.asset(
        key=key,
        group_name=safe,
        kinds={"yaml"},
        tags={"broken": ""},
        description=f"**This dataset cannot be loaded.** Correct its YAML file, and reload the definitions.\n\n{error}",
    )
    def raw() -> None:
        raise dg.Failure(f"{name} cannot be loaded: {error}", allow_retries=False)

    job = dg.define_asset_job(
        refresh_job(safe), dg.AssetSelection.assets(key), description=f"Cannot be loaded: {error}"
    )
    return dg.Definitions(assets=[raw], jobs=[job])
