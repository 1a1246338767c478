"""The plan: every row in exactly one shard, and whatever cannot work is said before anything is written."""

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfr_assets.errors import ConfigError, SchemaError, StaleError
from tfr_assets.layout import assign_rows
from tfr_assets.records.schema.feature_options import FeatureOptions
from tfr_assets.sources import Source
from tfr_assets.writing.plan import load_inventory, plan_shards
from tfr_assets.writing.raw import materialize_raw

from ..records.reference import examples
from .conftest import ROWS, MakeDataset, files, table


@examples(300)
@given(rows=st.integers(0, 2000) | st.integers(0, 10**12), count=st.integers(1, 200))
def test_every_row_is_in_one_shard_and_shards_differ_by_one_row_at_most(rows: int, count: int) -> None:
    shards = assign_rows(rows, count)
    assert len(shards) == count
    assert (shards[0].start, shards[-1].stop) == (0, rows)
    assert all(a.stop == b.start for a, b in pairwise(shards))
    sizes = {shard.rows for shard in shards}
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) > 0 or rows < count
    assert [shard.index for shard in shards] == list(range(count))


def test_the_number_of_shards_has_limits(make: MakeDataset) -> None:
    for shards in (0, -1, 100_000):
        with pytest.raises(ConfigError, match="shards"):
            make(shards=shards)
    assert len(make(shards=99_999).shard_keys) == 99_999


def test_an_unknown_compression_is_refused(make: MakeDataset) -> None:
    for compression in ("FOO", "GZIP", "", "zstd"):
        with pytest.raises(ConfigError, match="compression"):
            make(compression=compression)


def test_a_plan_holds_all_rows_of_the_inventory(make: MakeDataset) -> None:
    dataset = make(shards=7)
    inventory = materialize_raw(dataset)
    plan = plan_shards(dataset)
    assert plan.inventory_fingerprint == inventory.fingerprint
    assert [shard.key for shard in plan.shards] == dataset.shard_keys
    assert sum(shard.rows for shard in plan.shards) == ROWS
    assert [feature.name for feature in plan.features.features] == ["a/b/c", "a/b/d/e", "l", "n", "t"]
    assert {f.name for f in plan.features.features if f.optional} >= {"a/b/c", "a/b/d/e", "t"}
    for shard in plan.shards:
        assert plan.shard(shard.key) is shard


def test_a_plan_is_the_same_every_time(make: MakeDataset) -> None:
    materialize_raw(make())
    first, second = plan_shards(make()), plan_shards(make())
    assert first == second
    assert [first.made_from(shard) for shard in first.shards] == [second.made_from(shard) for shard in second.shards]


def test_what_decides_over_a_shards_bytes_is_in_what_it_is_made_from(make: MakeDataset, raw: Path) -> None:
    def of_first_shard(**changes: object) -> str:
        dataset = make(**changes)
        materialize_raw(dataset)
        plan = plan_shards(dataset)
        return repr(plan.made_from(plan.shards[0]))

    found = [of_first_shard()]
    for changes in (
        {"shards": 5},
        {"compression": "gzip"},
        {"features": FeatureOptions(drop=("t",))},
        {"features": FeatureOptions(rename={"t": "text"})},
        {"features": FeatureOptions(cast={"n": "float32"})},
        {"features": FeatureOptions(fill={"t": "?"})},
        {"source": Source(path=str(raw), shuffle_seed=1)},
        {"source": Source(path=str(raw), shuffle_seed=2)},
    ):
        found.append(of_first_shard(**changes))
    pq.write_table(table(first=1), raw)
    found.append(of_first_shard())
    assert len(set(found)) == len(found)


def test_raw_must_be_materialized_first(make: MakeDataset, tmp_path: Path) -> None:
    with pytest.raises(StaleError, match="Materialize raw"):
        plan_shards(make())
    assert not (tmp_path / "data").exists()


def test_another_source_makes_the_inventory_stale(make: MakeDataset, raw: Path) -> None:
    materialize_raw(make())
    for source in (
        Source(path=str(raw) + "*"),
        Source(path=str(raw), shuffle_seed=1),
        Source(path=str(raw), format="parquet"),
    ):
        with pytest.raises(StaleError, match=r"sample.*source settings changed.*Materialize raw again"):
            plan_shards(make(source=source))
    with pytest.raises(StaleError, match=r"shuffle_seed \(was None, is 1\)"):
        plan_shards(make(source=Source(path=str(raw), shuffle_seed=1)))


def test_settings_that_json_writes_otherwise_are_no_change(make: MakeDataset, tmp_path: Path) -> None:
    path = tmp_path / "raw.csv"
    path.write_text("1,x\n2,NA\n")
    for names in (["n", "t"], ("n", "t")):
        dataset = make(source=Source(path=str(path), options={"column_names": names, "null_values": ("NA",)}))
        materialize_raw(dataset)
        assert load_inventory(dataset).rows == 2


def test_a_column_that_no_feature_can_hold_is_refused_before_anything_is_written(make: MakeDataset, raw: Path) -> None:
    pq.write_table(pa.table({"n": [1], "m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8()))}), raw)
    dataset = make()
    materialize_raw(dataset)
    before = files(dataset.layout.folder)
    with pytest.raises(SchemaError, match=r"column 'm' of type map<string, int8.*features\.drop"):
        plan_shards(dataset)
    with pytest.raises(ConfigError, match=r"features\.drop: there is no column 'k'"):
        plan_shards(make(features=FeatureOptions(drop=("k",))))
    assert files(dataset.layout.folder) == before
    assert plan_shards(make(features=FeatureOptions(drop=("m",)))).features.features[0].name == "n"
