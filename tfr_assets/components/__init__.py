"""The only room that knows Dagster: a dataset's YAML becomes assets, checks, jobs and a schedule.

    dataset     the component: fields in, definitions out
    fields      what may stand in the YAML, and what is said when something else does
    yaml_errors where in the YAML it stands
    scaffold    a new dataset's YAML
    raw, shards, merged, readers, reader_report, on_disk
                one asset each
    checks      what the assets are checked for; `verdicts` decides, without Dagster; `reader_checks` likewise
    jobs        refresh, verify, readers; the schedule
    executor    steps run in workers, which are forked from a process that has imported what steps need (`preload`)
    steps       how that is done
    sqlite      the instance's databases, kept open
    load        all datasets, or the one that a command needs

Modules of the rooms below that come with compiled kernels are imported inside the steps, never by the definitions.
"""
