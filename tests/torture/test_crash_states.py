"""A power cut at any moment: what it can leave on the disk is never taken for what it is not, and a rerun heals it."""

from collections import Counter
from collections.abc import Callable
from itertools import count, islice
from pathlib import Path

import pytest

from .calls import TRACED, Recording, record, replayed, snapshot
from .crashes import FEW, Model, Tree, count_of, crashes, every_crash
from .scenarios import PARALLEL, SCENARIOS, act
from .settings import SECONDS, cases, choices
from .traced import need_strace, run_traced
from .truth import check_reading, check_vouching, check_whole, meaning, put_tree, tree_of


@pytest.mark.parametrize("model", ["ordered", "weak"])
@pytest.mark.parametrize("name", [*SCENARIOS, *PARALLEL])
def test_no_power_cut_leaves_anything_that_is_mistaken_for_data(
    name: str, model: Model, fast_folder: Path, record_property: Callable[[str, object], None]
) -> None:
    need_strace()
    scenario, root = (SCENARIOS | PARALLEL)[name], fast_folder
    data = root / "data"
    data.mkdir()
    scenario.prepare(root)
    before, old = snapshot(data), tree_of(data)
    ended = run_traced(act, name, root, strace=TRACED, output=root / "trace")
    assert ended.exit_code == 0 and ended.error is None, ended.error
    done = tree_of(data)
    recording = record(before, data, ended.trace)
    assert replayed(recording) == done, "the model of the file system is wrong"

    put_tree(data, tree_of(data))  # as a copy, so that inodes and times are none that anyone knows
    seen: set[int] = set()
    outcomes: Counter[str] = Counter()
    in_all = count_of(recording, model)
    every = bool(SECONDS) and in_all <= FEW
    states = every_crash(recording, model) if every else crashes(recording, model, choices(f"{name} {model}"))
    for _ in count() if every else cases(short=15):
        crash = next((state for state in islice(states, FEW + 1) if _mark(state.tree) not in seen), None)
        if crash is None:
            break  # these are all
        seen.add(_mark(crash.tree))
        put_tree(data, crash.tree)
        try:
            check_whole(crash.tree, old, done)
            check_vouching(data)
            outcome = check_reading(scenario, root / "data")
            if crash.point == len(recording.operations):
                assert outcome == "new", "what was reported as written is lost"
            (scenario.again or scenario.act)(root)
            assert meaning(tree_of(data)) == meaning(done), "running again does not complete it"
            assert check_reading(scenario, root / "data") == "new"
        except BaseException as error:
            error.add_note(f"{crash}\n{_story(recording, crash.point)}")
            raise
        outcomes[outcome] += 1
    many = "all" if every else "at random"
    record_property("torture", f"{name}, {model}: {len(seen)} different states, {many} of {in_all}: {dict(outcomes)}")
    # a few at random may miss what only the last states have
    assert outcomes.total() and (not every or (outcomes["new"] and (outcomes["old"] or outcomes["error"])))


def _mark(tree: Tree) -> int:
    return hash(tuple(sorted(tree.items())))


def _story(recording: Recording, point: int) -> str:
    return "\n".join(f"{place} {str(operation)[:160]}" for place, operation in enumerate(recording.operations[:point]))
