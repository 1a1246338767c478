"""Compiled kernels are kept wherever there is a place, found wherever they are, and never older than their sources."""

import os
import pty
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

import tfr_assets
from tfr_assets.records.kernels.compile_progress import LINE

KERNEL = """
from tfr_assets.records.kernels.jit import kernel

@kernel("int64(int64)")
def twice(number):
    return number * FACTOR

FACTOR = 2
"""
SCRIPT = "from tfr_assets.records.kernels.twice import twice; print(twice(21), sum(twice.stats.cache_hits.values()))"


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder that other users can enter: pytest shuts its own to them whenever another run begins."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of what compiles kernels, and one small kernel, in a folder that everyone can read."""
    original, copy = Path(tfr_assets.__file__).parent, tmp_path / "site" / "tfr_assets"
    (copy / "records" / "kernels").mkdir(parents=True)
    files = ("__init__.py", "jit.py", "kernel_cache.py", "compile_progress.py")
    (copy / "__init__.py").touch()  # ours imports more than is copied
    for name in ("records/__init__.py", *(f"records/kernels/{name}" for name in files)):
        shutil.copy(original / name, copy / name)
        (copy / name).chmod(0o644)
    (copy / "records" / "kernels" / "twice.py").write_text(KERNEL.replace("FACTOR = 2", "").replace("FACTOR", "2"))
    (copy / "records" / "kernels" / "twice.py").chmod(0o644)
    for folder in copy / "records" / "kernels", copy / "records", copy, copy.parent:
        folder.chmod(0o755)
    return copy


def unprivileged() -> list[str]:
    """What makes a command one of a user whom permissions bind: another user, or root without its capabilities."""
    if os.getuid() != 0:
        return []
    if not shutil.which("setpriv"):
        pytest.skip("needs setpriv, to give up what root may do")
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    if subprocess.run([*other, sys.executable, "-c", "import numba"], capture_output=True, check=False).returncode == 0:
        return other
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]  # the interpreter itself is for root alone


def run(package: Path, script: str = SCRIPT, user: Sequence[str] = (), **environment: str) -> str:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "XDG"))}
    found = {**plain, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    command = [*user, sys.executable, "-c", script]
    done = subprocess.run(command, cwd="/", env=found, capture_output=True, text=True, check=False, umask=0o022)
    assert done.returncode == 0, done.stderr
    assert done.stderr in ("", f"{LINE}\n")
    return done.stdout.strip()


@pytest.fixture
def places(tmp_path: Path, package: Path) -> Iterator[dict[str, str]]:
    """An environment in which only the folder for temporary files can be written, and the package cannot."""
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    for folder in home, temporary:
        folder.mkdir()
    temporary.chmod(0o1777)
    locked = [home, package, package / "records" / "kernels"]
    for folder in locked:
        folder.chmod(0o555)
    yield {"HOME": str(home), "TMPDIR": str(temporary)}
    for folder in locked:
        folder.chmod(0o755)


def test_a_user_who_may_write_nowhere_else_keeps_kernels_among_temporary_files(
    package: Path, places: dict[str, str]
) -> None:
    user = unprivileged()
    assert [run(package, SCRIPT, user, **places) for _ in range(2)] == ["42 0", "42 1"]
    (folder,) = Path(places["TMPDIR"]).iterdir()
    assert folder.name == f"tfr-assets-{folder.stat().st_uid}"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert not list(package.rglob("*.nbi"))


def test_a_temporary_folder_that_others_may_write_to_is_not_trusted(package: Path, places: dict[str, str]) -> None:
    user = unprivileged()
    run(package, SCRIPT, user, **places)
    (folder,) = Path(places["TMPDIR"]).iterdir()
    folder.chmod(0o777)
    script = f"import warnings; warnings.simplefilter('ignore')\n{SCRIPT}"
    assert run(package, script, user, **places) == "42 0"


def test_kernels_that_were_compiled_into_an_image_are_used_where_nothing_can_be_written(
    package: Path, places: dict[str, str]
) -> None:
    (package / "records" / "kernels").chmod(0o755)
    (package / "records" / "kernels" / "__pycache__").mkdir()
    assert run(package) == "42 0"  # as the image is built
    assert list(package.rglob("*.nbi"))
    (package / "records" / "kernels" / "__pycache__").chmod(0o555)
    (package / "records" / "kernels").chmod(0o555)
    assert run(package, SCRIPT, unprivileged(), **places) == "42 1"


def test_nowhere_to_keep_kernels_is_one_warning(package: Path, places: dict[str, str]) -> None:
    script = f"""
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("default")
    {SCRIPT}
print([str(one.message) for one in caught])
"""
    found = run(package, script, unprivileged(), **places, NUMBA_CACHE_DIR=f"{places['HOME']}/none")
    assert found.startswith("42 0\n['compiled kernels cannot be kept") and found.count("NUMBA_CACHE_DIR") == 1


def test_a_folder_of_the_users_own_choice_is_the_only_one(package: Path, tmp_path: Path) -> None:
    chosen = {"NUMBA_CACHE_DIR": str(tmp_path / "chosen")}
    assert [run(package, **chosen) for _ in range(2)] == ["42 0", "42 1"]
    assert not list(package.rglob("__pycache__")) and list((tmp_path / "chosen").rglob("*.nbc"))


@pytest.mark.parametrize("content", [b"", b"\x80", b"garbage", None])
@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_a_damaged_cache_is_compiled_again(package: Path, tmp_path: Path, suffix: str, content: bytes | None) -> None:
    chosen = {"NUMBA_CACHE_DIR": str(tmp_path / "chosen")}
    run(package, **chosen)
    (file,) = (tmp_path / "chosen").rglob(f"*.{suffix}")
    if content is None:
        file.unlink()
        file.mkdir()  # can neither be read nor replaced
    else:
        file.write_bytes(content)
    script = f"import warnings; warnings.simplefilter('ignore')\n{SCRIPT}"
    assert run(package, script, **chosen) == "42 0"
    if content is not None:
        assert [run(package, script, **chosen) for _ in range(2)][-1] == "42 1"


def test_two_processes_may_compile_at_once(package: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "NUMBA_CACHE_DIR": str(tmp_path / "chosen")}
    command = [sys.executable, "-c", SCRIPT]
    both = [subprocess.Popen(command, cwd="/", env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [one.communicate()[0].split()[0] for one in both] == ["42"] * 3
    assert run(package, NUMBA_CACHE_DIR=str(tmp_path / "chosen")) == "42 1"


def test_an_edit_of_the_file_that_defines_a_kernel_outside_of_the_room_is_noticed(package: Path) -> None:
    script = "from outside import caller; print(caller(3))"
    outside = package.parent / "outside.py"
    text = """
from tfr_assets.records.kernels.jit import called, kernel

@called
def helper(number):
    return number + 1

@kernel("int64(int64)")
def caller(number):
    return helper(number)
"""
    outside.write_text(text)
    assert run(package, script) == "4"
    status = outside.stat()
    outside.write_text(text.replace("+ 1", "+ 2"))
    os.utime(outside, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert run(package, script) == "5"


@pytest.fixture
def on_terminal(package: Path, tmp_path: Path) -> Callable[[str], bytes]:
    """Runs a script on a terminal, and returns what it shows there."""
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "NUMBA_CACHE_DIR": str(tmp_path / "chosen")}

    def show(script: str) -> bytes:
        controller, terminal = pty.openpty()
        subprocess.run(
            [sys.executable, "-c", script],
            cwd="/", env=environment, stdout=subprocess.DEVNULL, stderr=terminal, check=True,
        )  # fmt: skip
        os.close(terminal)
        shown = b""
        try:
            while some := os.read(controller, 4096):
                shown += some
        except OSError:  # how a terminal ends
            pass
        os.close(controller)
        return shown

    return show


def test_a_terminal_shows_that_the_compiler_is_at_work_and_nothing_stays(on_terminal: Callable[[str], bytes]) -> None:
    shown = on_terminal(SCRIPT)
    assert b"compiling kernels, once" in shown and b"0/1" in shown and b"twice.twice" in shown
    assert shown.endswith(b"\x1b[2K")  # the line is wiped away
    assert on_terminal(SCRIPT) == b""


def test_beside_the_bar_of_another_process_it_is_one_line(on_terminal: Callable[[str], bytes]) -> None:
    script = f"from tfr_assets.records.kernels.compile_progress import show_as; show_as('line'); {SCRIPT}"
    assert on_terminal(script) == b"\r\x1b[2K" + LINE.encode() + b"\r\n"
    assert on_terminal(script) == b""


def test_without_a_terminal_it_is_said_once_in_one_line(package: Path, tmp_path: Path) -> None:
    twice = package / "records" / "kernels" / "twice.py"
    twice.write_text(f"{twice.read_text()}\n@kernel('int64(int64)')\ndef thrice(number):\n    return number * 3\n")
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "NUMBA_CACHE_DIR": str(tmp_path / "chosen")}
    command = [sys.executable, "-c", SCRIPT]
    done = [subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True) for _ in range(2)]
    assert [each.stderr for each in done] == [f"{LINE}\n", ""] and done[1].stdout == "42 1\n"
