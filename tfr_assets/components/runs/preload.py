"""What workers have imported before they are forked, so that no step imports it for itself.

What stands here are modules that Dagster imports when they are first used, so that importing `dagster` does not bring
them, and this project's compiled kernels. A module that a later Dagster lacks costs its share of the time and nothing
else; a test tells of it, and of what came to be missing here.
"""

MODULES = (
    # loading the job
    "dagster._core.definitions.external_asset",
    "dagster._core.definitions.repository_definition.repository_data_builder",
    "dagster._core.system_config.composite_descent",
    "dagster._core.utility_ops",
    "dagster._core.workspace.autodiscovery",
    "dagster._utils.test.definitions",
    "dagster.components.core.load_defs",
    "dagster.components.core.snapshot",
    "dagster_shared.yaml_utils.sample_yaml",
    "tomlkit",
    # the instance: storages and their databases, logs, launcher
    "dagster._core.instance.factory",
    "dagster._core.launcher.default_run_launcher",
    "dagster._core.run_coordinator.queued_run_coordinator",
    "dagster._core.secrets.env_file",
    "dagster._core.storage.fs_io_manager",
    "dagster._core.storage.local_compute_log_manager",
    "dagster._core.storage.migration.utils",
    "dagster._core.storage.root",
    "dagster._core.storage.sqlite_storage",
    "sqlalchemy.dialects.sqlite",
    "upath.implementations.local",
    # executing a step
    "dagster._core.execution.plan.active",
    "dagster._core.execution.plan.execute_plan",
    # this project: its kernels are compiled, or loaded from the cache, while they are imported
    "tfr_assets.definitions",
    "tfr_assets.components.config.component",
    "tfr_assets.records.arrow.arrays",
    "tfr_assets.records.schema.casts",
    "tfr_assets.writing.merged",
    "tfr_assets.writing.raw",
    "tfr_assets.writing.shard",
    "tfr_assets.writing.slices.fits",
    "dagster._core.storage.asset_check_execution_record",
    "tfr_assets.writing.outdated",
    "fsspec.core",
    "markdown_it",
    "numpy.ma",
    "pyarrow.parquet",
)
