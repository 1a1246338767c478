"""How the steps of a run are executed: in worker processes that are started once and take step after step.

    run's process ── executor: which step is next; what the run's log says
         │  crew: the workers, and what became of them
         │
         ├── fork server: has imported what steps need; kept for the process's next runs
         │      └── template: has loaded the run's job; forks workers, and does nothing else
         │             └── worker: executes one step at a time, and sends its events
         └───────────────────── a socket to each worker

A step is alone in its process while it runs: one that ends its process fails, and no other. The fork server ends when
the run's process does, however that ends, every template ends with it, and every worker with its template.
"""
