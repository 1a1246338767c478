"""The processes of the reader `data_service`: one that hands out work, and some that do it."""

from contextlib import suppress
from multiprocessing.connection import Connection

import tensorflow as tf


def dispatch(connection: Connection) -> None:
    """Runs the dispatcher until the connection is closed; sends its address."""
    server = tf.data.experimental.service.DispatchServer()
    connection.send(server.target)
    _wait(connection)
    del server


def work(connection: Connection) -> None:
    """Runs a worker until the connection is closed; takes the dispatcher's address, and tells when it is ready."""
    with suppress(EOFError):  # there is no dispatcher, and no caller
        address = connection.recv().partition("://")[2]
        server = tf.data.experimental.service.WorkerServer(tf.data.experimental.service.WorkerConfig(address))
        connection.send("ready")
        _wait(connection)
        del server


def _wait(connection: Connection) -> None:
    with suppress(EOFError, ConnectionResetError):
        connection.recv()
