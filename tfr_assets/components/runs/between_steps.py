"""What a step hands to the next one: beside Dagster's runs on this machine; in the store, where the data lies in one.

So steps on machines that share no folder get what they need. What the steps of a run have handed over is removed from
the store when it has succeeded; of a failed run it stays, because it may be re-executed from failure.
"""

import pickle
from functools import lru_cache
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.storage.fs_io_manager import PickledObjectFilesystemIOManager

from tfr_assets.layout import data_root
from tfr_assets.storage.objects.folder import ObjectFolder
from tfr_assets.urls import url_of

KEY = "tfr_between_steps"
_FOLDER = ".steps"  # beside the datasets' folders


@lru_cache
def between_steps(project: Path | None) -> dict[str, dg.IOManagerDefinition]:
    """Returns the resource that keeps it, one for all datasets of a project: Dagster's own files, or objects.

    Args:
        project: Folder of the project, which may say where its data lies; None: the current one.
    """

    @dg.io_manager(description="Keeps what steps hand over where all of them find it.")
    def keeper(context: dg.InitResourceContext) -> dg.IOManager:
        url = url_of(data_root(project))
        if url:
            return _InStore(url)
        assert context.instance
        return PickledObjectFilesystemIOManager(base_dir=context.instance.storage_directory())

    return {KEY: keeper}


class _InStore(dg.IOManager):
    def __init__(self, url: str) -> None:
        self._folder = ObjectFolder(url)

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        """Puts what a step hands over."""
        self._folder.put(_key(context), pickle.dumps(obj))

    def load_input(self, context: dg.InputContext) -> Any:
        """Gets what an earlier step has handed over."""
        upstream = context.upstream_output
        assert upstream
        content = self._folder.get(_key(upstream))
        if content is None:
            raise dg.Failure(
                f"{self._folder.url_of(_key(upstream))}: what the step {upstream.step_key} handed over is there no "
                "more. Launch all steps again: what is there already is not written a second time",
                allow_retries=False,
            )
        return pickle.loads(content)


def remove_handed_over(run_id: str, project: Path | None) -> None:
    """Removes what the steps of a run have put into a store, if they have.

    Args:
        run_id: The run.
        project: As for `between_steps`.

    Raises:
        SourceError: The store refused.
        WriteError: As well.
    """
    if url := url_of(data_root(project)):
        folder = ObjectFolder(f"{url}/{_FOLDER}/{run_id}")
        folder.delete(list(folder.walk()))


def _key(context: dg.OutputContext) -> str:
    return "/".join([_FOLDER, *context.get_identifier()])
