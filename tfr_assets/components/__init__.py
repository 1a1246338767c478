"""The only room that knows Dagster: a dataset's YAML becomes assets, checks, jobs and a schedule.

    dataset     the component: fields in, definitions out
    fields      what may stand in the YAML, and what is said when something else does
    yaml_errors where in the YAML it stands
    scaffold    a new dataset's YAML
    raw, shards, merged
                one asset each
    checks      what the assets are checked for; `verdicts` decides, without Dagster
    current     whether stored shards are those that YAML and raw data ask for now, without reading them
    report      all of a dataset on one page, `report.html`; `page` is its HTML
    jobs        what is launched; `verify` reads stored shards back
    automation  what launches it by itself: schedule, watch, assets that follow each other
    bench       what is measured: readers, reader_checks, reader_report, writers
    executor    steps run in workers, which are forked from a process that has imported what steps need (`preload`)
    steps       how that is done
    sqlite      the instance's databases, kept open
    apart       runs of one dataset wait for each other, by `locks`
    runs        runs whose process is dead are ended
    instance    what `dagster.yaml` names: the queue and the launcher that know all this
    load        all datasets, or the one that a command needs

Modules of the rooms below that come with compiled kernels are imported inside the steps, never by the definitions.
"""
