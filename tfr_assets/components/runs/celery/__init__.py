"""Steps on other machines, by Celery: `$TFR_EXECUTOR=celery`.

settings    where broker and results are, and how tasks are sent
app         what a worker runs: `celery -A tfr_assets.components.runs.celery.app worker -Q dagster`
task        what it does with a step: executes it with its own machine's Dagster
engine      Dagster's executor for Celery, which notices workers that are gone
lost        how it does so

What steps hand over lies in Dagster's storage of artifacts, and data in `$TFR_DATA`: all machines must see both
folders, unless data lies in an object store, which then has both.
"""
