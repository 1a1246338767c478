"""What the user set is wrong: one clear error, whichever store, for whatever opens it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfr_assets
from tests.storage.servers import SECRET
from tfr_assets.errors import ConfigError
from tfr_assets.storage.objects.folder import ObjectFolder
from tfr_assets.storage.objects.store import filesystem_of, store_of, store_options
from tfr_assets.urls import SCHEMES

KEYS = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": SECRET}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder, in an environment that knows nothing of any store."""
    pytest.importorskip("obstore")
    pytest.importorskip("boto3")
    for name in [name for name in os.environ if name.startswith(tuple(sum(SCHEMES.values(), ())))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")  # boto3 asks no machine
    (tmp_path / "broken.json").write_text("{broken")
    return tmp_path


@pytest.mark.parametrize(
    ("bucket", "settings", "says"),
    [
        ("az://box", {}, "Account must be specified"),
        ("az://box", {"AZURE_STORAGE_ACCOUNT_NAME": "a", "AZURE_STORAGE_ACCOUNT_KEY": "!!!"}, "Invalid Access Key"),
        ("az://box", {"AZURE_STORAGE_ENDPOINT": "localhost:9"}, "AZURE_STORAGE_ENDPOINT='localhost:9' is no endpoint"),
        ("gs://box", {"GOOGLE_APPLICATION_CREDENTIALS": "/nowhere.json"}, "Unable to open service account file"),
        ("gs://box", {"GOOGLE_APPLICATION_CREDENTIALS": "~/broken.json"}, "Unable to decode service account file"),
        ("s3://box", {"AWS_ACCESS_KEY_ID": "x"}, "Missing SecretAccessKey"),
        ("s3://box", {"AWS_PROFILE": "nobody"}, r"profile \(nobody\) could not be found"),
        ("s3://box", {"AWS_CONFIG_FILE": "~/broken.json"}, "Unable to parse config file"),
        ("s3://box", KEYS | {"AWS_ENDPOINT_URL": "localhost:9000"}, "write it as http://HOST:PORT"),
        ("s3://box", KEYS | {"AWS_ENDPOINT_URL": "http://a:port"}, "is no endpoint"),
        ("s3://box", KEYS | {"AWS_ENDPOINT_URL_S3": "http://"}, "is no endpoint"),
        ("s3://box", KEYS | {"AWS_ENDPOINT_URL": "http://a b"}, "is no endpoint"),
        ("s3://No_Such Bucket!", KEYS, "is no name of a bucket"),
        ("s3://[box", KEYS, "is no name of a bucket"),
    ],
)
def test_what_is_set_wrong_is_one_line(
    home: Path, monkeypatch: pytest.MonkeyPatch, bucket: str, settings: dict[str, str], says: str
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value.replace("~", str(home)))
    uses: list[Callable[[], Any]] = [
        lambda: ObjectFolder(f"{bucket}/x").get("a"),
        lambda: tfr_assets.write({"a": [1]}, f"{bucket}/x/a.tfrecord"),
        lambda: tfr_assets.batches(f"{bucket}/x"),
        lambda: tfr_assets.verify(f"{bucket}/x"),
    ]
    if "no name" not in says:
        uses += [lambda: store_of(bucket), lambda: filesystem_of(bucket)]
    for use in uses:
        with pytest.raises(ConfigError, match=says) as caught:
            use()
        assert "\n" not in str(caught.value) and SECRET not in str(caught.value)


def test_a_region_alone_is_no_credential(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".aws").mkdir()
    (home / ".aws" / "config").write_text("[default]\nregion = eu-west-3\n")
    options = store_options("s3://box")
    assert "credential_provider" not in options and options["config"] == {"region": "eu-west-3"}
    store_of("s3://box")
    monkeypatch.setenv("AWS_REGION", "us-east-2")
    assert "config" not in store_options("s3://box")


@pytest.mark.parametrize("variable", ["AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"])
def test_files_of_credentials_may_lie_anywhere(home: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    (home / "elsewhere").write_text(f"[default]\naws_access_key_id = tester\naws_secret_access_key = {SECRET}\n")
    assert "credential_provider" not in store_options("s3://box")
    monkeypatch.setenv(variable, str(home / "elsewhere"))
    assert store_options("s3://box")["credential_provider"].credentials.access_key == "tester"
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    assert "credential_provider" not in store_options("s3://box")
