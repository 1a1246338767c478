"""How fast readers are: passes in fresh processes, in turn; tables, curves, timelines, the recommendation."""
