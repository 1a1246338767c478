"""How fast writers are: the same data written again and again, beside a plain write of the same bytes."""
