"""A dataset as Hugging Face's `datasets.IterableDataset`."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import datasets

if TYPE_CHECKING:
    import pyarrow as pa

Span = tuple[int, int]


def iterable_dataset(
    take: Callable[[int, int], "pa.RecordBatch"], schema: "pa.Schema", spans: list[Span]
) -> datasets.IterableDataset:
    """Returns the records of some spans of positions, each of which is what `datasets` calls a shard.

    Its `state_dict` says in which span it is, so that those before it are not read again; and spans are what its
    workers share, and what its `shuffle` shuffles before its buffer does.

    Args:
        take: Gives the records from a position up to another.
        schema: Of these.
        spans: At least one.
    """
    return datasets.IterableDataset.from_generator(
        _examples, features=datasets.Features.from_arrow_schema(schema), gen_kwargs={"take": take, "spans": spans}
    )


def _examples(take: Callable[[int, int], "pa.RecordBatch"], spans: list[Span]) -> Iterator[dict[str, Any]]:
    for first, stop in spans:
        yield from take(first, stop).to_pylist()
