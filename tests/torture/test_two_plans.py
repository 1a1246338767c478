"""Two `tfr run` of one dataset, whose YAML is edited in between: one waits or is refused, and one plan is on disk."""

import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from .command import Copy, kill_session, make_copy, put_plan
from .settings import cases, choices
from .truth import check_vouching


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return make_copy(tmp_path_factory.mktemp("project") / "copy")


def test_two_plans_at_once_leave_the_files_of_one(copy: Copy) -> None:
    choose = choices("two plans")
    for _ in cases(short=1):
        counts, pause = choose.sample(range(1, 7), 2), 5 * choose.random()
        started: list[tuple[Copy, subprocess.Popen[str]]] = []
        try:
            for index, count in enumerate(counts):
                put_plan(copy.root, count)
                each = replace(copy, log=f"log{index}")
                started.append((each, each.start("run", "small")))
                if index == 0:
                    time.sleep(pause)
            codes = [process.wait(300) for _, process in started]
            said = [each.said() for each, _ in started]
            _check(copy, counts, codes, said)
        except BaseException as error:
            error.add_note(f"{counts} shards, the second one {pause:.2f} s later")
            raise
        finally:
            for _, process in started:
                kill_session(process.pid)


def _check(copy: Copy, counts: list[int], codes: list[int], said: list[str]) -> None:
    for code, text in zip(codes, said, strict=True):
        assert code == 0 or "Launch it again" in text, text
        assert "Traceback" not in text
    done = [count for count, code in zip(counts, codes, strict=True) if code == 0]
    assert done, said
    files = _shards(copy.data)
    assert len(files) in done, f"{done} were done, there are {[path.name for path in files]}"
    check_vouching(copy.data)
    assert copy.run("verify", str(copy.data / "shards"))[0] == 0, copy.said()
    assert copy.run("run", "small")[0] == 0, copy.said()
    assert copy.run("verify", "small")[0] == 0, copy.said()
    assert len(_shards(copy.data)) == counts[1]


def _shards(data: Path) -> list[Path]:
    return [path for path in (data / "shards").glob("small-train.tfrecord-*") if path.is_file()]
