"""A system call that fails (EIO, no space, no more files) is one typed error that names a file; a rerun completes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tfr_assets.errors import TfrError

from .calls import CHANGING
from .scenarios import SCENARIOS, act
from .settings import cases, choices
from .traced import Ended, need_strace, run_traced
from .truth import check_reading, check_vouching, check_whole, meaning, put_tree, tree_of

CALLS = {
    "write": ("EIO", "ENOSPC", "EDQUOT", "EFBIG"),
    "fsync": ("EIO", "ENOSPC"),
    "rename": ("EIO", "ENOSPC", "EROFS"),
    "unlink": ("EIO", "EROFS", "EPERM"),
    "mkdir": ("EIO", "ENOSPC", "EACCES"),
    "openat": ("EIO", "ENOSPC", "EMFILE", "EACCES", "ESTALE"),
    "read": ("EIO", "ESTALE"),
    "close": ("EIO", "ENOSPC"),
    "lseek": ("EIO",),
    "ftruncate": ("EIO",),
    "copy_file_range": ("EIO", "ENOSPC", "EXDEV"),
}
TRACED = ["-y", "-e", f"trace={CHANGING}"]


@dataclass(frozen=True)
class Call:
    """The `number`th call, counted from 1, of one kind."""

    name: str
    number: int


@pytest.mark.parametrize("name", SCENARIOS)
def test_any_call_may_fail(name: str, fast_folder: Path) -> None:
    need_strace()
    root = fast_folder
    scenario, data, choose = SCENARIOS[name], root / "data", choices(f"calls {name}")
    data.mkdir()
    scenario.prepare(root)
    before = tree_of(data)
    put_tree(data, before)
    ended = run_traced(act, name, root, strace=TRACED, output=root / "trace")
    assert ended.error is None, ended.error
    done, calls = tree_of(data), list(_calls(ended.trace, data))
    for _ in cases(short=3):
        call = choose.choice(calls)
        fault = choose.choice(CALLS[call.name])
        inject = f"inject={call.name}:error={fault}:when={call.number}"
        put_tree(data, before)
        ended = run_traced(act, name, root, strace=[*TRACED, "-e", inject], output=root / "trace")
        hit = next((line for line in ended.trace if "(INJECTED)" in line), "nothing")
        if data not in _paths(hit):
            continue  # the calls came in another order this time
        try:
            check_whole(tree_of(data), before, done)
            check_vouching(data)
            _check_said(ended, root, fault)
            check_reading(scenario, data)
            if ended.error is None:
                assert meaning(tree_of(data)) == meaning(done), "it was silent, but did not do its work"
            act(name, root)
            assert meaning(tree_of(data)) == meaning(done), "running again does not complete it"
        except BaseException as error:
            error.add_note(f"{inject}: {_readable(hit)[:300]}\nit said {ended.error}")
            raise


def _calls(trace: list[str], root: Path) -> Iterator[Call]:
    """Yields the calls that concern what is below a folder."""
    numbers: dict[str, int] = {}
    for line in trace:
        if match := re.match(r"\d+ +(\w+)\(", line):
            numbers[match[1]] = numbers.get(match[1], 0) + 1
            if match[1] in CALLS and root in _paths(line):
                yield Call(match[1], numbers[match[1]])


def _paths(line: str) -> set[Path]:
    """The paths in a line, and all folders above them."""
    found = {Path(path) for path in re.findall(r'[<"]([^>"]*)[>"]', _readable(line[:4000]))}
    return found | {parent for path in found for parent in path.parents}


def _readable(line: str) -> str:
    return re.sub(r"\\x([0-9a-f]{2})", lambda match: chr(int(match[1], 16)), line)


def _check_said(ended: Ended, root: Path, fault: str) -> None:
    if ended.error is None:
        return
    kind, said = ended.error
    assert issubclass(kind, TfrError), f"{kind.__name__}: {said}"
    assert str(root) in said or "'sample'" in said, f"names neither file nor dataset: {said}"
