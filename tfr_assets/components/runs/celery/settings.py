"""Where Celery's broker and results are. Their addresses may hold passwords: they come from the environment only."""

import os
from typing import Any

from dagster_celery.config import DEFAULT_CONFIG, dict_wrapper

from tfr_assets.errors import ConfigError

BROKER_VARIABLE, RESULTS_VARIABLE = "TFR_CELERY_BROKER", "TFR_CELERY_RESULTS"
_RETRIES = 100  # of what is sent to a broker that restarts, for two minutes
_PATIENCE = {"max_retries": _RETRIES, "interval_start": 0.2, "interval_step": 0.2, "interval_max": 1.2}


def app_arguments() -> dict[str, Any]:
    """Returns what `celery.Celery` takes.

    Raises:
        ConfigError: No broker is named.
    """
    broker = os.environ.get(BROKER_VARIABLE)
    if not broker:
        raise ConfigError(
            f"TFR_EXECUTOR=celery needs a broker: set {BROKER_VARIABLE}, such as to redis://localhost:6379/0"
        )
    settings = {
        **DEFAULT_CONFIG,
        "task_track_started": True,  # says which worker has a step
        "worker_send_task_events": False,
        "worker_disable_prefetch": True,  # what a worker only holds ready, its death would keep from others for an hour
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "task_publish_retry_policy": _PATIENCE,
        "result_backend_always_retry": True,
        "result_backend_max_retries": _RETRIES,
        "result_backend_base_sleep_between_retries_ms": 200,
        "result_backend_max_sleep_between_retries_ms": 1200,
    }
    backend = os.environ.get(RESULTS_VARIABLE) or broker
    return {"broker": broker, "backend": backend, "config_source": dict_wrapper(settings)}
