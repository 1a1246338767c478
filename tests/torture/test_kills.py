"""A process killed at any moment leaves nothing that is mistaken for data or holds locks."""

import time
from pathlib import Path

import pytest

from .scenarios import SCENARIOS, act
from .settings import cases, choices
from .traced import run_forked, run_killed
from .truth import before_and_after, check_recovery, put_tree


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_writer_may_be_killed_at_any_moment(name: str, fast_folder: Path) -> None:
    choose, data = choices(f"kill {name}"), fast_folder / "data"
    data.mkdir()
    before, done = before_and_after(name, fast_folder)
    put_tree(data, before)
    started = time.monotonic()
    assert run_forked(act, name, fast_folder).exit_code == 0
    usual = time.monotonic() - started
    for _ in cases(short=3):
        put_tree(data, before)
        after = choose.random() * usual
        run_killed(after, act, name, fast_folder)
        try:
            check_recovery(name, fast_folder, data, before, done)
        except BaseException as error:
            error.add_note(f"killed after {after:.4f} s")
            raise
