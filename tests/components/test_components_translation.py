"""How assets appear: Dagster's own cases for `translation`, and its `post_processing` of components."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster.components.testing import create_defs_folder_sandbox
from dagster.components.testing.test_cases import TestTranslation

from tfr_assets import TFRecordDataset
from tfr_assets.layout import shard_keys

from .conftest import numbers
from .project import Project

FIXED = {"key", "key_prefix", "code_version", "partitions_def"}  # which runs, jobs and readers go by


class TestDagstersCases(TestTranslation):
    def test_translation(
        self, attributes: dict[str, Any], assertion: Callable[[dg.AssetSpec], bool], tmp_path: Path
    ) -> None:
        dataset = {"source": "raw/*.csv", "translation": attributes}
        with create_defs_folder_sandbox() as sandbox:
            path = sandbox.scaffold_component(
                TFRecordDataset,
                defs_path="sales",
                defs_yaml_contents={"type": "tfr_assets.TFRecordDataset", "attributes": dataset},
            )
            assert path.is_dir()
            if FIXED & set(attributes):
                with (
                    pytest.raises(Exception) as caught,
                    sandbox.load_component_and_build_defs(defs_path=path),
                ):
                    pass
                assert "cannot be changed: runs, jobs and readers go by it" in str(caught.value.__cause__)
                return
            with sandbox.load_component_and_build_defs(defs_path=path) as (_, definitions):
                specs = {spec.key.path[-1]: spec for spec in definitions.resolve_all_asset_specs()}
                parts = ["raw"] if "deps" in attributes else ["raw", "shards", "merged"]
                assert {part: assertion(specs[part]) for part in parts} == dict.fromkeys(parts, True)
                assert specs["raw"].tags["tfr/dataset"] == "sales"  # what runs are held apart by stays


def test_a_translated_dataset_runs_and_knows_the_asset(project: Project) -> None:
    project.table("told", numbers(20))
    named = {"part": "{{ spec.key.path[-1] }}"}
    project.dataset("told", shards=2, translation={"group_name": "lake", "tags": named, "deps": ["upstream"]})
    graph = project.repository().asset_graph
    for part in ("raw", "shards", "merged"):
        node = graph.get(dg.AssetKey(["told", part]))
        assert node.group_name == "lake" and node.tags["part"] == part
    assert graph.get(dg.AssetKey(["told", "raw"])).parent_keys == {dg.AssetKey("upstream")}
    ran = project.refresh("told", 2)
    assert ran.ok, ran.problems()
    assert set(ran.materialized("shards")) == set(shard_keys("train", 2))


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"group": "lake"}, "translation.group: "),
        ("lake", "translation: expected a mapping with group_name"),
        ({"owners": 3}, "translation: owners: "),
    ],
)
def test_what_cannot_be_translated_is_named(said: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TFRecordDataset.from_attributes_dict(attributes={"source": "a.parquet", "translation": said})


def test_what_dagster_processes_afterwards_runs_too(project: Project) -> None:
    project.table("posted", numbers(20))
    project.dataset("posted", shards=2)
    written = yaml.safe_load(project.yaml("posted").read_text())
    shown = {"group_name": "lake", "tags": {"team": "red"}, "metadata": {"foo": "bar"}, "owners": ["team:data"]}
    written["post_processing"] = {"assets": [{"target": "*", "attributes": shown}]}
    project.yaml("posted").write_text(yaml.safe_dump(written))
    graph = project.repository().asset_graph
    for part in ("raw", "shards", "merged"):
        node = graph.get(dg.AssetKey(["posted", part]))
        assert (node.group_name, node.tags["team"], node.metadata["foo"], node.owners) == (
            "lake", "red", "bar", ["team:data"],
        )  # fmt: skip
    ran = project.refresh("posted", 2)
    assert ran.ok, ran.problems()
    assert set(ran.materialized("shards")) == set(shard_keys("train", 2))
