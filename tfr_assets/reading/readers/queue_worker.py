"""The worker process of the reader `file_queue`: pieces of files come in, their records go out. Has no TensorFlow."""

from contextlib import suppress
from multiprocessing.connection import Connection

from tfr_assets.errors import TfrError
from tfr_assets.reading.readers.framing import piece_records
from tfr_assets.reading.readers.pieces import Piece
from tfr_assets.records.skipped import Skipped

RECORDS, DONE, FAILED = "records", "done", "failed"


def serve(connection: Connection, compression: str, skips: bool) -> None:
    """Reads one piece after another until the connection is closed.

    Args:
        connection: Gives a `Piece` each; takes pairs: RECORDS with a list of bytes, DONE with what was left out of a
            piece, FAILED with a message.
        compression: That of the files.
        skips: Whether damaged records are left out; otherwise they are a failure.
    """
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # who asked wants no more
        while True:
            _read(connection, connection.recv(), compression, skips)


def _read(connection: Connection, piece: Piece, compression: str, skips: bool) -> None:
    skipped: list[Skipped] = []
    try:
        for records in piece_records(piece, compression, skipped.append if skips else None):
            connection.send((RECORDS, records.tolist()))
    except (BrokenPipeError, ConnectionResetError):
        raise
    except TfrError as error:
        connection.send((FAILED, str(error)))
    else:
        connection.send((DONE, sum(skipped, Skipped())))
