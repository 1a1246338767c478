"""Objects of a store: whole or absent, put on conditions, listed and removed; and what is said of what goes wrong."""

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.storage.conftest import client
from tests.storage.servers import SECRET, Between
from tfr_assets.errors import ConfigError, SourceError, WriteError
from tfr_assets.storage.objects.folder import ChangedError, ObjectFolder
from tfr_assets.storage.objects.multipart import Source, abort_uploads, can_join, joining, plan_parts
from tfr_assets.storage.objects.ranges import chunks_of
from tfr_assets.urls import is_object_url, split_url

BIG = bytes(range(256)) * (21 << 12)  # 21 MB: three parts


def uploads(endpoint: str, url: str) -> list[dict[str, Any]]:
    found = client(endpoint).list_multipart_uploads(Bucket=split_url(url)[0].partition("://")[2])
    return list(found.get("Uploads", []))


def test_objects_are_put_got_listed_and_removed(bucket: str) -> None:
    folder = ObjectFolder(f"{bucket}/some/prefix")
    assert folder.get("a") is None and folder.stat("a") is None and folder.list() == {}
    folder.put("a", b"one")
    folder.put("sub/b", b"")
    folder.put("a", b"another")
    stat = folder.stat("a")
    assert stat and stat.size == 7
    assert folder.get("a") == b"another" and folder.get("sub/b") == b""
    assert folder.list() == {"a": stat}
    assert set(folder.walk()) == {"a", "sub/b"} and set(folder.list("sub")) == {"b"}
    assert set(ObjectFolder(bucket).walk()) == {"some/prefix/a", "some/prefix/sub/b"}
    folder.delete(["a", "never-there"])
    assert set(folder.walk()) == {"sub/b"}


def test_names_may_hold_any_character(bucket: str) -> None:
    folder = ObjectFolder(f"{bucket}/a b+c/d#e?f=%41&ü")
    folder.put("x y", b"1")
    assert folder.get("x y") == b"1" and set(folder.list()) == {"x y"}
    found = client_keys(bucket)
    assert found == ["a b+c/d#e?f=%41&ü/x y"]


def client_keys(bucket: str) -> list[str]:
    import os

    found = client(os.environ["AWS_ENDPOINT_URL"]).list_objects_v2(Bucket=bucket.removeprefix("s3://"))
    return [item["Key"] for item in found.get("Contents", [])]


def test_conditions_hold_two_writers_apart(bucket: str) -> None:
    folder = ObjectFolder(bucket)
    version = folder.create("lock", b"mine")
    with pytest.raises(ChangedError):
        folder.create("lock", b"yours")
    assert folder.create("lock", b"mine") == version  # an answer that was lost
    later = folder.replace("lock", b"mine, still", version)
    with pytest.raises(ChangedError):
        folder.replace("lock", b"yours", version)
    assert folder.get("lock") == b"mine, still"
    folder.delete(["lock"])
    with pytest.raises(ChangedError):
        folder.replace("lock", b"late", later)


def test_an_upload_is_visible_only_when_it_is_complete(endpoint: str, bucket: str, tmp_path: Path) -> None:
    folder, file = ObjectFolder(f"{bucket}/x"), tmp_path / "file"
    file.write_bytes(BIG)
    with folder.uploading("big", file):
        assert folder.stat("big") is None
        assert len(uploads(endpoint, bucket)) == 1
    assert b"".join(chunks_of(folder.url_of("big"))) == BIG
    file.write_bytes(b"small")
    with folder.uploading("big", file):
        assert folder.stat("big") == folder.stat("big")
        assert b"".join(chunks_of(folder.url_of("big"))) == BIG
    assert folder.get("big") == b"small"


def test_an_upload_that_fails_leaves_nothing(endpoint: str, bucket: str, tmp_path: Path) -> None:
    folder, file = ObjectFolder(f"{bucket}/x"), tmp_path / "file"
    file.write_bytes(BIG)
    with pytest.raises(KeyError), folder.uploading("big", file):
        raise KeyError
    assert folder.walk() == {} and uploads(endpoint, bucket) == []


def test_ranges_are_those_of_the_object(bucket: str) -> None:
    folder = ObjectFolder(bucket)
    folder.put("big", BIG)
    url = folder.url_of("big")
    for start, stop in ((0, None), (5, 5), (0, 1), (4 << 20, (4 << 20) + 7), ((4 << 20) - 1, len(BIG)), (3, 17 << 20)):
        assert b"".join(chunks_of(url, start, stop)) == BIG[start:stop]
    folder.put("none", b"")
    assert list(chunks_of(folder.url_of("none"))) == []
    with pytest.raises(SourceError, match="nothing: is not there"):
        next(chunks_of(folder.url_of("nothing")))


def test_an_object_that_is_replaced_while_it_is_read_is_an_error(bucket: str) -> None:
    folder = ObjectFolder(bucket)
    folder.put("big", BIG * 2)
    chunks = chunks_of(folder.url_of("big"))
    next(chunks)
    folder.put("big", bytes(len(BIG) * 2))
    with pytest.raises(SourceError, match="was replaced or removed while it was read"):
        list(chunks)


@pytest.mark.parametrize("sizes", [(5, 6), (6, 0, 1, 2, 9, 3), (1, 1, 1), (12,), (0, 7, 0)])
def test_objects_are_joined_inside_of_the_store(endpoint: str, bucket: str, sizes: tuple[int, ...]) -> None:
    folder = ObjectFolder(f"{bucket}/parts")
    contents = [bytes([65 + number]) * (size << 20) + bytes([number]) * bool(size) for number, size in enumerate(sizes)]
    sources = []
    for number, content in enumerate(contents):
        folder.put(str(number), content)
        stat = folder.stat(str(number))
        assert stat
        sources.append(Source(folder.url_of(str(number)), stat.size, stat.etag))
    target = folder.url_of("all")
    assert can_join([target, *(source.url for source in sources)])
    done: list[int] = []
    with joining(sources, target, done.append):
        assert folder.stat("all") is None
    assert folder.get("all") == b"".join(contents) and sum(done) == sum(map(len, contents))
    with pytest.raises(KeyError), joining(sources, target):
        raise KeyError
    folder.put("0", b"other" * (2 << 20))
    if len(contents[0]):
        with pytest.raises(WriteError, match="was replaced meanwhile"), joining(sources, target):
            pass
    assert folder.get("all") == b"".join(contents) and uploads(endpoint, bucket) == []


def test_uploads_of_the_dead_are_ended_and_no_others(endpoint: str, bucket: str) -> None:
    s3, name = client(endpoint), bucket.removeprefix("s3://")
    for key in ("x/a-1", "x/index/a-1.idx", "x/b-1", "x/sub/a-1", "xx/a-1"):
        s3.create_multipart_upload(Bucket=name, Key=key)
    assert abort_uploads(ObjectFolder(f"{bucket}/x"), r"(index/)?a-\d(\.idx)?") == 2
    assert {upload["Key"] for upload in uploads(endpoint, bucket)} == {"x/b-1", "x/sub/a-1", "xx/a-1"}


def test_parts_of_random_sizes_hold_all_bytes_once() -> None:
    import random

    choose = random.Random(3)
    for _ in range(3000):
        sizes = [choose.choice([0, choose.randrange(1, 30)]) for _ in range(choose.randrange(1, 8))]
        parts = plan_parts(sizes, 5, 12)
        pieces = [piece for part in parts for piece in part.pieces]
        assert all(piece.size > 0 for piece in pieces)
        placed = [(piece.source, at) for piece in pieces for at in range(piece.start, piece.stop)]
        assert placed == [(source, at) for source, size in enumerate(sizes) for at in range(size)]
        assert all(sum(piece.size for piece in part.pieces) >= 5 for part in parts[:-1])
        assert all(sum(piece.size for piece in part.pieces) <= 12 for part in parts)


def test_what_is_no_object_url() -> None:
    assert is_object_url("s3://b/x") and is_object_url("gs://b") and is_object_url("az://b/x")
    for other in ("/x", "s3:/x", "https://x", "memory://x", "simplecache::s3://x", 3, None, Path("s3://b")):
        assert not is_object_url(other)
    with pytest.raises(ConfigError, match="names no bucket"):
        split_url("s3:///x")
    with pytest.raises(ConfigError, match=r"^s3://…@bucket: a URL must hold no credentials") as caught:
        split_url(f"s3://me:{SECRET}@bucket/x")
    assert SECRET not in str(caught.value)


def test_a_missing_bucket_is_named(bucket: str) -> None:
    folder = ObjectFolder(f"{bucket}x/y")
    says = f"y/?a?: there is no bucket {bucket}x; make it"
    for act, error in _acts(folder):
        with pytest.raises(error, match=says):
            act()
    with pytest.raises(SourceError, match=f"there is no bucket {bucket}x"):
        folder.list()


def _acts(folder: ObjectFolder) -> list[tuple[Callable[[], object], type[Exception]]]:
    return [
        (lambda: folder.get("a"), SourceError),
        (lambda: folder.put("a", b"1"), WriteError),
        (lambda: folder.create("a", b"1"), WriteError),
    ]


@pytest.mark.parametrize(
    ("status", "code", "says"),
    [
        (403, "AccessDenied", r"no permission \(403 AccessDenied\); the credential must allow"),
        (400, "ExpiredToken", r"the credential has expired \(ExpiredToken\); get a new one"),
        (403, "InvalidAccessKeyId", r"does not know this credential \(InvalidAccessKeyId\)"),
        (403, "SignatureDoesNotMatch", r"does not know this credential"),
        (400, "EntityTooLarge", r"the store refused \(400 EntityTooLarge\)"),
    ],
)
def test_what_a_store_refuses_is_one_sentence(
    between: Between, one_bucket: str, status: int, code: str, says: str
) -> None:
    between.answer = lambda *_: (status, code)
    for act, error in _acts(ObjectFolder(f"{one_bucket}/x")):
        with pytest.raises(error, match=rf"^{one_bucket}/x/a: .*{says}") as caught:
            act()
        assert "\n" not in str(caught.value) and SECRET not in str(caught.value)


def test_a_store_that_fails_for_a_moment_is_asked_again(between: Between, one_bucket: str) -> None:
    folder, answers = ObjectFolder(f"{one_bucket}/x"), [(503, "SlowDown"), (500, "InternalError")]
    between.answer = lambda *_: answers.pop() if answers else None
    folder.put("a", b"1")
    assert folder.get("a") == b"1" and not answers


def test_a_store_that_goes_on_failing_is_an_error(
    between: Between, one_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfr_assets.storage.objects.store._RETRIES", 2)
    between.answer = lambda *_: (503, "SlowDown")
    for act, error in _acts(ObjectFolder(f"{one_bucket}/x")):
        with pytest.raises(error, match=r"x/a: the store failed after 2 retries \(503 SlowDown\); run again"):
            act()


def test_a_connection_that_is_lost_is_made_again(between: Between, one_bucket: str) -> None:
    folder, lost = ObjectFolder(f"{one_bucket}/x"), []

    def lose(method: str, path: str, query: str) -> None:
        if len(lost) < 2:
            lost.append(path)
            raise ConnectionError

    between.answer = lose
    folder.put("a", b"1")
    assert folder.get("a") == b"1" and len(lost) == 2


def _losing(method: str, part: str, share: float, times: int) -> Callable[[str, str, str], float | None]:
    left = [share] * times
    return lambda m, path, query: left.pop() if m == method and part in f"{path}?{query}" and left else None


def test_an_answer_that_is_cut_off_is_asked_for_again(between: Between, one_bucket: str) -> None:
    folder = ObjectFolder(f"{one_bucket}/x")
    folder.put("big", BIG)
    between.lose = _losing("GET", "big", 0.5, times=3)
    assert b"".join(chunks_of(folder.url_of("big"))) == BIG
    between.lose = _losing("GET", "big", 0.5, times=1)
    assert folder.get("big") == BIG


def test_a_put_whose_answer_is_lost_is_made_once(between: Between, one_bucket: str) -> None:
    folder = ObjectFolder(f"{one_bucket}/x")
    between.lose = _losing("PUT", "/lock", 0, times=1)
    version = folder.create("lock", b"mine")
    between.lose = _losing("PUT", "/lock", 0, times=1)
    folder.replace("lock", b"mine, still", version)
    assert folder.get("lock") == b"mine, still"


@pytest.mark.parametrize("part", ["partNumber=2", "uploads", "uploadId"])
def test_an_upload_of_which_an_answer_is_lost_is_complete(
    between: Between, one_bucket: str, tmp_path: Path, part: str
) -> None:
    folder, file = ObjectFolder(f"{one_bucket}/x"), tmp_path / "file"
    file.write_bytes(BIG)
    between.lose = _losing("PUT" if part == "partNumber=2" else "POST", part, 0, times=1)
    with folder.uploading("big", file):
        pass
    assert b"".join(chunks_of(folder.url_of("big"))) == BIG


def _complete_twice(between: Between, key: str) -> None:
    """Loses the answer to what completes an upload; the store then knows that upload no more."""
    asked: list[str] = []

    def again(method: str, path: str, query: str) -> tuple[int, str] | None:
        if method == "POST" and f"{path}?{query}".find(f"{key}?uploadId") >= 0:
            asked.append(path)
        return (404, "NoSuchUpload") if len(asked) > 1 and method == "POST" else None

    between.lose = _losing("POST", f"{key}?uploadId", 0, times=1)
    between.answer = again


def test_an_upload_that_was_completed_twice_is_complete(between: Between, one_bucket: str, tmp_path: Path) -> None:
    folder, file = ObjectFolder(f"{one_bucket}/x"), tmp_path / "file"
    file.write_bytes(BIG)
    _complete_twice(between, "big")
    with folder.uploading("big", file):
        pass
    assert b"".join(chunks_of(folder.url_of("big"))) == BIG
    folder.put("other", bytes(len(BIG)))
    between.answer = lambda method, path, query: (404, "NoSuchUpload") if method == "POST" and "Id" in query else None
    with pytest.raises(WriteError, match="x/other: "), folder.uploading("other", file):
        pass  # what is there, of the same size, is not what was sent


def test_a_join_that_was_completed_twice_is_complete(between: Between, one_bucket: str) -> None:
    folder = ObjectFolder(f"{one_bucket}/x")
    folder.put("a", BIG)
    stat = folder.stat("a")
    assert stat
    _complete_twice(between, "all")
    with joining([Source(folder.url_of("a"), stat.size, stat.etag)] * 2, folder.url_of("all")):
        pass
    assert b"".join(chunks_of(folder.url_of("all"))) == BIG * 2


def test_an_upload_that_another_one_ended_is_an_error(
    between: Between, one_endpoint: str, one_bucket: str, tmp_path: Path
) -> None:
    folder, file = ObjectFolder(f"{one_bucket}/x"), tmp_path / "file"
    file.write_bytes(BIG)
    with pytest.raises(WriteError, match="x/big: "), folder.uploading("big", file):
        assert abort_uploads(folder, "big") == 1
    assert folder.walk() == {} and uploads(one_endpoint, one_bucket) == []


def test_a_join_whose_answer_is_lost_is_complete(between: Between, one_bucket: str) -> None:
    folder = ObjectFolder(f"{one_bucket}/x")
    folder.put("a", BIG)
    stat = folder.stat("a")
    assert stat
    between.lose = _losing("POST", "all?uploadId", 0, times=1)
    with joining([Source(folder.url_of("a"), stat.size, stat.etag)] * 2, folder.url_of("all")):
        pass
    assert b"".join(chunks_of(folder.url_of("all"))) == BIG * 2


def test_a_server_that_is_not_there_is_named(
    one_bucket: str, configured: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfr_assets.storage.objects.store._RETRIES", 1)
    configured("http://127.0.0.1:9")
    with pytest.raises(SourceError, match=r"the store at http://127\.0\.0\.1:9 cannot be reached after 1 retries"):
        ObjectFolder(one_bucket).get("a")


def test_credentials_are_in_nothing_that_travels(one_bucket: str) -> None:
    folder = ObjectFolder(f"{one_bucket}/x")
    folder.put("a", b"1")
    assert SECRET.encode() not in pickle.dumps(folder) and SECRET not in repr(folder) + repr(folder.store)
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).get('a'))"
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(folder), capture_output=True, check=True)
    assert done.stdout == b"b'1'\n"


def test_a_profile_of_the_user_is_a_credential(
    one_bucket: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    file = tmp_path / "credentials"
    file.write_text(f"[mine]\naws_access_key_id = tester\naws_secret_access_key = {SECRET}\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_PROFILE", "mine")
    folder = ObjectFolder(one_bucket)
    folder.put("a", b"1")
    assert folder.get("a") == b"1"


def test_without_the_package_it_is_said_what_to_install(tmp_path: Path) -> None:
    code = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "obstore":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Refuse())
import tfr_assets
try:
    tfr_assets.write({"a": [1]}, "s3://bucket/a.tfrecord")
except tfr_assets.ConfigError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stdout == ("s3://bucket needs obstore, which is not installed: `pip install 'tfr-assets[s3]'`\n"), (
        done.stderr
    )


def test_a_missing_credential_is_named(one_bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where none is set, that of the machine is asked for."""
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setattr("tfr_assets.storage.objects.store._RETRIES", 0)
    with pytest.raises(SourceError, match=r"there is no credential; set one in the environment"):
        ObjectFolder(one_bucket).get("a")
