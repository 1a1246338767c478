"""A DAGSTER_HOME that is new, full or read-only, and a full folder for temporary files."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tfr_assets.cli.instance import log_folder

Mount = Callable[[Path, str], None]


@pytest.fixture
def mount() -> Iterator[Mount]:
    """Mounts a filesystem of its own on a folder, with what is in it."""
    mounted: list[Path] = []

    def do(folder: Path, options: str) -> None:
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"cannot mount: {done.stderr}")
        mounted.append(folder)
        for name, content in files.items():
            (folder / name).write_bytes(content)

    yield do
    for folder in mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)
        shutil.rmtree(folder.resolve(), ignore_errors=True)  # a home in memory cannot be removed while it is mounted on


def fill(folder: Path, but: int = 0) -> None:
    """Fills a filesystem but for some bytes."""
    with (folder / "filling").open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            file.truncate(max(file.tell() - but, 0))


def test_two_first_runs_at_once_both_succeed(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    started = [terminal.start("plan", "few") for _ in range(3)]
    for process in started:
        _, err = process.communicate(timeout=900)
        assert process.returncode == 0, err
    assert terminal.statuses() == ["SUCCESS"] * 3


@pytest.mark.parametrize("but", [0, 300_000], ids=["at once", "while the databases are made"])
def test_a_full_home_is_one_line_with_folder_and_remedy(but: int, tmp_path: Path, mount: Mount) -> None:
    terminal = Terminal(tmp_path)
    mount(terminal.home, "size=2m")
    fill(terminal.home, but)
    done = terminal.tfr("plan", "few")
    assert done.returncode == 1, done.stderr
    check_one_line(done.stderr, terminal.home)
    (terminal.home / "filling").unlink()
    done = terminal.tfr("plan", "few")
    assert done.returncode == 0, done.stderr


def test_a_home_that_becomes_full_in_the_middle_of_a_run_says_so(tmp_path: Path, mount: Mount) -> None:
    terminal = Terminal(tmp_path)
    mount(terminal.home, "size=4m")
    process = terminal.start_held("plan", "few")
    fill(terminal.home)
    terminal.hold.unlink()
    _, err = process.communicate(timeout=900)
    assert process.returncode == 1, err
    assert "Traceback" not in err
    assert str(terminal.home) in err and "full" in err
    (terminal.home / "filling").unlink()
    done = terminal.tfr("plan", "few")
    assert done.returncode == 0, done.stderr
    assert "STARTED" not in terminal.statuses()


def test_a_read_only_home_is_one_line_with_folder_and_remedy(tmp_path: Path, mount: Mount) -> None:
    terminal = Terminal(tmp_path)
    mount(terminal.home, "size=20m")
    for used in (False, True):
        if used:
            assert terminal.tfr("plan", "few").returncode == 0
        subprocess.run(["mount", "-o", "remount,ro", str(terminal.home)], check=True)
        done = terminal.tfr("plan", "few")
        assert done.returncode == 1, done.stderr
        check_one_line(done.stderr, terminal.home)
        subprocess.run(["mount", "-o", "remount,rw", str(terminal.home)], check=True)


def test_a_full_folder_for_temporary_files_is_of_no_account(tmp_path: Path, mount: Mount) -> None:
    full = tmp_path / "full"
    full.mkdir()
    mount(full, "size=64k")
    fill(full)
    terminal = Terminal(tmp_path, env={"TMPDIR": str(full)})
    done = terminal.tfr("plan", "few")
    assert done.returncode == 0, done.stderr


def check_one_line(said: str, home: Path) -> None:
    (line,) = said.strip().splitlines()
    assert line.startswith(f"tfr: DAGSTER_HOME={home}: Dagster cannot store its runs there: ")
    assert line.endswith("or set DAGSTER_HOME to another folder")


@pytest.mark.parametrize("home", ["", "elsewhere", ".dagster"])
def test_logs_lie_in_one_folder_wherever_the_home_is(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.dg.project]\nroot_module = "sales_data"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TFR_PROJECT", raising=False)
    monkeypatch.setenv("DAGSTER_HOME", home and str(tmp_path / home))
    assert log_folder() == tmp_path / (home if home == "elsewhere" else "") / ".dagster"
    if not home:
        (tmp_path / "dagster.yaml").touch()
        assert log_folder() == tmp_path / ".dagster"
