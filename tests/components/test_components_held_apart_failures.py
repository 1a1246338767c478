"""Which dataset of a run is told of which failure."""

from types import SimpleNamespace
from typing import Any

from tfr_assets.components.runs.held_apart import _first_by_dataset


def test_each_dataset_of_a_run_is_told_of_its_own_first_failure() -> None:
    steps = ["a_b__raw", "a_b__shards.write_shard[train_00000_of_00002]", "a_check_merged", "other__raw"]
    failures: list[Any] = [SimpleNamespace(step_key=step) for step in steps]
    first = _first_by_dataset(failures, ["a", "a_b", "whole"])
    assert {name: failure.step_key for name, failure in first.items()} == {"a_b": "a_b__raw", "a": "a_check_merged"}
