"""How the steps of a run are executed: in worker processes that are started once and take step after step.

    run's process ── executor: which step is next; what the run's log says
         │  crew: the workers, and what became of them
         │
         ├── template: has imported what steps need and loaded the job; forks workers, and does nothing else
         │      └── worker: executes one step at a time, and sends its events
         └─────────────── a socket to each worker

A step is alone in its process while it runs: one that ends its process fails, and no other. The template ends when the
run's process does, however that ends, and every worker ends with the template.
"""
