"""The errors a user can meet. Each says what was found, where, and what to do about it.

    TfrError
    ├── ConfigError       a dataset's YAML, or an argument, asks for something impossible
    │   └── MissingPackage  what was asked for needs a package that is not installed; an ImportError, too
    ├── SourceError       raw data is missing, unreadable or not what its name says
    │   └── SourceChanged raw data is no longer what the inventory recorded
    ├── SchemaError       a column that a tf.Example cannot hold, named with its type
    ├── StaleError        something upstream must be materialized (again) first
    ├── WriteError        a file could not be written whole; nothing was left under its final name
    ├── OutOfMemory       records that do not fit into memory
    ├── OutOfRange        a record's number that a dataset does not have; an IndexError, too
    └── DamagedFile       a file is not what its manifest says, or not whole

The command line prints such an error as one message without a stack trace and exits with 1 (2 for wrong usage).
"""

import difflib
from collections.abc import Collection


class TfrError(Exception):
    """A problem of the user's data or settings rather than a bug: its message is for the user.

    Attributes:
        shards: Keys of the shards that must be written again, where these are the problem.
    """

    shards: tuple[str, ...] = ()


class ConfigError(TfrError):
    """A setting that cannot work. The message names the field and the remedy."""


class MissingPackage(ConfigError, ImportError):
    """A package that is not installed, and that only a part of this library needs. The message says how to get it."""


class SourceError(TfrError):
    """Raw data that cannot be used. The message names the file.

    Attributes:
        no_data: Whether there is none at all: no file is where the source says, or a function gave nothing.
    """

    no_data: bool = False

    @classmethod
    def of_no_data(cls, text: str) -> "SourceError":
        """Returns the error that says that there is no raw data at all."""
        error = cls(text)
        error.no_data = True
        return error


class SourceChanged(SourceError):
    """Raw data that differs from its inventory, so that shards of two versions would mix."""


class SchemaError(TfrError):
    """A column that cannot become a feature. The message names the column and its type."""


class StaleError(TfrError):
    """An input that is missing, or was made from other data or settings than the current ones."""


class WriteError(TfrError):
    """A file that could not be written whole. Nothing under its final name was touched."""


class OutOfMemory(TfrError):
    """Records that do not fit into memory while they are read. The message says which, and what to do."""


class OutOfRange(TfrError, IndexError):
    """A number of a record that there is not. The message says how many there are."""


class DamagedFile(TfrError):
    """A file that is not what it must be. The message lists the first faults, by file, record and offset."""


def suggestion(name: object, known: Collection[str], otherwise: str) -> str:
    """Returns `did you mean …?` with a known name that is close, or else `otherwise` and all of them."""
    close = difflib.get_close_matches(str(name), list(known), n=1)
    return f"did you mean {close[0]!r}?" if close else f"{otherwise} {', '.join(known)}"
