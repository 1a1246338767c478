"""The small parts: how a step fails, what is logged, how things are shown."""

import errno

import dagster as dg
import pyarrow as pa
import pytest

from tfr_assets.components.failures import is_transient, reported
from tfr_assets.components.metadata.file_metadata import markdown_table
from tfr_assets.components.metadata.progress import counted, logged
from tfr_assets.errors import ConfigError, SourceError, WriteError
from tfr_assets.units import megabytes


def test_a_users_mistake_fails_the_step_with_its_message_and_no_retry() -> None:
    with pytest.raises(dg.Failure) as caught, reported(shard="train-00000-of-00001"):
        raise ConfigError("shards: 0 is too few")
    assert caught.value.description == "shards: 0 is too few"
    assert caught.value.allow_retries is False
    assert {name: value.value for name, value in caught.value.metadata.items()} == {
        "shard": "train-00000-of-00001",
        "problem": "ConfigError",
    }
    assert caught.value.__cause__ is None


def test_the_trace_of_a_users_own_function_is_kept() -> None:
    with pytest.raises(dg.Failure) as caught, reported():
        raise SourceError("my_rows failed") from ZeroDivisionError("in the user's code")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EIO, "input/output error"),
        ConnectionResetError("gone"),
        TimeoutError("too slow"),
    ],
)
def test_what_may_pass_by_itself_is_tried_again(error: OSError) -> None:
    with pytest.raises(dg.RetryRequested) as caught, reported():
        raise error
    assert caught.value.__cause__ is error
    with pytest.raises(dg.RetryRequested), reported():
        raise WriteError("cannot write") from error


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.ENOENT, errno.EROFS])
def test_what_stays_wrong_is_not_tried_again(number: int) -> None:
    assert not is_transient(OSError(number, "no"))
    with pytest.raises(dg.Failure), reported():
        raise WriteError("cannot write") from OSError(number, "no")


def test_a_bug_stays_what_it_is() -> None:
    with pytest.raises(KeyError), reported():
        raise KeyError("bug")


def test_progress_is_summed_and_logged_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now, lines = [0.0], []
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    add = counted(logged(lines.append), 4_000)
    for now[0] in (1.0, 10.5, 11.0, 30.0):
        add(1_000)
    assert lines == ["2,000 of 4,000 (50%)", "4,000 of 4,000 (100%)"]


def test_a_preview_is_a_markdown_table_whatever_stands_in_it() -> None:
    table = pa.table({"a|b": ["x|y\nz", None], "long": ["w" * 100, ""]})
    assert markdown_table(table).splitlines() == [
        "| a\\|b | long |",
        "| --- | --- |",
        f"| x\\|y z | {'w' * 39}… |",
        "|  |  |",
    ]
    wide = pa.table({f"c{i}": [i] for i in range(35)})
    assert markdown_table(wide).endswith("… and 5 more columns")


@pytest.mark.parametrize(
    ("size", "shown"), [(0, "0 bytes"), (999, "999 bytes"), (1_500, "1.5 kB"), (2.5e6, "2.5 MB"), (3e9, "3.0 GB")]
)
def test_sizes_are_shown_as_people_read_them(size: float, shown: str) -> None:
    assert megabytes(size) == shown
