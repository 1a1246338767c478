"""pandas DataFrames → Arrow tables, with their index.

An index is data wherever it has a name, several levels, or values other than whole numbers: what `groupby` groups by
stands there. Its levels become the first columns, named as `DataFrame.reset_index` names them. Whole numbers without a
name only number the rows, and are left out.
"""

from typing import TYPE_CHECKING

import pyarrow as pa

from tfr_assets.errors import SourceError

if TYPE_CHECKING:
    import pandas as pd


def table_of(frame: "pd.DataFrame", where: str) -> pa.Table:
    """Returns a DataFrame's index and columns.

    Args:
        frame: The DataFrame.
        where: What it is from, for messages.

    Raises:
        SourceError: It holds what Arrow does not, or its index has the name of a column with other values.
    """
    frame = _with_index(frame, where)
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason = "; ".join(map(str, error.args))
        raise SourceError(f"{where}: gave a DataFrame that cannot become Arrow: {reason}.") from error


def _with_index(frame: "pd.DataFrame", where: str) -> "pd.DataFrame":
    for at, name in reversed(list(enumerate(frame.index.names))):
        if name is None or name not in frame.columns:
            continue
        level = frame.index.get_level_values(at)
        if not level.equals(type(level)(frame[name])):
            raise SourceError(
                f"{where}: gave a DataFrame whose index is named {name!r}, as a column with other values is. "
                "Rename one of them (`df.rename_axis(…)`), or leave the index out (`df.reset_index(drop=True)`)."
            )
        frame = frame.reset_index(level=at, drop=True)
    index = frame.index
    is_numbering = index.nlevels == 1 and index.name is None and (not len(index) or index.dtype.kind in "iu")
    return frame if is_numbering else frame.reset_index()
