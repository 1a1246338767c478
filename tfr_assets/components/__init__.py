"""The only room that knows Dagster: a dataset's YAML becomes assets, checks, jobs and a schedule.

    config      the YAML: the component, its fields and their errors, and loading all datasets of a project
    assets      assets, checks, jobs, and what launches them by itself
    metadata    what the UI shows of files
    runs        how runs are executed, held apart, watched and recorded: what `dagster.yaml` and the definitions name
    attributes  what all assets of a dataset have in common
    failures    how a step fails: in a user's words where a user can mend it

Modules of the rooms below that come with compiled kernels are imported inside the steps, never by the definitions.
"""

from tfr_assets.packages import need

need("dagster", "Dagster", "a dataset with a YAML", "`pip install tfr-assets` installs it, and all that it needs")
