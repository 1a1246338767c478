"""How runs are executed, held apart, watched and recorded: what `dagster.yaml` and the definitions name.

executor, steps     steps run in workers that are kept; `preload` is what these import before they are forked
celery              steps on other machines
held_apart, locks   runs of one dataset wait for each other
dead_runs           runs whose process is dead are ended
slices              which slice a run works on
instance, sqlite, home      the queue, the launcher and the databases of the instance
"""
