"""What adapters need of an iterator of batches."""

from typing import Any, Protocol


class Resumable(Protocol):
    """An iterator that can be stopped and continued: see `tfr_assets.ResumableBatches`."""

    def state(self) -> dict[str, Any]:
        """Returns where it is."""

    def restore(self, state: Any) -> None:
        """Goes on from where another was."""

    def close(self) -> None:
        """Ends its threads."""

    def __next__(self) -> Any: ...


class Ask(Protocol):
    """Asks for batches: `Dataset.batches` with all arguments but these."""

    def __call__(self, *, shard: tuple[int, int], epochs: int | None) -> Resumable:
        """Returns a share's batches."""
