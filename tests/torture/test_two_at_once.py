"""Two processes that write the same dataset at once, by the same plan or another: each completes or says why not."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tfr_assets.errors import TfrError

from .scenarios import dataset, put_raw, read_rows, refresh, table, write_folder
from .settings import cases, choices
from .traced import Ended, run_forked
from .truth import check_vouching, is_verified, put_tree

WAYS = ("plans", "writes")


@pytest.mark.parametrize("way", WAYS)
def test_two_at_once_never_mix(way: str, fast_folder: Path) -> None:
    choose, data = choices(f"two {way}"), fast_folder / "data"
    data.mkdir()
    put_raw(fast_folder, 1)
    for _ in cases(short=3):
        put_tree(data, {})
        counts = [choose.choice((1, 2, 3, 5)) for _ in range(2)]
        with ThreadPoolExecutor(2) as pool:
            both = list(pool.map(lambda count: run_forked(_write, way, fast_folder, count), counts))
        try:
            assert all(_in_words(ended) for ended in both), both
            check_vouching(data)
            if not any(ended.error for ended in both):
                _check_rows(data)
            _write(way, fast_folder, counts[0])
            assert _check_rows(data) and is_verified(data / "sample")
            assert len(_shards(data)) == counts[0], "shards of another number stay"
        except BaseException as error:
            error.add_note(f"{counts} shards; {both}")
            raise


def _write(way: str, root: Path, shards: int) -> None:
    if way == "plans":
        refresh(dataset(root, shards))
    else:
        write_folder(root, 1, shards)


def _in_words(ended: Ended) -> bool:
    return ended.error is None or issubclass(ended.error[0], TfrError)


def _check_rows(data: Path) -> bool:
    """Reads all rows, or says why not; there is no third."""
    try:
        assert read_rows(data / "sample") == table(1).to_pylist()
    except TfrError:
        return False
    return True


def _shards(data: Path) -> list[Path]:
    return [path for path in data.rglob("sample-train.tfrecord-*") if path.parent.name not in ("manifest", "index")]
