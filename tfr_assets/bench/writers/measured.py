"""Which writers are measured: those that `tfr_assets.write` knows by name, and others to compare them with.

Imports nothing heavy: definitions load it.
"""

from tfr_assets.writing.writers.registry import WRITERS, Writer

SEED = "seed"

_SERIAL = Writer(
    "serial", f"{__package__}.serial:serial", "one thread does everything", suits="one file", in_parallel=False
)
_LOCKED = Writer(
    "locked",
    f"{__package__}.locked:locked",
    "threads encode, each writes while it holds a lock",
    suits="one file",
    keeps_order=False,
)
_SEED = Writer(SEED, f"{__package__}.seed:seed", "the code of most tutorials", suits="one file", in_parallel=False)

MEASURED = {writer.name: writer for writer in (_SERIAL, *WRITERS.values(), _LOCKED, _SEED)}
"""The writers that are measured, by name, in the order in which they are listed."""
