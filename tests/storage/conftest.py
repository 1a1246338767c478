import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.storage.servers import SECRET, SERVERS, Between, running

_number = itertools.count()


def _server(name: str, factory: pytest.TempPathFactory) -> Iterator[str]:
    for package in ("obstore", "boto3", name, *(("flask", "flask_cors") if name == "moto" else ())):
        pytest.importorskip(package, reason=f"needs {package}, of the extra 'dev'")
    with running(name, factory.mktemp(name) / "log") as endpoint:
        yield endpoint


@pytest.fixture(scope="session", params=SERVERS)
def endpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a server is that speaks S3: every test runs with each."""
    yield from _server(request.param, tmp_path_factory)


@pytest.fixture(scope="session")
def one_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where one server is, for tests in which it does not matter which."""
    yield from _server("moto", tmp_path_factory)


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Makes the environment that of a user of a server."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)

    def configure(at: str) -> None:
        for name, value in {
            "AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": at, "AWS_CONFIG_FILE": str(tmp_path / "none"),
            "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none"),
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)

    return configure


def client(endpoint: str) -> Any:
    import boto3

    return boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")


def _bucket(endpoint: str, configured: Callable[[str], None]) -> str:
    configured(endpoint)
    name = f"bucket-{os.getpid()}-{next(_number)}"
    client(endpoint).create_bucket(Bucket=name)
    return f"s3://{name}"


@pytest.fixture
def bucket(endpoint: str, configured: Callable[[str], None]) -> str:
    """The URL of a new bucket, on each server."""
    return _bucket(endpoint, configured)


@pytest.fixture
def one_bucket(one_endpoint: str, configured: Callable[[str], None]) -> str:
    """The URL of a new bucket, on one server."""
    return _bucket(one_endpoint, configured)


@pytest.fixture
def between(one_endpoint: str, one_bucket: str, configured: Callable[[str], None]) -> Iterator[Between]:
    """What stands between the user and that server."""
    server = Between(one_endpoint)
    configured(server.endpoint)
    yield server
    server.close()
