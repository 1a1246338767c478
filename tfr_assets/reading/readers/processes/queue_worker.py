"""The worker process of the reader `file_queue`: ranges of files come in, their records go out. Has no TensorFlow."""

from contextlib import suppress
from multiprocessing.connection import Connection

from tfr_assets.errors import TfrError
from tfr_assets.reading.readers.framing import range_records
from tfr_assets.records.frames.segments import Range
from tfr_assets.records.frames.skipped import Skipped

RECORDS, DONE, FAILED = "records", "done", "failed"


def serve(connection: Connection, skips: bool) -> None:
    """Reads one range after another until the connection is closed.

    Args:
        connection: Gives a `Range` each; takes pairs: RECORDS with a list of bytes, DONE with what was left out of a
            range, FAILED with a message.
        skips: Whether damaged records are left out; otherwise they are a failure.
    """
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the caller has closed it
        while True:
            _read(connection, connection.recv(), skips)


def _read(connection: Connection, wanted: Range, skips: bool) -> None:
    skipped: list[Skipped] = []
    try:
        for records in range_records(wanted, skipped.append if skips else None):
            connection.send((RECORDS, records.tolist()))
    except (BrokenPipeError, ConnectionResetError):
        raise
    except TfrError as error:
        connection.send((FAILED, str(error)))
    else:
        connection.send((DONE, sum(skipped, Skipped())))
