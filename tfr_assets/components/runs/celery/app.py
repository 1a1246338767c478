"""What a Celery worker runs. It imports what steps need before it forks its processes, as the local template does."""

from contextlib import suppress
from importlib import import_module
from typing import Any

from celery.signals import worker_init
from dagster_celery.make_app import make_app
from dagster_celery.tasks import create_task

from tfr_assets.components.runs.celery.settings import app_arguments
from tfr_assets.components.runs.celery.task import StepTask
from tfr_assets.components.runs.steps.crew import PRELOAD

app = make_app(app_arguments())
execute_plan = create_task(app, base=StepTask)


@worker_init.connect
def _preload(**_: Any) -> None:
    for module in import_module(PRELOAD).MODULES:
        with suppress(ImportError):  # of a Dagster that lacks it: see `preload`
            import_module(module)
