"""A real PostgreSQL server for the tests of a module."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import wait_for

WHY_NOT = "needs PostgreSQL's server: apt-get install postgresql"


def program(name: str) -> str | None:
    """Returns the path of one of the server's programs, which Debian keeps out of the path; None: there is none."""
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(places[-1]) if places else None)


@contextmanager
def postgres() -> Iterator[dict[str, str]]:
    """A server of its own, as the environment variables of the documented block."""
    with tempfile.TemporaryDirectory(prefix="tfr-postgres-") as made:  # the server's user cannot reach pytest's folders
        yield from _serve(Path(made))


def _serve(folder: Path) -> Iterator[dict[str, str]]:
    user: dict[str, object] = {}
    if os.getuid() == 0:  # it refuses to run as root
        shutil.chown(folder, "nobody")
        user = {"user": "nobody", "extra_groups": []}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    secret = folder / "password"
    secret.write_text("secret\n")
    init = [str(program("initdb")), "-D", str(folder / "db"), "-U", "dagster", "--pwfile", str(secret), "-A", "md5"]
    subprocess.run(init, check=True, capture_output=True, cwd=folder, **user)  # type: ignore[call-overload]
    options = ["-D", str(folder / "db"), "-p", str(port), "-k", str(folder), "-c", "listen_addresses=127.0.0.1"]
    process = subprocess.Popen([str(program("postgres")), *options], stderr=subprocess.PIPE, cwd=folder, **user)  # type: ignore[call-overload]
    variables = {
        "TFR_POSTGRES_HOST": "127.0.0.1", "TFR_POSTGRES_PORT": str(port), "TFR_POSTGRES_USER": "dagster",
        "TFR_POSTGRES_PASSWORD": "secret", "TFR_POSTGRES_DB": "postgres",
    }  # fmt: skip
    import psycopg2

    def answers() -> bool:
        assert process.poll() is None, process.stderr and process.stderr.read()
        try:
            psycopg2.connect(host="127.0.0.1", port=port, user="dagster", password="secret", dbname="postgres").close()
        except psycopg2.OperationalError:
            return False
        return True

    wait_for(answers, 60)
    yield variables
    process.send_signal(signal.SIGINT)
    process.wait(60)
