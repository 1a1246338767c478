"""Who runs it may be nobody: without rights, an error names what is closed, and nothing is torn."""

import os
import shutil
from pathlib import Path

import pytest

from tfr_assets.errors import TfrError

from .command import NOBODY, as_nobody, make_copy
from .scenarios import SCENARIOS, act
from .settings import cases, choices, need_time
from .traced import run_forked
from .truth import before_and_after, check_recovery, put_tree


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_user_without_rights_is_refused_in_words(name: str, fast_folder: Path) -> None:
    choose, data = choices(f"nobody {name}"), fast_folder / "data"
    fast_folder.chmod(0o755)
    data.mkdir()
    before, done = before_and_after(name, fast_folder)
    for _ in cases(short=2):
        put_tree(data, before)
        folders = [data, *sorted(path for path in data.rglob("*") if path.is_dir())]
        for path in (fast_folder, *fast_folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        closed = choose.choice(folders)
        closed.chmod(choose.choice((0o000, 0o400, 0o500, 0o555)))
        ended = run_forked(_as_nobody, name, fast_folder)
        kind, said = ended.error or (None, "")
        closed.chmod(0o755)
        try:
            assert kind is None or issubclass(kind, TfrError), (kind, said)
            assert kind is None or str(data) in said or "'sample'" in said, f"names neither file nor dataset: {said}"
            check_recovery(name, fast_folder, data, before, done)
        except BaseException as error:
            error.add_note(f"{closed} was closed; it said {said!r}")
            raise


def _as_nobody(name: str, root: Path) -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    act(name, root)


def test_the_commands_serve_a_user_who_has_no_home(open_folder: Path) -> None:
    need_time()
    before = as_nobody()
    copy = make_copy(open_folder / "copy")
    for path in (copy.root, *copy.root.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    copy.settings.update(HOME="/nonexistent")
    for arguments in (("run", "small"), ("verify", "small"), ("inspect", "small")):
        code, said = copy.run(*arguments, before=before)
        assert code == 0 and "Traceback" not in said, said
    assert all(path.stat().st_uid == NOBODY for path in copy.data.rglob("*"))

    shutil.rmtree(copy.data)
    copy.data.parent.chmod(0o555)
    os.chown(copy.data.parent, 0, 0)
    code, said = copy.run("run", "small", before=before)
    assert code == 1 and str(copy.data) in said and "Permission denied" in said and "Traceback" not in said, said
