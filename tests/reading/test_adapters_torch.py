"""PyTorch: tensors of batches, workers and ranks that share records, loaders that stop and go on."""

import os
import pickle
import subprocess
import sys
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfr_assets
from tfr_assets.errors import ConfigError, StaleError
from tfr_assets.reading.access.dataset import Dataset
from tfr_assets.records.arrow.arrays import Ragged, Strings

from .datasets import write_dataset
from .test_reading_columnar import expected, table

torch = pytest.importorskip("torch", reason="the package `torch` is not installed")
data = torch.utils.data

ROOT = Path(tfr_assets.__file__).parent.parent
ROWS = 101


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return tfr_assets.open(write_dataset(table(ROWS), tmp_path_factory.mktemp("torch")).folder)


def ids(batches: Any) -> list[int]:
    return [int(i) for batch in batches for i in batch["id"]]


def loader(dataset: Any, workers: int = 0, **options: Any) -> Any:
    return data.DataLoader(dataset, batch_size=None, num_workers=workers, **options)


def python_values(values: Any) -> Any:
    if isinstance(values, torch.Tensor):
        return [each.tolist() for each in values.unbind()] if values.is_nested else values.tolist()
    return [python_values(each) for each in values] if isinstance(values, list) else values


def as_text(values: Any) -> Any:
    return (
        [as_text(each) for each in values] if isinstance(values, list) else getattr(values, "decode", lambda: values)()
    )


def test_all_kinds_of_columns_become_tensors_or_lists(opened: Dataset) -> None:
    source = table(ROWS)
    for found in (opened.take(slice(None), into="torch"), next(opened.batches(ROWS, into="torch"))):
        values = {name: python_values(column) for name, column in found.items()}
        wanted = expected(source)
        np.testing.assert_array_equal(values.pop("value"), wanted.pop("value"))
        assert values == {name: as_text(column) for name, column in wanted.items()}
    assert (
        found["flag"].dtype == torch.bool and found["id"].dtype == torch.int64 and found["maybe"].layout == torch.jagged
    )


def test_tensors_share_the_memory_of_columns(opened: Dataset) -> None:
    from tfr_assets.reading.adapters.torch_tensors import converter

    columns = opened.take(slice(5, 50), columns=["id", "value", "pairs"])
    tensors = converter({name: opened.features.columns[name][0] for name in columns})(columns)
    assert tensors["id"].data_ptr() == columns["id"].ctypes.data
    assert tensors["value"].data_ptr() == columns["value"].ctypes.data
    assert tensors["pairs"].values().data_ptr() == columns["pairs"].values.ctypes.data
    constant = np.arange(3)
    constant.flags.writeable = False
    (copied,) = converter({"id": opened.features.columns["id"][0]})({"id": constant}).values()
    copied[0] = 7
    assert constant[0] == 0


@pytest.mark.parametrize("shuffle", [False, "global", 7])
@pytest.mark.parametrize(("ranks", "workers"), [(1, 0), (1, 3), (2, 2)])
def test_workers_of_all_ranks_read_each_record_once(opened: Dataset, ranks: int, workers: int, shuffle: Any) -> None:
    shares = [opened.torch(8, shuffle=shuffle, shard=(rank, ranks)) for rank in range(ranks)]
    found = [ids(loader(share, workers)) for share in shares]
    assert sorted(chain(*found)) == list(range(ROWS))
    assert max(map(len, found)) - min(map(len, found)) <= max(1, workers)


def test_spawned_workers_stay_from_epoch_to_epoch(opened: Dataset) -> None:
    batches = opened.torch(8, columns=["id"], shuffle="global", seed=3)
    kept = loader(batches, 1, multiprocessing_context="spawn", persistent_workers=True)
    found = [ids(kept)]
    batches.set_epoch(1)
    found.append(ids(kept))
    assert found == [ids(each) for each in np.split(_unbroken(opened, epochs=2), 2)]
    assert found[0] != found[1]


def _unbroken(opened: Dataset, epochs: int) -> Any:
    found = ids(opened.batches(8, shuffle="global", seed=3, epochs=epochs))
    return np.array([{"id": [i]} for i in found])


def test_records_by_number_are_a_map_style_dataset(tmp_path: Path) -> None:
    source = pa.table({"id": range(ROWS), "name": [f"n{i}" for i in range(ROWS)]})
    opened = tfr_assets.open(write_dataset(source, tmp_path).folder)
    batches = list(data.DataLoader(opened, batch_size=16, shuffle=True, num_workers=2))
    assert sorted(ids(batches)) == list(range(ROWS)) != ids(batches)
    for batch in batches:
        assert batch["id"].dtype == torch.int64 and batch["name"] == [f"n{i}" for i in batch["id"].tolist()]


def stateful(dataset: Any, workers: int) -> Any:
    module = pytest.importorskip("torchdata.stateful_dataloader", reason="the package `torchdata` is not installed")
    return module.StatefulDataLoader(dataset, batch_size=None, num_workers=workers)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("even", [None, "drop"])
def test_a_stateful_loader_goes_on_where_it_was(opened: Dataset, workers: int, even: Any) -> None:
    def made() -> Any:
        return stateful(opened.torch(9, columns=["id"], shuffle="global", epochs=3, even=even), workers)

    unbroken = [batch["id"].tolist() for batch in made()]
    for count in (0, len(unbroken) // 3, len(unbroken) // 3 + 1, len(unbroken)):
        first = made()
        batches = iter(first)
        assert [batch["id"].tolist() for batch in islice(batches, count)] == unbroken[:count]
        state = pickle.loads(pickle.dumps(first.state_dict()))
        again = made()
        again.load_state_dict(state)
        assert [batch["id"].tolist() for batch in again] == unbroken[count:]
        assert len(ids(again)) == sum(map(len, unbroken))  # and the next iteration begins anew


@pytest.mark.parametrize(("before", "after"), [((1, 2), (2, 1)), ((2, 1), (1, 3)), ((2, 2), (3, 0)), ((1, 0), (1, 2))])
@pytest.mark.parametrize("count", [0, 3])
def test_other_numbers_of_ranks_and_workers_read_what_was_left(
    opened: Dataset, before: tuple[int, int], after: tuple[int, int], count: int
) -> None:
    def shares(ranks: int) -> list[Any]:
        return [opened.torch(9, columns=["id"], shuffle="global", shard=(rank, ranks)) for rank in range(ranks)]

    found, states = [], []
    for share in shares(before[0]):
        first = stateful(share, before[1])
        found += ids(islice(iter(first), count))
        states.append(first.state_dict())
    for share in shares(after[0]):
        share.restore(states)
        found += ids(loader(share, after[1]))
    assert sorted(found) == list(range(ROWS))


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
def test_only_the_iteration_after_restore_is_a_rest(opened: Dataset, workers: int, persistent: bool) -> None:
    def shuffled() -> Any:
        return opened.torch(9, columns=["id"], shuffle="global", seed=3)

    before = iter(shuffled())
    taken = ids(islice(before, 4))
    batches = shuffled()
    batches.restore(before.state_dict())
    resumed = loader(batches, workers, persistent_workers=persistent and workers > 0)
    rest, second, third = (ids(resumed) for _ in range(3))
    assert sorted(taken + rest) == list(range(ROWS))
    assert sorted(second) == sorted(third) == list(range(ROWS))
    batches.set_epoch(1)
    assert second == third == ids(resumed) != taken + rest
    batches.set_epoch(0)
    assert ids(resumed)[:4] != second[:4]


def test_an_iteration_of_several_epochs_goes_on_to_its_end(opened: Dataset) -> None:
    before = opened.torch(9, columns=["id"], shuffle="global", epochs=2)
    before.set_epoch(5)
    first = iter(before)
    taken = ids(islice(first, -(-ROWS // 9) + 2))  # into the second epoch
    batches = opened.torch(9, columns=["id"], shuffle="global", epochs=2)
    batches.restore(first.state_dict())
    assert sorted(taken + ids(batches)) == sorted([*range(ROWS)] * 2)
    following = ids(batches)
    batches.set_epoch(7)
    assert sorted(following) == sorted([*range(ROWS)] * 2) and following == ids(batches)


def test_states_that_do_not_fit_are_refused(opened: Dataset, tmp_path: Path) -> None:
    first, second = (iter(opened.torch(9, columns=["id"], shard=(rank, 2))) for rank in range(2))
    next(first)
    with pytest.raises(ConfigError, match=r"of worker 0 of 2, this is worker 1 of 2"):
        second.load_state_dict(first.state_dict())
    with pytest.raises(ConfigError, match="is no state of these batches"):
        first.load_state_dict({"epoch": 3})
    batches = opened.torch(9)
    with pytest.raises(ConfigError, match=r"workers \[\(0, 2\)\], which are not all"):
        batches.restore([first.state_dict()])
    with pytest.raises(ConfigError, match="which are not all"):
        batches.restore([])
    with pytest.raises(ConfigError, match="snapshot_every_n_steps=1"):
        batches.restore({"_steps_since_snapshot": 2, "worker": first.state_dict()})
    other = tfr_assets.open(write_dataset(pa.table({"id": [1, 2]}), tmp_path).folder)
    with pytest.raises(StaleError, match="of other data"):
        iter(other.torch(9, shard=(0, 2))).load_state_dict(first.state_dict())


@pytest.mark.parametrize(
    ("options", "message"),
    [({"shuffle": "all"}, "shuffle='all'"), ({"shard": (2, 2)}, "shard="), ({"columns": ["ide"]}, "did you mean 'id'")],
)
def test_arguments_are_refused_before_workers_start(opened: Dataset, options: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        opened.torch(8, **options)


def test_strings_of_no_text_are_bytes(tmp_path: Path) -> None:
    source = pa.table({"raw": pa.array([b"\xff", b""], pa.binary()), "lists": [[b"\xff"], []]})
    opened = tfr_assets.open(write_dataset(source, tmp_path, shards=1).folder)
    assert opened.take([0, 1], into="torch") == {"raw": [b"\xff", b""], "lists": [[b"\xff"], []]}
    assert isinstance(opened.take([0])["raw"], Strings) and isinstance(opened.take([0])["lists"], Ragged)


_RANK = """
import sys, torch, tfr_assets
import torch.distributed as dist
folder, file, rank = sys.argv[1], sys.argv[2], int(sys.argv[3])
dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
batches = tfr_assets.open(folder).torch(8, columns=["id"], shuffle="global", shard=(dist.get_rank(), 2), even="drop")
seen = torch.zeros(101, dtype=torch.int64)
for batch in torch.utils.data.DataLoader(batches, batch_size=None, num_workers=2):
    step = torch.zeros(101, dtype=torch.int64)
    step[batch["id"]] = 1
    dist.all_reduce(step)  # waits for ever, unless both have as many batches
    seen += step
assert "tensorflow" not in sys.modules
print(seen.max().item(), seen.sum().item())
dist.destroy_process_group()
"""


def test_two_processes_in_step_read_each_record_once(opened: Dataset, tmp_path: Path) -> None:
    folder = str(Path(opened._files.paths[0]).parent)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", _RANK, folder, str(tmp_path / "meeting"), str(rank)],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    try:
        found = [process.communicate(timeout=240) for process in ranks]
    finally:
        for process in ranks:
            process.kill()
    assert [out for out, _ in found] == ["1 100\n"] * 2, found  # one of 101 is left out of four shares
