"""A clock that jumps, or runs backwards, decides nothing: the same files are written, read and removed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .scenarios import SCENARIOS
from .settings import cases, choices
from .truth import Tree, before_and_after, check_reading, meaning, put_tree, tree_of

_CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

/* Each look at the wall clock finds it up to CLOCK_JUMP seconds off, in turn before and behind. */
static time_t off(void) {
    static unsigned long state = 0;
    if (!state) { const char *seed = getenv("CLOCK_SEED"); state = seed ? strtoul(seed, 0, 10) + 1 : 1; }
    const char *jump = getenv("CLOCK_JUMP");
    long most = jump ? atol(jump) : 0;
    state = state * 6364136223846793005UL + 1442695040888963407UL;
    return most ? (time_t)((state >> 33) % (2 * (unsigned long)most)) - most : 0;
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *) = 0;
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += off();
    return result;
}
time_t time(time_t *where) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (where) *where = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}
"""
_ACT = """
import os, sys, time
from pathlib import Path
from tests.torture.scenarios import act
seen = {int(time.time()) for _ in range(20)}
assert len(seen) > 10, "the clock does not jump"
for name in sys.argv[2:]:
    act(name, Path(sys.argv[1]) / name)
"""
_YEARS = 40 * 365 * 86400


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that lets the clock jump in the processes it is loaded into."""
    if not (compiler := shutil.which("gcc") or shutil.which("cc")):
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("clock")
    (folder / "clock.c").write_text(_CLOCK)
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", "clock.so", "clock.c", "-ldl"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "clock.so"


def test_a_clock_that_jumps_changes_nothing(clock: Path, fast_folder: Path) -> None:
    choose = choices("clock")
    trees: dict[str, tuple[Tree, Tree]] = {}
    for name in SCENARIOS:
        (fast_folder / name / "data").mkdir(parents=True)
        trees[name] = before_and_after(name, fast_folder / name)
    for _ in cases(short=1):
        for name, (before, _) in trees.items():
            put_tree(fast_folder / name / "data", before)
            for path in (fast_folder / name).rglob("*"):
                moment = choose.randint(0, 2 * _YEARS)  # up to 2050
                os.utime(path, (moment, moment))
        seed = str(choose.randrange(2**32))
        environment = {**os.environ, "LD_PRELOAD": str(clock), "CLOCK_JUMP": str(_YEARS), "CLOCK_SEED": seed}
        command = [sys.executable, "-c", _ACT, str(fast_folder), *SCENARIOS]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, f"CLOCK_SEED={seed}\n{ended.stderr}"
        for name, (_, done) in trees.items():
            data = fast_folder / name / "data"
            assert meaning(tree_of(data)) == meaning(done), f"{name}, CLOCK_SEED={seed}"
            assert check_reading(SCENARIOS[name], data) == "new", name


def test_files_of_any_age_are_left_where_they_match(fast_folder: Path) -> None:
    choose = choices("ages")
    for name in ("first shards", "a landing replaced"):
        root = fast_folder / name
        (root / "data").mkdir(parents=True)
        before_and_after(name, root)
        shards = sorted((root / "data").glob("sample/shards/sample-*"))
        before = {path: path.stat().st_ino for path in shards}
        for path in (root / "data").rglob("*"):
            moment = choose.randint(0, 2 * _YEARS)
            os.utime(path, (moment, moment))
        SCENARIOS[name].act(root)
        assert {path: path.stat().st_ino for path in shards} == before, "written again"
