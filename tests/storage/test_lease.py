"""A lock in a store: held by one, renewed while its holder lives, taken over when it is dead."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.storage.servers import Between
from tests.waiting import wait_for
from tfr_assets.errors import WriteError
from tfr_assets.storage.objects.folder import ObjectFolder
from tfr_assets.storage.objects.lease import Lease, hold_lease

_HOLD = """
import sys, time
from tfr_assets.storage.objects.folder import ObjectFolder
from tfr_assets.storage.objects.lease import hold_lease
with hold_lease(ObjectFolder(sys.argv[1]), seconds=float(sys.argv[2])):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(url: str, seconds: float) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, url, str(seconds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout and process.stdout.readline() == "held\n"
    return process


def test_a_lock_is_held_by_one_and_leaves_nothing(bucket: str) -> None:
    folder = ObjectFolder(f"{bucket}/x")
    with hold_lease(folder, seconds=3) as lease:
        with pytest.raises(WriteError, match=rf"process {os.getpid()} on .* is writing there and holds .*x/\.lock"):
            Lease(folder, ".lock", 3).take()
        time.sleep(4)  # longer than a lease: it was renewed
        lease.check()
    assert folder.walk() == {}
    with hold_lease(folder, seconds=3):
        pass


def test_the_lock_of_a_process_of_this_machine_that_was_killed_is_taken_at_once(bucket: str) -> None:
    folder, process = ObjectFolder(bucket), holder(bucket, 600)
    process.kill()
    process.wait()
    assert set(folder.walk()) == {".lock"}
    with hold_lease(folder, seconds=600):
        pass
    assert folder.walk() == {}


def test_the_lock_of_a_dead_process_elsewhere_is_taken_after_a_lease(bucket: str) -> None:
    folder = ObjectFolder(bucket)
    folder.put(".lock", json.dumps({"host": "elsewhere", "process": 1, "is": "another-machine 1 1"}).encode())
    started = time.monotonic()
    with hold_lease(folder, seconds=1):
        assert time.monotonic() - started >= 1
        assert b"elsewhere" not in (folder.get(".lock") or b"")


def test_any_content_is_a_lock(bucket: str) -> None:
    folder = ObjectFolder(bucket)
    for content in (b"", b"[1]", b"{", b"\xff", b'{"process": "x", "is": 5}'):
        folder.put(".lock", content)
        with hold_lease(folder, seconds=0.5):
            pass


def test_a_holder_that_was_stopped_for_too_long_writes_no_more(bucket: str) -> None:
    folder = ObjectFolder(bucket)
    lease = Lease(folder, ".lock", 0.5)
    lease.take()  # nobody renews it: its process is stopped
    lease.check()
    with hold_lease(folder, seconds=0.5):
        with pytest.raises(WriteError, match="the lock was lost, since it was not renewed for"):
            lease.check()
        lease.release()
        assert set(folder.walk()) == {".lock"}  # the other's


def test_what_another_took_is_not_removed_by_who_did_not_notice(bucket: str) -> None:
    folder = ObjectFolder(bucket)
    with hold_lease(folder, seconds=600):
        folder.put(".lock", b"another's")
    assert folder.get(".lock") == b"another's"


def test_a_stopped_process_loses_its_lock(one_bucket: str) -> None:
    folder, process = ObjectFolder(one_bucket), holder(one_bucket, 1)
    process.send_signal(signal.SIGSTOP)
    try:
        with hold_lease(folder, seconds=1.5):
            pass
    finally:
        process.send_signal(signal.SIGCONT)
        process.communicate("", timeout=60)
    assert process.returncode == 0 and folder.walk() == {}


def test_of_many_at_once_one_holds_the_lock(bucket: str) -> None:
    folder, held, refused, most = ObjectFolder(bucket), [0], [], []
    counting = threading.Lock()

    def work() -> None:
        try:
            with hold_lease(folder, seconds=15):  # of a shorter one, a machine at its limits may miss the renewal
                with counting:
                    held[0] += 1
                    most.append(held[0])
                time.sleep(1)
                with counting:
                    held[0] -= 1
        except WriteError as error:
            refused.append(error)

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    wait_for(lambda: not any(thread.is_alive() for thread in threads))
    assert set(most) == {1} and len(most) + len(refused) == 5


def lose_an_answer(between: Between) -> None:
    """Loses the answer to the next renewal, which the store carries out, and refuses what the client sends again."""
    carried_out: list[str] = []
    left = [(503, "SlowDown")]

    def lose(method: str, path: str, query: str) -> float | None:
        if method != "PUT" or carried_out:
            return None
        carried_out.append(path)
        return 0

    between.lose = lose
    between.answer = lambda method, *_: left.pop() if method == "PUT" and carried_out and left else None


@pytest.fixture
def one_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the client give up soon."""
    monkeypatch.setattr("tfr_assets.storage.objects.store._RETRIES", 1)


def test_a_renewal_whose_answer_was_lost_counts(between: Between, one_bucket: str, one_retry: None) -> None:
    folder = ObjectFolder(f"{one_bucket}/x")
    lease = Lease(folder, ".lock", 3)
    lease.take()
    lose_an_answer(between)
    with pytest.raises(WriteError, match="the store failed"):
        lease.renew()
    assert json.loads(folder.get(".lock") or b"")["renewal"] == 2  # the store carried it out
    lease.renew()
    lease.check()
    lease.release()
    assert folder.walk() == {}


def test_a_lock_is_released_after_a_renewal_whose_answer_was_lost(
    between: Between, one_bucket: str, one_retry: None
) -> None:
    folder = ObjectFolder(f"{one_bucket}/x")
    with hold_lease(folder, seconds=3) as lease:
        lose_an_answer(between)
        wait_for(lambda: json.loads(folder.get(".lock") or b"")["renewal"] >= 4)
        lease.check()
    assert folder.walk() == {}


def test_a_lock_that_another_took_after_a_lost_answer_is_lost(
    between: Between, one_bucket: str, one_retry: None
) -> None:
    folder = ObjectFolder(f"{one_bucket}/x")
    with hold_lease(folder, seconds=3) as lease:
        lose_an_answer(between)
        wait_for(lambda: json.loads(folder.get(".lock") or b"")["renewal"] >= 2)
        folder.put(".lock", b"another's")
        wait_for(lambda: lease._lost is not None)
        with pytest.raises(WriteError, match="the lock was lost"):
            lease.check()
    assert folder.get(".lock") == b"another's"


@pytest.mark.parametrize("when", ["answer", "lose"], ids=["before", "after"])
def test_a_request_that_hangs_does_not_lose_the_lock(between: Between, one_bucket: str, when: str) -> None:
    """Whether it hangs before the store carries it out, which it does much later, or after."""
    folder, hung, over = ObjectFolder(f"{one_bucket}/x"), list[str](), threading.Event()

    def hang(method: str, path: str, query: str) -> None:
        if method == "PUT" and not hung:
            hung.append(path)
            over.wait(100)

    with hold_lease(folder, seconds=10) as lease:
        setattr(between, when, hang)
        wait_for(lambda: hung)
        before = lease._renewed

        def is_renewed() -> bool:
            lease.check()
            return lease._renewed > before

        wait_for(is_renewed)
        over.set()
        lease.check()
    assert folder.walk() == {}


def test_nothing_is_left_in_the_working_directory(
    one_bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with hold_lease(ObjectFolder(one_bucket)):
        pass
    assert not [path for path in tmp_path.iterdir() if path.name != "none"]
