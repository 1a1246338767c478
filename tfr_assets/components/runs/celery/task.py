"""A step, as a worker executes it: with the Dagster of its own machine.

What the launcher sends says where Dagster's folders are on the launcher's machine; on another there may be none, or
somebody else's.
"""

import os
from pathlib import Path
from typing import Any

import dagster as dg
from celery import Task
from dagster._core.instance.ref import InstanceRef
from dagster._grpc.types import ExecuteStepArgs
from dagster._serdes import pack_value, unpack_value
from dagster_shared.check import CheckError
from dagster_shared.record import replace

from tfr_assets.errors import ConfigError

_HOME = "DAGSTER_HOME"


class StepTask(Task):
    """What runs on a worker for a step.

    Where `$DAGSTER_HOME` is set for the worker, that is where Dagster is configured, and what steps print is kept; its
    `dagster.yaml` must name the database of the launcher. Elsewhere, Dagster is as the launcher says.
    """

    def __call__(self, execute_step_args_packed: dict[str, Any], executable_dict: dict[str, Any]) -> Any:
        """Executes the step, and returns its events.

        Raises:
            ConfigError: Dagster's database on this machine is another one than the launcher's.
        """
        home = os.environ.get(_HOME)
        if not home:
            return self.run(execute_step_args_packed, executable_dict)
        ref = InstanceRef.from_dir(str(Path(home).expanduser()))
        step = replace(unpack_value(execute_step_args_packed, as_type=ExecuteStepArgs), instance_ref=ref)
        try:
            return self.run(pack_value(step), executable_dict)
        except CheckError as error:
            with dg.DagsterInstance.from_ref(ref) as instance:
                if instance.has_run(step.run_id):
                    raise
            raise ConfigError(
                f"{home} of the worker {self.request.hostname}: Dagster's database there does not know the run "
                f"{step.run_id}; its dagster.yaml must name the database of the machine that launched the run"
            ) from error
